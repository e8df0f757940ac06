//! Transfers between accounts: the sum of all balances never changes, whatever fails.
//!
//! Audits among the transfers sum up all accounts in one read-only transaction. A single one that sees another total proves that transactions are not
//! serializable, or that a write was lost or done twice.

use rhumb_core::Rng;

use crate::client::postgres::{Access, Failure, Session, get};
use crate::driver::Seat;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::tables::{CheckReport, Dataset, LoadRow, Rule, TableDefinition, evaluate, ledger};
use crate::transactions::{Drawn, Terminal, Transactions, Verdict};

const NAME: &str = "bank";

/// The largest amount of a transfer.
const AMOUNT_MAX: u64 = 100;

const TABLES: [TableDefinition; 1] = [TableDefinition {
    name: "bank_account",
    columns: &["id", "balance"],
    create: &["CREATE TABLE bank_account (id INT PRIMARY KEY, balance BIGINT NOT NULL)"],
}];

const READ_TWO: &str = "SELECT id, balance FROM bank_account WHERE id IN ($1, $2) FOR UPDATE";
const WRITE_TWO: &str = "UPDATE bank_account SET balance = CASE id WHEN $1 THEN $3 ELSE $4 END WHERE id IN ($1, $2)";
const AUDIT: &str = "SELECT CAST(SUM(balance) AS BIGINT), COUNT(*) FROM bank_account";

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Accounts.
    pub accounts: u32,
    /// What each holds at first.
    pub balance: u32,
}

impl Default for Load {
    fn default() -> Load {
        Load { accounts: 1_000, balance: 1_000 }
    }
}

impl Load {
    /// The rows to load.
    pub fn dataset(&self) -> Result<Dataset, BenchError> {
        let (accounts, balance) = (i32::try_from(self.accounts).unwrap_or(0), i64::from(self.balance));
        if accounts < 2 {
            return Err(BenchError::Options("a bank needs from 2 to 2147483647 accounts".to_owned()));
        }
        let rows = (1..=accounts).map(move |id| LoadRow { table: 0, values: vec![id.into(), balance.into()] });
        let parameters = ledger::parameters([("accounts", self.accounts.into()), ("balance", self.balance.into())]);
        Ok(Dataset { workload: NAME, tables: &TABLES, rows: Box::new(rows), rows_expected: self.accounts.into(), parameters })
    }
}

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The share of audits, from 0 to 1.
    pub audits: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { audits: 0.02 }
    }
}

/// What must hold at every moment.
#[derive(Clone, Copy, Debug)]
struct Invariant {
    accounts: i32,
    total: i64,
}

impl Invariant {
    async fn read(session: &mut Session) -> Result<Invariant, BenchError> {
        let parameters = ledger::read(session, NAME).await?;
        let accounts = ledger::parameter(&parameters, NAME, "accounts")?;
        let balance = ledger::parameter(&parameters, NAME, "balance")?;
        let accounts = i32::try_from(accounts).map_err(|error| BenchError::NotLoaded { workload: NAME, reason: error.to_string() })?;
        Ok(Invariant { accounts, total: i64::from(accounts) * balance })
    }

    /// What an audit that saw these figures says.
    fn judge(&self, accounts: i64, total: i64) -> Verdict {
        if accounts == i64::from(self.accounts) && total == self.total {
            return Verdict::Committed;
        }
        Verdict::Violated(format!("an audit saw {accounts} accounts with {total} in all; there are {} with {}", self.accounts, self.total))
    }
}

/// The workload, its table loaded.
pub struct Bank {
    options: Options,
    invariant: Invariant,
}

impl Bank {
    /// Reads from the server what was loaded.
    pub async fn open(session: &mut Session, options: &Options) -> Result<Bank, BenchError> {
        if !(0.0..=1.0).contains(&options.audits) {
            return Err(BenchError::Options("the share of audits lies between 0 and 1".to_owned()));
        }
        Ok(Bank { options: *options, invariant: Invariant::read(session).await? })
    }
}

impl Transactions for Bank {
    type Terminal = Teller;

    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        format!("bank, {} accounts", self.invariant.accounts)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["transfer", "audit"]
    }

    fn terminal(&self, _: Seat, rng: Rng) -> Teller {
        Teller { audits: self.options.audits, invariant: self.invariant, rng, task: Task::Audit }
    }
}

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

    #[test]
    fn an_audit_accepts_the_exact_total_alone() {
        let invariant = Invariant { accounts: 2, total: 2_000 };
        assert_eq!(invariant.judge(2, 2_000), Verdict::Committed);
        assert!(matches!(invariant.judge(2, 1_999), Verdict::Violated(_)));
        assert!(matches!(invariant.judge(3, 2_000), Verdict::Violated(_)));
    }

    #[test]
    fn a_bank_of_one_account_is_refused() {
        assert!(Load { accounts: 1, balance: 5 }.dataset().is_err());
        assert_eq!(Load { accounts: 7, balance: 5 }.dataset().expect("a dataset").rows.count(), 7);
    }
}
