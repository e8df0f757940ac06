//! A connection that knows how far its transaction has come, so that a failure can be told from an unknown outcome.
//!
//! Statements take `&self` and may run concurrently: the client sends them back to back and the server answers in order (pipelining), which saves a round
//! trip each. Every wait is bounded by a minute.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, NoTls, Row, SimpleQueryMessage, Statement};

use super::endpoint::Endpoint;
use super::failure::{Failure, Phase};
use super::value::Value;
use crate::error::BenchError;

/// The longest wait for an answer. Longer than any round trip on Earth, so a server that takes it is gone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Prepared statements kept per connection; beyond it all are dropped and prepared anew.
const STATEMENTS_MAX: usize = 512;

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only, which a server may serve without a commit round.
    ReadOnly,
    /// Reads and writes.
    ReadWrite,
}

/// The columns of a row, in order: a name and a text, if it is not NULL.
pub type TextRow = Vec<(String, Option<String>)>;

/// A connection to one server, re-established when it breaks.
pub struct Session {
    endpoint: Endpoint,
    settings: Vec<String>,
    client: Option<Client>,
    statements: Mutex<BTreeMap<String, Statement>>,
    phase: Phase,
    commit_latencies: Vec<Duration>,
}

impl Session {
    /// Connects to `endpoint` and applies `settings`, pairs of a name and a value as in `SET name = value`.
    pub async fn connect(endpoint: &Endpoint, settings: &BTreeMap<String, String>) -> Result<Session, BenchError> {
        let settings = settings.iter().map(|(name, value)| format!("SET {name} = '{}'", value.replace('\'', "''"))).collect();
        let statements = Mutex::new(BTreeMap::new());
        let mut session =
            Session { endpoint: endpoint.clone(), settings, client: None, statements, phase: Phase::Idle, commit_latencies: Vec::new() };
        match session.reconnect().await {
            Ok(()) => Ok(session),
            Err(failure) => Err(BenchError::Connect { url: endpoint.display_url(), reason: failure.cause().to_owned() }),
        }
    }

    /// Opens a serializable transaction.
    pub async fn begin(&mut self, access: Access) -> Result<(), Failure> {
        self.ready().await?;
        self.phase = Phase::Open;
        self.batch(match access {
            Access::ReadOnly => "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
            Access::ReadWrite => "BEGIN ISOLATION LEVEL SERIALIZABLE",
        })
        .await
    }

    /// Commits the open transaction, and keeps how long that took.
    pub async fn commit(&mut self) -> Result<(), Failure> {
        self.phase = Phase::Committing;
        let started = Instant::now();
        self.batch("COMMIT").await?;
        self.commit_latencies.push(started.elapsed());
        self.phase = Phase::Idle;
        Ok(())
    }

    /// Rolls the open transaction back.
    pub async fn rollback(&mut self) -> Result<(), Failure> {
        self.batch("ROLLBACK").await?;
        self.phase = Phase::Idle;
        Ok(())
    }

    /// Declares that the next statement stands alone, outside a transaction. If it writes, losing its answer is an unknown outcome.
    pub async fn begin_autocommit(&mut self, access: Access) -> Result<(), Failure> {
        self.ready().await?;
        self.phase = match access {
            Access::ReadOnly => Phase::Idle,
            Access::ReadWrite => Phase::Committing,
        };
        Ok(())
    }

    /// Declares the statement announced by [`Session::begin_autocommit`] answered.
    pub fn end_autocommit(&mut self) {
        self.phase = Phase::Idle;
    }

    /// Brings the session back to where a new transaction can begin, after an attempt ended with `failure`. A connection on which an answer went missing is
    /// not used again: a late answer would be taken for the next one.
    pub async fn settle(&mut self, failure: &Failure) {
        let in_step = matches!(failure, Failure::Conflict { .. } | Failure::Refused { .. }) && self.is_alive();
        let settled = in_step && (self.phase == Phase::Idle || self.batch("ROLLBACK").await.is_ok());
        if !settled {
            self.client = None;
        }
        self.phase = Phase::Idle;
    }

    /// Runs a statement and returns its rows.
    pub async fn query(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Failure> {
        let client = self.client()?;
        let parameters: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        self.answer(async {
            let statement = self.prepared(client, sql, values).await?;
            client.query(&statement, &parameters).await
        })
        .await
    }

    /// Runs a statement that must return exactly one row.
    pub async fn query_one(&self, sql: &str, values: &[Value]) -> Result<Row, Failure> {
        let mut rows = self.query(sql, values).await?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            (None, _) => Err(refused(format!("no row where one must be: {sql}"))),
            (Some(_), false) => Err(refused(format!("{} rows where one must be: {sql}", rows.len() + 1))),
        }
    }

    /// Runs a statement and returns the number of rows it changed.
    pub async fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, Failure> {
        let client = self.client()?;
        let parameters: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        self.answer(async {
            let statement = self.prepared(client, sql, values).await?;
            client.execute(&statement, &parameters).await
        })
        .await
    }

    /// Runs statements without parameters and without results.
    pub async fn batch(&self, sql: &str) -> Result<(), Failure> {
        self.answer(self.client()?.batch_execute(sql)).await
    }

    /// Runs a statement by the simple protocol and returns its rows as text.
    pub async fn query_text(&self, sql: &str) -> Result<Vec<TextRow>, Failure> {
        let messages = self.answer(self.client()?.simple_query(sql)).await?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(rows
            .map(|row| row.columns().iter().enumerate().map(|(i, c)| (c.name().to_owned(), row.get(i).map(str::to_owned))).collect())
            .collect())
    }

    /// Sends `data` as the input of a `COPY … FROM STDIN` and returns the number of rows taken.
    pub async fn copy(&self, sql: &str, data: Bytes) -> Result<u64, Failure> {
        let client = self.client()?;
        self.answer(async {
            let sink = client.copy_in::<_, Bytes>(sql).await?;
            futures::pin_mut!(sink);
            sink.send(data).await?;
            sink.finish().await
        })
        .await
    }

    /// How long each COMMIT took since this was last asked.
    pub fn take_commit_latencies(&mut self) -> Vec<Duration> {
        std::mem::take(&mut self.commit_latencies)
    }

    /// The server this session talks to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    async fn ready(&mut self) -> Result<(), Failure> {
        if self.is_alive() { Ok(()) } else { self.reconnect().await }
    }

    fn is_alive(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.is_closed())
    }

    async fn reconnect(&mut self) -> Result<(), Failure> {
        self.client = None;
        self.phase = Phase::Idle;
        self.statements = Mutex::new(BTreeMap::new());
        let connecting = tokio::time::timeout(ANSWER_TIMEOUT, self.endpoint.config().connect(NoTls)).await;
        let (client, connection) = match connecting {
            Ok(Ok(pair)) => pair,
            Ok(Err(error)) => return Err(not_connected(&error)),
            Err(_) => return Err(unavailable("no answer in time".to_owned())),
        };
        // The task ends when the client is dropped or the server hangs up; either way the next statement finds out.
        tokio::spawn(connection);
        self.client = Some(client);
        for setting in &self.settings {
            self.batch(setting).await?;
        }
        Ok(())
    }

    fn client(&self) -> Result<&Client, Failure> {
        self.client.as_ref().ok_or_else(|| Failure::of_lost_connection("not connected", self.phase))
    }

    async fn prepared(&self, client: &Client, sql: &str, values: &[Value]) -> Result<Statement, tokio_postgres::Error> {
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let types: Vec<Type> = values.iter().map(Value::parameter_type).collect();
        let statement = client.prepare_typed(sql, &types).await?;
        let mut statements = self.statements.lock().unwrap_or_else(PoisonError::into_inner);
        if statements.len() >= STATEMENTS_MAX {
            statements.clear();
        }
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    async fn answer<T>(&self, work: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Failure> {
        match tokio::time::timeout(ANSWER_TIMEOUT, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Failure::of(&error, self.phase)),
            Err(_) => Err(Failure::of_lost_connection("no answer in time", self.phase)),
        }
    }
}

/// A server that answers and refuses, for want of the database say, goes on refusing; anything else may come back.
fn not_connected(error: &tokio_postgres::Error) -> Failure {
    match Failure::of(error, Phase::Idle) {
        Failure::Refused { code: None, reason } => unavailable(reason),
        other => other,
    }
}

fn unavailable(cause: String) -> Failure {
    Failure::Unavailable { cause }
}

fn refused(reason: String) -> Failure {
    Failure::Refused { code: None, reason }
}
