//! What the log of the catalog consists of: changes of the quotas, and who asked for them.

use crate::lost::{Counted, Loss};
use crate::name::Name;
use crate::operation::RequestKey;
use crate::spec::Spec;
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Names a quota for ever; its name may be given to another after it was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuotaId(pub u64);

/// A change of the quotas.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Change {
    Create {
        name: Name,
        spec: Spec,
    },
    SetLimit {
        name: Name,
        limit: u64,
    },
    Drop {
        name: Name,
    },
    /// Clients of lost sites hold so many tokens less than is booked for them.
    Free {
        /// The quota that had this name when it was asked for.
        quota: QuotaId,
        name: Name,
        amount: u64,
        id: Option<RequestKey>,
    },
    /// A site is lost for ever; the cluster has `of` sites.
    Lost {
        loss: Loss,
        of: u32,
    },
    /// What lost sites have in quotas ([`lost`](crate::lost)).
    Book {
        losses: u32,
        counted: BTreeMap<QuotaId, Counted>,
    },
    /// Closing quotas end, of which clients hold so many tokens. Counted when so many sites were lost.
    End {
        losses: u32,
        held: BTreeMap<QuotaId, u64>,
    },
}

/// A change, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// The site that proposed it first.
    pub site: SiteId,
    /// Its number among those of that site, which are made in order.
    pub number: u64,
    /// The change.
    pub change: Change,
}

impl fmt::Display for QuotaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Create { name, spec } => write!(f, "create {name} limit {}", spec.limit),
            Change::SetLimit { name, limit } => write!(f, "limit {name} {limit}"),
            Change::Drop { name } => write!(f, "drop {name}"),
            Change::Free { name, amount, .. } => write!(f, "free {amount} of {name}"),
            Change::Lost { loss, .. } => write!(f, "lost {}", loss.site),
            Change::Book { losses, counted } => {
                write!(f, "book {losses} losses:")?;
                counted.iter().try_for_each(|(id, counted)| write!(f, " {id}{:+}", counted.beyond))
            }
            Change::End { held, .. } => {
                f.write_str("end")?;
                held.iter().try_for_each(|(id, held)| write!(f, " {id} of which {held} are held"))
            }
        }
    }
}
