//! What the tests of several protocols share. It knows the contract of [`rhumb_core::actor`] and no protocol.
//!
//! | module | what it is for |
//! |---|---|
//! | [`cluster`] | scenarios: a cluster driven by hand, message by message, and a transcript of what happens |
//! | [`golden`] | transcripts that must be what a file of `tests/golden` records |
//! | [`lone`] | tests of what one site says, alone with its disk |
//! | [`effects`] | unit tests of a role: the exact effects of a step, as lines |
//! | [`folders`] | data folders that are copied and put back |
//! | [`departures`] | runs of whole sites on all schedules with a few failures |
//! | [`model`] | models of a protocol, explored state by state |
//!
//! Only tests use it, as a dev-dependency; so it panics where a test is wrong.

pub mod cluster;
pub mod departures;
pub mod effects;
pub mod folders;
pub mod golden;
pub mod lone;
mod machine;
pub mod model;
pub mod protocol;
mod transcript;

pub use cluster::Cluster;
pub use lone::Lone;
pub use machine::empty_store;
pub use protocol::{Envelope, Protocol};
