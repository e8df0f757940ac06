//! What the commit protocols of Rhumb share. Above them, transactions as clients see them, of any protocol; beneath them, the parts that more
//! than one is made of. Each protocol is a crate of its own and knows no other; none is known here.

pub mod buffer;
pub mod clock_lease;
pub mod error;
pub mod interactive;
pub mod locks;
pub mod one_shot;
pub mod pages;
pub mod placement;
pub mod reason;
pub mod timestamp_cache;
pub mod transaction;
pub mod votes;
pub mod waits;
pub mod wound_wait;
