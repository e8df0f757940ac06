//! Audits: in one read-only transaction, each table is read in the order of its rows and through each of its indexes, and all of these must
//! show the same; and so must what else holds of them.

use super::{Client, bank, families, registers};
use crate::link::{Dialer, Failed, Link};
use crate::shared::Shared;
use rhumb_core::{Rng, SiteId, Span, Time};
use rhumb_sim::history::TxnNo;
use std::collections::BTreeSet;

/// How long to wait before a final audit that failed is done again.
const AGAIN: Span = Span::from_millis(300);
/// The number of the client that reads last.
const LAST_CLIENT: u32 = 1_000;

/// Rows as text.
type Rows = Vec<Vec<Option<String>>>;

/// A table, how all of it is read, and how it is read through each of its indexes.
struct Table {
    name: &'static str,
    columns: &'static str,
    indexes: &'static [&'static str],
}

const TABLES: [Table; 5] = [
    Table { name: "registers", columns: "k, v", indexes: &["v >= 0"] },
    Table { name: "counters", columns: "k, n, tag", indexes: &["tag >= 0"] },
    Table { name: "accounts", columns: "id, owner, balance", indexes: &["owner >= 0"] },
    Table {
        name: "items",
        columns: "id, code, grp, size, length(body)",
        indexes: &["grp >= 0", "grp = 0 AND code >= 0", "grp = 1 AND code >= 0", "grp = 2 AND code >= 0", "grp = 3 AND code >= 0"],
    },
    Table { name: "taken", columns: "id, parent", indexes: &["parent >= 0"] },
];
/// Of items, those that a unique index leaves out are those without a code.
const CODED: &str = "code >= 0";
const SCRATCH: Table = Table { name: "scratch", columns: "id, n, v", indexes: &["n >= 0", "v >= 0"] };
/// The column of a table that is unique besides its key.
const UNIQUE: usize = 1;

/// What an audit found, if its transaction committed.
struct Found {
    tables: Vec<Rows>,
    scratch: Option<Rows>,
}

/// Audits all tables. An error if they could not be read, or not all in one transaction.
pub async fn all(shared: &Shared, link: &mut Link) -> Result<(), Failed> {
    audited(shared, link).await.map(drop)
}

async fn audited(shared: &Shared, link: &mut Link) -> Result<Found, Failed> {
    let least = shared.with(|record| record.counters.least());
    link.query("BEGIN READ ONLY").await?;
    let mut complaints = Vec::new();
    let mut tables = Vec::new();
    for table in &TABLES {
        tables.push(read(link, table, &mut complaints).await?);
    }
    complaints.extend(orphan(link).await?);
    link.query("COMMIT").await?;
    // By itself, since there may be no such table, which ends a transaction.
    let scratch = match scratch(link, &mut complaints).await {
        Ok(rows) => Some(rows),
        Err(Failed::Refused("42P01")) => None,
        Err(failed) => return Err(failed),
    };
    shared.count("audits");
    complaints.extend(check_sums(&tables));
    for row in &tables[1] {
        let (key, n) = (number(&row[0]), number(&row[1]));
        let held = shared.with(|record| record.counters.found(key, n, least.get(&key).copied().unwrap_or(0)));
        complaints.extend(held.err());
    }
    if let Some(complaint) = complaints.into_iter().next() {
        shared.wrong(|| complaint);
    }
    Ok(Found { tables, scratch })
}

/// A row that references one which is not there.
async fn orphan(link: &mut Link) -> Result<Option<String>, Failed> {
    let parents = link.statement("SELECT id, above FROM parents").await?.rows;
    let known: BTreeSet<&Option<String>> = parents.iter().map(|row| &row[0]).collect();
    let broken = |row: &&Vec<Option<String>>| row[1].is_some() && !known.contains(&row[1]);
    if let Some(row) = parents.iter().find(broken) {
        return Ok(Some(format!("a parent references one that is not there: {row:?} among {parents:?}")));
    }
    for table in families::CHILDREN {
        let children = link.statement(&format!("SELECT id, parent FROM {table}")).await?.rows;
        if let Some(row) = children.iter().find(broken) {
            return Ok(Some(format!("a row of {table} references a parent that is not there: {row:?}; there are {parents:?}")));
        }
    }
    Ok(None)
}

async fn scratch(link: &mut Link, complaints: &mut Vec<String>) -> Result<Rows, Failed> {
    let found = async {
        link.query("BEGIN READ ONLY").await?;
        let rows = read(link, &SCRATCH, complaints).await?;
        link.query("COMMIT").await?;
        Ok(rows)
    };
    let found = found.await;
    link.leave().await;
    found
}

/// Reads a table both ways; its rows.
async fn read(link: &mut Link, table: &Table, complaints: &mut Vec<String>) -> Result<Rows, Failed> {
    let Table { name, columns, indexes } = table;
    let rows = link.statement(&format!("SELECT {columns} FROM {name} ORDER BY 1")).await?.rows;
    for condition in indexes.iter().chain((*name == "items").then_some(&CODED)) {
        let found = link.statement(&format!("SELECT {columns} FROM {name} WHERE {condition}")).await?.rows;
        let expected: Rows = rows.iter().filter(|row| satisfies(row, name, condition)).cloned().collect();
        if sorted(&found) != sorted(&expected) {
            complaints.push(format!("{name} WHERE {condition} shows {found:?}, but the table holds {expected:?}"));
        }
    }
    let unique: Vec<&String> = rows.iter().filter_map(|row| row[UNIQUE].as_ref()).collect();
    let distinct: BTreeSet<&&String> = unique.iter().collect();
    if ["accounts", "items", "scratch"].contains(name) && distinct.len() < unique.len() {
        complaints.push(format!("a unique column of {name} holds a value twice: {rows:?}"));
    }
    Ok(rows)
}

/// True if a row, as it was read by key, satisfies one of the conditions above.
fn satisfies(row: &[Option<String>], name: &str, condition: &str) -> bool {
    let has_code = !["items", "taken"].contains(&name) || row[UNIQUE].is_some();
    match condition.strip_prefix("grp = ") {
        Some(rest) => has_code && row[2].as_deref() == rest.split(' ').next(),
        None => condition == "grp >= 0" || has_code,
    }
}

fn sorted(rows: &Rows) -> Rows {
    let mut rows = rows.clone();
    rows.sort();
    rows
}

fn number(text: &Option<String>) -> u64 {
    text.as_ref().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

/// What holds within a table.
fn check_sums(tables: &[Rows]) -> Option<String> {
    let [_, counters, accounts, items, _] = tables else { unreachable!("there are five tables") };
    let balance: i64 = accounts.iter().filter_map(|row| row[2].as_ref()?.parse::<i64>().ok()).sum();
    if accounts.len() as u64 != bank::ACCOUNTS || balance != bank::TOTAL as i64 {
        return Some(format!("the accounts hold {balance}, not {}: {accounts:?}", bank::TOTAL));
    }
    if counters.is_empty() {
        return Some("the counters are gone".into());
    }
    items.iter().find(|row| row[3] != row[4]).map(|row| format!("an item holds another text than was written: {row:?}"))
}

/// Audits at each of `sites` until that succeeds, and the final reads of single rows at the last one.
pub async fn finals(dialer: Dialer, sites: Vec<SiteId>) -> Vec<TxnNo> {
    let mut finals = Vec::new();
    for &site in &sites {
        let client = Client::new(LAST_CLIENT, site, Time::ZERO, 0, dialer.clone(), Rng::seeded(0));
        loop {
            if let Some(mut link) = dialer.connect("last", site).await
                && let Ok(found) = audited(&dialer.shared, &mut link).await
                && let Some(read) = registers::read_all(&client, &mut link).await
            {
                finals.push(read);
                dialer.shared.with(|record| {
                    let keys = |rows: &Rows| rows.iter().map(|row| number(&row[0])).collect();
                    record.items.found(keys(&found.tables[3]));
                    record.scratch.found(found.scratch.as_ref().map(keys).unwrap_or_default());
                });
                break;
            }
            dialer.time.sleep(AGAIN).await;
        }
    }
    finals
}
