//! Tables and indexes that come and go while others use them.

use super::Client;
use crate::link::{Failed, Link};

const IDS: u64 = 8;
const VALUES: u64 = 12;

/// One statement about the schema, or on a table that may not be there.
pub async fn work(client: &mut Client, link: &mut Link) {
    let (id, value) = (client.rng.below(IDS), client.rng.below(VALUES));
    match client.rng.below(100) {
        0..12 => drop(link.query("CREATE INDEX IF NOT EXISTS items_extra ON items (grp, code)").await),
        12..20 => drop(link.query("DROP INDEX IF EXISTS items_extra").await),
        20..35 => {
            let create = "CREATE TABLE IF NOT EXISTS scratch (id INT8 PRIMARY KEY, n INT8 UNIQUE, v INT8 NOT NULL)";
            let _ = link.query(create).await;
        }
        35..43 => removing(client, link, "DROP TABLE IF EXISTS scratch").await,
        43..50 => drop(link.query("CREATE INDEX IF NOT EXISTS scratch_v ON scratch (v)").await),
        50..55 => drop(link.query("DROP INDEX IF EXISTS scratch_v").await),
        55..85 => adding(client, link, id, value).await,
        85..95 => drop(link.query(&format!("UPDATE scratch SET v = {value} WHERE id <= {id}")).await),
        _ => removing(client, link, &format!("DELETE FROM scratch WHERE v = {value}")).await,
    }
}

async fn adding(client: &Client, link: &mut Link, id: u64, value: u64) {
    let asked = client.now();
    if link.query(&format!("INSERT INTO scratch VALUES ({id}, {value}, {value})")).await.is_ok() {
        let now = client.now();
        client.shared().with(|record| record.scratch.inserted(&[id], asked, now));
    }
}

/// What may take any of the rows along.
async fn removing(client: &Client, link: &mut Link, sql: &str) {
    let asked = client.now();
    let answer = link.query(sql).await;
    let now = client.now();
    if answer.as_ref().map_or_else(Failed::may_have, |_| true) {
        client.shared().with(|record| record.scratch.cleared(asked, answer.is_ok().then_some(now)));
    }
}
