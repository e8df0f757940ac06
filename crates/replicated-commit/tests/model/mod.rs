//! The vote registers as a state space: three regions, two conflicting transactions, every failure at every moment.
//!
//! Each transaction reads and writes the one key that both want, in every region, so at most one may commit. Its gateway has
//! sent the `Accept`s; from there on anything may happen at any time:
//!
//! ```text
//!   Accept   ─▶ region: lock free and row current? ─▶ yes, provisional, said to the gateway; or no, for whatever reason
//!   AskVote  ─▶ region: a provisional yes is firm now, a missing vote a no ─▶ said to whoever asked
//!   Withdraw ─▶ region: a provisional yes is a no now, as is a missing vote ─▶ said to the gateway
//!   final votes said ─▶ any learner ─▶ outcome by Tally::outcome ─▶ told to everybody; lock released, client told
//!   any votes said ─▶ the gateway, as long as it has not withdrawn ─▶ outcome by Tally::outcome_at_gateway ─▶ likewise
//! ```
//!
//! The network is a set that only grows: what was once sent can be delivered at any later time, again, or never. That
//! covers delay, reordering, duplication and loss. Hence some simplifications that leave no behaviour out:
//!
//! - A learner need not remember votes one by one: having seen some of them earlier is the same as seeing them all at
//!   the moment at which they decide. The outcome is always that of the product's own [`Tally`].
//! - `AskVote` is in the network from the start: a region may be in doubt at once.
//! - A vote is durable as soon as it is cast. One that a crash destroyed before it was told is one that was never cast; that
//!   it may have made the region refuse the other transaction is covered, as a region may refuse at any time.
//! - A crashed region is back at once: being down is the same as hearing nothing. A crash keeps durable votes only, and
//!   one that finds nothing to destroy is left out.

mod planted;
mod properties;
mod state;

pub use planted::Planted;
pub use properties::{AGREEMENT, CLIENT, EXCLUSION, WRITE_ONCE};

use rhumb_commit::placement::Regions;
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
    /// A region refuses, for a reason of its own.
    Refuse { region: usize, txn: usize },
    /// The gateway gives up on the votes that it has.
    Withdraw { txn: usize },
    /// The gateway's `Withdraw` arrives.
    Withdrawn { region: usize, txn: usize },
    /// An `AskVote` arrives from somebody in doubt.
    AskVote { region: usize, txn: usize },
    /// Only planted: a region's write of its vote, said before, is durable.
    Sync { region: usize, txn: usize },
    /// Enough votes, or a `Decided`, have arrived at a region.
    Learn { region: usize, txn: usize, end: End },
    /// Enough votes, or a `Decided`, have arrived at the gateway, which tells its client.
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
            if state.txns[txn].gateway == Gateway::Waiting {
                actions.push(Action::Die { txn });
                actions.push(Action::Withdraw { txn });
                actions.extend(self.outcomes(state, txn, Learner::Gateway).iter().map(|&end| Action::Tell { txn, end }));
            }
            let outcomes = self.outcomes(state, txn, Learner::Region);
            for (region, of_region) in state.regions.iter().enumerate() {
                let ballot = &of_region.ballots[txn];
                if ballot.learnt.is_none() {
                    if ballot.register == Register::Empty {
                        actions.push(Action::Accept { region, txn });
                        actions.push(Action::Refuse { region, txn });
                    }
                    actions.push(Action::AskVote { region, txn });
                    if state.txns[txn].withdrawn && self.is_withdrawable(ballot) {
                        actions.push(Action::Withdrawn { region, txn });
                    }
                    actions.extend(outcomes.iter().map(|&end| Action::Learn { region, txn, end }));
                }
                if let Register::Written(cast) = ballot.register
                    && self.syncs(cast)
                {
                    actions.push(Action::Sync { region, txn });
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
            Action::Refuse { region, txn } | Action::Withdrawn { region, txn } => {
                self.cast(&mut state.regions[region].ballots[txn], Cast::No);
            }
            Action::Withdraw { txn } => state.txns[txn].withdrawn = true,
            Action::AskVote { region, txn } => {
                let ballot = &mut state.regions[region].ballots[txn];
                match ballot.register.cast() {
                    None => self.cast(ballot, Cast::No),
                    Some(Cast::Yes) => self.cast(ballot, Cast::Firm),
                    Some(Cast::Firm | Cast::No) => {}
                }
            }
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
            Action::Repropose { region, txn } => {
                let ballot = &mut state.regions[region].ballots[txn];
                ballot.register = Register::Durable(Cast::Firm);
                ballot.say(Cast::Firm);
            }
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
    let locked = other.is_in_doubt();
    Some(if stale || locked { Cast::No } else { Cast::Yes })
}

/// Who works an outcome out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Learner {
    Gateway,
    Region,
}

impl VoteRegisters {
    /// The outcomes that the votes said so far allow somebody to work out, whichever of them have arrived, and those that
    /// somebody else has worked out and told.
    fn outcomes(&self, state: &State, txn: usize, learner: Learner) -> BTreeSet<End> {
        let of_txn = &state.txns[txn];
        let counts_provisional = match learner {
            Learner::Gateway => !of_txn.withdrawn || self.planted == Some(Planted::GatewayCountsOn),
            Learner::Region => self.planted == Some(Planted::ProvisionalCounts),
        };
        let mut tallies = vec![Tally::default()];
        for (region, of_region) in state.regions.iter().enumerate() {
            let said = of_region.ballots[txn].said;
            let without = tallies.clone();
            let no = Vote::No(Refusal::Locked);
            for (_, vote) in [(said.yes, Vote::Yes), (said.firm, Vote::Firm), (said.no, no)].into_iter().filter(|(said, _)| *said) {
                tallies.extend(without.iter().cloned().map(|mut tally| {
                    tally.record(RegionId(region as u16), vote.clone());
                    tally
                }));
            }
        }
        let electorate = Regions::first(REGIONS);
        let outcome = |tally: &Tally| if counts_provisional { tally.outcome_at_gateway(electorate) } else { tally.outcome(electorate) };
        let worked_out = tallies.iter().filter_map(outcome).map(End::from);
        let told = [(of_txn.committed, End::Committed), (of_txn.aborted, End::Aborted)];
        worked_out.chain(told.into_iter().filter(|(told, _)| *told).map(|(_, end)| end)).collect()
    }
}
