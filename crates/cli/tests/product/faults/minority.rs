//! A minority of the regions dies: what that costs the others.

use super::cluster::Cluster;
use super::replicas;
use crate::load::Running;
use rhumb_display::Table;
use std::time::{Duration, Instant};

/// How long commits are watched before and after the kill.
const WATCHED: Duration = Duration::from_secs(12);
/// Above every round trip and every hiccup of a busy machine; far below any election or lease.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Kills them, expects commits to go on in the other regions, and has them return.
pub async fn dies(cluster: &Cluster, load: &Running, fates: &[usize]) {
    tokio::time::sleep(WATCHED).await;
    let dead = cluster.fated(fates);
    let killed = cluster.kill(&dead);
    tokio::time::sleep(WATCHED).await;
    let alive = cluster.others(&dead);
    let survivors: Vec<Survivor> = alive.iter().map(|&region| Survivor::of(cluster, load, region, &dead, killed)).collect();
    println!("\nkill -9 of {}: {} s before and after it\n{}", cluster.names(&dead), WATCHED.as_secs(), table(cluster, &survivors));
    expect_commits(cluster, &survivors);
    replicas::nothing_stays_locked(cluster, &alive).await;
    replicas::nothing_is_hidden(cluster, &alive).await;
    cluster.restart(&dead);
    replicas::recovered(cluster).await;
}

/// What a region saw of the death of others.
struct Survivor {
    region: usize,
    /// The round trip to the nearest majority.
    rtt: BeforeAfter<Duration>,
    /// Raises acknowledged to the probe.
    raises: BeforeAfter<usize>,
    /// The longest time in which none was.
    gap: BeforeAfter<Duration>,
    /// TPC-C transactions committed.
    transactions: BeforeAfter<usize>,
}

#[derive(Clone, Copy)]
struct BeforeAfter<T> {
    before: T,
    after: T,
}

impl Survivor {
    fn of(cluster: &Cluster, load: &Running, region: usize, dead: &[usize], killed: Instant) -> Survivor {
        let probe = &cluster.probes()[region];
        let (from, to) = (killed - WATCHED, killed + WATCHED);
        // The raise under way at the kill is the one that must not wait: its gap began with the answer before.
        let last = probe.acknowledged_from(from).iter().map(|raise| raise.ended).rfind(|ended| *ended <= killed).unwrap_or(from);
        let (before, after) = (probe.between(from, killed), probe.between(last, to));
        Survivor {
            region,
            rtt: BeforeAfter { before: cluster.majority_rtt(region, &[]), after: cluster.majority_rtt(region, dead) },
            raises: BeforeAfter { before: before.0, after: after.0 },
            gap: BeforeAfter { before: before.1, after: after.1 },
            transactions: BeforeAfter { before: load.committed(region, from, killed), after: load.committed(region, killed, to) },
        }
    }
}

fn expect_commits(cluster: &Cluster, survivors: &[Survivor]) {
    for survivor in survivors {
        let name = cluster.name(survivor.region);
        assert!(survivor.gap.after < PAUSE_MAX, "{name} paused for {:?}", survivor.gap.after);
        let possible = WATCHED.as_secs_f64() / survivor.rtt.after.as_secs_f64();
        assert!(survivor.raises.after as f64 > possible / 4.0, "{name} crawls: {} raises of {possible:.0}", survivor.raises.after);
    }
    let before: usize = survivors.iter().map(|survivor| survivor.transactions.before).sum();
    let after: usize = survivors.iter().map(|survivor| survivor.transactions.after).sum();
    assert!(after * 4 > before, "TPC-C stalls: {after} transactions after {before}");
}

fn table(cluster: &Cluster, survivors: &[Survivor]) -> Table {
    let mut table = Table::new("gateway")
        .group("majority RTT ms", &["before", "after"])
        .group("longest gap ms", &["before", "after"])
        .group("longer by ms", &["RTT", "gap"])
        .group("probe commits", &["before", "after"])
        .group("TPC-C commits", &["before", "after"]);
    let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
    for survivor in survivors {
        let Survivor { region, rtt, raises, gap, transactions } = survivor;
        let mut cells = vec![cluster.name(*region).to_owned()];
        cells.extend([rtt, gap].into_iter().flat_map(|time| [time.before, time.after]).map(|time| format!("{:.0}", millis(time))));
        cells.extend([rtt, gap].map(|time| format!("{:+.0}", millis(time.after) - millis(time.before))));
        cells.extend([raises, transactions].into_iter().flat_map(|count| [count.before, count.after]).map(|count| count.to_string()));
        table.row(cells);
    }
    table
}
