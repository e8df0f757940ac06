//! Scenarios of Replicated Commit on the real actor, driven by hand: which messages are sent, in which order, what is on
//! disk before each, and what clients are told. Each is recorded in `tests/golden/`, under the name of its test;
//! `UPDATE_GOLDEN=1 cargo test -p rhumb-replicated-commit --test scenarios` records them anew.

mod bounds;
mod collected;
mod commits;
mod cursors;
mod doubt;
mod doubts;
mod floors;
mod forgotten;
mod halves;
mod handoffs;
mod locks;
mod old_transactions;
mod one_phase;
mod placements;
mod reads;
mod resolutions;
mod rivals;
mod rounds;
mod support;
mod survivors;
