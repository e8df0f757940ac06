//! One stream of a region: what the region says in it, epoch by epoch, agreed on by all.
//!
//! A stream is a replicated log, decided by Multi-Paxos with flexible quorums. Its region leads it at ballot zero, without a
//! first phase. An entry is *chosen* once `f + 1` regions hold it at one ballot; whoever takes the lead over has asked `n - f`
//! of them before, which is at least one of any `f + 1`. With `f = 0` the region's own copy suffices and nobody can take over
//! without that region.
//!
//! ```text
//!   leader ── Epoch (ballot, entries) ──▶ everybody        new leader ── Prepare (higher ballot) ──▶ acceptors
//!   everybody ── Held (ballot, upto) ──▶ everybody         acceptors ── Promised (what they accepted) ──▶ new leader
//! ```
//!
//! This file is one site's view: data and rules, no effects. Invariants: entries are held without gaps; an entry at or
//! below `chosen` never changes; a ballot below the promised one is not accepted.
//!
//! An entry *covers* the epochs up to its own. One whose epoch is covered by the entries before it is *void*: it counts
//! for nothing. That is the same everywhere, as the entries are.

use super::config::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX};
use super::epoch::Epoch;
use super::message::{Entry, Standing};
use super::stream_id::StreamId;
use rhumb_core::{Ballot, SiteId, work};
use std::collections::BTreeMap;

/// One site's view of a region's stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    id: StreamId,
    /// Regions that must hold an entry.
    quorum: usize,
    promised: Ballot,
    /// The last place forgotten, and the last epoch covered up to there.
    base: (u64, Epoch),
    /// Entries after those forgotten.
    entries: BTreeMap<u64, Accepted>,
    /// Up to here the entries are chosen.
    chosen: u64,
    /// Bytes of the entries after that.
    unchosen_bytes: usize,
    /// The epoch of the last chosen entry that is not void.
    covered: Epoch,
    /// What each acceptor holds for certain.
    held: BTreeMap<SiteId, Extent>,
    /// Entries beyond those held were heard of.
    heard: Option<Heard>,
    /// The last place that is chosen as far as others tell.
    chosen_elsewhere: Option<Elsewhere>,
}

/// What the leader of a ballot said, up to a place. One of a higher ballot is the higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Extent {
    ballot: Ballot,
    upto: u64,
}

/// Who has what a leader said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Heard {
    said: Extent,
    holder: SiteId,
}

/// Who knows entries to be chosen up to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Elsewhere {
    upto: u64,
    holder: SiteId,
}

/// An entry, and how it stands here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Accepted {
    said: (Standing, Entry),
    /// Bytes of the entry.
    bytes: usize,
}

/// An entry found to be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its place.
    pub index: u64,
    /// What it says.
    pub entry: Entry,
    /// The last epoch covered with it.
    pub covered: Epoch,
    /// True if it counts for nothing.
    pub void: bool,
}

impl Stream {
    /// The stream `id`, of which nothing is known; `quorum` regions must hold an entry.
    pub fn new(id: StreamId, quorum: usize) -> Stream {
        Stream {
            id,
            quorum,
            promised: id.first_ballot(),
            base: (0, Epoch::NONE),
            entries: BTreeMap::new(),
            chosen: 0,
            unchosen_bytes: 0,
            covered: Epoch::NONE,
            held: BTreeMap::new(),
            heard: None,
            chosen_elsewhere: None,
        }
    }

    /// Takes over what an earlier incarnation settled: the entries up to `chosen`, which cover `covered`.
    pub fn resume(&mut self, chosen: u64, covered: Epoch) {
        (self.chosen, self.covered, self.base) = (chosen, covered, (chosen, covered));
    }

    /// Takes over a promise of an earlier incarnation.
    pub fn resume_promise(&mut self, ballot: Ballot) {
        self.promised = self.promised.max(ballot);
    }

    /// Takes over an entry that an earlier incarnation accepted.
    pub fn resume_entry(&mut self, index: u64, standing: Standing, entry: Entry) {
        if index > self.chosen {
            if let Standing::Accepted(ballot) = standing {
                self.promised = self.promised.max(ballot);
            }
            self.put(index, standing, entry);
        }
    }

    /// Counts acceptor `me` as holding what its earlier incarnations accepted: the entries that follow on the chosen ones, at the ballot of the first
    /// of them that was accepted and not learnt. What is learnt is held at no leader's ballot.
    pub fn resume_held(&mut self, me: SiteId) {
        let accepted = self.entries.range(self.chosen + 1..).map(|(_, accepted)| accepted.said.0);
        let in_a_ballot = |standing| match standing {
            Standing::Accepted(ballot) => Some(ballot),
            Standing::Chosen => None,
        };
        let ballot = accepted.into_iter().find_map(in_a_ballot).unwrap_or(self.promised);
        self.holds(me, ballot, self.agrees(ballot));
    }

    /// Keeps an entry in place of another that is not known to be chosen.
    fn put(&mut self, index: u64, standing: Standing, entry: Entry) {
        let bytes = entry.bytes();
        let before = self.entries.insert(index, Accepted { said: (standing, entry), bytes });
        self.unchosen_bytes = self.unchosen_bytes + bytes - before.map_or(0, |before| before.bytes);
    }

    /// The ballot below which nothing is accepted.
    pub fn promised(&self) -> Ballot {
        self.promised
    }

    /// The last place known to be chosen.
    pub fn chosen(&self) -> u64 {
        self.chosen
    }

    /// The last epoch of which this stream's batch is known.
    pub fn covered(&self) -> Epoch {
        self.covered
    }

    /// Bytes of the entries accepted here and not known to be chosen.
    pub fn unchosen_bytes(&self) -> usize {
        self.unchosen_bytes
    }

    /// How many entries are kept here.
    pub fn kept(&self) -> usize {
        self.entries.len()
    }

    /// True if at least `count` of the last entries speak of epochs after `epoch`.
    pub fn is_ahead_of(&self, epoch: Epoch, count: u64) -> bool {
        let first = (self.end() + 1).checked_sub(count).and_then(|first| self.entry(first));
        first.is_some_and(|(_, entry)| entry.epoch > epoch)
    }

    /// True if the entries not known to be chosen say no more than that epochs have ended.
    pub fn says_nothing_new(&self) -> bool {
        self.entries.range(self.chosen + 1..).all(|(_, accepted)| accepted.said.1.is_empty())
    }

    /// The sites known to hold entries that are missing here. An entry of a ballot that has been superseded may not exist any more; a chosen one
    /// does, whatever ballots come after it.
    pub fn gap(&self) -> Option<SiteId> {
        let is_missing = |said: Extent| said.ballot >= self.promised && said.upto > self.chosen && said.upto > self.agrees(said.ballot);
        let said = self.heard.filter(|heard| is_missing(heard.said));
        let chosen = self.chosen_elsewhere.filter(|_| self.is_behind());
        said.map(|heard| heard.holder).or(chosen.map(|elsewhere| elsewhere.holder))
    }

    /// Site `holder` has what the leader of `ballot` said, up to `upto`.
    pub fn hear(&mut self, holder: SiteId, ballot: Ballot, upto: u64) {
        let said = Extent { ballot, upto };
        if self.heard.is_none_or(|heard| heard.said < said) && ballot >= self.promised && upto > self.agrees(ballot) {
            self.heard = Some(Heard { said, holder });
        }
    }

    /// The last epoch that any entry accepted here covers, chosen or not.
    pub fn last_epoch(&self) -> Epoch {
        self.entries
            .range(self.chosen + 1..)
            .inspect(|_| work::add(1))
            .map(|(_, accepted)| accepted.said.1.epoch)
            .fold(self.covered, Epoch::max)
    }

    /// The last place that is accepted.
    pub fn end(&self) -> u64 {
        self.entries.last_key_value().map_or(self.chosen, |(index, _)| (*index).max(self.chosen))
    }

    /// The entry at a place, and the ballot at which it was accepted.
    pub fn entry(&self, index: u64) -> Option<&(Standing, Entry)> {
        self.entries.get(&index).map(|accepted| &accepted.said)
    }

    /// Bytes of the entry at a place; none if it is not kept here.
    pub fn bytes_at(&self, index: u64) -> usize {
        self.entries.get(&index).map_or(0, |accepted| accepted.bytes)
    }

    /// The entries from place `first` on, as many as one message holds; at least one, if there is any.
    pub fn page(&self, first: u64) -> impl Iterator<Item = (u64, &(Standing, Entry))> {
        let mut before = 0;
        let page = self.entries.range(first..).take(PAGE_ENTRIES_MAX).take_while(move |(_, accepted)| {
            let fits = before < PAGE_BYTES_MAX;
            before += accepted.bytes;
            fits
        });
        page.map(|(index, accepted)| (*index, &accepted.said))
    }

    /// Up to where this site agrees with the leader of `ballot`.
    pub fn agrees(&self, ballot: Ballot) -> u64 {
        let next = self.entries.range(self.chosen + 1..);
        let same = (self.chosen + 1..).zip(next).inspect(|_| work::add(1)).take_while(|(place, (index, accepted))| {
            place == *index && [Standing::Accepted(ballot), Standing::Chosen].contains(&accepted.said.0)
        });
        self.chosen + same.count() as u64
    }

    /// Promises `ballot`, if it is not below the promised one.
    ///
    /// # Errors
    /// The ballot that is promised.
    pub fn promise(&mut self, ballot: Ballot) -> Result<(), Ballot> {
        if ballot < self.promised {
            return Err(self.promised);
        }
        self.promised = ballot;
        Ok(())
    }

    /// Accepts entries of the leader of `ballot`, from `first` on. Returns the places that are new, to be written down.
    ///
    /// # Errors
    /// The ballot that is promised, if it is a higher one.
    pub fn accept(&mut self, ballot: Ballot, first: u64, entries: impl IntoIterator<Item = Entry>) -> Result<Vec<u64>, Ballot> {
        self.promise(ballot)?;
        let mut agreed = self.agrees(ballot);
        let (mut new, mut last) = (Vec::new(), 0);
        for (index, entry) in (first..).zip(entries) {
            if index == agreed + 1 {
                self.put(index, Standing::Accepted(ballot), entry);
                new.push(index);
                agreed = self.agrees(ballot);
            }
            last = index;
        }
        self.hear(ballot.leader, ballot, last);
        Ok(new)
    }

    /// Takes the lead at a ballot that enough acceptors have promised: accepts at it what they have accepted, each at its highest
    /// ballot, and what this site has. This site knows all that they know to be chosen. Returns the places to be written down.
    ///
    /// # Errors
    /// The ballot that is promised, if it is a higher one.
    pub fn repropose(&mut self, ballot: Ballot, mut accepted: BTreeMap<u64, (Standing, Entry)>) -> Result<Vec<u64>, Ballot> {
        merge(&mut accepted, self.accepted(0));
        let first = self.chosen + 1;
        self.accept(ballot, first, accepted.split_off(&first).into_values().map(|(_, entry)| entry))
    }

    /// What this site has accepted after `after` and does not know to be chosen.
    pub fn accepted(&self, after: u64) -> Vec<(u64, Standing, Entry)> {
        let after = after.max(self.chosen);
        self.entries.range(after + 1..).map(|(index, accepted)| (*index, accepted.said.0, accepted.said.1.clone())).collect()
    }

    /// The first of those, as many as one message holds, and whether there are more.
    pub fn accepted_page(&self, after: u64) -> (Vec<(u64, Standing, Entry)>, bool) {
        let first = after.max(self.chosen) + 1;
        let page: Vec<_> = self.page(first).map(|(index, (standing, entry))| (index, *standing, entry.clone())).collect();
        let more = page.last().is_some_and(|(last, ..)| *last < self.end());
        (page, more)
    }

    /// Learns that `entry` is chosen at a place. True if that is new, and follows on what is known; then it is to be written down.
    pub fn learn(&mut self, index: u64, entry: Entry) -> bool {
        let follows = index == self.chosen + 1 && self.entries.get(&index).is_none_or(|accepted| accepted.said.0 != Standing::Chosen);
        if follows {
            self.put(index, Standing::Chosen, entry);
        }
        follows
    }

    /// Acceptor `site` holds what the leader of `ballot` said, up to `upto`, durably.
    pub fn holds(&mut self, site: SiteId, ballot: Ballot, upto: u64) {
        let said = Extent { ballot, upto };
        let held = self.held.entry(site).or_insert(said);
        *held = said.max(*held);
        self.hear_chosen(site, self.chosen_at(ballot));
    }

    /// Site `site` knows entries to be chosen up to `upto`.
    pub fn hear_chosen(&mut self, site: SiteId, upto: u64) {
        if upto > self.chosen_elsewhere.map_or(0, |elsewhere| elsewhere.upto) {
            self.chosen_elsewhere = Some(Elsewhere { upto, holder: site });
        }
    }

    /// Up to where entries are known to be chosen, here or elsewhere.
    pub fn known_chosen(&self) -> u64 {
        self.chosen_elsewhere.map_or(0, |elsewhere| elsewhere.upto).max(self.chosen)
    }

    /// True if entries are chosen that are not even accepted here.
    pub fn is_behind(&self) -> bool {
        self.known_chosen() > self.end()
    }

    /// Up to where entries are chosen at `ballot`, by what acceptors say that they hold. A leader that is one of them holds what others hold.
    fn chosen_at(&self, ballot: Ballot) -> u64 {
        let others = self.held.iter().filter(|(site, held)| held.ballot == ballot && **site != ballot.leader);
        let mut upto: Vec<u64> = others.map(|(_, held)| held.upto).collect();
        upto.sort_unstable_by(|a, b| b.cmp(a));
        let needed = self.quorum - usize::from(self.id.is_accepted_by(ballot.leader));
        needed.checked_sub(1).and_then(|last| upto.get(last)).copied().unwrap_or(0)
    }

    /// The next entry that can now be told to be chosen, if there is one.
    pub fn advance(&mut self) -> Option<Found> {
        let index = self.chosen + 1;
        let Accepted { said: (standing, entry), bytes } = self.entries.get(&index)?;
        if let Standing::Accepted(ballot) = standing
            && self.held.values().filter(|held| held.ballot == *ballot && held.upto >= index).count() < self.quorum
        {
            return None;
        }
        self.chosen = index;
        self.unchosen_bytes -= bytes;
        let void = entry.epoch <= self.covered;
        self.covered = self.covered.max(entry.epoch);
        Some(Found { index, entry: entry.clone(), covered: self.covered, void })
    }

    /// Forgets the chosen entries that say nothing beyond the epoch `settled`; the disk has them. Returns the last place forgotten
    /// so far, and the last epoch covered up to there.
    pub fn settle(&mut self, settled: Epoch) -> (u64, Epoch) {
        while let Some((&index, accepted)) = self.entries.first_key_value().filter(|(index, _)| **index <= self.chosen) {
            let covered = self.base.1.max(accepted.said.1.epoch);
            if covered > settled {
                break;
            }
            self.base = (index, covered);
            self.entries.pop_first();
        }
        self.base
    }
}

/// Keeps of each place what was accepted at the highest ballot.
pub fn merge(known: &mut BTreeMap<u64, (Standing, Entry)>, accepted: Vec<(u64, Standing, Entry)>) {
    for (index, standing, entry) in accepted {
        if known.get(&index).is_none_or(|(other, _)| *other < standing) {
            known.insert(index, (standing, entry));
        }
    }
}

#[cfg(test)]
mod tests;
