//! Transactions of clients in this process, over the site's actor: what SQL sees of Replicated Commit.
//!
//! Writes are buffered here and laid over what is read; nothing is sent for them before the commit.

use crate::metrics::CommitMetrics;
use crate::placements::Placements;
use crate::runtime::{Handle, Rejected};
use crate::status::Status;
use crate::vitals::{Commits, Vitals};
use async_trait::async_trait;
use rhumb_commit::buffer::WriteBuffer;
use rhumb_commit::replicated_commit::{Answer, Request, Site, Status as ActorStatus};
use rhumb_commit::transaction::{self, CommitOptions, Committed, ReadMode, RegionStatus, TxnError};
use rhumb_core::{Key, KeyRange, Row, Timestamp, TxnId, Value};
use std::sync::Arc;

/// The most rows that one scan of replicas asks for; a longer scan takes more rounds.
const SCAN_PAGE: usize = 8_192;
/// Bytes that a transaction may write.
const WRITES_BYTES_MAX: usize = 12 << 20;

impl Commits for Site {
    fn inquiry() -> Request {
        Request::Status
    }

    fn vitals(answer: Answer) -> Option<Vitals> {
        let Answer::Status(status) = answer else { return None };
        Some(Vitals {
            open: status.open_transactions,
            prepared: status.prepared,
            in_doubt: status.in_doubt,
            safe: status.safe,
            reachable: status.reachable,
            placement: Some(status.placement),
        })
    }

    fn placements(handle: Handle<Site>, status: Arc<Status>) -> Arc<dyn Placements> {
        Arc::new(Gateway::new(handle, status))
    }
}

/// The gateway of this site.
pub struct Gateway {
    handle: Handle<Site>,
    status: Arc<Status>,
}

impl Gateway {
    /// The gateway of the site behind `handle`.
    pub fn new(handle: Handle<Site>, status: Arc<Status>) -> Gateway {
        Gateway { handle, status }
    }

    /// What the actor says of itself.
    pub(crate) async fn actor_status(&self) -> Result<ActorStatus, TxnError> {
        match ask(&self.handle, Request::Status).await? {
            Answer::Status(status) => {
                self.status.saw_placement(&status.placement);
                Ok(status)
            }
            other => Err(unexpected(other)),
        }
    }

    pub(crate) fn status(&self) -> &Status {
        &self.status
    }
}

#[async_trait]
impl transaction::Gateway for Gateway {
    async fn begin(&self, mode: ReadMode) -> Result<Box<dyn transaction::Transaction>, TxnError> {
        match ask(&self.handle, Request::Begin { mode }).await? {
            Answer::Began { txn } => Ok(Box::new(Transaction {
                handle: self.handle.clone(),
                txn,
                mode,
                buffer: WriteBuffer::default(),
                expected: Vec::new(),
                asked: 0,
                trips: 0,
                options: CommitOptions::default(),
                committed: self.status.commits().clone(),
                over: false,
            })),
            other => Err(unexpected(other)),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_time(self.status.now())
    }

    fn regions(&self) -> Vec<RegionStatus> {
        self.status.regions()
    }
}

/// A transaction of this site's gateway.
struct Transaction {
    handle: Handle<Site>,
    txn: TxnId,
    mode: ReadMode,
    buffer: WriteBuffer,
    /// Versions that it depends on besides what it read.
    expected: Vec<(Key, Timestamp)>,
    /// How many of these went along with a read already.
    asked: usize,
    trips: u32,
    options: CommitOptions,
    /// Where it is counted once it has committed.
    committed: CommitMetrics,
    over: bool,
}

async fn ask(handle: &Handle<Site>, request: Request) -> Result<Answer, TxnError> {
    match handle.ask(request).await {
        Ok(Answer::Failed(error)) => Err(error),
        Ok(answer) => Ok(answer),
        Err(rejected @ (Rejected::Busy | Rejected::Stopped)) => Err(TxnError::Unavailable(rejected.to_string())),
    }
}

fn unexpected(answer: Answer) -> TxnError {
    unreachable!("the gateway answered something else than was asked: {answer:?}")
}

impl Transaction {
    /// What is expected and did not go along with a read yet; only a snapshot has it read, others have it validated.
    fn expect_now(&mut self) -> Vec<(Key, Timestamp)> {
        let fresh = self.expected[self.asked..].to_vec();
        self.asked = self.expected.len();
        fresh
    }

    fn check_writable(&self) -> Result<(), TxnError> {
        if self.mode.is_read_only() {
            return Err(TxnError::Invalid("cannot write in a read-only transaction".into()));
        }
        if self.buffer.bytes() > WRITES_BYTES_MAX {
            let message = format!("the transaction writes more than {WRITES_BYTES_MAX} bytes: split it into several");
            return Err(TxnError::TooLarge(message));
        }
        Ok(())
    }

    /// One page of a scan: the rows of `range` up to where the replicas' answers reach, and the rest of the range.
    async fn scan_page(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<(Vec<Row>, Option<KeyRange>), TxnError> {
        let limit = limit.min(SCAN_PAGE) as u32;
        let expect = self.expect_now();
        let request = Request::Scan { txn: self.txn, mode: self.mode, range: range.clone(), limit, reverse, expect };
        match ask(&self.handle, request).await? {
            Answer::Rows { rows, covered: Some(covered), more, trips } => {
                self.trips = trips;
                let rest =
                    if reverse { KeyRange::new(range.start, covered.start.clone()) } else { KeyRange::new(covered.end.clone(), range.end) };
                let rows = self.buffer.overlay(rows, &covered, reverse);
                Ok((rows, (more && !rest.is_empty()).then_some(rest)))
            }
            other => Err(unexpected(other)),
        }
    }
}

#[async_trait]
impl transaction::Transaction for Transaction {
    async fn get(&mut self, keys: &[Key]) -> Result<Vec<Row>, TxnError> {
        let mut wanted: Vec<Key> = keys.iter().filter(|key| self.buffer.row(key).is_none()).cloned().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut found = Vec::new();
        if !wanted.is_empty() {
            let expect = self.expect_now();
            let request = Request::Get { txn: self.txn, mode: self.mode, keys: wanted, expect };
            match ask(&self.handle, request).await? {
                Answer::Rows { rows, trips, .. } => {
                    self.trips = trips;
                    found = rows;
                }
                other => return Err(unexpected(other)),
            }
        }
        let row = |key: &Key| {
            self.buffer.row(key).unwrap_or_else(|| {
                let at = found.binary_search_by(|row| row.key.cmp(key)).expect("every key not buffered was read");
                found[at].clone()
            })
        };
        Ok(keys.iter().map(row).collect())
    }

    async fn scan(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<Vec<Row>, TxnError> {
        let mut rows = Vec::new();
        let mut rest = (!range.is_empty() && limit > 0).then_some(range);
        while let Some(range) = rest.take() {
            // Rows that this transaction deleted, or that were deleted and not yet collected, count for the replicas.
            let wanted = (limit - rows.len()).saturating_add(self.buffer.len().min(SCAN_PAGE));
            let (page, further) = self.scan_page(range, wanted, reverse).await?;
            rows.extend(page);
            rest = further.filter(|_| rows.len() < limit);
        }
        rows.truncate(limit);
        Ok(rows)
    }

    fn expect(&mut self, key: Key, version: Timestamp) {
        if !self.expected.contains(&(key.clone(), version)) {
            self.expected.push((key, version));
        }
    }

    fn put(&mut self, key: Key, value: Value) -> Result<(), TxnError> {
        self.buffer.write(key, Some(value));
        self.check_writable()
    }

    fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        self.buffer.write(key, None);
        self.check_writable()
    }

    fn forget_writes(&mut self) {
        self.buffer = WriteBuffer::default();
    }

    fn set_mode(&mut self, mode: ReadMode) -> Result<(), TxnError> {
        if mode != self.mode && (mode.is_read_only() || self.mode.is_read_only()) {
            return Err(TxnError::Invalid("a transaction begun read-only stays so, and no other becomes so".into()));
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

    async fn commit(mut self: Box<Self>) -> Result<Committed, TxnError> {
        let writes = std::mem::take(&mut self.buffer).into_writes();
        let expect = std::mem::take(&mut self.expected);
        let read_only = writes.is_empty();
        self.over = true;
        match self.handle.ask(Request::Commit { txn: self.txn, writes, expect, options: self.options }).await {
            Ok(Answer::Committed(committed)) => {
                if !read_only {
                    self.committed.count(self.options.two_rounds, committed.trips);
                }
                Ok(committed)
            }
            Ok(Answer::Failed(error)) => Err(error),
            Ok(other) => Err(unexpected(other)),
            Err(Rejected::Stopped) if !read_only => Err(TxnError::Unknown("the site stopped before it could tell".into())),
            Err(rejected) => {
                self.over = false;
                Err(TxnError::Unavailable(rejected.to_string()))
            }
        }
    }

    async fn rollback(mut self: Box<Self>) {
        self.over = true;
        // A site that cannot hear it is stopping, and its transactions end with it.
        let _ = self.handle.tell(Request::Rollback { txn: self.txn });
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.handle.tell(Request::Rollback { txn: self.txn });
        }
    }
}
