//! The commit protocols of Rhumb as pure state machines, a folder each, over shared parts.

pub mod buffer;
pub mod catenae;
pub mod ceilings;
pub mod clock_lease;
pub mod locks;
pub mod paxos_commit;
pub mod placement;
pub mod quad;
pub mod replicated_commit;
pub mod resolution;
pub mod transaction;
pub mod votes;
pub mod wound_wait;
