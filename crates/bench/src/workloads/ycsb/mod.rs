//! YCSB with transactions: each makes several operations (five by default) on distinct records of one table.
//!
//! After Cooper et al., "Benchmarking cloud serving systems with YCSB" (2010); the grouping into transactions follows the evaluations of geo-replicated commit
//! protocols. A transaction of one operation is sent as a statement by itself.
//!
//! Records have ordinals; the key of a record is a hash of its ordinal, so neighbours in age are not neighbours in the key space. Every run inserts under
//! ordinals of its own, numbered by the ledger, so runs never collide.

pub mod distribution;
pub mod mix;
mod transaction;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rhumb_core::Rng;

use crate::client::postgres::{Session, Value};
use crate::driver::ClientSlot;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::tables::{CheckReport, Dataset, LoadRow, Rule, TableDefinition, evaluate, ledger};
use crate::transactions::Transactions;
use distribution::{Chooser, Distribution, mix as hash};
use mix::{Mix, Operation, Preset, THETA};
use transaction::{Records, YcsbTerminal};

const NAME: &str = "ycsb";

/// Fields of a record.
const FIELDS: usize = 10;

/// Bytes of a field.
const FIELD_BYTES: u64 = 100;

/// Operations of a transaction, at most.
const OPERATIONS_MAX: usize = 1_000;

const TABLES: [TableDefinition; 1] = [TableDefinition {
    name: "usertable",
    columns: &["ycsb_key", "field0", "field1", "field2", "field3", "field4", "field5", "field6", "field7", "field8", "field9"],
    create: &["CREATE TABLE usertable (ycsb_key VARCHAR(32) PRIMARY KEY, field0 VARCHAR(100), field1 VARCHAR(100), field2 VARCHAR(100), \
         field3 VARCHAR(100), field4 VARCHAR(100), field5 VARCHAR(100), field6 VARCHAR(100), field7 VARCHAR(100), field8 VARCHAR(100), \
         field9 VARCHAR(100))"],
}];

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Records.
    pub records: u64,
    /// Where the contents come from.
    pub seed: u64,
}

impl Default for Load {
    fn default() -> Load {
        Load { records: 10_000, seed: 1 }
    }
}

impl Load {
    /// The rows to load.
    pub fn dataset(&self) -> Result<Dataset, BenchError> {
        if self.records == 0 {
            return Err(BenchError::Options("usertable needs at least one record".to_owned()));
        }
        let mut rng = Rng::seeded(self.seed);
        let row = move |ordinal| LoadRow {
            table: 0,
            values: std::iter::once(key_of(ordinal).into()).chain((0..FIELDS).map(|_| field(&mut rng))).collect(),
        };
        let parameters = ledger::parameters([("records", self.records), ("runs", 0)]);
        Ok(Dataset { workload: NAME, tables: &TABLES, rows: Box::new((0..self.records).map(row)), rows_expected: self.records, parameters })
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The operations.
    pub mix: Mix,
    /// Which records are popular.
    pub distribution: Distribution,
    /// Operations of a transaction.
    pub operations: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options::preset(Preset::A)
    }
}

impl Options {
    /// A core workload, five operations to a transaction.
    pub fn preset(preset: Preset) -> Options {
        let (mix, distribution) = preset.parts();
        Options { mix, distribution, operations: 5 }
    }

    /// `reads` reads to `writes` updates on scrambled Zipfian records.
    pub fn ratio(reads: u32, writes: u32) -> Result<Options, BenchError> {
        Ok(Options {
            mix: Mix::ratio(reads, writes)?,
            distribution: Distribution::Zipfian { theta: THETA, scrambled: true },
            operations: 5,
        })
    }
}

/// The workload, its table loaded.
pub struct Ycsb {
    options: Options,
    chooser: Chooser,
    records: Arc<Records>,
}

impl Ycsb {
    /// Reads from the server what was loaded.
    pub async fn open(session: &mut Session, options: &Options) -> Result<Ycsb, BenchError> {
        let loaded = ledger::parameter(&ledger::read(session, NAME).await?, NAME, "records")?;
        let loaded =
            u64::try_from(loaded).map_err(|_| BenchError::NotLoaded { workload: NAME, reason: "it holds no records".to_owned() })?;
        if !(1..=OPERATIONS_MAX.min(loaded as usize)).contains(&options.operations) {
            let reason =
                format!("a transaction has from 1 to {OPERATIONS_MAX} operations, and no more than the {loaded} records there are");
            return Err(BenchError::Options(reason));
        }
        if let Distribution::Zipfian { theta, .. } | Distribution::Latest { theta } = options.distribution
            && !(theta > 0.0 && theta.is_finite())
        {
            return Err(BenchError::Options("the skew of a Zipfian distribution must be above zero; for none choose uniform".to_owned()));
        }
        let run = match options.mix.contains(Operation::Insert) {
            true => ledger::raise(session, NAME, "runs").await? as u64,
            false => 0,
        };
        let records = Arc::new(Records { loaded, run, count: AtomicU64::new(loaded) });
        Ok(Ycsb { options: options.clone(), chooser: Chooser::new(options.distribution, loaded), records })
    }
}

impl Transactions for Ycsb {
    type Terminal = YcsbTerminal;

    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> String {
        let plural = if self.options.operations == 1 { "" } else { "s" };
        format!("ycsb, {} records, {} operation{plural} per transaction", self.records.loaded, self.options.operations)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["read only", "read write"]
    }

    fn terminal(&self, _: ClientSlot, rng: Rng) -> YcsbTerminal {
        YcsbTerminal::new(self.options.clone(), self.chooser, self.records.clone(), rng)
    }
}

/// Checks that no loaded record is gone: nothing in this workload deletes.
pub async fn check(session: &mut Session, progress: &dyn Progress) -> Result<CheckReport, BenchError> {
    let loaded = ledger::parameter(&ledger::read(session, NAME).await?, NAME, "records")?;
    let offenders = format!("SELECT records FROM (SELECT COUNT(*) AS records FROM usertable) AS counted WHERE records < {loaded}");
    evaluate(session, NAME, &[Rule { number: 1, title: "usertable has all the records that were loaded", offenders }], progress).await
}

/// The key of a record.
fn key_of(ordinal: u64) -> String {
    format!("user{:020}", hash(ordinal))
}

/// A field's contents: letters and digits.
fn field(rng: &mut Rng) -> Value {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
    let letters = (0..FIELD_BYTES).map(|_| char::from(ALPHABET[rng.below(64) as usize]));
    Value::Text(letters.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_has_that_many_distinct_records_and_the_same_each_time() {
        let rows = || Load { records: 500, seed: 7 }.dataset().expect("a dataset").rows.collect::<Vec<_>>();
        let keys: std::collections::BTreeSet<String> = rows().iter().map(|row| format!("{:?}", row.values[0])).collect();
        assert_eq!(keys.len(), 500);
        assert_eq!(rows(), rows());
        assert!(rows().iter().all(|row| row.values.len() == TABLES[0].columns.len()));
    }

    #[test]
    fn an_empty_load_is_refused() {
        assert!(Load { records: 0, seed: 1 }.dataset().is_err());
    }
}
