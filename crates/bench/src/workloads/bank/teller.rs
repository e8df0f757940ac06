//! A client of the bank: it transfers, and now and then audits.

use rhumb_core::Rng;

use super::invariant::Invariant;
use crate::client::postgres::{Access, Failure, Session, get};
use crate::transactions::{Drawn, Terminal, Verdict};

/// The largest amount of a transfer.
const AMOUNT_MAX: u64 = 100;

const READ_TWO: &str = "SELECT id, balance FROM bank_account WHERE id IN ($1, $2) FOR UPDATE";
const WRITE_TWO: &str = "UPDATE bank_account SET balance = CASE id WHEN $1 THEN $3 ELSE $4 END WHERE id IN ($1, $2)";
const AUDIT: &str = "SELECT CAST(SUM(balance) AS BIGINT), COUNT(*) FROM bank_account";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Transfer { from: i32, to: i32, amount: i64 },
    Audit,
}

/// A client of the bank.
pub struct Teller {
    audits: f64,
    invariant: Invariant,
    rng: Rng,
    task: Task,
}

impl Teller {
    /// A client of whose transactions `audits`, from 0 to 1, are audits.
    pub(super) fn new(audits: f64, invariant: Invariant, rng: Rng) -> Teller {
        Teller { audits, invariant, rng, task: Task::Audit }
    }
}

impl Terminal for Teller {
    fn draw(&mut self) -> Drawn {
        self.task = if self.rng.chance(self.audits) { Task::Audit } else { draw_transfer(self.invariant.accounts, &mut self.rng) };
        Drawn { kind: usize::from(self.task == Task::Audit), ..Drawn::default() }
    }

    async fn attempt(&mut self, session: &mut Session) -> Result<Verdict, Failure> {
        match self.task {
            Task::Transfer { from, to, amount } => transfer(session, from, to, amount).await,
            Task::Audit => audit(session, self.invariant).await,
        }
    }
}

fn draw_transfer(accounts: i32, rng: &mut Rng) -> Task {
    let from = rng.below(accounts as u64) as i32;
    let away = rng.between(1, accounts as u64 - 1) as i32;
    let to = ((i64::from(from) + i64::from(away)) % i64::from(accounts)) as i32;
    Task::Transfer { from: from + 1, to: to + 1, amount: rng.between(1, AMOUNT_MAX) as i64 }
}

/// Moves `amount`, or what is left if that is less: no balance falls below zero.
async fn transfer(session: &mut Session, from: i32, to: i32, amount: i64) -> Result<Verdict, Failure> {
    session.begin(Access::ReadWrite).await?;
    let mut balance_from = 0;
    let mut balance_to = 0;
    for row in session.query(READ_TWO, &[from.into(), to.into()]).await? {
        let balance = if get::<i32>(&row, 0)? == from { &mut balance_from } else { &mut balance_to };
        *balance = get::<i64>(&row, 1)?;
    }
    let moved = amount.min(balance_from);
    let values = [from.into(), to.into(), (balance_from - moved).into(), (balance_to + moved).into()];
    session.execute(WRITE_TWO, &values).await?;
    session.commit().await?;
    Ok(Verdict::Committed)
}

async fn audit(session: &mut Session, invariant: Invariant) -> Result<Verdict, Failure> {
    session.begin(Access::ReadOnly).await?;
    let row = session.query_one(AUDIT, &[]).await?;
    let (total, accounts) = (get::<i64>(&row, 0)?, get::<i64>(&row, 1)?);
    // Only what a committed transaction read must be consistent.
    session.commit().await?;
    Ok(invariant.judge(accounts, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_between_two_accounts_that_exist() {
        let mut rng = Rng::seeded(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            let Task::Transfer { from, to, amount } = draw_transfer(3, &mut rng) else { panic!("a transfer was drawn") };
            assert!(from != to && (1..=3).contains(&from) && (1..=3).contains(&to) && (1..=100).contains(&amount));
            seen.insert((from, to));
        }
        assert_eq!(seen.len(), 6);
    }
}
