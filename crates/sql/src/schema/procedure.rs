//! Procedures: the text of their statements, and what they are given.

use super::DatabaseId;
use crate::types::SqlType;
use serde::{Deserialize, Serialize};

/// The most parameters of a procedure, as in PostgreSQL.
pub const PROCEDURE_PARAMETERS_MAX: usize = 100;

/// A parameter of a procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcedureParameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
}

/// A procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcedureDescriptor {
    /// The database it belongs to.
    pub database: DatabaseId,
    /// Names it among all tables and procedures. One that takes the place of another has its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// What it is given.
    pub parameters: Vec<ProcedureParameter>,
    /// The text of its statements.
    pub body: String,
}

impl ProcedureDescriptor {
    /// The types of what it is given.
    pub fn types(&self) -> impl Iterator<Item = SqlType> + '_ {
        self.parameters.iter().map(|parameter| parameter.ty)
    }

    /// True if a descriptor read from the store is as the rest of the crate relies on.
    pub(crate) fn is_sound(&self) -> bool {
        self.database.0 > 0 && self.parameters.len() <= PROCEDURE_PARAMETERS_MAX && self.types().all(|ty| ty.is_sound())
    }
}

/// How PostgreSQL names a procedure in what it says of it: with the types of what it is given.
pub fn signature(name: &str, types: &[impl ToString]) -> String {
    format!("{name}({})", types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
