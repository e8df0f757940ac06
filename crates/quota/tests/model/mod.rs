//! Avantan as a state space: three sites, the product's own [`Protocol`] and [`Account`](rhumb_quota::account::Account) at
//! each, every failure at every moment.
//!
//! ```text
//!   Start    ─▶ a site leads a redistribution             Resend   ─▶ a leader makes do with the answers it has, or a cohort asks
//!   Deliver  ─▶ a site takes a message                    Timeout ─▶ a leader gives up, or a cohort acts itself
//!   Stall    ─▶ nothing that a site writes is synced      Crash   ─▶ a site starts again from what is on its disk
//!   Acquire, Release ─▶ a client takes a token, or brings it back
//! ```
//!
//! The network is a set that only grows: what was once sent can be delivered at any later time, again, or never. That
//! covers delay, reordering, duplication and loss. What happens else is bounded by a [`Budget`].
//!
//! Durability is that of the site actor: the tokens, the protocol's state and the promises of a step reach the disk
//! together; notes leave before. After a crash a prefix of the steps is on disk, so it is enough to choose a moment from
//! which on nothing is synced any more, and a later one for the crash.
//!
//! Simplifications that leave no behaviour out:
//!
//! - Patience is not counted: a timeout may happen at any time. One that has no effect is left out.
//! - A crashed site is back at once: being down is the same as hearing nothing.
//!
//! States are small because all they hold is numbered ([`Tables`]), and what a site does with an input is worked out once.

// What is numbered has no order, and a checker shares its model with its threads.
#![allow(clippy::disallowed_types)]

mod part;
mod port;
mod properties;
mod tables;

use part::Input;
pub use properties::{ASSERTIONS, CONSERVATION, MEMBERSHIP};

use part::{Part, Step};
use rhumb_core::{Rules, SiteId};
use rhumb_quota::planted::Planted;
use rhumb_quota::spec::{ProtocolKind, Reallocation};
use stateright::{Model, Property};
use std::sync::{Arc, Mutex};
use tables::{DecisionId, EnvelopeId, PartId, Tables};

/// The number of sites.
pub const SITES: usize = 3;

/// What each site is like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens {
    /// Left in the beginning.
    pub left: u64,
    /// Held by clients in the beginning.
    pub held: u64,
    /// Of those left, it keeps as many back from an offer.
    pub keeps: u64,
    /// What it wants in each redistribution.
    pub wants: u64,
    /// What it has to take out of circulation in the beginning.
    pub owes: u64,
}

/// How often what may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Redistributions that each site begins.
    pub starts: [u8; SITES],
    /// Leaders that make do, cohorts that ask.
    pub resends: u8,
    /// Timeouts that each site suffers.
    pub timeouts: [u8; SITES],
    /// Crashes of each site.
    pub crashes: [u8; SITES],
    /// Tokens acquired or released.
    pub uses: u8,
}

/// The state space.
pub struct Avantan {
    pub kind: ProtocolKind,
    pub tokens: [Tokens; SITES],
    pub budget: Budget,
    pub rules: Rules<Planted>,
    pub tables: Mutex<Tables>,
}

/// What a state of the model holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub parts: [PartId; SITES],
    /// What was sent, in ascending order.
    pub network: Vec<EnvelopeId>,
    /// Lists that some site has found decided, in ascending order.
    pub decided: Vec<DecisionId>,
    pub budget: Budget,
    /// An assertion of the product failed.
    pub broken: bool,
}

/// Something that happens at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    pub site: usize,
    pub input: Input,
}

/// The site of that index.
pub fn site(index: usize) -> SiteId {
    SiteId::new(index as u16, 0)
}

impl Avantan {
    /// The state space of that version, where all rules hold.
    pub fn new(kind: ProtocolKind, tokens: [Tokens; SITES], budget: Budget) -> Avantan {
        Avantan { kind, tokens, budget, rules: Rules::HOLD, tables: Mutex::default() }
    }

    /// Tokens that there are for ever.
    pub fn limit(&self) -> u64 {
        self.tokens.iter().map(|tokens| tokens.left + tokens.held - tokens.owes).sum()
    }

    /// Looks things up by their numbers.
    pub fn with_tables<T>(&self, look: impl FnOnce(&mut Tables) -> T) -> T {
        look(&mut self.tables.lock().expect("no check panics while it looks"))
    }

    /// The step of a part, worked out now or before.
    fn step(&self, action: Action, part: PartId) -> Arc<Step> {
        self.with_tables(|tables| {
            if let Some(step) = tables.steps.get(&(part, action.input)) {
                return Arc::clone(step);
            }
            let before = Arc::clone(tables.part(part));
            let message = match action.input {
                Input::Deliver(envelope) => Some(tables.envelope(envelope).clone()),
                _ => None,
            };
            let taken = before.take(self, action, message);
            let step = Arc::new(Step {
                part: tables.number_part(taken.part),
                sent: taken.sent.into_iter().map(|envelope| tables.number_envelope(envelope)).collect(),
                decided: taken.decided.map(|decision| tables.number_decision(decision)),
                effective: taken.effective,
                broken: taken.broken,
            });
            tables.steps.insert((part, action.input), Arc::clone(&step));
            step
        })
    }
}

impl Budget {
    /// Pays for `input` at `site`; none if there is nothing left for it.
    fn pay(mut self, site: usize, input: Input) -> Option<Budget> {
        let port = match input {
            Input::Deliver(_) | Input::Stall => return Some(self),
            Input::Start => &mut self.starts[site],
            Input::Resend => &mut self.resends,
            Input::Timeout => &mut self.timeouts[site],
            Input::Crash => &mut self.crashes[site],
            Input::Acquire | Input::Release => &mut self.uses,
        };
        *port = port.checked_sub(1)?;
        Some(self)
    }
}

impl Model for Avantan {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let parts = std::array::from_fn(|index| {
            let part = Part::new(self, index);
            self.with_tables(|tables| tables.number_part(part))
        });
        vec![State { parts, network: Vec::new(), decided: Vec::new(), budget: self.budget, broken: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken {
            return;
        }
        self.with_tables(|tables| {
            actions.extend(state.network.iter().map(|id| Action { site: tables.receiver(*id), input: Input::Deliver(*id) }));
        });
        for site in 0..SITES {
            let others = [Input::Start, Input::Resend, Input::Timeout, Input::Stall, Input::Crash, Input::Acquire, Input::Release];
            let affordable = others.into_iter().filter(|input| state.budget.pay(site, *input).is_some());
            // To stall is to prepare a crash.
            let affordable = affordable.filter(|input| *input != Input::Stall || state.budget.crashes[site] > 0);
            actions.extend(affordable.map(|input| Action { site, input }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let part = last.parts[action.site];
        let step = self.step(action, part);
        let mut state = State { budget: last.budget.pay(action.site, action.input)?, ..last.clone() };
        state.parts[action.site] = step.part;
        state.broken = step.broken;
        insert_all(&mut state.network, &step.sent);
        if let Some(decision) = step.decided {
            self.with_tables(|tables| tables.add_decision(&mut state.decided, decision));
        }
        let told = state.network.len() > last.network.len();
        let timed = matches!(action.input, Input::Resend | Input::Timeout);
        let changed = (state.parts != last.parts && !timed) || told || step.effective || step.broken || state.decided != last.decided;
        changed.then_some(state)
    }

    fn format_action(&self, action: &Action) -> String {
        match action.input {
            Input::Deliver(envelope) => self.with_tables(|tables| tables.envelope(envelope).to_string()),
            input => format!("{input:?} at {}", site(action.site)),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self)
    }
}

fn insert_all(set: &mut Vec<EnvelopeId>, new: &[EnvelopeId]) {
    for id in new {
        if let Err(place) = set.binary_search(id) {
            set.insert(place, *id);
        }
    }
}

/// How the lists of the model are given out.
pub const REALLOCATION: Reallocation = Reallocation::MaximumUsage;
