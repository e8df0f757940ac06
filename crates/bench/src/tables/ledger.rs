//! What was loaded, kept in a table beside the data: a run needs the sizes, and a load that was interrupted must not pass for a whole one.
//!
//! The entries of a workload are written last, so their presence means that everything before them is there.

use std::collections::BTreeMap;

use crate::client::postgres::{Access, Session, retrying};
use crate::error::BenchError;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS bench_load (workload VARCHAR(16), parameter VARCHAR(32), setting BIGINT, PRIMARY KEY (workload, parameter))";
const READ: &str = "SELECT parameter, setting FROM bench_load WHERE workload = $1";
const FORGET: &str = "DELETE FROM bench_load WHERE workload = $1";
const WRITE: &str = "INSERT INTO bench_load (workload, parameter, setting) VALUES ($1, $2, $3)";
const RAISE: &str = "UPDATE bench_load SET setting = setting + 1 WHERE workload = $1 AND parameter = $2 RETURNING setting";

/// The parameters of a load, by name.
pub type Parameters = BTreeMap<String, i64>;

/// Creates the table and forgets what was said about `workload`.
pub async fn clear(session: &mut Session, workload: &'static str) -> Result<(), BenchError> {
    retrying(session, "creating table bench_load", async |session: &mut Session| {
        session.begin_autocommit(Access::ReadWrite).await?;
        session.batch(CREATE).await?;
        session.execute(FORGET, &[workload.into()]).await?;
        session.end_autocommit();
        Ok(())
    })
    .await
}

/// Declares `workload` loaded with `parameters`.
pub async fn write(session: &mut Session, workload: &'static str, parameters: &Parameters) -> Result<(), BenchError> {
    retrying(session, "writing what was loaded", async |session: &mut Session| {
        session.begin(Access::ReadWrite).await?;
        for (name, setting) in parameters {
            session.execute(WRITE, &[workload.into(), name.as_str().into(), (*setting).into()]).await?;
        }
        session.commit().await
    })
    .await
}

/// The parameters that `workload` was loaded with.
pub async fn read(session: &mut Session, workload: &'static str) -> Result<Parameters, BenchError> {
    let missing = |reason: &str| BenchError::NotLoaded { workload, reason: reason.to_owned() };
    let rows = retrying(session, "reading what was loaded", async |session: &mut Session| {
        session.begin_autocommit(Access::ReadOnly).await?;
        match session.query(READ, &[workload.into()]).await {
            Err(failure) if failure.is_missing_table() => Ok(None),
            other => other.map(Some),
        }
    })
    .await?
    .ok_or_else(|| missing("table bench_load does not exist"))?;
    if rows.is_empty() {
        return Err(missing("no load of it has finished"));
    }
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<Result<_, tokio_postgres::Error>>()
        .map_err(|error| missing(&error.to_string()))
}

/// Raises a parameter by one and returns its new value, which no other run gets.
pub async fn raise(session: &mut Session, workload: &'static str, parameter: &'static str) -> Result<i64, BenchError> {
    retrying(session, "counting the run", async |session: &mut Session| {
        session.begin(Access::ReadWrite).await?;
        let row = session.query_one(RAISE, &[workload.into(), parameter.into()]).await?;
        session.commit().await?;
        Ok(row.get(0))
    })
    .await
}

/// The parameter `name`, which a load of this version always writes.
pub fn parameter(parameters: &Parameters, workload: &'static str, name: &str) -> Result<i64, BenchError> {
    parameters.get(name).copied().ok_or_else(|| BenchError::NotLoaded { workload, reason: format!("its load does not tell {name:?}") })
}

/// Parameters from the sizes of a load.
pub fn parameters<const N: usize>(pairs: [(&str, u64); N]) -> Parameters {
    pairs.into_iter().map(|(name, size)| (name.to_owned(), i64::try_from(size).expect("sizes fit in 63 bits"))).collect()
}
