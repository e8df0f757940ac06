//! The round that a client goes through.

/// The steps of a round, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Insert,
    Update,
    Select,
    ReadOnly,
    Stale,
    FiveRows,
    Delete,
}

/// A round.
pub(super) const ROUND: [Step; 7] = [Step::Insert, Step::Update, Step::Select, Step::ReadOnly, Step::Stale, Step::FiveRows, Step::Delete];
