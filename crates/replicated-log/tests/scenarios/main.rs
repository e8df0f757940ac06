//! Scenarios of the replicated log on whole sites, driven by hand: which messages are lost or late, who crashes or is cut off, and what clients are
//! told in the end.

mod bounds;
mod commits;
mod decisions;
mod leaders;
mod reads;
mod support;
