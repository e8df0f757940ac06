//! The gateway: the client's side of the protocol. It remembers what each open transaction has read (its *evidence*),
//! reads from the regions, and makes attempts to commit.
//!
//! A gateway holds nothing that matters to anybody else: if it dies, the regions work the outcome out by themselves, and
//! its read locks expire. It is not needed for safety, only for its client's answer.

mod commit;
mod committing;
mod conclusion;
mod handoff;
mod merge;
mod pending_read;
mod reads;

pub(super) use pending_read::{Reader, ScanRequest};

use super::config::{ENDED_MAX, TAKEN_MAX, TRANSACTIONS_MAX};
use super::measure::Workload;
use super::message::{Answer, Attempt, Handoff, HandoffId, Note, ReadCheck, ReadId, Seen};
use crate::context::{Context, Shared};
use crate::views::GatewayView;
use committing::Committing;
use handoff::{Handed, Taken};
use pending_read::PendingRead;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_commit::votes::{Decision, Tally, Vote};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, KeyRange, RegionId, SiteId, Table, Timestamp, TxnId, work};
use std::collections::{BTreeMap, BTreeSet};

/// What a transaction has read of one range, in one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RangeEvidence {
    shard: u16,
    range: KeyRange,
    /// Every row found, deletions included, in key order.
    rows: Vec<ReadCheck>,
}

impl RangeEvidence {
    /// The version of `key`, if it was found.
    fn version(&self, key: &Key) -> Option<Timestamp> {
        let place = self.rows.binary_search_by(|found| found.key.cmp(key)).ok()?;
        Some(self.rows[place].seen.version)
    }
}

/// An attempt that has ended at its gateway.
#[derive(Clone, Copy, Debug)]
struct Ended {
    attempt: Attempt,
    /// None if it was given up without an outcome.
    decision: Option<Decision>,
}

/// An open transaction.
#[derive(Clone, Debug)]
struct Txn {
    /// It reads in this mode now.
    mode: ReadMode,
    /// The timestamp that a read-only transaction reads at.
    snapshot: Timestamp,
    /// For each shard read in a snapshot: the highest commit that any replica asked knew when it was first read. A
    /// commit above it cannot have ended before the transaction began.
    horizon_of_known: BTreeMap<u16, Timestamp>,
    /// True once rows were returned at `snapshot`: it cannot move any more.
    pinned: bool,
    /// The rows read by key.
    rows: BTreeMap<Key, Seen>,
    ranges: Vec<RangeEvidence>,
    /// Rows in `rows` and `ranges` together.
    evidence: usize,
    /// Sites that may hold read locks of it.
    locked_at: BTreeSet<SiteId>,
    trips: u32,
    committing: Option<Committing>,
}

/// What waits to begin.
#[derive(Clone, Debug)]
enum Begin {
    /// A transaction of a client.
    Client(RequestId, ReadMode),
    /// The commit of another gateway's.
    Handoff(SiteId, Handoff),
}

/// The gateway of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gateway {
    txns: BTreeMap<TxnId, Txn>,
    reads: BTreeMap<ReadId, PendingRead>,
    /// How attempts ended here lately, by when they were made; `None` if given up without an outcome.
    ended: BTreeMap<Timestamp, Ended>,
    /// Commits that another gateway runs for this one.
    handed: BTreeMap<HandoffId, Handed>,
    /// Commits that this gateway runs, or ran, for another one.
    taken: BTreeMap<HandoffId, Taken>,
    /// What is to begin once the clock's bound on disk is high enough.
    waiting: Vec<Begin>,
    workload: Workload,
}

impl Gateway {
    /// The number of open transactions.
    pub(crate) fn open(&self) -> usize {
        self.txns.len() + self.handed.len()
    }

    /// How much its clients do.
    pub(crate) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// True if as many transactions are open here, or wait to begin, as may be.
    fn begins_no_more(&self) -> bool {
        self.open() + self.waiting.len() >= TRANSACTIONS_MAX
    }

    /// Lists its tables. A client asks one thing of a transaction at a time.
    pub(crate) fn tables(&self, sites: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("gateway.transactions", self.open(), TRANSACTIONS_MAX));
        visit(Table::new("gateway.waiting", self.waiting.len(), TRANSACTIONS_MAX));
        visit(Table::new("gateway.reads", self.reads.len(), TRANSACTIONS_MAX));
        visit(Table::new("gateway.ended", self.ended.len(), ENDED_MAX).stays());
        // The last one of each gateway stays as long as its clock does not go on.
        visit(Table::new("gateway.taken", self.taken.len(), TAKEN_MAX).resting_at(sites));
    }

    /// When the oldest open transaction began.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.txns.keys().next().map(|txn| txn.began)
    }

    /// When the oldest commit that this gateway awaits the end of was handed over.
    pub(crate) fn handing(&self) -> Option<Timestamp> {
        self.handed.keys().next().map(|id| id.made)
    }
}

impl Txn {
    fn new(mode: ReadMode, snapshot: Timestamp) -> Txn {
        Txn {
            mode,
            snapshot,
            horizon_of_known: BTreeMap::new(),
            pinned: false,
            rows: BTreeMap::new(),
            ranges: Vec::new(),
            evidence: 0,
            locked_at: BTreeSet::new(),
            trips: 0,
            committing: None,
        }
    }
}

impl Gateway {
    /// A client begins a transaction: at once, or when the clock's bound is on disk.
    pub(crate) fn on_begin(&mut self, id: RequestId, mode: ReadMode, cx: &mut Context<'_>) {
        if self.begins_no_more() {
            let why = format!("this site already runs {TRANSACTIONS_MAX} transactions; close some, or connect to another site");
            cx.fx.answer(id, Answer::Failed(TxnError::TooLarge(why.into())));
        } else if cx.may_begin() {
            self.begin(id, mode, cx);
        } else {
            self.waiting.push(Begin::Client(id, mode));
        }
    }

    /// The clock's bound on disk is higher: begins what has waited for that.
    pub(crate) fn on_bound(&mut self, cx: &mut Context<'_>) {
        for begin in std::mem::take(&mut self.waiting) {
            match begin {
                Begin::Client(id, mode) => self.on_begin(id, mode, cx),
                Begin::Handoff(from, handoff) => self.on_handoff(from, handoff, cx),
            }
        }
    }

    fn begin(&mut self, id: RequestId, mode: ReadMode, cx: &mut Context<'_>) {
        let now = cx.begin_now();
        if let ReadMode::Stale(at) = mode
            && at > now
        {
            let error =
                TxnError::OutOfRange(format!("cannot read as of a time that is {} in the future", at.time().since(now.time())).into());
            return cx.fx.answer(id, Answer::Failed(error));
        }
        let txn = TxnId { began: now, gateway: cx.me };
        self.txns.insert(txn, Txn::new(mode, if let ReadMode::Stale(at) = mode { at } else { now }));
        cx.fx.answer(id, Answer::Began { txn });
    }

    pub(crate) fn on_rollback(&mut self, id: RequestId, txn: TxnId, cx: &mut Context<'_>) {
        if self.txns.get(&txn).is_some_and(|state| state.committing.is_some()) {
            return cx.fx.answer(id, Answer::Failed(TxnError::Invalid("the transaction is committing already".into())));
        }
        self.end(txn, cx);
        cx.fx.answer(id, Answer::Done);
    }

    /// The transaction is over: forgets it and frees its read locks.
    fn end(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        work::add(self.reads.len());
        self.reads.retain(|_, read| read.txn != txn);
        if let Some(state) = self.txns.remove(&txn) {
            for site in state.locked_at {
                cx.send(site, Note::Release { txn });
            }
        }
    }

    /// Looks after what is overdue.
    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        self.workload.tick();
        self.reads_tick(cx);
        self.commits_tick(cx);
        self.handoffs_tick(cx);
    }

    /// Fails unless a majority of regions has all sites of `shards` alive. An incarnation that has just begun has not heard of all that are: what it
    /// sends is sent again until they answer.
    fn check_majority(cx: &Shared, shards: &[u16]) -> Result<(), TxnError> {
        if cx.peers.has_just_begun(cx.config.suspect_after.as_micros() / cx.config.tick.as_micros()) {
            return Ok(());
        }
        let reachable = cx.reachable_voters(shards);
        let voters = cx.placement.voters;
        if reachable.len() >= voters.majority() {
            return Ok(());
        }
        let names =
            |regions: &mut dyn Iterator<Item = RegionId>| regions.map(|region| cx.topology.name(region)).collect::<Vec<_>>().join(", ");
        let missing = names(&mut voters.iter().filter(|region| !reachable.contains(region)));
        Err(TxnError::Unavailable(
            format!(
                "no majority of regions can be reached: {} of {} answer, {} are needed; not heard of: {missing}",
                reachable.len(),
                voters.len(),
                voters.majority(),
            )
            .into(),
        ))
    }
}

impl GatewayView for Gateway {
    fn decided(&self, attempt: &Attempt) -> Option<Decision> {
        self.outcome(attempt).flatten()
    }

    fn votes(&self, attempt: &Attempt) -> BTreeMap<RegionId, Vote> {
        let committing = self.txns.get(&attempt.txn).and_then(|state| state.committing.as_ref());
        let seen = committing.filter(|committing| committing.meta.attempt == *attempt).map(|committing| &committing.tally);
        seen.into_iter().flat_map(Tally::final_votes).map(|(region, vote)| (region, vote.clone())).collect()
    }
}

#[cfg(test)]
mod tests;
