//! The streams of all regions at one site: what has been agreed on, how far every site has come with it, and what is kept on disk of it.
//!
//! Each stream is an [`Agreement`], a machine of its own; this role tells them events, gives them disk and network, and passes on what
//! concerns other roles: an entry is chosen, more may be executed, a stream was taken over. It recovers them when an incarnation begins
//! (`recovery.rs`).
//!
//! Invariant: entries are removed from disk once every site has settled them and said so from its disk.
//!
//! Source: section VI.A: `complete` finds the epochs whose batches are all here.

mod recovery;

pub(super) use recovery::Recovered;

use super::agreement::{Agreement, Cx, Effect, Event};
use super::config::{AHEAD_MAX, COLLECT_EVERY, FLOODED_FACTOR, PAGE_BYTES_MAX, PAGE_ENTRIES_MAX, TRUNCATE_PAGE, UNCHOSEN_MAX};
use super::context::{Context, Job, Shared};
use super::epoch::Epoch;
use super::message::{Note, Progress, Promise};
use super::planted::Planted;
use super::records;
use super::stream::Stream;
use super::stream_id::{PerStream, StreamId};
use recovery::Recovery;
use rhumb_core::actor::Collect;
use rhumb_core::{Batch, Body, Load, RegionId, SiteId, Table};
use std::collections::BTreeMap;

/// How many epochs pass before a site writes down again how far it has come.
const PROGRESS_EVERY: u64 = 64;
/// The same where it is quiet.
const PROGRESS_EVERY_QUIET: u64 = 512;

/// The streams at a site.
#[derive(Debug)]
pub(super) struct Streams {
    agreements: PerStream<Agreement>,
    /// How far each site has come, as it last said.
    progress: BTreeMap<SiteId, Progress>,
    /// What is read next of what earlier incarnations left; none once all is read.
    recovery: Option<Recovery>,
}

impl Streams {
    /// All streams, before anything is read of them.
    pub(super) fn new(cx: &Shared) -> Streams {
        let failures = cx.config.durability.failures(cx.topology.region_count());
        Streams {
            agreements: PerStream::new(&cx.topology, cx.config.coordinators, |id| Agreement::new(id, failures + 1)),
            progress: BTreeMap::new(),
            recovery: Some(Recovery::Promises),
        }
    }

    /// Lets a single acceptor choose the entries of `stream`, which only a broken rule does.
    pub(super) fn agreed_alone(&mut self, stream: StreamId) {
        self.agreements[stream] = Agreement::new(stream, 1);
    }

    /// What is agreed on in a stream, as far as this site knows.
    pub(super) fn view(&self, id: StreamId) -> &Stream {
        self.agreements[id].view()
    }

    /// True if this message can be of a site with as many streams: it may have been set up with another number of coordinators.
    pub(super) fn understands(&self, body: &Body<Note, Promise>) -> bool {
        let stream = match body {
            Body::Promise(Promise::Settled { progress }) => return progress.entries.len() == self.agreements.iter().len(),
            Body::Promise(promise) => promise.stream(),
            Body::Note(note) => note.stream(),
        };
        stream.is_none_or(|stream| self.agreements.has(stream))
    }

    /// True if this site says what comes next in a stream.
    pub(super) fn leads(&self, id: StreamId) -> bool {
        self.agreements[id].leads()
    }

    /// True for the leader of the region's first stream, where its votes stand.
    pub(super) fn speaks_for(&self, region: RegionId) -> bool {
        self.leads(StreamId::first(region))
    }

    /// True for a secondary coordinator that has nothing to say.
    pub(super) fn only_stands_by(&self, cx: &Shared) -> bool {
        cx.me.shard >= cx.config.coordinators && !self.leads(cx.own())
    }

    /// True if entries on their way say no more than that epochs have ended.
    pub(super) fn say_nothing_new(&self) -> bool {
        self.agreements.iter().all(|stream| stream.view().says_nothing_new())
    }

    /// The last epoch of which all batches are here. This site has sealed those up to `sealed`.
    pub(super) fn complete(&self, sealed: Epoch, cx: &Shared) -> Epoch {
        let covered = |stream: &Agreement| {
            let covered = stream.view().covered();
            let is_abandoned = stream.silent() > cx.config.tolerance_epochs && cx.rules.breaks(Planted::AbandonedByTimer);
            if is_abandoned { covered.max(sealed) } else { covered }
        };
        self.agreements.iter().map(covered).min().unwrap_or_default()
    }

    /// Entries of all streams that are kept in memory.
    pub(super) fn kept(&self) -> usize {
        self.agreements.iter().map(|stream| stream.view().kept()).sum()
    }

    /// Lists its tables.
    pub(super) fn tables(&self, cx: &Shared, visit: &mut dyn FnMut(Table)) {
        let (sites, streams) = (cx.topology.sites().count(), self.agreements.iter().count());
        let ahead = FLOODED_FACTOR * AHEAD_MAX as usize + PAGE_ENTRIES_MAX;
        // Entries go once their epochs are settled and progress is told.
        let settled = PROGRESS_EVERY_QUIET as usize + UNCHOSEN_MAX as usize;
        visit(Table::new("streams", self.kept(), streams * (ahead + settled)).resting_at(streams * settled));
        visit(Table::new("takeovers", self.agreements.iter().map(Agreement::held).sum(), streams * (ahead + settled)));
        visit(Table::new("progress", self.progress.len(), sites).stays());
    }

    /// Tells the agreement on a stream of an event. Returns what it wants done, to be [carried out](carry_out) in this order.
    pub(super) fn on(&mut self, id: StreamId, event: Event, cx: &Shared) -> Vec<Effect> {
        let cx = Cx { me: cx.me, topology: &cx.topology, config: &cx.config, tick: cx.ticks, rules: cx.rules };
        self.agreements[id].on(event, &cx)
    }

    /// Another site says how far it has come.
    pub(super) fn hear_progress(&mut self, from: SiteId, progress: Progress) {
        self.progress.insert(from, progress);
    }

    /// At the end of an epoch, where all up to `settled` is settled: removes what nobody needs any more, and says now and then how far this
    /// site has come.
    pub(super) fn clean_up(&mut self, settled: Epoch, is_quiet: bool, cx: &mut Context<'_>) {
        self.truncate(cx);
        if cx.ticks.is_multiple_of(if is_quiet { PROGRESS_EVERY_QUIET } else { PROGRESS_EVERY }) {
            self.send_progress(settled, cx);
        }
        if cx.ticks.is_multiple_of(COLLECT_EVERY) {
            self.collect(settled, cx);
        }
    }

    /// Writes down how far this site has come, and tells the others.
    fn send_progress(&mut self, settled: Epoch, cx: &mut Context<'_>) {
        let entries = self.agreements.iter_mut().map(|stream| stream.settle(settled)).collect();
        let progress = Progress { settled, entries };
        let mut batch = Batch::new();
        records::put_progress(&mut batch, &progress);
        let others = cx.others();
        let mut persist = cx.fx.persist(batch);
        for to in others {
            persist = persist.send(to, Promise::Settled { progress: progress.clone() });
        }
        self.progress.insert(cx.me, progress);
    }

    /// Removes entries that every site has settled, a few at a time.
    fn truncate(&mut self, cx: &mut Context<'_>) {
        if self.progress.len() < cx.topology.sites().count() {
            return;
        }
        let mut batch = Batch::new();
        for (place, stream) in self.agreements.iter_mut().enumerate() {
            let settled = self.progress.values().map(|progress| progress.entries[place].0).min().unwrap_or(0);
            stream.truncate(settled, TRUNCATE_PAGE, &mut batch);
        }
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
    }

    /// Drops versions that no reader can ask for.
    fn collect(&self, settled: Epoch, cx: &mut Context<'_>) {
        let config = &cx.shared.config;
        let horizon = |epoch: Epoch| Epoch(epoch.0.saturating_sub(config.keep_epochs)).snapshot(config.epoch);
        let everywhere = cx.topology.sites().map(|site| self.progress.get(&site).map_or(Epoch::NONE, |progress| progress.settled));
        let deletions = horizon(everywhere.min().unwrap_or_default());
        let horizon = horizon(settled);
        cx.fx.collect(Collect { horizon, deletions });
    }
}

/// Does what the agreement on a stream wants done with disk and network.
pub(super) fn carry_out(id: StreamId, effect: Effect, cx: &mut Context<'_>) {
    match effect {
        Effect::Send { to, note } => cx.fx.send(to, note),
        Effect::Persist { batch, then, durable } => {
            let token = durable.map(|(ballot, upto)| cx.jobs.begin(Job::Held { id, ballot, upto }));
            let mut persist = cx.fx.persist(batch);
            if let Some(token) = token {
                persist = persist.notify(token);
            }
            for (to, promise) in then {
                persist = persist.send(to, promise);
            }
        }
        Effect::Load(pulled) => {
            let from = records::entry_key(id, pulled.after + 1).into();
            let load = Load::Records { space: records::ENTRIES, from, limit: PAGE_ENTRIES_MAX, bytes: PAGE_BYTES_MAX };
            cx.load(Job::Pulled { id, pulled }, load);
        }
        Effect::Heard(epoch) => cx.hear_of(epoch),
        Effect::Count(event) => cx.fx.count(event),
        Effect::Chosen(_) | Effect::TookOver | Effect::Advanced | Effect::HasMore(_) => unreachable!("other roles do that"),
    }
}

#[cfg(test)]
mod tests;
