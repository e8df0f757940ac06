//! Quotas as SQL speaks of them: what a listing shows, what a statement asks for, and refusals as SQL errors.

mod calls;
mod command;
mod definition;
mod listing;
mod refusal;
mod tokens;

pub use calls::run;
pub use command::change;
pub use listing::{COLUMNS, row};
pub use tokens::{ARGUMENTS, Call, Item, TokensPlan};
