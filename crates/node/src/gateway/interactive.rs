//! Interactive transactions of clients in this process, over the actor of any protocol that runs them: what SQL sees of it.
//!
//! Writes are buffered here and laid over what is read; nothing is sent for them before the commit.
//!
//! A transaction may depend on rows that an earlier one read (a cached table descriptor, say). Where votes validate what was read
//! these go along with what it asks next. Where locks keep it, it reads them too, along with the next rows by key if there are
//! such, and before anything else if not.

pub(crate) mod questions;

use crate::gateway::question::Question;
use crate::gateway::reach::{Here, Reach, ask, begun, of_change, of_question, put};
use crate::runtime::{Handle, Hosted, Rejected};
use crate::status::Status;
use async_trait::async_trait;
use futures::future::{Either, select};
use questions::{Found, Page, administer, begin, commit, get, inquire, rolled_back, scan};
use rhumb_commit::buffer::WriteBuffer;
use rhumb_commit::interactive::{Interactive, Request};
use rhumb_commit::placement::Regions;
use rhumb_commit::transaction::{
    self, CommitOptions, Committed, READ_BYTES_MAX, ReadMode, RegionStatus, Savepoint, Scanned, Step, TxnError, Wait, rest_of,
};
use rhumb_commit::waits::by_majority;
use rhumb_core::{Key, KeyRange, Row, Span, Timestamp, TxnId, Value};
use rhumb_replicated_commit::{Admin, Site, Status as ActorStatus};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;

/// The most rows that one scan of replicas asks for; a longer scan takes more rounds.
const SCAN_PAGE: usize = 8_192;
/// Rows that a page of a scan asks for at the least, if it is not the first: a scan that needs another one passes rows that were deleted,
/// and each page is a trip.
const SCAN_AGAIN_MIN: usize = 64;
/// Bytes that a transaction may write.
const WRITES_BYTES_MAX: usize = 12 << 20;
/// Bytes of the keys that are asked for at once; a single key may have more.
const KEYS_BYTES_MAX: usize = 1 << 20;

/// An actor of interactive transactions.
pub trait Serves: Hosted + Interactive<Asked: Send, Told: Send> {
    /// True if commits validate versions that were read elsewhere. Else they have to be read.
    const VALIDATES: bool;

    /// Counts a transaction by what its client was told of its end.
    fn count(status: &Status, options: CommitOptions, outcome: Result<Committed, &TxnError>, wrote: bool);

    /// What a step of a transaction waits for, if that is known before.
    fn wait(_regions: &[RegionStatus], _step: Step) -> Option<Wait> {
        None
    }
}

impl Serves for Site {
    const VALIDATES: bool = true;

    fn count(status: &Status, options: CommitOptions, outcome: Result<Committed, &TxnError>, wrote: bool) {
        if let Ok(committed) = outcome
            && wrote
        {
            status.commits().count(options.two_rounds, committed.trips);
        }
    }

    fn wait(regions: &[RegionStatus], step: Step) -> Option<Wait> {
        by_majority(regions, step)
    }
}

/// The gateway of a site.
pub struct Gateway<A: Serves = Site, R: Reach<A> = Here<A>> {
    reach: R,
    actor: PhantomData<fn() -> A>,
}

impl<A: Serves> Gateway<A> {
    /// The gateway of the site behind `handle`.
    pub fn new(handle: Handle<A>, status: Arc<Status>) -> Gateway<A> {
        Gateway::over(Here::new(handle, status))
    }
}

impl<A: Serves, R: Reach<A>> Gateway<A, R> {
    /// The gateway of the site that is reached so.
    pub fn over(reach: R) -> Gateway<A, R> {
        Gateway { reach, actor: PhantomData }
    }

    /// How the site is reached.
    pub(crate) fn reach(&self) -> &R {
        &self.reach
    }
}

impl Gateway {
    /// What the actor says of itself.
    pub(crate) async fn actor_status(&self) -> Result<ActorStatus, TxnError> {
        let status = ask(&self.reach, inquire(Admin::Status)).await?;
        self.status().saw_placement(&status.placement);
        Ok(status)
    }

    /// Has changes of the placement that are in doubt settled without regions that are `lost`.
    pub(crate) async fn settle_without(&self, lost: Regions) -> Result<(), TxnError> {
        ask(&self.reach, administer(Admin::Settle { lost })).await
    }

    pub(crate) fn status(&self) -> &Status {
        self.reach.site()
    }
}

#[async_trait]
impl<A: Serves, R: Reach<A>> transaction::Gateway for Gateway<A, R> {
    async fn begin(&self, mode: ReadMode) -> Result<Box<dyn transaction::Transaction>, TxnError> {
        let options = CommitOptions::default();
        let begun = begun(&self.reach, begin(mode), rolled_back::<A>).await;
        let txn = begun.inspect_err(|error| count::<A>(&self.reach, options, Err(error), false))?;
        Ok(Box::new(Transaction {
            reach: self.reach.clone(),
            actor: PhantomData,
            txn,
            mode,
            buffer: WriteBuffer::default(),
            expected: Vec::new(),
            asked: 0,
            trips: 0,
            at: Timestamp::ZERO,
            options,
            longest_wait: None,
            over: false,
        }))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_time(self.reach.now())
    }

    fn regions(&self) -> Vec<RegionStatus> {
        self.reach.regions()
    }

    fn wait(&self, step: Step) -> Option<Wait> {
        A::wait(&self.reach.regions(), step)
    }
}

/// A transaction of a site's gateway.
struct Transaction<A: Serves, R: Reach<A>> {
    reach: R,
    actor: PhantomData<fn() -> A>,
    txn: TxnId,
    mode: ReadMode,
    buffer: WriteBuffer,
    /// Versions that it depends on besides what it read.
    expected: Vec<(Key, Timestamp)>,
    /// How many of these went along with a read already.
    asked: usize,
    trips: u32,
    /// The moment that it has read, if it reads at one.
    at: Timestamp,
    options: CommitOptions,
    /// How long a read may take.
    longest_wait: Option<Span>,
    over: bool,
}

/// Counts a transaction, where that is done.
fn count<A: Serves>(reach: &impl Reach<A>, options: CommitOptions, outcome: Result<Committed, &TxnError>, wrote: bool) {
    if let Some(status) = reach.status() {
        A::count(status, options, outcome, wrote);
    }
}

impl<A: Serves, R: Reach<A>> Transaction<A, R> {
    /// What is expected and did not go along with a read yet that was answered; of Replicated Commit only a snapshot has it read,
    /// others have it validated.
    fn expect_now(&self) -> Vec<(Key, Timestamp)> {
        self.expected[self.asked..].to_vec()
    }

    /// Rows by key: of the first keys only, if they have more than [`READ_BYTES_MAX`]. What the transaction expects goes along.
    async fn read(&mut self, mut keys: Vec<Key>) -> Result<Vec<Row>, TxnError> {
        let fresh = self.expect_now();
        let expect = if A::VALIDATES { fresh.clone() } else { Vec::new() };
        if !A::VALIDATES {
            let wanted = std::mem::replace(&mut keys, fresh.iter().map(|(key, _)| key.clone()).collect());
            keys.extend(wanted.into_iter().filter(|key| !fresh.iter().any(|(fresh, _)| fresh == key)));
        }
        let (mut rows, mut rest) = (Vec::with_capacity(keys.len()), keys.as_slice());
        let mut bytes = 0;
        loop {
            let page = rest[..keys_of_a_page(rest)].to_vec();
            let Found { rows: found, trips, at } = self.ask(get(self.txn, self.mode, page, expect.clone())).await?;
            (self.trips, self.at) = (trips, at);
            rest = &rest[found.len()..];
            bytes += found.iter().map(Row::bytes).sum::<usize>();
            rows.extend(found);
            if rest.is_empty() || bytes >= READ_BYTES_MAX {
                break;
            }
        }
        let holds = |(key, version): &(Key, Timestamp)| rows.iter().any(|row| row.key == *key && row.version == *version);
        if !A::VALIDATES && !fresh.iter().all(holds) {
            let error = TxnError::Conflict("what the transaction depends on has changed since".into());
            count::<A>(&self.reach, self.options, Err(&error), false);
            return Err(error);
        }
        self.asked += fresh.len();
        Ok(rows)
    }

    /// Reads what is expected and was not read yet, where nothing else would find out whether it holds.
    async fn read_expected(&mut self) -> Result<(), TxnError> {
        if !A::VALIDATES && self.asked < self.expected.len() {
            self.read(Vec::new()).await?;
        }
        Ok(())
    }

    /// Asks the actor for rows; a transaction that cannot go on is counted.
    async fn ask<T>(&self, question: Question<A, T>) -> Result<T, TxnError> {
        let asked = ask(&self.reach, question);
        let answer = match self.longest_wait {
            Some(longest) if !matches!(self.mode, ReadMode::Stale(_)) => match select(pin!(asked), pin!(self.reach.sleep(longest))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Err(TxnError::LockTimeout(format!("the read was not answered within {longest}").into())),
            },
            _ => asked.await,
        };
        answer.inspect_err(|error| count::<A>(&self.reach, self.options, Err(error), false))
    }

    fn check_writable(&self) -> Result<(), TxnError> {
        if self.mode.is_read_only() {
            return Err(TxnError::Invalid("cannot write in a read-only transaction".into()));
        }
        if self.buffer.bytes() > WRITES_BYTES_MAX {
            let message = format!("the transaction writes more than {WRITES_BYTES_MAX} bytes: split it into several");
            return Err(TxnError::TooLarge(message.into()));
        }
        Ok(())
    }

    /// One page of a scan: the rows of `range` up to where the replicas' answers reach, and the rest of the range.
    async fn scan_page(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<(Vec<Row>, Option<KeyRange>), TxnError> {
        self.read_expected().await?;
        let limit = limit.min(SCAN_PAGE) as u32;
        let expect = self.expect_now();
        let expected = expect.len();
        let question = scan(self.txn, self.mode, range.clone(), limit, reverse, expect);
        let Page { rows, covered, more, trips, at } = self.ask(question).await?;
        self.asked += expected;
        (self.trips, self.at) = (trips, at);
        let rest = if reverse { KeyRange::new(range.start, covered.start.clone()) } else { KeyRange::new(covered.end.clone(), range.end) };
        let rows = self.buffer.overlay(rows, &covered, reverse);
        Ok((rows, (more && !rest.is_empty()).then_some(rest)))
    }
}

#[async_trait]
impl<A: Serves, R: Reach<A>> transaction::Transaction for Transaction<A, R> {
    async fn get_some(&mut self, keys: &[Key]) -> Result<Vec<Row>, TxnError> {
        let wanted = self.buffer.unwritten(keys);
        let found = if wanted.is_empty() { Vec::new() } else { self.read(wanted).await? };
        Ok(self.buffer.rows(keys, found))
    }

    async fn scan(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<Scanned, TxnError> {
        let mut rows: Vec<Row> = Vec::new();
        let mut rest = (!range.is_empty()).then(|| range.clone());
        let (mut least, mut bytes) = (0, 0);
        while rows.len() < limit
            && bytes < READ_BYTES_MAX
            && let Some(range) = rest.take()
        {
            // Rows that this transaction deleted, or that were deleted and not yet collected, count for the replicas.
            let wanted = (limit - rows.len()).saturating_add(self.buffer.len().min(SCAN_PAGE)).max(least);
            let (page, further) = self.scan_page(range, wanted, reverse).await?;
            least = least_of_next(least, page.is_empty());
            bytes += page.iter().map(Row::bytes).sum::<usize>();
            rows.extend(page);
            rest = further;
        }
        if rows.len() > limit {
            rows.truncate(limit);
            rest = rows.last().map_or(Some(range.clone()), |last| rest_of(range, &last.key, reverse));
        }
        Ok(Scanned { rows, rest })
    }

    fn expect(&mut self, key: Key, version: Timestamp) {
        if !self.expected.contains(&(key.clone(), version)) {
            self.expected.push((key, version));
        }
    }

    fn bound_waits(&mut self, longest: Option<Span>) {
        self.longest_wait = longest;
    }

    fn put(&mut self, key: Key, value: Value) -> Result<(), TxnError> {
        self.buffer.write(key, Some(value));
        self.check_writable()
    }

    fn delete(&mut self, key: Key) -> Result<(), TxnError> {
        self.buffer.write(key, None);
        self.check_writable()
    }

    fn savepoint(&mut self) -> Savepoint {
        self.buffer.savepoint()
    }

    fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.buffer.roll_back_to(savepoint);
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

    fn is_of_one_moment(&self) -> bool {
        A::VALIDATES && self.mode.is_read_only()
    }

    fn trips(&self) -> u32 {
        self.trips
    }

    async fn commit(mut self: Box<Self>) -> Result<Committed, TxnError> {
        self.read_expected().await?;
        let writes = std::mem::take(&mut self.buffer).into_writes();
        let expect = if A::VALIDATES { std::mem::take(&mut self.expected) } else { Vec::new() };
        let read_only = writes.is_empty();
        if read_only && self.at > Timestamp::ZERO {
            // It saw what was committed by then, and leaves nothing behind: dropped, it is rolled back, and nobody waits for that.
            return Ok(Committed { at: self.at, trips: self.trips });
        }
        self.over = true;
        let outcome = match put(&self.reach, commit(self.txn, writes, expect, self.options)).await {
            Ok(outcome) => outcome,
            Err(rejected @ Rejected::Stopped) if !read_only => Err(of_change(rejected)),
            Err(rejected) => {
                self.over = false;
                Err(of_question(rejected))
            }
        };
        count::<A>(&self.reach, self.options, outcome.as_ref().copied(), !read_only);
        outcome
    }

    async fn rollback(mut self: Box<Self>) {
        self.over = true;
        self.reach.end(Request::Rollback { txn: self.txn });
    }
}

impl<A: Serves, R: Reach<A>> Drop for Transaction<A, R> {
    fn drop(&mut self) {
        if !self.over {
            self.reach.end(Request::Rollback { txn: self.txn });
        }
    }
}

/// How many of the first of `keys` are asked for at once: one at least, if there is any.
fn keys_of_a_page(keys: &[Key]) -> usize {
    let mut bytes = 0;
    let fitting = keys.iter().take_while(|key| {
        bytes += key.0.len();
        bytes <= KEYS_BYTES_MAX
    });
    fitting.count().max(1).min(keys.len())
}

/// How many rows the next page of a scan asks for at the least: twice as many as the last, if that found only rows that were deleted.
fn least_of_next(least: usize, found_none: bool) -> usize {
    let least = if found_none { least * 2 } else { least };
    least.clamp(SCAN_AGAIN_MIN, SCAN_PAGE)
}

#[cfg(test)]
mod tests;
