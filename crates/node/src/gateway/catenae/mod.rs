//! Transactions of clients in this process, over the site's actor: what SQL sees of Catenae.
//!
//! ```text
//!   first read ─▶ a snapshot of this region; all later reads are of the same one
//!   writes     ─▶ buffered here
//!   commit     ─▶ one one-shot transaction: what was read has not changed since; then the writes
//! ```
//!
//! Which snapshot: a transaction that asks for the newest (`Locking`, `Active`, `Snapshot`) waits until its region has the epoch
//! of now, so that it sees all that was acknowledged anywhere before it began. One that does not (`Optimistic`) is served at once,
//! at what is settled here and holds the session's own last commit. Should it ask for the newest later on, it moves on to a
//! newer snapshot, if what it has read is still the same there.
//!
//! A transaction that wrote nothing has read one snapshot and so needs no commit. One that wrote is validated in its
//! place in the common order, so that nothing it read can have changed unnoticed: rows by their versions, ranges by the number
//! of their rows and that none is newer than the snapshot.

mod found;
pub(crate) mod questions;

use crate::gateway::reach::{Here, Reach, ask, change};
use crate::runtime::Handle;
use crate::status::Status;
use async_trait::async_trait;
use found::{Found, bytes_of, without};
use questions::{Ran, read, run, status};
use rhumb_catenae::Site;
use rhumb_catenae::administration::{Administration, Epochs};
use rhumb_commit::buffer::WriteBuffer;
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::one_shot::execution::{Outcome, Rejection};
use rhumb_commit::one_shot::operation::{Expected, Invalid, Operation, Transaction as OneShot, UNCHANGED_ROWS_MAX};
use rhumb_commit::transaction::{
    self, CommitOptions, Committed, Operated, READ_BYTES_MAX, ReadMode, RegionStatus, Savepoint, Scanned, TxnError, rest_of,
};
use rhumb_core::{Key, KeyRange, Row, Timestamp, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// The most rows that are asked for at once; more take several reads, none of which but the first takes a trip.
const PAGE_ROWS_MAX: usize = 8_192;
/// Bytes that a transaction may write; a little more than one that commits may.
const WRITES_BYTES_MAX: usize = 2 << 20;

/// The gateway of a site.
pub struct Gateway<R: Reach<Site> = Here<Site>> {
    reach: R,
}

impl Gateway {
    /// The gateway of the site behind `handle`.
    pub fn new(handle: Handle<Site>, status: Arc<Status>) -> Gateway {
        Gateway::over(Here::new(handle, status))
    }
}

impl<R: Reach<Site>> Gateway<R> {
    /// The gateway of the site that is reached so.
    pub fn over(reach: R) -> Gateway<R> {
        Gateway { reach }
    }
}

#[async_trait]
impl<R: Reach<Site>> transaction::Gateway for Gateway<R> {
    async fn begin(&self, mode: ReadMode) -> Result<Box<dyn transaction::Transaction>, TxnError> {
        Ok(Box::new(Transaction {
            reach: self.reach.clone(),
            mode,
            snapshot: None,
            is_newest: false,
            after: Timestamp::ZERO,
            read: BTreeMap::new(),
            ranges: Vec::new(),
            unchecked: Vec::new(),
            is_torn: false,
            buffer: WriteBuffer::default(),
            validates: false,
            trips: 0,
        }))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_time(self.reach.now())
    }

    fn regions(&self) -> Vec<RegionStatus> {
        self.reach.regions()
    }

    fn takes_operations(&self) -> bool {
        true
    }
}

#[async_trait]
impl<R: Reach<Site>> Administration for Gateway<R> {
    async fn epochs(&self) -> Result<Epochs, TxnError> {
        let status = ask(&self.reach, status()).await?;
        let passed_over = status.passed_over.iter().map(|&region| self.reach.region_name(region)).collect();
        Ok(Epochs { status, passed_over })
    }
}

/// A range that was read at the snapshot, and how many rows it holds there.
#[derive(Clone, Debug)]
struct Ranged {
    range: KeyRange,
    rows: u32,
}

/// A transaction of a site's gateway.
struct Transaction<R> {
    reach: R,
    mode: ReadMode,
    /// As of when it reads, once it has read.
    snapshot: Option<Timestamp>,
    /// All that was acknowledged before it began to read is in its snapshot.
    is_newest: bool,
    /// Its snapshot holds this commit.
    after: Timestamp,
    /// The version of each row read or expected; zero if there is none.
    read: BTreeMap<Key, Timestamp>,
    ranges: Vec<Ranged>,
    /// Of those expected, the ones not yet found in the snapshot.
    unchecked: Vec<Key>,
    /// Two versions of a row were read or expected: it cannot commit.
    is_torn: bool,
    buffer: WriteBuffer,
    /// Its end is to find out whether what it read still holds.
    validates: bool,
    trips: u32,
}

/// The version by which a row that was read is recognized. Whether a missing one was deleted or never written is not kept for
/// long.
fn version(row: &Row) -> Timestamp {
    if row.value.is_some() { row.version } else { Timestamp::ZERO }
}

fn changed() -> TxnError {
    TxnError::Conflict("what the transaction read has changed since".into())
}

impl<R: Reach<Site>> Transaction<R> {
    /// True if what it reads next must hold all that was acknowledged before.
    fn wants_newest(&self) -> bool {
        !self.is_newest && matches!(self.mode, ReadMode::Locking | ReadMode::Active | ReadMode::Snapshot)
    }

    fn freshness(&self) -> Freshness {
        match (self.snapshot, self.mode) {
            _ if self.wants_newest() => Freshness::Strict,
            (Some(at), _) | (None, ReadMode::Stale(at)) => Freshness::At(at),
            (None, _) if self.after > Timestamp::ZERO => Freshness::After(self.after),
            (None, _) => Freshness::Settled,
        }
    }

    /// Reads rows, and of a range so many, at the transaction's snapshot. With the first such read comes what makes sure that
    /// the snapshot is the right one: expected rows, before all others, and what was read at an older snapshot.
    async fn fetch(&mut self, keys: &[Key], range: Option<(KeyRange, usize)>, reverse: bool) -> Result<Found, TxnError> {
        let freshness = self.freshness();
        if freshness == Freshness::Strict && self.snapshot.is_some() {
            self.move_on().await?;
            return Box::pin(self.fetch(keys, range, reverse)).await;
        }
        let asked = self.unchecked.iter().chain(keys).cloned().collect();
        let mut found = ask(&self.reach, read(asked, range, reverse, freshness)).await?;
        let expected: Vec<Row> = found.rows.drain(..self.unchecked.len().min(found.rows.len())).collect();
        self.unchecked.drain(..expected.len());
        if !self.are_as_read(&expected) {
            return Err(changed());
        }
        self.snapshot = Some(found.at);
        if freshness == Freshness::Strict {
            self.is_newest = true;
            self.trips += 1;
        }
        Ok(found)
    }

    /// True if these rows have the versions that were read or are expected.
    fn are_as_read(&self, rows: &[Row]) -> bool {
        rows.iter().all(|row| self.read.get(&row.key) == Some(&version(row)))
    }

    /// Moves on to a snapshot that holds all that was acknowledged before now; a conflict if what was read is not the same there.
    async fn move_on(&mut self) -> Result<(), TxnError> {
        let rows: u64 = self.ranges.iter().map(|ranged| u64::from(ranged.rows)).sum();
        if rows > UNCHANGED_ROWS_MAX {
            return Err(too_large(&format!("the transaction depends on {rows} rows of ranges, at most {UNCHANGED_ROWS_MAX} are allowed")));
        }
        let Found { at, .. } = ask(&self.reach, read(Vec::new(), None, false, Freshness::Strict)).await?;
        self.trips += 1;
        if !self.are_rows_same(at).await? || !self.are_ranges_same(at).await? {
            return Err(changed());
        }
        self.unchecked.clear();
        (self.snapshot, self.is_newest) = (Some(at), true);
        Ok(())
    }

    /// True if each row that was read or is expected has the same version in the snapshot at `at`.
    async fn are_rows_same(&self, at: Timestamp) -> Result<bool, TxnError> {
        let keys: Vec<Key> = self.read.keys().cloned().collect();
        let mut rest = keys.as_slice();
        while !rest.is_empty() {
            let next = rest[..PAGE_ROWS_MAX.min(rest.len())].to_vec();
            let Found { rows, .. } = ask(&self.reach, read(next, None, false, Freshness::At(at))).await?;
            if !self.are_as_read(&rows) {
                return Ok(false);
            }
            rest = &rest[rows.len()..];
        }
        Ok(true)
    }

    /// True if each range that was read holds as many rows in the snapshot at `at`, none of which is newer than what was read.
    async fn are_ranges_same(&self, at: Timestamp) -> Result<bool, TxnError> {
        let before = self.snapshot.unwrap_or_default();
        for Ranged { range, rows } in &self.ranges {
            let (mut rest, mut missing) = (Some(range.clone()), *rows as usize);
            while let Some(range) = rest.take() {
                // One more would be one too many.
                let wanted = PAGE_ROWS_MAX.min(missing + 1);
                let now = ask(&self.reach, read(Vec::new(), Some((range.clone(), wanted)), false, Freshness::At(at))).await?;
                if now.range.len() > missing || now.range.iter().any(|row| row.version > before) {
                    return Ok(false);
                }
                missing -= now.range.len();
                rest = now.rest(range, wanted, false);
            }
            if missing > 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes the version of a row that was read, or is expected; a conflict if it is another than before.
    fn note(&mut self, key: Key, version: Timestamp) -> Result<(), TxnError> {
        match *self.read.entry(key).or_insert(version) == version {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    /// Notes that a range was read, and held so many rows.
    fn note_range(&mut self, range: KeyRange, rows: usize) {
        let within = |known: &Ranged| known.range.start <= range.start && range.end <= known.range.end;
        if !self.mode.is_read_only() && !range.is_empty() && !self.ranges.iter().any(within) {
            self.ranges.push(Ranged { range, rows: u32::try_from(rows).unwrap_or(u32::MAX) });
        }
    }

    fn check_writable(&self) -> Result<(), TxnError> {
        if self.mode.is_read_only() {
            return Err(TxnError::Invalid("cannot write in a read-only transaction".into()));
        }
        if self.buffer.bytes() > WRITES_BYTES_MAX {
            return Err(too_large(&format!("the transaction writes more than {WRITES_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// Commits: validates, writes, and carries out `operations` after that.
    async fn run(self, operations: Vec<Operation>) -> Result<Operated, TxnError> {
        let (reach, trips) = (self.reach.clone(), self.trips + 1);
        let mut one_shot = self.one_shot();
        let own = one_shot.operations.len();
        one_shot.operations.extend(operations);
        one_shot.validate().map_err(|invalid| match invalid {
            Invalid::Cyclic { .. } => invalid.into(),
            invalid => too_large(&invalid.to_string()),
        })?;
        let begun = Instant::now();
        let ran = change(&reach, run(one_shot)).await;
        let operated = ran.and_then(|Ran { at, outcome }| match outcome {
            Outcome::Done(mut outputs) => Ok(Operated::Done(Committed { at, trips }, outputs.split_off(own))),
            Outcome::Rejected(why @ Rejection::TooMuchRead) => Err(too_large(&why.to_string())),
            Outcome::Rejected(why) => match why.place().checked_sub(own + 1) {
                Some(place) => Ok(Operated::Failed { place, why }),
                None => Err(changed()),
            },
        });
        if let Some(status) = reach.status() {
            status.epochs().wait.observe(begun.elapsed().as_secs_f64());
            status.epochs().count(&operated);
        }
        operated
    }

    /// The one-shot transaction that validates and writes.
    fn one_shot(self) -> OneShot {
        let since = self.snapshot.unwrap_or_default();
        let unchanged = |Ranged { range, rows }| Operation::Unchanged { range, rows, since };
        let mut operations: Vec<Operation> = self.ranges.into_iter().map(unchanged).collect();
        let mut read = self.read;
        let compare = |key: &Key, version| Operation::Compare { key: key.clone(), expected: Expected::Version(version) };
        for (key, value) in self.buffer.into_writes() {
            operations.extend(read.remove(&key).map(|version| compare(&key, version)));
            operations.push(match value {
                Some(value) => Operation::Write { key, value },
                None => Operation::Delete { key },
            });
        }
        operations.extend(read.into_iter().map(|(key, version)| compare(&key, version)));
        OneShot::new(operations)
    }
}

fn too_large(why: &str) -> TxnError {
    TxnError::TooLarge(format!("{why}: every region carries it out as a whole, so split it into several transactions").into())
}

#[async_trait]
impl<R: Reach<Site>> transaction::Transaction for Transaction<R> {
    async fn get_some(&mut self, keys: &[Key]) -> Result<Vec<Row>, TxnError> {
        let wanted = self.buffer.unwritten(keys);
        let (mut found, mut rest, mut bytes) = (Vec::new(), wanted.as_slice(), 0);
        while !rest.is_empty() && bytes < READ_BYTES_MAX {
            let Found { rows, .. } = self.fetch(&rest[..PAGE_ROWS_MAX.min(rest.len())], None, false).await?;
            if !self.mode.is_read_only() {
                rows.iter().try_for_each(|row| self.note(row.key.clone(), version(row)))?;
            }
            bytes += bytes_of(&rows);
            rest = &rest[rows.len()..];
            found.extend(rows);
        }
        Ok(self.buffer.rows(keys, found))
    }

    async fn scan(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<Scanned, TxnError> {
        let mut rows: Vec<Row> = Vec::new();
        let (mut read, mut bytes) = (0, 0);
        let mut rest = (!range.is_empty()).then(|| range.clone());
        while rows.len() < limit
            && bytes < READ_BYTES_MAX
            && let Some(range) = rest.take()
        {
            // Rows that this transaction deleted count for the region.
            let wanted = (limit - rows.len()).saturating_add(self.buffer.len()).min(PAGE_ROWS_MAX);
            let found = self.fetch(&[], Some((range.clone(), wanted)), reverse).await?;
            read += found.range.len();
            rest = found.rest(range.clone(), wanted, reverse);
            let live = self.buffer.overlay(found.range, &without(range, rest.as_ref(), reverse), reverse);
            // What this transaction deleted is held no longer, and a scan of nothing else goes on to rows that it did not.
            bytes += bytes_of(&live);
            rows.extend(live);
        }
        self.note_range(without(range.clone(), rest.as_ref(), reverse), read);
        if rows.len() > limit {
            rows.truncate(limit);
            rest = rows.last().map_or(Some(range.clone()), |last| rest_of(range, &last.key, reverse));
        }
        Ok(Scanned { rows, rest })
    }

    fn expect(&mut self, key: Key, version: Timestamp) {
        self.after = self.after.max(version);
        match self.read.get(&key) {
            Some(before) => self.is_torn |= *before != version,
            None => {
                self.read.insert(key.clone(), version);
                self.unchecked.push(key);
            }
        }
    }

    fn follow(&mut self, commit: Timestamp) {
        self.after = self.after.max(commit);
    }

    fn put(&mut self, key: Key, value: Value) -> Result<(), TxnError> {
        self.buffer.write(key, Some(value));
        self.check_writable()
    }

    fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        self.buffer.write(key, None);
        self.check_writable()
    }

    fn may_write(&mut self) {
        self.validates = true;
    }

    fn savepoint(&mut self) -> Savepoint {
        self.buffer.savepoint()
    }

    fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.buffer.roll_back_to(savepoint);
    }

    fn forget_writes(&mut self) {
        self.buffer = WriteBuffer::default();
        self.validates = true;
    }

    fn set_mode(&mut self, mode: ReadMode) -> Result<(), TxnError> {
        if mode != self.mode && (mode.is_read_only() || self.mode.is_read_only()) {
            return Err(TxnError::Invalid("a transaction begun read-only stays so, and no other becomes so".into()));
        }
        self.mode = mode;
        Ok(())
    }

    fn set_commit(&mut self, _options: CommitOptions) {
        // There is one way to commit.
    }

    fn mode(&self) -> ReadMode {
        self.mode
    }

    fn trips(&self) -> u32 {
        self.trips
    }

    async fn commit(mut self: Box<Self>) -> Result<Committed, TxnError> {
        if self.is_torn {
            return Err(changed());
        }
        if self.buffer.is_empty() {
            if self.validates && !self.is_newest {
                self.move_on().await?;
            }
            while !self.unchecked.is_empty() {
                self.fetch(&[], None, false).await?;
            }
            return Ok(Committed { at: self.snapshot.unwrap_or(self.after), trips: self.trips });
        }
        match self.run(Vec::new()).await? {
            Operated::Done(committed, _) => Ok(committed),
            Operated::Failed { .. } => Err(changed()),
        }
    }

    async fn operate(self: Box<Self>, operations: Vec<Operation>) -> Result<Operated, TxnError> {
        if self.is_torn {
            return Err(changed());
        }
        self.check_writable()?;
        if !self.buffer.is_empty() {
            return Err(TxnError::Invalid("a transaction that has written buffers what it does".into()));
        }
        self.run(operations).await
    }

    async fn rollback(self: Box<Self>) {
        // Nobody has heard of it.
    }
}

#[cfg(test)]
mod tests;
