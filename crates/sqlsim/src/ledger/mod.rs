//! What there may be in tables, by what clients were told: the audits hold what they find against it.

pub mod counters;
pub mod presence;
