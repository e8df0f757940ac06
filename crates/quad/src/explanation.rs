//! A site's explanation of its quorums: the role of each site, what was measured, what would change now and why. It comes from the same function that
//! decides (`manager.rs`), so that it cannot state a rule that is not followed.

use super::configuration::{Cause, Cores, Epoch};
use super::manager::Plan;
use rhumb_commit::reason::Reason;
use rhumb_core::{SiteId, Table, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A site's view of the quorums.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Whose view it is.
    pub site: SiteId,
    /// The epoch that it is in.
    pub epoch: Epoch,
    /// How many cores there are to be.
    pub cores: Cores,
    /// What brought the configuration about.
    pub cause: Cause,
    /// The same for people.
    pub why: Reason,
    /// The epoch is sealed here: the configuration is being changed.
    pub sealed: bool,
    /// All members, this site, and those who ask to join.
    pub sites: Vec<SiteFacts>,
    /// The site that plans: the first member that is up.
    pub planner: Option<SiteId>,
    /// What would change at the end of a period; none if quorums do not follow what is measured.
    pub plan: Option<Plan>,
    /// Transactions that wait for an outcome here, or are decided and not known to all.
    pub unresolved: usize,
    /// What was counted in this incarnation of the site.
    pub tally: Tally,
    /// How full its tables and queues are.
    pub tables: Vec<Table>,
}

/// What a site is in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is in quorums of others.
    Core,
    /// It is in its own alone.
    Slave,
    /// It takes no part.
    NonMember,
}

/// What is known of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteFacts {
    /// Which.
    pub site: SiteId,
    /// What it is.
    pub role: Role,
    /// It has answered lately.
    pub up: bool,
    /// What it had to do in its last period, over its capacity.
    pub load: Option<f64>,
    /// The same as expected of the next period, and the smoothing factor that speaks.
    pub forecast: Option<(f64, f64)>,
    /// How strong it is.
    pub score: Option<f64>,
    /// Whom a read at this site asks now, if there is such a quorum.
    pub reads: BTreeSet<SiteId>,
    /// Whom a write asks.
    pub writes: BTreeSet<SiteId>,
    /// It holds all that was committed before its epoch, as far as is known.
    pub caught_up: bool,
    /// Rows there.
    pub rows: u64,
    /// Rows written in the epoch there.
    pub written: u64,
}

/// What a site counts of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it stopped serving an epoch.
    pub sealed: u64,
    /// Rows that it got from others because it lacked them.
    pub copied: u64,
    /// Configurations that it adopted.
    pub changes: BTreeMap<Cause, u64>,
    /// When it adopted the last one.
    pub since: Option<Time>,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Core => "core",
            Role::Slave => "slave",
            Role::NonMember => "none",
        })
    }
}
