//! Rows with several indexes, inserted and deleted by key, by index and by range; large ones among them.

use super::Client;
use crate::link::{Failed, Link};
use rhumb_core::Time;
use rhumb_sql::embedded::Reply;

const IDS: u64 = 24;
const CODES: u64 = 30;
const GROUPS: u64 = 4;
/// Bytes of a row that is not large.
const SIZE_MAX: u64 = 40;
/// Bytes of a larger one.
const LARGE_MAX: u64 = 100_000;
/// How often a row is larger.
const LARGE: f64 = 0.04;
/// How often a transaction is as large as it may be, where that is done.
const BULKY: f64 = 0.03;
/// Rows that share the bytes of such a transaction.
const BULKY_ROWS: u64 = 4;

impl Client {
    /// The values of a new row.
    fn item(&mut self, id: u64, size: u64) -> String {
        let (code, grp) = (self.rng.below(CODES), self.rng.below(GROUPS));
        let code = if self.rng.chance(0.1) { "NULL".into() } else { code.to_string() };
        format!("({id}, {code}, {grp}, {size}, repeat('x', {size}))")
    }

    fn size(&mut self) -> u64 {
        let most = if self.rng.chance(LARGE) { LARGE_MAX } else { SIZE_MAX };
        self.rng.below(most)
    }
}

/// One statement, or a large transaction.
pub async fn work(client: &mut Client, link: &mut Link) {
    if client.bulk > 0 && client.rng.chance(BULKY) {
        return bulky(client, link).await;
    }
    let (id, other) = (client.rng.below(IDS), client.rng.below(IDS));
    let (low, high) = (id.min(other), id.max(other).min(id.min(other) + 5));
    let (grp, code) = (client.rng.below(GROUPS), client.rng.below(CODES));
    match client.rng.below(100) {
        0..30 => insert(client, link, id).await,
        30..42 => {
            let (size, on) = (client.size(), if client.rng.chance(0.5) { "(id) " } else { "" });
            let row = client.item(id, size);
            let insert = format!("INSERT INTO items VALUES {row} ON CONFLICT {on}DO NOTHING RETURNING id");
            added(client, link, &insert).await;
        }
        42..50 => {
            let size = client.size();
            let row = client.item(id, size);
            let change = "code = excluded.code, grp = excluded.grp, size = excluded.size, body = excluded.body";
            // Whether it was there before nobody knows, and so nothing follows for its presence.
            let _ = link.query(&format!("INSERT INTO items VALUES {row} ON CONFLICT (id) DO UPDATE SET {change}")).await;
        }
        50..60 => drop(link.query(&format!("UPDATE items SET grp = {grp} WHERE code = {code}")).await),
        60..68 => drop(link.query(&format!("UPDATE items SET code = {code} WHERE id = {id}")).await),
        68..74 => drop(link.query(&format!("UPDATE items SET grp = {grp} WHERE id BETWEEN {low} AND {high}")).await),
        74..82 => rekey(client, link, id, other).await,
        82..90 => removed(client, link, &format!("DELETE FROM items WHERE id BETWEEN {low} AND {high} RETURNING id")).await,
        90..97 => removed(client, link, &format!("DELETE FROM items WHERE grp = {grp} RETURNING id")).await,
        _ => clear(client, link).await,
    }
}

async fn insert(client: &mut Client, link: &mut Link, id: u64) {
    let rows: Vec<String> = (id..=id + client.rng.below(3))
        .map(|id| {
            let size = client.size();
            client.item(id, size)
        })
        .collect();
    added(client, link, &format!("INSERT INTO items VALUES {} RETURNING id", rows.join(", "))).await;
}

/// The ids that a statement returned.
fn ids(reply: &Reply) -> Vec<u64> {
    reply.rows.iter().filter_map(|row| row[0].as_ref()?.parse().ok()).collect()
}

async fn added(client: &Client, link: &mut Link, sql: &str) {
    let asked = client.now();
    if let Ok(reply) = link.statement(sql).await {
        let now = client.now();
        client.shared().with(|record| record.items.inserted(&ids(&reply), asked, now));
    }
}

async fn removed(client: &Client, link: &mut Link, sql: &str) {
    let asked = client.now();
    let answer = link.statement(sql).await;
    let now = client.now();
    client.shared().with(|record| match answer {
        Ok(reply) => record.items.deleted(ids(&reply), asked, Some(now)),
        Err(failed) if failed.may_have() => record.items.cleared(asked, None),
        Err(_) => {}
    });
}

/// Gives a row another key.
async fn rekey(client: &Client, link: &mut Link, from: u64, to: u64) {
    let asked = client.now();
    let answer = link.statement(&format!("UPDATE items SET id = {to} WHERE id = {from} RETURNING id")).await;
    let now = client.now();
    client.shared().with(|record| match answer {
        Ok(reply) if !reply.rows.is_empty() => {
            record.items.deleted([from], asked, Some(now));
            record.items.inserted(&[to], asked, now);
        }
        Err(failed) if failed.may_have() => record.items.deleted([from], asked, None),
        Ok(_) | Err(_) => {}
    });
}

async fn clear(client: &Client, link: &mut Link) {
    let asked: Time = client.now();
    let answer = link.query("TRUNCATE items").await;
    let now = client.now();
    if answer.as_ref().map_or_else(Failed::may_have, |_| true) {
        client.shared().with(|record| record.items.cleared(asked, answer.is_ok().then_some(now)));
    }
}

/// A transaction of about as many bytes as one may write, some more or some less.
async fn bulky(client: &mut Client, link: &mut Link) {
    let size = client.bulk / BULKY_ROWS * client.rng.between(80, 102) / 100;
    let first = client.rng.below(IDS);
    let asked = client.now();
    client.shared().count("bulky transactions");
    if link.query("BEGIN").await.is_err() {
        return;
    }
    for id in first..first + BULKY_ROWS {
        let row = client.item(id, size);
        if link.query(&format!("INSERT INTO items VALUES {row} ON CONFLICT DO NOTHING")).await.is_err() {
            return;
        }
    }
    let answer = link.query("COMMIT").await;
    let now = client.now();
    if answer.is_ok() {
        client.shared().count("bulky transactions committed");
        // They are not kept for long: a run's time goes into moving them about.
        removed(client, link, &format!("DELETE FROM items WHERE id BETWEEN {first} AND {} RETURNING id", first + BULKY_ROWS)).await;
    }
    client.shared().log(now, format_args!("a large transaction begun at {asked} is over: {}", answer.is_ok()));
}
