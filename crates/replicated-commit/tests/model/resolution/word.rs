//! What is said in the model, numbered as it appears, and sets of it.

use super::survivor::meta;
use crate::host::site;
use crate::whereabouts::Messages;
use rhumb_commit::votes::{Outcome, Vote};
use rhumb_core::{Body, SiteId};
use rhumb_replicated_commit::message::{Inquiry, Testified};
use rhumb_replicated_commit::resolution::Round;
use rhumb_replicated_commit::{Note, Promise};
use std::collections::BTreeMap;
use std::{array, fmt};

/// The number of regions that survive.
pub const SURVIVORS: usize = 3;
/// Those of them that vote. They may lead.
pub const VOTERS: [usize; 2] = [0, 1];
/// The region that is lost, and the gateway of the attempt with it.
pub const LOST: usize = SURVIVORS;

/// The number of words that there may be.
const WORDS_MAX: usize = 256;

/// A message in the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its sender, where that makes a difference: whoever tells the outcome, no site looks at who does.
    pub from: Option<usize>,
    /// Its receiver, if it is not for all.
    pub to: Option<usize>,
    pub body: Body<Note, Promise>,
}

/// Something that is said.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all words are messages")]
pub enum Word {
    /// The lost region told its client the outcome.
    Told(Outcome),
    /// A survivor is certain of the outcome.
    Certain(Outcome),
    /// A survivor finds that the attempt had read what is stale.
    Stale,
    Sent(Message),
}

/// A set of words, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words([u64; 4]);

/// All words so far, and sets of those that have something in common.
#[derive(Debug, Default)]
pub struct Vocabulary {
    words: Vec<Word>,
    /// Those that each survivor can hear or say.
    concern: [Words; SURVIVORS],
    /// Those that settle the outcome: a commit, or an abort.
    ends: [Words; 2],
}

/// What may arrive at a survivor.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Messages that arrive one by one.
    pub messages: Vec<Words>,
    /// All votes, to be counted together.
    pub votes: Words,
}

impl Message {
    /// What survivor `from` sends. Of messages that are not listed here the model has all from the beginning, or they are lost.
    pub fn of(from: usize, to: SiteId, mut body: Body<Note, Promise>) -> Option<Message> {
        let to = Some(usize::from(to.region.0));
        let (from, to) = match &mut body {
            Body::Note(Note::Inquire(_) | Note::Propose { .. }) => (Some(from), None),
            Body::Note(Note::Decided { .. } | Note::Concluded { .. }) => (None, None),
            Body::Promise(Promise::Vote(voted)) if voted.vote != Vote::Yes => (Some(from), None),
            Body::Promise(Promise::Testified(Testified { testimony, contents, .. })) if testimony.known.is_some() => {
                // No leader looks at what else it says.
                (testimony.votes, testimony.accepted, testimony.contested, *contents) = (BTreeMap::new(), None, false, None);
                (Some(from), to)
            }
            Body::Promise(Promise::Testified(_) | Promise::Accepted { .. } | Promise::Contested { .. }) => (Some(from), to),
            Body::Note(_) | Body::Promise(_) => return None,
        };
        Some(Message { from, to, body })
    }

    /// The site that `survivor` hears it from.
    pub fn sender(&self, survivor: usize) -> SiteId {
        site(self.from.unwrap_or((survivor + 1) % SURVIVORS))
    }

    /// True if `survivor` can hear it.
    pub fn reaches(&self, survivor: usize) -> bool {
        // Claims go to those that vote, and to those that ask.
        let is_claim = matches!(self.body, Body::Note(Note::Decided { .. }));
        let is_for = self.to.is_none_or(|to| to == survivor) && (!is_claim || VOTERS.contains(&survivor));
        is_for && self.from != Some(survivor)
    }

    pub fn is_vote(&self) -> bool {
        matches!(self.body, Body::Promise(Promise::Vote(_)))
    }

    /// The round in which it is said.
    pub fn round(&self) -> Option<Round> {
        match &self.body {
            Body::Note(Note::Inquire(Inquiry { round, .. }) | Note::Propose { round, .. }) => Some(*round),
            Body::Promise(Promise::Testified(Testified { round, .. })) => Some(*round),
            Body::Promise(Promise::Accepted { round, .. } | Promise::Contested { round, .. }) => Some(*round),
            Body::Note(_) | Body::Promise(_) => None,
        }
    }
}

impl Word {
    /// The outcome that it settles.
    fn end(&self) -> Option<Outcome> {
        match self {
            Word::Certain(outcome) => Some(*outcome),
            Word::Sent(Message { body: Body::Note(Note::Concluded { decision, .. }), .. }) => Some(decision.outcome()),
            Word::Told(_) | Word::Stale | Word::Sent(_) => None,
        }
    }
}

impl Words {
    pub fn or(self, other: Words) -> Words {
        Words(array::from_fn(|place| self.0[place] | other.0[place]))
    }

    pub fn and(self, other: Words) -> Words {
        Words(array::from_fn(|place| self.0[place] & other.0[place]))
    }

    pub fn is_empty(self) -> bool {
        self == Words::default()
    }

    /// The set of the word of this number.
    fn single(number: usize) -> Words {
        let mut words = Words::default();
        words.0[number / 64] = 1 << (number % 64);
        words
    }

    fn has(self, number: usize) -> bool {
        self.0[number / 64] & (1 << (number % 64)) != 0
    }

    /// The numbers of its words.
    fn numbers(self) -> impl Iterator<Item = usize> {
        (0..WORDS_MAX).filter(move |number| self.has(*number))
    }
}

impl Messages for Words {
    fn without(self, other: Words) -> Words {
        Words(array::from_fn(|place| self.0[place] & !other.0[place]))
    }
}

impl Vocabulary {
    /// The set of `word` alone.
    pub fn number(&mut self, word: Word) -> Words {
        let known = self.words.iter().position(|known| *known == word);
        let single = Words::single(known.unwrap_or(self.words.len()));
        if known.is_none() {
            self.add(single, word);
        }
        single
    }

    fn add(&mut self, single: Words, word: Word) {
        if let Some(outcome) = word.end() {
            let ends = &mut self.ends[outcome as usize];
            *ends = ends.or(single);
        }
        for survivor in 0..SURVIVORS {
            let concerns = match &word {
                Word::Told(_) | Word::Stale => false,
                Word::Certain(_) => true,
                Word::Sent(message) => message.from == Some(survivor) || message.reaches(survivor),
            };
            if concerns {
                self.concern[survivor] = self.concern[survivor].or(single);
            }
        }
        self.words.push(word);
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Those of `words` that `survivor` can hear or say.
    pub fn concerning(&self, survivor: usize, words: Words) -> Words {
        words.and(self.concern[survivor])
    }

    /// Those that settle that outcome: a survivor is certain of it, or the leader of a round has concluded it.
    pub fn ends(&self, outcome: Outcome) -> Words {
        self.ends[outcome as usize]
    }

    /// The messages among `words`, each with the set of it alone.
    pub fn messages(&self, words: Words) -> impl Iterator<Item = (Words, &Message)> {
        words.numbers().filter_map(|number| match &self.words[number] {
            Word::Sent(message) => Some((Words::single(number), message)),
            Word::Told(_) | Word::Certain(_) | Word::Stale => None,
        })
    }

    /// What of `heard` may arrive at `survivor`.
    pub fn arrivals(&self, survivor: usize, heard: Words) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (single, message) in self.messages(heard).filter(|(_, message)| message.reaches(survivor)) {
            if message.is_vote() {
                arrivals.votes = arrivals.votes.or(single);
            }
            let is_of_survivor = message.is_vote() && message.from != Some(LOST);
            if !is_of_survivor && !self.comes_late(survivor, message, heard) {
                arrivals.messages.push(single);
            }
        }
        arrivals
    }

    /// True if it asks for a testimony that `survivor` has given, and that nobody hears any more: the leader proposes already.
    fn comes_late(&self, survivor: usize, message: &Message, heard: Words) -> bool {
        let Body::Note(Note::Inquire(Inquiry { round, .. })) = message.body else { return false };
        let of_round = || self.messages(heard).map(|(_, message)| message).filter(|message| message.round() == Some(round));
        let is_proposed = of_round().any(|message| matches!(message.body, Body::Note(Note::Propose { .. })));
        let has_testified = of_round().any(|message| message.from == Some(survivor));
        is_proposed && has_testified
    }

    /// All of `words`, as a line.
    pub fn line(&self, words: Words) -> String {
        let each: Vec<String> = words.numbers().map(|number| self.words[number].to_string()).collect();
        each.join("; ")
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Told(outcome) => write!(f, "a client is told: {outcome}"),
            Word::Certain(outcome) => write!(f, "certain: {outcome}"),
            Word::Stale => write!(f, "the attempt had read what is stale"),
            Word::Sent(Message { from, body, .. }) => {
                // All of it is about one attempt.
                let body = body.to_string().replace(&format!(" {}", meta().attempt), "");
                match from {
                    Some(from) => write!(f, "r{from} says {body}"),
                    None => write!(f, "{body}"),
                }
            }
        }
    }
}
