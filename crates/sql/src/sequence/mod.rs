//! Sequences: numbers for rows, without a hot spot.
//!
//! ```text
//!   nextval ─▶ the site's block ──(used up)──▶ a transaction of its own: the counter moves on by a block
//!                  │                                one trip, for as many numbers as the site has used before
//!                  └─▶ a number, without a trip
//! ```
//! A counter that each row moved on would be written by every site for each of them. So a site takes numbers in blocks, each as large as all
//! it has used of the sequence, 32 at the least and 65,536 at the most, and an eighth of what is left. Numbers are unique; those of different sites interleave, and there are gaps.
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
