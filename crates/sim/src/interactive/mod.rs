//! Clients of interactive transactions, whichever protocol runs them: what they do, and what they have seen.

pub(crate) mod client;
pub(crate) mod workload;
