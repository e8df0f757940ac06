//! throwaway
use rhumb_sim::catenae::Catenae;
use rhumb_sim::paxos_commit::PaxosCommit;
use rhumb_sim::quad::{CoresLost, Quad};
use rhumb_sim::replicated_commit::{Replicas, ReplicatedCommit};
use rhumb_sim::samya::Samya;
use rhumb_sim::{Scenario, all_cores, run_seeds, trace_seed};
fn go(s: &impl Scenario, from: u64, to: u64) {
    if to == from {
        let r = trace_seed(s, from);
        println!("{}", r.trace);
        println!("{r}");
        return;
    }
    let t = std::time::Instant::now();
    let reports = run_seeds(s, from..to, all_cores(), |_| {});
    let ev: u64 = reports.iter().map(|r| r.events).sum();
    let c: u64 = reports.iter().map(|r| r.committed).sum();
    let mut bad = 0;
    let mut probes = std::collections::BTreeMap::new();
    for r in &reports {
        for (k, v) in &r.probes {
            *probes.entry(*k).or_insert(0u64) += v;
        }
        if let Some(v) = &r.violation {
            bad += 1;
            println!("seed {}: {}", r.seed, v.chars().take(500).collect::<String>().replace('\n', " | "));
        }
    }
    println!(
        "{} {from}..{to}: {bad} violated, {c} committed, {ev} events, {:?}, clock {:?}",
        s.name(),
        t.elapsed(),
        probes.iter().filter(|(k, _)| k.starts_with("clock")).collect::<Vec<_>>()
    );
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (from, to) = (a[2].parse().unwrap(), a[3].parse().unwrap());
    match a[1].as_str() {
        "rc" => go(&ReplicatedCommit::default(), from, to),
        "placed" => go(&ReplicatedCommit::default().with_replicas(Replicas::Placed), from, to),
        "moving" => go(&ReplicatedCommit::default().with_replicas(Replicas::Moving), from, to),
        "catenae" => go(&Catenae::default(), from, to),
        "crossing" => go(&Catenae::default().with_crossing(), from, to),
        "namespaces" => go(&Catenae::default().with_namespaces(), from, to),
        "paxos" => go(&PaxosCommit::default(), from, to),
        "quad" => go(&Quad::default(), from, to),
        "lost" => go(&CoresLost::default(), from, to),
        "samya" => go(&Samya::default(), from, to),
        _ => panic!(),
    }
}
