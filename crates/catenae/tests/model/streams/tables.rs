//! What states hold, each thing once, by number: sites, messages, entries, and steps of sites.

use super::part::{Part, Taken};
use super::{Input, REGIONS, site};
use rhumb_catenae::message::Entry;
use rhumb_catenae::{Note, Promise};
use rhumb_core::{Body, SiteId};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

pub type PartId = u32;
pub type EnvelopeId = u16;
pub type EntryId = u16;

/// A message that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    pub from: SiteId,
    pub to: SiteId,
    pub body: Body<Note, Promise>,
}

/// A step of a site, by numbers.
pub struct Step {
    pub part: PartId,
    pub sent: Vec<EnvelopeId>,
    pub found: Vec<(u64, EntryId)>,
    pub impatient: bool,
}

/// Things of one kind.
struct Numbered<T> {
    items: Vec<Arc<T>>,
    numbers: HashMap<Arc<T>, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { items: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Hash + Eq> Numbered<T> {
    fn number(&mut self, item: T) -> u32 {
        if let Some(number) = self.numbers.get(&item) {
            return *number;
        }
        let number = u32::try_from(self.items.len()).expect("states are few");
        let item = Arc::new(item);
        self.items.push(Arc::clone(&item));
        self.numbers.insert(item, number);
        number
    }
}

#[derive(Default)]
pub struct Tables {
    parts: Numbered<Part>,
    envelopes: Numbered<Envelope>,
    entries: Numbered<Entry>,
    steps: HashMap<(PartId, Input), Arc<Step>>,
    /// Sites together whose progress has been looked at.
    healed: HashSet<[PartId; REGIONS]>,
}

impl Tables {
    pub fn part(&self, id: PartId) -> &Arc<Part> {
        &self.parts.items[id as usize]
    }

    pub fn number_part(&mut self, part: Part) -> PartId {
        self.parts.number(part)
    }

    pub fn envelope(&self, id: EnvelopeId) -> &Envelope {
        &self.envelopes.items[usize::from(id)]
    }

    pub fn entry(&self, id: EntryId) -> &Entry {
        &self.entries.items[usize::from(id)]
    }

    /// The index of the site that a message is sent to.
    pub fn receiver(&self, id: EnvelopeId) -> usize {
        let to = self.envelope(id).to;
        (0..REGIONS).find(|region| site(*region) == to).expect("messages go to sites")
    }

    pub fn step(&self, part: PartId, input: Input) -> Option<Arc<Step>> {
        self.steps.get(&(part, input)).cloned()
    }

    pub fn put_step(&mut self, part: PartId, input: Input, taken: Taken) -> Arc<Step> {
        let small = |number: u32| u16::try_from(number).expect("messages and entries are few");
        let sent = taken.sent.into_iter().map(|envelope| small(self.envelopes.number(envelope))).collect();
        let found = taken.found.into_iter().map(|found| (found.index, small(self.entries.number(found.entry)))).collect();
        let step = Arc::new(Step { part: self.parts.number(taken.part), sent, found, impatient: taken.impatient });
        self.steps.insert((part, input), Arc::clone(&step));
        step
    }

    /// True the first time.
    pub fn is_new_to_heal(&mut self, parts: [PartId; REGIONS]) -> bool {
        self.healed.insert(parts)
    }
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, envelopes, steps) = (self.parts.items.len(), self.envelopes.items.len(), self.steps.len());
        write!(f, "{parts} states of a site, {envelopes} messages, {steps} steps of a site, {} looked at for progress", self.healed.len())
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} {}", self.from, self.to, self.body)
    }
}
