//! The PostgreSQL wire protocol, version 3.
//!
//! ```text
//!   bytes ─ frame → Request ─ connection, extended → Session → Outcome ─ value → answers
//! ```
//! What a client sends is decoded here, strictly and within bounds; the answers are pgwire's messages.

pub(crate) mod budget;
pub(crate) mod connection;
pub(crate) mod encryption;
pub mod frame;
pub mod request;
pub(crate) mod stop;
