//! Commits whose gateway crashes, or which wait for locks.

use crate::support::messages::{is_decided, is_prepared, prepares};
use crate::support::{Cluster, R0, R2};
use rhumb_core::{SiteId, Span};

#[test]
fn a_commit_of_two_groups_is_decided_by_the_first() {
    let mut cluster = Cluster::new(2, "");
    let (a, b) = (cluster.key(0, 0), cluster.key(1, 0));
    let committed = cluster.put(R2, &[(&a, "1"), (&b, "1")]);
    cluster.advance(Span::from_secs(1));
    for (shard, key) in [(0, &a), (1, &b)] {
        cluster.assert_ended(shard, key, Some("1"));
        assert_eq!(cluster.stored(SiteId::new(1, shard), key).0, committed.at);
    }
    assert_eq!(cluster.tables(0, "state.decided"), [0; 3]);
}

#[test]
fn a_transaction_whose_gateway_crashes_is_ended() {
    let mut cluster = Cluster::new(2, "");
    let (a, b) = (cluster.key(0, 0), cluster.key(1, 0));
    cluster.hold(|envelope| prepares(envelope) && envelope.to.shard == 0);
    cluster.write(R2, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    assert_eq!(cluster.site(SiteId::new(0, 1)).in_doubt(), 1, "the second group has prepared it, and the first one knows nothing");
    cluster.kill(R2);
    cluster.lose(prepares);
    cluster.let_go();
    cluster.advance(Span::from_secs(7));
    cluster.assert_ended(1, &b, None);
    cluster.put(SiteId::new(0, 1), &[(&b, "2")]);
    cluster.put(R0, &[(&a, "2")]);
}

/// What holds the lock is in doubt for long. However often the gateway of the second one asks for its commit, it is told that there is none before
/// it would have to tell its client that it does not know.
#[test]
fn a_commit_that_waits_for_locks_for_too_long_is_aborted() {
    let mut cluster = Cluster::new(2, "");
    let (a, b) = (cluster.key(0, 0), cluster.key(1, 0));
    cluster.hold(|envelope| is_prepared(envelope) || is_decided(envelope));
    cluster.write(R2, &[(&a, "1"), (&b, "1")]);
    cluster.settle();
    let id = cluster.write(SiteId::new(0, 1), &[(&b, "2")]);
    cluster.advance(Span::from_secs(3));
    assert!(cluster.waits(id));
    cluster.advance(Span::from_secs(2));
    cluster.assert_conflict(id);
}
