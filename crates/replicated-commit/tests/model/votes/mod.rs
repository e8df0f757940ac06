//! The votes: which outcomes regions and gateways come to, and what clients are told.
//!
//! Three regions vote on two transactions that read and write the same row, so at most one may commit. The gateway of each is in a region of
//! its own, which does not vote; its client has asked to commit, and it has sent the `Accept`s. From there on anything may happen at any time:
//!
//! ```text
//!   Accept   ─▶ region: locks free and row current? ─▶ yes, provisional, to the gateway; or no
//!   AskVote  ─▶ region: a provisional yes is firm now, a missing vote a no ─▶ to whoever asked
//!   Withdraw ─▶ region: a provisional yes is a no now, as is a missing vote ─▶ to the gateway
//!   final votes ─▶ any region ─▶ outcome to everybody; lock released
//!   any votes   ─▶ the gateway, as long as it has not withdrawn ─▶ outcome to everybody, and to the client
//!   Load, Sync, Crash ─▶ a region's disk answers, or makes a write durable; its site starts again from what is durable
//!   Late, Deadline    ─▶ the gateway withdraws; the client waits no longer
//! ```
//!
//! A member is the whole of its automaton (`automaton.rs`): all inputs are known before the search. States that no sequence of inputs can tell
//! apart become one.
//!
//! Simplifications that leave no behaviour out:
//!
//! - `Accept` and `AskVote` are in the network from the beginning: a region may be in doubt at once.
//! - The votes that decide arrive at once. A site counts them whenever one arrives, and acts when they decide; before that they make no difference.
//! - Which region has cast which vote makes none either: no site looks at the names of regions. So regions are alike, and states that differ only by
//!   a renaming of regions are one.
//! - What a site sends to itself arrives at once, and so does the disk of a gateway: nobody else can tell when. A gateway may withdraw
//!   whenever it is late, whatever votes it has heard.
//! - A region that knows an outcome is not told the other one: that somebody tells each violates agreement already.
//!
//! Simplifications that leave some out: clocks stand still, but for those of gateways that are late; a gateway's second attempt is not voted
//! on; regions have one site each; no placement changes, no log is pulled, and nothing is forgotten. And [`Bounds`].

mod automaton;
mod cluster;
mod gateway;
mod heard;
mod planted;
mod properties;
mod region;
mod word;

use crate::host::Departure;
use cluster::Votes;
use region::Bounds;
use rhumb_testkit::model::check_shown;
use stateright::Checker;

/// Explores all that a cluster of the product can reach.
fn check(bounds: Bounds) {
    let checker = check_shown(Votes::new(Departure::default(), bounds), Votes::schedule);
    println!("{}", checker.model().sizes());
}

#[test]
fn every_reachable_state_of_two_conflicting_transactions_in_three_regions_is_safe() {
    check(Bounds { crashes: 1, writes: 1 });
}

#[test]
#[ignore = "takes four minutes: `make soak`"]
fn every_reachable_state_is_safe_where_messages_arrive_while_a_write_waits() {
    check(Bounds { crashes: 1, writes: 2 });
}
