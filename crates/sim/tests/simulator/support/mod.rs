//! What tests of all protocols share.

pub mod seeds;
pub mod stage;
