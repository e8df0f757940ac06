//! SQL over simulated sites: the sessions, the catalog, the planner and the gateways of the product, in the virtual time of [`rhumb_sim`].
//!
//! ```text
//!   clients (work/) ── link ── rhumb_sql::embedded ── gateways of rhumb_node ── port ── World: the sites' actors
//!      └── shared: history, ledgers ──→ checks          │                        │
//!   executor: polls all of them by hand, one thread     └── virtual time ────────┘
//! ```
//!
//! What clients do is futures, polled by hand on one thread until none can go on; then the world goes on by a millisecond, its answers and
//! timers wake some of them, and so on. Time, randomness and the order of all that is decided by the seed alone.
//!
//! A site that crashes takes its sessions along, and its next incarnation begins with an empty memory of the catalog.

mod cluster;
mod executor;
mod lane;
mod ledger;
mod link;
mod port;
mod protocol;
mod scenario;
mod shape;
mod shared;
mod sites;
mod time;
mod work;

pub use protocol::Protocol;
pub use scenario::Sql;
