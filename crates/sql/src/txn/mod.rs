//! Transactions as statements use them: where they run, and the one that is open.

mod blocks;
mod databases;
mod deferred;
mod handle;
mod keyspaces;
mod trace;

pub use blocks::Blocks;
pub use databases::databases;
pub use deferred::{Deferred, Mark, Noted, Reference, check_references, not_present};
pub use handle::{Active, TransactionHandle};
pub use keyspaces::{Home, Keyspaces};
pub use trace::{Kind, Round, Trace};
