//! What databases, tables, indexes and procedures there are.
//!
//! The catalog is rows of the same key space as the data, under database 0, read and written by ordinary transactions:
//! `CREATE TABLE` is atomic, replicated and isolated because every transaction is. [`Catalog`] is a gateway's cache of
//! it, and [`CatalogView`] is how one transaction uses that cache.
//!
//! **A stale descriptor is caught by the commit.** Whoever uses a cached descriptor makes its transaction expect the
//! version that the descriptor was read at ([`Transaction::expect`]); whoever uses one that this region's replica shows,
//! which may lag, has read it. If another gateway changed the table meanwhile, the transaction ends in a conflict, the
//! view is invalidated, and the transaction that runs again asks a majority. What a statement is told *before* its commit
//! may still be wrong, such as that a column does not exist: see [`CatalogView::may_be_stale`].
//!
//! | file | what |
//! |---|---|
//! | `layout.rs` | keys and rows of descriptors |
//! | `view.rs`, `cache.rs` | reading and writing them in a transaction; what a gateway remembers |
//! | `spec.rs`, `define.rs` | a definition as it is asked for, and made |
//! | `database.rs`, `tables.rs`, `indexes.rs`, `sequences.rs`, `procedures.rs`, `names.rs` | the kinds of descriptors |
//! | `counter.rs` | which number a sequence has given out last |
//! | `alter.rs`, `foreign_keys.rs` | one change of a table; what two tables know of each other |
//! | `garbage.rs` | rows of what was dropped |
//!
//! [`Transaction::expect`]: rhumb_commit::transaction::Transaction::expect

mod alter;
mod cache;
mod counter;
mod database;
mod define;
mod foreign_keys;
mod garbage;
mod indexes;
mod layout;
mod names;
mod procedures;
mod sequences;
mod spec;
mod tables;
mod view;

#[cfg(test)]
mod tests;

pub use alter::{undefined_constraint, visible, with_column};
pub use cache::Catalog;
pub use counter::{Counter, Run};
pub use garbage::{hand_over, keep_reclaiming, reclaim};
pub use layout::{Entry, decode_entry, encode_entry};
pub(crate) use names::check_name;
pub use names::{COLUMNS_MAX, KEY_COLUMNS_MAX, NAME_BYTES_MAX, check_keys};
pub use procedures::{PROCEDURE_BYTES_MAX, ProcedureSpec};
pub use spec::{CheckSpec, ColumnSpec, ForeignKeySpec, GeneratedSpec, IndexSpec, KeySpec, SequenceOptions, TableSpec};
pub use view::{CatalogView, Changes};
