//! Read-only transactions: local, at the newest epoch that is wholly settled here.
//!
//! * `Settled`: at once.
//! * `After(commit)`: once the commit's epoch is settled here, so that a session sees its own writes.
//! * `At(moment)`: as of then, once that moment's epoch is settled here. Whoever was served at a snapshot asks so for more of it.
//! * `Strict`: once an epoch is settled that this site seals after the read began. Whatever was answered before, anywhere, lies
//!   in an epoch that all regions had sealed, this one too; so it lies before that epoch. No clock is trusted in this.

use super::config::WAITING_READS_MAX;
use super::epoch::Epoch;
use super::fetch::Fetch;
use super::message::Answer;
use super::planted::Planted;
use super::site::{Job, Site};
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::transaction::{READ_BYTES_MAX, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, Key, KeyRange, Loaded, Table, Timestamp, work};
use std::collections::BTreeMap;

/// What a client reads.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) keys: Vec<Key>,
    pub(super) ranges: Vec<(KeyRange, u32)>,
    pub(super) reverse: bool,
}

/// A client's read that waits.
#[derive(Debug)]
pub(super) struct Read {
    id: RequestId,
    wanted: Wanted,
    /// As of when, if not of what is settled when it is served.
    at: Option<Timestamp>,
    /// The tick in which it came.
    since: u64,
}

/// Reads that wait for an epoch to be settled.
#[derive(Debug, Default)]
pub(super) struct Reads {
    waiting: BTreeMap<Epoch, Vec<Read>>,
    count: usize,
}

/// A read that is being served.
#[derive(Debug)]
pub(super) struct Serving {
    id: RequestId,
    fetch: Fetch,
}

impl Reads {
    /// Lists what waits.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("reads", self.count, WAITING_READS_MAX));
    }

    /// Gives up those of `reads`, which count as waiting, that have waited since `deadline`.
    pub(super) fn give_up(&mut self, reads: &mut Vec<Read>, deadline: u64, fx: &mut Effects<Site>) {
        self.count -= give_up(reads, deadline, fx);
    }
}

impl Site {
    /// A client reads.
    pub(super) fn on_read(&mut self, id: RequestId, wanted: Wanted, freshness: Freshness, fx: &mut Effects<Site>) {
        let at = if let Freshness::At(at) = freshness { Some(at) } else { None };
        let read = Read { id, wanted, at, since: self.ticks };
        if self.reads.count >= WAITING_READS_MAX && freshness != Freshness::Settled {
            let full = format!("{WAITING_READS_MAX} reads wait already");
            return fx.answer(id, Answer::Failed(TxnError::Unavailable(full)));
        }
        match freshness {
            Freshness::Settled => self.serve(read, fx),
            Freshness::At(at) if at < self.kept() => fx.answer(id, not_kept(at)),
            Freshness::After(at) | Freshness::At(at) => {
                let epoch = Epoch(at.time().as_micros() / self.config.epoch.as_micros());
                if epoch > self.epochs.settled {
                    self.stay_awake();
                }
                self.reads.count += 1;
                self.read_once_settled(epoch, read, fx);
            }
            Freshness::Strict if self.only_stands_by() => self.refuse(id, fx),
            Freshness::Strict if self.rules.breaks(Planted::StrictByClock) => {
                self.reads.count += 1;
                self.read_once_settled(Epoch::ended_by(self.now, self.config.epoch), read, fx);
            }
            Freshness::Strict => {
                self.stay_awake();
                self.reads.count += 1;
                self.read_strictly(read);
            }
        }
    }

    /// True if no read waits.
    pub(super) fn no_read_waits(&self) -> bool {
        self.reads.count == 0
    }

    /// The first moment of which all versions are kept here.
    fn kept(&self) -> Timestamp {
        Epoch(self.epochs.settled.0.saturating_sub(self.config.keep_epochs)).snapshot(self.config.epoch)
    }

    /// Serves a read once `epoch` is settled. It counts as waiting.
    pub(super) fn read_once_settled(&mut self, epoch: Epoch, read: Read, fx: &mut Effects<Site>) {
        self.reads.waiting.entry(epoch).or_default().push(read);
        self.serve_reads(fx);
    }

    /// Serves the reads that need wait no longer.
    pub(super) fn serve_reads(&mut self, fx: &mut Effects<Site>) {
        let later = self.reads.waiting.split_off(&self.epochs.settled.plus(1));
        for read in std::mem::replace(&mut self.reads.waiting, later).into_values().flatten() {
            self.reads.count -= 1;
            self.serve(read, fx);
        }
    }

    /// Gives up reads that have waited since `deadline`.
    pub(super) fn expire_reads(&mut self, deadline: u64, fx: &mut Effects<Site>) {
        work::add(self.reads.count);
        for reads in self.reads.waiting.values_mut() {
            self.reads.count -= give_up(reads, deadline, fx);
        }
        self.reads.waiting.retain(|_, reads| !reads.is_empty());
    }

    fn serve(&mut self, read: Read, fx: &mut Effects<Site>) {
        let Read { id, wanted: Wanted { keys, ranges, reverse }, at, .. } = read;
        let at = at.unwrap_or_else(|| self.epochs.settled.snapshot(self.config.epoch));
        let at = match self.rules.breaks(Planted::ReadsUnsettled) {
            true => self.epochs.execution.max(self.epochs.settled).snapshot(self.config.epoch),
            false => at,
        };
        self.go_on_serving(Serving { id, fetch: Fetch::new(at, keys, ranges).reversed(reverse).up_to(READ_BYTES_MAX) }, fx);
    }

    fn go_on_serving(&mut self, mut serving: Serving, fx: &mut Effects<Site>) {
        match serving.fetch.next_load() {
            Some(load) => {
                let token = self.job(Job::Read(serving));
                fx.load(token, load);
            }
            None => {
                let (at, more) = (serving.fetch.at(), serving.fetch.is_cut());
                let (rows, ranges) = serving.fetch.finish();
                fx.answer(serving.id, Answer::Rows { at, rows, ranges, more });
            }
        }
    }

    /// Rows of a read that is being served. Versions may have been collected since the load before this one, or before this one was
    /// carried out; never beyond what is kept now.
    pub(super) fn on_read_loaded(&mut self, mut serving: Serving, loaded: Loaded, fx: &mut Effects<Site>) {
        let at = serving.fetch.at();
        if at < self.kept() {
            return fx.answer(serving.id, not_kept(at));
        }
        serving.fetch.take(loaded);
        self.go_on_serving(serving, fx);
    }
}

fn not_kept(at: Timestamp) -> Answer {
    Answer::Failed(TxnError::OutOfRange(format!("{at} lies before the versions that are still kept")))
}

/// Answers those of `reads` that have waited since `deadline`, and says how many they are.
fn give_up(reads: &mut Vec<Read>, deadline: u64, fx: &mut Effects<Site>) -> usize {
    let late = reads.extract_if(.., |read| read.since <= deadline);
    let why = "the epoch that the read waits for was not settled in this region in time";
    late.map(|read| fx.answer(read.id, Answer::Failed(TxnError::Unavailable(why.into())))).count()
}

#[cfg(test)]
mod tests;
