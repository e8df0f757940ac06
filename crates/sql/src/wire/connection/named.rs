//! PREPARE and EXECUTE, which do by SQL what the extended protocol does by messages, with the same prepared statements.

use super::Connection;
use crate::error::SqlResult;
use crate::parser::{Statement, StatementKind};
use crate::session::{Company, Described, Outcome, Prepared};
use crate::types::{Datum, SqlType};
use std::sync::Arc;

impl Connection {
    /// Runs a statement: PREPARE here, EXECUTE as the statement that it names, and any other as it is. Errors of EXECUTE: 26000, 42601, 42804.
    pub(super) async fn run_statement(&mut self, statement: &Arc<Prepared>, parameters: &[Datum], company: Company) -> SqlResult<Outcome> {
        match &statement.statement.kind {
            StatementKind::Prepare { name, types, statement: kind, bytes } => {
                let hints = types.iter().map(|ty| SqlType::from_ast(ty).map(Some)).collect::<SqlResult<Vec<_>>>()?;
                let prepared = Prepared::new(Statement { kind: (**kind).clone(), as_of: statement.statement.as_of.clone() }, hints);
                self.check_room(name)?;
                self.keep(name.clone(), Some(prepared), *bytes).await?;
                Ok(Outcome::Done("PREPARE".into()))
            }
            StatementKind::Execute { name, arguments } => match self.statement(name)? {
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

    /// What is known of a statement before it runs; of EXECUTE, the columns of the statement that it names.
    pub(super) async fn described(&mut self, statement: Option<&Arc<Prepared>>) -> SqlResult<Described> {
        let Some(statement) = statement else { return Ok(Described::default()) };
        let StatementKind::Execute { name, .. } = &statement.statement.kind else { return self.session.describe(statement).await };
        match self.statement(name)? {
            Some(named) => Ok(Described { parameters: Vec::new(), ..self.session.describe(&named).await? }),
            None => Ok(Described::default()),
        }
    }
}
