//! What a site keeps of Avantan\[\*\] on its disk.

use crate::list::{Entry, List};
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Instance {
    /// Who leads it.
    pub leader: SiteId,
    /// Its number among those of that leader, from 1.
    pub number: u64,
}

/// What must not be forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    /// The number of this site's last own instance.
    pub number: u64,
    /// Of each leader, the number up to which all instances are over for this site.
    pub over: BTreeMap<SiteId, u64>,
    /// The instance that this site is in.
    pub current: Option<Current>,
}

/// The instance that a site is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Current {
    /// Which.
    pub instance: Instance,
    /// The offer that is frozen for it.
    pub entry: Entry,
    /// The list, once accepted.
    pub accepted: Option<List>,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.leader, self.number)
    }
}
