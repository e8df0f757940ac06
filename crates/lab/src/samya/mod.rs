//! The evaluation of Samya (ICDE 2021, section 5) in virtual time.
pub mod baselines;
mod client;
pub mod demand;
pub mod load;
pub mod meter;
pub mod parameters;
pub mod progress;
pub mod series;
pub mod setup;
pub mod system;
