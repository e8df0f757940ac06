//! Single statements on rows that nobody else touches: what each costs a client where there is no contention.
//!
//! Every terminal goes through the same round, again and again, on a row of its own: insert it, update it, read it, read it twice in a read-only transaction,
//! read a loaded row as of five seconds ago, commit five more rows in one transaction, delete it. Each step checks that it met what the one before left.

use std::time::Duration;

use rhumb_core::Rng;

use crate::client::postgres::{Access, Failure, Session, Value, get, retrying, values_list};
use crate::driver::Seat;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::report::{Timed, Yardstick};
use crate::tables::{CheckReport, Dataset, LoadRow, Rule, TableDefinition, evaluate, ledger};
use crate::transactions::{Drawn, Terminal, Transactions, Verdict};

const NAME: &str = "statements";

/// Rows of the explicit transaction.
const ROWS: i32 = 5;

/// The run and the terminal of loaded rows; those of runs count from 1.
const LOADED: i32 = 0;

const TABLES: [TableDefinition; 1] = [TableDefinition {
    name: "statement_row",
    columns: &["run", "terminal", "id", "content"],
    create: &["CREATE TABLE statement_row (run INT, terminal INT, id INT, content INT NOT NULL, PRIMARY KEY (run, terminal, id))"],
}];

const INSERT: &str = "INSERT INTO statement_row VALUES ($1, $2, $3, $4)";
const UPDATE: &str = "UPDATE statement_row SET content = $4 WHERE run = $1 AND terminal = $2 AND id = $3";
const SELECT: &str = "SELECT content FROM statement_row WHERE run = $1 AND terminal = $2 AND id = $3";
const SELECT_STALE: &str = "SELECT content FROM statement_row AS OF SYSTEM TIME '-5s' WHERE run = $1 AND terminal = $2 AND id = $3";
const DELETE: &str = "DELETE FROM statement_row WHERE run = $1 AND terminal = $2 AND id = $3";

/// How long to wait, and how often, until rows just loaded are so old.
const AGE_WAIT: Duration = Duration::from_millis(250);
const AGE_WAITS_MAX: u32 = 40;

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Rows for stale reads.
    pub rows: u32,
}

impl Default for Load {
    fn default() -> Load {
        Load { rows: 1_000 }
    }
}

impl Load {
    /// The rows to load.
    pub fn dataset(&self) -> Result<Dataset, BenchError> {
        let rows = i32::try_from(self.rows).ok().filter(|rows| *rows > 0);
        let count = rows.ok_or_else(|| BenchError::Options("single statements need from 1 to 2147483647 loaded rows".to_owned()))?;
        let rows = (0..count).map(|id| LoadRow { table: 0, values: vec![LOADED.into(), LOADED.into(), id.into(), id.into()] });
        let parameters = ledger::parameters([("rows", self.rows.into()), ("runs", 0)]);
        Ok(Dataset { workload: NAME, tables: &TABLES, rows: Box::new(rows), rows_expected: self.rows.into(), parameters })
    }
}

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

/// The steps of a round, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Insert,
    Update,
    Select,
    ReadOnly,
    Stale,
    FiveRows,
    Delete,
}

const ROUND: [Step; 7] = [Step::Insert, Step::Update, Step::Select, Step::ReadOnly, Step::Stale, Step::FiveRows, Step::Delete];

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

    fn terminal(&self, seat: Seat, rng: Rng) -> Clerk {
        let terminal = seat.number() as i32;
        Clerk { run: self.run, terminal, rows: self.rows, next: 0, row: None, rng, old: 0 }
    }
}

/// What goes through the rounds.
pub struct Clerk {
    run: i32,
    terminal: i32,
    /// Loaded rows.
    rows: i32,
    /// Steps drawn so far.
    next: usize,
    /// What the row of this round holds, if it is known to be there.
    row: Option<i32>,
    rng: Rng,
    /// The loaded row that the stale read is to find.
    old: i32,
}

impl Terminal for Clerk {
    fn draw(&mut self) -> Drawn {
        let kind = self.next % ROUND.len();
        if ROUND[kind] == Step::Insert {
            self.row = None;
        }
        self.old = self.rng.below(self.rows as u64) as i32;
        self.next += 1;
        Drawn { kind, ..Drawn::default() }
    }

    async fn attempt(&mut self, session: &mut Session) -> Result<Verdict, Failure> {
        match ROUND[(self.next - 1) % ROUND.len()] {
            Step::Insert => self.change(session, INSERT, Some(1)).await,
            Step::Update => self.change(session, UPDATE, Some(2)).await,
            Step::Delete => self.change(session, DELETE, None).await,
            Step::Select => {
                session.begin_autocommit(Access::ReadOnly).await?;
                self.read(session).await
            }
            Step::ReadOnly => self.read_twice(session).await,
            Step::Stale => self.read_stale(session).await,
            Step::FiveRows => self.commit_five(session).await,
        }
    }
}

impl Clerk {
    fn key(&self, id: i32) -> [Value; 3] {
        [self.run.into(), self.terminal.into(), id.into()]
    }

    /// The row of this round. The rows of its transaction lie between it and the next round's.
    fn id(&self) -> i32 {
        ((self.next - 1) / ROUND.len()) as i32 * (ROWS + 1)
    }

    /// Changes the row of this round to hold `content`, or to be gone, by one statement.
    async fn change(&mut self, session: &mut Session, sql: &str, content: Option<i32>) -> Result<Verdict, Failure> {
        let mut values = self.key(self.id()).to_vec();
        values.extend(content.map(Value::from));
        // Until it is answered, what the row holds is not known; nor is it after an attempt that failed.
        let known = self.row.take().is_some() || sql == INSERT;
        session.begin_autocommit(Access::ReadWrite).await?;
        let changed = session.execute(sql, &values).await?;
        session.end_autocommit();
        self.row = content.filter(|_| known);
        Ok(judge(!known || changed == 1, || format!("{changed} rows changed, not one: {sql}")))
    }

    /// Reads the row of this round.
    async fn read(&self, session: &Session) -> Result<Verdict, Failure> {
        let mut contents = Vec::new();
        for row in session.query(SELECT, &self.key(self.id())).await? {
            contents.push(get::<i32>(&row, 0)?);
        }
        Ok(judge(self.row.is_none() || contents == Vec::from_iter(self.row), || format!("a row of {:?} is read as {contents:?}", self.row)))
    }

    async fn read_twice(&self, session: &mut Session) -> Result<Verdict, Failure> {
        session.begin(Access::ReadOnly).await?;
        let first = self.read(session).await?;
        let again = self.read(session).await?;
        session.commit().await?;
        Ok(if first == Verdict::Committed { again } else { first })
    }

    async fn read_stale(&self, session: &mut Session) -> Result<Verdict, Failure> {
        session.begin_autocommit(Access::ReadOnly).await?;
        let row = session.query_one(SELECT_STALE, &[LOADED.into(), LOADED.into(), self.old.into()]).await?;
        let content: i32 = get(&row, 0)?;
        Ok(judge(content == self.old, || format!("the loaded row {} is read as {content}", self.old)))
    }

    async fn commit_five(&self, session: &mut Session) -> Result<Verdict, Failure> {
        let first = self.id() + 1;
        let values: Vec<Value> = (first..first + ROWS).flat_map(|id| self.key(id).into_iter().chain([Value::from(0)])).collect();
        session.begin(Access::ReadWrite).await?;
        let inserted = session.execute(&format!("INSERT INTO statement_row VALUES {}", values_list(ROWS as usize, 4)), &values).await?;
        session.commit().await?;
        Ok(judge(inserted == ROWS as u64, || format!("{inserted} rows inserted, not {ROWS}")))
    }
}

fn judge(holds: bool, broken: impl FnOnce() -> String) -> Verdict {
    if holds { Verdict::Committed } else { Verdict::Violated(broken()) }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn clerk() -> Clerk {
        let seat = Seat { region: 1, regions: 3, index: 0, clients: 1 };
        Statements { rows: 10, run: 4 }.terminal(seat, Rng::seeded(1))
    }

    #[test]
    fn rounds_follow_each_other_on_rows_of_their_own() {
        let mut clerk = clerk();
        let mut drawn = |steps: usize| (0..steps).map(|_| (clerk.draw().kind, clerk.id())).collect::<Vec<_>>();
        assert_eq!(drawn(8), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (0, 6)]);
    }

    #[test]
    fn a_new_round_knows_nothing_of_the_row_before() {
        let mut clerk = clerk();
        clerk.next = ROUND.len();
        clerk.row = Some(2);
        clerk.draw();
        assert_eq!(clerk.row, None);
    }

    #[test]
    fn every_step_has_a_name_and_a_yardstick() {
        let workload = Statements { rows: 1, run: 1 };
        assert_eq!((workload.kinds().len(), workload.yardsticks().len()), (ROUND.len(), ROUND.len()));
        let at = |step| ROUND.iter().position(|other| *other == step).expect("in the round");
        assert_eq!(workload.yardsticks()[at(Step::FiveRows)].timed, Timed::Commit);
        assert!(!workload.yardsticks()[at(Step::Stale)].wide_area);
    }

    #[test]
    fn no_rows_are_refused() {
        assert!(Load { rows: 0 }.dataset().is_err());
        assert_eq!(Load { rows: 7 }.dataset().expect("a dataset").rows.count(), 7);
    }
}
