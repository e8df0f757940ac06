//! The descriptors of databases, tables and procedures: what the catalog stores, and all that others know of a table.

mod database;
mod foreign_key;
mod ids;
mod procedure;
mod sequence;
mod table;

pub use database::{DEFAULT_DATABASE, DatabaseDescriptor};
pub use foreign_key::{Action, ForeignKey, Referrer};
pub use ids::{DatabaseId, IndexId, TableId};
pub use procedure::{PROCEDURE_PARAMETERS_MAX, ProcedureDescriptor, ProcedureParameter, signature};
pub use sequence::{Identity, OwnedSequence, Owner, SequenceDescriptor, bounds};
pub use table::{Check, Column, Index, TableDescriptor};
