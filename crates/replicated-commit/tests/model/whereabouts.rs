//! All states in which a member may be, by what it has said and what others have said.

use crate::automaton::{Automaton, Machine, Step};
use crate::heard::Heard;
use crate::word::Words;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

/// The number of a set of states.
pub type SetId = u32;

/// A member says something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saying {
    pub says: Words,
    /// Where the member may be right after that.
    pub set: SetId,
}

/// A member as sets of states of its automaton. They are worked out as they are asked for, and once.
pub struct Whereabouts<M: Machine> {
    automaton: Automaton<M>,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    sets: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, SetId>,
    spread: HashMap<(SetId, Heard), SetId>,
    sayings: HashMap<(SetId, Heard), Vec<Saying>>,
}

/// The set that holds the first state alone.
pub const BEGINNING: SetId = 0;

impl<M: Machine> Whereabouts<M> {
    pub fn of(machine: M) -> Whereabouts<M> {
        let mut tables = Tables::default();
        assert_eq!(tables.number(vec![0]), BEGINNING);
        Whereabouts { automaton: Automaton::of(machine), tables: Mutex::new(tables) }
    }

    /// How large all of it is, as a line.
    pub fn sizes(&self) -> String {
        let sets = self.tables.lock().expect("nobody panics with the tables").sets.len();
        format!("{} states, {} that differ, in {sets} sets", self.automaton.found, self.automaton.steps.len())
    }

    /// The steps from `state` that are possible.
    fn steps(&self, state: u32, heard: &Heard) -> impl Iterator<Item = &Step<M::Input>> {
        self.automaton.steps[state as usize].iter().filter(|step| M::is_possible(&step.input, heard))
    }

    /// Where a member of `set` may be without having said anything new.
    pub fn spread(&self, set: SetId, heard: Heard) -> SetId {
        let mut tables = self.tables.lock().expect("nobody panics with the tables");
        if let Some(known) = tables.spread.get(&(set, heard)) {
            return *known;
        }
        let mut states: BTreeSet<u32> = tables.sets[set as usize].iter().copied().collect();
        let mut open: Vec<u32> = states.iter().copied().collect();
        while let Some(state) = open.pop() {
            let silent = self.steps(state, &heard).filter(|step| step.says.without(heard.known()).is_empty());
            open.extend(silent.map(|step| step.to).filter(|to| states.insert(*to)));
        }
        let spread = tables.number(states.into_iter().collect());
        tables.spread.insert((set, heard), spread);
        spread
    }

    /// What a member of `set` may say next that is new.
    pub fn sayings(&self, set: SetId, heard: Heard) -> Vec<Saying> {
        let mut tables = self.tables.lock().expect("nobody panics with the tables");
        if let Some(known) = tables.sayings.get(&(set, heard)) {
            return known.clone();
        }
        let mut states: BTreeMap<Words, BTreeSet<u32>> = BTreeMap::new();
        for step in tables.sets[set as usize].iter().flat_map(|state| self.steps(*state, &heard)) {
            states.entry(step.says.without(heard.known())).or_default().insert(step.to);
        }
        states.remove(&Words::NONE);
        let mut saying = |(says, states): (Words, BTreeSet<u32>)| Saying { says, set: tables.number(states.into_iter().collect()) };
        let sayings: Vec<Saying> = states.into_iter().map(&mut saying).collect();
        tables.sayings.insert((set, heard), sayings.clone());
        sayings
    }

    /// The fewest inputs by which a member says this, each time with the number of the time. It says nothing new at the times of others.
    pub fn inputs(&self, times: &[(Heard, Words)]) -> Vec<(usize, M::Input)> {
        let mut ways = BTreeMap::from([(0, Vec::new())]);
        for (time, (heard, says)) in times.iter().enumerate() {
            let mut open: BTreeSet<(usize, u32)> = ways.iter().map(|(state, way)| (way.len(), *state)).collect();
            let mut next = if says.is_empty() { ways.clone() } else { BTreeMap::new() };
            while let Some((_, state)) = open.pop_first() {
                let way = ways[&state].clone();
                for step in self.steps(state, heard) {
                    let fresh = step.says.without(heard.known());
                    let longer = [&way[..], &[(time, step.input)]].concat();
                    let is_shorter = |ways: &BTreeMap<u32, Vec<_>>| ways.get(&step.to).is_none_or(|known| known.len() > longer.len());
                    if fresh.is_empty() && is_shorter(&ways) {
                        open.insert((longer.len(), step.to));
                        ways.insert(step.to, longer.clone());
                    }
                    if fresh == *says && is_shorter(&next) {
                        next.insert(step.to, longer);
                    }
                }
            }
            ways = next;
        }
        ways.into_values().min_by_key(Vec::len).expect("what was said could be said")
    }
}

impl Tables {
    fn number(&mut self, states: Vec<u32>) -> SetId {
        let fresh = self.sets.len() as SetId;
        let number = *self.numbers.entry(states.clone()).or_insert(fresh);
        if number == fresh {
            self.sets.push(states);
        }
        number
    }
}
