//! Throwaway: seeds SCENARIO FROM TO [probes]
use rhumb_sim::catenae::Catenae;
use rhumb_sim::paxos_commit::PaxosCommit;
use rhumb_sim::quad::{CoresLost, Quad};
use rhumb_sim::replicated_commit::{Replicas, ReplicatedCommit};
use rhumb_sim::samya::Samya;
use rhumb_sim::{Scenario, run_seeds, trace_seed};
fn go(s: &impl Scenario, from: u64, to: u64, probes: bool) {
    if from == to {
        let r = trace_seed(s, from);
        println!("{}{r}", r.trace);
        return;
    }
    let t = std::time::Instant::now();
    let reports = run_seeds(s, from..to, 2, |_| {});
    let bad: Vec<_> = reports.iter().filter(|r| r.violation.is_some()).collect();
    for r in bad.iter().take(12) {
        println!(
            "{} {}",
            r.seed,
            r.violation.as_ref().unwrap().lines().take(4).collect::<Vec<_>>().join(" | ").chars().take(400).collect::<String>()
        );
    }
    if probes {
        let mut all = std::collections::BTreeMap::new();
        for (p, n) in reports.iter().flat_map(|r| &r.probes) {
            *all.entry(*p).or_insert(0u64) += n;
        }
        for (p, n) in all {
            println!("{n:>12} {p}");
        }
    }
    println!(
        "{} {from}..{to}: {} bad {:?}; committed {} aborted {} unknown {} events {} in {:?}",
        s.name(),
        bad.len(),
        bad.iter().map(|r| r.seed).collect::<Vec<_>>(),
        reports.iter().map(|r| r.committed).sum::<u64>(),
        reports.iter().map(|r| r.aborted).sum::<u64>(),
        reports.iter().map(|r| r.unknown).sum::<u64>(),
        reports.iter().map(|r| r.events).sum::<u64>(),
        t.elapsed()
    );
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (f, t) = (a[2].parse().unwrap(), a[3].parse().unwrap());
    let p = a.len() > 4;
    let rc = |r| ReplicatedCommit::default().with_replicas(r);
    match a[1].as_str() {
        "rc" => go(&rc(Replicas::Everywhere), f, t, p),
        "placed" => go(&rc(Replicas::Placed), f, t, p),
        "moving" => go(&rc(Replicas::Moving), f, t, p),
        "catenae" => go(&Catenae::default(), f, t, p),
        "crossing" => go(&Catenae::default().with_crossing(), f, t, p),
        "namespaces" => go(&Catenae::default().with_namespaces(), f, t, p),
        "paxos" => go(&PaxosCommit::default(), f, t, p),
        "quad" => go(&Quad::default(), f, t, p),
        "lost" => go(&CoresLost::default(), f, t, p),
        "samya" => go(&Samya::default(), f, t, p),
        other => panic!("{other}"),
    }
}
