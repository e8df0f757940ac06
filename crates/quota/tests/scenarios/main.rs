//! Scenarios of quotas on the real actor, driven by hand: which messages are sent, in which order, what is on disk before
//! each, and what clients are told. Each is recorded in `tests/golden/`, under the name of its test;
//! `UPDATE_GOLDEN=1 cargo test -p rhumb-quota --test scenarios` records them anew.

mod any;
mod clients;
mod collected;
mod counts;
mod dropped;
mod freed;
mod lost;
mod lost_members;
mod majority;
mod support;
mod unsynced;
