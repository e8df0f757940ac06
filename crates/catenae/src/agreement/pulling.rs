//! How a site gets the entries of a stream that it misses: one request at a time for each stream, one page in each answer.
//!
//! ```text
//!   who misses entries                      who has them
//!     ├── Pull (after) ──────────────────────▶│  loads a page
//!     │◀──────────────────────────── Chosen ──┤  what is chosen; nothing, if none is known after that
//!     │◀───────── Epoch, of the leader alone ─┤  what it has said since, in the same answer
//! ```
//!
//! A site misses entries if it has learnt of later ones than its own, from the leader or from any site that holds them; so a site that both ends
//! still hear gets round a cut link. It also misses some if it does not learn that those it holds are chosen. It asks a site that holds them; if no
//! answer comes within the delay tolerance, it asks the others in turn.

use super::{Agreement, Cx, Effect, Pulled};
use crate::message::{Entry, Note};
use crate::planted::Planted;
use crate::records;
use rhumb_core::{Batch, Loaded, SiteId};

/// What a site has asked others of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Pulling {
    asked: Option<Question>,
    /// Requests so far: the number selects whom to ask next.
    turn: usize,
    chosen: Reached,
}

/// A question that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    to: SiteId,
    /// The tick in which it was asked.
    since: u64,
}

/// The last place known to be chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Reached {
    upto: u64,
    /// The tick since which it is that.
    since: u64,
}

impl Pulling {
    /// True if a site has been asked and may still answer.
    fn waits_for_answer(&self, cx: &Cx<'_>) -> bool {
        self.asked.is_some_and(|question| cx.tick - question.since < cx.config.tolerance_epochs)
    }
}

impl Agreement {
    /// That site has answered, if it was asked.
    pub(super) fn take_answer(&mut self, from: SiteId) {
        self.pulling.asked = self.pulling.asked.filter(|question| question.to != from);
    }

    /// Asks for what is missing, if something is.
    pub(super) fn look_for_gaps(&mut self, takes_more: bool, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let takes_more = takes_more && !cx.rules.breaks(Planted::GapUnasked);
        if let Some(to) = self.whom_to_ask(takes_more, cx) {
            self.pull(to, cx, out);
        }
    }

    /// Asks one site for what comes next, unless an answer is still to come.
    pub(super) fn pull(&mut self, to: SiteId, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        if self.pulling.waits_for_answer(cx) {
            return;
        }
        out.push(Effect::Count("catenae.pulled"));
        let after = self.stream.chosen();
        let since = cx.tick;
        let asked = Some(Question { to, since });
        self.pulling = Pulling { asked, turn: self.pulling.turn + 1, chosen: Reached { upto: after, since } };
        out.push(Effect::Send { to, note: Note::Pull { stream: self.id, after } });
    }

    /// The site to ask for missing entries, if some are missing.
    fn whom_to_ask(&mut self, takes_more: bool, cx: &Cx<'_>) -> Option<SiteId> {
        let (stream, pulling) = (&self.stream, &mut self.pulling);
        if pulling.chosen.upto != stream.chosen() || stream.end() == stream.chosen() {
            pulling.chosen = Reached { upto: stream.chosen(), since: cx.tick };
        }
        let is_stuck = cx.tick - pulling.chosen.since >= cx.config.tolerance_epochs / 2;
        // Who did not answer is not asked again before the others.
        let is_lost = pulling.asked.is_some();
        let turn = pulling.turn;
        let holder = match stream.gap() {
            _ if pulling.waits_for_answer(cx) => return None,
            _ if self.leadership.is_behind() => None,
            _ if !takes_more => return None,
            None if is_stuck => Some(stream.promised().leader),
            gap => Some(gap?),
        };
        let others = cx.others();
        let in_turn = others.get(turn % others.len().max(1)).copied();
        holder.filter(|holder| !is_lost && *holder != cx.me).or(in_turn)
    }

    /// Somebody misses entries: those known to be chosen come from disk.
    pub(super) fn on_pull(&mut self, from: SiteId, after: u64, out: &mut Vec<Effect>) {
        if self.stream.chosen() <= after {
            return self.answer_pull(from, after, Vec::new(), out);
        }
        out.push(Effect::Load(Pulled { to: from, after, upto: self.stream.chosen() }));
    }

    /// The entries that somebody misses are read, and perhaps some that were accepted and not chosen when they were: others may be chosen in
    /// their places by now.
    pub(super) fn on_loaded(&mut self, Pulled { to, after, upto }: Pulled, loaded: Loaded, out: &mut Vec<Effect>) {
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        let decoded = records.iter().map(|(key, bytes)| (records::decode_entry_key(key), records::decode_entry(bytes)));
        let follows = decoded.zip(after + 1..=upto).map_while(|((key, entry), index)| {
            let (_, entry) = entry.filter(|_| key == Some((self.id, index)))?;
            Some(entry)
        });
        self.answer_pull(to, after, follows.collect(), out);
    }

    /// Sends the chosen entries after `after`; a leader adds its later ones, as far as they are in memory.
    fn answer_pull(&self, to: SiteId, after: u64, entries: Vec<Entry>, out: &mut Vec<Effect>) {
        let next = after + 1 + entries.len() as u64;
        let leads = self.leadership.leads_at().filter(|_| self.stream.entry(next).is_some());
        let said = leads.and_then(|_| self.told_from(next));
        let more = said.is_none() && !entries.is_empty() && next <= self.stream.chosen();
        out.push(Effect::Send { to, note: Note::Chosen { stream: self.id, first: after + 1, entries, more } });
        if let Some(promise) = said {
            out.push(Effect::Persist { batch: Batch::new(), then: vec![(to, promise)], durable: None });
        }
    }

    /// What was missing arrives. Returns how many entries of it are new.
    pub(super) fn on_chosen(&mut self, first: u64, entries: Vec<Entry>, cx: &Cx<'_>, out: &mut Vec<Effect>) -> usize {
        let mut batch = Batch::new();
        for (index, entry) in (first..).zip(entries) {
            if self.stream.learn(index, entry) {
                records::put_entry(&mut batch, self.id, index, self.stream.entry(index).expect("it was just learnt"));
                out.push(Effect::Count("catenae.caught_up"));
                self.advance(cx, out);
            }
        }
        let learnt = batch.ops.len();
        if learnt > 0 {
            out.push(Effect::Advanced);
            out.push(Effect::Persist { batch, then: Vec::new(), durable: None });
        }
        learnt
    }
}

#[cfg(test)]
mod tests;
