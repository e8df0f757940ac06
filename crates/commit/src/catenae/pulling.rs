//! What a site misses of a stream, and how it gets it: one question at a time for each stream, one page in each answer.
//!
//! ```text
//!   who misses entries                      who has them
//!     ├── Pull (after) ──────────────────────▶│  loads a page
//!     │◀──────────────────────────── Chosen ──┤  what is chosen; nothing, if none is known after that
//!     │◀───────── Epoch, of the leader alone ─┤  what it has said since, in the same answer
//! ```
//!
//! A site misses something if entries beyond its own were heard of, from the leader or from any site that holds them: so a cut link is got
//! round by whoever is still heard on both sides. It misses something, too, if what it holds does not come to be known as chosen.
//! Whoever holds what is missing is asked; if no answer comes within the delay tolerance, the others in turn.

use super::config::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use super::message::{Entry, Note};
use super::records;
use super::site::{Job, Site};
use super::stream_id::StreamId;
use super::takeover::Lead;
use rhumb_core::{Batch, Effects, Load, Loaded, SiteId};

/// What a site has asked others of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulling {
    /// Who is to answer, and the tick in which it was asked.
    asked: Option<(SiteId, u64)>,
    /// Questions so far: who is asked in turn.
    turn: usize,
    /// The last place known to be chosen, and since which tick.
    chosen: (u64, u64),
}

impl Site {
    /// Asks for what is missing.
    pub(super) fn pull_gaps(&mut self, fx: &mut Effects<Site>) {
        for id in self.stream_ids() {
            if let Some(to) = self.whom_to_ask(id) {
                self.pull(id, to, fx);
            }
        }
    }

    /// Asks one site for what comes next in a stream, unless an answer is still to come.
    pub(super) fn pull(&mut self, id: StreamId, to: SiteId, fx: &mut Effects<Site>) {
        if self.waits_for_answer(id) {
            return;
        }
        fx.count("catenae.pulled");
        let after = self.streams[id].chosen();
        self.pulling[id] = Pulling { asked: Some((to, self.ticks)), turn: self.pulling[id].turn + 1, chosen: (after, self.ticks) };
        fx.send(to, Note::Pull { stream: id, after });
    }

    /// True if a site has been asked and may still answer.
    fn waits_for_answer(&self, id: StreamId) -> bool {
        self.pulling[id].asked.is_some_and(|(_, since)| self.ticks - since < self.config.tolerance_epochs)
    }

    /// Who is to be asked for what is missing of a stream, if something is.
    fn whom_to_ask(&mut self, id: StreamId) -> Option<SiteId> {
        let waits = self.waits_for_answer(id);
        let stream = &self.streams[id];
        let pulling = &mut self.pulling[id];
        if pulling.chosen.0 != stream.chosen() || stream.end() == stream.chosen() {
            pulling.chosen = (stream.chosen(), self.ticks);
        }
        let is_stuck = self.ticks - pulling.chosen.1 >= self.config.tolerance_epochs / 2;
        // Who did not answer is not asked again before the others.
        let is_lost = pulling.asked.is_some();
        let turn = pulling.turn;
        let holder = match self.seats[id].lead {
            _ if waits => return None,
            Lead::Behind { .. } => None,
            _ if !self.takes_more(id) => return None,
            _ if is_stuck && stream.gap().is_none() => Some(stream.promised().site),
            _ => Some(stream.gap()?),
        };
        let others: Vec<SiteId> = self.others().collect();
        let in_turn = others.get(turn % others.len().max(1)).copied();
        holder.filter(|holder| !is_lost && *holder != self.me).or(in_turn)
    }

    /// Somebody misses entries: those known to be chosen come from disk.
    pub(super) fn on_pull(&mut self, from: SiteId, id: StreamId, after: u64, fx: &mut Effects<Site>) {
        self.stay_awake();
        if self.streams[id].chosen() <= after {
            return self.answer_pull(from, id, after, Vec::new(), fx);
        }
        let (from_key, limit, bytes) = (records::entry_key(id, after + 1), PAGE_ENTRIES_MAX, PAGE_BYTES_MAX);
        let token = self.job(Job::Pulled { to: from, id, after });
        fx.load(token, Load::Records { space: records::ENTRIES, from: from_key.into(), limit, bytes });
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
        let entries = follows.collect();
        self.answer_pull(to, id, after, entries, fx);
    }

    /// Tells chosen entries after `after`; a leader tells what it has said after them, too, as far as it has that at hand.
    fn answer_pull(&self, to: SiteId, id: StreamId, after: u64, entries: Vec<Entry>, fx: &mut Effects<Site>) {
        let stream = &self.streams[id];
        let next = after + 1 + entries.len() as u64;
        let said = self.seats[id].leads_at().filter(|_| stream.entry(next).is_some()).and_then(|_| self.told_from(id, next));
        let more = said.is_none() && !entries.is_empty() && next <= stream.chosen();
        fx.send(to, Note::Chosen { stream: id, first: after + 1, entries, more });
        if let Some(promise) = said {
            fx.persist(Batch::new()).send(to, promise);
        }
    }

    /// What was missing arrives.
    pub(super) fn on_chosen(&mut self, from: SiteId, id: StreamId, first: u64, entries: Vec<Entry>, more: bool, fx: &mut Effects<Site>) {
        let pulling = &mut self.pulling[id];
        pulling.asked = pulling.asked.filter(|(asked, _)| *asked != from);
        let mut batch = Batch::new();
        for (index, entry) in (first..).zip(entries) {
            if self.streams[id].learn(index, entry) {
                let stream = &self.streams[id];
                records::put_entry(&mut batch, id, index, stream.entry(index).expect("it was just learnt"));
                fx.count("catenae.caught_up");
                self.take_chosen(id, fx);
            }
        }
        if !batch.ops.is_empty() {
            // Once for the page: it looks at all epochs that are not settled.
            self.advance(fx);
            fx.persist(batch);
            if more && self.takes_more(id) {
                self.pull(id, from, fx);
            }
        }
    }
}

#[cfg(test)]
mod tests;
