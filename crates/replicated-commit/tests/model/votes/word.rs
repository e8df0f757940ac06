//! The messages that the members of the model react to, and sets of them.

use crate::host::{Host, Sent, site};
use crate::whereabouts::Messages;
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::{Body, RegionId, SiteId, Timestamp};
use rhumb_replicated_commit::message::{Attempt, Meta, Voted};
use rhumb_replicated_commit::{Note, Promise};
use std::fmt;

/// The number of regions that vote.
pub const REGIONS: usize = 3;

/// The number of transactions, one gateway each.
pub const TXNS: usize = 2;

/// The gateway of that transaction. Each is in a region of its own, which does not vote.
pub const fn gateway(txn: usize) -> SiteId {
    site(REGIONS + txn)
}

/// The transaction of this attempt, by its gateway.
fn txn_of(attempt: &Attempt) -> usize {
    usize::from(attempt.txn.gateway.region.0) - REGIONS
}

/// A vote. Why a region refuses makes no difference to the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cast {
    /// Provisional.
    Yes,
    Firm,
    No,
}

/// An outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Committed,
    Aborted,
}

/// A message in the network, about the transaction of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// A region's vote.
    Vote(usize, Cast),
    /// Somebody has concluded the outcome.
    Decided(usize, End),
    /// The gateway takes the attempt back.
    Withdraw(usize),
    /// The client is answered.
    Answered(usize, End),
}

/// A set of words, a bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words(u16);

impl Cast {
    pub const ALL: [Cast; 3] = [Cast::Yes, Cast::Firm, Cast::No];
}

impl End {
    pub const ALL: [End; 2] = [End::Committed, End::Aborted];
}

impl Word {
    /// A message to another site, where it is one of these. Of the others the model has all from the beginning, or they tell what these tell.
    pub fn of(sent: &Sent) -> Option<Word> {
        let Sent::Message { body, .. } = sent else { return None };
        match body {
            Body::Note(Note::Decided { meta, decision }) => Some(Word::Decided(txn_of(&meta.attempt), End::from(*decision))),
            Body::Note(Note::Withdraw { meta }) => Some(Word::Withdraw(txn_of(&meta.attempt))),
            Body::Promise(Promise::Vote(voted)) => Some(Word::Vote(txn_of(&voted.meta.attempt), Cast::from(&voted.vote))),
            Body::Note(_) | Body::Promise(_) => None,
        }
    }

    fn all() -> impl Iterator<Item = Word> {
        (0..TXNS).flat_map(|txn| {
            let votes = Cast::ALL.map(|cast| Word::Vote(txn, cast));
            let ends = End::ALL.into_iter().flat_map(move |end| [Word::Decided(txn, end), Word::Answered(txn, end)]);
            votes.into_iter().chain([Word::Withdraw(txn)]).chain(ends)
        })
    }

    fn bit(self) -> u16 {
        1 << match self {
            Word::Vote(txn, cast) => 3 * txn + cast as usize,
            Word::Decided(txn, end) => 6 + 2 * txn + end as usize,
            Word::Withdraw(txn) => 10 + txn,
            Word::Answered(txn, end) => 12 + 2 * txn + end as usize,
        }
    }
}

impl Words {
    pub const NONE: Words = Words(0);

    /// The words among what is sent.
    pub fn of(sent: &[Sent]) -> Words {
        sent.iter().filter_map(Word::of).collect()
    }

    pub fn has(self, word: Word) -> bool {
        self.0 & word.bit() != 0
    }

    pub fn or(self, other: Words) -> Words {
        Words(self.0 | other.0)
    }

    pub fn and(self, other: Words) -> Words {
        Words(self.0 & other.0)
    }

    /// The votes among them.
    pub fn votes(self) -> Words {
        self.and(Word::all().filter(|word| matches!(word, Word::Vote(..))).collect())
    }
}

impl Messages for Words {
    fn without(self, other: Words) -> Words {
        Words(self.0 & !other.0)
    }
}

impl FromIterator<Word> for Words {
    fn from_iter<I: IntoIterator<Item = Word>>(words: I) -> Words {
        Words(words.into_iter().fold(0, |bits, word| bits | word.bit()))
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Word::all().filter(|word| self.has(*word))).finish()
    }
}

impl From<&Vote> for Cast {
    fn from(vote: &Vote) -> Cast {
        match vote {
            Vote::Yes => Cast::Yes,
            Vote::Firm => Cast::Firm,
            Vote::No(_) => Cast::No,
        }
    }
}

impl From<Cast> for Vote {
    fn from(cast: Cast) -> Vote {
        match cast {
            Cast::Yes => Vote::Yes,
            Cast::Firm => Vote::Firm,
            Cast::No => Vote::No(Refusal::Locked),
        }
    }
}

impl From<Decision> for End {
    fn from(decision: Decision) -> End {
        if decision.is_commit() { End::Committed } else { End::Aborted }
    }
}

/// Votes of different regions arrive, the first that of region `first`.
pub fn hear_votes(host: &mut Host, first: usize, meta: &Meta, casts: &[Option<Cast>]) -> Vec<Sent> {
    let mut sent = Vec::new();
    for (region, cast) in (first..).zip(casts) {
        let Some(cast) = *cast else { continue };
        let voted = Voted { meta: meta.clone(), region: RegionId(region as u16), vote: cast.into(), high: Timestamp::ZERO };
        sent.extend(host.hear_promise(site(region), Promise::Vote(voted)));
    }
    sent
}

/// Somebody tells the outcome.
pub fn hear_end(host: &mut Host, from: SiteId, meta: &Meta, end: End) -> Vec<Sent> {
    let decision = if end == End::Committed { Decision::Committed { floor: meta.at } } else { Decision::Aborted };
    host.hear(from, Note::Decided { meta: meta.clone(), decision })
}
