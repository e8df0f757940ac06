//! The state space: what was said, and where each member may be.

use super::automaton::Automaton;
use super::gateway::Gateway;
use super::heard::Heard;
use super::region::{Bounds, Region};
use super::word::{REGIONS, TXNS, Words};
use crate::host::{Cluster, Departure};
use crate::schedule::{Move, Spoken, lines};
use crate::whereabouts::{self, Messages, SetId, Turn, Whereabouts};
use rhumb_commit::placement::Placement;
use stateright::{Model, Path, Property};
use std::sync::Arc;

/// Each member begins in the first state of its automaton.
const BEGINNING: SetId = 0;

type Saying = whereabouts::Saying<Words>;

/// The members of the cluster.
#[derive(Clone)]
pub struct Votes {
    regions: Arc<Whereabouts<Automaton<Region>>>,
    gateways: [Arc<Whereabouts<Automaton<Gateway>>>; TXNS],
}

/// A region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Its votes.
    pub said: Words,
    set: SetId,
}

/// A state of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub regions: [Place; REGIONS],
    gateways: [SetId; TXNS],
    /// All that was said but for votes.
    pub shared: Words,
}

/// A member, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    Region(usize),
    Gateway(usize),
}

/// A member says something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub member: Member,
    saying: Saying,
}

impl Votes {
    /// The product but for a departure.
    pub fn new(departure: Departure, bounds: Bounds) -> Votes {
        let cluster = Arc::new(Cluster { regions: REGIONS + TXNS, placement: Placement::everywhere(REGIONS), departure });
        let region = Automaton::of(Region::new(cluster.clone(), bounds));
        let gateway = |txn| Automaton::of(Gateway::new(txn, cluster.clone()));
        Votes { regions: Arc::new(Whereabouts::of(region, 1)), gateways: [0, 1].map(|txn| Arc::new(Whereabouts::of(gateway(txn), 1))) }
    }

    /// How large the members are, as a line.
    pub fn sizes(&self) -> String {
        format!("a region: {}; a gateway: {}", self.regions.sizes(), self.gateways[0].sizes())
    }

    fn heard(state: &State, member: Member) -> Heard {
        let mut votes = state.regions.map(|place| place.said);
        let own = if let Member::Region(region) = member { std::mem::take(&mut votes[region]) } else { Words::NONE };
        votes.sort_unstable();
        Heard { own, votes, shared: state.shared }
    }

    /// What a member may say next.
    pub fn sayings(&self, state: &State, member: Member) -> Vec<Saying> {
        let heard = Votes::heard(state, member);
        match member {
            Member::Region(region) => self.regions.sayings(state.regions[region].set, heard),
            Member::Gateway(txn) => self.gateways[txn].sayings(state.gateways[txn], heard),
        }
    }

    /// The members do what they can do without saying anything new.
    fn spread(&self, mut state: State) -> State {
        for region in 0..REGIONS {
            state.regions[region].set = self.regions.spread(state.regions[region].set, Votes::heard(&state, Member::Region(region)));
        }
        for txn in 0..TXNS {
            state.gateways[txn] = self.gateways[txn].spread(state.gateways[txn], Votes::heard(&state, Member::Gateway(txn)));
        }
        state
    }

    /// What comes of an action, where each region keeps its place.
    fn after(&self, last: &State, action: Action) -> State {
        let mut state = last.clone();
        let Saying { says, set } = action.saying;
        state.shared = state.shared.or(says.without(says.votes()));
        match action.member {
            Member::Region(place) => state.regions[place] = Place { said: last.regions[place].said.or(says.votes()), set },
            Member::Gateway(txn) => state.gateways[txn] = set,
        }
        self.spread(state)
    }

    /// A schedule that makes the members say what they say on this path, one line for each input.
    pub fn schedule(&self, path: Path<State, Action>) -> Vec<String> {
        let (mut regions, mut gateways) = ([const { Vec::new() }; REGIONS], [const { Vec::new() }; TXNS]);
        let mut spoken = Vec::new();
        // Which region is in which place.
        let mut who: [usize; REGIONS] = std::array::from_fn(|place| place);
        for (state, action) in path.into_vec() {
            let Some(action) = action else { break };
            let turn = |member| Turn {
                heard: Votes::heard(&state, member),
                says: if action.member == member { action.saying.says } else { Words::NONE },
            };
            (0..REGIONS).for_each(|place| regions[who[place]].push(turn(Member::Region(place))));
            (0..TXNS).for_each(|txn| gateways[txn].push(turn(Member::Gateway(txn))));
            let speaker = match action.member {
                Member::Region(place) => Member::Region(who[place]),
                gateway => gateway,
            };
            spoken.push(Spoken { member: format!("{speaker:?}"), words: format!("{:?}", action.saying.says) });
            let after = self.after(&state, action);
            let mut places: Vec<(Place, usize)> = after.regions.into_iter().zip(who).collect();
            places.sort_unstable();
            who = std::array::from_fn(|place| places[place].1);
        }
        let mut moves = Vec::new();
        for (region, turns) in regions.iter().enumerate() {
            let inputs = self.regions.inputs(0, turns).into_iter();
            moves.extend(inputs.map(|(time, input)| Move {
                time,
                member: format!("{:?}", Member::Region(region)),
                input: format!("{input:?}"),
            }));
        }
        for (txn, turns) in gateways.iter().enumerate() {
            let inputs = self.gateways[txn].inputs(0, turns).into_iter();
            moves.extend(inputs.map(|(time, input)| Move {
                time,
                member: format!("{:?}", Member::Gateway(txn)),
                input: format!("{input:?}"),
            }));
        }
        lines(moves, &spoken)
    }
}

impl Member {
    fn all() -> impl Iterator<Item = Member> {
        (0..REGIONS).map(Member::Region).chain((0..TXNS).map(Member::Gateway))
    }
}

impl Model for Votes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let place = Place { said: Words::NONE, set: BEGINNING };
        vec![self.spread(State { regions: [place; REGIONS], gateways: [BEGINNING; TXNS], shared: Words::NONE })]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for member in Member::all() {
            actions.extend(self.sayings(state, member).into_iter().map(|saying| Action { member, saying }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = self.after(last, action);
        // Regions are alike: states that differ only by a renaming of regions are one.
        state.regions.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Votes>> {
        super::properties::all()
    }
}
