//! Replicated Commit, checked exhaustively in small clusters: whole sites of the product, on disks that sync late, and every failure at every
//! moment. And the checks held against clusters in which one rule is broken (`votes/planted.rs`, `resolution/planted.rs`).
//!
//! There are two models: [`votes`] of regions and gateways on conflicting transactions, and the [`resolution`] of what a region that is lost may
//! have decided.
//!
//! The network is a set that only grows: what was once sent can be delivered at any later time, again, or never. That covers delay, reordering,
//! duplication and loss, and a member that dies for good is one that nothing happens to any more.
//!
//! **A step of the search is a message that nobody has sent before.** Members affect each other by messages alone. So between two such messages
//! each member moves by itself, and the search need not order the moves of one by those of another: a state holds, beside the network, the *set*
//! of all states that each member may be in, given what it has said so far and what had been said to it by then (`whereabouts.rs`). A state
//! of the cluster is reachable exactly if each member's part is in its set. The checks look at messages only: an outcome that a site works out
//! is one that it tells to all.
//!
//! **A member is a finite automaton, found by running its site** from state to state, with one driver for all (`host.rs`).

// What is numbered has no order, and a checker shares its model with its threads.
#![allow(clippy::disallowed_types)]

mod digest;
mod disk;
mod host;
mod resolution;
mod schedule;
mod votes;
mod whereabouts;
