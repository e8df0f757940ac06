//! Transactions that were open for longer than a gateway remembers how others ended, and commits without a majority of every shard.

use crate::resolutions::{LONG, keys_of_two_shards};
use crate::support::messages::{is_accept, is_of, tells_outcome};
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, R0, R1, R2, R3, R4};
use crate::survivors::{declare_lost, lose_region};
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{SiteId, Span};

/// r3, which has no copy, commits at the votes of r1 and r2 in a transaction that was open for that long; nobody hears of it but its client. r2 dies,
/// and r0 has not heard of the attempt.
fn committed_unheard(open_for: Span) -> Cluster {
    let mut cluster = Cluster::of_regions(4, Placement::first(change([NORTH, EAST, WEST], [])).expect("three active regions"));
    let txn = cluster.begin(R3, ReadMode::Optimistic);
    cluster.advance(open_for);
    cluster.hold(|envelope| envelope.to == R0 && is_accept(envelope) || tells_outcome(envelope));
    let id = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.committed(id);
    cluster.kill(R2);
    cluster.lose(|_| true);
    cluster.let_go();
    cluster.advance(LONG);
    cluster
}

/// What a gateway has concluded it remembers for a minute since its transaction began, not since it concluded: of a transaction that was open for
/// longer it knows nothing at its next tick.
///
/// 1. client of r3: begin T; 90 s pass (or one, and all is well); commit k = 1. r1 and r2 vote yes, the client is told. Decided is lost.
/// 2. r3 ticks, and forgets the outcome, as T began more than a minute ago.
/// 3. r2 is out. r1, in doubt, asks r3, which is up: Over. r0 refuses, as it has never heard of it. One yes, one no: r1 waits for r2.
#[test]
fn a_gateway_remembers_what_it_concluded_of_an_old_transaction() {
    for open_for in [1, 90] {
        let mut cluster = committed_unheard(Span::from_secs(open_for));
        for site in [R0, R1] {
            let ended = (cluster.stored(site, "k").1, cluster.prepared_and_in_doubt(site));
            assert_eq!(ended, (Some("1".into()), (0, 0)), "{site}: open for {open_for} s");
        }
    }
}

/// The same, with a rival that r0 is prepared for, and r2 is declared lost: the survivors, r3 among them, agree that the acknowledged commit aborted.
///
/// 1. client of r4: begin Y. client of r3: begin T. 90 s pass (or one, and all is well).
/// 2. Y: commit k = 2; only r0 hears of it, and is prepared. r4 crashes, and restarts.
/// 3. T: commit k = 1; r0 refuses (locked), r1 and r2 vote yes; the client is told. Decided is lost, r3 forgets, r2 dies.
/// 4. r2 is declared lost. Y is the earlier one: r0 contests T, and nobody says that it committed. Y commits.
#[test]
fn a_commit_that_its_gateway_told_is_not_undone_by_a_rival() {
    for open_for in [1, 90] {
        let placement = Placement::first(change([NORTH, EAST, WEST], [])).expect("three active regions");
        let mut cluster = Cluster::of_regions(5, placement.clone());
        let rival = cluster.begin(R4, ReadMode::Optimistic);
        cluster.advance(Span::from_millis(10));
        let txn = cluster.begin(R3, ReadMode::Optimistic);
        cluster.advance(Span::from_secs(open_for));
        cluster.hold(|envelope| is_of(envelope, R4) && envelope.to != R0 || tells_outcome(envelope));
        cluster.commit(rival, &[("k", "2")]);
        cluster.settle();
        assert_eq!(cluster.prepared_and_in_doubt(R0).0, 1);
        cluster.kill(R4);
        let id = cluster.commit(txn, &[("k", "1")]);
        cluster.settle();
        let at = cluster.committed(id).at;
        lose_region(&mut cluster, WEST, 1);
        cluster.lose(|_| true);
        cluster.let_go();
        cluster.start(R4);
        cluster.advance(LONG);
        declare_lost(&mut cluster, R1, &placement, WEST.into(), change([NORTH, EAST], []));
        cluster.advance(LONG + LONG);
        for site in [R0, R1] {
            assert_eq!(
                cluster.stored(site, "k"),
                (at, Some("1".into())),
                "{site}: open for {open_for} s; its gateway, which is up, had told so"
            );
        }
    }
}

/// A transaction touches the first shard only, which has a majority. Of the second one, whose sites have to say how high they have prepared, there is
/// none: the client hears after eight seconds that the outcome is unknown, though all regions have voted, and could hear at once that no majority is
/// in reach.
#[test]
fn a_commit_without_a_majority_of_every_shard_is_refused_at_once() {
    let (a, _) = keys_of_two_shards();
    let mut cluster = Cluster::new(2, "");
    [1, 2].into_iter().for_each(|region| cluster.kill(SiteId::new(region, 1)));
    cluster.advance(Span::from_secs(5));
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[(&a, "1")]);
    cluster.advance(LONG);
    assert!(matches!(cluster.failed(id), TxnError::Unavailable(_)), "{}", cluster.failed(id));
}
