//! The tables, before anything goes wrong.

use super::{bank, counters, families};
use crate::link::Dialer;
use rhumb_core::{SiteId, Span};

/// The database of all clients.
pub const DATABASE: &str = "shop";
/// The one that always exists.
const FIRST: &str = "rhumb";
/// How long to wait before another attempt.
const AGAIN: Span = Span::from_millis(200);

const TABLES: [&str; 8] = [
    "CREATE TABLE IF NOT EXISTS registers (k INT8 PRIMARY KEY, v INT8 NOT NULL)",
    "CREATE INDEX IF NOT EXISTS registers_v ON registers (v)",
    "CREATE TABLE IF NOT EXISTS counters (k INT8 PRIMARY KEY, tag INT8 NOT NULL, n INT8 NOT NULL)",
    "CREATE INDEX IF NOT EXISTS counters_tag ON counters (tag)",
    "CREATE TABLE IF NOT EXISTS accounts (id INT8 PRIMARY KEY, owner INT8 NOT NULL UNIQUE, balance INT8 NOT NULL)",
    "CREATE TABLE IF NOT EXISTS items (id INT8 PRIMARY KEY, code INT8 UNIQUE, grp INT8 NOT NULL, size INT8 NOT NULL, body TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS items_grp ON items (grp)",
    "CREATE OR REPLACE PROCEDURE pay(amount INT8, payer INT8, payee INT8) LANGUAGE SQL AS $$
        UPDATE accounts SET balance = balance - amount WHERE id = payer;
        UPDATE accounts SET balance = balance + amount WHERE id = payee;
    $$",
];

/// Makes the database of `protocol` and its tables, at `site`.
pub async fn make(dialer: Dialer, site: SiteId, protocol: &'static str) {
    let database = format!("CREATE DATABASE IF NOT EXISTS {DATABASE} WITH (protocol = '{protocol}')");
    let first = Dialer { database: FIRST.into(), ..dialer.clone() };
    run(&first, site, &database).await;
    for table in TABLES.into_iter().chain(families::TABLES) {
        run(&dialer, site, table).await;
    }
    run(&dialer, site, &counters::rows()).await;
    run(&dialer, site, &bank::rows()).await;
}

/// Runs a statement, which may be run twice, until it succeeds.
async fn run(dialer: &Dialer, site: SiteId, sql: &str) {
    loop {
        if let Some(mut link) = dialer.connect("setup", site).await
            && link.query(sql).await.is_ok()
        {
            return;
        }
        dialer.time.sleep(AGAIN).await;
    }
}
