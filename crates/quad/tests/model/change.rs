//! A change of configuration as a state space: cores 0, 1 and 2 and slave 3 become cores 1, 2 and 3 and slave 0, while one transaction
//! prepares and commits. The conditions on sets of sites are the product's own.
//!
//! What was said once can be heard at any later time, in any order, by some and never by others: an action needs only that it was
//! said. So loss, delay and doubling are all there, and a site that crashes is one that does nothing more.

use rhumb_core::SiteId;
use rhumb_quad::quorums::Quorums;
use rhumb_quad::{Configuration, carries};
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet};

const SITES: usize = 4;

/// What holds of the transaction in the new epoch.
pub const LASTING: &str = "what was acknowledged or shown is in the next epoch, and what was aborted is not";
/// Consensus.
pub const AGREEMENT: &str = "one configuration is decided";
/// Fencing.
pub const FENCED: &str = "no quorum of the old epoch is left once the next is decided";

/// One rule that is broken, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    AsIs,
    /// A commit is shown as soon as it stands at one site.
    ShownUnsettled,
    /// Sealed sites do not report commits that are not settled.
    CommitsNotCarried,
    /// Cores to be do not get what the commits wrote that are carried.
    CarriedNotFetched,
    /// Cores to be count as reconciled without having copied anything.
    Unreconciled,
    /// A sealed site goes on with the old epoch.
    OldEpochServed,
    /// An acceptor takes part in ballots below the one that it has promised.
    PromiseForgotten,
    /// A mover proposes what it likes, whatever was accepted before.
    AcceptedIgnored,
    /// A configuration counts as decided once one site has accepted it.
    MinorityActivates,
    /// Any number of sites may be declared lost, and the rest goes on.
    LossUnbounded,
}

#[derive(Clone, Debug)]
pub struct Change {
    pub rule: Rule,
    /// Where the transaction writes.
    pub writers: &'static [usize],
    /// Attempts to change, one ballot each.
    pub movers: usize,
    /// Whom an operator declares lost for the first attempt; there are none for the others, which have not heard of it. From then on they
    /// serve nobody, but may still take part in other attempts: they are out of reach, and not dead.
    pub lost: &'static [usize],
}

/// How far the transaction is at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum There {
    Nothing,
    Prepared,
    Committed,
    Shown,
}

/// What is proposed: whose wish it is, if the transaction is carried, and who holds the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    mover: usize,
    carried: bool,
    holders: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    there: There,
    /// It was told by a sealed site what the transaction wrote, which that has committed and not shown.
    aside: bool,
    /// The ballot that it is sealed in; zero: none.
    promised: u8,
    accepted: Option<(u8, Value)>,
}

/// What a sealed site reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    committed: bool,
    accepted: Option<(u8, Value)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    reports: [Option<Report>; SITES],
    /// Who copied from those who reported when the attempt first could go on.
    sources: u8,
    done: u8,
    proposed: Option<Value>,
    accepted: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    sites: [Replica; SITES],
    /// Who has said that it is prepared, and that it has committed.
    prepared: u8,
    committed: u8,
    /// Who has shown the transaction in the old epoch.
    shown: bool,
    decided: bool,
    aborted: bool,
    acknowledged: bool,
    /// The operator has said who is lost.
    declared: bool,
    attempts: Vec<Attempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Prepare(usize),
    Abort,
    Decide,
    Commit(usize),
    Acknowledge,
    Show(usize),
    Seal(usize, usize),
    Reconcile(usize, usize),
    Propose(usize),
    Accept(usize, usize),
    Declare,
}

fn site(n: usize) -> SiteId {
    SiteId::new(n as u16, 0)
}

fn sites(mask: u8) -> BTreeSet<SiteId> {
    (0..SITES).filter(|n| mask >> n & 1 == 1).map(site).collect()
}

fn quorums(cores: &[usize]) -> Quorums {
    let cores: Vec<SiteId> = cores.iter().copied().map(site).collect();
    let preference: BTreeMap<SiteId, Vec<SiteId>> = (0..SITES).map(|n| (site(n), cores.clone())).collect();
    Quorums::Cores { cores, preference }
}

fn old() -> Configuration {
    Configuration::first(quorums(&[0, 1, 2]))
}

fn reported(attempt: &Attempt) -> u8 {
    (0..SITES).filter(|n| attempt.reports[*n].is_some()).fold(0, |mask, n| mask | 1 << n)
}

impl Change {
    fn all_writers(&self) -> u8 {
        self.writers.iter().fold(0, |mask, n| mask | 1 << n)
    }

    /// True if the old epoch goes on at `n`.
    fn serves(&self, state: &State, n: usize) -> bool {
        let is_lost = state.declared && self.lost.contains(&n);
        (state.sites[n].promised == 0 || self.rule == Rule::OldEpochServed) && !is_lost
    }

    /// Whom attempt `no` does without by the operator's word.
    fn lost(&self, no: usize) -> BTreeSet<SiteId> {
        if no == 0 { self.lost.iter().copied().map(site).collect() } else { BTreeSet::new() }
    }

    /// The cores that attempt `no` is for.
    fn cores(&self, no: usize) -> Vec<usize> {
        (1..SITES).filter(|n| !self.lost(no).contains(&site(*n))).collect()
    }

    fn is_quorate(&self, no: usize, promised: u8) -> bool {
        match self.rule {
            Rule::LossUnbounded => old().members().is_subset(&sites(promised).union(&self.lost(no)).copied().collect()),
            _ => old().is_quorate(&sites(promised), &self.lost(no)),
        }
    }

    /// True if attempt `no` may go on with what was reported.
    fn may_go_on(&self, no: usize, attempt: &Attempt) -> bool {
        match self.rule {
            Rule::LossUnbounded => self.is_quorate(no, reported(attempt)),
            _ => old().may_be_left(&sites(reported(attempt)), &self.lost(no)),
        }
    }

    fn decided(&self, state: &State) -> Vec<Value> {
        let decided = |(no, attempt): &(usize, &Attempt)| match self.rule {
            Rule::MinorityActivates => attempt.accepted != 0,
            _ => self.is_quorate(*no, attempt.accepted),
        };
        state.attempts.iter().enumerate().filter(decided).filter_map(|(_, attempt)| attempt.proposed).collect()
    }

    /// True if the transaction is part of what the new epoch starts from.
    fn is_part(&self, state: &State, value: Value) -> bool {
        value.carried || (0..SITES).any(|n| value.holders >> n & 1 == 1 && state.sites[n].there == There::Shown)
    }

    fn is_lasting(&self, state: &State) -> bool {
        self.decided(state).into_iter().all(|value| {
            // Every read quorum of the new epoch has a holder, and all holders hold the same.
            let carried = |n: usize| value.carried && (state.sites[n].aside || state.sites[n].there == There::Committed);
            let held = |n: usize| value.holders >> n & 1 == 0 || carried(n) || state.sites[n].there == There::Shown;
            let must = state.acknowledged || state.shown;
            (!must || (0..SITES).all(held)) && !(state.aborted && self.is_part(state, value))
        })
    }

    fn is_fenced(&self, state: &State) -> bool {
        let sealed = (0..SITES).filter(|n| !self.serves(state, *n)).fold(0, |mask, n| mask | 1 << n);
        self.decided(state).is_empty() || self.rule == Rule::OldEpochServed || old().is_fenced_by(&sites(sealed))
    }

    /// What an attempt may propose.
    fn proposal(&self, mover: usize, attempt: &Attempt) -> Option<Value> {
        let accepted = attempt.reports.iter().flatten().filter_map(|report| report.accepted).max_by_key(|(ballot, _)| *ballot);
        match accepted.filter(|_| self.rule != Rule::AcceptedIgnored) {
            Some((_, value)) => old().is_quorate(&sites(reported(attempt)), &BTreeSet::new()).then_some(value),
            None => {
                let is_ready = attempt.sources > 0 && carries(&quorums(&self.cores(mover)), &sites(attempt.done));
                let carried = (0..SITES).any(|n| attempt.reports[n].is_some_and(|report| report.committed));
                is_ready.then_some(Value { mover, carried, holders: attempt.done })
            }
        }
    }
}

impl Model for Change {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let attempt = Attempt { reports: [None; SITES], sources: 0, done: 0, proposed: None, accepted: 0 };
        vec![State {
            sites: [Replica { there: There::Nothing, aside: false, promised: 0, accepted: None }; SITES],
            prepared: 0,
            committed: 0,
            shown: false,
            decided: false,
            aborted: false,
            acknowledged: false,
            declared: false,
            attempts: vec![attempt; self.movers],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !state.decided && !state.aborted {
            actions.push(Action::Abort);
            if state.prepared == self.all_writers() {
                actions.push(Action::Decide);
            }
        }
        if state.decided && !state.acknowledged && state.committed == self.all_writers() {
            actions.push(Action::Acknowledge);
        }
        for &n in self.writers.iter().filter(|n| self.serves(state, **n)) {
            match state.sites[n].there {
                There::Nothing => actions.push(Action::Prepare(n)),
                There::Prepared if state.decided => actions.push(Action::Commit(n)),
                There::Committed if state.committed == self.all_writers() || self.rule == Rule::ShownUnsettled => {
                    actions.push(Action::Show(n))
                }
                _ => {}
            }
        }
        for (no, attempt) in state.attempts.iter().enumerate() {
            let ballot = no as u8 + 1;
            let lost = self.lost(no);
            if !lost.is_empty() && !state.declared {
                actions.push(Action::Declare);
                continue;
            }
            let is_free = |n: usize| state.sites[n].promised <= ballot || self.rule == Rule::PromiseForgotten;
            let takes_part = |n: &usize| is_free(*n) && !lost.contains(&site(*n));
            for n in (0..SITES).filter(takes_part) {
                // A mover that has gone on hears no more reports.
                if attempt.reports[n].is_none() && attempt.sources == 0 && attempt.proposed.is_none() {
                    actions.push(Action::Seal(no, n));
                }
                if attempt.proposed.is_some() && attempt.accepted >> n & 1 == 0 {
                    actions.push(Action::Accept(no, n));
                }
            }
            let may_go_on = attempt.sources > 0 || self.may_go_on(no, attempt);
            let has_choice = attempt.reports.iter().flatten().all(|report| report.accepted.is_none()) || self.rule == Rule::AcceptedIgnored;
            if attempt.proposed.is_none() && may_go_on && has_choice {
                // One after the other: what is copied from sealed sites does not depend on when.
                actions.extend(self.cores(no).into_iter().find(|n| attempt.done >> n & 1 == 0).map(|n| Action::Reconcile(no, n)));
            }
            if attempt.proposed.is_none() && self.proposal(no, attempt).is_some() {
                actions.push(Action::Propose(no));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Prepare(n) => {
                state.sites[n].there = There::Prepared;
                state.prepared |= 1 << n;
            }
            Action::Abort => state.aborted = true,
            Action::Decide => state.decided = true,
            Action::Commit(n) => {
                state.sites[n].there = There::Committed;
                state.committed |= 1 << n;
            }
            Action::Acknowledge => state.acknowledged = true,
            Action::Show(n) => {
                state.sites[n].there = There::Shown;
                state.shown = true;
            }
            Action::Seal(no, n) => {
                let committed = state.sites[n].there == There::Committed && self.rule != Rule::CommitsNotCarried;
                state.attempts[no].reports[n] = Some(Report { committed, accepted: state.sites[n].accepted });
                state.sites[n].promised = no as u8 + 1;
            }
            Action::Reconcile(no, n) => {
                let attempt = &mut state.attempts[no];
                attempt.sources = reported(attempt);
                attempt.done |= 1 << n;
                let is_told = |what| (0..SITES).any(|from| attempt.sources >> from & 1 == 1 && state.sites[from].there == what);
                let (is_shown, is_committed) = (is_told(There::Shown), is_told(There::Committed));
                if is_shown && self.rule != Rule::Unreconciled {
                    state.sites[n].there = There::Shown;
                }
                state.sites[n].aside |= is_committed && self.rule != Rule::CarriedNotFetched;
            }
            Action::Propose(no) => state.attempts[no].proposed = self.proposal(no, &state.attempts[no]),
            Action::Declare => state.declared = true,
            Action::Accept(no, n) => {
                let ballot = no as u8 + 1;
                state.sites[n].promised = ballot;
                state.sites[n].accepted = state.attempts[no].proposed.map(|value| (ballot, value));
                state.attempts[no].accepted |= 1 << n;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LASTING, |model: &Change, state: &State| model.is_lasting(state)),
            Property::always(AGREEMENT, |model: &Change, state: &State| model.decided(state).windows(2).all(|pair| pair[0] == pair[1])),
            Property::always(FENCED, |model: &Change, state: &State| model.is_fenced(state)),
            Property::sometimes("a commit is carried over", |model: &Change, state: &State| {
                model.decided(state).iter().any(|value| value.carried)
            }),
            Property::sometimes("an acknowledged transaction is copied", |model: &Change, state: &State| {
                state.acknowledged && model.decided(state).iter().any(|value| !value.carried && model.is_part(state, *value))
            }),
            Property::sometimes("a decision is undone", |model: &Change, state: &State| {
                state.decided && model.decided(state).iter().any(|value| !model.is_part(state, *value))
            }),
        ]
    }
}
