//! One region's stream as a state space: three regions of one site, the product's own [`Agreement`] at each, every failure at every moment.
//!
//! ```text
//!   Tick     ─▶ an epoch ends at a site                   Sync   ─▶ the first of a site's writes that wait becomes durable
//!   Deliver  ─▶ a site takes a message                    Crash  ─▶ a site starts again from what is durable
//!   Settle   ─▶ a site writes down how far it has come, and tells
//! ```
//!
//! Region 0, whose stream it is, seals entries; the others take it over when they find it silent, and region 0 takes it back. What they wait
//! for, ask and repeat is the product's own doing at the ends of epochs. The network is a set that only grows: what was once sent can be
//! delivered at any later time, again, or never. That covers delay, reordering, duplication and loss, and a lost site is one that nothing
//! happens to any more. What happens else is bounded by a [`Budget`].
//!
//! Simplifications that leave no behaviour out:
//!
//! - What a site sends to itself arrives at once: nothing else can tell it when.
//! - The disk of a site that never crashes is synced at once: a later sync is a later arrival of what waits for it. A write of nothing that
//!   waits for no other is durable at once.
//! - A crashed site is back at once: being down is the same as hearing nothing.
//!
//! Simplifications that do leave some out: an entry holds no transactions, so all pages hold all; what is chosen is run at once.
//!
//! Progress is looked at from every state: [`heal`] carries it on without further failures, but for one that lasts.

// What is numbered has no order, and a checker shares its model with its threads.
#![allow(clippy::disallowed_types)]

mod disk;
mod heal;
mod part;
mod properties;
mod schedules;
mod tables;

pub use schedules::search_all;

use part::{Ended, Part};
use rhumb_catenae::planted::Planted;
use rhumb_catenae::stream_id::StreamId;
use rhumb_catenae::{Config, Durability};
use rhumb_core::{RegionId, Rules, SiteId, Topology};
use stateright::{Model, Property};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tables::{EntryId, EnvelopeId, PartId, Step, Tables};

/// The number of regions.
pub const REGIONS: usize = 3;
/// Regions that must hold an entry, and that must promise.
pub const QUORUM: usize = 2;
/// The stream: region 0 leads it from the beginning.
pub const STREAM: StreamId = StreamId::first(RegionId(0));

/// All regions find the same entries chosen.
pub const AGREEMENT: &str = "what is chosen is the same everywhere and for ever";
/// What clients were told lasts.
pub const DURABLE: &str = "what anybody has found chosen is on the disks of a quorum";
/// Truncation.
pub const KEPT: &str = "whoever knows more to be chosen than another can tell it";
/// Counting.
pub const COUNTED: &str = "who has an entry and has heard that others have it knows that it is chosen";
/// Leadership.
pub const PATIENT: &str = "nobody takes a stream over while it misses what was said in it and has not asked for that in vain";
/// No permanent stop.
pub const PROGRESS: &str = "all epochs are covered soon and one leader stays, whichever site or link is lost from now on";

/// How often what may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Ends of epochs at each site.
    pub ticks: [u8; REGIONS],
    /// Crashes of each site.
    pub crashes: [u8; REGIONS],
    /// How often each site writes down how far it has come.
    pub settles: [u8; REGIONS],
}

/// The state space.
pub struct Streams {
    budget: Budget,
    /// Entries that region 0 seals, at most.
    seals: u8,
    /// A site that has no room for more of the stream, and need not have it.
    full: Option<usize>,
    /// A site that nothing happens to.
    lost: Option<usize>,
    /// Progress is looked at, too.
    heals: bool,
    rules: Rules<Planted>,
    topology: Topology,
    config: Config,
    tables: Mutex<Tables>,
}

/// What a state of the model holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    parts: [PartId; REGIONS],
    /// What was sent, in ascending order.
    network: Vec<EnvelopeId>,
    /// What some site has found chosen, by place.
    chosen: BTreeMap<u64, EntryId>,
    budget: Budget,
    /// Two sites have found different entries chosen in one place.
    disagrees: bool,
    /// A site has taken over too early.
    impatient: bool,
}

/// What happens to a site, with a message by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    Deliver(EnvelopeId),
    Tick,
    Sync,
    Settle,
    Crash,
}

/// Something that happens at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    site: usize,
    input: Input,
}

/// The site of that region.
pub fn site(region: usize) -> SiteId {
    SiteId::new(region as u16, 0)
}

impl Streams {
    /// The state space within a budget, with no rule broken, where region 0 seals so many entries.
    pub fn new(seals: u8, budget: Budget) -> Streams {
        let topology = Topology::new(["a", "b", "c"].map(String::from).to_vec(), 1);
        // A site is patient for one end of an epoch, and passes over two epochs.
        let config =
            Config { durability: Durability::Majority, tolerance_epochs: 1, window_epochs: 1, ahead_epochs: 2, ..Config::default() };
        Streams { budget, seals, full: None, lost: None, heals: false, rules: Rules::HOLD, topology, config, tables: Mutex::default() }
    }

    /// The same where that site has no room for more.
    pub fn with_full(self, site: usize) -> Streams {
        Streams { full: Some(site), ..self }
    }

    /// The same where nothing happens to that site.
    pub fn without(self, site: usize) -> Streams {
        Streams { lost: Some(site), ..self }
    }

    /// The same with [`PROGRESS`] checked.
    pub fn with_progress(self) -> Streams {
        Streams { heals: true, ..self }
    }

    /// The same with a rule broken.
    pub fn breaking(self, rule: Planted) -> Streams {
        Streams { rules: Rules::breaking(rule), ..self }
    }

    /// Looks things up by their numbers.
    fn with_tables<T>(&self, look: impl FnOnce(&mut Tables) -> T) -> T {
        look(&mut self.tables.lock().expect("no check panics while it looks"))
    }

    /// The step of a site, worked out now or before.
    fn step(&self, Action { site, input }: Action, part: PartId) -> Arc<Step> {
        self.with_tables(|tables| {
            if let Some(step) = tables.step(part, input) {
                return step;
            }
            let taken_in = match input {
                Input::Deliver(envelope) => part::Input::Message(tables.envelope(envelope).clone()),
                Input::Tick => part::Input::EndOfEpoch,
                Input::Sync => part::Input::Sync,
                Input::Settle => part::Input::Settle,
                Input::Crash => part::Input::Crash,
            };
            let taken = Part::clone(tables.part(part)).take(self, site, Ended::Two { seals: self.seals }, taken_in);
            tables.put_step(part, input, taken)
        })
    }

    /// How many things of each kind there were.
    pub fn counts(&self) -> String {
        self.with_tables(|tables| tables.to_string())
    }

    /// Looks at the sites of a state.
    fn look(&self, state: &State, holds: impl FnOnce([&Part; REGIONS], &Tables) -> bool) -> bool {
        self.with_tables(|tables| holds(state.parts.map(|id| &**tables.part(id)), tables))
    }

    fn is_durable(&self, state: &State) -> bool {
        self.look(state, |parts, tables| {
            properties::is_durable(parts, state.chosen.iter().map(|(index, entry)| (*index, tables.entry(*entry))))
        })
    }

    fn goes_on(&self, state: &State) -> bool {
        if !self.heals || self.with_tables(|tables| !tables.is_new_to_heal(state.parts)) {
            return true;
        }
        let parts = self.with_tables(|tables| state.parts.map(|id| Part::clone(tables.part(id))));
        heal::always(self, &parts)
    }
}

impl Budget {
    /// Pays for `input` at `site`; none if there is nothing left for it.
    fn pay(mut self, site: usize, input: Input) -> Option<Budget> {
        let purse = match input {
            Input::Deliver(_) | Input::Sync => return Some(self),
            Input::Tick => &mut self.ticks[site],
            Input::Settle => &mut self.settles[site],
            Input::Crash => &mut self.crashes[site],
        };
        *purse = purse.checked_sub(1)?;
        Some(self)
    }
}

impl Model for Streams {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let parts = std::array::from_fn(|region| {
            let part = Part::new(self, region);
            self.with_tables(|tables| tables.number_part(part))
        });
        let (network, chosen) = (Vec::new(), BTreeMap::new());
        vec![State { parts, network, chosen, budget: self.budget, disagrees: false, impatient: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.with_tables(|tables| {
            let deliveries = state.network.iter().map(|id| Action { site: tables.receiver(*id), input: Input::Deliver(*id) });
            actions.extend(deliveries.filter(|action| self.lost != Some(action.site)));
        });
        for site in 0..REGIONS {
            let others = [Input::Sync, Input::Tick, Input::Settle, Input::Crash];
            actions.extend(others.into_iter().filter(|input| state.budget.pay(site, *input).is_some()).map(|input| Action { site, input }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let step = self.step(action, last.parts[action.site]);
        let mut state = State { budget: last.budget.pay(action.site, action.input)?, ..last.clone() };
        state.parts[action.site] = step.part;
        for id in &step.sent {
            if let Err(place) = state.network.binary_search(id) {
                state.network.insert(place, *id);
            }
        }
        for (index, entry) in &step.found {
            state.disagrees |= state.chosen.insert(*index, *entry).is_some_and(|other| other != *entry);
        }
        state.impatient |= step.impatient;
        (State { budget: last.budget, ..state.clone() } != *last).then_some(state)
    }

    fn format_action(&self, action: &Action) -> String {
        match action.input {
            Input::Deliver(envelope) => self.with_tables(|tables| tables.envelope(envelope).to_string()),
            input => format!("{input:?} at {}", site(action.site)),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(AGREEMENT, |_, state: &State| !state.disagrees),
            Property::always(DURABLE, |model: &Streams, state: &State| model.is_durable(state)),
            Property::always(KEPT, |model: &Streams, state: &State| model.look(state, |parts, _| properties::is_kept(parts))),
            Property::always(COUNTED, |model: &Streams, state: &State| model.look(state, |parts, _| properties::is_counted(parts))),
            Property::always(PATIENT, |_, state: &State| !state.impatient),
            Property::always(PROGRESS, |model: &Streams, state: &State| model.goes_on(state)),
        ]
    }
}
