//! `CREATE` and `DROP PROCEDURE`, and which procedures there are.
//!
//! They lie with their database, so that a transaction that calls one depends on it as it does on its tables. A name stands for one
//! procedure, whatever it is given: unlike in PostgreSQL there are no two of a name.

use crate::catalog::CatalogView;
use crate::catalog::layout::{Entry, procedure_key, procedures};
use crate::catalog::names::check_name;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{PROCEDURE_PARAMETERS_MAX, ProcedureDescriptor, ProcedureParameter, signature};
use crate::types::SqlType;
use rhumb_commit::transaction::Transaction;
use std::sync::Arc;

/// The longest body of a procedure, in bytes.
pub const PROCEDURE_BYTES_MAX: usize = 64 << 10;

/// What CREATE PROCEDURE asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcedureSpec {
    /// Its name.
    pub name: String,
    /// What it is given.
    pub parameters: Vec<ProcedureParameter>,
    /// The text of its statements.
    pub body: String,
}

impl CatalogView {
    /// `CREATE PROCEDURE`. Whether its statements make sense is for the caller to find out. Errors: 3D000, 42622, 42723, 42P13,
    /// 54000, 54023.
    pub async fn create_procedure(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        spec: ProcedureSpec,
        or_replace: bool,
    ) -> SqlResult<Arc<ProcedureDescriptor>> {
        check(&spec)?;
        let database = self.fresh_database(txn, database).await?;
        let key = procedure_key(database.id, &spec.name);
        let ProcedureSpec { name, parameters, body } = spec;
        let id = match self.read_fresh(txn, std::slice::from_ref(&key)).await?.remove(0) {
            Some(Entry::Procedure(old)) if or_replace => old.id,
            Some(_) => {
                let message = format!("procedure \"{name}\" already exists");
                return Err(SqlError::new(SqlState::DuplicateFunction, message)
                    .with_hint("Write CREATE OR REPLACE PROCEDURE. A name stands for one procedure, whatever it is given."));
            }
            None => self.allocate_id(txn).await?,
        };
        let procedure = Arc::new(ProcedureDescriptor { database: database.id, id, name, parameters, body });
        self.write(txn, key, &Entry::Procedure(procedure.clone()))?;
        Ok(procedure)
    }

    /// `DROP PROCEDURE`; if `types` are given it must be the one with these. False if there was none and `if_exists`. Errors: 3D000,
    /// 42883.
    pub async fn drop_procedure(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        name: &str,
        types: Option<&[SqlType]>,
        if_exists: bool,
    ) -> SqlResult<bool> {
        let database = self.fresh_database(txn, database).await?;
        let key = procedure_key(database.id, name);
        let found = self.read_fresh(txn, std::slice::from_ref(&key)).await?.remove(0);
        let is_it = |procedure: &ProcedureDescriptor| types.is_none_or(|types| procedure.types().eq(types.iter().copied()));
        match found {
            Some(Entry::Procedure(procedure)) if is_it(&procedure) => self.remove(txn, key).map(|()| true),
            _ if if_exists => Ok(false),
            _ => {
                let named = types.map_or_else(|| name.to_owned(), |types| signature(name, types));
                Err(SqlError::new(SqlState::UndefinedFunction, format!("procedure {named} does not exist")))
            }
        }
    }

    /// The procedure of that name. Error 3D000.
    pub async fn procedure(
        &mut self,
        txn: &mut dyn Transaction,
        database: &str,
        name: &str,
    ) -> SqlResult<Option<Arc<ProcedureDescriptor>>> {
        let database = self.database(txn, database).await?;
        match self.lookup(txn, procedure_key(database.id, name)).await? {
            Some(Entry::Procedure(procedure)) => Ok(Some(procedure)),
            _ => Ok(None),
        }
    }

    /// All procedures of a database by name, read afresh.
    pub async fn procedures(&mut self, txn: &mut dyn Transaction, database: &str) -> SqlResult<Vec<Arc<ProcedureDescriptor>>> {
        let database = self.database(txn, database).await?;
        let entries = self.scan_entries(txn, procedures(database.id)).await?;
        let procedure = |(_, entry)| if let Entry::Procedure(procedure) = entry { Some(procedure) } else { None };
        Ok(entries.into_iter().filter_map(procedure).collect())
    }
}

fn check(spec: &ProcedureSpec) -> SqlResult<()> {
    check_name(&spec.name)?;
    if spec.parameters.len() > PROCEDURE_PARAMETERS_MAX {
        let message = format!("procedures cannot have more than {PROCEDURE_PARAMETERS_MAX} parameters");
        return Err(SqlError::new(SqlState::TooManyArguments, message));
    }
    for (position, parameter) in spec.parameters.iter().enumerate() {
        check_name(&parameter.name)?;
        if spec.parameters[..position].iter().any(|earlier| earlier.name == parameter.name) {
            let message = format!("parameter name \"{}\" used more than once", parameter.name);
            return Err(SqlError::new(SqlState::InvalidFunctionDefinition, message));
        }
    }
    if spec.body.len() > PROCEDURE_BYTES_MAX {
        return Err(SqlError::too_large(format!("the body of a procedure has at most {PROCEDURE_BYTES_MAX} bytes")));
    }
    Ok(())
}
