//! Read-only transactions: local, at the newest epoch that is wholly settled here.
//!
//! * `Settled`: at once.
//! * `After(commit)`: once the commit's epoch is settled here, so that a session sees its own writes.
//! * `At(moment)`: as of then, once that moment's epoch is settled here. A client that was served at a snapshot reads more of it in this way.
//! * `Strict`: once an epoch is settled that this site seals after the read began. Every transaction that was answered before, anywhere, lies in an
//!   epoch that all regions had sealed, including this one, so it lies before that epoch. This trusts no clock.
//!
//! Invariants: what a read shows is settled here, and all versions that it may need are kept when it is answered; no more than
//! [`WAITING_READS_MAX`] wait at once.
//!
//! Source: section VI.F. There is no decision period: a read sees settled epochs alone.

use super::config::WAITING_READS_MAX;
use super::context::{Context, Job, Shared};
use super::epoch::Epoch;
use super::epochs::Epochs;
use super::fetch::Fetch;
use super::message::Answer;
use super::planted::Planted;
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::transaction::{READ_BYTES_MAX, TxnError};
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{Key, KeyRange, Loaded, Table, Timestamp, work};
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

/// A read that is being served.
#[derive(Debug)]
struct Serving {
    id: RequestId,
    fetch: Fetch,
}

/// Reads that wait for an epoch to be settled, and those that are being served.
#[derive(Debug, Default)]
pub(super) struct Reads {
    waiting: BTreeMap<Epoch, Vec<Read>>,
    /// How many wait.
    count: usize,
    serving: BTreeMap<Token, Serving>,
}

impl Reads {
    /// Lists what waits; strict reads whose epoch is not agreed on are `elsewhere`.
    pub(super) fn tables(&self, elsewhere: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("reads", self.count + elsewhere, WAITING_READS_MAX));
    }

    /// True if no read waits.
    pub(super) fn are_idle(&self) -> bool {
        self.count == 0
    }

    /// # Errors
    /// If as many reads wait as may, so many of them `elsewhere`.
    pub(super) fn check_room(&self, elsewhere: usize) -> Result<(), TxnError> {
        if self.count + elsewhere >= WAITING_READS_MAX {
            return Err(TxnError::Unavailable(format!("{WAITING_READS_MAX} reads wait already").into()));
        }
        Ok(())
    }

    /// A client reads. Returns a strict read: the coordinator is to seal an epoch for it.
    pub(super) fn on_read(
        &mut self,
        id: RequestId,
        wanted: Wanted,
        freshness: Freshness,
        epochs: &Epochs,
        cx: &mut Context<'_>,
    ) -> Option<Read> {
        let at = if let Freshness::At(at) = freshness { Some(at) } else { None };
        let read = Read { id, wanted, at, since: cx.ticks };
        match freshness {
            Freshness::Settled => self.serve(read, epochs, cx),
            Freshness::At(at) if at < kept(epochs, cx) => cx.fx.answer(id, not_kept(at)),
            Freshness::After(at) | Freshness::At(at) => {
                let epoch = Epoch(at.time().as_micros() / cx.config.epoch.as_micros());
                if epoch > epochs.settled() {
                    cx.stay_awake();
                }
                self.await_settled(epoch, read, epochs, cx);
            }
            Freshness::Strict => return Some(read),
        }
        None
    }

    /// Serves a read once `epoch` is settled.
    pub(super) fn await_settled(&mut self, epoch: Epoch, read: Read, epochs: &Epochs, cx: &mut Context<'_>) {
        self.count += 1;
        self.waiting.entry(epoch).or_default().push(read);
        self.on_settled(epochs, cx);
    }

    /// Serves the reads that need wait no longer.
    pub(super) fn on_settled(&mut self, epochs: &Epochs, cx: &mut Context<'_>) {
        let later = self.waiting.split_off(&epochs.settled().plus(1));
        for read in std::mem::replace(&mut self.waiting, later).into_values().flatten() {
            self.count -= 1;
            self.serve(read, epochs, cx);
        }
    }

    /// Gives up reads that have waited since `deadline`.
    pub(super) fn expire(&mut self, elsewhere: usize, deadline: u64, cx: &mut Context<'_>) {
        work::add(self.count + elsewhere);
        for reads in self.waiting.values_mut() {
            self.count -= give_up(reads, deadline, cx);
        }
        self.waiting.retain(|_, reads| !reads.is_empty());
    }

    fn serve(&mut self, read: Read, epochs: &Epochs, cx: &mut Context<'_>) {
        let Read { id, wanted: Wanted { keys, ranges, reverse }, at, .. } = read;
        let at = at.unwrap_or_else(|| epochs.settled().snapshot(cx.config.epoch));
        let at = match cx.rules.breaks(Planted::ReadsUnsettled) {
            true => epochs.execution().max(epochs.settled()).snapshot(cx.config.epoch),
            false => at,
        };
        self.go_on(Serving { id, fetch: Fetch::new(at, keys, ranges).reversed(reverse).up_to(READ_BYTES_MAX) }, cx);
    }

    fn go_on(&mut self, mut serving: Serving, cx: &mut Context<'_>) {
        match serving.fetch.next_load() {
            Some(load) => drop(self.serving.insert(cx.load(Job::Read, load), serving)),
            None => {
                let (at, more) = (serving.fetch.at(), serving.fetch.is_cut());
                let (rows, ranges) = serving.fetch.finish();
                cx.fx.answer(serving.id, Answer::Rows { at, rows, ranges, more });
            }
        }
    }

    /// Rows of a read that is being served. Versions may have been collected since the load before this one, or before this one was
    /// carried out; never beyond what is kept now.
    pub(super) fn on_loaded(&mut self, token: Token, loaded: Loaded, epochs: &Epochs, cx: &mut Context<'_>) {
        let mut serving = self.serving.remove(&token).expect("it is being served");
        let at = serving.fetch.at();
        if at < kept(epochs, cx) {
            return cx.fx.answer(serving.id, not_kept(at));
        }
        serving.fetch.take(loaded);
        self.go_on(serving, cx);
    }
}

/// The first moment of which all versions are kept here.
fn kept(epochs: &Epochs, cx: &Shared) -> Timestamp {
    Epoch(epochs.settled().0.saturating_sub(cx.config.keep_epochs)).snapshot(cx.config.epoch)
}

fn not_kept(at: Timestamp) -> Answer {
    Answer::Failed(TxnError::OutOfRange(format!("{at} lies before the versions that are still kept").into()))
}

/// Answers those of `reads` that have waited since `deadline`, and says how many they are.
pub(super) fn give_up(reads: &mut Vec<Read>, deadline: u64, cx: &mut Context<'_>) -> usize {
    let late = reads.extract_if(.., |read| read.since <= deadline);
    let why = "the epoch that the read waits for was not settled in this region in time";
    late.map(|read| cx.fx.answer(read.id, Answer::Failed(TxnError::Unavailable(why.into())))).count()
}

#[cfg(test)]
mod tests;
