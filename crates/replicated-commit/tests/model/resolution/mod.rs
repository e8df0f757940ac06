//! A resolution: three regions survive, two with a vote (r0, r1) and one without (r2), and the vote of a lost one (r3) decides.
//!
//! r0 has voted yes on the attempt; r1 yes, no, or not yet; the lost region yes or no. Its vote is under way to one of the survivors, and so is its
//! claim of the outcome if the votes decided it. From there on anything may happen at any time:
//!
//! ```text
//!   r3's vote   ─▶ the survivor that it is under way to
//!   AskVote     ─▶ a vote becomes final, and is said to everybody
//!   final votes ─▶ a survivor that is not bound works the outcome out, and claims it
//!   Place       ─▶ a survivor hears of the placement that declares r3 lost
//!   Lead        ─▶ a long time passes, and r0 or r1, which are in doubt, begin a round
//!   Inquire     ─▶ a survivor promises the round and testifies ─▶ the leader proposes
//!   Propose     ─▶ a survivor looks at what the attempt had read ─▶ it accepts, or r1 contests ─▶ all have accepted: concluded
//!   Load, Sync, Crash ─▶ a disk answers, or makes a write durable; a site starts again from what is durable
//! ```
//!
//! A member is run as messages appear that may arrive there (`automaton.rs`), since there are too many that never do. Each message is numbered when it
//! is sent first (`word.rs`).
//!
//! Simplifications that leave no behaviour out:
//!
//! - `AskVote` is in the network from the beginning, and the answer may be heard by all.
//! - The votes of survivors arrive at once, and if they decide: each survivor testifies its own.
//! - What a testimony says beside a known outcome makes none: its leader proposes that. Nor does one given again after the leader has proposed.
//! - What a site sends to itself arrives at once.
//!
//! Simplifications that leave some out: a site is told nothing while a write waits; nobody hears that a higher round was promised; clocks stand
//! still but for those that lead; the gateway is lost with its region; regions have one site each; no log is pulled, and nothing is forgotten.
//! And [`Bounds`].

mod automaton;
mod cluster;
mod planted;
mod properties;
mod survivor;
mod word;

use crate::host::Departure;
use cluster::{Cases, Resolution};
use rhumb_testkit::model::check_shown;
use stateright::Checker;
use survivor::Bounds;
use word::SURVIVORS;

/// Nobody crashes, and both voters lead once.
const NO_CRASH: [Bounds; SURVIVORS] = [Bounds { crashes: 0, rounds: 1 }; SURVIVORS];
/// Both voters lead once, and the first of them crashes once.
const A_LEADER_CRASHES: [Bounds; SURVIVORS] =
    [Bounds { crashes: 1, rounds: 1 }, Bounds { crashes: 0, rounds: 1 }, Bounds { crashes: 0, rounds: 0 }];

/// Explores all that the survivors of the product can reach.
fn check(bounds: [Bounds; SURVIVORS], cases: Cases) {
    let checker = check_shown(Resolution::new(Departure::default(), bounds, cases), Resolution::schedule);
    println!("{}", checker.model().sizes());
}

#[test]
fn every_reachable_state_of_two_leaders_and_three_survivors_is_safe() {
    check(NO_CRASH, Cases::All);
}

#[test]
#[ignore = "takes minutes: `make soak`"]
fn every_reachable_state_is_safe_where_survivors_crash() {
    check([Bounds { crashes: 1, rounds: 1 }; SURVIVORS], Cases::Refused);
}

#[test]
fn every_reachable_state_is_safe_where_a_leader_crashes_and_nobody_claims_the_outcome() {
    check(A_LEADER_CRASHES, Cases::Silent);
}

#[test]
fn every_reachable_state_is_safe_where_a_leader_crashes_and_the_lost_region_claims_an_abort() {
    check(A_LEADER_CRASHES, Cases::Claimed);
}
