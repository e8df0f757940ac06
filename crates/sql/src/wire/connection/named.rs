//! PREPARE and EXECUTE, which do by SQL what the extended protocol does by messages, with the same prepared statements.

use super::Connection;
use crate::error::{SqlError, SqlResult};
use crate::parser::{Statement, StatementKind};
use crate::session::{Company, Described, Outcome, Prepared};
use crate::types::{Datum, SqlType};
use std::sync::Arc;

impl Connection {
    /// Runs a statement: PREPARE here, EXECUTE as the statement that it names, and any other as it is. Errors of EXECUTE: 26000, 42601, 42804.
    pub(super) async fn run_statement(&mut self, statement: &Arc<Prepared>, parameters: &[Datum], company: Company) -> SqlResult<Outcome> {
        match &statement.statement.kind {
            StatementKind::Prepare { name, types, statement: kind, bytes } => {
                let hints = types.iter().map(|ty| SqlType::from_ast(ty).map(|ty| Some(ty.unbounded()))).collect::<SqlResult<Vec<_>>>()?;
                let prepared = Prepared::new(Statement { kind: (**kind).clone(), as_of: statement.statement.as_of.clone() }, hints);
                // Refused in a transaction that has failed.
                self.session.describe(statement).await?;
                self.check_room(name)?;
                self.keep(name.clone(), Some(prepared), *bytes).await?;
                Ok(Outcome::Done("PREPARE".into()))
            }
            StatementKind::Execute { name, arguments } => match self.named(statement, name).await? {
                Some(named) => {
                    let wanted = self.session.describe(&named).await?.parameters;
                    let given = self.session.given(name, &wanted, arguments)?;
                    self.session.execute(&named, &given, company).await
                }
                None => Ok(Outcome::Done(String::new())),
            },
            _ => self.session.execute(statement, parameters, company).await,
        }
    }

    /// The prepared statement that EXECUTE names. Errors: 25P02 in a transaction that has failed, 26000, 0A000 if it is one that PREPARE does not take.
    async fn named(&mut self, execute: &Prepared, name: &str) -> SqlResult<Option<Arc<Prepared>>> {
        self.session.describe(execute).await?;
        let named = self.statement(name)?;
        match named.as_ref().map(|named| &named.statement.kind) {
            Some(kind) if !kind.is_preparable() => Err(SqlError::unsupported(format!("EXECUTE of {} is not supported", kind.name()))),
            _ => Ok(named),
        }
    }

    /// What is known of a statement before it runs; of EXECUTE, the columns of the statement that it names.
    pub(super) async fn described(&mut self, statement: Option<&Arc<Prepared>>) -> SqlResult<Described> {
        let Some(statement) = statement else { return Ok(Described::default()) };
        let StatementKind::Execute { name, .. } = &statement.statement.kind else { return self.session.describe(statement).await };
        match self.named(statement, name).await? {
            Some(named) => Ok(Described { parameters: Vec::new(), ..self.session.describe(&named).await? }),
            None => Ok(Described::default()),
        }
    }
}
