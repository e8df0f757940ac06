//! Where a site is the whole cluster its vote is the outcome: a commit goes to disk once, with its rows, and nobody hears of it before.

use crate::support::placements::change;
use crate::support::{Cluster, R0};
use rhumb_commit::transaction::ReadMode;
use rhumb_core::Span;
use rhumb_core::actor::RequestId;
use rhumb_replicated_commit::records::{LOG, PREPARED, VOTES};

/// Longer than a gateway waits for votes before it takes an attempt back, and not so long that it leaves the outcome open.
const IMPATIENT: Span = Span::from_secs(7);

fn alone() -> Cluster {
    Cluster::of_one_site("", |site| site)
}

/// A client writes k, which the disk does not take yet.
fn write_without_disk(cluster: &mut Cluster) -> RequestId {
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.stall_disk(R0);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    assert!(cluster.waits(commit), "nobody is told before it is on disk");
    commit
}

#[test]
fn the_only_site_of_a_cluster_writes_a_commit_once() {
    let mut cluster = Cluster::of_one_site(
        "A commit in a cluster of one site.
        Its vote is the outcome: the rows, their place in the log and the vote go to disk in one write, and nothing follows it.",
        |site| site,
    );
    cluster.narrate("a client reads k and writes it");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.get(txn, ReadMode::Optimistic, &["k"]);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    let at = cluster.committed(commit).at;
    assert_eq!(cluster.stored(R0, "k"), (at, Some("1".into())));
    assert_eq!([PREPARED, VOTES, LOG].map(|space| cluster.records(R0, space)), [0, 1, 1]);
    assert_eq!(cluster.prepared_and_in_doubt(R0), (0, 0));
    cluster.check("the_only_site_of_a_cluster_writes_a_commit_once");
}

#[test]
fn a_crash_leaves_all_of_a_commit_or_nothing() {
    for is_kept in [false, true] {
        let mut cluster = alone();
        write_without_disk(&mut cluster);
        cluster.kill_keeping(R0, if is_kept { usize::MAX } else { 0 });
        cluster.start(R0);
        cluster.free_disk(R0);
        cluster.settle();
        let value = is_kept.then(|| "1".to_owned());
        cluster.assert_ended(&[R0], &[("k", value.as_deref())]);
        // Its locks are free.
        cluster.advance(Span::from_secs(1));
        cluster.put(R0, &[("k", "2")]);
    }
}

#[test]
fn readers_wait_until_what_they_would_see_is_on_disk() {
    for mode in [ReadMode::Optimistic, ReadMode::Snapshot] {
        let mut cluster = alone();
        // Begun now, for that writes as well.
        let reader = cluster.begin(R0, mode);
        let commit = write_without_disk(&mut cluster);
        let read = cluster.get(reader, mode, &["k"]);
        cluster.settle();
        assert!(cluster.waits(read), "{mode:?}");
        cluster.free_disk(R0);
        cluster.settle();
        cluster.committed(commit);
        assert_eq!(cluster.values(read), [Some("1".into())], "{mode:?}");
    }
}

/// The disk is away for longer than a gateway waits, and the client is told of a commit in the end: what k was just below that.
fn withdraw_without_disk(mut cluster: Cluster) -> Option<String> {
    let commit = write_without_disk(&mut cluster);
    cluster.advance(IMPATIENT);
    cluster.free_disk(R0);
    cluster.advance(IMPATIENT);
    let at = cluster.committed(commit).at;
    assert_eq!(cluster.stored(R0, "k"), (at, Some("1".into())));
    cluster.stored_at(R0, "k", at.previous()).1
}

#[test]
fn what_is_on_its_way_to_disk_is_not_taken_back() {
    assert_eq!(withdraw_without_disk(alone()), None);
}

/// What adopts it is written when it is applied: a crash comes between.
#[test]
fn a_placement_whose_commit_is_on_disk_is_adopted_after_a_crash() {
    let mut cluster = alone();
    let first = cluster.placement_at(R0).0;
    cluster.stall_disk(R0);
    let (second, _) = cluster.change(R0, &first, change([R0.region], []));
    cluster.kill_keeping(R0, 1);
    cluster.start(R0);
    cluster.free_disk(R0);
    cluster.advance(IMPATIENT);
    assert_eq!((cluster.stored_placement(R0), cluster.placement_at(R0)), (second.clone(), (second.clone(), true)));
    let (third, id) = cluster.change(R0, &second, change([R0.region], []));
    cluster.advance(IMPATIENT);
    cluster.committed(id);
    assert_eq!(cluster.placement_at(R0), (third, true));
}

mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_replicated_commit::Site;
    use rhumb_replicated_commit::planted::Planted;

    #[test]
    fn a_commit_that_may_be_taken_back_is_caught() {
        let breaking = |site: Site| site.with_rules(Rules::breaking(Planted::CommittingTakenBack));
        let below = withdraw_without_disk(Cluster::of_one_site("", breaking));
        assert_eq!(below, Some("1".into()), "what was taken back is there as well");
    }
}
