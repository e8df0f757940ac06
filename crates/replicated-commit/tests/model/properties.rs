//! What must hold in every state, and what must be reachable.

use super::VoteRegisters;
use super::state::{Ballot, Cast, End, Gateway, REGIONS, Region, Register, State, Txn};
use stateright::Property;

/// No two learners ever conclude differently about a transaction.
pub const AGREEMENT: &str = "no two learners disagree on an outcome";
/// The two transactions conflict: they never both commit.
pub const EXCLUSION: &str = "conflicting transactions never both commit";
/// What a client was told is what everybody else concludes, then and later.
pub const CLIENT: &str = "an outcome told to a client is every learner's";
/// Nobody ever hears two final votes from one region.
pub const WRITE_ONCE: &str = "a final vote that was sent never changes";

pub(super) fn all() -> Vec<Property<VoteRegisters>> {
    vec![
        Property::always(AGREEMENT, |_, state: &State| state.txns.iter().all(|txn| !(txn.committed && txn.aborted))),
        Property::always(EXCLUSION, |_, state: &State| !state.txns.iter().all(|txn| txn.committed)),
        Property::always(CLIENT, |_, state: &State| state.txns.iter().all(is_client_right)),
        Property::always(WRITE_ONCE, |_, state: &State| {
            state.regions.iter().flat_map(|region| &region.ballots).all(|ballot| !(ballot.said.firm && ballot.said.no))
        }),
        Property::sometimes("a client is told that it committed", |_, state: &State| told(state, End::Committed)),
        Property::sometimes("a client is told that it aborted", |_, state: &State| told(state, End::Aborted)),
        Property::sometimes("one commits, the other aborts, and all regions know", |_, state: &State| {
            let knows = |txn: usize, end| state.regions.iter().all(|region| region.ballots[txn].learnt == Some(end));
            knows(0, End::Committed) && knows(1, End::Aborted)
        }),
        Property::sometimes("a region in doubt commits though the gateway is dead", |_, state: &State| {
            resolved_without_gateway(state, End::Committed)
        }),
        Property::sometimes("a region in doubt aborts though the gateway is dead", |_, state: &State| {
            resolved_without_gateway(state, End::Aborted)
        }),
        Property::sometimes("regions that never heard decide for a region in doubt whose gateway is dead", |_, state: &State| {
            // The other transaction never came there, so nothing but the question made them refuse.
            let never_heard =
                |region: &&Region| region.ballots.map(|ballot| ballot.register) == [Register::Durable(Cast::No), Register::Empty];
            state.regions.iter().filter(never_heard).count() == 2 && resolved_without_gateway(state, End::Aborted)
        }),
        Property::sometimes("votes are split, and only the missing one can decide", |_, state: &State| {
            registers(state) == [Register::Empty, Register::Durable(Cast::Firm), Register::Durable(Cast::No)]
        }),
        Property::sometimes("votes are split, one is missing, and the gateway gets its outcome all the same", |_, state: &State| {
            let withdrawn = |region: &Region| region.ballots[0].said.yes && region.ballots[0].said.no;
            registers(state) == [Register::Empty, Register::Durable(Cast::No), Register::Durable(Cast::No)]
                && state.regions.iter().any(withdrawn)
                && state.txns[0].gateway == Gateway::Told(End::Aborted)
        }),
        Property::sometimes(
            "votes became firm before they could be withdrawn, and the client is told that it committed",
            |_, state: &State| {
                let txn = &state.txns[0];
                txn.withdrawn && txn.gateway == Gateway::Told(End::Committed)
            },
        ),
    ]
}

fn registers(state: &State) -> [Register; REGIONS] {
    let mut registers = state.regions.map(|region| region.ballots[0].register);
    registers.sort_unstable();
    registers
}

fn is_client_right(txn: &Txn) -> bool {
    match txn.gateway {
        Gateway::Told(End::Committed) => txn.committed && !txn.aborted,
        Gateway::Told(End::Aborted) => txn.aborted && !txn.committed,
        Gateway::Waiting | Gateway::Dead => true,
    }
}

fn told(state: &State, end: End) -> bool {
    state.txns.iter().any(|txn| txn.gateway == Gateway::Told(end))
}

/// The gateway of the first transaction died before it told its client, and a region that had voted yes has learnt `end`.
fn resolved_without_gateway(state: &State, end: End) -> bool {
    let learnt = |ballot: &Ballot| ballot.has_yes() && ballot.learnt == Some(end);
    state.txns[0].gateway == Gateway::Dead && state.regions.iter().any(|region| learnt(&region.ballots[0]))
}
