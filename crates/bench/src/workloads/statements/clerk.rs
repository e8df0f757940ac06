//! What goes through the rounds.

use rhumb_core::Rng;

use super::step::{ROUND, Step};
use super::{LOADED, ROWS, SELECT_STALE};
use crate::client::postgres::{Access, Failure, Session, Value, get, values_list};
use crate::transactions::{Drawn, Terminal, Verdict};

const INSERT: &str = "INSERT INTO statement_row VALUES ($1, $2, $3, $4)";
const UPDATE: &str = "UPDATE statement_row SET content = $4 WHERE run = $1 AND terminal = $2 AND id = $3";
const SELECT: &str = "SELECT content FROM statement_row WHERE run = $1 AND terminal = $2 AND id = $3";
const DELETE: &str = "DELETE FROM statement_row WHERE run = $1 AND terminal = $2 AND id = $3";

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

impl Clerk {
    /// The client with this number in this run, which reads of so many loaded rows.
    pub(super) fn new(run: i32, terminal: i32, rows: i32, rng: Rng) -> Clerk {
        Clerk { run, terminal, rows, next: 0, row: None, rng, old: 0 }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn clerk() -> Clerk {
        Clerk::new(4, 1, 10, Rng::seeded(1))
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
}
