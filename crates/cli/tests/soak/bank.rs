//! The databases, one of each protocol: accounts whose sum stays, a counter and a wide row for each client; and what must be in them.

use crate::cluster::Cluster;
use crate::journal::Journal;
use rhumb_bench::client::postgres::{Access, Failure, Session, TextRow};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The protocols; their databases have the same names.
pub const PROTOCOLS: [&str; 3] = ["replicated_commit", "catenae", "quad"];
/// Accounts of a database.
pub const ACCOUNTS: i64 = 40;
/// The money in a database.
pub const TOTAL: i64 = ACCOUNTS * BALANCE;
/// Columns of a wide row besides the payload.
pub const WIDE_COLUMNS: usize = 40;
const BALANCE: i64 = 1_000;
/// The longest payload of a wide row, in bytes.
const PAYLOAD_BYTES_MAX: usize = 128 << 10;
/// How long a read may take once all is healed.
const READ_WITHIN: Duration = Duration::from_secs(90);
const BREATH: Duration = Duration::from_millis(500);

/// The payload that belongs to the value of the other columns.
pub fn payload(value: i64) -> String {
    let word = format!("{value:08x} ");
    word.repeat(1 + value as usize % (PAYLOAD_BYTES_MAX / word.len()))
}

/// Makes the databases, with a row for each client of each.
pub async fn create(cluster: &Cluster, clients: usize) {
    let system = session(cluster, 0, "rhumb").await;
    for protocol in PROTOCOLS {
        system.batch(&format!("CREATE DATABASE {protocol} WITH (protocol = '{protocol}')")).await.expect("created");
        let database = session(cluster, 0, protocol).await;
        let columns: Vec<String> = (0..WIDE_COLUMNS).map(|column| format!("c{column} BIGINT NOT NULL")).collect();
        for table in [
            "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)".to_owned(),
            "CREATE TABLE tally (client BIGINT PRIMARY KEY, n BIGINT NOT NULL)".to_owned(),
            format!("CREATE TABLE wide (client BIGINT PRIMARY KEY, payload TEXT NOT NULL, {})", columns.join(", ")),
        ] {
            database.batch(&table).await.expect("created");
        }
        let values = |count: i64, row: &dyn Fn(i64) -> String| (0..count).map(row).collect::<Vec<_>>().join(", ");
        let accounts = values(ACCOUNTS, &|id| format!("({id}, {BALANCE})"));
        let tallies = values(clients as i64, &|client| format!("({client}, 0)"));
        let wide = values(clients as i64, &|client| format!("({client}, '{}'{})", payload(0), ", 0".repeat(WIDE_COLUMNS)));
        for (table, values) in [("account", accounts), ("tally", tallies), ("wide", wide)] {
            database.batch(&format!("INSERT INTO {table} VALUES {values}")).await.expect("inserted");
        }
    }
}

/// Looks in every region for what the clients were told of. Returns what is not as it must be.
pub async fn check(cluster: &Cluster, journals: &[Arc<Journal>]) -> Vec<String> {
    let mut found = Vec::new();
    for (protocol, region) in PROTOCOLS.into_iter().flat_map(|protocol| (0..cluster.len()).map(move |region| (protocol, region))) {
        let own: Vec<_> = journals.iter().filter(|journal| journal.protocol == protocol).collect();
        match look(cluster, region, protocol, &own).await {
            Ok(wrong) => found.extend(wrong.into_iter().map(|wrong| format!("{protocol} read in {}: {wrong}", cluster.name(region)))),
            Err(failure) => found.push(format!("{protocol} in {} cannot be read once all is healed: {failure:?}", cluster.name(region))),
        }
    }
    found
}

async fn look(cluster: &Cluster, region: usize, protocol: &str, journals: &[&Arc<Journal>]) -> Result<Vec<String>, Failure> {
    let mut session = session(cluster, region, protocol).await;
    let mut found = Vec::new();
    let accounts = patiently(&mut session, "SELECT id, balance FROM account").await?;
    let sum: i64 = accounts.iter().map(|row| number(row, 1)).sum();
    if (sum, accounts.len()) != (TOTAL, ACCOUNTS as usize) {
        found.push(format!("{sum} in {} accounts, not {TOTAL} in {ACCOUNTS}", accounts.len()));
    }
    let tallies = patiently(&mut session, "SELECT client, n FROM tally").await?;
    let tallies: BTreeMap<i64, i64> = tallies.iter().map(|row| (number(row, 0), number(row, 1))).collect();
    for (client, journal) in (0..).zip(journals) {
        let shown = tallies.get(&client).copied();
        if !shown.is_some_and(|shown| journal.range().contains(&shown)) {
            found.push(format!("client {client} has committed {shown:?} transactions; {:?} is possible", journal.range()));
        }
    }
    for row in patiently(&mut session, "SELECT * FROM wide").await? {
        let values: Vec<i64> = (2..2 + WIDE_COLUMNS).map(|column| number(&row, column)).collect();
        if values.iter().any(|value| *value != values[0]) || row[1].1.as_ref() != Some(&payload(values[0])) {
            found.push(format!("the wide row of client {} is of several transactions", number(&row, 0)));
        }
    }
    Ok(found)
}

/// Reads until there is an answer.
async fn patiently(session: &mut Session, sql: &str) -> Result<Vec<TextRow>, Failure> {
    let begun = Instant::now();
    loop {
        let read = match session.begin_autocommit(Access::ReadOnly).await {
            Ok(()) => session.query_text(sql).await,
            Err(failure) => Err(failure),
        };
        match read {
            Err(failure) if failure.is_retryable() && begun.elapsed() < READ_WITHIN => session.settle(&failure).await,
            answer => return answer,
        }
        tokio::time::sleep(BREATH).await;
    }
}

fn number(row: &TextRow, column: usize) -> i64 {
    row[column].1.as_deref().and_then(|text| text.parse().ok()).expect("the tables hold numbers there")
}

async fn session(cluster: &Cluster, region: usize, database: &str) -> Session {
    let begun = Instant::now();
    loop {
        match Session::connect(&cluster.endpoint(region, database), &BTreeMap::new()).await {
            Ok(session) => return session,
            Err(error) => assert!(begun.elapsed() < READ_WITHIN, "{database} in {}: {error}", cluster.name(region)),
        }
        tokio::time::sleep(BREATH).await;
    }
}
