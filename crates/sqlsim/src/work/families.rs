//! Rows that reference each other: parents come and go and get other keys, and no child may be left without its parent.

use super::Client;
use crate::link::{Failed, Link};

/// The tables of children, whose parents are all in one table: what becomes of a child, and when it is looked for.
pub const CHILDREN: [&str; 3] = ["kept", "taken", "freed"];
const PARENTS: u64 = 8;
const IDS: u64 = 12;

/// The tables.
pub const TABLES: [&str; 5] = [
    "CREATE TABLE IF NOT EXISTS parents (id INT8 PRIMARY KEY, above INT8 REFERENCES parents ON DELETE SET NULL ON UPDATE CASCADE)",
    "CREATE TABLE IF NOT EXISTS kept (id INT8 PRIMARY KEY, parent INT8 REFERENCES parents)",
    "CREATE TABLE IF NOT EXISTS taken (id INT8 PRIMARY KEY, parent INT8 REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE IF NOT EXISTS freed (id INT8 PRIMARY KEY,
        parent INT8 REFERENCES parents ON DELETE SET NULL ON UPDATE NO ACTION DEFERRABLE INITIALLY DEFERRED)",
    "CREATE INDEX IF NOT EXISTS taken_parent ON taken (parent)",
];

/// One statement, or a transaction of several.
pub async fn work(client: &mut Client, link: &mut Link) {
    let (parent, other, id) = (client.rng.below(PARENTS), client.rng.below(PARENTS), client.rng.below(IDS));
    let table = *client.rng.pick(&CHILDREN).expect("three of them");
    let above = if client.rng.chance(0.5) { "NULL".to_owned() } else { other.to_string() };
    let _ = match client.rng.below(100) {
        0..20 => link.query(&format!("INSERT INTO parents VALUES ({parent}, {above}) ON CONFLICT DO NOTHING")).await.map(drop),
        20..32 => link.query(&format!("DELETE FROM parents WHERE id = {parent}")).await.map(drop),
        32..40 => link.query(&format!("UPDATE parents SET id = {other} WHERE id = {parent}")).await.map(drop),
        40..65 => link
            .query(&format!("INSERT INTO {table} VALUES ({id}, {parent}) ON CONFLICT (id) DO UPDATE SET parent = {parent}"))
            .await
            .map(drop),
        65..73 => link.query(&format!("UPDATE {table} SET parent = {parent} WHERE id = {id}")).await.map(drop),
        73..81 => link.query(&format!("DELETE FROM {table} WHERE id = {id}")).await.map(drop),
        81..91 => adopted(link, table, id, parent).await,
        _ => replaced(link, table, id, parent).await,
    };
}

/// A child comes first, its parent then.
async fn adopted(link: &mut Link, table: &str, id: u64, parent: u64) -> Result<(), Failed> {
    link.query("BEGIN; SET CONSTRAINTS ALL DEFERRED").await?;
    link.query(&format!("INSERT INTO {table} VALUES ({id}, {parent}) ON CONFLICT (id) DO UPDATE SET parent = {parent}")).await?;
    link.query(&format!("INSERT INTO parents VALUES ({parent}) ON CONFLICT DO NOTHING")).await?;
    link.query("COMMIT").await.map(drop)
}

/// A parent goes along with a child of it, and may leave others behind, which is refused.
async fn replaced(link: &mut Link, table: &str, id: u64, parent: u64) -> Result<(), Failed> {
    link.query("BEGIN").await?;
    link.query(&format!("DELETE FROM {table} WHERE id = {id}")).await?;
    link.query(&format!("DELETE FROM parents WHERE id = {parent}")).await?;
    link.query("COMMIT").await.map(drop)
}
