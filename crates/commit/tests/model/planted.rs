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
}

impl VoteRegisters {
    /// Casts a vote.
    pub(super) fn cast(&self, ballot: &mut Ballot, cast: Cast) {
        ballot.register = Register::Written(cast);
        let early = match self.planted {
            Some(Planted::RefusalNotDurable) => cast == Cast::No,
            Some(Planted::SentBeforeSync) => true,
            Some(Planted::NaiveBallotOne) | None => false,
        };
        if early {
            ballot.say(cast);
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
