//! Statements as one list of operations, which a commit carries out on the rows as they are then.
//!
//! ```text
//!   plans ─ Part → the operations of each ─ Merged → one list ─→ the commit ─→ what each returned ─ returned → statement by statement
//! ```

mod merged;
mod part;

pub use merged::{Merged, Unmerged, returned};
pub use part::{Misfit, Part};
