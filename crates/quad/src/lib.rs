//! QuAD: strict two-phase locking and two-phase commit over quorums that follow load and distance.
//!
//! The strongest sites are cores, the others slaves; `docs/quad.md` says whom each asks. Roles and quorums change while clients run. Here is what
//! transactions do under one configuration; [`quorums`] builds quorums, and `mover.rs` shows how one configuration follows another. Source: Fetai,
//! Stiemer and Schuldt, "QuAD: A Quorum Protocol for Adaptive Data Management in the Cloud", sections II to IV. What differs from the paper, and
//! why, stands in `docs/decisions/0016-quad.md`.
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
//!     │                 ├── Commit (at) ──────────▶├──────────────────▶│ that it commits, sync   second round
//!     │  committed      │◀──────────────────────────────── Committed ──┤
//!     │◀────────────────┤                          │◀──── Committed ───┤ of all: versions shown, locks released
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
//! 6. A client hears *committed* when the whole write quorum has the commit on disk; nobody is shown what was written before.
//! 7. Nobody deadlocks: [`wound_wait`](rhumb_commit::wound_wait).
//! 8. There is one configuration for each epoch, the same at all sites. A site serves only what was said in its own epoch, and nothing
//!    once it is sealed.
//! 9. A configuration comes into being only when one of its write quorums holds all that was acknowledged or shown before.
//!
//! A role is a struct that alone changes its state; its methods take what arrives and the context of the step, and return what they want
//! of another role.
//!
//! | file | role |
//! |---|---|
//! | `message.rs` | what sites say to one another |
//! | `request.rs` | what clients and operators ask |
//! | `records.rs` | what is kept on disk |
//! | `site.rs` | the actor: dispatch, recovery, the end of an epoch |
//! | `context.rs` | what the roles of a site share, and what each may touch in a step |
//! | `peers.rs` | who is up |
//! | `gateway/` | a client's transaction: quorums, newest versions, the two rounds |
//! | `replica/` | locks, sessions, prepared transactions |
//! | `quorums/` | which sites are asked |
//! | `configuration.rs` | epochs, and which sets of sites make a change safe |
//! | `mover.rs`, `acceptor.rs` | a change: who brings it about; who seals, accepts and adopts |
//! | `reconcile.rs`, `source.rs` | difference objects: a site gets what it lacks; what it tells others |
//! | `monitor/`, `manager.rs` | what is measured; which change is due |
//! | `links.rs` | who is fit to be a core while links are cut |
//! | `leaving.rs` | a site leaves, as an operator says |
//! | `explanation.rs`, `administration.rs` | what a site says of all that to operators, and what they may change |
//! | `unnamed.rs` | what waits for the clock's bound on disk |
//! | `injected_load.rs` | work for others that keeps a site busy, to try the rest out |
//!
//! Where the paper's sections are. What each demands, how far it is done as printed, and which test guards it: `docs/protocols/quad.md`.
//!
//! | section | on | code |
//! |---|---|---|
//! | II-A, III-A | quorums | `quorums/system.rs`: `read`, `write` |
//! | II-B | reads | `gateway/reads.rs`: `on_rows` |
//! | II-B | locks, and both rounds | `gateway/commit.rs`, `replica/commit.rs` |
//! | III-A | cores | `quorums/policy.rs`: `cores_and_slaves` |
//! | III-A, (4) to (7) | slaves | `quorums/assignment.rs`: `assign`, `penalty` |
//! | III-B, (8) | forecasts | `quorums/forecast.rs`: `observe` |
//! | III-B | periods, and what a change is worth | `manager.rs`: `plan`; `quorums/gain.rs`: `weigh`, `mean_score` |
//! | III-B | sites that join | `quorums/scores.rs`: `strongest` |
//! | IV | silent cores | `peers.rs`: `answered_since`; `manager.rs`: `plan` |
//! | IV | transactions while quorums change | `gateway/mod.rs`: `waits`, `interrupt` |
//! | IV | agreement on the quorums | `mover.rs`, `acceptor.rs` |
//! | IV | difference objects | `records.rs`: `put_versions`; `replica/commit.rs`: `on_settled` |
//! | IV | reconciliation | `reconcile.rs`: `on_compared`, `on_copies` |
//!
//! Of the paper, II-A and III-A are in `quorums/`, II-B in `gateway/` and `replica/`, III-B in `monitor/` and `manager.rs`, IV in
//! `mover.rs`, `acceptor.rs`, `reconcile.rs` and `configuration.rs`. There is no QuAD-Manager.

mod acceptor;
pub mod administration;
mod config;
mod configuration;
mod context;
mod explanation;
mod gateway;
mod injected_load;
mod leaving;
mod links;
mod manager;
pub mod message;
mod monitor;
mod mover;
mod peers;
pub mod planted;
pub mod quorums;
mod reconcile;
pub mod records;
mod replica;
pub mod request;
mod site;
mod source;
#[cfg(test)]
mod testing;
mod unnamed;

pub use config::{Adaptation, Availability, Config, INJECTED_LOAD_MAX_PERCENT, LOAD_MAX_PPM};
pub use configuration::{Carried, Cause, Configuration, Cores, Epoch, Goal, Stamped, carries};
pub use context::Timer;
pub use explanation::{Explanation, Role, SiteFacts, Tally};
pub use manager::{GAIN_MIN, Plan};
pub use message::{Note, Promise};
pub use request::{Admin, Answer, InjectedLoad, Leave, Request};
pub use site::Site;
