//! What every other crate of Rhumb stands on: names, keys, time, the shape of a cluster, and the contract of an actor.
//!
//! Nothing here reads a clock, an entropy source, a socket or a file. Time comes in as an argument, randomness from a
//! seed, and the outside world is a list of [`Effect`](actor::Effect)s that a driver carries out.

pub mod actor;
pub mod agreed;
pub mod ballot;
pub mod clock_offset;
pub mod collect;
pub mod csv_rows;
pub mod fields;
pub mod hlc;
pub mod ids;
pub mod inspect;
pub mod jobs;
pub mod key;
pub mod record;
pub mod rng;
pub mod rtt;
pub mod rules;
pub mod time;
pub mod topology;
pub mod wan;
pub mod work;

pub use actor::{Actor, Batch, Body, Effects, Input, Load, Loaded, Row};
pub use ballot::{Acceptor, Ballot};
pub use clock_offset::ClockOffsets;
pub use hlc::{HybridClock, Timestamp};
pub use ids::{RegionId, SiteId, TxnId};
pub use inspect::{Inspect, Table};
pub use jobs::Jobs;
pub use key::{Key, KeyRange, Value};
pub use rng::Rng;
pub use rtt::RttMatrix;
pub use rules::Rules;
pub use time::{Span, Time};
pub use topology::Topology;
