//! What a state of the model holds. Regions are alike, and so are transactions: states that differ only by a renaming of
//! either are one, by their representative.

use rhumb_commit::votes::Outcome;
use stateright::Representative;

/// The number of regions.
pub const REGIONS: usize = 3;
/// The number of transactions, one gateway each.
pub const TXNS: usize = 2;

/// A vote. Why a region refuses makes no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cast {
    /// Provisional.
    Yes,
    Firm,
    No,
}

/// A region's vote on one transaction, on its way to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Register {
    #[default]
    Empty,
    /// Only planted: said, but not synced. A crash loses it.
    Written(Cast),
    Durable(Cast),
}

/// An outcome, as a state can hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Committed,
    Aborted,
}

/// The messages `Vote` of one region on one transaction that are in the network. A correct region never sends both of the
/// last two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Said {
    pub yes: bool,
    pub firm: bool,
    pub no: bool,
}

/// One transaction as one region sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    pub register: Register,
    pub said: Said,
    /// The outcome that this region has worked out, or was told, in this life.
    pub learnt: Option<End>,
}

/// One region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    pub ballots: [Ballot; TXNS],
    /// It has crashed once, and will not again.
    pub crashed: bool,
}

/// A gateway and its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gateway {
    #[default]
    Waiting,
    /// The client was told. What becomes of the gateway after that matters to nobody.
    Told(End),
    Dead,
}

/// One transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Txn {
    pub gateway: Gateway,
    /// The gateway has sent `Withdraw`, and counts final votes only.
    pub withdrawn: bool,
    /// Some learner has ever concluded so, even if a crash made it forget.
    pub committed: bool,
    pub aborted: bool,
}

/// A state of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub regions: [Region; REGIONS],
    pub txns: [Txn; TXNS],
}

impl Register {
    /// The vote in it, durable or not.
    pub fn cast(self) -> Option<Cast> {
        match self {
            Register::Empty => None,
            Register::Written(cast) | Register::Durable(cast) => Some(cast),
        }
    }
}

impl Ballot {
    /// The region has promised to commit, and holds its lock.
    pub fn has_yes(&self) -> bool {
        matches!(self.register.cast(), Some(Cast::Yes | Cast::Firm))
    }

    /// It does not know whether to.
    pub fn is_in_doubt(&self) -> bool {
        self.has_yes() && self.learnt.is_none()
    }

    /// What was written is durable.
    pub fn sync(&mut self) {
        if let Register::Written(cast) = self.register {
            self.register = Register::Durable(cast);
        }
    }

    /// The vote is sent: a provisional one to the gateway, a final one to whoever asked.
    pub fn say(&mut self, cast: Cast) {
        match cast {
            Cast::Yes => self.said.yes = true,
            Cast::Firm => self.said.firm = true,
            Cast::No => self.said.no = true,
        }
    }
}

impl Region {
    /// True if it has not crashed yet, and a crash would destroy something.
    pub fn may_crash(&self) -> bool {
        let volatile = |ballot: &Ballot| ballot.learnt.is_some() || matches!(ballot.register, Register::Written(_));
        !self.crashed && self.ballots.iter().any(volatile)
    }

    /// Loses all but the durable votes.
    pub fn crash(&mut self) {
        self.crashed = true;
        for ballot in &mut self.ballots {
            ballot.learnt = None;
            if let Register::Written(_) = ballot.register {
                ballot.register = Register::Empty;
            }
        }
    }
}

impl Txn {
    /// Somebody has concluded so.
    pub fn conclude(&mut self, end: End) {
        match end {
            End::Committed => self.committed = true,
            End::Aborted => self.aborted = true,
        }
    }
}

impl From<Outcome> for End {
    fn from(outcome: Outcome) -> End {
        match outcome {
            Outcome::Committed => End::Committed,
            Outcome::Aborted => End::Aborted,
        }
    }
}

impl Representative for State {
    fn representative(&self) -> State {
        let mut same = self.clone();
        same.regions.sort_unstable();
        let mut renamed = self.clone();
        renamed.txns.reverse();
        renamed.regions.iter_mut().for_each(|region| region.ballots.reverse());
        renamed.regions.sort_unstable();
        same.min(renamed)
    }
}
