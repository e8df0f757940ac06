//! A client of SQL: transfers between accounts, now and then a wide row, now and then an audit of all accounts; slowly, and for as long as
//! the soak lasts.

use crate::bank::{self, ACCOUNTS, TOTAL, WIDE_COLUMNS};
use crate::journal::Journal;
use crate::soak::Soak;
use rhumb_bench::client::postgres::{Access, Endpoint, Failure, Session, get};
use rhumb_core::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a client thinks between two transactions.
const THINKS_MS: (u64, u64) = (200, 900);
/// How long it waits before it connects again.
const BREATH: Duration = Duration::from_millis(500);

/// A client of one database in one region.
pub struct Client {
    /// Where its counter is, and its wide row.
    pub number: i64,
    /// What it is told.
    pub journal: Arc<Journal>,
    /// What it draws from.
    pub rng: Rng,
}

impl Client {
    /// Works until the soak is over.
    pub async fn work(mut self, endpoint: Endpoint, soak: Arc<Soak>) {
        let mut session = None;
        while !soak.is_over() {
            tokio::time::sleep(Duration::from_millis(self.rng.between(THINKS_MS.0, THINKS_MS.1))).await;
            let Some(session) = &mut session else {
                session = Session::connect(&endpoint, &BTreeMap::new()).await.ok();
                tokio::time::sleep(BREATH).await;
                continue;
            };
            let outcome = self.transact(session, &soak).await;
            if let Err(failure) = &outcome {
                session.settle(failure).await;
                tokio::time::sleep(BREATH).await;
            }
        }
    }

    async fn transact(&mut self, session: &mut Session, soak: &Soak) -> Result<(), Failure> {
        let kind = self.rng.below(100);
        if kind < 10 {
            return self.audit(session, soak).await;
        }
        self.journal.begin();
        let outcome = match kind {
            10..15 => self.write_wide(session).await,
            15..55 => self.transfer_unread(session).await.map(|()| None),
            _ => self.transfer(session).await.map(Some),
        };
        match outcome {
            Ok(before) => {
                if let Err(why) = self.journal.acknowledged(before) {
                    soak.found(format!("{} in region {}: client {} {why}", self.journal.protocol, self.journal.region, self.number));
                }
                return Ok(());
            }
            Err(Failure::Unknown { .. }) => self.journal.unknown(),
            Err(Failure::Refused { ref reason, .. }) => {
                self.journal.failed(false);
                soak.found(format!("{} in region {}: a transaction was refused: {reason}", self.journal.protocol, self.journal.region));
            }
            Err(Failure::Conflict { .. }) => self.journal.failed(true),
            Err(Failure::Unavailable { .. }) => self.journal.failed(false),
        }
        outcome.map(|_| ())
    }

    /// Moves money that it has seen; returns what it read of its counter.
    async fn transfer(&mut self, session: &mut Session) -> Result<i64, Failure> {
        let (from, to, amount) = self.draw();
        session.begin(Access::ReadWrite).await?;
        let balance = async |account: i64| -> Result<i64, Failure> {
            get(&session.query_one("SELECT balance FROM account WHERE id = $1", &[account.into()]).await?, 0)
        };
        let (source, target) = (balance(from).await?, balance(to).await?);
        let row = session.query_one("SELECT n FROM tally WHERE client = $1", &[self.number.into()]).await?;
        let before: i64 = get(&row, 0)?;
        for (account, balance) in [(from, source - amount), (to, target + amount)] {
            session.execute("UPDATE account SET balance = $1 WHERE id = $2", &[balance.into(), account.into()]).await?;
        }
        session.execute("UPDATE tally SET n = $1 WHERE client = $2", &[(before + 1).into(), self.number.into()]).await?;
        session.commit().await?;
        Ok(before)
    }

    /// Moves money unseen, in one text of statements.
    async fn transfer_unread(&mut self, session: &mut Session) -> Result<(), Failure> {
        let (from, to, amount) = self.draw();
        let text = format!(
            "UPDATE account SET balance = balance - {amount} WHERE id = {from};
             UPDATE account SET balance = balance + {amount} WHERE id = {to};
             UPDATE tally SET n = n + 1 WHERE client = {}",
            self.number
        );
        session.begin_autocommit(Access::ReadWrite).await?;
        session.batch(&text).await?;
        session.end_autocommit();
        Ok(())
    }

    /// Writes all columns of its wide row; returns what it read of its counter.
    async fn write_wide(&mut self, session: &mut Session) -> Result<Option<i64>, Failure> {
        let value = self.rng.below(1 << 31) as i64;
        let columns: Vec<String> = (0..WIDE_COLUMNS).map(|column| format!("c{column} = {value}")).collect();
        let text = format!(
            "UPDATE wide SET payload = '{}', {} WHERE client = {}; UPDATE tally SET n = n + 1 WHERE client = {}",
            bank::payload(value),
            columns.join(", "),
            self.number,
            self.number
        );
        session.begin(Access::ReadWrite).await?;
        session.batch(&text).await?;
        session.commit().await?;
        Ok(None)
    }

    /// Looks whether all the money is there.
    async fn audit(&mut self, session: &mut Session, soak: &Soak) -> Result<(), Failure> {
        session.begin_autocommit(Access::ReadOnly).await?;
        let rows = session.query_text("SELECT sum(balance), count(*) FROM account").await?;
        let shown = |column: usize| rows[0][column].1.as_deref().unwrap_or("NULL").to_owned();
        if (shown(0), shown(1)) != (TOTAL.to_string(), ACCOUNTS.to_string()) {
            let at = format!("{} in region {}", self.journal.protocol, self.journal.region);
            soak.found(format!("{at}: an audit shows {} in {} accounts, not {TOTAL} in {ACCOUNTS}", shown(0), shown(1)));
        }
        Ok(())
    }

    fn draw(&mut self) -> (i64, i64, i64) {
        let from = self.rng.below(ACCOUNTS as u64) as i64;
        let to = (from + 1 + self.rng.below(ACCOUNTS as u64 - 1) as i64) % ACCOUNTS;
        (from, to, self.rng.between(1, 50) as i64)
    }
}
