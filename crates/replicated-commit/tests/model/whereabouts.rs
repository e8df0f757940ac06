//! All states in which a member may be, by what it has said and what others have said.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

/// The number of a set of states.
pub type SetId = u32;

/// What comes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step<I, W> {
    pub input: I,
    pub says: W,
    pub to: u32,
}

/// A member says something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saying<W> {
    pub says: W,
    /// Where the member may be right after that.
    pub set: SetId,
}

/// What a member says at one time, and what had been said by then; it says nothing at the times of others.
#[derive(Clone, Copy, Debug)]
pub struct Turn<H, W> {
    pub heard: H,
    pub says: W,
}

/// A set of messages.
pub trait Messages: Copy + Debug + Default + Ord + Hash {
    /// Those that are not in `other`.
    fn without(self, other: Self) -> Self;
}

/// A member as a finite automaton.
pub trait Automaton {
    type Input: Copy + Debug;
    type Words: Messages;
    /// What may have arrived at the member, and what it has said itself.
    type Heard: Copy + Eq + Hash;

    /// The steps from `state` that are possible.
    fn steps(&mut self, state: u32, heard: &Self::Heard) -> Vec<Step<Self::Input, Self::Words>>;

    /// What is nothing new if the member says it.
    fn known(heard: &Self::Heard) -> Self::Words;

    /// How large it is, as a line.
    fn size(&self) -> String;
}

/// A member as sets of states of its automaton. They are worked out as they are asked for, and once.
pub struct Whereabouts<A: Automaton>(Mutex<Tables<A>>);

/// What may be said from each set, by what was heard.
type Sayings<A> = HashMap<(SetId, <A as Automaton>::Heard), Vec<Saying<<A as Automaton>::Words>>>;

struct Tables<A: Automaton> {
    automaton: A,
    sets: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, SetId>,
    spread: HashMap<(SetId, A::Heard), SetId>,
    sayings: Sayings<A>,
}

impl<A: Automaton> Whereabouts<A> {
    /// A member that begins in one of the first `beginnings` states of its automaton: each is alone in the set of the same number.
    pub fn of(automaton: A, beginnings: u32) -> Whereabouts<A> {
        let (numbers, spread, sayings) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut tables = Tables { automaton, sets: Vec::new(), numbers, spread, sayings };
        (0..beginnings).for_each(|state| assert_eq!(tables.number(vec![state]), state));
        Whereabouts(Mutex::new(tables))
    }

    fn tables(&self) -> MutexGuard<'_, Tables<A>> {
        self.0.lock().expect("nobody panics with the tables")
    }

    /// How large all of it is, as a line.
    pub fn sizes(&self) -> String {
        let tables = self.tables();
        format!("{}, in {} sets", tables.automaton.size(), tables.sets.len())
    }

    /// Where a member of `set` may be without having said anything new.
    pub fn spread(&self, set: SetId, heard: A::Heard) -> SetId {
        let tables = &mut *self.tables();
        if let Some(known) = tables.spread.get(&(set, heard)) {
            return *known;
        }
        let mut states: BTreeSet<u32> = tables.sets[set as usize].iter().copied().collect();
        let mut open: Vec<u32> = states.iter().copied().collect();
        while let Some(state) = open.pop() {
            let steps = tables.automaton.steps(state, &heard).into_iter();
            let silent = steps.filter(|step| is_empty(step.says.without(A::known(&heard))));
            open.extend(silent.map(|step| step.to).filter(|to| states.insert(*to)));
        }
        let spread = tables.number(states.into_iter().collect());
        tables.spread.insert((set, heard), spread);
        spread
    }

    /// What a member of `set` may say next that is new.
    pub fn sayings(&self, set: SetId, heard: A::Heard) -> Vec<Saying<A::Words>> {
        let tables = &mut *self.tables();
        if let Some(known) = tables.sayings.get(&(set, heard)) {
            return known.clone();
        }
        let mut states: BTreeMap<A::Words, BTreeSet<u32>> = BTreeMap::new();
        for state in &tables.sets[set as usize] {
            for step in tables.automaton.steps(*state, &heard) {
                states.entry(step.says.without(A::known(&heard))).or_default().insert(step.to);
            }
        }
        states.remove(&A::Words::default());
        let saying = |(says, states): (A::Words, BTreeSet<u32>)| Saying { says, set: tables.number(states.into_iter().collect()) };
        let sayings: Vec<Saying<A::Words>> = states.into_iter().map(saying).collect();
        tables.sayings.insert((set, heard), sayings.clone());
        sayings
    }

    /// The fewest inputs by which a member that begins in the state `beginning` takes these turns, each with the number of its turn.
    pub fn inputs(&self, beginning: u32, turns: &[Turn<A::Heard, A::Words>]) -> Vec<(usize, A::Input)> {
        let automaton = &mut self.tables().automaton;
        let mut ways = BTreeMap::from([(beginning, Vec::new())]);
        for (time, Turn { heard, says }) in turns.iter().enumerate() {
            let mut open: BTreeSet<(usize, u32)> = ways.iter().map(|(state, way)| (way.len(), *state)).collect();
            let mut next = if is_empty(*says) { ways.clone() } else { BTreeMap::new() };
            while let Some((_, state)) = open.pop_first() {
                let way = ways[&state].clone();
                for step in automaton.steps(state, heard) {
                    let fresh = step.says.without(A::known(heard));
                    let longer = [&way[..], &[(time, step.input)]].concat();
                    let is_shorter = |ways: &BTreeMap<u32, Vec<_>>| ways.get(&step.to).is_none_or(|known| known.len() > longer.len());
                    if is_empty(fresh) && is_shorter(&ways) {
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

fn is_empty(words: impl Messages) -> bool {
    words == Default::default()
}

impl<A: Automaton> Tables<A> {
    fn number(&mut self, states: Vec<u32>) -> SetId {
        let fresh = self.sets.len() as SetId;
        let number = *self.numbers.entry(states.clone()).or_insert(fresh);
        if number == fresh {
            self.sets.push(states);
        }
        number
    }
}
