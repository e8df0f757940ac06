//! The accounts to load.

use super::NAME;
use crate::error::BenchError;
use crate::tables::{Dataset, LoadRow, TableDefinition, ledger};

const TABLES: [TableDefinition; 1] = [TableDefinition {
    name: "bank_account",
    columns: &["id", "balance"],
    create: &["CREATE TABLE bank_account (id INT PRIMARY KEY, balance BIGINT NOT NULL)"],
}];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_of_one_account_is_refused() {
        assert!(Load { accounts: 1, balance: 5 }.dataset().is_err());
        assert_eq!(Load { accounts: 7, balance: 5 }.dataset().expect("a dataset").rows.count(), 7);
    }
}
