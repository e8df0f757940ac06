//! Single rows, read and written by key, by value and by range; all of it goes into a history that the checkers of the simulator judge.

use super::Client;
use crate::link::{Failed, Link};
use rhumb_core::{Key, KeyRange, Time, Timestamp};
use rhumb_sim::history::{Cell, Found, Mode, Op, Outcome, Txn, TxnNo};
use rhumb_sql::embedded::Reply;

/// The rows that there may be.
const KEYS: u64 = 6;
/// Statements of a transaction at the most.
const STATEMENTS_MAX: u64 = 3;

/// A statement, by what it does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read(u64),
    ReadRange(u64, u64),
    /// Insert, or update what is there.
    Put(u64, u64),
    Insert(u64, u64),
    Update(u64, u64),
    /// The row with this key, found by this value, if it has it.
    UpdateFound {
        key: u64,
        before: u64,
        value: u64,
    },
    Delete(u64),
    DeleteRange(u64, u64),
}

/// The history's name of a row.
pub fn key(k: u64) -> Key {
    Key::from(format!("r{k}").as_str())
}

fn range(low: u64, high: u64) -> KeyRange {
    KeyRange::new(key(low), key(high).successor())
}

impl Step {
    fn draw(client: &mut Client) -> Step {
        let (k, other) = (client.rng.below(KEYS), client.rng.below(KEYS));
        let (low, high) = (k.min(other), k.max(other));
        let value = client.shared().value();
        match client.rng.below(100) {
            0..25 => Step::Read(k),
            25..35 => Step::ReadRange(low, high),
            35..55 => Step::Put(k, value),
            55..63 => Step::Insert(k, value),
            63..80 => Step::Update(k, value),
            80..88 => match client.shared().with(|record| record.history.txns().iter().rev().find_map(written)) {
                Some((key, before)) => Step::UpdateFound { key, before, value },
                None => Step::Read(k),
            },
            88..95 => Step::Delete(k),
            _ => Step::DeleteRange(low, high.min(low + 2)),
        }
    }

    fn is_read(self) -> bool {
        matches!(self, Step::Read(_) | Step::ReadRange(..))
    }

    fn sql(self) -> String {
        match self {
            Step::Read(k) => format!("SELECT k, v FROM registers WHERE k = {k}"),
            Step::ReadRange(low, high) => format!("SELECT k, v FROM registers WHERE k >= {low} AND k <= {high} ORDER BY k"),
            Step::Put(k, v) => format!("INSERT INTO registers VALUES ({k}, {v}) ON CONFLICT (k) DO UPDATE SET v = excluded.v"),
            Step::Insert(k, v) => format!("INSERT INTO registers VALUES ({k}, {v})"),
            Step::Update(k, v) => format!("UPDATE registers SET v = {v} WHERE k = {k} RETURNING k, v"),
            Step::UpdateFound { before, value, .. } => format!("UPDATE registers SET v = {value} WHERE v = {before} RETURNING k, v"),
            Step::Delete(k) => format!("DELETE FROM registers WHERE k = {k} RETURNING k, v"),
            Step::DeleteRange(low, high) => format!("DELETE FROM registers WHERE k BETWEEN {low} AND {high} RETURNING k, v"),
        }
    }

    /// What it may have done, if nobody knows.
    fn attempted(self) -> Vec<Op> {
        match self {
            Step::Read(_) | Step::ReadRange(..) => Vec::new(),
            Step::Put(k, value) | Step::Insert(k, value) | Step::Update(k, value) | Step::UpdateFound { key: k, value, .. } => {
                vec![Op::Write { key: key(k), value }]
            }
            Step::Delete(k) => vec![Op::Delete { key: key(k) }],
            Step::DeleteRange(low, high) => (low..=high).map(|k| Op::Delete { key: key(k) }).collect(),
        }
    }

    /// What it did and saw; an error if it cannot have.
    fn done(self, reply: &Reply) -> Result<Vec<Op>, String> {
        let mut rows = reply.rows.iter().map(|row| pair(row)).collect::<Result<Vec<_>, _>>()?;
        rows.sort_unstable();
        let read = |k, v: Option<u64>| Op::Read { key: key(k), cell: v.map(Cell::Register), version: None };
        let write = |k, value| Op::Write { key: key(k), value };
        let delete = |k| Op::Delete { key: key(k) };
        let scan = |low, high| Op::Scan {
            range: range(low, high),
            rows: rows.iter().map(|&(k, v)| Found { key: key(k), cell: Cell::Register(v), version: None }).collect(),
        };
        Ok(match (self, &rows[..]) {
            (Step::Read(k) | Step::Update(k, _) | Step::Delete(k), []) => vec![read(k, None)],
            (Step::Read(k), &[(found, v)]) if k == found => vec![read(k, Some(v))],
            (Step::ReadRange(low, high), _) => vec![scan(low, high)],
            (Step::Put(k, v), []) => vec![write(k, v)],
            (Step::Insert(k, v), []) => vec![read(k, None), write(k, v)],
            (Step::Update(k, v), &[(found, after)]) if (k, v) == (found, after) => vec![write(k, v)],
            (Step::UpdateFound { .. }, []) => Vec::new(),
            (Step::UpdateFound { key: k, before, value }, &[(found, after)]) if (k, value) == (found, after) => {
                vec![read(k, Some(before)), write(k, value)]
            }
            (Step::Delete(k), &[(found, v)]) if k == found => vec![read(k, Some(v)), delete(k)],
            (Step::DeleteRange(low, high), _) => std::iter::once(scan(low, high)).chain(rows.iter().map(|&(k, _)| delete(k))).collect(),
            _ => return Err(format!("{} returned {rows:?}", self.sql())),
        })
    }
}

/// A value that a transaction wrote last, and where.
fn written(txn: &Txn) -> Option<(u64, u64)> {
    txn.ops.iter().rev().find_map(|op| match op {
        Op::Write { key, value } => Some((std::str::from_utf8(&key.0).ok()?.strip_prefix('r')?.parse().ok()?, *value)),
        _ => None,
    })
}

fn pair(row: &[Option<String>]) -> Result<(u64, u64), String> {
    let number = |text: &Option<String>| text.as_ref()?.parse().ok();
    match row {
        [k, v] => number(k).zip(number(v)),
        _ => None,
    }
    .ok_or_else(|| format!("registers holds {row:?}, which nobody wrote"))
}

fn outcome(failed: &Failed) -> Outcome {
    if failed.may_have() { Outcome::Unknown } else { Outcome::Aborted }
}

/// A transaction under way.
struct Record<'a> {
    client: &'a Client,
    no: TxnNo,
    ops: Vec<Op>,
}

impl<'a> Record<'a> {
    fn begin(client: &'a Client, mode: Mode) -> Record<'a> {
        let txn = Txn::new(client.number, client.site.region, client.now()).mode(mode);
        let no = client.shared().with(|record| record.history.add(txn));
        Record { client, no, ops: Vec::new() }
    }

    fn step(&mut self, step: Step, reply: &Reply) {
        match step.done(reply) {
            Ok(ops) => self.ops.extend(ops),
            Err(what) => self.client.shared().wrong(|| what),
        }
    }

    /// It committed, and may so be looked at.
    fn committed(self, at: Timestamp) {
        self.end(Outcome::Committed { at });
    }

    /// It ended so; `last` is the step that failed, if one did.
    fn failed(mut self, last: Option<Step>, outcome: Outcome) {
        self.ops.extend(last.into_iter().flat_map(Step::attempted));
        self.end(outcome);
    }

    fn end(self, outcome: Outcome) {
        let now: Time = self.client.now();
        self.client.shared().with(|record| {
            let txn = record.history.txn_mut(self.no);
            txn.ops = self.ops;
            txn.end(now, outcome);
        });
    }
}

/// One statement.
pub async fn single(client: &mut Client, link: &mut Link) {
    let step = Step::draw(client);
    let mut record = Record::begin(client, if step.is_read() { client.dialer.reads } else { Mode::ReadWrite });
    match link.statement(&step.sql()).await {
        Ok(reply) => {
            record.step(step, &reply);
            record.committed(link.last_commit());
        }
        Err(failed) => record.failed(Some(step), outcome(&failed)),
    }
}

/// Some statements in one transaction, sent one by one.
pub async fn transaction(client: &mut Client, link: &mut Link) {
    let steps: Vec<Step> = (0..=client.rng.below(STATEMENTS_MAX)).map(|_| Step::draw(client)).collect();
    let mut record = Record::begin(client, Mode::ReadWrite);
    if link.query("BEGIN").await.is_err() {
        return record.failed(None, Outcome::Aborted);
    }
    for step in steps {
        match link.statement(&step.sql()).await {
            Ok(reply) => record.step(step, &reply),
            // Whatever becomes of this one, COMMIT is never sent.
            Err(_) => return record.failed(Some(step), Outcome::Aborted),
        }
    }
    match link.query("COMMIT").await {
        Ok(_) => record.committed(link.last_commit()),
        Err(failed) => record.failed(None, outcome(&failed)),
    }
}

/// All rows, read at once, for the end.
pub async fn read_all(client: &Client, link: &mut Link) -> Option<TxnNo> {
    let step = Step::ReadRange(0, KEYS - 1);
    let mut record = Record::begin(client, client.dialer.reads);
    let no = record.no;
    match link.statement(&step.sql()).await {
        Ok(reply) => {
            record.step(step, &reply);
            record.committed(link.last_commit());
            Some(no)
        }
        Err(_) => {
            record.failed(Some(step), Outcome::Aborted);
            None
        }
    }
}
