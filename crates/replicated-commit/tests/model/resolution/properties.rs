//! What must hold in every state, and what must be reachable.

use super::cluster::{Resolution, State};
use super::survivor::region;
use super::word::{Message, VOTERS, Vocabulary, Word};
use rhumb_commit::votes::{Outcome, Vote};
use rhumb_core::Body;
use rhumb_replicated_commit::{Note, Promise};
use stateright::Property;

/// All survivors who know or have concluded an outcome agree.
pub const AGREEMENT: &str = "one outcome";
/// What a client was told of, and nothing contests, is not undone.
pub const ACKNOWLEDGED: &str = "an acknowledged commit stays";
/// What the survivors' own votes commit is not undone, contested or not.
pub const COUNTED: &str = "what the votes of survivors commit stays";

pub fn all() -> Vec<Property<Resolution>> {
    vec![
        Property::always(AGREEMENT, |model: &Resolution, state: &State| {
            let words = model.vocabulary();
            !(ends(&words, state, Outcome::Committed) && ends(&words, state, Outcome::Aborted))
        }),
        Property::always(ACKNOWLEDGED, |model: &Resolution, state: &State| {
            let mut words = model.vocabulary();
            let is_told = !state.said.and(words.number(Word::Told(Outcome::Committed))).is_empty();
            let is_contested = !state.said.and(words.number(Word::Stale)).is_empty();
            !is_told || is_contested || !ends(&words, state, Outcome::Aborted)
        }),
        Property::always(COUNTED, |model: &Resolution, state: &State| {
            let words = model.vocabulary();
            let firm = words.messages(state.said).filter(|(_, message)| is_firm_of_survivor(message)).count();
            firm < VOTERS.len() || !ends(&words, state, Outcome::Aborted)
        }),
        Property::sometimes("a commit is concluded", |model: &Resolution, state: &State| concludes(model, state, true)),
        Property::sometimes("an abort is concluded", |model: &Resolution, state: &State| concludes(model, state, false)),
        Property::sometimes("a survivor contests, and a round aborts the attempt", |model: &Resolution, state: &State| {
            !state.said.and(model.vocabulary().number(Word::Stale)).is_empty() && concludes(model, state, false)
        }),
    ]
}

/// A survivor is certain of that outcome, or has concluded it.
fn ends(words: &Vocabulary, state: &State, outcome: Outcome) -> bool {
    !state.said.and(words.ends(outcome)).is_empty()
}

fn is_firm_of_survivor(message: &Message) -> bool {
    matches!(&message.body, Body::Promise(Promise::Vote(voted)) if voted.vote == Vote::Firm && VOTERS.map(region).contains(&voted.region))
}

/// The leader of a round has concluded it.
fn concludes(model: &Resolution, state: &State, commits: bool) -> bool {
    let of_round =
        |message: &Message| matches!(message.body, Body::Note(Note::Concluded { decision, .. }) if decision.is_commit() == commits);
    model.vocabulary().messages(state.said).any(|(_, message)| of_round(message))
}
