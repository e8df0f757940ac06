//! Snapshots: what leaders show, which may be deposed without knowing it, and what followers show.

use crate::support::messages::is_of_group;
use crate::support::{Cluster, EAST, ELECTION, NORTH, R0, R1, R2};
use rhumb_commit::interactive::Request;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, Rules, SiteId, Span, Timestamp};
use rhumb_replicated_log::Config;
use rhumb_replicated_log::planted::Planted;

/// A clock that is so far ahead of others; these may issue timestamps up to there without a write.
const AHEAD: Span = Span::from_secs(6);

#[test]
fn a_lease_spares_a_snapshot_its_round() {
    let mut cluster = Cluster::new(1, "");
    cluster.put(R0, &[("k", "1")]);
    cluster.hold(is_of_group);
    let id = cluster.look(R0, ReadMode::Snapshot, "k");
    cluster.settle();
    cluster.assert_value(id, Some("1"));
}

/// The leader is cut off for longer than its lease, the next one commits, and the first one is asked for a snapshot, at a timestamp up to which it
/// need not agree with anybody: its clock is ahead of its gateway's.
fn asked_of_a_deposed_leader(rules: Rules<Planted>) -> (Cluster, RequestId) {
    let mut cluster = Cluster::with(2, "", Config::default(), rules);
    cluster.set_ahead(R0, AHEAD);
    cluster.advance(Span::from_secs(1));
    let key = cluster.key(0, 0);
    cluster.put(R0, &[(&key, "1")]);
    cluster.cut(NORTH);
    cluster.advance(ELECTION);
    assert!([R0, R1].iter().all(|site| cluster.site(*site).leads().is_some()), "r0 knows nothing of it");
    cluster.put(R1, &[(&key, "2")]);
    let id = cluster.look(SiteId::new(0, 1), ReadMode::Snapshot, &key);
    cluster.settle();
    (cluster, id)
}

#[test]
fn a_deposed_leader_shows_no_old_rows() {
    let (mut cluster, id) = asked_of_a_deposed_leader(Rules::HOLD);
    assert!(cluster.waits(id));
    cluster.heal();
    cluster.advance(Span::from_secs(3));
    cluster.assert_value(id, Some("2"));
}

#[test]
fn a_lease_without_an_end_is_caught() {
    let (cluster, id) = asked_of_a_deposed_leader(Rules::breaking(Planted::LeaseEndless));
    cluster.assert_value(id, Some("1"));
}

/// A leader shows a snapshot at a timestamp far ahead, that of a gateway whose clock is; the next leader commits. Returns both timestamps.
fn committed_after_a_snapshot_ahead(rules: Rules<Planted>) -> (Timestamp, Timestamp) {
    let mut cluster = Cluster::with(1, "", Config::default(), rules);
    cluster.put(R0, &[("k", "1")]);
    cluster.set_ahead(R2, AHEAD);
    let id = cluster.look(R2, ReadMode::Snapshot, "k");
    cluster.settle();
    let (values, shown) = cluster.values(id);
    assert_eq!(values, [Some("1".to_owned())]);
    cluster.kill(R0);
    cluster.advance(ELECTION);
    (shown, cluster.put(R1, &[("k", "2")]).at)
}

#[test]
fn the_next_leader_commits_above_what_the_one_before_has_shown() {
    let (shown, committed) = committed_after_a_snapshot_ahead(Rules::HOLD);
    assert!(shown < committed, "{shown}, {committed}");
}

#[test]
fn a_ceiling_that_is_forgotten_is_caught() {
    let (shown, committed) = committed_after_a_snapshot_ahead(Rules::breaking(Planted::CeilingForgotten));
    assert!(committed < shown, "{committed}, {shown}");
}

#[test]
fn a_follower_shows_what_is_closed_without_its_leader() {
    let mut cluster = Cluster::new(1, "");
    let first = cluster.put(R0, &[("k", "1")]).at;
    cluster.put(R0, &[("k", "2")]);
    cluster.advance(Span::from_secs(2));
    cluster.hold(|_| true);
    let id = cluster.look(R2, ReadMode::Stale(first), "k");
    cluster.settle();
    cluster.assert_value(id, Some("1"));
}

/// r1 is brought up to date by pages of the state, whose rows are ahead of the clocks of others; then it leads.
fn led_by_one_that_was_brought_up_to_date() -> (Cluster, Timestamp) {
    let mut cluster = Cluster::configured(1, Config { log_entries_kept: 4, ..Config::default() });
    cluster.set_ahead(R0, AHEAD);
    cluster.cut(EAST);
    cluster.advance(Span::from_secs(5));
    cluster.put(R0, &[("m", "before k")]);
    let old = cluster.put(R0, &[("k", "old")]).at;
    for _ in 0..12 {
        cluster.put(R0, &[("k", "new")]);
    }
    cluster.heal();
    cluster.advance(Span::from_secs(1));
    assert_eq!(cluster.stored(R1, "k").1.as_deref(), Some("new"));
    cluster.kill(R0);
    cluster.advance(ELECTION);
    assert!(cluster.site(R1).leads().is_some());
    (cluster, old)
}

/// It has no versions from before: of the newest rows a snapshot is shown even so, by a gateway whose clock is behind them.
#[test]
fn a_snapshot_is_had_of_a_leader_that_has_new_versions_only() {
    let (mut cluster, _) = led_by_one_that_was_brought_up_to_date();
    for (key, value) in [("m", "before k"), ("k", "new")] {
        let id = cluster.look(R2, ReadMode::Snapshot, key);
        cluster.advance(Span::from_millis(1_500));
        cluster.assert_value(id, Some(value));
    }
}

#[test]
fn versions_from_before_are_not_made_up() {
    let (mut cluster, old) = led_by_one_that_was_brought_up_to_date();
    let id = cluster.look(R1, ReadMode::Stale(old), "k");
    cluster.advance(Span::from_millis(1_500));
    assert!(matches!(cluster.failed(id), TxnError::OutOfRange(_)));
}

#[test]
fn a_transaction_reads_under_locks_or_a_snapshot() {
    let mut cluster = Cluster::new(1, "");
    for (first, second) in [(ReadMode::Locking, ReadMode::Snapshot), (ReadMode::Snapshot, ReadMode::Locking)] {
        let txn = cluster.begin(R2, first);
        cluster.get(txn, first, &["k"]);
        cluster.settle();
        let id = cluster.get(txn, second, &["m"]);
        assert!(matches!(cluster.failed(id), TxnError::Invalid(_)), "{first:?}, then {second:?}");
    }
}

/// A client depends on a row that it has read before, such as the description of a table.
#[test]
fn a_snapshot_is_that_of_the_rows_that_it_depends_on() {
    let mut cluster = Cluster::new(2, "");
    let (rows, described) = (cluster.key(0, 0), cluster.key(1, 0));
    let first = cluster.put(R0, &[(&described, "1")]).at;
    let depend = |cluster: &mut Cluster, version| {
        let txn = cluster.begin(R2, ReadMode::Snapshot);
        let (keys, expect) = (vec![Key::from(rows.as_str())], vec![(Key::from(described.as_str()), version)]);
        let id = cluster.request(R2, Request::Get { txn, mode: ReadMode::Snapshot, keys, expect });
        cluster.settle();
        id
    };
    let id = depend(&mut cluster, first);
    cluster.assert_value(id, None);
    let second = cluster.put(R0, &[(&described, "2")]).at;
    let id = depend(&mut cluster, first);
    cluster.assert_conflict(id);
    let id = depend(&mut cluster, second);
    cluster.assert_value(id, None);
}
