//! What the golden scenarios of all protocols share.

pub mod stage;
