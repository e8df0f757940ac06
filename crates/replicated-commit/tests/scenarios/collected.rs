//! Deletions and old versions that are collected, and what was read before that.

use crate::resolutions::{LONG, keys_of_two_shards};
use crate::support::messages::{is_accept, is_of_log, stops};
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, R0, R1, R2};
use crate::survivors::{crash_in_the_midst, declare_lost, lose_region};
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::Rules;
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, SiteId, Span, Timestamp, TxnId};
use rhumb_replicated_commit::planted::Planted;
use rhumb_replicated_commit::{Answer, Request};

/// Longer than the versions of a row are kept that are superseded.
pub const COLLECTED: Span = Span::from_secs(640);

/// Deletes k at `site` in a transaction of its own.
pub fn delete(cluster: &mut Cluster, site: SiteId) -> RequestId {
    let txn = cluster.begin(site, ReadMode::Optimistic);
    let (writes, options) = (vec![(Key::from("k"), None)], cluster.options);
    let id = cluster.request(site, Request::Commit { txn, writes, expect: Vec::new(), options });
    cluster.settle();
    cluster.committed(id);
    id
}

/// How the commit ended.
fn ended(cluster: &Cluster, id: RequestId) -> Result<(), TxnError> {
    match cluster.answer(id) {
        Some(Answer::Committed(_)) => Ok(()),
        Some(Answer::Failed(error)) => Err(error.clone()),
        other => panic!("it has not ended: {other:?}"),
    }
}

/// Begins a transaction that reads k = 1.
pub fn read_k(cluster: &mut Cluster, site: SiteId, mode: ReadMode) -> TxnId {
    let txn = cluster.begin(site, mode);
    let read = cluster.get(txn, mode, &["k"]);
    cluster.settle();
    assert_eq!(cluster.values(read), [Some("1".into())]);
    txn
}

/// A client of r0 reads k and stays. Another one deletes k; ten minutes later the deletion is collected everywhere. The first client commits
/// what it has made of k: no region has anything newer than the version that it read, as none has any version.
///
/// 1. client of r0: begin T, get k = 1 (version v1).
/// 2. client of r1: delete k, committed at v2, acknowledged.
/// 3. 640 s pass: all replicas are safe beyond v2, and drop the deletion with v1.
/// 4. client of r0: commit T, k = 2. The votes compare v1 with zero, the version of an absent row, take the region for one that lags, and are yes.
fn written_after_it_was_deleted(mut cluster: Cluster) -> Result<(), TxnError> {
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(5));
    let txn = read_k(&mut cluster, R0, ReadMode::Optimistic);
    delete(&mut cluster, R1);
    cluster.advance(COLLECTED);
    let id = cluster.commit(txn, &[("k", "2")]);
    cluster.settle();
    ended(&cluster, id)
}

#[test]
fn what_was_read_before_a_deletion_is_refused_once_that_is_collected() {
    assert!(matches!(written_after_it_was_deleted(Cluster::new(1, "")), Err(TxnError::Conflict(_))));
}

/// The same with a range: the row is missing where it was found.
fn ranged_after_a_deletion(mut cluster: Cluster) -> Result<(), TxnError> {
    cluster.put(R0, &[("k", "1"), ("l", "1")]);
    cluster.advance(Span::from_secs(5));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let read = cluster.scan(txn, ReadMode::Optimistic, "a", "z");
    cluster.settle();
    assert_eq!(cluster.values(read).len(), 2);
    delete(&mut cluster, R1);
    cluster.advance(COLLECTED);
    let id = cluster.commit(txn, &[("m", "2")]);
    cluster.settle();
    ended(&cluster, id)
}

#[test]
fn a_range_read_before_a_deletion_is_refused_once_that_is_collected() {
    assert!(matches!(ranged_after_a_deletion(Cluster::new(1, "")), Err(TxnError::Conflict(_))));
}

#[test]
fn deletions_that_are_forgotten_are_caught() {
    let forgetful = || Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::DeletionsForgotten)));
    assert_eq!(written_after_it_was_deleted(forgetful()), Ok(()), "it commits what it has made of a row that is deleted");
    assert_eq!(ranged_after_a_deletion(forgetful()), Ok(()), "it commits what it has made of rows of which one is deleted");
}

/// Who has read that a row is deleted may commit once the deletion is collected: the row is as absent as before.
#[test]
fn a_deletion_that_was_read_and_is_collected_is_no_change() {
    let mut cluster = Cluster::new(1, "");
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(5));
    delete(&mut cluster, R1);
    cluster.advance(Span::from_secs(1));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let read = cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    assert_eq!(cluster.values(read), [None]);
    cluster.advance(COLLECTED);
    let id = cluster.commit(txn, &[("k", "2")]);
    cluster.settle();
    cluster.committed(id);
}

/// The same with locks: the regions forget in a restart that theirs were taken over.
#[test]
fn what_was_locked_before_a_deletion_is_refused_once_that_is_collected() {
    let mut cluster = Cluster::new(1, "");
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(5));
    let txn = read_k(&mut cluster, R0, ReadMode::Locking);
    delete(&mut cluster, R1);
    cluster.advance(COLLECTED);
    for site in [R1, R2] {
        cluster.kill(site);
        cluster.start(site);
        cluster.advance(Span::from_secs(5));
    }
    let id = cluster.commit(txn, &[("k", "2")]);
    cluster.settle();
    assert!(matches!(cluster.failed(id), TxnError::Conflict(_)));
}

/// A gateway of SQL keeps the descriptors of tables for as long as it runs, and has each commit expect the version that it knows. A table is dropped
/// elsewhere, that is, the row of its descriptor is deleted; ten minutes later a client of the first gateway inserts into it, and is told that this
/// committed. No transaction was open for longer than a moment.
///
/// 1. The descriptor k is written at v1, and known to r0.
/// 2. client of r1: delete k (`DROP TABLE`), acknowledged. 640 s pass, the deletion is collected.
/// 3. client of r0: commit row = 1 that expects k at v1 (`INSERT`). All regions vote yes.
#[test]
fn what_is_expected_of_a_deleted_row_is_refused_once_the_deletion_is_collected() {
    let mut cluster = Cluster::new(1, "");
    let known = cluster.put(R0, &[("k", "descriptor")]).at;
    cluster.advance(Span::from_secs(5));
    delete(&mut cluster, R1);
    cluster.advance(COLLECTED);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let (writes, expect) = (vec![("row".into(), Some("1".into()))], vec![("k".into(), known)]);
    let options = cluster.options;
    let id = cluster.request(R0, Request::Commit { txn, writes, expect, options });
    cluster.settle();
    assert!(matches!(cluster.failed(id), TxnError::Conflict(_)));
}

/// A snapshot is as old as the oldest versions that are kept. Its read looks at the newest version of k, which lies above it; before it looks for
/// the one at its timestamp, that is collected.
///
/// 1. k = 1; client of r0: begin a snapshot at t, get another row, so that it moves no more; k = 2 a moment later.
/// 2. 600 s pass but for a moment. The snapshot reads k: each replica finds t within what is kept, and loads the newest version.
/// 3. A tick: versions superseded at t + 0.2 s are collected, k = 1 with them.
/// 4. The newest version is loaded: it lies above t, so the replica loads the one at t. There is none, and it answers that k was never written.
fn read_while_it_is_collected(mut cluster: Cluster) -> Answer {
    cluster.put(R0, &[("k", "1")]);
    // Sites collect at every twentieth tick: after 9.5 s, and each ten seconds from then on.
    cluster.advance(Span::from_millis(8_800));
    let txn = cluster.begin(R0, ReadMode::Snapshot);
    cluster.get(txn, ReadMode::Snapshot, &["x"]);
    cluster.advance(Span::from_millis(50));
    cluster.put(R0, &[("k", "2")]);
    cluster.advance(Span::from_millis(599_900));
    [R0, R1, R2].into_iter().for_each(|site| cluster.hold_loads(site));
    let read = cluster.get(txn, ReadMode::Snapshot, &["k"]);
    cluster.advance(Span::from_millis(400));
    [R0, R1, R2].into_iter().for_each(|site| cluster.answer_loads(site));
    cluster.settle();
    cluster.answer(read).cloned().expect("it is answered")
}

#[test]
fn what_is_collected_while_it_is_read_is_not_told_as_never_written() {
    let answer = read_while_it_is_collected(Cluster::new(1, ""));
    assert!(matches!(answer, Answer::Failed(TxnError::OutOfRange(_))), "{answer:?}");
}

#[test]
fn what_was_collected_unseen_is_caught() {
    let answer = read_while_it_is_collected(Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::CollectedUnseen))));
    let Answer::Rows { rows, .. } = answer else { panic!("rows are told: {answer:?}") };
    assert!(rows.iter().all(|row| row.value.is_none()), "a row is told to have never been written that had a value");
}

/// r0 has collected the deletion of k, and r2 has not: it sees in it a version that r0's clients have not read, and that it cannot collect as long as
/// r1 is down. The attempt says up to where r0 had collected deletions: so r2 knows that it was one.
///
/// 1. k is deleted; ten minutes pass. r0 collects at its twentieth tick; r2, which began at another time, five seconds later.
/// 2. In between r1 dies, and r2 restarts: it has forgotten up to when r1 was safe, and does not hear it any more.
/// 3. client of r0: get k, or scan around it, optimistic: there is nothing. Commit m = 1.
#[test]
fn a_deletion_that_was_collected_where_it_was_read_does_not_refuse_elsewhere() {
    let mut cluster = Cluster::new(1, "");
    cluster.put(R0, &[("k", "1")]);
    cluster.advance(Span::from_secs(5));
    cluster.kill(R2);
    cluster.start(R2);
    delete(&mut cluster, R1);
    // Sites collect 9.5 s after they began, and each ten seconds from then on: r0 at 9.5, r2 at 14.5.
    cluster.advance(Span::from_millis(606_000));
    let version = |cluster: &Cluster, site| cluster.stored(site, "k").0;
    assert_eq!(version(&cluster, R0), Timestamp::ZERO, "r0 has collected it");
    assert_ne!(version(&cluster, R2), Timestamp::ZERO, "r2 has not");
    cluster.kill(R1);
    cluster.kill(R2);
    cluster.start(R2);
    cluster.advance(Span::from_secs(120));
    for is_scan in [false, true] {
        let txn = cluster.begin(R0, ReadMode::Optimistic);
        match is_scan {
            true => cluster.scan(txn, ReadMode::Optimistic, "k", "l"),
            false => cluster.get(txn, ReadMode::Optimistic, &["k"]),
        };
        cluster.settle();
        let id = cluster.commit(txn, &[("m", "1")]);
        cluster.advance(Span::from_secs(3));
        assert!(matches!(cluster.answer(id), Some(Answer::Committed(_))), "{:?}", cluster.answer(id));
    }
}

/// r0 is prepared for an attempt that had read k before r1 and r2 wrote it. r1 has refused it when r0 asked, restarts, and k is written again; r2 is
/// lost so much later that r1 would have collected what the attempt had missed.
#[test]
fn who_has_refused_keeps_what_was_missed_over_a_restart() {
    let all = Placement::everywhere(3);
    let mut cluster = Cluster::new(1, "");
    cluster.put(R0, &[("k", "1")]);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.get(txn, ReadMode::Optimistic, &["k"]);
    cluster.settle();
    cluster.hold(|envelope| envelope.to == R0);
    cluster.put(R2, &[("k", "2")]);
    cluster.advance(Span::from_millis(10));
    crash_in_the_midst(&mut cluster, 1, txn, &[("m", "3")]);
    cluster.kill(R2);
    cluster.hold(|envelope| is_of_log(envelope) && envelope.to == R0);
    cluster.advance(Span::from_secs(10));
    cluster.cut(NORTH);
    cluster.kill(R1);
    cluster.lose(|_| true);
    cluster.start(R1);
    cluster.start(R2);
    cluster.advance(Span::from_secs(5));
    cluster.put(R1, &[("k", "3")]);
    cluster.advance(COLLECTED);
    lose_region(&mut cluster, WEST, 1);
    cluster.heal();
    cluster.hold(|envelope| is_of_log(envelope) && envelope.to == R0 || stops(envelope));
    cluster.advance(Span::from_secs(5));
    declare_lost(&mut cluster, R1, &all, WEST.into(), change([NORTH, EAST], []));
    cluster.let_go();
    cluster.advance(LONG);
    cluster.assert_ended(&[R0, R1], &[("k", Some("3")), ("m", None)]);
}

/// Both sites of r1 are prepared for an attempt of r0, whose first site is dead; r2 has not heard of it. The second site of r0 promises to commit nothing
/// so old any more before it is lost, too. Ten minutes later the attempt commits for the vote that r0 may have had.
#[test]
fn what_may_yet_be_committed_is_not_below_collected_deletions() {
    let (a, b) = keys_of_two_shards();
    let second = |region: u16| SiteId::new(region, 1);
    let mut cluster = Cluster::new(2, "");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.hold(|envelope| envelope.from == R0 && !(is_accept(envelope) && envelope.to == R1));
    cluster.commit(txn, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    cluster.kill(R0);
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.advance(Span::from_secs(10));
    assert_eq!([R1, second(1)].map(|site| cluster.prepared_and_in_doubt(site).0), [1, 1]);
    cluster.kill(second(0));
    cluster.lose(|envelope| envelope.from.region == NORTH || envelope.to.region == NORTH);
    cluster.advance(COLLECTED);
    declare_lost(&mut cluster, R1, &Placement::everywhere(3), NORTH.into(), change([EAST, WEST], []));
    cluster.advance(LONG);
    cluster.assert_ended(&[R1, R2], &[(&a, Some("1"))]);
    cluster.assert_ended(&[second(1), second(2)], &[(&b, Some("1"))]);
}
