//! All states that machines were found in, all messages that they send, and what follows from what: worked out as it is asked for, and once.

use super::case::Case;
use super::digest::digest;
use super::facts::Facts;
use super::machine::{Event, Machine};
use super::message::{Arrival, Message};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// What comes of an event.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The machine after it, by its number.
    pub(super) to: u32,
    /// The messages sent, by their numbers.
    pub(super) sent: Vec<u32>,
}

/// A message, and when it arrives.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) message: Message,
    pub(super) arrival: Arrival,
}

pub(super) struct Atlas {
    case: Arc<Case>,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    machines: Vec<Machine>,
    facts: Vec<Arc<Facts>>,
    machine_numbers: HashMap<u64, u32>,
    letters: Vec<Arc<Letter>>,
    letter_numbers: HashMap<u64, u32>,
    steps: HashMap<(u32, Event), Arc<Step>>,
}

impl Atlas {
    pub(super) fn new(case: Arc<Case>) -> Atlas {
        Atlas { case, tables: Mutex::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().expect("nobody panics with the tables")
    }

    /// The number of a machine that has just begun to serve.
    pub(super) fn beginning(&self, site: usize) -> u32 {
        self.tables().number(Machine::new(site, self.case.clone()))
    }

    pub(super) fn facts(&self, machine: u32) -> Arc<Facts> {
        self.tables().facts[machine as usize].clone()
    }

    pub(super) fn letter(&self, number: u32) -> Arc<Letter> {
        self.tables().letters[number as usize].clone()
    }

    /// What comes of an event at that machine.
    pub(super) fn step(&self, machine: u32, event: Event) -> Arc<Step> {
        let mut tables = self.tables();
        let place = (machine, event);
        if let Some(known) = tables.steps.get(&place) {
            return known.clone();
        }
        let mut after = tables.machines[machine as usize].clone();
        let heard = match &place.1 {
            Event::Hear(numbers) => numbers.iter().map(|number| tables.letters[*number as usize].message.clone()).collect(),
            _ => Vec::new(),
        };
        let sent = after.take(&place.1, heard).into_iter().map(|message| tables.letter(message, &self.case)).collect();
        let step = Arc::new(Step { to: tables.number(after), sent });
        tables.steps.insert(place, step.clone());
        step
    }

    /// How large it is, as a line.
    pub(super) fn sizes(&self) -> String {
        let tables = self.tables();
        format!("{} states of a site, {} messages, {} steps of a site", tables.machines.len(), tables.letters.len(), tables.steps.len())
    }
}

impl Tables {
    fn number(&mut self, machine: Machine) -> u32 {
        let fresh = self.machines.len() as u32;
        let number = *self.machine_numbers.entry(machine.digest()).or_insert(fresh);
        if number == fresh {
            self.facts.push(Arc::new(machine.facts()));
            self.machines.push(machine);
        }
        number
    }

    fn letter(&mut self, message: Message, case: &Case) -> u32 {
        let fresh = self.letters.len() as u32;
        let number = *self.letter_numbers.entry(digest(&message)).or_insert(fresh);
        if number == fresh {
            let arrival = message.arrival(case);
            self.letters.push(Arc::new(Letter { message, arrival }));
        }
        number
    }
}
