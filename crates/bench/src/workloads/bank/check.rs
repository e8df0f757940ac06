//! Whether all the money is still there.

use super::NAME;
use super::invariant::Invariant;
use crate::client::postgres::Session;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::tables::{CheckReport, Rule, evaluate};

/// Checks the accounts when nothing moves.
pub async fn check(session: &mut Session, progress: &dyn Progress) -> Result<CheckReport, BenchError> {
    let Invariant { accounts, total } = Invariant::read(session).await?;
    let sums = "SELECT COUNT(*) AS accounts, SUM(balance) AS total FROM bank_account";
    let rules = [
        Rule {
            number: 1,
            title: "the balances add up to what was loaded",
            offenders: format!("SELECT accounts, total FROM ({sums}) AS sums WHERE total <> {total} OR total IS NULL"),
        },
        Rule {
            number: 2,
            title: "no account appeared or vanished",
            offenders: format!("SELECT accounts, total FROM ({sums}) AS sums WHERE accounts <> {accounts}"),
        },
        Rule {
            number: 3,
            title: "no balance is below zero",
            offenders: "SELECT id, balance FROM bank_account WHERE balance < 0".to_owned(),
        },
    ];
    evaluate(session, NAME, &rules, progress).await
}
