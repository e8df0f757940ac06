//! What states hold, each thing once, by number: sites, messages, decisions, and steps of sites.

use super::part::{Input, Part, Step};
use super::{SITES, site};
use rhumb_core::{Body, SiteId};
use rhumb_quota::avantan::{Note, Promise, any};
use rhumb_quota::list::List;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

pub type PartId = u32;
pub type EnvelopeId = u16;
pub type DecisionId = u16;

/// A message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub from: SiteId,
    pub to: SiteId,
    pub body: Body<Note, Promise>,
}

/// What a list is decided in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instance {
    /// Of Avantan[(n+1)/2].
    Slot(u64),
    /// Of Avantan[*].
    Led(any::Instance),
}

/// A list that some site has found decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    pub instance: Instance,
    pub list: List,
    /// The first to find it was the site that built it.
    pub led: bool,
}

#[derive(Default)]
pub struct Tables {
    parts: Vec<Arc<Part>>,
    part_ids: HashMap<Arc<Part>, PartId>,
    envelopes: Vec<Envelope>,
    envelope_ids: HashMap<Envelope, EnvelopeId>,
    decisions: Vec<Decision>,
    pub steps: HashMap<(PartId, Input), Arc<Step>>,
}

impl Hash for Envelope {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.from, self.to).hash(state);
        match &self.body {
            Body::Note(note) => note.hash(state),
            Body::Promise(promise) => promise.hash(state),
        }
    }
}

impl Tables {
    pub fn part(&self, id: PartId) -> &Arc<Part> {
        &self.parts[id as usize]
    }

    pub fn number_part(&mut self, part: Part) -> PartId {
        if let Some(id) = self.part_ids.get(&part) {
            return *id;
        }
        let id = PartId::try_from(self.parts.len()).expect("parts are few");
        let part = Arc::new(part);
        self.parts.push(Arc::clone(&part));
        self.part_ids.insert(part, id);
        id
    }

    pub fn envelope(&self, id: EnvelopeId) -> &Envelope {
        &self.envelopes[usize::from(id)]
    }

    /// The index of the site that it is sent to.
    pub fn receiver(&self, id: EnvelopeId) -> usize {
        let to = self.envelope(id).to;
        (0..SITES).find(|index| site(*index) == to).expect("messages go to sites")
    }

    pub fn number_envelope(&mut self, envelope: Envelope) -> EnvelopeId {
        if let Some(id) = self.envelope_ids.get(&envelope) {
            return *id;
        }
        let id = EnvelopeId::try_from(self.envelopes.len()).expect("messages are few");
        self.envelopes.push(envelope.clone());
        self.envelope_ids.insert(envelope, id);
        id
    }

    pub fn decision(&self, id: DecisionId) -> &Decision {
        &self.decisions[usize::from(id)]
    }

    pub fn number_decision(&mut self, decision: Decision) -> DecisionId {
        let found = self.decisions.iter().position(|known| *known == decision);
        let id = found.unwrap_or_else(|| {
            self.decisions.push(decision);
            self.decisions.len() - 1
        });
        DecisionId::try_from(id).expect("decisions are few")
    }

    /// Adds what was found decided, unless it is known.
    pub fn add_decision(&self, decided: &mut Vec<DecisionId>, new: DecisionId) {
        let same = |known: &DecisionId| {
            let (known, new) = (self.decision(*known), self.decision(new));
            known.instance == new.instance && known.list == new.list
        };
        if !decided.iter().any(same) {
            decided.push(new);
            decided.sort_unstable();
        }
    }
}

/// How many different things there are.
impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states and {} steps of sites, {} messages", self.parts.len(), self.steps.len(), self.envelopes.len())
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}   {}", self.from, self.to, self.body)
    }
}
