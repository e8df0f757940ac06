//! A database in memory behind the same traits as the real one, for tests.
//!
//! Transactions are multi-version and optimistic for good: each remembers the version of every key and the live rows of
//! every range that it read, and its commit fails with a conflict if any of them changed. Locking reads take no locks
//! here, which costs conflicts but no correctness. Simplified: one process, no delays, versions kept for ever.

mod transaction;

use async_trait::async_trait;
use rhumb_commit::buffer::WriteBuffer;
use rhumb_commit::transaction::{CommitOptions, Gateway, ReadMode, RegionStatus, Role, Step, Transaction, TxnError, Wait};
use rhumb_commit::waits::by_majority;
use rhumb_core::{Key, KeyRange, Row, Span, Timestamp, Value};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use transaction::LocalTransaction;

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
    begins_none: bool,
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

    /// Whether transactions wait for ever to begin, from now on, as where their gateway does not answer.
    pub fn begin_none(&self, begins_none: bool) {
        self.lock().begins_none = begins_none;
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
        if self.lock().begins_none {
            return std::future::pending().await;
        }
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
            writes: WriteBuffer::default(),
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

    fn wait(&self, step: Step) -> Option<Wait> {
        by_majority(&self.regions(), step)
    }
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
