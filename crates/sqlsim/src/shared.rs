//! What the clients of a run share: what they did and saw.

use crate::ledger::counters::Counters;
use crate::ledger::presence::Presence;
use rhumb_core::Time;
use rhumb_sim::history::History;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::rc::Rc;

/// Clones share it.
#[derive(Clone, Default)]
pub struct Shared(Rc<RefCell<Record>>);

/// What was done and seen.
#[derive(Default)]
pub struct Record {
    /// Single rows, read and written.
    pub history: History,
    /// Rows counted in.
    pub counters: Counters,
    /// Rows inserted and deleted, by table.
    pub items: Presence,
    /// The same of a table that comes and goes.
    pub scratch: Presence,
    /// The first thing that must not be.
    pub wrong: Option<String>,
    /// How often each thing happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// Statements and answers, if they are to be traced.
    pub log: Option<String>,
    values: u64,
}

impl Shared {
    /// Nothing done yet; statements are logged if `tracing`.
    pub fn new(tracing: bool) -> Shared {
        Shared(Rc::new(RefCell::new(Record { log: tracing.then(String::new), ..Record::default() })))
    }

    /// Looks at it, or adds to it.
    pub fn with<T>(&self, work: impl FnOnce(&mut Record) -> T) -> T {
        work(&mut self.0.borrow_mut())
    }

    /// A value that nobody has written.
    pub fn value(&self) -> u64 {
        self.with(|record| {
            record.values += 1;
            record.values
        })
    }

    /// Something happened once more.
    pub fn count(&self, what: &'static str) {
        self.with(|record| *record.counts.entry(what).or_default() += 1);
    }

    /// Something must not be.
    pub fn wrong(&self, what: impl FnOnce() -> String) {
        self.with(|record| {
            record.wrong.get_or_insert_with(what);
        });
    }

    /// A line for the trace.
    pub fn log(&self, now: Time, line: fmt::Arguments<'_>) {
        self.with(|record| {
            if let Some(log) = &mut record.log {
                writeln!(log, "{now} {line}").expect("a string takes any text");
            }
        });
    }
}
