//! Rules of the protocol to break: the same model must then find what goes wrong.

use super::state::{Ballot, Cast, Register, State};
use super::{Action, VoteRegisters};

/// A rule to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A refusal is sent at once and never written: a crash forgets it.
    RefusalNotDurable,
    /// Every vote is sent when it is cast, and synced some time later.
    SentBeforeSync,
    /// A region in doubt proposes commit at ballot 1, as plain Paxos would, and regions that refused accept.
    NaiveBallotOne,
    /// Regions in doubt count yes-votes that are provisional still.
    ProvisionalCounts,
    /// A gateway withdraws yes-votes that have become firm.
    FirmWithdrawn,
    /// A gateway that has withdrawn goes on counting provisional votes.
    GatewayCountsOn,
}

impl VoteRegisters {
    /// Casts a vote, or makes it final.
    pub(super) fn cast(&self, ballot: &mut Ballot, cast: Cast) {
        let early = match self.planted {
            Some(Planted::RefusalNotDurable) => cast == Cast::No,
            Some(Planted::SentBeforeSync) => true,
            _ => false,
        };
        // Only a first vote is ever in danger: in the register of one that becomes final stands a yes already.
        let first = ballot.register == Register::Empty;
        ballot.register = if early && first { Register::Written(cast) } else { Register::Durable(cast) };
        ballot.say(cast);
    }

    /// True if the gateway may withdraw this vote.
    pub(super) fn is_withdrawable(&self, ballot: &Ballot) -> bool {
        match ballot.register.cast() {
            None | Some(Cast::Yes) => true,
            Some(Cast::Firm) => self.planted == Some(Planted::FirmWithdrawn),
            Some(Cast::No) => false,
        }
    }

    /// True if a written vote of this kind ever reaches the disk.
    pub(super) fn syncs(&self, cast: Cast) -> bool {
        self.planted != Some(Planted::RefusalNotDurable) || cast == Cast::Yes
    }

    /// Ballot 1, where it is planted: somebody in doubt has heard a majority, this refusal among it, and proposes what it
    /// accepted itself.
    pub(super) fn repropose(&self, state: &State, region: usize, txn: usize) -> Option<Action> {
        let ballot = &state.regions[region].ballots[txn];
        let refused = ballot.register == Register::Durable(Cast::No);
        let in_doubt = state.regions.iter().any(|other| other.ballots[txn].is_in_doubt());
        let proposed = self.planted == Some(Planted::NaiveBallotOne) && refused && in_doubt && ballot.learnt.is_none();
        proposed.then_some(Action::Repropose { region, txn })
    }
}
