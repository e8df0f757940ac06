//! The extended protocol: statements are prepared, given parameters as portals, and run, until Sync.
//!
//! Outside BEGIN, all that is run up to a Sync is one transaction. Most clients run one statement per Sync, and that one
//! should have the rules of autocommit. So an Execute looks at the messages that follow it: if there is none but Close up to the Sync, and
//! nothing ran since the last one, the statement stands alone. (A client that waits for the answer of an Execute must
//! send a Flush or a Sync after it, so there is always a next message.)

use super::{Connection, Ending, Rows, Sent, row_description};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::StatementKind;
use crate::session::{Company, Outcome, Prepared, Status};
use crate::types::wire::{Format, read_parameter};
use crate::types::{Datum, SqlType};
use crate::wire::budget::Charge;
use crate::wire::frame::FrameError;
use crate::wire::request::{Bind, Request, Target};
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::EmptyQueryResponse;
use std::sync::Arc;

/// The most prepared statements of a connection.
pub const STATEMENTS_MAX: usize = 10_000;
/// The most portals of a connection.
pub const PORTALS_MAX: usize = 1_000;

/// A prepared statement; `None` is that of an empty text.
pub struct Kept {
    prepared: Option<Arc<Prepared>>,
    _charge: Charge,
}

/// A statement with its parameters.
pub struct Portal {
    statement: Option<Arc<Prepared>>,
    parameters: Vec<Datum>,
    formats: Vec<i16>,
    /// Its rows, once it runs; it may be run on for more of them.
    rows: Option<Rows>,
    done: bool,
    _charge: Charge,
    /// For the rows that wait until it is run on.
    waiting: Option<Charge>,
}

impl Connection {
    /// A message of the extended protocol.
    pub(super) async fn extended(&mut self, request: Request) -> Result<(), Ending> {
        if let Request::Sync = request {
            return self.sync().await;
        }
        if self.skipping {
            return Ok(());
        }
        let result = match request {
            Request::Parse { name, sql, type_oids } => self.parse(name, &sql, &type_oids).await?,
            Request::Bind(bind) => self.bind(bind).await?,
            Request::Describe { target: Target::Statement, name } => self.describe_statement(&name).await?,
            Request::Describe { target: Target::Portal, name } => self.describe_portal(&name).await?,
            Request::Execute { portal, max_rows } => self.execute(portal, max_rows).await?,
            Request::Close { target, name } => self.close(target, &name)?,
            Request::Flush => {
                self.output.flush().await?;
                Ok(())
            }
            other => return Err(FrameError::Protocol(format!("unexpected message {other:?}")).into()),
        };
        if let Err(error) = result {
            self.session.fail(&error).await;
            self.portals.clear();
            self.output.put_error(&error, false)?;
            self.skipping = true;
        }
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), Ending> {
        if !self.skipping
            && let Err(error) = self.session.finish().await
        {
            self.output.put_error(&error, false)?;
        }
        self.skipping = false;
        // Portals live as long as their transaction.
        if self.session.status() == crate::session::Status::Idle {
            self.portals.clear();
        }
        self.ready()?;
        self.output.flush().await
    }

    async fn parse(&mut self, name: String, sql: &str, type_oids: &[u32]) -> Result<SqlResult<()>, Ending> {
        if let Err(error) = self.check_room(&name) {
            return Ok(Err(error));
        }
        // The unnamed statement makes room for the next, whatever becomes of that.
        if name.is_empty() {
            self.statements.remove("");
        }
        // A type that is not known here is left to be found out.
        let hints = type_oids.iter().map(|&oid| SqlType::from_oid(oid, -1)).collect();
        let prepared = match self.session.prepare(sql, hints) {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = self.keep(name, prepared, sql.len()).await {
            return Ok(Err(error));
        }
        self.output.put(Answer::ParseComplete(ParseComplete::new()))?;
        Ok(Ok(()))
    }

    /// Refuses one more prepared statement. Errors 42P05, 54000.
    pub(super) fn check_room(&self, name: &str) -> SqlResult<()> {
        if !name.is_empty() && self.statements.contains_key(name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DuplicatePreparedStatement, message));
        }
        if self.statements.len() >= STATEMENTS_MAX {
            let error = SqlError::too_large(format!("more than {STATEMENTS_MAX} prepared statements in one session"));
            return Err(error.with_hint("Close those that are no longer needed."));
        }
        Ok(())
    }

    /// Keeps a prepared statement of so many bytes. It is planned now, so that a mistake in it is reported here.
    pub(super) async fn keep(&mut self, name: String, prepared: Option<Arc<Prepared>>, bytes: usize) -> SqlResult<()> {
        let described = self.described(prepared.as_ref()).await?;
        let charge = self.budget.statement(&name, bytes, described.parameters.len())?;
        self.statements.insert(name, Kept { prepared, _charge: charge });
        Ok(())
    }

    async fn bind(&mut self, bind: Bind) -> Result<SqlResult<()>, Ending> {
        match self.portal(bind).await {
            Ok((name, portal)) => {
                self.portals.insert(name, portal);
                self.output.put(Answer::BindComplete(BindComplete::new()))?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn portal(&mut self, bind: Bind) -> SqlResult<(String, Portal)> {
        let statement = self.statement(&bind.statement)?;
        let described = self.described(statement.as_ref()).await?;
        let given = bind.parameters.len();
        let wanted = described.parameters.len();
        if given != wanted {
            let message =
                format!("bind message supplies {given} parameters, but prepared statement \"{}\" requires {wanted}", bind.statement);
            return Err(SqlError::new(SqlState::ProtocolViolation, message));
        }
        check_formats("parameter", bind.parameter_formats.len(), given)?;
        check_formats("result", bind.result_formats.len(), described.columns.map_or(0, |columns| columns.len()))?;
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            return Err(SqlError::new(SqlState::DuplicatePreparedStatement, format!("cursor \"{}\" already exists", bind.portal)));
        }
        if self.portals.len() >= PORTALS_MAX {
            return Err(SqlError::too_large(format!("more than {PORTALS_MAX} portals in one session")));
        }
        let values = bind.parameters.iter().zip(&described.parameters).enumerate();
        let parameters = values
            .map(|(position, (value, ty))| read_parameter(ty, value.as_deref(), Format::of(&bind.parameter_formats, position)))
            .collect::<SqlResult<Vec<Datum>>>()?;
        // The unnamed portal makes room for the next.
        self.portals.remove(&bind.portal);
        let charge = self.budget.portal(&bind.portal, &parameters)?;
        let portal =
            Portal { statement, parameters, formats: bind.result_formats, rows: None, done: false, _charge: charge, waiting: None };
        Ok((bind.portal, portal))
    }

    async fn describe_statement(&mut self, name: &str) -> Result<SqlResult<()>, Ending> {
        let described = match self.statement(name) {
            Ok(statement) => self.described(statement.as_ref()).await,
            Err(error) => Err(error),
        };
        match described {
            Ok(described) => {
                let types = described.parameters.iter().map(SqlType::oid).collect();
                self.output.put(Answer::ParameterDescription(ParameterDescription::new(types)))?;
                self.output.put(described.columns.map_or(Answer::NoData(NoData::new()), |columns| row_description(&columns, &[])))?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn describe_portal(&mut self, name: &str) -> Result<SqlResult<()>, Ending> {
        let Some(portal) = self.portals.get(name) else { return Ok(Err(no_portal(name))) };
        let formats = portal.formats.clone();
        let statement = portal.statement.clone();
        match self.described(statement.as_ref()).await {
            Ok(described) => {
                self.output.put(described.columns.map_or(Answer::NoData(NoData::new()), |columns| row_description(&columns, &formats)))?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn execute(&mut self, name: String, rows_max: usize) -> Result<SqlResult<()>, Ending> {
        // The portal is out of the way while it runs; one that stays open is put back.
        let Some(mut portal) = self.portals.remove(&name) else { return Ok(Err(no_portal(&name))) };
        let Some(statement) = portal.statement.clone() else {
            self.output.put(Answer::EmptyQueryResponse(EmptyQueryResponse::new()))?;
            self.portals.insert(name, portal);
            return Ok(Ok(()));
        };
        if portal.done {
            let message = format!("portal \"{name}\" cannot be run");
            return Ok(Err(SqlError::new(SqlState::InvalidSqlStatementName, message)));
        }
        if portal.rows.is_some() {
            if self.session.status() == Status::Failed {
                return Ok(Err(SqlError::in_failed_transaction()));
            }
            self.session.restart_clock();
        } else {
            self.attend().await?;
            let company = self.company().await?;
            let outcome = match self.run_statement(&statement, &portal.parameters, company).await {
                Ok(outcome) => outcome,
                Err(error) => return Ok(Err(error)),
            };
            self.forget_deallocated(&statement);
            let tag = match outcome {
                Outcome::Rows { columns, rows, tag } => {
                    portal.rows = Some(Rows::new(columns, rows, tag));
                    None
                }
                Outcome::Done(tag) => Some(tag),
                Outcome::Copy(copy) => match self.copy_in(copy).await? {
                    Ok(tag) => Some(tag),
                    Err(error) => return Ok(Err(error)),
                },
            };
            if let Some(tag) = tag {
                portal.done = true;
                self.portals.insert(name, portal);
                return self.finish_statement(company, tag).await;
            }
        }
        self.run_portal(name, portal, rows_max).await
    }

    /// Whether the Sync is all that follows, but for portals and statements that are closed before it. The client may wait after a Flush, so what
    /// comes after that is not looked at.
    async fn company(&mut self) -> Result<Company, Ending> {
        let follows = self.reader.peek_past(|request| matches!(request, Request::Close { .. })).await?;
        Ok(if matches!(follows, Some(Request::Sync)) { Company::Alone } else { Company::Batch })
    }

    async fn run_portal(&mut self, name: String, mut portal: Portal, rows_max: usize) -> Result<SqlResult<()>, Ending> {
        portal.waiting = None;
        let rows = portal.rows.as_mut().expect("a portal that runs has rows");
        match self.send_rows(rows, &portal.formats, rows_max).await? {
            Ok(Sent::All(count)) => {
                let tag = rows.tag.text(count);
                portal.rows = None;
                portal.done = true;
                self.portals.insert(name, portal);
                if let Err(error) = self.attend_within_statement().await? {
                    return Ok(Err(error));
                }
                let company = self.company().await?;
                self.finish_statement(company, tag).await
            }
            Ok(Sent::Some) => {
                let waiting = portal.rows.as_ref().map(|rows| self.budget.rows(rows.pending.as_slice())).transpose();
                match waiting {
                    Ok(waiting) => portal.waiting = waiting,
                    Err(error) => return Ok(Err(error)),
                }
                self.portals.insert(name, portal);
                self.output.put(Answer::PortalSuspended(PortalSuspended::new()))?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// The last statement before a Sync is done when its transaction is committed.
    async fn finish_statement(&mut self, company: Company, tag: String) -> Result<SqlResult<()>, Ending> {
        if company == Company::Alone
            && let Err(error) = self.session.finish().await
        {
            return Ok(Err(error));
        }
        self.complete(tag)?;
        Ok(Ok(()))
    }

    fn close(&mut self, target: Target, name: &str) -> Result<SqlResult<()>, Ending> {
        match target {
            Target::Statement => drop(self.statements.remove(name)),
            Target::Portal => drop(self.portals.remove(name)),
        }
        self.output.put(Answer::CloseComplete(CloseComplete::new()))?;
        Ok(Ok(()))
    }

    pub(super) fn statement(&self, name: &str) -> SqlResult<Option<Arc<Prepared>>> {
        self.statements
            .get(name)
            .map(|kept| kept.prepared.clone())
            .ok_or_else(|| SqlError::new(SqlState::InvalidSqlStatementName, format!("prepared statement \"{name}\" does not exist")))
    }

    /// DEALLOCATE and DISCARD act on the statements of the connection.
    pub(super) fn forget_deallocated(&mut self, statement: &Prepared) {
        match &statement.statement.kind {
            StatementKind::Deallocate(Some(name)) => drop(self.statements.remove(name)),
            StatementKind::Deallocate(None) | StatementKind::Discard => self.statements.clear(),
            _ => {}
        }
    }
}

fn no_portal(name: &str) -> SqlError {
    SqlError::new(SqlState::InvalidSqlStatementName, format!("portal \"{name}\" does not exist"))
}

fn check_formats(what: &str, formats: usize, items: usize) -> SqlResult<()> {
    if formats > 1 && formats != items {
        let message = format!("bind message has {formats} {what} formats but {items} {what}s");
        return Err(SqlError::new(SqlState::ProtocolViolation, message));
    }
    Ok(())
}
