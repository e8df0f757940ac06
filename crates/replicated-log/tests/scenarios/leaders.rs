//! Changes of leaders: what the next one knows, and how gateways find it.

use crate::support::messages::{is_elsewhere, is_of_group, is_prepared};
use crate::support::{Cluster, EAST, ELECTION, NORTH, R0, R1, R2};
use rhumb_commit::transaction::ReadMode;
use rhumb_core::actor::RequestId;
use rhumb_core::{Rules, SiteId, Span};
use rhumb_replicated_log::Config;
use rhumb_replicated_log::planted::Planted;

/// Nobody can be elected. Each replica says of each request that it does not lead, and nobody knows who does.
#[test]
fn while_nobody_leads_requests_go_round_a_few_times_and_wait() {
    let mut cluster = Cluster::leaderless(1, "", Config::default(), Rules::HOLD);
    cluster.hold(is_of_group);
    let reads: Vec<RequestId> = (0..8).map(|_| cluster.look(R1, ReadMode::Locking, "k")).collect();
    assert!(!cluster.deliver(1_000), "eight requests make no end of messages");
    cluster.let_go();
    cluster.advance(Span::from_millis(1_500));
    assert!(reads.into_iter().all(|id| !cluster.waits(id)), "somebody leads, and was found");
}

/// A replica that does not lead speaks of one transaction: those of the same gateway that wait for locks are not asked for again.
#[test]
fn a_redirection_is_for_one_transaction() {
    let mut cluster = Cluster::new(1, "");
    cluster.kill(R0);
    cluster.advance(ELECTION);
    cluster.hold(is_elsewhere);
    cluster.start(R0);
    cluster.advance(Span::from_millis(100));
    for _ in 0..20 {
        cluster.look(R2, ReadMode::Locking, "k");
    }
    cluster.settle();
    let redirections = cluster.under_way(is_elsewhere);
    assert!(redirections <= 20, "{redirections}");
    cluster.let_go();
    assert!(!cluster.deliver(10 * redirections + 100), "not all of them for each");
}

/// A transaction is prepared in two groups. The leader of the second one crashes before the first one hears of it; the next leader is asked to
/// write the same row.
fn prepared_as_the_leader_crashes(rules: Rules<Planted>) -> (Cluster, RequestId, RequestId) {
    let mut cluster = Cluster::with(2, "", Config::default(), rules);
    let (a, b) = (cluster.key(0, 0), cluster.key(1, 0));
    cluster.hold(is_prepared);
    let first = cluster.write(R2, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    cluster.kill(SiteId::new(0, 1));
    cluster.advance(Span::from_millis(3_200));
    let next = SiteId::new(1, 1);
    assert!(cluster.site(next).leads().is_some());
    let second = cluster.write(next, &[(&b, "2")]);
    cluster.settle();
    (cluster, first, second)
}

#[test]
fn what_is_prepared_keeps_its_locks_over_a_change_of_leader() {
    let (mut cluster, first, second) = prepared_as_the_leader_crashes(Rules::HOLD);
    assert!(cluster.waits(second));
    cluster.let_go();
    cluster.advance(Span::from_secs(2));
    assert!(cluster.committed(first).at < cluster.committed(second).at);
    let b = cluster.key(1, 0);
    cluster.assert_ended(1, &b, Some("2"));
}

#[test]
fn locks_of_what_is_prepared_that_are_not_restored_are_caught() {
    let (cluster, _, second) = prepared_as_the_leader_crashes(Rules::breaking(Planted::PreparedNotRestored));
    assert!(!cluster.waits(second));
}

/// A transaction has read a row under a lock of a leader that crashes, and another one writes the row before it commits.
fn locks_gone_with_their_leader(rules: Rules<Planted>) -> (Cluster, RequestId) {
    let mut cluster = Cluster::with(1, "", Config::default(), rules);
    let txn = cluster.begin(R2, ReadMode::Locking);
    let read = cluster.get(txn, ReadMode::Locking, &["k"]);
    cluster.settle();
    cluster.assert_value(read, None);
    cluster.kill(R0);
    cluster.advance(ELECTION);
    cluster.put(R1, &[("k", "other")]);
    let id = cluster.commit(txn, &[("k", "mine")]);
    cluster.advance(Span::from_millis(2_500));
    (cluster, id)
}

#[test]
fn nothing_commits_that_has_lost_its_locks_along_with_their_leader() {
    let (cluster, id) = locks_gone_with_their_leader(Rules::HOLD);
    cluster.assert_conflict(id);
    cluster.assert_ended(0, "k", Some("other"));
}

#[test]
fn locks_that_are_not_checked_are_caught() {
    let (cluster, id) = locks_gone_with_their_leader(Rules::breaking(Planted::LocksNotChecked));
    cluster.committed(id);
}

/// The leader of the first group crashes as it has decided, and before anybody was told.
#[test]
fn a_decision_is_told_by_the_next_leader() {
    let mut cluster = Cluster::new(2, "");
    let (a, b) = (cluster.key(0, 0), cluster.key(1, 0));
    cluster.hold(move |envelope| envelope.from == R0 && !is_of_group(envelope));
    let id = cluster.write(R2, &[(&a, "1"), (&b, "1")]);
    // Its followers hear that the decision is chosen.
    cluster.advance(Span::from_millis(500));
    cluster.kill(R0);
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.advance(ELECTION);
    cluster.advance(Span::from_secs(3));
    cluster.committed(id);
    cluster.assert_ended(0, &a, Some("1"));
    cluster.assert_ended(1, &b, Some("1"));
    assert_eq!([R1, R2].map(|site| cluster.table(site, "state.decided")), [0; 2]);
}

/// The leader is gone, and the only majority is the next one with a replica that lacks what is compacted away.
#[test]
fn a_leader_that_needs_a_replica_far_behind_brings_it_up_to_date_first() {
    let mut cluster = Cluster::configured(1, Config { log_entries_kept: 4, ..Config::default() });
    cluster.cut(EAST);
    cluster.advance(Span::from_secs(5));
    for _ in 0..12 {
        cluster.put(R0, &[("k", "1")]);
    }
    cluster.advance(Span::from_secs(1));
    cluster.kill(R0);
    cluster.heal();
    cluster.advance(Span::from_secs(5));
    assert!(cluster.site(R2).leads().is_some());
    cluster.put(R2, &[("k", "2")]);
    cluster.advance(Span::from_secs(1));
    cluster.assert_ended(0, "k", Some("2"));
}

/// Nothing passes between the leader's region and another one; both reach the third.
#[test]
fn a_leader_is_reached_by_a_detour_while_the_link_to_it_is_cut() {
    let mut cluster = Cluster::new(2, "");
    let (a, b) = (cluster.key(0, 0), cluster.key(1, 0));
    cluster.hold(|envelope| {
        [envelope.from.region, envelope.to.region].iter().all(|region| [NORTH, EAST].contains(region))
            && envelope.from.region != envelope.to.region
    });
    let id = cluster.write(R1, &[(&a, "1"), (&b, "1")]);
    cluster.advance(Span::from_secs(3));
    cluster.committed(id);
    let read = cluster.look(R1, ReadMode::Snapshot, &a);
    cluster.settle();
    cluster.assert_value(read, Some("1"));
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.put(R1, &[(&a, "2")]);
    cluster.hold(|envelope| envelope.from.region == R2.region);
    cluster.put(R1, &[(&a, "3")]);
}
