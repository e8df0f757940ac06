//! A replicated log per shard, and two-phase commit across the leaders of the logs: the protocol that Replicated Commit is measured against.

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
