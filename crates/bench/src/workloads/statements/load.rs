//! The rows to load.

use super::{LOADED, NAME};
use crate::error::BenchError;
use crate::tables::{Dataset, LoadRow, TableDefinition, ledger};

const TABLES: [TableDefinition; 1] = [TableDefinition {
    name: "statement_row",
    columns: &["run", "terminal", "id", "content"],
    create: &["CREATE TABLE statement_row (run INT, terminal INT, id INT, content INT NOT NULL, PRIMARY KEY (run, terminal, id))"],
}];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rows_are_refused() {
        assert!(Load { rows: 0 }.dataset().is_err());
        assert_eq!(Load { rows: 7 }.dataset().expect("a dataset").rows.count(), 7);
    }
}
