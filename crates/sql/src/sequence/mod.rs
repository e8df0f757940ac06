//! Sequences: numbers for rows, without a hot spot.
//!
//! ```text
//!   nextval ─▶ the site's block ──(used up)──▶ a transaction of its own: the counter moves on by a block
//!                  │                                one trip, for a block of numbers
//!                  └─▶ a number, without a trip
//! ```
//! A counter that each row moved on would be written by every site for each of them. How large blocks are, and what clients see of them, is in
//! `docs/sql.md`, "Sequences".
//!
//! The site's blocks are in `txn/blocks.rs`, the counters in `catalog/counter.rs`; here is what statements draw.
//!
//! Invariants:
//! - No two blocks of a sequence have a number in common unless it was set back, or cycles: the counter is moved by transactions.
//! - A number is given out only to a transaction that sees the sequence as the block was taken from it. Whoever sets or alters a sequence
//!   changes its descriptor, on which every transaction that uses it depends.
//! - A transaction that has created, set or altered a sequence itself takes numbers from the counter as it sees it, one at a time: others do not
//!   see that yet.

mod draw;

pub use draw::{Draw, Drawing, Drawn};
