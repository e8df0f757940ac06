//! The site around its [agreements](super::agreement): what it tells them, and what is done about their effects.

use super::agreement::{Cx, Effect, Event, Moment};
use super::config::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX, TRUNCATE_PAGE};
use super::message::{Progress, Promise};
use super::planted::Planted;
use super::records;
use super::site::{Job, Site};
use super::stream::Found;
use super::stream_id::StreamId;
use rhumb_core::{Batch, Effects, Load, SiteId, work};

impl Site {
    /// Tells the agreement on a stream of an event, and carries out what it wants done.
    pub(super) fn tell_stream(&mut self, id: StreamId, event: Event, fx: &mut Effects<Site>) {
        let cx = Cx { me: self.me, topology: &self.topology, config: &self.config, tick: self.ticks, rules: self.rules };
        let effects = self.streams[id].on(event, &cx);
        effects.into_iter().for_each(|effect| self.carry_out(id, effect, fx));
    }

    fn carry_out(&mut self, id: StreamId, effect: Effect, fx: &mut Effects<Site>) {
        match effect {
            Effect::Send { to, note } => fx.send(to, note),
            Effect::Persist { batch, then, durable } => {
                let token = durable.map(|(ballot, upto)| self.job(Job::Held { id, ballot, upto }));
                let mut persist = fx.persist(batch);
                if let Some(token) = token {
                    persist = persist.notify(token);
                }
                for (to, promise) in then {
                    persist = persist.send(to, promise);
                }
            }
            Effect::Load(pulled) => {
                let from = records::entry_key(id, pulled.after + 1).into();
                let token = self.job(Job::Pulled { id, pulled });
                fx.load(token, Load::Records { space: records::ENTRIES, from, limit: PAGE_ENTRIES_MAX, bytes: PAGE_BYTES_MAX });
            }
            Effect::Heard(epoch) => self.heard_of(epoch),
            Effect::Chosen(found) => self.on_found(id, found, fx),
            Effect::TookOver => {
                let until = self.due(id).plus(self.config.ahead_epochs);
                self.tell_stream(id, Event::PassOver(until), fx);
            }
            Effect::Advanced => self.execute(fx),
            Effect::HasMore(at) => {
                if self.takes_more(id) {
                    self.tell_stream(id, Event::Ask(at), fx);
                }
            }
            Effect::Count(event) => fx.count(event),
        }
    }

    /// An entry is chosen.
    fn on_found(&mut self, id: StreamId, found: Found, fx: &mut Effects<Site>) {
        work::add(1 + found.entry.batch.len());
        fx.agree("entry", format_args!("{id}/{}", found.index), &found.entry);
        if id.region() == self.me.region {
            self.resolve_sealed(id, &found, fx);
            self.find_forwarded(id, &found, fx);
        }
        if id.region() == self.me.region && self.rules.breaks(Planted::ConflictByTiming) {
            self.answer_by_timing(id, &found.entry, fx);
        }
        if !found.void {
            self.take_entry(id, found.entry);
        }
    }

    /// At the end of an epoch: what this site leads goes on, and what is silent is taken over.
    pub(super) fn look_after_streams(&mut self, fx: &mut Effects<Site>) {
        for id in self.stream_ids() {
            let moment = Moment {
                due: self.due(id),
                takes_more: self.takes_more(id),
                is_far_ahead: self.is_far_ahead(id),
                is_quiet: self.is_quiet(),
            };
            let speaks = id.region() == self.me.region && self.streams[id].leads();
            let sealed = if speaks { self.seal(id, fx) } else { None };
            self.tell_stream(id, Event::EndOfEpoch { moment, sealed }, fx);
        }
    }

    /// Asks for what is missing.
    pub(super) fn pull_gaps(&mut self, fx: &mut Effects<Site>) {
        for id in self.stream_ids() {
            let takes_more = self.takes_more(id);
            self.tell_stream(id, Event::LookForGaps { takes_more }, fx);
        }
    }

    /// Writes down how far this site has come, and tells the others.
    pub(super) fn tell_progress(&mut self, fx: &mut Effects<Site>) {
        let settled = self.epochs.settled;
        let entries = self.streams.iter_mut().map(|stream| stream.settle(settled)).collect();
        let progress = Progress { settled, entries };
        let mut batch = Batch::new();
        records::put_progress(&mut batch, &progress);
        let others: Vec<SiteId> = self.others().collect();
        let mut persist = fx.persist(batch);
        for to in others {
            persist = persist.send(to, Promise::Settled { progress: progress.clone() });
        }
        self.progress.insert(self.me, progress);
    }

    /// Removes entries that every site has settled, a few at a time.
    pub(super) fn truncate(&mut self, fx: &mut Effects<Site>) {
        if self.progress.len() < self.topology.sites().count() {
            return;
        }
        let mut batch = Batch::new();
        for (place, stream) in self.streams.iter_mut().enumerate() {
            let settled = self.progress.values().map(|progress| progress.entries[place].0).min().unwrap_or(0);
            stream.truncate(settled, TRUNCATE_PAGE, &mut batch);
        }
        if !batch.ops.is_empty() {
            fx.persist(batch);
        }
    }
}
