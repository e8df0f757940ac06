//! Floors: a snapshot that sees a commit sees what ended before that commit began, whatever the clocks say and wherever
//! messages were held up.

use crate::support::{Cluster, Envelope, R0, R1, R2};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{Body, Key, RegionId, SiteId, Span, Topology};
use rhumb_replicated_commit::Note;

fn is_read(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Read(_)))
}

fn between(envelope: &Envelope, from: SiteId, to: RegionId) -> bool {
    (envelope.from.region, envelope.to.region) == (from.region, to)
}

/// A key in each of the first two shards, or two in the only one.
fn two_keys(shards: u16) -> (String, String) {
    let topology = Topology::new(vec!["north".into(), "east".into(), "west".into()], shards);
    let in_shard = |shard: u16, skip: usize| {
        let names = (0..).map(|n| format!("k{n}"));
        names.filter(|name| topology.shard_of(&Key::from(name.as_str())) == shard).nth(skip).expect("a key in each shard")
    };
    (in_shard(0, 0), if shards == 1 { in_shard(0, 1) } else { in_shard(1, 0) })
}

/// The clocks of r0 and r2 are ahead. r2 begins a snapshot, and reads x and y at its own replica; its messages to r1 are held up. Then x is
/// written by r0, where r1 does not hear of it, and after that has ended, y by r1, at an earlier timestamp. `meanwhile` happens before r1
/// answers the read. Its values.
fn read_both(cluster: &mut Cluster, shards: u16, meanwhile: impl Fn(&mut Cluster)) -> Vec<Option<String>> {
    let (x, y) = two_keys(shards);
    cluster.set_ahead(R0, Span::from_millis(200));
    cluster.set_ahead(R2, Span::from_millis(100));
    let reader = cluster.begin(R2, ReadMode::Snapshot);
    let read = cluster.get(reader, ReadMode::Snapshot, &[&x, &y]);
    cluster.lose(|envelope| is_read(envelope) && envelope.to.region == R0.region);
    cluster.hold(|envelope| is_read(envelope) || between(envelope, R0, R1.region));
    cluster.settle();
    let first = cluster.put(R0, &[(&x, "1")]);
    cluster.lose(|envelope| between(envelope, R0, R1.region));
    cluster.hold(|envelope| is_read(envelope) || between(envelope, R1, R2.region));
    let second = cluster.put(R1, &[(&y, "2")]);
    assert!(second.at < reader.began && reader.began < first.at, "the later commit has the earlier timestamp");
    meanwhile(cluster);
    cluster.let_go();
    cluster.advance(Span::from_secs(3));
    cluster.values(read)
}

const BOTH: [Option<&str>; 2] = [Some("1"), Some("2")];

fn texts(values: &[Option<String>]) -> Vec<Option<&str>> {
    values.iter().map(Option::as_deref).collect()
}

#[test]
fn a_snapshot_that_sees_a_commit_sees_what_ended_before_it() {
    let mut cluster = Cluster::new(1, "");
    assert_eq!(texts(&read_both(&mut cluster, 1, |_| {})), BOTH);
}

#[test]
fn so_it_does_across_shards() {
    let mut cluster = Cluster::new(2, "");
    assert_eq!(texts(&read_both(&mut cluster, 2, |_| {})), BOTH);
}

#[test]
fn a_snapshot_that_has_shown_rows_cannot_reach_further() {
    let mut cluster = Cluster::new(1, "");
    let (x, y) = two_keys(1);
    cluster.set_ahead(R0, Span::from_millis(200));
    cluster.set_ahead(R2, Span::from_millis(100));
    let reader = cluster.begin(R2, ReadMode::Snapshot);
    let shown = cluster.get(reader, ReadMode::Snapshot, &[&x]);
    // The clock of r1 must not learn the time of r2.
    cluster.lose(|envelope| is_read(envelope) && envelope.to.region == R1.region);
    cluster.settle();
    assert_eq!(cluster.values(shown), [None]);
    cluster.hold(|envelope| between(envelope, R0, R1.region));
    cluster.put(R0, &[(&x, "1")]);
    cluster.lose(|envelope| between(envelope, R0, R1.region));
    let late = cluster.begin(R1, ReadMode::Optimistic);
    let commit = cluster.commit(late, &[(&y, "2")]);
    cluster.hold(|envelope| between(envelope, R0, R1.region));
    cluster.settle();
    let at = cluster.committed(commit).at;
    assert!(at < reader.began);
    let read = cluster.get(reader, ReadMode::Snapshot, &[&y]);
    cluster.settle();
    assert!(matches!(cluster.failed(read), TxnError::Conflict(_)), "y without x is an order that nobody can have seen");
}

#[test]
fn a_floor_outlives_a_crash() {
    for shards in [1, 2] {
        let mut cluster = Cluster::new(shards, "");
        let values = read_both(&mut cluster, shards, |cluster| {
            for site in (0..shards).map(|shard| SiteId { shard, ..R1 }) {
                cluster.kill(site);
                cluster.start(site);
            }
        });
        assert_eq!(texts(&values), BOTH);
    }
}

#[cfg(feature = "planted")]
mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_replicated_commit::planted::Planted;

    #[test]
    fn floors_that_nobody_heeds_are_caught() {
        for shards in [1, 2] {
            let mut cluster = Cluster::with_sites(shards, "", |site| site.with_rules(Rules::breaking(Planted::FloorsIgnored)));
            assert_eq!(texts(&read_both(&mut cluster, shards, |_| {})), [None, Some("2")]);
        }
    }
}
