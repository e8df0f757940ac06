//! A database in memory behind the same traits as the real one, for tests.
//!
//! Transactions are multi-version and optimistic for good: each remembers the version of every key and the live rows of
//! every range that it read, and its commit fails with a conflict if any of them changed. Locking reads take no locks
//! here, which costs conflicts but no correctness. Simplified: one process, no delays, versions kept for ever.

pub mod deep;
mod quotas;

pub use quotas::LocalQuotas;

use crate::types::SqlType;
use async_trait::async_trait;
use rhumb_commit::one_shot::execution::{Outcome as OneShotOutcome, evaluate};
use rhumb_commit::one_shot::operation::{Operation, Transaction as OneShot};
use rhumb_commit::transaction::{
    CommitOptions, Committed, Gateway, Operated, READ_BYTES_MAX, ReadMode, RegionStatus, Role, Scanned, Transaction, TxnError, rest_of,
};
use rhumb_core::{Key, KeyRange, Row, Span, Timestamp, Value};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// One type of each kind, with and without its modifier.
pub const TYPES: [SqlType; 18] = [
    SqlType::Bool,
    SqlType::Int2,
    SqlType::Int4,
    SqlType::Int8,
    SqlType::Float4,
    SqlType::Float8,
    SqlType::Numeric(None),
    SqlType::Numeric(Some((38, 7))),
    SqlType::Text,
    SqlType::Varchar(None),
    SqlType::Varchar(Some(5)),
    SqlType::Char(5),
    SqlType::Bytea,
    SqlType::Date,
    SqlType::Time,
    SqlType::Timestamp,
    SqlType::TimestampTz,
    SqlType::Uuid,
];

/// A gateway to an empty database. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LocalGateway {
    shared: Arc<Mutex<Shared>>,
    operates: bool,
}

#[derive(Debug, Default)]
struct Shared {
    versions: BTreeMap<Key, BTreeMap<Timestamp, Option<Value>>>,
    clock: Timestamp,
    rounds: u64,
    trips: u64,
    /// What the replica nearby has, if it does not keep up.
    nearby: Option<Timestamp>,
    failures: VecDeque<TxnError>,
    /// Bytes of keys and values that a commit may write, if they are bounded.
    commit_bytes_max: Option<usize>,
    /// Whether scans wait for ever.
    stands_still: bool,
    /// How the last commit that wrote was to be done.
    committed: CommitOptions,
    /// Where the next commit waits.
    gate: Option<Gate>,
}

/// Where a commit waits until it is let through.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Passage>);

#[derive(Debug, Default)]
struct Passage {
    reached: Notify,
    opened: Notify,
}

impl Gate {
    /// Waits until a commit waits there.
    pub async fn reached(&self) {
        self.0.reached.notified().await;
    }

    /// Lets it through.
    pub fn open(&self) {
        self.0.opened.notify_one();
    }
}

impl LocalGateway {
    /// An empty database.
    pub fn new() -> LocalGateway {
        LocalGateway::default()
    }

    /// An empty database whose commits carry out operations.
    pub fn operating() -> LocalGateway {
        LocalGateway { operates: true, ..LocalGateway::default() }
    }

    /// The reads answered so far, each `get` and each `scan` counting as one whatever the number of its keys.
    pub fn rounds(&self) -> u64 {
        self.lock().rounds
    }

    /// The wide-area trips that the real one would have made so far: locking and snapshot reads, and commits that write.
    pub fn trips(&self) -> u64 {
        self.lock().trips
    }

    /// From now on what reads of the nearest replica see stays as it is, as at a replica that does not hear the others.
    pub fn fall_behind(&self) {
        let mut shared = self.lock();
        shared.nearby = Some(shared.clock);
    }

    /// Whether scans wait for ever, from now on, as behind a lock that nobody gives back.
    pub fn stand_still(&self, stands_still: bool) {
        self.lock().stands_still = stands_still;
    }

    /// The number of keys that have a value.
    pub fn live_keys(&self) -> usize {
        let shared = self.lock();
        shared.versions.values().filter(|versions| versions.values().next_back().is_some_and(Option::is_some)).count()
    }

    /// Makes the next commits that write fail, one for each error, and write nothing.
    pub fn fail_commits(&self, errors: impl IntoIterator<Item = TxnError>) {
        self.lock().failures.extend(errors);
    }

    /// From now on refuses commits that write more bytes of keys and values than this.
    pub fn bound_commits(&self, bytes_max: usize) {
        self.lock().commit_bytes_max = Some(bytes_max);
    }

    /// Makes the next commit wait.
    pub fn hold_commit(&self) -> Gate {
        self.lock().gate.insert(Gate::default()).clone()
    }

    /// How the last commit that wrote was to be done.
    pub fn committed(&self) -> CommitOptions {
        self.lock().committed
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no test panics while it holds the lock")
    }
}

impl Shared {
    fn tick(&mut self) -> Timestamp {
        self.clock = self.clock.next();
        self.clock
    }

    /// The newest version of `key` at or below `at`.
    fn read(&self, key: &Key, at: Timestamp) -> Row {
        let newest = self.versions.get(key).and_then(|versions| versions.range(..=at).next_back());
        match newest {
            Some((version, value)) => Row { key: key.clone(), version: *version, value: value.clone() },
            None => Row { key: key.clone(), version: Timestamp::ZERO, value: None },
        }
    }

    fn live(&self, range: &KeyRange, at: Timestamp) -> Vec<Row> {
        if range.is_empty() {
            return Vec::new();
        }
        let keys = self.versions.range(range.start.clone()..range.end.clone());
        keys.map(|(key, _)| self.read(key, at)).filter(|row| row.value.is_some()).collect()
    }
}

#[async_trait]
impl Gateway for LocalGateway {
    async fn begin(&self, mode: ReadMode) -> Result<Box<dyn Transaction>, TxnError> {
        let mut shared = self.lock();
        let at = match mode {
            ReadMode::Stale(at) if at > shared.clock => return Err(TxnError::OutOfRange("timestamp lies in the future".into())),
            ReadMode::Stale(at) => at,
            ReadMode::Snapshot => shared.tick(),
            ReadMode::Locking | ReadMode::Optimistic | ReadMode::Active => Timestamp::MAX,
        };
        drop(shared);
        Ok(Box::new(LocalTransaction {
            gateway: self.clone(),
            mode,
            at,
            keys: Vec::new(),
            expected: Vec::new(),
            ranges: Vec::new(),
            writes: BTreeMap::new(),
            trips: 0,
            options: CommitOptions::default(),
            longest_wait: None,
        }))
    }

    fn takes_operations(&self) -> bool {
        self.operates
    }

    fn now(&self) -> Timestamp {
        self.lock().tick()
    }

    fn regions(&self) -> Vec<RegionStatus> {
        let near = Some(Span::ZERO);
        vec![RegionStatus {
            name: "local".into(),
            local: true,
            sites: 1,
            reachable: 1,
            rtt: near,
            floor: near,
            role: Role::Active,
            reads_at: None,
            commits_at: None,
        }]
    }
}

/// A transaction of a [`LocalGateway`].
struct LocalTransaction {
    gateway: LocalGateway,
    mode: ReadMode,
    /// What it reads at: the newest, unless it is read-only.
    at: Timestamp,
    keys: Vec<(Key, Timestamp)>,
    expected: Vec<(Key, Timestamp)>,
    ranges: Vec<(KeyRange, Vec<(Key, Timestamp)>)>,
    writes: BTreeMap<Key, Option<Value>>,
    trips: u32,
    options: CommitOptions,
    longest_wait: Option<Span>,
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
        self.writes.insert(key, value);
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
            if let Some(value) = self.writes.get(key) {
                rows.push(Row { key: key.clone(), version: Timestamp::MAX, value: value.clone() });
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
        let mut merged: BTreeMap<Key, Row> = committed.iter().map(|row| (row.key.clone(), row.clone())).collect();
        for (key, value) in self.writes.range(range.start.clone()..range.end.clone()) {
            merged.insert(key.clone(), Row { key: key.clone(), version: Timestamp::MAX, value: value.clone() });
        }
        let mut live: Vec<Row> = merged.into_values().filter(|row| row.value.is_some()).collect();
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

    fn forget_writes(&mut self) {
        self.writes.clear();
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
        let size = |(key, value): (&Key, &Option<Value>)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len());
        let bytes: usize = self.writes.iter().map(size).sum();
        if shared.commit_bytes_max.is_some_and(|most| bytes > most) {
            return Err(TxnError::TooLarge(format!("the transaction writes {bytes} bytes").into()));
        }
        let at = shared.tick();
        let mut trips = self.trips;
        if !self.writes.is_empty() {
            let rounds = if self.options.two_rounds { 2 } else { 1 };
            trips += rounds;
            shared.trips += u64::from(rounds);
            shared.committed = self.options;
        }
        for (key, value) in self.writes {
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn begin(gateway: &LocalGateway) -> Box<dyn Transaction> {
        gateway.begin(ReadMode::Optimistic).await.expect("a local transaction begins")
    }

    #[tokio::test]
    async fn of_two_transactions_that_read_what_the_other_writes_one_fails() {
        let gateway = LocalGateway::new();
        let (mut one, mut two) = (begin(&gateway).await, begin(&gateway).await);
        one.get(&["b".into()]).await.expect("a read");
        two.get(&["a".into()]).await.expect("a read");
        one.put("a".into(), "1".into()).expect("a write");
        two.put("b".into(), "2".into()).expect("a write");
        assert!(one.commit().await.is_ok());
        assert!(matches!(two.commit().await, Err(TxnError::Conflict(_))));
    }

    #[tokio::test]
    async fn a_key_inserted_into_a_range_read_is_a_conflict_and_one_past_the_page_is_none() {
        let gateway = LocalGateway::new();
        let mut fill = begin(&gateway).await;
        for key in ["a", "c", "e"] {
            fill.put(key.into(), "".into()).expect("a write");
        }
        fill.commit().await.expect("no one is in the way");
        for (inserted, conflicts) in [("b", true), ("d", false)] {
            let mut reader = begin(&gateway).await;
            let page = reader.scan(KeyRange::new("a".into(), "z".into()), 2, false).await.expect("a read");
            assert_eq!(page.rows.len(), 2);
            let mut writer = begin(&gateway).await;
            writer.put(inserted.into(), "".into()).expect("a write");
            writer.commit().await.expect("no one is in the way");
            assert_eq!(reader.commit().await.is_err(), conflicts, "{inserted}");
            let mut undo = begin(&gateway).await;
            undo.delete(inserted.into()).expect("a write");
            undo.commit().await.expect("no one is in the way");
        }
    }

    #[tokio::test]
    async fn a_snapshot_does_not_see_later_commits() {
        let gateway = LocalGateway::new();
        let mut snapshot = gateway.begin(ReadMode::Snapshot).await.expect("a local transaction begins");
        let mut writer = begin(&gateway).await;
        writer.put("a".into(), "1".into()).expect("a write");
        writer.commit().await.expect("no one is in the way");
        assert_eq!(snapshot.get(&["a".into()]).await.expect("a read")[0].value, None);
        assert!(matches!(snapshot.put("a".into(), "2".into()), Err(TxnError::Invalid(_))));
        assert!(snapshot.commit().await.is_ok());
    }
}
