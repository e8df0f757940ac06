//! Catenae: one-shot transactions that regions exchange by epochs and run speculatively, each region for itself.
//!
//! At the end of every epoch each region tells all others what its clients asked in it. Once a region has the batches of all, it
//! knows the epoch; transactions that conflict with no other are answered at once, about half a round trip after they were
//! sent. Those that conflict pass *transaction chains*, where the faster comes first, and regions vote on the orders that came
//! out. Source: Liu, Wang and Vlassov, "Catenae: Low Latency Transactions across Multiple Data Centers". What differs
//! from the paper, and why, stands in `docs/decisions/0014-catenae.md`.
//!
//! ```text
//!   client            coordinator of its region              coordinators of the others
//!     │  run              │  end of the epoch: sync                   │
//!     ├──────────────────▶├── Epoch (batch, votes) ──────────────────▶│ sync         and theirs the other way
//!     │                   │◀──────────────────────────────────── Held ┤
//!     │                   │  all batches of the epoch here            │
//!     │  ran              │                                           │
//!     │◀──────────────────┤  no conflict: run                         │ run
//!     │                   │                                           │
//!     │                   │  conflict: chains, then the order         │ chains
//!     │                   ├── Epoch (…, vote) ───────────────────────▶│
//!     │                   │◀─────────────────────── Epoch (…, vote) ──┤
//!     │◀──────────────────┤  a majority alike: run                    │ run
//! ```
//!
//! What holds at all times:
//!
//! 1. What a region says in which epoch is agreed on: a [stream] per coordinator, decided by ballots. An entry counts
//!    once `f + 1` regions have it on disk; nobody hears of an entry, an acknowledgement or a promise that is not on disk.
//! 2. All that is executed follows from the streams alone: which transactions an epoch has, which of them conflict, which
//!    votes count. Clocks only say when an epoch ends.
//! 3. Conflicting transactions of different epochs are ordered by epoch; those of one epoch by votes: a majority's equal
//!    fingerprints, and by identifier where no majority can be.
//! 4. Hence all regions settle the same, and timestamps (epoch and depth) rise along every conflict.
//! 5. A transaction asked for after another was answered, anywhere, lies in a later epoch: the answer took a batch of this region,
//!    too, or the agreement that it has none.
//!
//! | file | role |
//! |---|---|
//! | `message.rs` | what is said |
//! | `records.rs` | what is kept on disk |
//! | `site.rs` | the actor: dispatch, the timer of epochs |
//! | `recovery.rs` | from disk to serving |
//! | `coordinator.rs`, `desk.rs` | a region's requests, sealed epoch by epoch |
//! | `forwarding.rs`, `away.rs` | the same where a region has several coordinators: to the one of a transaction's namespace |
//! | `stream_id.rs` | which streams there are, who leads them, which namespaces they carry |
//! | `stream.rs` | what a region says, as agreed on: one site's view |
//! | `agreement/mod.rs` | the agreement on one stream at one site, as a machine: events in, effects out |
//! | `agreement/replication.rs` | keeping streams alike |
//! | `agreement/pulling.rs` | what is missing, and who is asked for it; catching up |
//! | `agreement/takeover.rs` | who leads a stream; passing over a silent region; the secondary coordinator |
//! | `replication.rs` | what the machines of a site are told, and what is done about their effects |
//! | `epochs.rs`, `backlog.rs` | from agreed batches to settled epochs, and how much may wait on the way |
//! | `chain.rs`, `resolver.rs`, `speculation.rs` | transaction chains: servers, implicit dependencies, one epoch's run on one site |
//! | `crossing.rs` | the same over all sites of a region |
//! | `chains.rs` | which of the two, and what to do if it does not end |
//! | `validation.rs` | votes, fingerprints, verdicts |
//! | `ledger.rs`, `access.rs` | what waits for what until it is settled |
//! | `runs.rs` | what is ready is run, a bounded part of it at once |
//! | `reads.rs`, `fetch.rs` | read-only transactions |

mod access;
pub mod administration;
pub mod agreement;
mod asked;
mod backlog;
pub mod chain;
mod chains;
mod config;
mod context;
mod coordinator;
pub mod crossing;
pub mod epoch;
mod epochs;
pub mod fetch;
mod forwarding;
pub mod ledger;
mod log;
#[cfg(test)]
mod lone;
pub mod message;
mod partition;
pub mod planted;
mod reads;
pub mod records;
pub mod resolver;
mod runs;
mod site;
pub mod speculation;
pub mod stream;
pub mod stream_id;
mod streams;
pub mod validation;

pub use config::{ChainSites, Config, Durability};
pub use message::{Admin, Answer, Note, Promise, Request, Settling, Status};
pub use site::{SITES_PER_REGION_MAX, Site, Timer};
