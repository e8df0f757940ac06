//! A commit of two shards, one half of which a region has taken over from the log of another one that is then lost: what the survivors agree
//! on holds for both halves.

use crate::resolutions::{LONG, keys_of_two_shards};
use crate::support::messages::{is_of_log, stops};
use crate::support::placements::{EAST, NORTH, WEST, change};
use crate::support::{Cluster, Envelope, R0, R1, R2};
use rhumb_commit::placement::{Change, Placement};
use rhumb_commit::transaction::ReadMode;
use rhumb_core::{Body, SiteId, Span};
use rhumb_replicated_commit::{Note, Promise};

/// The second site of r1.
const SECOND: SiteId = SiteId::new(1, 1);

fn is_bound(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Bound { .. }))
}

fn leaves_region(envelope: &Envelope) -> bool {
    envelope.from.region != envelope.to.region
}

/// r1 is prepared for an earlier attempt that nobody else has heard of, and refuses one of both shards, which r0 and r2 commit; r0 does not learn
/// so. The first site of r1 hears no log.
fn committed_beside_a_rival() -> Cluster {
    let (a, b) = keys_of_two_shards();
    let mut cluster = Cluster::new(2, "");
    let rival = cluster.begin(R1, ReadMode::Optimistic);
    cluster.hold(|envelope| envelope.from.region == EAST && leaves_region(envelope));
    cluster.commit(rival, &[(&a, "1")]);
    cluster.settle();
    cluster.kill(R1);
    cluster.lose(|_| true);
    cluster.start(R1);
    let knows = |envelope: &Envelope| leaves_region(envelope) && matches!(envelope.body, Body::Note(Note::Decided { .. }));
    let of_rival =
        |envelope: &Envelope| envelope.from == R1 && leaves_region(envelope) && matches!(envelope.body, Body::Note(Note::AskVote { .. }));
    let heard_of = |envelope: &Envelope| envelope.to.region == NORTH && is_of_log(envelope) || envelope.to == R1 && is_of_log(envelope);
    cluster.hold(move |envelope| knows(envelope) || of_rival(envelope) || heard_of(envelope));
    cluster.advance(Span::from_secs(1));
    let txn = cluster.begin(R2, ReadMode::Optimistic);
    let id = cluster.commit(txn, &[(&a, "2"), (&b, "2")]);
    cluster.settle();
    cluster.committed(id);
    cluster
}

/// r2 is lost, and declared so.
fn declare_west(cluster: &mut Cluster) {
    cluster.lose(|envelope| leaves_region(envelope) && !(envelope.to == SECOND && is_of_log(envelope)));
    [R2, SiteId::new(2, 1)].into_iter().for_each(|site| cluster.kill(site));
    let lost = Change { lost: WEST.into(), ..change([NORTH, EAST], []) };
    let (_, id) = cluster.change(R0, &Placement::everywhere(3), lost);
    cluster.settle();
    cluster.advance(Span::from_secs(1));
    cluster.committed(id);
}

/// What each region has of either half.
fn halves(cluster: &Cluster) -> [(bool, bool); 2] {
    let (a, b) = keys_of_two_shards();
    let has = |site, key: &str| cluster.stored(site, key).1 == Some("2".into());
    [(has(R0, &a), has(SiteId::new(0, 1), &b)), (has(R1, &a), has(SECOND, &b))]
}

/// The second site of r1 has taken its half over when the survivors agree: so they agree on a commit, also where it was long ago.
#[test]
fn a_half_that_was_taken_over_decides_for_the_other_one() {
    for waits in [Span::from_secs(3), Span::from_secs(300)] {
        let mut cluster = committed_beside_a_rival();
        cluster.advance(waits);
        assert_eq!(halves(&cluster), [(false, false), (false, true)]);
        cluster.kill(SECOND);
        cluster.start(SECOND);
        declare_west(&mut cluster);
        cluster.let_go();
        cluster.advance(LONG);
        assert_eq!(halves(&cluster), [(true, true); 2], "after {waits}");
        for site in [R0, SiteId::new(0, 1), R1, SECOND] {
            assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0), "{site}");
        }
    }
}

/// The second site of r1 has not, and does not carry it yet, when r1 takes part in the round. Then messages of r2 arrive of which `is_late` says so
/// that they were under way to it.
fn agree_while_a_log_is_under_way(is_late: fn(&Envelope) -> bool) -> Cluster {
    let mut cluster = committed_beside_a_rival();
    assert_eq!(halves(&cluster), [(false, false); 2]);
    let is_of_before =
        |envelope: &Envelope| leaves_region(envelope) && matches!(envelope.body, Body::Note(Note::Decided { .. } | Note::AskVote { .. }));
    let stops_late = |envelope: &Envelope| envelope.to == SECOND && stops(envelope);
    let comes_late = move |envelope: &Envelope| envelope.to == SECOND && envelope.from.region == WEST && is_late(envelope);
    cluster.hold(move |envelope| {
        is_of_before(envelope) || comes_late(envelope) || envelope.to.region != WEST && envelope.to != SECOND && is_of_log(envelope)
    });
    cluster.advance(Span::from_secs(1));
    cluster.hold(move |envelope| comes_late(envelope) || stops_late(envelope) || is_bound(envelope));
    declare_west(&mut cluster);
    cluster.advance(Span::from_secs(1));
    assert_ne!(cluster.under_way(is_bound), 0, "its coordinator has asked it");
    assert_ne!(cluster.under_way(comes_late), 0, "a log is under way to it");
    let tells = |envelope: &Envelope| envelope.from == SECOND && matches!(envelope.body, Body::Note(Note::Decided { .. }));
    cluster.hold(move |envelope| stops_late(envelope) || is_bound(envelope) || tells(envelope));
    cluster.settle();
    assert_eq!(halves(&cluster), [(false, false); 2]);
    cluster.let_go();
    cluster.advance(LONG);
    for site in [R0, SiteId::new(0, 1), R1, SECOND] {
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0), "{site}");
    }
    cluster
}

/// From then on it takes no half over. Where it hears that a log has it, it says so, and both are committed.
#[test]
fn no_half_is_taken_over_while_survivors_agree() {
    assert_eq!(halves(&agree_while_a_log_is_under_way(is_of_log)), [(true, true); 2]);
    let is_entry = |envelope: &Envelope| matches!(envelope.body, Body::Promise(Promise::Entries { .. }));
    assert_eq!(halves(&agree_while_a_log_is_under_way(is_entry)), [(false, false); 2], "an earlier attempt was in its way");
}
