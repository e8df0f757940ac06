//! What a quota site is asked, and what it answers.

use crate::info::{Info, Read};
use crate::name::Name;
use crate::operation::{Done, Operation};
use crate::refusal::Refusal;
use crate::spec::Spec;
use rhumb_core::{SiteId, Table};
use serde::{Deserialize, Serialize};

/// What a client asks. Each is answered once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Carry out operations, each for itself. Answered with [`Answer::Ran`] once each has its outcome.
    Run(Vec<Operation>),
    /// Make a quota. Answered, as the next two, with [`Answer::Changed`].
    Create {
        /// Its name.
        name: Name,
        /// What it is to be.
        spec: Spec,
    },
    /// Change a limit.
    SetLimit {
        /// Of which quota.
        name: Name,
        /// To how many tokens.
        limit: u64,
    },
    /// End a quota.
    Drop {
        /// Which.
        name: Name,
    },
    /// Declare a site lost for ever. Answered with [`Answer::Changed`]; once more, with the same.
    DeclareLost {
        /// Which.
        site: SiteId,
    },
    /// Look at a quota. Answered with [`Answer::Got`].
    Get {
        /// Which.
        name: Name,
        /// How far.
        read: Read,
    },
    /// Look at all quotas at this site. Answered with [`Answer::Listed`].
    List,
    /// How the site is. Answered with [`Answer::Status`].
    Status,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// What became of each operation, in the order asked. What was done is durable.
    Ran(Vec<Result<Done, Refusal>>),
    /// The change is decided by a majority of sites, and known at this one; or not.
    Changed(Result<(), Refusal>),
    /// The quota, or why not.
    Got(Result<Info, Refusal>),
    /// All quotas, by name.
    Listed(Vec<Info>),
    /// How the site is.
    Status(Status),
}

/// How a quota site is, for operators and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// It has recovered from its disk.
    pub serving: bool,
    /// Quotas known.
    pub quotas: usize,
    /// Operations that wait for tokens.
    pub waiting: usize,
    /// Quotas with a redistribution under way at this site.
    pub redistributing: usize,
    /// Sites declared lost, as far as this one knows; it may be among them.
    pub lost: Vec<SiteId>,
    /// Quotas in which it is not booked yet what lost sites have.
    pub unsettled: usize,
    /// How full its tables and queues are.
    #[serde(skip)]
    pub tables: Vec<Table>,
}
