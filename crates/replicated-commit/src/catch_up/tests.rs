//! How a replica takes over the log of a peer, step by step.

use super::*;
use crate::testing::{R1, Stage, ms};
use rhumb_core::TxnId;

fn head(seq: u64) -> LogHead {
    let attempt = crate::message::Attempt { txn: TxnId { began: ms(seq), gateway: R1 }, made: ms(seq) };
    LogHead { seq, attempt, at: ms(seq), floor: ms(seq) }
}

/// The log of `r1` after `after`, of which `seqs` are listed and nothing is to come.
fn page(after: u64, seqs: &[u64], closed: Timestamp) -> LogPage {
    let (heads, end) = (seqs.iter().map(|seq| head(*seq)).collect(), seqs.last().copied().unwrap_or(after));
    LogPage { after, heads, end, more: false, closed, begins: 0, collected: Timestamp::ZERO, epoch: 1 }
}

fn pull(stage: &mut Stage) -> Vec<String> {
    stage.follow(|catch_up, near, cx| catch_up.pull(near, R1.region, cx))
}

#[test]
fn the_cursor_passes_over_entries_once_they_are_here_and_is_on_disk_before_the_peer_hears_of_it() {
    let mut stage = Stage::new(1);
    assert_eq!(stage.shared.placement.epoch, 1);
    assert_eq!(pull(&mut stage), [format!("sync; then to {R1}: Pull after 0 safe {}", Timestamp::ZERO)]);
    let said = stage.follow(|catch_up, near, cx| {
        catch_up.open(R1, &page(0, &[1, 2], ms(90)), BTreeSet::from([1, 2]), None, cx);
        catch_up.turn_page(near, R1.region, cx);
    });
    assert_eq!(said, [format!("to {R1}: Fetch {{1,2}}")]);
    assert!(pull(&mut stage).is_empty(), "its rows are under way");
    stage.follow(|catch_up, near, cx| {
        catch_up.take(R1.region, &BTreeSet::from([1, 2]), None);
        catch_up.turn_page(near, R1.region, cx);
    });
    assert_eq!(stage.roles.catch_up.cursor(R1.region), 2);
    assert_eq!(pull(&mut stage), [format!("sync +number; then to {R1}: Pull after 2 safe {}", Timestamp::ZERO)]);
}

#[test]
fn a_promise_counts_once_the_log_before_it_is_taken_over() {
    let mut stage = Stage::new(1);
    let safe = |stage: &Stage| stage.roles.catch_up.safe(&stage.roles.cohort, &stage.roles.mover, &stage.shared);
    stage.follow(|catch_up, near, cx| catch_up.close_own(near, ms(90), cx));
    stage.follow(|catch_up, near, cx| {
        catch_up.open(R1, &page(0, &[1], ms(90)), BTreeSet::from([1]), None, cx);
        catch_up.turn_page(near, R1.region, cx);
    });
    assert_eq!(safe(&stage), Timestamp::ZERO, "a row of it is missing");
    let said = stage.follow(|catch_up, near, cx| {
        catch_up.take(R1.region, &BTreeSet::from([1]), None);
        catch_up.turn_page(near, R1.region, cx);
    });
    assert_eq!(said, ["tell SafeHasRisen"]);
    assert_eq!(safe(&stage), ms(90), "this region and another one are a majority");
}

#[test]
fn an_entry_that_is_awaited_is_asked_for_again() {
    let mut stage = Stage::new(1);
    let awaited = Stopped { before: 2, awaited: true };
    let said = stage.follow(|catch_up, near, cx| {
        catch_up.open(R1, &page(0, &[1, 2, 3], ms(90)), BTreeSet::new(), Some(awaited), cx);
        catch_up.turn_page(near, R1.region, cx);
    });
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(stage.roles.catch_up.cursor(R1.region), 1, "not beyond the entry before");
    assert_eq!(pull(&mut stage), [format!("sync +number; then to {R1}: Pull after 1 safe {}", Timestamp::ZERO)]);
}

#[test]
fn what_is_told_of_the_own_log_is_a_promise() {
    let mut stage = Stage::new(1);
    let pulled = Pulled { after: 0, safe: ms(10), epoch: 1, settled: 1 };
    let said = stage.follow(|catch_up, near, cx| catch_up.on_pull(near, R1, pulled, ms(5_000), cx));
    assert_eq!(said, [format!("sync +number; then to {R1}: Log 0..0 closed {} {{}}", ms(5_000))], "the bound of the clock goes first");
}
