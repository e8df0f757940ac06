//! A soak of real processes: five regions under clients of all three protocols and of quotas, and under faults, for as long as one likes.
//!
//! ```text
//!   clients in every region ────────────────────────────────────────────────▶ stop ─▶ rest ─▶ all the money is there, nothing acknowledged
//!   faults: kill -9, pause, cut, slow, half-open, a wrong clock ─▶ healed ─────┘                is lost, no token is given out twice,
//!   watch: commits go on, no site exceeds a bound, exact counts are right ─────┘                nothing waits, no table or folder has grown
//! ```
//!
//! `SOAK_MINUTES=60 SOAK_SEED=7 cargo test -p rhumb --test soak -- --nocapture`, or `make soak-cluster`. Without the variables it is short and
//! its seed the same each time. The seed decides which faults there are, and what clients draw; what comes of it hangs on the machine, too.

#[path = "../product/common/mod.rs"]
#[allow(dead_code, reason = "the soak uses a part of it")]
mod common;

mod bank;
mod client;
mod clock;
mod cluster;
mod faults;
mod journal;
mod metrics;
mod quota;
mod soak;
mod watch;

use bank::PROTOCOLS;
use clock::WrongClock;
use cluster::Cluster;
use faults::Round;
use journal::Journal;
use metrics::Metrics;
use rhumb_core::Rng;
use soak::Soak;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use watch::Watch;

/// How long faults last if nothing else is asked for.
const MINUTES: f64 = 0.5;
const SEED: u64 = 1;
/// How long it may take, once all is healed and nobody asks for anything, until nothing waits. Attempts are remembered for a minute.
const REST_MAX: Duration = Duration::from_secs(120);
/// How often it is said meanwhile what does.
const SAYS_EVERY: Duration = Duration::from_secs(20);
const BREATH: Duration = Duration::from_millis(500);

/// An environment variable, or what stands for it.
fn variable<T: FromStr>(name: &str, otherwise: T) -> T {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_regions_stand_faults_and_leave_nothing_behind() {
    let (minutes, seed) = (variable("SOAK_MINUTES", MINUTES), variable("SOAK_SEED", SEED));
    println!("SOAK_MINUTES={minutes} SOAK_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let cluster = tokio::task::block_in_place(Cluster::start);
    bank::create(&cluster, cluster.len()).await;
    tokio::task::block_in_place(|| quota::create(&cluster));
    let soak = Arc::new(Soak::default());
    let (journals, quotas, clients) = start_clients(&cluster, &soak, &mut rng);
    let (begun, rounds) = (Instant::now(), AtomicUsize::new(0));
    let watch = Watch { cluster: &cluster, soak: &soak, journals: &journals, quotas: &quotas, rounds: &rounds, rng: rng.fork(), begun };
    let until = begun + Duration::from_secs_f64(minutes * 60.0);
    let longest = tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| watch.run());
            // Whatever goes wrong, those who watch and the clients must hear of the end.
            let _end = End(&soak);
            harm(&cluster, &soak, rng, until, &rounds);
            all_commit_again(&cluster, &journals);
            soak.end();
            watch.join().expect("nobody who watches panics")
        })
    });
    futures::future::join_all(clients).await.into_iter().for_each(|client| client.expect("no client panics"));
    report(&journals, &quotas, &longest);
    let mut found = soak.all_found();
    found.extend(bank::check(&cluster, &journals).await);
    found.extend(tokio::task::block_in_place(|| quota::check(&cluster, &quotas)));
    found.extend(tokio::task::block_in_place(|| rest(&cluster)));
    assert!(found.is_empty(), "seed {seed}, {minutes} minutes:\n{}", found.join("\n"));
}

/// Ends the soak, also when what it stands in panics.
struct End<'a>(&'a Soak);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Starts the clients of each protocol and of quotas in every region.
#[allow(clippy::type_complexity, reason = "named at the one place where it is called")]
fn start_clients(
    cluster: &Cluster,
    soak: &Arc<Soak>,
    rng: &mut Rng,
) -> (Vec<Arc<Journal>>, Vec<Arc<quota::Journal>>, Vec<tokio::task::JoinHandle<()>>) {
    let (mut journals, mut clients) = (Vec::new(), Vec::new());
    for (protocol, region) in PROTOCOLS.into_iter().flat_map(|protocol| (0..cluster.len()).map(move |region| (protocol, region))) {
        let journal = Arc::new(Journal::new(protocol, region));
        let client = client::Client { number: region as i64, journal: Arc::clone(&journal), rng: rng.fork() };
        clients.push(tokio::spawn(client.work(cluster.endpoint(region, protocol), Arc::clone(soak))));
        journals.push(journal);
    }
    let quotas: Vec<_> = quota::QUOTAS.into_iter().map(|name| Arc::new(quota::Journal::new(name))).collect();
    for region in 0..cluster.len() {
        let client = quota::Client { region, address: cluster.resp(region), rng: rng.fork(), journals: quotas.clone() };
        clients.push(tokio::spawn(client.work(Arc::clone(soak))));
    }
    (journals, quotas, clients)
}

/// Harms the cluster until it is time, or something is found.
fn harm(cluster: &Cluster, soak: &Soak, mut rng: Rng, until: Instant, count: &AtomicUsize) {
    let clock = WrongClock::make();
    let mut rounds = Vec::new();
    while Instant::now() < until && soak.all_found().is_empty() {
        let round = Round::draw(&mut rng, cluster.len());
        println!("{round}");
        round.run(cluster, soak, &clock, until);
        rounds.push(round);
        count.store(rounds.len(), Ordering::Relaxed);
    }
    println!("faults: {:?}", Round::count(&rounds));
}

/// Waits until every client has committed again.
fn all_commit_again(cluster: &Cluster, journals: &[Arc<Journal>]) {
    let (begun, before) = (Instant::now(), journals.iter().map(|journal| journal.seen().committed).collect::<Vec<_>>());
    for (journal, before) in journals.iter().zip(before) {
        while journal.seen().committed == before {
            let name = cluster.name(journal.region);
            assert!(begun.elapsed() < REST_MAX, "{} does not commit again in {name}", journal.protocol);
            std::thread::sleep(BREATH);
        }
    }
    println!("all clients commit again {:.1} s after the last fault was healed", begun.elapsed().as_secs_f64());
}

/// Waits until nothing waits any more at any site. Returns what does.
fn rest(cluster: &Cluster) -> Vec<String> {
    let begun = Instant::now();
    let mut says_at = SAYS_EVERY;
    loop {
        let of_site = |region: usize| match Metrics::read(cluster, region) {
            Ok(metrics) => [metrics.above_bounds(), metrics.above_rest()].concat(),
            Err(error) => vec![format!("{} does not tell how it is: {error}", cluster.name(region))],
        };
        let found: Vec<String> = (0..cluster.len()).flat_map(of_site).collect();
        if found.is_empty() || begun.elapsed() > REST_MAX {
            println!("{} findings {:.1} s after the last client has gone", found.len(), begun.elapsed().as_secs_f64());
            return found;
        }
        if begun.elapsed() > says_at {
            says_at += SAYS_EVERY;
            println!("not at rest yet:\n{}", found.join("\n"));
        }
        std::thread::sleep(BREATH);
    }
}

fn report(journals: &[Arc<Journal>], quotas: &[Arc<quota::Journal>], longest: &[(&str, Duration)]) {
    for (protocol, longest) in longest {
        let own: Vec<_> = journals.iter().filter(|journal| journal.protocol == *protocol).map(|journal| journal.seen()).collect();
        let sum = |of: fn(&journal::Seen) -> u64| own.iter().map(of).sum::<u64>();
        println!(
            "{protocol}: {} commits, {} conflicts, {} not served, {} unknown; longest without a commit where no fault was: {:.1} s",
            sum(|seen| seen.committed),
            sum(|seen| seen.conflicts),
            sum(|seen| seen.unavailable),
            sum(|seen| seen.unknown),
            longest.as_secs_f64(),
        );
    }
    for journal in quotas {
        println!("quota {}: {} operations done", journal.name, journal.done.load(Ordering::Relaxed));
    }
}
