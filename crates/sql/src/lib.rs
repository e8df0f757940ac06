//! The PostgreSQL wire and SQL of Rhumb.
//!
//! ```text
//!   server → wire → session → parser
//!                      │
//!                      ├────→ planner → executor → storage, catalog → a transaction of the gateway
//!                      └────→ quota → the quotas of the cluster
//! ```
//! All folders, and which may use which, are in `docs/decisions/0031-modules-of-sql.md`.

pub mod catalog;
mod context;
pub mod embedded;
mod engine;
pub mod error;
mod executor;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod one_shot;
pub mod parser;
mod pg_catalog;
mod planner;
pub mod planted;
pub mod protocols;
mod quota;
pub mod schema;
mod sequence;
pub mod server;
mod session;
mod stack;
pub mod storage;
mod txn;
pub mod types;
pub mod wire;

pub use context::environment;
pub use protocols::Gateways;
