//! The state space: where each site is, and what was sent.

use super::atlas::Atlas;
use super::case::{Case, Change, Frail, Transaction};
use super::facts::Facts;
use super::machine::Event;
use super::message::Arrival;
use super::properties;
use crate::configuration::{Configuration, Epoch};
use crate::testing::site;
use rhumb_core::{Ballot, SiteId};
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) case: Arc<Case>,
    pub(super) atlas: Arc<Atlas>,
}

/// A state of the cluster. Machines and messages stand here by their numbers in the atlas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    machines: Vec<u32>,
    /// All that was sent and may arrive.
    network: BTreeSet<u32>,
    /// The transactions that clients have committed, or tried to.
    begun: BTreeSet<usize>,
    /// An operator has said who is lost. Clients of these hear nothing from then on, though they may be up.
    is_declared: bool,
    has_crashed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// An operator asks for the change of this number.
    Ask(usize),
    /// A client commits the transaction of this number.
    Commit(usize),
    /// A message arrives.
    Hear { at: usize, letter: u32 },
    /// All confirmations of commits that were sent to a site arrive there: before the last it does nothing.
    HearConfirmations { at: usize },
    /// The frail site crashes, and starts again.
    Crash { at: usize },
}

impl Cluster {
    pub(super) fn new(case: Case) -> Cluster {
        let case = Arc::new(case);
        Cluster { atlas: Arc::new(Atlas::new(case.clone())), case }
    }

    /// What is to be seen of each site.
    pub(super) fn facts(&self, state: &State) -> Vec<Arc<Facts>> {
        state.machines.iter().map(|machine| self.atlas.facts(*machine)).collect()
    }

    /// All configurations that somebody says were decided, and the first.
    pub(super) fn configurations(&self, state: &State) -> BTreeMap<Epoch, Vec<Configuration>> {
        let mut all = BTreeMap::from([(Epoch::FIRST, vec![Configuration::first(self.case.first.clone())])]);
        for letter in &state.network {
            if let Some(decided) = self.atlas.letter(*letter).message.decided() {
                all.entry(decided.epoch).or_default().push(decided.clone());
            }
        }
        all
    }

    /// True if a configuration is proposed in two ballots.
    pub(super) fn proposes_again(&self, state: &State) -> bool {
        let letters: Vec<_> = state.network.iter().map(|letter| self.atlas.letter(*letter)).collect();
        let mut ballots: Vec<(&Configuration, BTreeSet<Ballot>)> = Vec::new();
        for (ballot, configuration) in letters.iter().filter_map(|letter| letter.message.proposed()) {
            match ballots.iter_mut().find(|(known, _)| *known == configuration) {
                Some((_, of_it)) => drop(of_it.insert(ballot)),
                None => ballots.push((configuration, BTreeSet::from([ballot]))),
            }
        }
        ballots.iter().any(|(_, of_it)| of_it.len() > 1)
    }

    /// True if the frail site has crashed.
    pub(super) fn has_crashed(&self, state: &State) -> bool {
        state.has_crashed
    }

    /// True if that is the frail site, and it has not crashed yet.
    fn is_before_crash(&self, state: &State, at: usize) -> bool {
        !state.has_crashed && self.case.frail.is_some_and(|frail| frail.site == at)
    }

    /// True if all whom the message reaches have left the epoch in which it counts.
    fn is_over(&self, state: &State, letter: u32) -> bool {
        let message = &self.atlas.letter(letter).message;
        let has_left = |epoch: Epoch| message.to.iter().all(|to| self.atlas.facts(state.machines[usize::from(to.region.0)]).epoch > epoch);
        message.epoch().is_some_and(has_left)
    }

    /// True if that site is declared lost.
    pub(super) fn is_lost(&self, state: &State, at: usize) -> bool {
        state.is_declared && self.case.lost().contains(&site(at as u16))
    }

    /// Something happens at a site, and whatever arrives at once arrives. True if that makes a difference.
    fn happens(&self, state: &mut State, at: usize, event: Event) -> bool {
        let mut events = VecDeque::from([(at, event)]);
        let mut makes_difference = false;
        while let Some((at, event)) = events.pop_front() {
            let machine = state.machines[at];
            let step = self.atlas.step(machine, event.clone());
            let changes = self.atlas.facts(machine).rest != self.atlas.facts(step.to).rest;
            let mut says_new = false;
            for number in &step.sent {
                let letter = self.atlas.letter(*number);
                match letter.arrival {
                    Arrival::Never => {}
                    Arrival::Whenever => says_new |= !self.is_over(state, *number) && state.network.insert(*number),
                    Arrival::AtOnce => {
                        let reached = letter.message.to.iter().map(|to| usize::from(to.region.0));
                        let is_cut = |at: usize| {
                            letter.message.is_of_transaction() && self.is_lost(state, at)
                                || letter.message.answers_pull() && self.is_before_crash(state, at)
                        };
                        let reached: Vec<usize> = reached.filter(|at| !is_cut(*at)).collect();
                        events.extend(reached.into_iter().map(|to| (to, Event::Hear(vec![*number]))));
                    }
                }
            }
            if let Event::Hear(numbers) = &event
                && step.sent.is_empty()
                && !changes
            {
                // Who cannot answer yet may later.
                let open = numbers.iter().filter(|number| self.atlas.letter(**number).message.is_pull());
                open.for_each(|number| makes_difference |= state.network.insert(*number));
            }
            if changes || says_new {
                state.machines[at] = step.to;
                makes_difference = true;
            }
        }
        makes_difference
    }

    /// What comes of the first epoch if its transaction and then its change come about `there`, and the others hear nothing.
    fn first_epoch_at(&self, mut state: State, there: &BTreeSet<usize>) -> State {
        while there.iter().any(|at| self.facts(&state)[*at].epoch == Epoch::FIRST) {
            let mut actions = Vec::new();
            self.actions(&state, &mut actions);
            let is_there = |action: &Action| match action {
                Action::Ask(_) | Action::Commit(_) => true,
                Action::Hear { at, .. } | Action::HearConfirmations { at } => there.contains(at),
                Action::Crash { .. } => false,
            };
            // What was sent arrives before anything else is begun, and a client begins before an operator.
            let mut next = actions.into_iter().rev().filter(is_there).filter_map(|action| self.next_state(&state, action));
            state = next.next().expect("the change comes about there");
        }
        state
    }

    /// The messages that may arrive at a site now.
    fn letters(&self, state: &State, at: usize) -> Vec<u32> {
        let may_arrive = |number: &&u32| {
            let message = &self.atlas.letter(**number).message;
            message.to.contains(&site(at as u16)) && !(message.is_of_transaction() && self.is_lost(state, at))
        };
        state.network.iter().filter(may_arrive).copied().collect()
    }
}

impl Model for Cluster {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let machines = (0..self.case.sites()).map(|at| self.atlas.beginning(at)).collect();
        let beginning = State { machines, network: BTreeSet::new(), begun: BTreeSet::new(), is_declared: false, has_crashed: false };
        match &self.case.first_ended_at[..] {
            [] => vec![beginning],
            ways => ways.iter().map(|there| self.first_epoch_at(beginning.clone(), there)).collect(),
        }
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let facts = self.facts(state);
        let is_of_now = |(_, change): &(usize, &Change)| facts[change.at].epoch == change.epoch;
        actions.extend(self.case.changes.iter().enumerate().filter(is_of_now).map(|(number, _)| Action::Ask(number)));
        let may_begin = |(number, transaction): &(usize, &Transaction)| {
            let Transaction { gateway, epoch } = **transaction;
            !state.begun.contains(number) && facts[gateway].epoch == epoch && facts[gateway].is_open && !self.is_lost(state, gateway)
        };
        actions.extend(self.case.transactions.iter().enumerate().filter(may_begin).map(|(number, _)| Action::Commit(number)));
        let gets_something = |frail: &Frail| !facts[frail.site].is_open || facts[frail.site].holds < facts[frail.site].epoch;
        let may_crash = |frail: &Frail| !state.has_crashed && gets_something(frail);
        actions.extend(self.case.frail.filter(may_crash).map(|frail| Action::Crash { at: frail.site }));
        for at in 0..self.case.sites() {
            let letters = self.letters(state, at).into_iter();
            let (confirmations, others): (Vec<u32>, Vec<u32>) =
                letters.partition(|letter| self.atlas.letter(*letter).message.confirms_commit());
            actions.extend((!confirmations.is_empty()).then_some(Action::HearConfirmations { at }));
            actions.extend(others.into_iter().map(|letter| Action::Hear { at, letter }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let makes_difference = match action {
            Action::Ask(number) => {
                let Change { at, goal, .. } = &self.case.changes[number];
                state.is_declared |= !goal.lost.is_empty();
                self.happens(&mut state, *at, Event::Ask(number))
            }
            Action::Commit(number) => {
                state.begun.insert(number);
                self.happens(&mut state, self.case.transactions[number].gateway, Event::Commit(number))
            }
            Action::Hear { at, letter } => self.happens(&mut state, at, Event::Hear(vec![letter])),
            Action::HearConfirmations { at } => {
                let mut confirmations = self.letters(&state, at);
                confirmations.retain(|letter| self.atlas.letter(*letter).message.confirms_commit());
                self.happens(&mut state, at, Event::Hear(confirmations))
                    && self.facts(last)[at].unresolved != self.facts(&state)[at].unresolved
            }
            Action::Crash { at } => {
                state.has_crashed = true;
                self.happens(&mut state, at, Event::Crash)
            }
        };
        state.network = state.network.iter().copied().filter(|letter| !self.is_over(&state, *letter)).collect();
        makes_difference.then_some(state)
    }

    fn properties(&self) -> Vec<Property<Cluster>> {
        let mut all = properties::safety();
        let Case { transactions, changes, frail, .. } = &*self.case;
        let ends_later = changes.iter().any(|change| change.epoch > Epoch::FIRST);
        all.extend((transactions.len() == 1 && !ends_later).then(properties::of_a_transaction).into_iter().flatten());
        all.extend(self.case.has_rivals().then(properties::of_rivals).into_iter().flatten());
        all.extend(ends_later.then(properties::of_two_epochs).into_iter().flatten());
        all.extend(frail.is_some().then(properties::of_a_crash).into_iter().flatten());
        all
    }

    fn format_action(&self, action: &Action) -> String {
        match action {
            Action::Hear { at, letter } => format!("r{at}.0 hears {}", self.atlas.letter(*letter).message),
            other => format!("{other:?}"),
        }
    }
}

/// These sites.
pub(super) fn sites(of: impl IntoIterator<Item = usize>) -> BTreeSet<SiteId> {
    of.into_iter().map(|at| site(at as u16)).collect()
}
