//! A replicated log per shard, and two-phase commit across the leaders of the logs: the protocol that Replicated Commit is measured against.
//!
//! A client hears that its transaction committed once the entry that says so is on the disks of a majority of a group: `Commit` where one shard is
//! concerned, else `Decide` in the log of the first group, after all groups have prepared by an entry each ([`group`], `leader/coordination.rs`).

mod command;
mod config;
mod context;
mod gateway;
pub mod group;
mod leader;
mod message;
pub mod planted;
mod records;
mod replica;
mod site;
mod state;

pub use command::{Command, Prepared, Writes};
pub use config::Config;
pub use message::{Cursor, Fate, Note, Promise, Query, Refusal, Session};
pub use site::{Site, Timer};
pub use state::{Known, Marks, State};
