//! Rows counted in, by key and by index.

use super::Client;
use crate::link::{Failed, Link};

const KEYS: u64 = 4;
const TAGS: u64 = 3;

/// The rows at the beginning.
pub fn rows() -> String {
    let rows: Vec<String> = (0..KEYS).map(|key| format!("({key}, {}, 0)", key % TAGS)).collect();
    format!("INSERT INTO counters VALUES {} ON CONFLICT DO NOTHING", rows.join(", "))
}

/// Counts one row, or those with a tag, or moves one to another tag.
pub async fn work(client: &mut Client, link: &mut Link) {
    let (key, tag) = (client.rng.below(KEYS), client.rng.below(TAGS));
    match client.rng.below(10) {
        0..4 => count(client, link, &format!("k = {key}"), vec![key]).await,
        4..8 => count(client, link, &format!("tag = {tag}"), (0..KEYS).collect()).await,
        // Nothing is counted, whatever becomes of it.
        _ => drop(link.query(&format!("UPDATE counters SET tag = {tag} WHERE k = {key}")).await),
    }
}

/// Counts the rows that satisfy `condition`, among `candidates`.
async fn count(client: &Client, link: &mut Link, condition: &str, candidates: Vec<u64>) {
    let shared = client.shared();
    shared.with(|record| record.counters.each(candidates.iter().copied(), |count| count.begun += 1));
    match link.statement(&format!("UPDATE counters SET n = n + 1 WHERE {condition} RETURNING k")).await {
        Ok(reply) => {
            let counted: Vec<u64> = reply.rows.iter().filter_map(|row| row[0].as_ref()?.parse().ok()).collect();
            shared.with(|record| {
                record.counters.each(counted.iter().copied(), |count| count.known += 1);
                record.counters.each(candidates.into_iter().filter(|key| !counted.contains(key)), |count| count.failed += 1);
            });
        }
        Err(failed) if failed.may_have() => {}
        Err(Failed::Lost | Failed::Refused(..)) => shared.with(|record| record.counters.each(candidates, |count| count.failed += 1)),
    }
}
