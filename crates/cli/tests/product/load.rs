//! TPC-C as the load: loaded small, run in a closed loop in every region, each commit noted.

use rhumb_bench::client::postgres::{Endpoint, Failure, Session};
use rhumb_bench::driver::{ClientSlot, DriverOptions, Until};
use rhumb_bench::report::Report;
use rhumb_bench::tables::InitOptions;
use rhumb_bench::transactions::{self, Drawn, RunOptions, Terminal, Transactions, Verdict};
use rhumb_bench::workloads::tpcc::{self, Scale, Tpcc, TpccTerminal};
use rhumb_bench::{Kind, Load, Progress, Pulse, Silent, Unit};
use rhumb_core::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SEED: u64 = 1;
/// One for every region to be home to.
const WAREHOUSES: u32 = 5;
const TERMINALS_PER_REGION: usize = 4;
/// No run lasts so long: it is stopped.
const LENGTH: Duration = Duration::from_secs(3_600);

/// The warehouse that is home to the terminals of a region.
pub fn home(region: usize) -> usize {
    region + 1
}

/// Creates and fills the tables: warehouses of the hundredth part.
pub async fn init(endpoints: &[Endpoint]) {
    let load = Load::Tpcc(tpcc::Load { scale: Scale::small(WAREHOUSES), seed: SEED });
    let loaded = rhumb_bench::init(&load, endpoints, &InitOptions::default(), &Silent).await.expect("loaded");
    println!("TPC-C loaded in {:.1} s", loaded.elapsed_s);
}

/// Checks the consistency conditions of clause 3.3.2. Nothing may be under way.
pub async fn check(endpoints: &[Endpoint]) {
    let checked = rhumb_bench::check(Kind::Tpcc, endpoints, &BTreeMap::new(), &Silent).await.expect("checked");
    assert!(checked.passed() && checked.conditions.len() == 12, "{checked}");
}

/// TPC-C under way.
pub struct Running {
    commits: Arc<Commits>,
    stop: Arc<Stop>,
    runs: JoinHandle<Report>,
}

/// Begins to run it, on a thread of its own: the future of a run is bound to one.
pub fn start(endpoints: &[Endpoint]) -> Running {
    let commits = Arc::new(Commits::default());
    let stop = Arc::new(Stop(AtomicBool::new(false)));
    let (endpoints, noted, stopped) = (endpoints.to_vec(), commits.clone(), stop.clone());
    let driver = DriverOptions {
        seed: SEED,
        clients_per_region: TERMINALS_PER_REGION,
        warmup: Duration::ZERO,
        until: Until::Elapsed(LENGTH),
        ..DriverOptions::default()
    };
    let options = RunOptions { driver, ..RunOptions::default() };
    let run = async move || {
        let mut session = Session::connect(&endpoints[0], &options.settings).await.expect("connected");
        let tpcc = Tpcc::open(&mut session, &tpcc::Options::default(), SEED).await.expect("it is loaded");
        transactions::run(Noted { tpcc, commits: noted }, &endpoints, &options, &*stopped).await.expect("it runs to its end")
    };
    let runs = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an event loop");
        runtime.block_on(run())
    });
    Running { commits, stop, runs }
}

impl Running {
    /// How many transactions committed in `region` between two moments.
    pub fn committed(&self, region: usize, from: Instant, to: Instant) -> usize {
        self.commits.0.lock().expect("whole").iter().filter(|(at, place)| *place == region && (from..to).contains(at)).count()
    }

    /// Whether the terminals are at work: they end by themselves only if they take the servers to be broken, which `stop` then reports.
    pub fn is_under_way(&self) -> bool {
        !self.runs.is_finished()
    }

    /// Lets the terminals end what they are at, and reports what they did: nothing that the servers refused.
    pub fn stop(self) -> Report {
        self.stop.0.store(true, Ordering::SeqCst);
        let report = self.runs.join().expect("it ran to its end");
        assert!(report.violations.is_empty() && report.total.errors.is_empty(), "{report}");
        report
    }
}

/// When transactions committed, and in which region.
#[derive(Default)]
struct Commits(Mutex<Vec<(Instant, usize)>>);

/// TPC-C, each commit noted.
struct Noted {
    tpcc: Tpcc,
    commits: Arc<Commits>,
}

struct NotedTerminal {
    terminal: TpccTerminal,
    region: usize,
    commits: Arc<Commits>,
}

impl Transactions for Noted {
    type Terminal = NotedTerminal;

    fn name(&self) -> &'static str {
        self.tpcc.name()
    }

    fn title(&self) -> String {
        self.tpcc.title()
    }

    fn kinds(&self) -> &'static [&'static str] {
        self.tpcc.kinds()
    }

    fn terminal(&self, slot: ClientSlot, rng: Rng) -> NotedTerminal {
        NotedTerminal { terminal: self.tpcc.terminal(slot, rng), region: slot.region, commits: self.commits.clone() }
    }
}

impl Terminal for NotedTerminal {
    fn draw(&mut self) -> Drawn {
        self.terminal.draw()
    }

    async fn attempt(&mut self, session: &mut Session) -> Result<Verdict, Failure> {
        let verdict = self.terminal.attempt(session).await?;
        if verdict == Verdict::Committed {
            self.commits.0.lock().expect("whole").push((Instant::now(), self.region));
        }
        Ok(verdict)
    }
}

/// Watches only whether the run is to stop.
struct Stop(AtomicBool);

impl Progress for Stop {
    fn stage(&self, _: &str, _: u64, _: Unit) {}
    fn position(&self, _: u64) {}
    fn pulse(&self, _: &Pulse) {}
    fn stop_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
