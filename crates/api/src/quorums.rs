//! `/quorums`: the quorums of databases of protocol quad, as one site sees them. Sites are named as `ireland/0`.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The body of `POST /quorums`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
pub enum QuorumChange {
    /// Sites are to be members no more.
    Leave {
        /// Who leaves, each as in REGION/SHARD: other sites than the one that is asked.
        #[schema(examples(json!(["ireland/0"])))]
        sites: Vec<String>,
        /// They will not come back with what they had on their disks, so their messages are not waited for. Said of sites that still run,
        /// it lets their clients read old data, and be told that something is committed which the others will not have.
        #[serde(default)]
        lost: bool,
    },
    /// The site that is asked wants to be a member.
    Join,
}

/// The quorums: the answer to `GET /quorums`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Quorums {
    /// The site whose view it is.
    pub site: String,
    /// The epoch that it is in.
    pub epoch: u64,
    /// How many cores there are to be: a number, or `auto`.
    pub cores: String,
    /// What brought the configuration about, in a word.
    pub cause: String,
    /// The same for people.
    pub why: String,
    /// When this site adopted it, in microseconds since the Unix epoch; null if it has not changed since the site started.
    #[schema(required)]
    pub since_us: Option<u64>,
    /// The configuration is being changed.
    pub sealed: bool,
    /// The site that plans changes; null if there is none.
    #[schema(required)]
    pub planner: Option<String>,
    /// All members, and the site itself.
    pub sites: Vec<QuorumSite>,
    /// What would change now; null while nothing is measured.
    #[schema(required)]
    pub plan: Option<QuorumPlan>,
}

/// What a site takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuorumRole {
    /// It is in quorums of others.
    Core,
    /// It is in its own quorums alone.
    Slave,
    /// It is no member.
    None,
}

/// A site as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuorumSite {
    /// Its name.
    pub site: String,
    /// Whether it is a core.
    pub role: QuorumRole,
    /// It was heard of lately.
    pub up: bool,
    /// The requests that its clients had in progress in its last period, over its capacity; null if not known.
    #[schema(required)]
    pub load: Option<f64>,
    /// The load expected in the next period; null if not known.
    #[schema(required)]
    pub load_expected: Option<f64>,
    /// The smoothing factor of that forecast that has erred least so far; null if not known.
    #[schema(required)]
    pub alpha: Option<f64>,
    /// How strong it is; null if not known.
    #[schema(required)]
    pub score: Option<f64>,
    /// The sites that its reads ask now; empty if these are no quorum.
    pub reads: Vec<String>,
    /// The sites that its writes ask; likewise.
    pub writes: Vec<String>,
    /// It holds everything that was committed before the epoch.
    pub caught_up: bool,
    /// The rows that it holds.
    pub rows: u64,
    /// The rows that were written there in this epoch.
    pub written: u64,
}

/// The change that the measurements ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuorumPlan {
    /// True if a change is due.
    pub due: bool,
    /// Why, or why not.
    pub why: String,
    /// The cores that the measurements ask for, the strongest first.
    pub cores: Vec<String>,
    /// Of these, those that are none now.
    pub promoted: Vec<String>,
    /// Cores of now that would be none.
    pub demoted: Vec<String>,
    /// Sites that would ask other cores.
    pub reassigned: Vec<String>,
    /// The mean score of all quorums as they are.
    pub mean_score: f64,
    /// The mean score of all quorums as they would be.
    pub mean_score_then: f64,
    /// The difference.
    pub gain: f64,
    /// The cost of the copies that the promoted have to take over, in the unit of the gain.
    pub cost: f64,
    /// Lower gains are not worth an interruption.
    pub gain_min: f64,
    /// Why so many cores; null unless `cores` is `auto`.
    #[schema(required)]
    pub kappa: Option<String>,
}

impl fmt::Display for QuorumRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuorumRole::Core => "core",
            QuorumRole::Slave => "slave",
            QuorumRole::None => "none",
        })
    }
}
