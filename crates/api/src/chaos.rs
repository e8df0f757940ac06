//! `POST /chaos`: faults to inject into a running site.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of `POST /chaos`: a fault of the links between the site that is asked and those of `region`, or only the one of `shard`;
/// without a region, of all its links. Or a load on the site that is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub enum Chaos {
    /// Drop every message.
    Cut {
        /// The region at the other end; all regions if absent.
        region: Option<String>,
        /// The site in it; all its sites if absent.
        shard: Option<u16>,
        /// Which way, seen from the site that is asked.
        #[serde(default)]
        direction: Direction,
    },
    /// Delay the messages that the site that is asked sends.
    Slow {
        /// The region at the other end; all regions if absent.
        region: Option<String>,
        /// The site in it; all its sites if absent.
        shard: Option<u16>,
        /// The delay in milliseconds, 0 to 60,000.
        #[schema(minimum = 0, maximum = 60000)]
        extra_ms: f64,
    },
    /// Keep the site that is asked busy with work for others.
    Load {
        /// Percent of what the site can work for; 0 ends it.
        #[schema(minimum = 0, maximum = 10000)]
        percent: u64,
        /// For so many seconds, 0 to 86,400; until it is ended if absent.
        #[schema(minimum = 0, maximum = 86400)]
        for_s: Option<f64>,
    },
    /// Undo cuts and delays of links.
    Heal {
        /// The region at the other end; all regions if absent.
        region: Option<String>,
        /// The site in it; all its sites if absent.
        shard: Option<u16>,
    },
}

/// Which messages of a link are dropped, seen from the site that is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Those that it sends.
    Out,
    /// Those that it is sent.
    In,
    /// Both.
    #[default]
    Both,
}
