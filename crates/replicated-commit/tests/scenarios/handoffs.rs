//! Handoffs: a gateway has another region run its commits, as the placement says. Each is run once, whatever the network doubles or holds back and
//! whoever restarts.

use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2};
use rhumb_commit::placement::{Coordinators, Placement};
use rhumb_commit::transaction::{CommitOptions, Committed, ReadMode, TxnError};
use rhumb_core::{Body, Span};
use rhumb_replicated_commit::Note;
use std::collections::BTreeMap;

/// The gateway of r2 hands its commits to r0.
fn west_by_north() -> Placement {
    let coordinators = BTreeMap::from([(WEST, Coordinators { read: EAST, commit: NORTH })]);
    Placement { coordinators, ..Placement::first(change([NORTH, EAST], [])).expect("a placement that can be") }
}

#[test]
fn a_commit_is_handed_to_the_region_that_the_placement_names() {
    let mut cluster = Cluster::placed(
        west_by_north(),
        "Handoff.
        The gateway of r2 has r0 run its commit, which r0 does as for a client of its own, and hands the result back.",
    );
    cluster.narrate("a client of r2 writes k");
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    let Committed { at, trips } = cluster.committed(commit);
    assert_eq!(trips, 2, "one to r0 and back, one from there to a majority");
    assert_eq!(cluster.stored(R1, "k"), (at, Some("1".into())));
    cluster.check("a_commit_is_handed_to_the_region_that_the_placement_names");
}

#[test]
fn who_does_not_want_to_hand_over_commits_from_where_it_is() {
    let mut cluster = Cluster::placed(west_by_north(), "");
    cluster.options = CommitOptions { handoff: false, ..CommitOptions::default() };
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    assert_eq!(cluster.committed(commit).trips, 1);
}

#[test]
fn a_handoff_that_arrives_twice_is_run_once() {
    let mut cluster = Cluster::placed(
        west_by_north(),
        "A Handoff held back by the network.
        The gateway of r2 says it again; both arrive. The commit is run once: the write of another client in between stays.",
    );
    cluster.narrate("a client of r2 writes k, and hears nothing");
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Handoff(_))));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.advance(Span::from_millis(1_500));
    assert!(cluster.waits(commit));
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::HandedBack { .. })));
    cluster.narrate("both copies arrive at last");
    cluster.settle();
    let between = cluster.put(R1, &[("k", "2")]);
    cluster.let_go();
    cluster.settle();
    assert!(cluster.committed(commit).at < between.at);
    assert_eq!(cluster.stored(R0, "k"), (between.at, Some("2".into())));
    cluster.check("a_handoff_that_arrives_twice_is_run_once");
}

#[test]
fn a_handoff_meant_for_an_earlier_incarnation_is_not_run() {
    let mut cluster = Cluster::placed(
        west_by_north(),
        "A Handoff that arrives after a crash.
        The new incarnation of r0 cannot know whether the one before has taken it already, and says so.",
    );
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Handoff(_))));
    cluster.narrate("a client of r2 writes k; r0 dies before it hears of it, and restarts");
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.put(R0, &[("x", "1")]);
    cluster.kill(R0);
    cluster.start(R0);
    cluster.let_go();
    cluster.settle();
    assert!(matches!(cluster.failed(commit), TxnError::Unknown(_)));
    assert_eq!(cluster.stored(R1, "k").1, None);
    cluster.check("a_handoff_meant_for_an_earlier_incarnation_is_not_run");
}

/// The gateway of r2 hands its commit to r0, twice, as the answer is late; then it restarts. Its clock stood above the bound on its disk, as r1's is
/// ahead: so the new incarnation says of itself that it may still await the end of a commit as old as that. r0 runs the second copy, over what
/// another client has written since.
///
/// 1. r1, whose clock is 4.9 s ahead, commits; r2 hears of it. Its bound on disk is 3 s ahead at the most.
/// 2. client of r2: commit k = 1. Handoff H (made above the bound) to r0, which commits it. HandedBack is late, H is said again and held up;
///    HandedBack arrives, the client is told.
/// 3. r2 pings: it awaits nothing as old as H. r0 forgets H.
/// 4. client of r0: commit k = 2, acknowledged.
/// 5. r2 crashes and restarts: its clock begins at the bound, below H, and so does what its pings say.
/// 6. The second copy of H arrives at r0, which does not know it any more: k = 1 is committed again.
fn handed_over_twice(cluster: &mut Cluster) -> [Option<String>; 2] {
    let is_handoff = |envelope: &Envelope| matches!(envelope.body, Body::Note(Note::Handoff(_)));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    cluster.set_ahead(R1, Span::from_millis(4_900));
    cluster.put(R1, &[("x", "1")]);
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::HandedBack { .. })));
    let id = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.hold(move |envelope| is_handoff(envelope) || matches!(envelope.body, Body::Note(Note::HandedBack { .. })));
    cluster.advance(Span::from_millis(1_100));
    assert_eq!(cluster.under_way(is_handoff), 1, "it was said again");
    cluster.hold(is_handoff);
    cluster.settle();
    cluster.committed(id);
    cluster.advance(Span::from_millis(1_100));
    cluster.put(R0, &[("k", "2")]);
    cluster.kill(R2);
    cluster.start(R2);
    cluster.settle();
    cluster.let_go();
    cluster.advance(Span::from_secs(1));
    let kept = cluster.stored(R0, "k").1;
    // The clock of the new incarnation is behind; what it hands over is run all the same.
    let next = cluster.put(R2, &[("m", "3")]);
    assert_eq!(next.trips, 2, "it is handed over");
    [kept, cluster.stored(R0, "m").1]
}

#[test]
fn a_handoff_of_an_earlier_incarnation_is_not_run_again() {
    let [k, m] = handed_over_twice(&mut Cluster::placed(west_by_north(), ""));
    assert_eq!(k, Some("2".into()), "it was committed after k = 1, and acknowledged");
    assert_eq!(m, Some("3".into()), "the new incarnation hands over as well");
}

mod planted {
    use super::*;
    use rhumb_core::Rules;
    use rhumb_replicated_commit::Site;
    use rhumb_replicated_commit::planted::Planted;

    #[test]
    fn a_handoff_of_an_earlier_incarnation_that_is_run_again_is_caught() {
        let make = |site: Site| site.with_rules(Rules::breaking(Planted::EarlierHandoffTaken));
        let [k, _] = handed_over_twice(&mut Cluster::placed_with_sites(west_by_north(), "", make));
        assert_eq!(k, Some("1".into()), "what came after it is overwritten");
    }
}
