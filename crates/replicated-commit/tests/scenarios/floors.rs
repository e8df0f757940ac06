//! Floors: a snapshot that sees a commit sees what ended before that commit began, whatever the clocks say and wherever
//! messages were held up.

use crate::resolutions::LONG;
use crate::support::messages::{inquires, is_about, is_accept, is_of_log, is_vote, tells_outcome};
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2, R3};
use crate::survivors::{declare_lost, lose_region};
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{Body, Key, RegionId, SiteId, Span, Topology};
use rhumb_replicated_commit::{Answer, Note};

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

/// Survivors agree that an attempt committed. They testify how high they had prepared: the floor of the commit lies above what ended before it.
///
/// 1. client of r1: begin a snapshot S at t + 1 s, get a: unwritten.
/// 2. client of r2: T1 commits a = 1 at t + 2 s, by the votes of r1 and r2, acknowledged. r0 does not hear of it.
/// 3. client of r3: T2 begins and commits b = 1 at t, by the votes of r0 and r2; r2 says that it had prepared t + 2 s. Acknowledged; Decided is lost.
///    r3 crashes and restarts, r2 is lost and declared so.
/// 4. r0 asks r1 for its vote, which says t + 2 s, and is lost, or is not. r0 leads a round; r1 testifies that it refused, and t + 2 s. They agree that
///    T2 committed, with a floor of t + 2 s.
/// 5. S gets b, and is refused: it would see T2, which began after T1 had ended, and not T1.
#[test]
fn a_commit_that_survivors_agree_on_has_a_floor_above_what_ended_before_it() {
    for is_vote_lost in [false, true] {
        let placement = Placement::first(change([NORTH, EAST, WEST], [])).expect("three active regions");
        let mut cluster = Cluster::of_regions(4, placement.clone());
        cluster.set_ahead(R1, Span::from_secs(1));
        cluster.set_ahead(R2, Span::from_secs(2));
        let snapshot = cluster.begin(R1, ReadMode::Snapshot);
        let read = cluster.get(snapshot, ReadMode::Snapshot, &["a"]);
        cluster.settle();
        assert_eq!(cluster.values(read), [None]);
        cluster.hold(|envelope| {
            let is_heard = matches!(envelope.body, Body::Note(Note::Heard { .. }));
            is_heard || envelope.to == R0 && (is_accept(envelope) || tells_outcome(envelope) || is_of_log(envelope))
        });
        let first = cluster.put(R2, &[("a", "1")]);
        cluster.lose(|envelope| !is_of_log(envelope));
        let second = cluster.begin(R3, ReadMode::Optimistic);
        cluster.hold(|envelope| envelope.to == R1 && is_accept(envelope) || tells_outcome(envelope));
        let id = cluster.commit(second, &[("b", "1")]);
        cluster.settle();
        assert!(cluster.committed(id).at < snapshot.began && snapshot.began < first.at);
        cluster.kill(R3);
        cluster.lose(|_| true);
        lose_region(&mut cluster, WEST, 1);
        cluster.start(R3);
        cluster.hold(move |envelope| {
            let to_first = envelope.to == R0 && (is_of_log(envelope) || is_vote_lost && is_vote(envelope) && is_about(envelope, second));
            to_first || envelope.from == R1 && inquires(envelope)
        });
        cluster.advance(Span::from_secs(3));
        declare_lost(&mut cluster, R1, &placement, WEST.into(), change([NORTH, EAST], []));
        cluster.advance(LONG + LONG);
        cluster.let_go();
        cluster.advance(LONG);
        cluster.assert_ended(&[R0, R1], &[("a", Some("1")), ("b", Some("1"))]);
        let read = cluster.get(snapshot, ReadMode::Snapshot, &["b"]);
        cluster.advance(Span::from_secs(2));
        let is_refused = matches!(cluster.answer(read), Some(Answer::Failed(TxnError::Conflict(_))));
        assert!(is_refused, "the vote of r1 was lost: {is_vote_lost}; {:?}", cluster.answer(read));
    }
}

/// Replicas keep the floors of 16,384 commits one by one, and of earlier ones the highest of each second of timestamps: so what was written long before a
/// snapshot does not end it in a conflict, however much is committed after.
///
/// 1. b is written. client of r0: begin a snapshot, get a: it moves no more.
/// 2. r3, whose clock is behind that of r1, commits 16,500 times, so that each commit has a floor above its timestamp.
/// 3. The snapshot gets b, which nobody has written since.
#[test]
fn a_snapshot_outlives_any_number_of_commits_of_other_rows() {
    for commits in [10_000, 16_500] {
        let placement = Placement::first(change([NORTH, EAST, WEST], [])).expect("three active regions");
        let mut cluster = Cluster::of_regions(4, placement);
        cluster.put(R0, &[("b", "1")]);
        cluster.advance(Span::from_secs(1));
        let snapshot = cluster.begin(R0, ReadMode::Snapshot);
        cluster.get(snapshot, ReadMode::Snapshot, &["a"]);
        cluster.settle();
        cluster.set_ahead(R1, Span::from_millis(500));
        cluster.hold(|envelope| envelope.to == R3 && matches!(envelope.body, Body::Note(Note::Heard { .. })));
        for n in 0..commits {
            if n % 50 == 0 {
                cluster.advance(Span::from_millis(20));
                cluster.put(R1, &[("z", "1")]);
                cluster.lose(|envelope| matches!(envelope.body, Body::Note(Note::Heard { .. })));
            }
            cluster.put(R3, &[("k", "1")]);
        }
        let read = cluster.get(snapshot, ReadMode::Snapshot, &["b"]);
        cluster.settle();
        let is_told = matches!(cluster.answer(read), Some(Answer::Rows { .. }));
        assert!(is_told, "after {commits} commits of other rows: {:?}", cluster.answer(read));
    }
}

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
