//! A survivor as a finite automaton: its site is run as messages appear that may arrive there.

use super::survivor::{Input, Survivor};
use super::word::{Arrivals, Vocabulary, Words};
use crate::digest::digest;
use crate::whereabouts;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// What comes of an input.
type Step = whereabouts::Step<Input, Words>;

/// Fields that nothing which happens in the model reads: the `last` token that was given need only differ from all others, and so does the
/// `last` timestamp of a clock that issues none any more.
const UNREAD: [&str; 1] = ["last"];

/// What can become of a survivor, as far as that was asked.
pub struct Automaton {
    survivor: usize,
    vocabulary: Arc<Mutex<Vocabulary>>,
    states: Vec<Survivor>,
    numbers: HashMap<u64, u32>,
    /// What comes of each input in each state; none if it makes no difference.
    steps: HashMap<(u32, Input), Option<Step>>,
    /// What may arrive, by what was said.
    arrivals: HashMap<Words, Arrivals>,
}

impl Automaton {
    /// The survivor of this number, which begins as one of these.
    pub fn of(survivor: usize, beginnings: Vec<Survivor>, vocabulary: Arc<Mutex<Vocabulary>>) -> Automaton {
        let (states, numbers, steps, arrivals) = (Vec::new(), HashMap::new(), HashMap::new(), HashMap::new());
        let mut automaton = Automaton { survivor, vocabulary, states, numbers, steps, arrivals };
        for survivor in beginnings {
            automaton.number(survivor);
        }
        automaton
    }

    fn number(&mut self, survivor: Survivor) -> u32 {
        let fresh = self.states.len() as u32;
        let number = *self.numbers.entry(digest(&survivor, &UNREAD)).or_insert(fresh);
        if number == fresh {
            self.states.push(survivor);
        }
        number
    }

    fn step(&mut self, state: u32, input: Input, vocabulary: &mut Vocabulary) -> Option<Step> {
        if let Some(known) = self.steps.get(&(state, input)) {
            return *known;
        }
        let mut next = self.states[state as usize].clone();
        let step = next.take(input, vocabulary).map(|words| {
            let says = words.into_iter().map(|word| vocabulary.number(word)).fold(Words::default(), Words::or);
            Step { input, says, to: self.number(next) }
        });
        self.steps.insert((state, input), step);
        step
    }
}

impl whereabouts::Automaton for Automaton {
    type Input = Input;
    type Words = Words;
    type Heard = Words;

    fn steps(&mut self, state: u32, heard: &Words) -> Vec<Step> {
        let vocabulary = self.vocabulary.clone();
        let vocabulary = &mut *vocabulary.lock().expect("nobody panics with the vocabulary");
        let arrivals = self.arrivals.entry(*heard).or_insert_with(|| vocabulary.arrivals(self.survivor, *heard));
        let inputs = self.states[state as usize].inputs(arrivals);
        inputs.into_iter().filter_map(|input| self.step(state, input, vocabulary)).collect()
    }

    fn known(heard: &Words) -> Words {
        *heard
    }

    fn size(&self) -> String {
        format!("{} states, {} steps", self.states.len(), self.steps.len())
    }
}
