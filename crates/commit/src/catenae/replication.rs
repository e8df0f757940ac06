//! How streams are kept alike: entries go out, are held and acknowledged, are found to be chosen, and asked for where they are
//! missing.
//!
//! Each message of a leader repeats the entry before the last, so that a single loss does no harm; an acknowledgement speaks
//! for all entries up to the last one. Who finds a gap asks the leader, and another site in turn.

use super::config::{PULL_BYTES_MAX, PULL_PAGE, TRUNCATE_PAGE};
use super::message::{Ballot, Entry, Forwarded, Note, Progress, Promise};
use super::records;
use super::site::{Job, Site};
use super::stream_id::StreamId;
use super::takeover::Lead;
use rhumb_core::{Batch, Effects, Load, Loaded, SiteId};

/// A message of a leader holds the last entry and so many before it.
const REDUNDANT: u64 = 1;

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

    /// The leader of a stream writes down its new entries and tells everybody, repeating the one before. `before`: what others are to
    /// hear before the entries, which they may run as soon as they have them.
    pub(super) fn say(&mut self, id: StreamId, new: Vec<u64>, before: Vec<(SiteId, Promise)>, fx: &mut Effects<Site>) {
        let stream = &self.streams[id];
        let ballot = stream.promised();
        let first = new.first().copied().unwrap_or(stream.end()).saturating_sub(REDUNDANT);
        let told: Vec<(u64, Entry)> = (first..=stream.end()).filter_map(|index| Some((index, stream.entry(index)?.1.clone()))).collect();
        let Some(&(first, _)) = told.first() else { return };
        let entries: Vec<Entry> = told.into_iter().map(|(_, entry)| entry).collect();
        let others: Vec<SiteId> = self.others().collect();
        let mut persist = self.write(id, ballot, &new, fx);
        for (to, promise) in before {
            persist = persist.send(to, promise);
        }
        for to in others {
            persist = persist.send(to, Promise::Epoch { stream: id, ballot, first, entries: entries.clone() });
        }
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
            self.advance(fx);
        }
    }

    /// Takes in all that can now be told to be chosen.
    pub(super) fn advance(&mut self, fx: &mut Effects<Site>) {
        for id in self.stream_ids() {
            while let Some(found) = self.streams[id].advance() {
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
            self.finish_takeover(id, fx);
        }
        self.execute(fx);
    }

    /// Asks for what is missing.
    pub(super) fn pull_gaps(&mut self, fx: &mut Effects<Site>) {
        let others: Vec<SiteId> = self.others().collect();
        if others.is_empty() {
            return;
        }
        for id in self.stream_ids() {
            let behind = matches!(self.seats[id].lead, Lead::Behind { .. });
            let takes_more = self.takes_more(id);
            let stream = &mut self.streams[id];
            let has_gap = takes_more && stream.take_gap();
            if !has_gap && !behind {
                continue;
            }
            let note = Note::Pull { stream: id, after: stream.chosen() };
            let leader = stream.promised().site;
            let other = others[self.ticks as usize % others.len()];
            if leader != self.me && leader != other {
                fx.send(leader, note.clone());
            }
            fx.send(other, note);
        }
    }

    /// Somebody misses entries: those known to be chosen come from disk; those that this leader has said since, from it.
    pub(super) fn on_pull(&mut self, from: SiteId, id: StreamId, after: u64, fx: &mut Effects<Site>) {
        self.stay_awake();
        let stream = &self.streams[id];
        let leads_at = self.seats[id].leads_at();
        let unchosen: Vec<Entry> = stream.accepted(0).into_iter().take(PULL_PAGE).map(|(_, _, entry)| entry).collect();
        let (chosen, first) = (stream.chosen(), stream.chosen() + 1);
        if chosen > after {
            let token = self.job(Job::Pulled { to: from, id, after });
            fx.load(token, Load::Records { space: records::ENTRIES, from: records::entry_key(id, after + 1).into(), limit: PULL_PAGE });
        }
        if let Some(ballot) = leads_at.filter(|_| !unchosen.is_empty()) {
            fx.persist(Batch::new()).send(from, Promise::Epoch { stream: id, ballot, first, entries: unchosen });
        }
    }

    /// The entries that somebody misses are read.
    pub(super) fn on_pulled(&mut self, to: SiteId, id: StreamId, after: u64, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        let chosen = self.streams[id].chosen();
        let decoded = records.iter().map(|(key, bytes)| (records::decode_entry_key(key), records::decode_entry(bytes)));
        let follows = decoded.zip(after + 1..=chosen).map_while(|((key, entry), index)| {
            let (_, entry) = entry.filter(|_| key == Some((id, index)))?;
            Some(entry)
        });
        let mut bytes = 0;
        let page = follows.take_while(|entry| {
            let fits = bytes <= PULL_BYTES_MAX;
            bytes += entry.bytes();
            fits
        });
        let entries: Vec<Entry> = page.collect();
        if !entries.is_empty() {
            let more = after + (entries.len() as u64) < chosen;
            fx.send(to, Note::Chosen { stream: id, first: after + 1, entries, more });
        }
    }

    /// What was missing arrives.
    pub(super) fn on_chosen(&mut self, from: SiteId, id: StreamId, first: u64, entries: Vec<Entry>, more: bool, fx: &mut Effects<Site>) {
        let mut batch = Batch::new();
        for (index, entry) in (first..).zip(entries) {
            if self.streams[id].learn(index, entry) {
                let stream = &self.streams[id];
                records::put_entry(&mut batch, id, index, stream.entry(index).expect("it was just learnt"));
                fx.count("catenae.caught_up");
                self.advance(fx);
            }
        }
        if !batch.ops.is_empty() {
            fx.persist(batch);
            if more && self.takes_more(id) {
                fx.send(from, Note::Pull { stream: id, after: self.streams[id].chosen() });
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
