//! Replicated Commit: serializable transactions that commit in one wide-area round trip to the nearest majority.
//!
//! Instead of replicating a log and running two-phase commit on top, every region runs two-phase commit by itself, and
//! the regions vote. Source: Mahmoud et al., "Low-Latency Multi-Datacenter Databases using Replicated Commit", VLDB
//! 2013, section 3. What differs from the paper, and why, stands in `docs/decisions/`.
//!
//! ```text
//!   client        gateway          coordinator in each region            cohorts of that region
//!     │  commit      │ Accept           │                                      │
//!     ├─────────────▶├─────────────────▶│ Prepare                              │
//!     │              │ (to all regions) ├─────────────────────────────────────▶│ lock, check, sync
//!     │              │                  │◀──────────────────────────  Prepared ┤
//!     │              │             Vote │ sync                                 │
//!     │  committed   │◀─────────────────┤                                      │
//!     │◀─────────────┤ at a majority    │                                      │
//!     │              │ Decided          │ Apply                                │
//!     │              ├─────────────────▶├─────────────────────────────────────▶│ apply, release
//!     │              │                  │◀────────────────────────────  Applied ┤
//! ```
//!
//! With one site per region, coordinator and cohort are the same site and its two syncs are one. Where that is the only region, nothing is written
//! to apply a commit: see `docs/decisions/0036-one-phase.md`.
//!
//! What holds at all times:
//!
//! 1. A region's vote is on disk before anybody hears it, and a final one never changes. Only the gateway counts a yes
//!    that is not final, and only the gateway takes one back ([`votes`](rhumb_commit::votes)).
//! 2. From its yes to the outcome a region keeps the attempt's exclusive locks, and firm shared locks on what it read.
//! 3. A region votes yes only if it knows no version newer than those read, and nothing written or read at or above the
//!    commit timestamp on the keys written.
//! 4. Hence any two conflicting transactions that commit were prepared one after the other in some common region, in
//!    the order of their timestamps; the order of timestamps is a serial order, and agrees with real time for
//!    everybody who reads from a majority.
//! 5. A committed attempt stands in the log of every shard replica that voted yes, until every peer has taken it over.
//!
//! | file | role |
//! |---|---|
//! | `message/` | messages between sites, requests and answers |
//! | `records.rs` | what is kept on disk |
//! | `site.rs` | the actor |
//! | `roles/` | which role handles what arrives; what concerns several roles of a site |
//! | `context.rs` | what the roles of a site share, and what each may touch in a step |
//! | `views.rs` | what each role shows to the others of its site |
//! | `job.rs` | what a site waits for: timers, its disk |
//! | `recovery.rs` | the order in which records are read from disk |
//! | `roles/recovery.rs` | from disk to serving |
//! | `gateway/` | the client's side: reads from regions, evidence, attempts, outcome |
//! | `gateway/handoff.rs` | a commit run from a better place |
//! | `coordinator/` | one region's vote and its two-phase commit |
//! | `coordinator/attempt.rs` | one attempt as it knows it |
//! | `coordinator/voting.rs`, `coordinator/outcomes.rs` | the vote; how attempts ended, and who acts on it |
//! | `coordinator/doubts.rs`, `coordinator/memory.rs` | what is asked about those in doubt; how long they are kept |
//! | `coordinator/resolving.rs`, `coordinator/examination.rs`, `resolution.rs` | what is made of attempts that lost regions may have decided |
//! | `trace.rs` | what rows say of attempts that others have forgotten |
//! | `cohort/` | one shard replica: prepare, apply |
//! | `cohort/floors.rs` | up to where a snapshot must reach that sees a commit |
//! | `cohort/reads.rs` | the four kinds of read |
//! | `cohort/doubts.rs` | attempts in doubt that outlive their epoch, regions lost |
//! | `mover/` | one shard replica: from one placement to the next |
//! | `mover/joining.rs` | a copy of all rows where there was none |
//! | `measure.rs` | round trips and workload, told to all for the planner |
//! | `catch_up/` | one shard replica: taking over what it missed; closed timestamps |
//!
//! Where the paper's sections are. What each demands, how far it is done as printed, and which test guards it:
//! `docs/protocols/replicated-commit.md`. Its client is the gateway here, its datacenter a region; a region is an acceptor, its yes an acceptance.
//!
//! | section | on | code |
//! |---|---|---|
//! | 3.2 | buffered writes | `rhumb_commit::buffer` |
//! | 3.2.1 | reads at a majority | `gateway/reads.rs`: `request_rows`, `on_rows`; `gateway/merge.rs`: `merge_keys` |
//! | 3.2.1 | shared locks | `cohort/reads.rs`: `read_locked` |
//! | 3.2.1 | exclusive locks | `rhumb_commit::locks`: `take_over` |
//! | 3.2.2, lines 1 and 2 | the client | `gateway/commit.rs`: `attempt`, `send_accepts` |
//! | 3.2.2, lines 3, 4 and 6 | coordinators and their cohorts | `coordinator/voting.rs`: `have_prepared`, `on_prepared` |
//! | 3.2.2, line 5 | cohorts that prepare | `cohort/mod.rs`: `check_locks`, `take_locks`; `cohort/prepare.rs`: `check_rows`, `promise` |
//! | 3.2.2 | a datacenter that cannot prepare | `coordinator/voting.rs`: `on_cannot_prepare` |
//! | 3.2.2, line 8 | votes | `coordinator/voting.rs`: `vote` |
//! | 3.2.2 | the outcome | `rhumb_commit::votes`: `outcome_at_gateway` |
//! | 3.2.2, lines 9 to 12 | cohorts that apply | `coordinator/outcomes.rs`: `distribute`; `cohort/prepare.rs`: `apply`; `cohort/mod.rs`: `remove_entry` |
//! | 3.3 | denied reads | `gateway/reads.rs`: `on_denied` |
//! | 3.3 | optimistic reads | `gateway/reads.rs`: `start_read` |

mod catch_up;
mod cohort;
mod config;
mod context;
mod coordinator;
mod gateway;
mod job;
mod lookup;
mod measure;
pub mod message;
mod mover;
mod peers;
pub mod planted;
pub mod records;
mod recovery;
pub mod resolution;
mod roles;
mod site;
#[cfg(test)]
mod testing;
mod trace;
mod views;

pub use config::Config;
pub use job::{ReadRetry, Timer};
pub use message::{Admin, Answer, Measured, Note, Promise, Request, Status};
pub use site::Site;
