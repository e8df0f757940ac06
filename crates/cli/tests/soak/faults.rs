//! What is done to the sites, drawn from a seed: one or two of five at a time, so that a majority of regions is always whole.
//!
//! ```text
//!   breath ─▶ cut, slow, load, half-open connections ─▶ pause, kill, kill again and again, a wrong clock ─▶ … for a while …
//!      ▲                                                                                                         │
//!      └─────────────────────────── heal ◀── restart ◀── let paused sites go on ◀──────────────────────────────┘
//! ```

use crate::clock::WrongClock;
use crate::cluster::Cluster;
use crate::soak::Soak;
use rhumb_core::Rng;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Connections that are opened at each port and never say a whole request.
const HALF_OPEN: usize = 40;
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How long a site that is killed again and again lives each time.
const SHORT_LIFE: Duration = Duration::from_millis(700);
const SHORT_LIVES: usize = 3;
/// How long the demo may take to notice that a process has ended.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);
const BREATH: Duration = Duration::from_millis(50);

/// What is done to a region's site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// It is killed, and started again.
    Kill,
    /// It is killed again and again while it starts.
    CrashLoop,
    /// It stands still, as under a debugger.
    Pause,
    /// Nobody hears it, nor it anybody.
    Cut,
    /// It and one other do not hear each other.
    CutPair(usize),
    /// One other does not hear it.
    CutOneWay(usize),
    /// All its links are slower.
    Slow,
    /// It is busy with work for others.
    Load,
    /// Connections to its ports stand half-open.
    HalfOpen,
    /// It is killed, and meanwhile tries to start with a clock that is far off.
    WrongClock,
}

impl Harm {
    /// True if nothing is to be expected of the site meanwhile.
    fn disables(self) -> bool {
        matches!(self, Harm::Kill | Harm::CrashLoop | Harm::Pause | Harm::Cut | Harm::WrongClock)
    }

    /// True if its process ends by it.
    fn ends_process(self) -> bool {
        matches!(self, Harm::Kill | Harm::CrashLoop | Harm::WrongClock)
    }

    fn name(self) -> &'static str {
        match self {
            Harm::Kill => "kill",
            Harm::CrashLoop => "crash loop",
            Harm::Pause => "pause",
            Harm::Cut => "cut",
            Harm::CutPair(_) => "cut between two",
            Harm::CutOneWay(_) => "cut one way",
            Harm::Slow => "slow",
            Harm::Load => "load",
            Harm::HalfOpen => "half-open",
            Harm::WrongClock => "wrong clock",
        }
    }
}

/// A round of faults.
#[derive(Clone, Debug)]
pub struct Round {
    /// What is done to which regions; those that need sites to answer come first.
    harms: Vec<(usize, Harm)>,
    /// For how long.
    lasts: Duration,
    /// And how long the cluster is left alone before.
    breath: Duration,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let harms: Vec<String> = self.harms.iter().map(|(region, harm)| format!("{} region {region}", harm.name())).collect();
        write!(f, "{} for {:.1} s", harms.join(", "), self.lasts.as_secs_f64())
    }
}

impl Round {
    /// Draws one for a cluster of so many regions.
    pub fn draw(rng: &mut Rng, regions: usize) -> Round {
        let mut order: Vec<usize> = (0..regions).collect();
        rng.shuffle(&mut order);
        let others = order.split_off(if rng.chance(0.5) { 1 } else { 2 });
        let other = *rng.pick(&others).expect("most are left alone");
        let harm = |rng: &mut Rng| match rng.below(16) {
            0..=4 => Harm::Kill,
            5 => Harm::CrashLoop,
            6..=8 => Harm::Pause,
            9 | 10 => Harm::Cut,
            11 => Harm::CutPair(other),
            12 => Harm::CutOneWay(other),
            13 => Harm::Slow,
            14 => *rng.pick(&[Harm::Load, Harm::HalfOpen]).expect("two"),
            _ => Harm::WrongClock,
        };
        let mut harms: Vec<(usize, Harm)> = order.into_iter().map(|region| (region, harm(rng))).collect();
        harms.sort_by_key(|(_, harm)| (harm.disables() && *harm != Harm::Cut, *harm == Harm::Pause));
        // Most are short, some as long as a reboot.
        let longest = if rng.chance(0.2) { 40_000 } else { 12_000 };
        Round { harms, lasts: Duration::from_millis(rng.between(3_000, longest)), breath: Duration::from_millis(rng.between(1_000, 6_000)) }
    }

    /// Carries it out, all of it. Returns what was not as it must be.
    pub fn run(&self, cluster: &Cluster, soak: &Soak, clock: &WrongClock, until: Instant) {
        std::thread::sleep(self.breath.min(until.saturating_duration_since(Instant::now())));
        for (region, harm) in self.harms.iter().filter(|(_, harm)| harm.disables()) {
            let _: &Harm = harm;
            soak.harm(*region);
        }
        let mut held = Vec::new();
        for (region, harm) in &self.harms {
            held.extend(begin(cluster, *region, *harm));
        }
        let mut wrong = Vec::new();
        for (region, _) in self.harms.iter().filter(|(_, harm)| *harm == Harm::WrongClock) {
            wrong.extend(clock.start(cluster, *region).map(|site| (*region, site)));
        }
        std::thread::sleep(self.lasts);
        for (region, site) in wrong {
            if let Err(why) = site.end(cluster, region) {
                soak.found(format!("{}: {why}", cluster.name(region)));
            }
        }
        drop(held);
        self.undo(cluster);
        soak.heal();
    }

    fn undo(&self, cluster: &Cluster) {
        for (region, _) in self.harms.iter().filter(|(_, harm)| *harm == Harm::Pause) {
            cluster.signal(*region, Signal::CONT);
        }
        for (region, _) in self.harms.iter().filter(|(_, harm)| harm.ends_process()) {
            cluster.chaos(&["restart", cluster.name(*region)]);
        }
        cluster.chaos(&["heal"]);
    }

    /// How often each kind of fault was in these rounds.
    pub fn count(rounds: &[Round]) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        rounds.iter().flat_map(|round| &round.harms).for_each(|(_, harm)| *counts.entry(harm.name()).or_default() += 1);
        counts
    }
}

/// Begins to harm a region's site. Returns connections that are to be held.
fn begin(cluster: &Cluster, region: usize, harm: Harm) -> Vec<TcpStream> {
    let name = cluster.name(region);
    match harm {
        Harm::Kill | Harm::WrongClock => kill(cluster, region),
        Harm::CrashLoop => {
            for _ in 0..SHORT_LIVES {
                kill(cluster, region);
                cluster.begin_restart(region);
                std::thread::sleep(SHORT_LIFE);
            }
            kill(cluster, region);
        }
        Harm::Pause => cluster.signal(region, Signal::STOP),
        Harm::Cut => drop(cluster.chaos(&["cut", name])),
        Harm::CutPair(other) => drop(cluster.chaos(&["cut", name, cluster.name(other)])),
        Harm::CutOneWay(other) => drop(cluster.chaos(&["cut", name, cluster.name(other), "--one-way"])),
        Harm::Slow => drop(cluster.chaos(&["slow", name, "--by", "300ms"])),
        Harm::Load => drop(cluster.chaos(&["load", name, "--percent", "300", "--for", "20s"])),
        Harm::HalfOpen => return half_open(cluster, region),
    }
    Vec::new()
}

/// Kills a region's site and waits until the demo knows.
fn kill(cluster: &Cluster, region: usize) {
    cluster.signal(region, Signal::KILL);
    let begun = Instant::now();
    while cluster.runs(region) {
        assert!(begun.elapsed() < NOTICED_WITHIN, "the demo does not notice that {} was killed", cluster.name(region));
        std::thread::sleep(BREATH);
    }
}

/// Connects to all ports of a region's site, and says the beginning of something.
fn half_open(cluster: &Cluster, region: usize) -> Vec<TcpStream> {
    let ports = cluster.client_ports(region).into_iter().zip([&b"GET /metrics HT"[..], &[0, 0, 0], b"*3\r\n$7\r\nACQ"]);
    let open = |(port, beginning): (std::net::SocketAddr, &[u8])| {
        let mut stream = TcpStream::connect_timeout(&port, CONNECT_WITHIN).ok()?;
        // Who is turned away at once is no less half-open.
        let _ = stream.write_all(beginning);
        Some(stream)
    };
    ports.flat_map(|port| (0..HALF_OPEN).filter_map(move |_| open(port))).collect()
}
