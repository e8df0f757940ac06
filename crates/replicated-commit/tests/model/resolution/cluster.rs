//! The state space: what was said, and where each survivor may be.

use super::automaton::Automaton;
use super::properties;
use super::survivor::{Bounds, Input, NO, Survivor, first_placement, meta, region};
use super::word::{LOST, Message, SURVIVORS, Vocabulary, Word, Words};
use crate::host::{Cluster, Departure};
use crate::schedule::{Move, Spoken, lines};
use crate::whereabouts::{self, SetId, Turn, Whereabouts};
use rhumb_commit::votes::{Decision, Outcome, Vote};
use rhumb_core::{Body, Timestamp};
use rhumb_replicated_commit::message::Voted;
use rhumb_replicated_commit::{Note, Promise};
use stateright::{Model, Path, Property};
use std::array;
use std::sync::{Arc, Mutex, MutexGuard};

type Saying = whereabouts::Saying<Words>;

/// The members of the cluster.
#[derive(Clone)]
pub struct Resolution {
    survivors: [Arc<Whereabouts<Automaton>>; SURVIVORS],
    vocabulary: Arc<Mutex<Vocabulary>>,
    cases: Cases,
}

/// What the search begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cases {
    All,
    /// The second voter and the lost region have refused: the votes abort the attempt, and a client was told so.
    Refused,
    /// The same, and of the lost region's vote nobody hears, but of the outcome.
    Claimed,
    /// The second voter has refused, and nobody hears of what the lost region has voted or said.
    Silent,
}

/// A state of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// All that was said.
    pub said: Words,
    sets: [SetId; SURVIVORS],
}

/// A survivor says something new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action {
    survivor: usize,
    saying: Saying,
}

impl Resolution {
    /// The product but for a departure.
    pub fn new(departure: Departure, bounds: [Bounds; SURVIVORS], cases: Cases) -> Resolution {
        let vocabulary = Arc::new(Mutex::new(Vocabulary::default()));
        let cluster = Arc::new(Cluster { regions: SURVIVORS + 1, placement: first_placement(), departure });
        let new = |me: usize| Survivor::new(me, cluster.clone(), bounds[me]);
        let beginnings = [vec![new(0).prepared()], vec![new(1), new(1).prepared(), new(1).refusing()], vec![new(2)]];
        let mut members = beginnings.into_iter().enumerate().map(|(survivor, beginnings)| {
            let count = beginnings.len() as u32;
            Arc::new(Whereabouts::of(Automaton::of(survivor, beginnings, vocabulary.clone()), count))
        });
        let survivors = array::from_fn(|_| members.next().expect("as many as survive"));
        Resolution { survivors, vocabulary, cases }
    }

    /// How large the members are, as a line.
    pub fn sizes(&self) -> String {
        let sizes: Vec<String> = self.survivors.iter().map(|survivor| survivor.sizes()).collect();
        format!("{} words; {}", self.vocabulary().len(), sizes.join("; "))
    }

    pub fn vocabulary(&self) -> MutexGuard<'_, Vocabulary> {
        self.vocabulary.lock().expect("nobody panics with the vocabulary")
    }

    fn heard(&self, state: &State, survivor: usize) -> Words {
        self.vocabulary().concerning(survivor, state.said)
    }

    /// The survivors do what they can do without saying anything new.
    fn spread(&self, mut state: State) -> State {
        for survivor in 0..SURVIVORS {
            state.sets[survivor] = self.survivors[survivor].spread(state.sets[survivor], self.heard(&state, survivor));
        }
        state
    }

    /// What the lost region may have said before it was lost, and the second voter as it may be then.
    fn beginnings(&self) -> Vec<State> {
        let (open, prepared, refusing) = (0, 1, 2);
        let (commits, aborts) = (Some(Outcome::Committed), Some(Outcome::Aborted));
        match self.cases {
            // A message need not arrive, so there is no state without it; and who has not voted may still refuse, so there is none for a refusal
            // that decides nothing.
            Cases::All => {
                let cases = [
                    (open, Vote::Firm, commits),
                    (prepared, Vote::Firm, commits),
                    (open, NO, None),
                    (prepared, NO, None),
                    (refusing, NO, aborts),
                ];
                cases.into_iter().flat_map(|(second, vote, told)| self.beginnings_of(second, Some(&vote), told)).collect()
            }
            Cases::Refused => self.beginnings_of(refusing, Some(&NO), aborts),
            Cases::Claimed => self.beginnings_of(refusing, None, aborts),
            Cases::Silent => self.beginnings_of(refusing, None, None),
        }
    }

    /// Those where the second voter is in that state, the lost region's vote is under way to one of the survivors, if it is, and its client was
    /// `told` the outcome, which is under way to all.
    fn beginnings_of(&self, second: SetId, vote: Option<&Vote>, told: Option<Outcome>) -> Vec<State> {
        let ends: Vec<Word> = told.into_iter().flat_map(|told| [Word::Told(told), Word::Sent(claim_of_lost(told))]).collect();
        let beginning = |vote: Option<Word>| {
            let words = vote.into_iter().chain(ends.iter().cloned());
            let said = words.map(|word| self.vocabulary().number(word)).fold(Words::default(), Words::or);
            State { said, sets: [0, second, 0] }
        };
        match vote {
            Some(vote) => (0..SURVIVORS).map(|hearer| beginning(Some(Word::Sent(vote_of_lost(vote, hearer))))).collect(),
            None => vec![beginning(None)],
        }
    }

    /// A schedule that makes the survivors say what they say on this path, one line for each input.
    pub fn schedule(&self, path: Path<State, Action>) -> Vec<String> {
        let (mut turns, mut spoken) = ([const { Vec::new() }; SURVIVORS], Vec::new());
        let steps = path.into_vec();
        let first = steps[0].0.said;
        let is_first = |state: &State| self.spread(state.clone()) == steps[0].0;
        let begins = self.beginnings().into_iter().find(is_first).expect("a path begins at a beginning").sets;
        for (state, action) in steps {
            let Some(Action { survivor, saying }) = action else { break };
            for (other, turns) in turns.iter_mut().enumerate() {
                let says = if other == survivor { saying.says } else { Words::default() };
                turns.push(Turn { heard: self.heard(&state, other), says });
            }
            spoken.push(Spoken { member: region(survivor).to_string(), words: self.vocabulary().line(saying.says) });
        }
        let mut moves = Vec::new();
        for survivor in 0..SURVIVORS {
            for (time, input) in self.survivors[survivor].inputs(begins[survivor], &turns[survivor]) {
                let input = match input {
                    Input::Hear(words) | Input::Count(words) => format!("hears: {}", self.vocabulary().line(words)),
                    other => format!("{other:?}"),
                };
                moves.push(Move { time, member: region(survivor).to_string(), input });
            }
        }
        let beginning = format!("from the beginning: {}", self.vocabulary().line(first));
        [beginning].into_iter().chain(lines(moves, &spoken)).collect()
    }
}

fn vote_of_lost(vote: &Vote, hearer: usize) -> Message {
    let voted = Voted { meta: meta(), region: region(LOST), vote: vote.clone(), high: Timestamp::ZERO };
    Message { from: Some(LOST), to: Some(hearer), body: Body::Promise(Promise::Vote(voted)) }
}

fn claim_of_lost(outcome: Outcome) -> Message {
    let decision = if outcome == Outcome::Committed { Decision::Committed { floor: meta().at } } else { Decision::Aborted };
    Message { from: Some(LOST), to: None, body: Body::Note(Note::Decided { meta: meta(), decision }) }
}

impl Model for Resolution {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        self.beginnings().into_iter().map(|state| self.spread(state)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for survivor in 0..SURVIVORS {
            let sayings = self.survivors[survivor].sayings(state.sets[survivor], self.heard(state, survivor));
            actions.extend(sayings.into_iter().map(|saying| Action { survivor, saying }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let Action { survivor, saying } = action;
        let mut sets = last.sets;
        sets[survivor] = saying.set;
        Some(self.spread(State { said: last.said.or(saying.says), sets }))
    }

    fn properties(&self) -> Vec<Property<Resolution>> {
        properties::all()
    }
}
