//! How streams are kept alike: entries go out, are held and acknowledged, and are found to be chosen.
//!
//! Each message of a leader repeats the entry before the last, unless that is large, so that a single loss does no harm; an
//! acknowledgement speaks for all entries up to the last one. Entries go out in messages of a page each, bounded in bytes. Who finds that
//! something is missing [asks for it](super::pulling).
//!
//! Source: section V.C.

use super::{Agreement, Cx, Effect, Sealed, Sealing};
use crate::config::REPEATED_BYTES_MAX;
use crate::epoch::Epoch;
use crate::message::{Entry, Note, Promise};
use crate::records;
use rhumb_core::{Ballot, Batch, SiteId};

impl Agreement {
    /// The leader says its next entry.
    pub(super) fn append(&mut self, sealed: Sealed, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let ballot = self.leadership.leads_at().expect("only a leader appends");
        let index = self.stream.end() + 1;
        let new = self.stream.accept(ballot, index, [sealed.entry]).expect("a leader's ballot is the promised one");
        assert_eq!(new, [index], "a leader's entries follow one another");
        let before = sealed.forwarded.into_iter().map(|Sealing { site, name, place }| (site, Promise::Sealed { name, index, place }));
        self.say(new, before.collect(), cx, out);
    }

    /// The leader writes down its new entries and tells everybody, repeating the one before if that is small. `before`: what others are to
    /// hear before the entries.
    pub(super) fn say(&mut self, new: Vec<u64>, before: Vec<(SiteId, Promise)>, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let stream = &self.stream;
        let ballot = stream.promised();
        let first = new.first().copied().unwrap_or(stream.end());
        let before_first = first.saturating_sub(1);
        let repeats = stream.bytes_at(before_first) <= REPEATED_BYTES_MAX;
        let told = self.told(if repeats { before_first } else { first });
        if told.is_empty() {
            return;
        }
        let others = cx.others();
        let told = told.into_iter().flat_map(|promise| others.iter().map(move |to| (*to, promise.clone())).collect::<Vec<_>>());
        let then = before.into_iter().chain(told).collect();
        self.write(ballot, &new, then, out);
    }

    /// What a leader says of its stream from place `first` on, in as many messages as that takes.
    fn told(&self, first: u64) -> Vec<Promise> {
        let mut next = first;
        std::iter::from_fn(|| {
            let promise = self.told_from(next)?;
            let Promise::Epoch { first, entries, .. } = &promise else { unreachable!("it tells entries") };
            next = first + entries.len() as u64;
            Some(promise)
        })
        .collect()
    }

    /// The first message of those; none if there is nothing from there on.
    pub(super) fn told_from(&self, first: u64) -> Option<Promise> {
        let page: Vec<(u64, &Entry)> = self.stream.page(first).map(|(index, (_, entry))| (index, entry)).collect();
        let first = page.first()?.0;
        let entries = page.into_iter().map(|(_, entry)| entry.clone()).collect();
        Some(Promise::Epoch { stream: self.id, ballot: self.stream.promised(), first, entries })
    }

    /// Writes entries down; once they are durable this site counts as holding them, and sends what waits for that.
    fn write(&self, ballot: Ballot, new: &[u64], then: Vec<(SiteId, Promise)>, out: &mut Vec<Effect>) {
        let mut batch = Batch::new();
        for &index in new {
            records::put_entry(&mut batch, self.id, index, self.stream.entry(index).expect("it was accepted"));
        }
        out.push(Effect::Persist { batch, then, durable: Some((ballot, self.stream.agrees(ballot))) });
    }

    /// This site's entries are durable.
    pub(super) fn on_durable(&mut self, ballot: Ballot, upto: u64, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        if self.id.is_accepted_by(cx.me) {
            self.stream.holds(cx.me, ballot, upto);
            self.advance(cx, out);
            out.push(Effect::Advanced);
        }
    }

    /// A leader's entries arrive, up to place `last`, and there is no room for them.
    pub(super) fn pass_by(&mut self, ballot: Ballot, last: u64, out: &mut Vec<Effect>) {
        out.push(Effect::Count("catenae.flooded"));
        self.stream.hear(ballot.leader, ballot, last);
    }

    /// A leader's entries arrive.
    pub(super) fn on_epoch(&mut self, ballot: Ballot, first: u64, entries: Vec<Entry>, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let (leader, last) = (ballot.leader, first + entries.len() as u64 - 1);
        let region = self.id.region();
        let sealed: Option<Epoch> = entries.iter().filter(|entry| entry.author.region == region).map(|entry| entry.epoch).max();
        let new = match self.stream.accept(ballot, first, entries) {
            Ok(new) => new,
            Err(promised) => {
                let note = Note::Refused { stream: self.id, promised };
                return out.push(Effect::Send { to: leader, note });
            }
        };
        if self.id.is_accepted_by(leader) {
            self.stream.holds(leader, ballot, last);
        }
        self.hear_ballot(ballot, cx);
        out.extend(sealed.map(Effect::Heard));
        let mut then = Vec::new();
        if self.id.is_accepted_by(cx.me) {
            let held = Promise::Held { stream: self.id, ballot, upto: self.stream.agrees(ballot) };
            let to = if new.is_empty() { vec![leader] } else { cx.others() };
            then = to.into_iter().map(|to| (to, held.clone())).collect();
        }
        self.write(ballot, &new, then, out);
        self.advance(cx, out);
        out.push(Effect::Advanced);
    }

    /// `site` holds what that leader said.
    pub(super) fn on_held(&mut self, site: SiteId, ballot: Ballot, upto: u64, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        if !self.id.is_accepted_by(site) {
            return;
        }
        self.stream.holds(site, ballot, upto);
        self.stream.hear(site, ballot, upto);
        self.advance(cx, out);
        out.push(Effect::Advanced);
    }
}
