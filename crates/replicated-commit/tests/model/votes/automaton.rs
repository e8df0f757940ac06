//! A member of the cluster as a finite automaton: found by running it, as states that no sequence of inputs can tell apart.

use super::heard::Heard;
use super::word::Words;
use crate::digest::digest;
use crate::whereabouts;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

/// A member that takes inputs one after another.
pub trait Machine: Clone + Debug {
    type Input: Copy + Debug + Ord;

    /// What may happen to it now.
    fn inputs(&self) -> Vec<Self::Input>;

    /// Takes an input; returns what it says to others. None if that input makes no difference now.
    fn take(&mut self, input: Self::Input) -> Option<Words>;

    /// True if what others have said can bring that input about.
    fn is_possible(input: &Self::Input, heard: &Heard) -> bool;
}

/// What comes of an input.
type Step<I> = whereabouts::Step<I, Words>;

/// Fields that nothing which happens in the model reads. `asked` is for the ticks of a region, which has none. A `tally` holds a region's own vote,
/// which stands beside it, and the votes by which an attempt was decided, which nobody counts again. The `last` token that was given need only
/// differ from all others, and so does the `last` timestamp of a clock that issues none any more.
const UNREAD: [&str; 3] = ["asked", "tally", "last"];

/// What can become of a machine.
#[derive(Debug)]
pub struct Automaton<M: Machine> {
    /// How many states were found, before those that nothing can tell apart became one.
    found: usize,
    /// The steps from each state. It begins in the first.
    steps: Vec<Vec<Step<M::Input>>>,
}

impl<M: Machine> Automaton<M> {
    pub fn of(machine: M) -> Automaton<M> {
        let all = explore(machine);
        let classes = classes(&all);
        let mut steps = Vec::new();
        for (state, class) in classes.iter().enumerate() {
            // Classes are numbered in the order of their first states.
            if *class as usize == steps.len() {
                steps.push(by_class(&all[state], &classes));
            }
        }
        Automaton { found: all.len(), steps }
    }
}

impl<M: Machine> whereabouts::Automaton for Automaton<M> {
    type Input = M::Input;
    type Words = Words;
    type Heard = Heard;

    fn steps(&mut self, state: u32, heard: &Heard) -> Vec<Step<M::Input>> {
        self.steps[state as usize].iter().filter(|step| M::is_possible(&step.input, heard)).copied().collect()
    }

    fn known(heard: &Heard) -> Words {
        heard.known()
    }

    fn size(&self) -> String {
        format!("{} states, {} that differ", self.found, self.steps.len())
    }
}

/// The steps from each state of a machine, in the order in which states are found.
fn explore<M: Machine>(machine: M) -> Vec<Vec<Step<M::Input>>> {
    let mut numbers = BTreeMap::from([(digest(&machine, &UNREAD), 0)]);
    let mut open = VecDeque::from([machine]);
    let mut steps = Vec::new();
    while let Some(machine) = open.pop_front() {
        let mut of_state = Vec::new();
        for input in machine.inputs() {
            let mut next = machine.clone();
            let Some(says) = next.take(input) else { continue };
            let fresh = numbers.len() as u32;
            let to = *numbers.entry(digest(&next, &UNREAD)).or_insert(fresh);
            if to == fresh {
                open.push_back(next);
            }
            of_state.push(Step { input, says, to });
        }
        steps.push(of_state);
    }
    steps
}

/// The class of each state. Classes are split until all states of one answer each input alike, and end in one class by it.
fn classes<I: Copy + Ord>(steps: &[Vec<Step<I>>]) -> Vec<u32> {
    let (mut classes, mut count) = (vec![0; steps.len()], 1);
    loop {
        let mut numbers = BTreeMap::new();
        let number = |(class, steps): (&u32, &Vec<Step<I>>)| {
            let fresh = numbers.len() as u32;
            *numbers.entry((*class, by_class(steps, &classes))).or_insert(fresh)
        };
        classes = classes.iter().zip(steps).map(number).collect();
        if numbers.len() == count {
            return classes;
        }
        count = numbers.len();
    }
}

/// The steps from a state, to classes.
fn by_class<I: Copy + Ord>(steps: &[Step<I>], classes: &[u32]) -> Vec<Step<I>> {
    let mut steps: Vec<Step<I>> = steps.iter().map(|step| Step { to: classes[step.to as usize], ..*step }).collect();
    steps.sort_unstable();
    steps
}
