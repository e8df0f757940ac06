//! A transaction of the database in memory.

use super::{LocalGateway, Shared};
use async_trait::async_trait;
use rhumb_commit::buffer::WriteBuffer;
use rhumb_commit::one_shot::execution::{Outcome as OneShotOutcome, evaluate};
use rhumb_commit::one_shot::operation::{Operation, Transaction as OneShot};
use rhumb_commit::transaction::{
    CommitOptions, Committed, Operated, READ_BYTES_MAX, ReadMode, Savepoint, Scanned, Transaction, TxnError, rest_of,
};
use rhumb_core::{Key, KeyRange, Row, Span, Timestamp, Value};
use std::time::Duration;

/// A transaction of a [`LocalGateway`].
pub(super) struct LocalTransaction {
    pub(super) gateway: LocalGateway,
    pub(super) mode: ReadMode,
    /// What it reads at: the newest, unless it is read-only.
    pub(super) at: Timestamp,
    pub(super) keys: Vec<(Key, Timestamp)>,
    pub(super) expected: Vec<(Key, Timestamp)>,
    pub(super) ranges: Vec<(KeyRange, Vec<(Key, Timestamp)>)>,
    pub(super) writes: WriteBuffer,
    pub(super) trips: u32,
    pub(super) options: CommitOptions,
    pub(super) longest_wait: Option<Span>,
}

impl LocalTransaction {
    fn count_round(&mut self) {
        let wide = matches!(self.mode, ReadMode::Locking | ReadMode::Snapshot);
        self.trips += u32::from(wide);
        let mut shared = self.gateway.lock();
        shared.rounds += 1;
        shared.trips += u64::from(wide);
    }

    fn sees_up_to(&self, shared: &Shared) -> Timestamp {
        let nearby = shared.nearby.filter(|_| self.mode == ReadMode::Optimistic);
        nearby.unwrap_or(self.at)
    }

    fn write(&mut self, key: Key, value: Option<Value>) -> Result<(), TxnError> {
        if self.mode.is_read_only() {
            return Err(TxnError::Invalid("cannot write in a read-only transaction".into()));
        }
        self.writes.write(key, value);
        Ok(())
    }

    /// The first key read that is not any more as it was read.
    fn changed(&self, shared: &Shared) -> Option<Key> {
        let moved = |(key, version): &&(Key, Timestamp)| shared.read(key, self.at).version != *version;
        if let Some((key, _)) = self.keys.iter().chain(&self.expected).find(moved) {
            return Some(key.clone());
        }
        let differs = |(range, seen): &&(KeyRange, Vec<(Key, Timestamp)>)| versions(&shared.live(range, self.at)) != *seen;
        self.ranges.iter().find(differs).map(|(range, _)| range.start.clone())
    }
}

fn versions(rows: &[Row]) -> Vec<(Key, Timestamp)> {
    rows.iter().map(|row| (row.key.clone(), row.version)).collect()
}

#[async_trait]
impl Transaction for LocalTransaction {
    async fn get_some(&mut self, keys: &[Key]) -> Result<Vec<Row>, TxnError> {
        self.count_round();
        let shared = self.gateway.lock();
        // Where commits carry out operations, a row that is not as expected is told of by the next read.
        if self.gateway.operates && self.expected.iter().any(|(key, version)| shared.read(key, self.at).version != *version) {
            return Err(TxnError::Conflict("a row is not as it was expected".into()));
        }
        let at = self.sees_up_to(&shared);
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some(row) = self.writes.row(key) {
                rows.push(row);
                continue;
            }
            let row = shared.read(key, at);
            if self.keys.iter().any(|(known, version)| known == key && *version != row.version) {
                return Err(TxnError::Conflict("a row changed between two reads of it".into()));
            }
            self.keys.push((key.clone(), row.version));
            rows.push(row);
            if rows.iter().map(Row::bytes).sum::<usize>() >= READ_BYTES_MAX {
                break;
            }
        }
        Ok(rows)
    }

    async fn scan(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<Scanned, TxnError> {
        self.count_round();
        if range.is_empty() || limit == 0 {
            return Ok(Scanned { rows: Vec::new(), rest: (!range.is_empty()).then_some(range) });
        }
        if self.gateway.lock().stands_still {
            let Some(longest) = self.longest_wait else { return std::future::pending().await };
            tokio::time::sleep(Duration::from_micros(longest.as_micros())).await;
            return Err(TxnError::LockTimeout(format!("the read was not answered within {longest}").into()));
        }
        let shared = self.gateway.lock();
        let committed = shared.live(&range, self.sees_up_to(&shared));
        drop(shared);
        let mut live = self.writes.overlay(committed.clone(), &range, false);
        if reverse {
            live.reverse();
        }
        let mut bytes = 0;
        let fits = |row: &&Row| {
            let before = bytes;
            bytes += row.bytes();
            before < READ_BYTES_MAX
        };
        let rows: Vec<Row> = live.iter().take(limit).take_while(fits).cloned().collect();
        // What lies past a full page was not read.
        let last = rows.last().filter(|_| rows.len() == limit || rows.len() < live.len());
        let rest = last.and_then(|last| rest_of(range.clone(), &last.key, reverse));
        let read = match &rest {
            Some(rest) if reverse => KeyRange::new(rest.end.clone(), range.end),
            Some(rest) => KeyRange::new(range.start, rest.start.clone()),
            None => range,
        };
        let seen = versions(&committed).into_iter().filter(|(key, _)| read.contains(key)).collect();
        self.ranges.push((read, seen));
        Ok(Scanned { rows, rest })
    }

    fn expect(&mut self, key: Key, version: Timestamp) {
        self.expected.push((key, version));
    }

    fn bound_waits(&mut self, longest: Option<Span>) {
        self.longest_wait = longest;
    }

    fn put(&mut self, key: Key, value: Value) -> Result<(), TxnError> {
        self.write(key, Some(value))
    }

    fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        self.write(key, None)
    }

    fn savepoint(&mut self) -> Savepoint {
        self.writes.savepoint()
    }

    fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.writes.roll_back_to(savepoint);
    }

    fn forget_writes(&mut self) {
        self.writes = WriteBuffer::default();
    }

    fn set_mode(&mut self, mode: ReadMode) -> Result<(), TxnError> {
        if self.mode.is_read_only() || mode.is_read_only() {
            return Err(TxnError::Invalid("the mode of a read-only transaction cannot be changed".into()));
        }
        self.mode = mode;
        Ok(())
    }

    fn set_commit(&mut self, options: CommitOptions) {
        self.options = options;
    }

    fn mode(&self) -> ReadMode {
        self.mode
    }

    fn trips(&self) -> u32 {
        self.trips
    }

    async fn commit(self: Box<Self>) -> Result<Committed, TxnError> {
        let gate = self.gateway.lock().gate.take();
        if let Some(gate) = gate {
            gate.0.reached.notify_one();
            gate.0.opened.notified().await;
        }
        let mut shared = self.gateway.lock();
        if !matches!(self.mode, ReadMode::Stale(_))
            && let Some(key) = self.changed(&shared)
        {
            return Err(TxnError::Conflict(format!("another transaction wrote {key}").into()));
        }
        if self.mode.is_read_only() {
            return Ok(Committed { at: self.at, trips: self.trips });
        }
        if !self.writes.is_empty()
            && let Some(error) = shared.failures.pop_front()
        {
            return Err(error);
        }
        let writes = self.writes.into_writes();
        let bytes: usize = writes.iter().map(|(key, value)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len())).sum();
        if shared.commit_bytes_max.is_some_and(|most| bytes > most) {
            return Err(TxnError::TooLarge(format!("the transaction writes {bytes} bytes").into()));
        }
        let at = shared.tick();
        let mut trips = self.trips;
        if !writes.is_empty() {
            let rounds = if self.options.two_rounds { 2 } else { 1 };
            trips += rounds;
            shared.trips += u64::from(rounds);
            shared.committed = self.options;
        }
        for (key, value) in writes {
            shared.versions.entry(key).or_default().insert(at, value);
        }
        Ok(Committed { at, trips })
    }

    async fn operate(mut self: Box<Self>, operations: Vec<Operation>) -> Result<Operated, TxnError> {
        let one_shot = OneShot::new(operations);
        one_shot.validate().map_err(TxnError::from)?;
        let (outcome, writes) = {
            let shared = self.gateway.lock();
            let rows = one_shot.footprint().keys.into_keys().map(|key| (key.clone(), shared.read(&key, Timestamp::MAX))).collect();
            let ranges = one_shot.operations.iter().filter_map(Operation::range);
            let scans =
                ranges.map(|(range, limit)| shared.live(range, Timestamp::MAX).into_iter().take(limit as usize).collect()).collect();
            evaluate(&one_shot, rows, scans)
        };
        match outcome {
            OneShotOutcome::Rejected(why) => Ok(Operated::Failed { place: why.place() - 1, why }),
            OneShotOutcome::Done(outputs) => {
                writes.into_iter().try_for_each(|(key, value)| self.write(key, value))?;
                self.commit().await.map(|committed| Operated::Done(committed, outputs))
            }
        }
    }

    async fn rollback(self: Box<Self>) {}
}
