//! Whether loaded rows are as they were, and transactions of several rows left all of them or none.

use super::{LOADED, NAME, ROWS, loaded};
use crate::client::postgres::Session;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::tables::{CheckReport, Rule, evaluate};

/// Checks that the loaded rows are as they were, and that transactions of five rows left five or none.
pub async fn check(session: &mut Session, progress: &dyn Progress) -> Result<CheckReport, BenchError> {
    let rows = loaded(session).await?;
    let kept = format!("SELECT COUNT(*) AS kept FROM statement_row WHERE run = {LOADED} AND content = id");
    let places = ROWS + 1;
    let whole = format!(
        "SELECT run, terminal, id / {places} AS round, COUNT(*) AS found FROM statement_row WHERE run <> {LOADED} AND id % {places} <> 0 \
         GROUP BY run, terminal, id / {places}"
    );
    let rules = [
        Rule {
            number: 1,
            title: "the loaded rows are as they were",
            offenders: format!("SELECT kept FROM ({kept}) AS counted WHERE kept <> {rows}"),
        },
        Rule {
            number: 2,
            title: "of the rows of one transaction all are there",
            offenders: format!("SELECT run, terminal, round, found FROM ({whole}) AS counted WHERE found <> {ROWS}"),
        },
    ];
    evaluate(session, NAME, &rules, progress).await
}
