//! The stream on longer schedules than can be explored state by state: all that depart from the plain one in a few places.
//!
//! A plain schedule takes messages and syncs in the order in which they were sent and written; when there are none left, an epoch ends at
//! all sites. Region 0 seals every epoch that ends. The sites write down how far they have come every few epochs, so that entries are
//! removed, and in the end all epochs must be covered everywhere.

use super::part::{Ended, Input, Part};
use super::tables::Envelope;
use super::{REGIONS, Streams, properties, site};
use rhumb_catenae::epoch::Epoch;
use rhumb_catenae::message::Entry;
use rhumb_core::SiteId;
use rhumb_testkit::departures::{Bounds, Departure, Searched, Violation, search};
use std::collections::{BTreeMap, VecDeque};

/// Epochs that are sealed.
const EPOCHS: u64 = 6;
/// Ends of epochs after which all must be well.
const TICKS_MAX: u64 = 150;
/// Longer than anybody is patient.
const ISOLATED_TICKS: u64 = 5;
const PUT_OFF_TICKS: u64 = 2;
/// How often sites write down how far they have come.
const SETTLE_EVERY: u64 = 3;

enum Event {
    Message(Envelope),
    /// The first write of that incarnation of a site becomes durable.
    Sync {
        at: usize,
        incarnation: u64,
    },
}

struct World<'a> {
    model: &'a Streams,
    departures: &'a [(usize, Departure)],
    parts: [Part; REGIONS],
    incarnations: [u64; REGIONS],
    /// Syncs under way.
    syncs: [usize; REGIONS],
    /// Syncs wait, and nothing reaches or leaves the site, until then.
    stalled: [u64; REGIONS],
    isolated: [u64; REGIONS],
    /// A minority that is lost for good.
    lost: Option<usize>,
    queue: VecDeque<Event>,
    late: VecDeque<(u64, Event)>,
    tick: u64,
    steps: usize,
    chosen: BTreeMap<u64, Entry>,
    violation: Option<String>,
    trace: Vec<String>,
}

/// Runs all schedules within those bounds.
///
/// # Errors
/// The first violation.
pub fn search_all(model: &Streams, bounds: Bounds) -> Result<Searched, String> {
    let each = |way: fn(usize) -> Departure| (0..REGIONS).map(way);
    let of_sites = each(Departure::Crash).chain(each(Departure::Isolate)).chain(each(Departure::Lose));
    let ways: Vec<Departure> = [Departure::Drop, Departure::PutOff].into_iter().chain(of_sites).collect();
    search(bounds, &ways, |schedule| World::run(model, schedule))
}

impl World<'_> {
    fn run(model: &Streams, departures: &[(usize, Departure)]) -> Result<usize, Violation> {
        let mut world = World {
            model,
            departures,
            parts: std::array::from_fn(|region| Part::new(model, region)),
            incarnations: [0; REGIONS],
            syncs: [0; REGIONS],
            stalled: [0; REGIONS],
            isolated: [0; REGIONS],
            lost: None,
            queue: VecDeque::new(),
            late: VecDeque::new(),
            tick: 0,
            steps: 0,
            chosen: BTreeMap::new(),
            violation: None,
            trace: Vec::new(),
        };
        while world.violation.is_none() && !world.is_well() {
            if world.tick == TICKS_MAX {
                world.violation = Some(super::PROGRESS.to_owned());
                break;
            }
            world.end_epoch();
        }
        match world.violation {
            None => Ok(world.steps),
            Some(what) => Err(Violation { what, trace: world.trace }),
        }
    }

    /// All epochs that were to be are covered everywhere, and nothing is under way.
    fn is_well(&self) -> bool {
        let covers = |part: &Part| part.agreement.view().covered() >= Epoch(EPOCHS) && !part.disk.waits();
        let mut up = (0..REGIONS).filter(|region| self.lost != Some(*region));
        self.tick > EPOCHS && self.late.is_empty() && up.all(|region| covers(&self.parts[region]))
    }

    fn end_epoch(&mut self) {
        self.tick += 1;
        while self.late.front().is_some_and(|(until, _)| *until <= self.tick) {
            let (_, event) = self.late.pop_front().expect("there is one");
            self.queue.push_back(event);
        }
        for region in 0..REGIONS {
            if self.lost == Some(region) {
                continue;
            }
            self.trace.push(format!("an epoch ends at {}", site(region)));
            self.take(region, Input::EndOfEpoch);
            if self.tick.is_multiple_of(SETTLE_EVERY) {
                self.take(region, Input::Settle);
            }
        }
        while let Some(event) = self.queue.pop_front().filter(|_| self.violation.is_none()) {
            self.depart(event);
        }
        self.look();
    }

    /// The next event, unless it is departed from.
    fn depart(&mut self, event: Event) {
        let step = self.steps;
        self.steps += 1;
        let departures: Vec<Departure> = self.departures.iter().filter(|(at, _)| *at == step).map(|(_, departure)| *departure).collect();
        for departure in departures {
            self.trace.push(format!("  #{step}: {departure:?}"));
            match (departure, &event) {
                (Departure::Drop, Event::Message(message)) => return self.trace.push(format!("lost: {message}")),
                (Departure::PutOff, Event::Message(_)) => return self.late.push_back((self.tick + PUT_OFF_TICKS, event)),
                (Departure::PutOff, Event::Sync { at, .. }) => self.stalled[*at] = self.tick + PUT_OFF_TICKS,
                (Departure::Crash(at), _) => {
                    (self.incarnations[at], self.stalled[at], self.syncs[at]) = (self.incarnations[at] + 1, 0, 0);
                    self.take(at, Input::Crash);
                }
                (Departure::Lose(at), _) => drop(self.lost.get_or_insert(at)),
                (Departure::Isolate(at), _) => self.isolated[at] = self.tick + ISOLATED_TICKS,
                _ => {}
            }
        }
        self.carry_on(event);
    }

    fn carry_on(&mut self, event: Event) {
        match event {
            Event::Message(message) => {
                let index = |of: SiteId| (0..REGIONS).find(|region| site(*region) == of).expect("messages go to sites");
                let (from, to) = (index(message.from), index(message.to));
                if self.isolated[from] <= self.tick && self.isolated[to] <= self.tick && self.lost != Some(to) {
                    self.trace.push(message.to_string());
                    self.take(to, Input::Message(message));
                }
            }
            Event::Sync { at, incarnation } if incarnation == self.incarnations[at] && self.lost != Some(at) => {
                if self.stalled[at] > self.tick {
                    return self.late.push_back((self.stalled[at], event));
                }
                self.syncs[at] -= 1;
                self.take(at, Input::Sync);
            }
            Event::Sync { .. } => {}
        }
    }

    fn take(&mut self, region: usize, input: Input) {
        let ended = Ended::UpTo(Epoch(self.tick.min(EPOCHS)));
        let taken = self.parts[region].clone().take(self.model, region, ended, input);
        self.parts[region] = taken.part;
        self.queue.extend(taken.sent.into_iter().map(Event::Message));
        let (at, incarnation) = (region, self.incarnations[region]);
        while self.syncs[region] < self.parts[region].disk.waiting() {
            self.syncs[region] += 1;
            self.queue.push_back(Event::Sync { at, incarnation });
        }
        for found in taken.found {
            if *self.chosen.entry(found.index).or_insert_with(|| found.entry.clone()) != found.entry {
                self.violation = Some(super::AGREEMENT.to_owned());
            }
        }
        if taken.impatient {
            self.violation = Some(super::PATIENT.to_owned());
        }
    }

    fn look(&mut self) {
        let parts = self.parts.each_ref();
        let violation = if !properties::is_durable(parts, self.chosen.iter().map(|(index, entry)| (*index, entry))) {
            super::DURABLE
        } else if !properties::is_kept(parts) {
            super::KEPT
        } else if !properties::is_counted(parts) {
            super::COUNTED
        } else {
            return;
        };
        self.violation.get_or_insert_with(|| violation.to_owned());
    }
}
