//! The deterministic simulator of Rhumb, its faults and its checkers.

pub mod history;
