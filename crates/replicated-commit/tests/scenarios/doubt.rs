//! In doubt: regions that have voted yes and lost their gateway work the outcome out by themselves; a gateway whose votes
//! do not decide takes them back; what anybody was told stands.

use crate::support::messages::{is_accept, is_of, is_vote};
use crate::support::{Cluster, R0, R1, R2};
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::{Body, RegionId, SiteId, Span, Timestamp};
use rhumb_replicated_commit::Note;

/// Long enough for a region in doubt to ask.
const PATIENCE: Span = Span::from_millis(2_500);
/// Long enough for a gateway that was refused nowhere to take its attempt back all the same, before it gives up.
const STUBBORNNESS: Span = Span::from_millis(6_500);
/// How often a site looks after what is overdue.
const TICK: Span = Span::from_millis(500);
/// Long enough for a region that is out to be counted on no more.
const SUSPICION: Span = Span::from_millis(3_500);

#[test]
fn regions_in_doubt_commit_after_their_gateway_died() {
    let mut cluster = Cluster::new(
        1,
        "A gateway dies with its Accepts out and all votes lost.
        The two regions left voted yes, know of no other vote, and ask each other. Two votes of three decide: they commit
        what no client was told of.",
    );
    cluster.narrate("a client of r0 writes k; all regions vote yes, and every vote is lost along with r0");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.hold(is_vote);
    cluster.settle();
    cluster.kill(R0);
    cluster.lose(is_vote);
    cluster.let_go();
    assert!(cluster.waits(commit));
    assert_eq!(cluster.stored(R1, "k").1, None);
    cluster.narrate("r1 and r2 ask");
    cluster.advance(PATIENCE);
    assert_eq!(cluster.stored(R1, "k").1, Some("1".into()));
    assert_eq!(cluster.stored(R2, "k").1, Some("1".into()));
    cluster.narrate("r0 starts again and asks about what it had promised itself");
    cluster.start(R0);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.stored(R0, "k").1, Some("1".into()));
    cluster.check("regions_in_doubt_commit_after_their_gateway_died");
}

#[test]
fn a_region_that_never_heard_votes_no() {
    let mut cluster = Cluster::new(
        1,
        "A gateway dies when its Accept has reached only one other region, its own vote not yet on disk.
        Asked, the region that never heard votes no, durably. That is a split: the missing vote decides, and r1 waits for it
        with its lock held. r0, back without a memory of the attempt, votes no as well. The Accept that turns up at
        last changes nothing.",
    );
    cluster.narrate("a client of r0 writes k; the disk of r0 stalls, the Accept to r2 is delayed, and r0 dies");
    cluster.stall_disk(R0);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.commit(txn, &[("k", "1")]);
    cluster.hold(|envelope| envelope.to == R2 && is_of(envelope, R0));
    cluster.settle();
    cluster.kill(R0);
    cluster.lose(|envelope| is_vote(envelope) && is_of(envelope, R0));
    cluster.hold(|envelope| is_accept(envelope) && is_of(envelope, R0));
    cluster.narrate("r1 asks");
    cluster.advance(PATIENCE);
    cluster.narrate("one yes and one no: r1 keeps its lock, goes on asking, and tells its operator");
    cluster.advance(PATIENCE);
    assert_eq!(cluster.prepared_and_in_doubt(R1), (1, 1));
    cluster.narrate("r0 starts again, and is asked");
    cluster.start(R0);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.prepared_and_in_doubt(R1), (0, 0));
    cluster.narrate("the delayed Accept arrives");
    cluster.let_go();
    cluster.settle();
    cluster.narrate("the row is free");
    assert_eq!(cluster.put(R2, &[("k", "3")]).trips, 1);
    assert_eq!(cluster.stored(R1, "k").1, Some("3".into()));
    cluster.check("a_region_that_never_heard_votes_no");
}

#[test]
fn a_crash_in_the_middle_of_an_abort_leaves_no_lock_behind() {
    let mut cluster = Cluster::new(
        1,
        "A region that voted yes learns that the others refused, and crashes while it writes that down.
        Whatever part of it is on disk, the next incarnation does not keep the lock.",
    );
    cluster.narrate("a client of r1 writes k; the Accept to r0 is delayed, and so are the votes");
    cluster.hold(|envelope| is_of(envelope, R1) && (is_vote(envelope) || envelope.to == R0));
    let other = cluster.begin(R1, ReadMode::Optimistic);
    let other = cluster.commit(other, &[("k", "1")]);
    cluster.settle();
    cluster.narrate("a client of r0 writes k too: r0 votes yes, r1 and r2 refuse");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "2")]);
    cluster.stall_disk(R0);
    cluster.settle();
    assert!(cluster.waits(commit), "the refusal is not on the disk of r0 yet");
    cluster.narrate("r0 crashes: the first of its two writes is on disk, the second is not");
    cluster.kill_keeping(R0, 1);
    cluster.let_go();
    cluster.settle();
    assert_eq!(cluster.committed(other).trips, 1);
    cluster.narrate("r0 starts again");
    cluster.start(R0);
    cluster.advance(PATIENCE);
    assert_eq!(cluster.prepared_and_in_doubt(R0), (0, 0));
    assert_eq!(cluster.stored(R0, "k").1, Some("1".into()));
    cluster.check("a_crash_in_the_middle_of_an_abort_leaves_no_lock_behind");
}

#[test]
fn only_the_coordinator_of_a_region_takes_its_vote_back() {
    let mut cluster = Cluster::new(2, "");
    // r0 cannot vote, its disk is slow; r1 votes yes; r2 is out: the gateway of r0 gives up without an outcome.
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    cluster.kill(R2);
    cluster.kill(SiteId::new(2, 1));
    cluster.stall_disk(R0);
    cluster.stall_disk(SiteId::new(0, 1));
    cluster.hold(|envelope| matches!(envelope.body, Body::Note(Note::Withdraw { .. } | Note::AskVote { .. })));
    let commit = cluster.commit(txn, &[("a", "1"), ("b", "2")]);
    cluster.advance(Span::from_secs(9));
    assert!(matches!(cluster.failed(commit), TxnError::Unknown(_)));
    // Both sites of r1 are in doubt, and ask the gateway.
    cluster.let_go();
    cluster.advance(Span::from_secs(5));
    cluster.free_disk(R0);
    cluster.free_disk(SiteId::new(0, 1));
    cluster.advance(Span::from_secs(9));
    for site in [R0, SiteId::new(0, 1), R1, SiteId::new(1, 1)] {
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0), "{site}");
    }
}

#[test]
fn split_votes_are_taken_back_while_a_region_is_out() {
    let mut cluster = Cluster::new(
        1,
        "Two writers of one row, while a region is out, each with one yes and one no.
        Without r2 those votes decide nothing, and would keep the row locked until it is back. The gateways know that nobody
        in reach is left to vote: each takes back the yes that it has, and has its outcome.",
    );
    cluster.kill(R2);
    cluster.advance(SUSPICION);
    cluster.narrate("r2 is out, and known to be; clients of r0 and of r1 write k, and their Accepts cross");
    cluster.hold(is_accept);
    let first = cluster.begin(R0, ReadMode::Optimistic);
    let first = cluster.commit(first, &[("k", "1")]);
    let second = cluster.begin(R1, ReadMode::Optimistic);
    let second = cluster.commit(second, &[("k", "2")]);
    cluster.settle();
    cluster.narrate("each refuses the other's");
    cluster.let_go();
    cluster.settle();
    for commit in [first, second] {
        assert_eq!(cluster.failed(commit), TxnError::Conflict("locked by another transaction".into()));
    }
    for site in [R0, R1] {
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
    cluster.narrate("the row is free, though r2 is still out");
    let committed = cluster.put(R0, &[("k", "3")]);
    assert_eq!(committed.trips, 1);
    cluster.narrate("r2 starts again, and pulls");
    cluster.start(R2);
    cluster.advance(PATIENCE);
    for site in [R0, R1, R2] {
        assert_eq!(cluster.stored(site, "k"), (committed.at, Some("3".into())));
    }
    cluster.check("split_votes_are_taken_back_while_a_region_is_out");
}

#[test]
fn a_yes_made_firm_can_no_longer_be_withdrawn() {
    let mut cluster = Cluster::new(
        1,
        "A gateway that was cut off takes its attempt back, too late: others in doubt have had the votes made firm.
        r0 withdraws its own yes, and counts final votes only from then on. r1 and r2 find it silent and ask each other; each
        makes its yes firm, though the other does not hear so yet. Asked to withdraw, both answer that they are firm. Those
        are two final votes of three: r0 tells its client that it committed.",
    );
    cluster.narrate("a client of r0 writes k; its Accepts arrive, and r0 is cut off from all votes");
    cluster.hold(is_vote);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.cut(RegionId(0));
    cluster.narrate("r0 withdraws; r1 and r2 ask each other, but the answers are slow");
    cluster.hold(|envelope| is_vote(envelope) && envelope.to != R0);
    cluster.advance(STUBBORNNESS);
    assert!(cluster.waits(commit));
    assert_eq!(cluster.prepared_and_in_doubt(R0), (0, 0), "its own yes is withdrawn");
    for site in [R1, R2] {
        assert_eq!(cluster.prepared_and_in_doubt(site), (1, 1));
    }
    cluster.narrate("the cut heals, and r0 asks them again to withdraw");
    cluster.heal();
    cluster.advance(TICK);
    let committed = cluster.committed(commit);
    for site in [R0, R1, R2] {
        assert_eq!(cluster.stored(site, "k"), (committed.at, Some("1".into())));
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
    cluster.check("a_yes_made_firm_can_no_longer_be_withdrawn");
}

const REFUSAL_AND_CRASH: &str = "A region refuses, crashes, and is asked again.
    r1 and r2 refuse an attempt of r0, whose client is told so. Both r0 and r1 crash: r0 has its yes on disk and not the
    outcome, r1 has nothing but its disk. The Accept was sent twice, and reaches r1 again when nothing is in its way any more.
    (A region that has restarted refuses timestamps at which earlier incarnations may have read; the clock of r0 is so far ahead
    that this one lies above.) Only the refusal on disk keeps r1 from a yes that would undo what the client was told.";

/// Has r1 refuse an attempt of r0 to write 2 to k, whose client is told so, crash, and be asked again.
fn refuse_crash_and_ask_again(cluster: &mut Cluster) {
    cluster.set_ahead(R0, Span::from_secs(10));
    cluster.advance(TICK);
    cluster.narrate("a client of r1 writes k; r0 hears nothing of it, and the vote of r2 is slow");
    cluster.hold(|envelope| is_of(envelope, R1) && (is_vote(envelope) || envelope.to == R0));
    let other = cluster.begin(R1, ReadMode::Optimistic);
    cluster.commit(other, &[("k", "1")]);
    cluster.settle();
    cluster.narrate("a client of r0, where it is 10 s later, writes k too; r1 and r2 refuse, and their votes are slow");
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "2")]);
    cluster.hold(|envelope| is_vote(envelope) || (is_of(envelope, R1) && envelope.to == R0));
    cluster.settle();
    cluster.narrate("r0 sends its Accepts again, which are slower still");
    cluster.hold(|envelope| is_vote(envelope) || is_accept(envelope));
    cluster.advance(TICK * 2);
    cluster.narrate("the refusals arrive; the outcome does not reach the disk of r0, which tells nobody");
    cluster.stall_disk(R0);
    cluster.hold(|envelope| envelope.from == R0 || is_of(envelope, R1));
    cluster.settle();
    assert!(cluster.waits(commit), "the refusal is not on the disk of r0 yet");
    cluster.kill(R0);
    cluster.kill(R1);
    cluster.lose(|envelope| is_of(envelope, R1) || !is_accept(envelope));
    cluster.narrate("r1 starts again; with r2 it commits the transaction that was in the way");
    cluster.hold(is_accept);
    cluster.start(R1);
    cluster.advance(PATIENCE);
    for site in [R1, R2] {
        assert_eq!(cluster.stored(site, "k").1, Some("1".into()));
    }
    cluster.narrate("the second Accepts of r0 arrive");
    cluster.let_go();
    cluster.settle();
    cluster.narrate("r0 starts again, and asks");
    cluster.start(R0);
    cluster.advance(PATIENCE);
}

#[test]
fn a_refusal_outlives_a_crash() {
    let mut cluster = Cluster::new(1, REFUSAL_AND_CRASH);
    refuse_crash_and_ask_again(&mut cluster);
    for site in [R0, R1, R2] {
        assert_eq!(cluster.stored(site, "k").1, Some("1".into()));
        assert_eq!(cluster.prepared_and_in_doubt(site), (0, 0));
    }
    cluster.check("a_refusal_outlives_a_crash");
}

/// The same schedule, with a bug: refusals are told without being on disk.
#[test]
fn a_refusal_that_does_not_outlive_a_crash_is_caught() {
    use rhumb_core::Rules;
    use rhumb_replicated_commit::planted::Planted;
    let mut cluster = Cluster::with_sites(1, REFUSAL_AND_CRASH, |site| site.with_rules(Rules::breaking(Planted::RefusalNotDurable)));
    refuse_crash_and_ask_again(&mut cluster);
    for site in [R0, R1, R2] {
        assert_eq!(cluster.stored(site, "k").1, Some("2".into()), "what two of three regions had refused is committed");
    }
}

/// A region in doubt works a commit out while its gateway, cut off, takes the attempt back: at which timestamps the region, and the client's
/// answer, have it.
fn work_out_while_the_gateway_withdraws(mut cluster: Cluster) -> (Timestamp, Timestamp) {
    cluster.hold(is_vote);
    let txn = cluster.begin(R0, ReadMode::Optimistic);
    let commit = cluster.commit(txn, &[("k", "1")]);
    cluster.settle();
    cluster.cut(RegionId(0));
    // r1 asks r2, and hears of its yes; r2 hears nothing of r1 but the question.
    cluster.hold(|envelope| envelope.from == R1 && !matches!(envelope.body, Body::Note(Note::AskVote { .. })));
    cluster.advance(STUBBORNNESS);
    let (worked_out, value) = cluster.stored(R1, "k");
    assert_eq!(value, Some("1".into()));
    cluster.heal();
    cluster.advance(TICK);
    cluster.let_go();
    cluster.settle();
    (worked_out, cluster.committed(commit).at)
}

#[test]
fn a_yes_that_another_region_has_counted_is_firm() {
    let (worked_out, told) = work_out_while_the_gateway_withdraws(Cluster::new(1, ""));
    assert_eq!(worked_out, told);
}

/// The same schedule, with a bug: regions in doubt count a yes that is provisional still. The gateway has it withdrawn, and tries again.
#[test]
fn a_yes_that_is_counted_before_it_is_firm_is_caught() {
    use rhumb_core::Rules;
    use rhumb_replicated_commit::planted::Planted;
    let cluster = Cluster::with_sites(1, "", |site| site.with_rules(Rules::breaking(Planted::ProvisionalCounts)));
    let (worked_out, told) = work_out_while_the_gateway_withdraws(cluster);
    assert_ne!(worked_out, told, "an attempt that r1 has committed counts as aborted elsewhere");
}
