//! The vote registers as a state space: three regions, two conflicting transactions, every failure at every moment.
//!
//! Each transaction reads and writes the one key that both want, in every region, so at most one may commit. Its gateway has
//! sent the `Accept`s; from there on anything may happen at any time:
//!
//! ```text
//!   Accept  ─▶ region: lock free and row current? ─▶ vote written ─▶ synced ─▶ said to everybody
//!   AskVote ─▶ region that never heard: no ────────▶ vote written ─▶ synced ─▶ said to everybody
//!   votes said ─▶ any learner (a region, the gateway) ─▶ outcome by Tally::outcome ─▶ lock released, client told
//! ```
//!
//! The network is a set that only grows: what was once sent can be delivered at any later time, again, or never. That
//! covers delay, reordering, duplication and loss. Hence three simplifications that leave no behaviour out:
//!
//! - A learner need not remember votes one by one: having seen some of them earlier is the same as seeing them all at
//!   the moment at which they decide. The outcome is always that of the product's own [`Tally`].
//! - `AskVote` is in the network from the start: the gateway may have asked at once, whoever else asks later.
//! - A crashed region is back at once: being down is the same as hearing nothing. A crash keeps durable votes only, and
//!   one that finds nothing to destroy is left out.

mod planted;
mod properties;
mod state;

pub use planted::Planted;
pub use properties::{AGREEMENT, CLIENT, EXCLUSION, WRITE_ONCE};

use rhumb_commit::votes::{Refusal, Tally, Vote};
use rhumb_core::RegionId;
use state::{Cast, End, Gateway, REGIONS, Region, Register, State, TXNS};
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// The registers, with one rule broken or none.
#[derive(Clone, Copy, Debug)]
pub struct VoteRegisters {
    pub planted: Option<Planted>,
}

/// Something that happens. Regions and transactions are indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The gateway's `Accept` arrives.
    Accept { region: usize, txn: usize },
    /// An `AskVote` arrives from somebody in doubt.
    AskVote { region: usize, txn: usize },
    /// A region's write of its vote is durable.
    Sync { region: usize, txn: usize },
    /// Enough votes have arrived at a region.
    Learn { region: usize, txn: usize, end: End },
    /// Enough votes have arrived at the gateway, which tells its client.
    Tell { txn: usize, end: End },
    /// A region crashes and restarts.
    Crash { region: usize },
    /// A gateway dies for good.
    Die { txn: usize },
    /// Only planted: a region in doubt proposes commit at ballot 1, and a region that refused accepts.
    Repropose { region: usize, txn: usize },
}

impl Model for VoteRegisters {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for txn in 0..TXNS {
            let outcomes = outcomes(state, txn);
            if state.txns[txn].gateway == Gateway::Waiting {
                actions.push(Action::Die { txn });
                actions.extend(outcomes.iter().map(|&end| Action::Tell { txn, end }));
            }
            for (region, of_region) in state.regions.iter().enumerate() {
                let ballot = &of_region.ballots[txn];
                match ballot.register {
                    Register::Empty => {
                        actions.push(Action::Accept { region, txn });
                        actions.push(Action::AskVote { region, txn });
                    }
                    Register::Written(cast) if self.syncs(cast) => actions.push(Action::Sync { region, txn }),
                    _ => {}
                }
                if ballot.learnt.is_none() {
                    actions.extend(outcomes.iter().map(|&end| Action::Learn { region, txn, end }));
                }
                actions.extend(self.repropose(state, region, txn));
            }
        }
        actions.extend((0..REGIONS).filter(|&region| state.regions[region].may_crash()).map(|region| Action::Crash { region }));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Accept { region, txn } => {
                let cast = judge(&state.regions[region], txn)?;
                self.cast(&mut state.regions[region].ballots[txn], cast);
            }
            Action::AskVote { region, txn } => self.cast(&mut state.regions[region].ballots[txn], Cast::No),
            Action::Sync { region, txn } => state.regions[region].ballots[txn].sync(),
            Action::Learn { region, txn, end } => {
                state.regions[region].ballots[txn].learnt = Some(end);
                state.txns[txn].conclude(end);
            }
            Action::Tell { txn, end } => {
                state.txns[txn].gateway = Gateway::Told(end);
                state.txns[txn].conclude(end);
            }
            Action::Crash { region } => state.regions[region].crash(),
            Action::Die { txn } => state.txns[txn].gateway = Gateway::Dead,
            Action::Repropose { region, txn } => state.regions[region].ballots[txn].register = Register::Written(Cast::Yes),
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// How a region votes on an `Accept`; it does not if the votes of the others have decided already.
fn judge(region: &Region, txn: usize) -> Option<Cast> {
    if region.ballots[txn].learnt.is_some() {
        return None;
    }
    let other = &region.ballots[1 - txn];
    let stale = other.learnt == Some(End::Committed);
    let locked = other.learnt.is_none() && other.register.cast() == Some(Cast::Yes);
    Some(if stale || locked { Cast::No } else { Cast::Yes })
}

/// The outcomes that the votes said so far allow somebody to work out, whichever of them have arrived.
fn outcomes(state: &State, txn: usize) -> BTreeSet<End> {
    let mut tallies = vec![Tally::default()];
    for (region, of_region) in state.regions.iter().enumerate() {
        let said = of_region.ballots[txn].said;
        let without = tallies.clone();
        for (_, vote) in [(said.yes, Vote::Yes), (said.no, Vote::No(Refusal::Locked))].into_iter().filter(|(said, _)| *said) {
            tallies.extend(without.iter().cloned().map(|mut tally| {
                tally.record(RegionId(region as u16), vote.clone());
                tally
            }));
        }
    }
    tallies.iter().filter_map(|tally| tally.outcome(REGIONS)).map(End::from).collect()
}
