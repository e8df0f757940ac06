//! Catenae: one-shot transactions that regions exchange by epochs and run speculatively, each region for itself.
//!
//! At the end of every epoch each region tells all others what its clients asked in it. Once a region has the batches of all, it
//! knows the epoch; transactions that conflict with no other are answered at once (how long that takes: `docs/measurements.md`, "Epochs of Catenae").
//! Those that conflict pass *transaction chains*, where the faster comes first, and regions vote on the orders that came
//! out. Source: Liu, Wang and Vlassov, "Catenae: Low Latency Transactions across Multiple Data Centers". What differs
//! from the paper, and why, stands in `docs/decisions/0014-catenae.md`, of replication in `0019-catenae-replication.md`.
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
//!    once `f + 1` regions have it on disk (`f` is 0 with `durability = "region"`); nobody hears of an entry, an acknowledgement or a promise that is not on disk.
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
//! | `message.rs` | messages between sites, requests and answers |
//! | `records.rs` | what is kept on disk |
//! | `site.rs` | the actor: dispatch, the timer of epochs |
//! | `context.rs` | what the roles of a site share, and what each may touch in a step |
//! | `log.rs` | streams, epochs and runs, as other roles see them; how much may wait on the way |
//! | `streams/` | all streams at a site: disk and network for their agreements, progress, from disk to serving |
//! | `agreement/mod.rs` | the agreement on one stream at one site, as a machine: events in, effects out |
//! | `agreement/replication.rs` | keeping streams alike |
//! | `agreement/pulling.rs` | what is missing, and who is asked for it; catching up |
//! | `agreement/takeover.rs` | who leads a stream; passing over a silent region; the secondary coordinator |
//! | `stream.rs` | what a region says, as agreed on: one site's view |
//! | `stream_id.rs` | which streams there are, who leads them, which namespaces they carry |
//! | `coordinator/` | a region's requests, sealed epoch by epoch |
//! | `forwarding/` | the same where a region has several coordinators: to the one of a transaction's namespace |
//! | `asked.rs` | a transaction on its way from the client to the answer |
//! | `epoch.rs` | numbers of epochs, and their timestamps |
//! | `epochs.rs` | from agreed batches to settled epochs |
//! | `validation.rs` | votes, fingerprints, verdicts |
//! | `runs.rs` | what is ready is run, a bounded part of it at once |
//! | `ledger.rs`, `access.rs`, `backlog.rs` | what waits for what until it is settled, and how much that is |
//! | `chains.rs` | a region's chains: on one site or on all, and what to do if they do not end |
//! | `chain.rs`, `resolver.rs`, `speculation.rs` | transaction chains: servers, implicit dependencies, one epoch's run on one site |
//! | `crossing.rs` | the same over all sites of a region |
//! | `partition.rs` | the chain server that a key belongs to |
//! | `reads.rs`, `fetch.rs` | read-only transactions |
//! | `administration.rs` | what people are shown of it |
//!
//! Where the paper's sections are. What each demands, how far it is done as printed, and which test guards it: `docs/protocols/catenae.md`.
//!
//! | section | on | code |
//! |---|---|---|
//! | IV | several coordinators | `stream_id.rs`: `coordinator_of`; `forwarding/` |
//! | IV, VIII.B | silent coordinators | `agreement/takeover.rs`: `wants_to_lead` |
//! | V | the end of an epoch | `coordinator/mod.rs`: `seal` |
//! | V.C | repetition | `agreement/replication.rs`: `say` |
//! | VI.A | complete epochs | `streams/mod.rs`: `complete`; `epochs.rs`: `complete` |
//! | VI.B | chain servers | `partition.rs`: `server_of` |
//! | VI.B | chains without cycles | `rhumb_commit::one_shot::operation`: `validate` |
//! | VI.B | the order of servers | `speculation.rs`: `next_visit` |
//! | VI.C | footprints, Rules 1 and 2, the resolver | `chain.rs`: `leave_footprint`, `visit`; `resolver.rs`: `claim` (Rule 2), `put_before` (Figure 4) |
//! | VI.D.1 | transactions without conflict | `ledger.rs`: `register` |
//! | VI.D.2 | votes | `validation.rs`: `verdicts` |
//! | VI.E | execution | `ledger.rs`: `place`, `settle`; `runs.rs` |
//! | VI.E | commit timestamps | `ledger.rs`: `take_ready`; `epoch.rs`: `timestamp` |
//! | VI.F | reads | `reads.rs` |

mod access;
pub mod administration;
pub mod agreement;
mod asked;
mod backlog;
#[cfg(test)]
mod bench;
pub mod chain;
mod chains;
mod config;
mod context;
mod coordinator;
mod crossing;
pub mod epoch;
mod epochs;
mod fetch;
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
mod resolver;
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
