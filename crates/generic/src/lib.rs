//! Generic code of the SQL parser and the query engine, compiled once.
//!
//! A walk over a statement is compiled anew for each type of visitor, planning for each source of names, the making of an array for each iterator: a
//! third of a million lines of LLVM's code each time, in the crate that calls them. Here each stands behind a pointer and is compiled by itself:
//! early, beside the rest of the query engine, and without optimization in development builds, as that is (`docs/decisions/0007-build-profile.md`).

mod array;
mod plan;
mod walk;

pub use array::array_of;
pub use plan::{expression, statement};
pub use walk::{Changer, Part, Reader, relations, walk, walk_mut};
