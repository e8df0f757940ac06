//! What a kind of transaction ought to cost.

/// What is timed of a kind of transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// All of it.
    Whole,
    /// Its COMMIT.
    Commit,
}

/// What a kind of transaction ought to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yardstick {
    /// What is timed.
    pub timed: Timed,
    /// True if it cannot do without a majority of regions.
    pub wide_area: bool,
}
