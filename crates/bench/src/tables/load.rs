//! The loader: creates tables and fills them in bounded batches, several at a time.
//!
//! Rows come from a deterministic iterator that the loaders pull from under a lock, so memory holds one batch per loader whatever the size of the data. A
//! batch whose COPY has an unknown outcome is sent again as INSERT … ON CONFLICT DO NOTHING, which does nothing twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use rhumb_core::Rng;
use serde::Serialize;

use super::ledger::{self, Parameters};
use crate::client::postgres::{Access, Endpoint, Failure, RetryPolicy, Session, Value, retrying};
use crate::error::BenchError;
use crate::progress::{Progress, Unit};

/// Rows of one batch, and so of one transaction, at most.
const BATCH_ROWS_MAX: usize = 1_000;

/// Bytes of one batch, at most (a row more, if the last one is long).
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// A table of a workload.
#[derive(Clone, Copy, Debug)]
pub struct TableDefinition {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in the order of the rows loaded.
    pub columns: &'static [&'static str],
    /// The statements that create it and its indexes.
    pub create: &'static [&'static str],
}

/// A row on its way into a table.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadRow {
    /// The index of its table among those of the workload.
    pub table: usize,
    /// Its values, in the order of the table's columns.
    pub values: Vec<Value>,
}

/// All that a workload loads.
pub struct Dataset {
    /// The workload's name.
    pub workload: &'static str,
    /// Its tables.
    pub tables: &'static [TableDefinition],
    /// Its rows, table by table or mixed.
    pub rows: Box<dyn Iterator<Item = LoadRow> + Send>,
    /// How many there are about, for the progress bar.
    pub rows_expected: u64,
    /// What a run needs to know about them.
    pub parameters: Parameters,
}

/// How rows are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadMethod {
    /// COPY … FROM STDIN.
    #[default]
    Copy,
    /// INSERT of many rows.
    Insert,
}

/// How to load.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// Drops the workload's tables first; without it, tables that exist are an error.
    pub replace: bool,
    /// How rows are sent.
    pub method: LoadMethod,
    /// Batches in flight at a time, over all addresses.
    pub loaders: usize,
    /// Settings of every session, as in `SET name = value`.
    pub settings: BTreeMap<String, String>,
}

impl Default for InitOptions {
    fn default() -> InitOptions {
        InitOptions { replace: false, method: LoadMethod::Copy, loaders: 8, settings: BTreeMap::new() }
    }
}

/// What was loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// The workload's name.
    pub workload: String,
    /// Rows per table.
    pub rows: BTreeMap<String, u64>,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
}

/// Creates the tables of `dataset` and fills them.
pub async fn load(
    dataset: Dataset,
    endpoints: &[Endpoint],
    options: &InitOptions,
    progress: &dyn Progress,
) -> Result<LoadReport, BenchError> {
    let first = endpoints.first().ok_or_else(|| BenchError::Options("no address was given".to_owned()))?;
    let started = Instant::now();
    let mut session = Session::connect(first, &options.settings).await?;
    create_tables(&mut session, dataset.workload, dataset.tables, options.replace).await?;
    progress.stage("loading", dataset.rows_expected, Unit::Rows);
    let source = Source::new(&dataset.tables.iter().map(|table| table.name).collect::<Vec<_>>(), dataset.rows);
    let loaders = (0..options.loaders.max(1)).map(|i| fill(&endpoints[i % endpoints.len()], dataset.tables, options, &source, progress));
    futures::future::try_join_all(loaders).await?;
    ledger::write(&mut session, dataset.workload, &dataset.parameters).await?;
    Ok(LoadReport { workload: dataset.workload.to_owned(), rows: source.counts(), elapsed_s: started.elapsed().as_secs_f64() })
}

async fn create_tables(session: &mut Session, workload: &'static str, tables: &[TableDefinition], replace: bool) -> Result<(), BenchError> {
    for table in tables {
        if !replace && exists(session, table.name).await? {
            return Err(BenchError::AlreadyLoaded { workload, table: table.name });
        }
    }
    ledger::clear(session, workload).await?;
    for table in tables {
        let drop = format!("DROP TABLE IF EXISTS {}", table.name);
        for statement in std::iter::once(drop.as_str()).chain(table.create.iter().copied()) {
            define(session, statement).await?;
        }
    }
    Ok(())
}

async fn exists(session: &mut Session, table: &str) -> Result<bool, BenchError> {
    let probe = format!("SELECT 1 FROM {table} LIMIT 1");
    retrying(session, &format!("looking for table {table}"), async |session: &mut Session| {
        session.begin_autocommit(Access::ReadOnly).await?;
        match session.batch(&probe).await {
            Err(failure) if failure.is_missing_table() => Ok(false),
            other => other.map(|()| true),
        }
    })
    .await
}

async fn define(session: &mut Session, statement: &str) -> Result<(), BenchError> {
    retrying(session, statement, async |session: &mut Session| {
        session.begin_autocommit(Access::ReadWrite).await?;
        session.batch(statement).await?;
        session.end_autocommit();
        Ok(())
    })
    .await
}

async fn fill(
    endpoint: &Endpoint,
    tables: &[TableDefinition],
    options: &InitOptions,
    source: &Source,
    progress: &dyn Progress,
) -> Result<(), BenchError> {
    let mut session = Session::connect(endpoint, &options.settings).await?;
    let mut rng = Rng::seeded(0);
    while let Some(batch) = source.next_batch() {
        send(&mut session, &tables[batch.table], &batch.rows, options.method, &mut rng).await?;
        progress.position(source.sent.fetch_add(batch.rows.len() as u64, Ordering::Relaxed) + batch.rows.len() as u64);
    }
    Ok(())
}

/// Sends one batch until it is certainly there.
async fn send(
    session: &mut Session,
    table: &TableDefinition,
    rows: &[Vec<Value>],
    method: LoadMethod,
    rng: &mut Rng,
) -> Result<(), BenchError> {
    let policy = RetryPolicy::default();
    let doing = format!("loading table {}", table.name);
    let mut method = method;
    let mut attempt = 1;
    loop {
        let failure = match send_once(session, table, rows, method).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        session.settle(&failure).await;
        if matches!(failure, Failure::Refused { .. }) {
            return Err(BenchError::Statement { doing, reason: failure.cause().to_owned() });
        }
        if attempt >= policy.attempts_max {
            return Err(BenchError::GaveUp { doing, attempts: attempt, reason: failure.cause().to_owned() });
        }
        if matches!(failure, Failure::Unknown { .. }) {
            method = LoadMethod::Insert;
        }
        tokio::time::sleep(policy.wait(attempt, rng)).await;
        attempt += 1;
    }
}

async fn send_once(session: &mut Session, table: &TableDefinition, rows: &[Vec<Value>], method: LoadMethod) -> Result<(), Failure> {
    session.begin_autocommit(Access::ReadWrite).await?;
    match method {
        LoadMethod::Copy => {
            session.copy(&format!("COPY {} ({}) FROM STDIN", table.name, table.columns.join(", ")), Bytes::from(copy_text(rows))).await?;
        }
        LoadMethod::Insert => session.batch(&insert_text(table, rows)).await?,
    }
    session.end_autocommit();
    Ok(())
}

fn copy_text(rows: &[Vec<Value>]) -> String {
    let mut out = String::new();
    for row in rows {
        for (i, value) in row.iter().enumerate() {
            if i > 0 {
                out.push('\t');
            }
            value.write_copy(&mut out);
        }
        out.push('\n');
    }
    out
}

fn insert_text(table: &TableDefinition, rows: &[Vec<Value>]) -> String {
    let mut out = format!("INSERT INTO {} ({}) VALUES ", table.name, table.columns.join(", "));
    for (i, row) in rows.iter().enumerate() {
        out.push_str(if i > 0 { ", (" } else { "(" });
        for (j, value) in row.iter().enumerate() {
            if j > 0 {
                out.push_str(", ");
            }
            value.write_literal(&mut out);
        }
        out.push(')');
    }
    out.push_str(" ON CONFLICT DO NOTHING");
    out
}

struct BatchOfRows {
    table: usize,
    rows: Vec<Vec<Value>>,
}

/// The rows left to send, shared by all loaders.
struct Source {
    names: Vec<&'static str>,
    left: Mutex<std::iter::Peekable<Box<dyn Iterator<Item = LoadRow> + Send>>>,
    taken: Vec<AtomicU64>,
    sent: AtomicU64,
}

impl Source {
    fn new(names: &[&'static str], rows: Box<dyn Iterator<Item = LoadRow> + Send>) -> Source {
        let taken = names.iter().map(|_| AtomicU64::new(0)).collect();
        Source { names: names.to_vec(), left: Mutex::new(rows.peekable()), taken, sent: AtomicU64::new(0) }
    }

    /// The next rows of one table, within the bounds of a batch.
    fn next_batch(&self) -> Option<BatchOfRows> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let first = left.next()?;
        let mut batch = BatchOfRows { table: first.table, rows: vec![first.values] };
        let mut bytes = size(&batch.rows[0]);
        while batch.rows.len() < BATCH_ROWS_MAX && bytes < BATCH_BYTES_MAX {
            let Some(row) = left.next_if(|row| row.table == batch.table) else { break };
            bytes += size(&row.values);
            batch.rows.push(row.values);
        }
        self.taken[batch.table].fetch_add(batch.rows.len() as u64, Ordering::Relaxed);
        Some(batch)
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.names.iter().zip(&self.taken).map(|(name, count)| ((*name).to_owned(), count.load(Ordering::Relaxed))).collect()
    }
}

/// About how many bytes a row takes on the wire.
fn size(values: &[Value]) -> usize {
    const OTHER_BYTES: usize = 12;
    values.iter().map(|value| if let Value::Text(text) = value { text.len() } else { OTHER_BYTES }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(rows: Vec<(usize, String)>) -> Source {
        let rows = rows.into_iter().map(|(table, text)| LoadRow { table, values: vec![text.into()] });
        Source::new(&["a", "b"], Box::new(rows))
    }

    #[test]
    fn a_batch_holds_one_table_and_no_more_than_its_bounds() {
        let mut rows: Vec<(usize, String)> = (0..2 * BATCH_ROWS_MAX + 1).map(|i| (0, i.to_string())).collect();
        rows.extend((0..3).map(|_| (1, "x".repeat(BATCH_BYTES_MAX / 2))));
        let source = source(rows);
        let sizes: Vec<(usize, usize)> = std::iter::from_fn(|| source.next_batch()).map(|batch| (batch.table, batch.rows.len())).collect();
        assert_eq!(sizes, [(0, BATCH_ROWS_MAX), (0, BATCH_ROWS_MAX), (0, 1), (1, 2), (1, 1)]);
        assert_eq!(source.counts(), BTreeMap::from([("a".to_owned(), 2 * BATCH_ROWS_MAX as u64 + 1), ("b".to_owned(), 3)]));
    }

    #[test]
    fn a_batch_is_written_for_copy_and_for_insert() {
        let table = TableDefinition { name: "t", columns: &["a", "b"], create: &[] };
        let rows = [vec![1.into(), "x\ty".into()], vec![2.into(), Value::Null]];
        assert_eq!(copy_text(&rows), "1\tx\\ty\n2\t\\N\n");
        assert_eq!(insert_text(&table, &rows), "INSERT INTO t (a, b) VALUES (1, 'x\ty'), (2, NULL) ON CONFLICT DO NOTHING");
    }
}
