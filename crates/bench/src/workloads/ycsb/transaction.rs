//! One transaction: its operations are drawn once and attempted until they commit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rhumb_core::Rng;

use super::distribution::Chooser;
use super::mix::Operation;
use super::{FIELDS, Options, field, key_of};
use crate::client::postgres::{Access, Failure, Session, Value, values_list};
use crate::transactions::{Drawn, Terminal, Verdict};

/// Records of a scan, at most.
const SCAN_RECORDS_MAX: u64 = 100;

const READ: &str = "SELECT * FROM usertable WHERE ycsb_key = $1";
const SCAN: &str = "SELECT * FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2";

/// Ordinals below this count are loaded or inserted by the run of the same number; a run inserts fewer.
const ORDINALS_PER_RUN: u64 = 1 << 40;

/// The records there are, as all terminals of a run know them.
pub struct Records {
    /// Records loaded.
    pub loaded: u64,
    /// The number of this run among those that insert, from 1.
    pub run: u64,
    /// Records loaded and inserted by this run.
    pub count: AtomicU64,
}

impl Records {
    /// The key of the record with this ordinal: one of the loaded records, or one of this run's own.
    fn key(&self, ordinal: u64) -> String {
        key_of(if ordinal < self.loaded { ordinal } else { self.run * ORDINALS_PER_RUN + ordinal })
    }
}

struct Step {
    operation: Operation,
    key: String,
    records: u64,
    field: usize,
    contents: Vec<Value>,
}

/// A client of YCSB.
pub struct YcsbTerminal {
    options: Options,
    chooser: Chooser,
    records: Arc<Records>,
    rng: Rng,
    steps: Vec<Step>,
}

impl YcsbTerminal {
    /// A client that draws from `rng`.
    pub fn new(options: Options, chooser: Chooser, records: Arc<Records>, rng: Rng) -> YcsbTerminal {
        YcsbTerminal { options, chooser, records, rng, steps: Vec::new() }
    }

    fn step(&mut self, taken: &mut BTreeSet<u64>) -> Step {
        let operation = self.options.mix.draw(&mut self.rng);
        let ordinal = match operation {
            Operation::Insert => self.records.count.fetch_add(1, Ordering::Relaxed),
            _ => self.distinct(taken),
        };
        let fields = match operation {
            Operation::Read | Operation::Scan => 0,
            Operation::Update | Operation::ReadModifyWrite => 1,
            Operation::Insert => FIELDS,
        };
        Step {
            operation,
            key: self.records.key(ordinal),
            records: self.rng.between(1, SCAN_RECORDS_MAX),
            field: self.rng.below(FIELDS as u64) as usize,
            contents: (0..fields).map(|_| field(&mut self.rng)).collect(),
        }
    }

    /// A record that the transaction does not touch yet. Where skew makes that unlikely the next free one is taken, so the draw always ends.
    fn distinct(&mut self, taken: &mut BTreeSet<u64>) -> u64 {
        const TRIES: usize = 16;
        let count = self.records.count.load(Ordering::Relaxed);
        let mut ordinal = self.chooser.choose(count, &mut self.rng);
        for _ in 0..TRIES {
            if taken.insert(ordinal) {
                return ordinal;
            }
            ordinal = self.chooser.choose(count, &mut self.rng);
        }
        while !taken.insert(ordinal) {
            ordinal = (ordinal + 1) % count;
        }
        ordinal
    }

    fn access(&self) -> Access {
        if self.steps.iter().any(|step| step.operation.writes()) { Access::ReadWrite } else { Access::ReadOnly }
    }
}

impl Terminal for YcsbTerminal {
    fn draw(&mut self) -> Drawn {
        let mut taken = BTreeSet::new();
        self.steps = (0..self.options.operations).map(|_| self.step(&mut taken)).collect();
        Drawn { kind: usize::from(self.access() == Access::ReadWrite), ..Drawn::default() }
    }

    async fn attempt(&mut self, session: &mut Session) -> Result<Verdict, Failure> {
        let access = self.access();
        match self.steps.as_slice() {
            [step] if step.operation != Operation::ReadModifyWrite => {
                session.begin_autocommit(access).await?;
                perform(session, step).await?;
                session.end_autocommit();
            }
            steps => {
                session.begin(access).await?;
                for step in steps {
                    perform(session, step).await?;
                }
                session.commit().await?;
            }
        }
        Ok(Verdict::Committed)
    }
}

async fn perform(session: &Session, step: &Step) -> Result<(), Failure> {
    let key = Value::from(step.key.as_str());
    match step.operation {
        Operation::Read => session.query(READ, &[key]).await.map(drop),
        Operation::Scan => session.query(SCAN, &[key, (step.records as i64).into()]).await.map(drop),
        Operation::Update => update(session, step, key).await,
        Operation::ReadModifyWrite => {
            session.query(READ, std::slice::from_ref(&key)).await?;
            update(session, step, key).await
        }
        Operation::Insert => {
            let row: Vec<Value> = std::iter::once(key).chain(step.contents.iter().cloned()).collect();
            session.execute(&format!("INSERT INTO usertable VALUES {}", values_list(1, row.len())), &row).await.map(drop)
        }
    }
}

async fn update(session: &Session, step: &Step, key: Value) -> Result<(), Failure> {
    let statement = format!("UPDATE usertable SET field{} = $1 WHERE ycsb_key = $2", step.field);
    session.execute(&statement, &[step.contents[0].clone(), key]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::distribution::Distribution;
    use super::super::mix::{Mix, Preset};
    use super::*;

    fn terminal(options: Options, loaded: u64) -> YcsbTerminal {
        let records = Arc::new(Records { loaded, run: 3, count: AtomicU64::new(loaded) });
        YcsbTerminal::new(options.clone(), Chooser::new(options.distribution, loaded), records, Rng::seeded(7))
    }

    #[test]
    fn the_records_of_a_transaction_are_distinct_however_skewed() {
        let distribution = Distribution::Zipfian { theta: 3.0, scrambled: false };
        let mut terminal = terminal(Options { mix: Mix::ratio(1, 1).expect("a mix"), distribution, operations: 5 }, 5);
        for _ in 0..100 {
            terminal.draw();
            assert_eq!(terminal.steps.iter().map(|step| &step.key).collect::<BTreeSet<_>>().len(), 5);
        }
    }

    #[test]
    fn inserts_take_keys_that_neither_the_load_nor_another_run_has() {
        let mut terminal = terminal(Options::preset(Preset::D), 100);
        (0..100).for_each(|_| assert!(terminal.draw().kind < 2));
        let count = terminal.records.count.load(Ordering::Relaxed);
        assert!(count > 100);
        assert_eq!(terminal.records.key(99), key_of(99));
        assert_eq!(terminal.records.key(100), key_of(3 * ORDINALS_PER_RUN + 100));
    }

    #[test]
    fn a_transaction_without_writes_is_read_only() {
        let mut reader = terminal(Options::preset(Preset::C), 100);
        assert_eq!((reader.draw().kind, reader.access()), (0, Access::ReadOnly));
        let mut writer = terminal(Options::ratio(0, 1).expect("a mix"), 100);
        assert_eq!((writer.draw().kind, writer.access()), (1, Access::ReadWrite));
    }
}
