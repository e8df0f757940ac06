//! QuAD: strict two-phase locking and two-phase commit over quorums that follow load and distance.
//!
//! The strongest sites are cores. A core reads at a majority of the cores and writes at all; a slave reads and writes at itself and a
//! majority. Here is what transactions do under one configuration of quorums; [`quorums`] builds them. Source: Fetai, Stiemer and
//! Schuldt, "QuAD: A Quorum Protocol for Adaptive Data Management in the Cloud", sections II and III. What differs from the paper,
//! and why, stands in `docs/decisions/0016-quad.md`.
//!
//! ```text
//!   client        gateway, core or slave      read quorum        write quorum
//!     │  get            │                          │                   │
//!     ├────────────────▶├── Read ─────────────────▶│ S locks           │
//!     │  newest rows    │◀─────────────────── Rows ┤                   │
//!     │◀────────────────┤                          │                   │
//!     │  commit         │                          │                   │
//!     ├────────────────▶├── Prepare (writes) ─────▶├──────────────────▶│ X locks, sync       first round
//!     │                 │◀───────────────────────────────── Prepared ──┤
//!     │                 │ sync: decided            │                   │
//!     │                 ├── Commit (at) ──────────▶├──────────────────▶│ versions, sync      second round
//!     │  committed      │◀──────────────────────────────── Committed ──┤ locks released
//!     │◀────────────────┤
//! ```
//!
//! What holds at all times:
//!
//! 1. Every read quorum meets every write quorum and two write quorums meet, so two transactions that conflict meet at a lock table.
//! 2. Locks are held from their grant to the outcome, over crashes once prepared. A *session* names that time at each replica, and a
//!    transaction prepares only in the sessions in which it read.
//! 3. A transaction that only read commits once all its replicas confirm its sessions: all its locks were held together, when the
//!    commit was asked for.
//! 4. A commit timestamp lies above those of all that it conflicts with: it is above the clocks of all who prepared.
//! 5. The gateway decides, on its disk. Without a decision there the outcome is *abort*; a decision stays until all who prepared know.
//! 6. A client hears *committed* when the whole write quorum has the commit on disk.
//! 7. Nobody deadlocks: [`wound_wait`](crate::wound_wait).
//!
//! | file | role |
//! |---|---|
//! | `message.rs` | what is said |
//! | `records.rs` | what is kept on disk |
//! | `site.rs` | the actor: dispatch, recovery, who is up |
//! | `gateway.rs` | a client's transaction: quorums, newest versions, the two rounds |
//! | `replica.rs` | locks, sessions, prepared transactions |
//! | `quorums/` | which sites are asked |

mod config;
mod gateway;
pub mod message;
#[cfg(feature = "planted")]
pub mod planted;
pub mod quorums;
pub mod records;
mod replica;
mod site;

pub use config::Config;
pub use message::{Note, Promise};
pub use site::{Site, Timer};
