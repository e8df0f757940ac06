//! The PostgreSQL wire and SQL of Rhumb.
//!
//! ```text
//!   server → wire → session → parse
//!                      │
//!                      ├────→ plan → table, catalog → a transaction of the gateway
//!                      └────→ quota → the quotas of the cluster
//! ```

mod bounded;
pub mod catalog;
pub mod embedded;
mod engine;
pub mod environment;
pub mod error;
#[cfg(feature = "testing")]
pub mod fuzzing;
pub mod keyspaces;
pub mod parse;
mod plan;
pub mod planted;
mod quota;
pub mod server;
mod session;
mod stack;
pub mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod types;
pub mod wire;
