//! Paxos Commit over two-phase locking, and over optimistic concurrency control: the two protocols that Catenae is measured
//! against, for the same one-shot transactions and with the same answers.
//!
//! Both make two rounds over the wide area, each to a majority of the regions. In the first the transaction is executed:
//! regions tell the rows that it touches, and its coordinator works out from the newest of each what it writes. In the second the
//! regions vote on that. Source: the baselines in section VII.A of Liu, Wang and Vlassov, "Catenae"; Gray and
//! Lamport, "Consensus on Transaction Commit". The two differ in one thing only, when a region's locks are taken:
//!
//! | | first round | second round |
//! |---|---|---|
//! | two-phase locking | waits for all locks (wound-wait), then reads | yes if it holds them all |
//! | optimistic | reads, without a lock | yes if it gets all locks at once and nothing read has changed |
//!
//! ```text
//!   client            coordinator of its region                 replicas, its own among them
//!     │  run              │                                          │
//!     ├──────────────────▶├── Execute (operations) ─────────────────▶│ locks, reads
//!     │                   │◀──────────────────────── Executed (rows) ┤
//!     │                   │  a majority: the newest of each row, writes, timestamp
//!     │                   ├── Prepare (versions, writes, timestamp) ▶│ validates, votes, sync
//!     │                   │◀─────────────────────────── Voted (yes) ─┤
//!     │  ran              │  a majority of yes                       │
//!     │◀──────────────────┤── Decided (writes) ─────────────────────▶│ applies, releases
//! ```
//!
//! What holds at all times:
//!
//! 1. A region's vote on an attempt is a write-once register ([`votes`](rhumb_commit::votes)): on disk before anybody hears of it, never
//!    changed, a refusal as much as a yes. An attempt commits if and only if a majority of all regions votes yes. So anybody
//!    works out the outcome; nobody need be alive for it but those who voted.
//! 2. A yes says: locks on all that the attempt touches are held here from now until its outcome is known here, and no version here is
//!    newer than the one that the attempt read.
//! 3. Two attempts that commit and conflict share a region that voted yes on both. There the second one's yes came after
//!    the first one's outcome was applied, so it has read what the first wrote. Hence histories are strictly serializable.
//! 4. A written key's version lies above all timestamps at which the key was read by an attempt voted for here: timestamps rise along
//!    every conflict.
//! 5. Locks of the first round are kept in memory only and promise nothing: a restart loses them, and the region then votes no.
//!
//! A region whose coordinator is silent asks all regions for their votes on an attempt in doubt; a region without a vote votes no. With a region out
//! of reach and the votes of the others split, that waits for the region.
//!
//! Simplified, as these are for measuring: one site per region; registers are kept for ever; a region that misses a `Decided` is not
//! brought up to date, as majorities mask it.
//!
//! | file | role |
//! |---|---|
//! | `message.rs` | messages between sites, requests and answers |
//! | `records.rs` | what is kept on disk |
//! | `site.rs` | the actor: dispatch, timer, recovery |
//! | `context.rs` | what its roles share |
//! | `coordinator.rs` | a client's transaction, from its operations to its answer |
//! | `replica.rs` | a region's part: execution, vote, outcome |
//! | `reading.rs` | reading the rows that a transaction touches; bringing together what regions read |
//! | `control.rs`, `locking.rs`, `optimistic.rs` | concurrency control |

mod config;
mod context;
mod control;
mod coordinator;
mod locking;
mod message;
mod optimistic;
pub mod planted;
mod reading;
mod records;
mod replica;
mod site;

pub use config::{Concurrency, Config};
pub use message::{Note, Promise, Proposal};
pub use site::{Site, Timer};
