//! How streams are kept alike: entries go out, are held and acknowledged, and are found to be chosen.
//!
//! Each message of a leader repeats the entry before the last, unless that is large, so that a single loss does no harm; an
//! acknowledgement speaks for all entries up to the last one. Entries go out in messages of a page each, bounded in bytes. Who finds that
//! something is missing [asks for it](super::pulling).

use super::config::{REPEATED_BYTES_MAX, TRUNCATE_PAGE};
use super::message::{Ballot, Entry, Forwarded, Note, Progress, Promise};
use super::records;
use super::site::{Job, Site};
use super::stream_id::StreamId;
use rhumb_core::{Batch, Effects, SiteId, work};

impl Site {
    /// The leader of a stream says its next entry; `forwarded` are other sites' transactions in it, by name and place.
    pub(super) fn append(&mut self, id: StreamId, entry: Entry, forwarded: Vec<(SiteId, (Forwarded, u16))>, fx: &mut Effects<Site>) {
        let stream = &mut self.streams[id];
        let ballot = self.seats[id].leads_at().expect("only a leader appends");
        let index = stream.end() + 1;
        let new = stream.accept(ballot, index, [entry]).expect("a leader's ballot is the promised one");
        assert_eq!(new, [index], "a leader's entries follow one another");
        let sealed = |(site, (name, place))| (site, Promise::Sealed { name, index, place });
        self.say(id, new, forwarded.into_iter().map(sealed).collect(), fx);
    }

    /// The leader of a stream writes down its new entries and tells everybody, repeating the one before if that is small. `before`: what
    /// others are to hear before the entries, which they may run as soon as they have them.
    pub(super) fn say(&mut self, id: StreamId, new: Vec<u64>, before: Vec<(SiteId, Promise)>, fx: &mut Effects<Site>) {
        let stream = &self.streams[id];
        let ballot = stream.promised();
        let first = new.first().copied().unwrap_or(stream.end());
        let before_first = first.saturating_sub(1);
        let repeats = stream.bytes_at(before_first) <= REPEATED_BYTES_MAX;
        let told = self.told(id, if repeats { before_first } else { first });
        if told.is_empty() {
            return;
        }
        let others: Vec<SiteId> = self.others().collect();
        let mut persist = self.write(id, ballot, &new, fx);
        for (to, promise) in before {
            persist = persist.send(to, promise);
        }
        for promise in told {
            for to in &others {
                persist = persist.send(*to, promise.clone());
            }
        }
    }

    /// What a leader says of its stream from place `first` on, in as many messages as that takes.
    fn told(&self, id: StreamId, first: u64) -> Vec<Promise> {
        let mut next = first;
        std::iter::from_fn(|| {
            let promise = self.told_from(id, next)?;
            let Promise::Epoch { first, entries, .. } = &promise else { unreachable!("it tells entries") };
            next = first + entries.len() as u64;
            Some(promise)
        })
        .collect()
    }

    /// The first message of those; none if there is nothing from there on.
    pub(super) fn told_from(&self, id: StreamId, first: u64) -> Option<Promise> {
        let stream = &self.streams[id];
        let page: Vec<(u64, &Entry)> = stream.page(first).map(|(index, (_, entry))| (index, entry)).collect();
        let first = page.first()?.0;
        let entries = page.into_iter().map(|(_, entry)| entry.clone()).collect();
        Some(Promise::Epoch { stream: id, ballot: stream.promised(), first, entries })
    }

    /// Writes entries down; once they are durable this site counts as holding them.
    fn write<'a>(&mut self, id: StreamId, ballot: Ballot, new: &[u64], fx: &'a mut Effects<Site>) -> rhumb_core::actor::Persist<'a, Site> {
        let stream = &self.streams[id];
        let mut batch = Batch::new();
        for &index in new {
            records::put_entry(&mut batch, id, index, stream.entry(index).expect("it was accepted"));
        }
        let upto = stream.agrees(ballot);
        let token = self.job(Job::Held { id, ballot, upto });
        fx.persist(batch).notify(token)
    }

    /// A leader's entries arrive.
    pub(super) fn on_epoch(&mut self, from: SiteId, id: StreamId, ballot: Ballot, first: u64, entries: Vec<Entry>, fx: &mut Effects<Site>) {
        if entries.is_empty() || from != ballot.site {
            return;
        }
        let last = first + entries.len() as u64 - 1;
        if self.is_flooded(id) {
            fx.count("catenae.flooded");
            return self.streams[id].hear(from, ballot, last);
        }
        let sealed = entries.iter().filter(|entry| entry.author.region == id.region()).map(|entry| entry.epoch).max();
        let stream = &mut self.streams[id];
        let new = match stream.accept(ballot, first, entries) {
            Ok(new) => new,
            Err(promised) => return fx.send(from, Note::Refused { stream: id, promised }),
        };
        if id.is_accepted_by(from) {
            stream.holds(from, ballot, last);
        }
        let upto = stream.agrees(ballot);
        self.step_down_below(id, ballot);
        sealed.into_iter().for_each(|epoch| self.heard_of(epoch));
        if id.is_accepted_by(self.me) {
            let held = Promise::Held { stream: id, ballot, upto };
            let to: Vec<SiteId> = if new.is_empty() { vec![from] } else { self.others().collect() };
            let mut persist = self.write(id, ballot, &new, fx);
            for to in to {
                persist = persist.send(to, held.clone());
            }
        } else {
            self.write(id, ballot, &new, fx);
        }
        self.advance(fx);
    }

    /// `site` holds what that leader said.
    pub(super) fn on_held(&mut self, site: SiteId, id: StreamId, ballot: Ballot, upto: u64, fx: &mut Effects<Site>) {
        if id.is_accepted_by(site) {
            self.streams[id].holds(site, ballot, upto);
            #[cfg(feature = "planted")]
            if self.has_planted(super::planted::Planted::HeldIsNoGap) {
                return self.advance(fx);
            }
            self.streams[id].hear(site, ballot, upto);
            self.advance(fx);
        }
    }

    /// Takes in all that can now be told to be chosen.
    pub(super) fn advance(&mut self, fx: &mut Effects<Site>) {
        for id in self.stream_ids() {
            self.take_chosen(id, fx);
            self.finish_takeover(id, fx);
        }
        self.execute(fx);
    }

    /// Takes in what can now be told to be chosen in a stream; it is executed by the next [`Site::advance`].
    pub(super) fn take_chosen(&mut self, id: StreamId, fx: &mut Effects<Site>) {
        while let Some(found) = self.streams[id].advance() {
            work::add(1 + found.entry.batch.len());
            fx.agree("entry", format_args!("{id}/{}", self.streams[id].chosen()), &found.entry);
            if id.region() == self.me.region {
                self.resolve_sealed(id, &found.entry, found.void, fx);
                self.find_forwarded(id, &found, fx);
            }
            #[cfg(feature = "planted")]
            if id.region() == self.me.region && self.has_planted(super::planted::Planted::ConflictByTiming) {
                self.answer_by_timing(id, &found.entry, fx);
            }
            if !found.void {
                self.take_entry(id, found.entry);
            }
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
        for (place, id) in self.stream_ids().enumerate() {
            let settled = self.progress.values().map(|progress| progress.entries[place].0).min().unwrap_or(0);
            let kept = self.truncated[id];
            let upto = settled.min(kept + TRUNCATE_PAGE);
            (kept + 1..=upto).for_each(|index| batch.delete_record(records::ENTRIES, records::entry_key(id, index)));
            self.truncated[id] = upto;
        }
        if !batch.ops.is_empty() {
            fx.persist(batch);
        }
    }
}
