//! The commit protocols of Rhumb as pure state machines, a folder each, over shared parts.

pub mod transaction;
