//! Calls of nextval(), currval() and lastval() as a plan has them, and what a session remembers of the numbers it was given.

use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{DatabaseId, SequenceDescriptor, TableId};
use crate::txn::Active;
use crate::types::Datum;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// A number that a plan takes from outside whenever it runs, or for each row.
#[derive(Clone, Debug)]
pub enum Draw {
    /// The next of a sequence.
    Next(Arc<SequenceDescriptor>),
    /// The one that the session was given last.
    Current(Arc<SequenceDescriptor>),
    /// Likewise, of any sequence.
    Last,
}

/// What a session remembers of the numbers it was given.
#[derive(Debug, Default)]
pub struct Drawn(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    /// The last one of each sequence.
    last: HashMap<(DatabaseId, TableId), i64>,
    /// The sequence of the last one of all.
    of: Option<(DatabaseId, TableId)>,
    /// What was remembered when the statement began, of what it has changed since.
    before: Option<Before>,
}

#[derive(Debug)]
struct Before {
    last: HashMap<(DatabaseId, TableId), Option<i64>>,
    of: Option<(DatabaseId, TableId)>,
}

/// The most sequences that a session remembers numbers of; one more, and all are forgotten.
const REMEMBERED_MAX: usize = 1_000;

impl Given {
    fn note(&mut self, sequence: &SequenceDescriptor, number: i64) {
        let id = (sequence.database, sequence.id);
        let known = self.last.get(&id).copied();
        if let Some(before) = &mut self.before {
            before.last.entry(id).or_insert(known);
        }
        if self.last.len() >= REMEMBERED_MAX && !self.last.contains_key(&id) {
            self.last.clear();
        }
        self.last.insert(id, number);
    }
}

impl Draw {
    /// The sequence that it is from.
    pub fn sequence(&self) -> Option<Arc<SequenceDescriptor>> {
        match self {
            Draw::Next(sequence) | Draw::Current(sequence) => Some(sequence.clone()),
            Draw::Last => None,
        }
    }
}

impl Drawn {
    /// The session was given a number.
    pub fn remember(&self, sequence: &SequenceDescriptor, number: i64) {
        let mut given = self.given();
        given.note(sequence, number);
        given.of = Some((sequence.database, sequence.id));
    }

    /// setval() says which number is the one that the session was given last.
    pub fn replace(&self, sequence: &SequenceDescriptor, number: i64) {
        self.given().note(sequence, number);
    }

    /// A statement begins, which may run several times before it is done.
    pub fn begin(&self) {
        let mut given = self.given();
        given.before = Some(Before { last: HashMap::new(), of: given.of });
    }

    /// It runs again: what it was given meanwhile is forgotten.
    pub fn begin_again(&self) {
        let mut given = self.given();
        let Some(Before { last, of }) = given.before.take() else { return };
        for (id, number) in last {
            match number {
                Some(number) => given.last.insert(id, number),
                None => given.last.remove(&id),
            };
        }
        given.of = of;
        given.before = Some(Before { last: HashMap::new(), of });
    }

    /// Forgets all.
    pub fn forget(&self) {
        *self.given() = Given::default();
    }

    fn current(&self, sequence: &SequenceDescriptor) -> SqlResult<i64> {
        let none = || {
            let message = format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name);
            SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
        };
        self.given().last.get(&(sequence.database, sequence.id)).copied().ok_or_else(none)
    }

    fn last(&self) -> SqlResult<i64> {
        let given = self.given();
        let last = given.of.and_then(|id| given.last.get(&id).copied());
        last.ok_or_else(|| SqlError::new(SqlState::ObjectNotInPrerequisiteState, "lastval is not yet defined in this session"))
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

/// What drawing needs.
pub struct Drawing<'a> {
    /// The numbers of the site, and its timers.
    pub engine: &'a Engine,
    /// What the session remembers.
    pub drawn: &'a Drawn,
    /// The transaction that the numbers are for.
    pub active: &'a mut Active,
}

impl Drawing<'_> {
    /// A number for each of the draws, in their order.
    pub async fn draw(&mut self, draws: &[Draw]) -> SqlResult<Vec<Datum>> {
        let mut numbers = Vec::with_capacity(draws.len());
        for draw in draws {
            let number = match draw {
                Draw::Next(sequence) => {
                    let number = self.engine.blocks.next(&*self.engine.environment, self.active, sequence).await?;
                    self.drawn.remember(sequence, number);
                    number
                }
                Draw::Current(sequence) => self.drawn.current(sequence)?,
                Draw::Last => self.drawn.last()?,
            };
            numbers.push(Datum::Int64(Some(number)));
        }
        Ok(numbers)
    }
}
