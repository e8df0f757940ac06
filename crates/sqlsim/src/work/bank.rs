//! Accounts: money moves between them, and is never made nor lost.

use super::Client;
use crate::link::Link;

/// The accounts.
pub const ACCOUNTS: u64 = 5;
/// What each has at the beginning.
const BALANCE: u64 = 1_000;
/// What all of them have together, always.
pub const TOTAL: u64 = ACCOUNTS * BALANCE;
/// Owners are numbered from here, so that they are not taken for accounts.
const OWNERS: u64 = 100;

/// The rows at the beginning.
pub fn rows() -> String {
    let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {}, {BALANCE})", OWNERS + id)).collect();
    format!("INSERT INTO accounts VALUES {} ON CONFLICT DO NOTHING", rows.join(", "))
}

/// Moves money, in one of several ways. Whether it moved does not matter.
pub async fn work(client: &mut Client, link: &mut Link) {
    let (payer, amount) = (client.rng.below(ACCOUNTS), client.rng.between(1, 9));
    let payee = (payer + client.rng.between(1, ACCOUNTS - 1)) % ACCOUNTS;
    let _ = match client.rng.below(4) {
        0 => link.query(&format!("CALL pay({amount}, {payer}, {payee})")).await.map(drop),
        1 => {
            let text = format!(
                "BEGIN; UPDATE accounts SET balance = balance - {amount} WHERE id = {payer};
                 UPDATE accounts SET balance = balance + {amount} WHERE id = {payee}; COMMIT"
            );
            link.query(&text).await.map(drop)
        }
        2 => by_owner(link, payer, payee, amount).await,
        _ => by_hand(link, payer, payee, amount).await,
    };
}

/// By what was read before, in one transaction.
async fn by_hand(link: &mut Link, payer: u64, payee: u64, amount: u64) -> Result<(), crate::link::Failed> {
    link.query("BEGIN").await?;
    let found = link.statement(&format!("SELECT id, balance FROM accounts WHERE id IN ({payer}, {payee})")).await?;
    let balance = |id: u64| {
        let row = found.rows.iter().find(|row| row[0] == Some(id.to_string()));
        row.and_then(|row| row[1].as_ref()?.parse::<i64>().ok()).unwrap_or_default()
    };
    let (less, more) = (balance(payer) - amount as i64, balance(payee) + amount as i64);
    link.query(&format!("UPDATE accounts SET balance = {less} WHERE id = {payer}")).await?;
    link.query(&format!("UPDATE accounts SET balance = {more} WHERE id = {payee}")).await?;
    link.query("COMMIT").await.map(drop)
}

/// By the unique index, both in one statement.
async fn by_owner(link: &mut Link, payer: u64, payee: u64, amount: u64) -> Result<(), crate::link::Failed> {
    let (payer, payee) = (OWNERS + payer, OWNERS + payee);
    let change = format!("CASE WHEN owner = {payer} THEN balance - {amount} ELSE balance + {amount} END");
    link.query(&format!("UPDATE accounts SET balance = {change} WHERE owner IN ({payer}, {payee})")).await.map(drop)
}
