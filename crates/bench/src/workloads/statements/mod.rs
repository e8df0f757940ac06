//! Single statements on rows that nobody else touches: what each costs a client where there is no contention.
//!
//! Every terminal goes through the same round, again and again, on a row of its own: insert it, update it, read it, read it twice in a read-only transaction,
//! read a loaded row as of five seconds ago, commit five more rows in one transaction, delete it. Each step checks that it met what the one before left.

mod check;
mod clerk;
mod load;
mod step;

pub use check::check;
pub use clerk::Clerk;
pub use load::Load;

use std::time::Duration;

use rhumb_core::Rng;

use crate::client::postgres::{Access, Session, retrying};
use crate::driver::ClientSlot;
use crate::error::BenchError;
use crate::report::{Timed, Yardstick};
use crate::tables::ledger;
use crate::transactions::Transactions;

const NAME: &str = "statements";

/// Rows of the explicit transaction.
const ROWS: i32 = 5;

/// The run and the terminal of loaded rows; those of runs count from 1.
const LOADED: i32 = 0;

const SELECT_STALE: &str = "SELECT content FROM statement_row AS OF SYSTEM TIME '-5s' WHERE run = $1 AND terminal = $2 AND id = $3";

/// How long to wait, and how often, until rows just loaded are so old.
const AGE_WAIT: Duration = Duration::from_millis(250);
const AGE_WAITS_MAX: u32 = 40;

/// The workload, its table loaded.
pub struct Statements {
    /// Loaded rows.
    rows: i32,
    /// This run's number.
    run: i32,
}

impl Statements {
    /// Reads from the server what was loaded, and waits until stale reads find it.
    pub async fn open(session: &mut Session) -> Result<Statements, BenchError> {
        let rows = loaded(session).await?;
        let run = i32::try_from(ledger::raise(session, NAME, "runs").await?)
            .map_err(|_| BenchError::NotLoaded { workload: NAME, reason: "it has seen too many runs; load it again".to_owned() })?;
        for _ in 0..AGE_WAITS_MAX {
            let found = retrying(session, "reading a loaded row", async |session: &mut Session| {
                session.begin_autocommit(Access::ReadOnly).await?;
                match session.query(SELECT_STALE, &[LOADED.into(), LOADED.into(), (rows - 1).into()]).await {
                    Err(failure) if failure.is_missing_table() => Ok(false),
                    other => Ok(!other?.is_empty()),
                }
            });
            if found.await? {
                return Ok(Statements { rows, run });
            }
            tokio::time::sleep(AGE_WAIT).await;
        }
        Err(BenchError::NotLoaded { workload: NAME, reason: "a read as of five seconds ago does not find the last loaded row".to_owned() })
    }
}

async fn loaded(session: &mut Session) -> Result<i32, BenchError> {
    let rows = ledger::parameter(&ledger::read(session, NAME).await?, NAME, "rows")?;
    i32::try_from(rows).map_err(|error| BenchError::NotLoaded { workload: NAME, reason: error.to_string() })
}

const WIDE_AREA: Yardstick = Yardstick { timed: Timed::Whole, wide_area: true };

impl Transactions for Statements {
    type Terminal = Clerk;

    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        format!("statements, {} loaded rows", self.rows)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &[
            "INSERT of a row",
            "UPDATE by key",
            "SELECT by key",
            "read-only transaction of two SELECTs",
            "SELECT by key AS OF SYSTEM TIME '-5s'",
            "COMMIT of five rows",
            "DELETE by key",
        ]
    }

    fn yardsticks(&self) -> &'static [Yardstick] {
        &[
            WIDE_AREA,
            WIDE_AREA,
            WIDE_AREA,
            WIDE_AREA,
            Yardstick { wide_area: false, ..WIDE_AREA },
            Yardstick { timed: Timed::Commit, ..WIDE_AREA },
            WIDE_AREA,
        ]
    }

    fn terminal(&self, slot: ClientSlot, rng: Rng) -> Clerk {
        Clerk::new(self.run, slot.number() as i32, self.rows, rng)
    }
}

#[cfg(test)]
mod tests {
    use super::step::{ROUND, Step};
    use super::*;

    #[test]
    fn every_step_has_a_name_and_a_yardstick() {
        let workload = Statements { rows: 1, run: 1 };
        assert_eq!((workload.kinds().len(), workload.yardsticks().len()), (ROUND.len(), ROUND.len()));
        let at = |step| ROUND.iter().position(|other| *other == step).expect("in the round");
        assert_eq!(workload.yardsticks()[at(Step::FiveRows)].timed, Timed::Commit);
        assert!(!workload.yardsticks()[at(Step::Stale)].wide_area);
    }
}
