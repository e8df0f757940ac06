//! Who watches while faults are on: that commits go on in the regions that are left alone, that no site exceeds a bound, and that exact
//! counts of quotas are right. Prints a line now and then.

use crate::bank::PROTOCOLS;
use crate::cluster::Cluster;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::quota;
use crate::soak::Soak;
use rhumb_core::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often it looks whether there are new commits.
const LOOKS_EVERY: Duration = Duration::from_millis(500);
/// How often it asks sites for their metrics, and prints a line.
const ASKS_EVERY: Duration = Duration::from_secs(10);
/// Clients of a protocol in the regions that are left alone never wait longer for a commit of any of them. Far above what protocols take
/// to go round a lost site, since the machine may be busy.
const STALL_MAX: Duration = Duration::from_secs(60);

/// What was seen of one protocol.
#[derive(Clone, Debug)]
struct Progress {
    /// Of each client, with its region.
    commits: Vec<(usize, u64)>,
    last: Instant,
    longest: Duration,
}

/// Who watches.
pub struct Watch<'a> {
    pub cluster: &'a Cluster,
    pub soak: &'a Soak,
    pub journals: &'a [Arc<Journal>],
    pub quotas: &'a [Arc<quota::Journal>],
    /// Rounds of faults so far.
    pub rounds: &'a AtomicUsize,
    pub rng: Rng,
    pub begun: Instant,
}

impl Watch<'_> {
    /// Watches until the soak is over. Returns the longest time without a commit of each protocol.
    pub fn run(mut self) -> Vec<(&'static str, Duration)> {
        let mut progress =
            vec![Progress { commits: vec![(0, 0); self.cluster.len()], last: Instant::now(), longest: Duration::ZERO }; PROTOCOLS.len()];
        let mut asked = Instant::now();
        let mut before = self.all_commits();
        while !self.soak.is_over() {
            std::thread::sleep(LOOKS_EVERY);
            self.look(&mut progress);
            if asked.elapsed() >= ASKS_EVERY {
                let now = self.all_commits();
                self.ask(&before, &now, asked.elapsed());
                (asked, before) = (Instant::now(), now);
            }
        }
        PROTOCOLS.into_iter().zip(progress).map(|(protocol, progress)| (protocol, progress.longest)).collect()
    }

    fn look(&self, progress: &mut [Progress]) {
        let harmed = self.soak.harmed();
        for (protocol, progress) in PROTOCOLS.into_iter().zip(progress) {
            let own = self.journals.iter().filter(|journal| journal.protocol == protocol);
            let commits: Vec<(usize, u64)> = own.map(|journal| (journal.region, journal.seen().committed)).collect();
            let mut both = commits.iter().zip(&progress.commits);
            let grew = both.any(|((region, now), (_, before))| !harmed.contains(region) && now > before);
            let waited = progress.last.elapsed();
            progress.commits = commits;
            if grew {
                (progress.longest, progress.last) = (waited.max(progress.longest), Instant::now());
            } else if waited > STALL_MAX && progress.longest <= STALL_MAX {
                progress.longest = waited;
                self.soak
                    .found(format!("no commit of {protocol} for {waited:.0?} in the regions that are left alone; not so are {harmed:?}"));
            }
        }
    }

    /// Commits of each protocol, and operations on quotas.
    fn all_commits(&self) -> Vec<u64> {
        let of =
            |protocol| self.journals.iter().filter(|journal| journal.protocol == protocol).map(|journal| journal.seen().committed).sum();
        let quotas = self.quotas.iter().map(|journal| journal.done.load(Ordering::Relaxed)).sum();
        PROTOCOLS.into_iter().map(of).chain([quotas]).collect()
    }

    /// Asks the sites that are left alone how they are.
    fn ask(&mut self, before: &[u64], now: &[u64], span: Duration) {
        let harmed = self.soak.harmed();
        let (mut memory, mut folder) = ((0.0, ""), (0.0, ""));
        for region in (0..self.cluster.len()).filter(|region| !harmed.contains(region)) {
            // It may have been harmed in this moment.
            let Ok(metrics) = Metrics::read(self.cluster, region) else { continue };
            metrics.above_bounds().into_iter().for_each(|above| self.soak.found(above));
            let name = self.cluster.name(region);
            let larger = |worst: (f64, _), value: f64| if value > worst.0 { (value, name) } else { worst };
            memory = larger(memory, metrics.sum("rhumb_resident_memory_bytes"));
            folder = larger(folder, metrics.sum("rhumb_store_files_bytes"));
        }
        let region = self.rng.below(self.cluster.len() as u64) as usize;
        let quota = &self.quotas[self.rng.below(self.quotas.len() as u64) as usize];
        if let Some(Err(wrong)) = (!harmed.contains(&region)).then(|| quota::count(self.cluster, region, quota.name)).flatten() {
            self.soak.found(wrong);
        }
        let rates = PROTOCOLS.into_iter().chain(["quotas"]).zip(now.iter().zip(before));
        let rates: Vec<String> =
            rates.map(|(name, (now, before))| format!("{name} {:.1}", (now - before) as f64 / span.as_secs_f64())).collect();
        let mebibytes = |(bytes, name): (f64, &str)| format!("{:.0} MiB ({name})", bytes / f64::from(1 << 20));
        println!(
            "{:5.0} s · commits/s: {} · rounds of faults {} · most memory {}, largest folder {}",
            self.begun.elapsed().as_secs_f64(),
            rates.join(", "),
            self.rounds.load(Ordering::Relaxed),
            mebibytes(memory),
            mebibytes(folder),
        );
    }
}
