//! The forms of the protocol that section 5.1 compares.

use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_plan::{Model, Protocol, Reads};

/// Where a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// Maj0: at a majority of the active replicas.
    Majority,
    /// Maj1: at the nearest active replica.
    Optimistic,
    /// Maj2: at the nearest replica, active or passive; here every region has one.
    Passive,
}

/// Who runs a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Handoff {
    /// The client's own region.
    No,
    /// As in section 5.1: São Paulo hands over to Oregon, Ireland to California.
    Paper,
    /// Whoever ends it soonest, as the planner says.
    Planned,
}

/// A form of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Form {
    /// Where it reads.
    pub reading: Reading,
    /// Who runs a commit.
    pub handoff: Handoff,
}

const fn form(reading: Reading, handoff: Handoff) -> Form {
    Form { reading, handoff }
}

impl Form {
    /// Maj0.
    pub const MAJ0: Form = form(Reading::Majority, Handoff::No);
    /// Maj0h.
    pub const MAJ0H: Form = form(Reading::Majority, Handoff::Paper);
    /// Maj1.
    pub const MAJ1: Form = form(Reading::Optimistic, Handoff::No);
    /// Maj1h.
    pub const MAJ1H: Form = form(Reading::Optimistic, Handoff::Paper);
    /// Maj2.
    pub const MAJ2: Form = form(Reading::Passive, Handoff::No);
    /// Maj2h.
    pub const MAJ2H: Form = form(Reading::Passive, Handoff::Paper);
    /// Maj2h with the planner's handoffs in place of the paper's.
    pub const MAJ2P: Form = form(Reading::Passive, Handoff::Planned);

    /// The six of the paper, each without handoff before it with, and the one that the planner proposes.
    pub const ALL: [Form; 7] = [Form::MAJ0, Form::MAJ0H, Form::MAJ1, Form::MAJ1H, Form::MAJ2, Form::MAJ2H, Form::MAJ2P];
    /// Those of the paper by reads: without handoff, and with.
    pub const PAIRS: [[Form; 2]; 3] = [[Form::MAJ0, Form::MAJ0H], [Form::MAJ1, Form::MAJ1H], [Form::MAJ2, Form::MAJ2H]];

    /// What the paper calls it.
    pub fn name(self) -> String {
        let reading = match self.reading {
            Reading::Majority => "Maj0",
            Reading::Optimistic => "Maj1",
            Reading::Passive => "Maj2",
        };
        let handoff = match self.handoff {
            Handoff::No => "",
            Handoff::Paper => "h",
            Handoff::Planned => "h, planned",
        };
        format!("{reading}{handoff}")
    }

    /// How its transactions read.
    pub fn read_mode(self) -> ReadMode {
        match self.reading {
            Reading::Majority => ReadMode::Locking,
            Reading::Optimistic => ReadMode::Active,
            Reading::Passive => ReadMode::Optimistic,
        }
    }

    /// How they commit.
    pub fn commit_options(self) -> CommitOptions {
        CommitOptions { two_rounds: true, handoff: self.handoff != Handoff::No }
    }

    /// What the planner knows of it.
    pub fn model(self) -> Model {
        let reads = match self.reading {
            Reading::Majority => Reads::Majority,
            Reading::Optimistic => Reads::Optimistic,
            Reading::Passive => Reads::Passive,
        };
        Model { protocol: Protocol::TwoRounds, reads, handoff: self.handoff != Handoff::No, read_processing_us: 0 }
    }
}
