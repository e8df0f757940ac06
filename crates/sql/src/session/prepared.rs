//! Statements parsed and planned once, and a session's memory of them.

use super::outcome::Described;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::Plan;
use crate::parser::{self, Statement};
use crate::quota::TokensPlan;
use crate::types::{Datum, SqlType};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The texts whose statements a session remembers.
const TEXTS_MAX: usize = 256;
/// The longest text worth remembering, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// The bytes of all texts that a session remembers. Their trees and plans take some dozens of times as much.
const TEXTS_BYTES_MAX: usize = 64 << 10;

/// A parsed statement with the plan it had last.
#[derive(Debug)]
pub struct Prepared {
    /// The statement.
    pub statement: Arc<Statement>,
    /// The types that the client gave to parameters.
    pub hints: Vec<Option<SqlType>>,
    /// Shared by all that have the same text and hints.
    plan: Arc<Mutex<Option<Arc<Plan>>>>,
    tokens: OnceLock<Arc<TokensPlan>>,
    /// What the client goes by, who has prepared it: it must not become another.
    told: OnceLock<Described>,
    /// True once it ran as the client was told, or the client was told that it did not.
    ran: AtomicBool,
}

impl Prepared {
    /// A statement not yet planned.
    pub fn new(statement: impl Into<Arc<Statement>>, hints: Vec<Option<SqlType>>) -> Arc<Prepared> {
        let (statement, plan) = (statement.into(), Arc::default());
        Arc::new(Prepared { statement, hints, plan, tokens: OnceLock::new(), told: OnceLock::new(), ran: AtomicBool::new(false) })
    }

    /// The same statement, for a client that prepares it and has not been told anything of it.
    pub fn untold(&self) -> Arc<Prepared> {
        let Prepared { statement, hints, plan, tokens, told: _, ran: _ } = self;
        let (statement, hints, plan, tokens) = (statement.clone(), hints.clone(), plan.clone(), tokens.clone());
        Arc::new(Prepared { statement, hints, plan, tokens, told: OnceLock::new(), ran: AtomicBool::new(false) })
    }

    /// What the client was told.
    pub fn told(&self) -> Option<&Described> {
        self.told.get()
    }

    /// The client is told what is known of the statement. What it was told first holds.
    pub fn tell(&self, described: Described) -> &Described {
        self.told.get_or_init(|| described)
    }

    /// It is run as the client was told of it.
    pub fn runs(&self) {
        self.ran.store(true, Ordering::Relaxed);
    }

    /// Refuses a plan that is not for what the client was told: it has sent its parameters as other types, or expects other columns. Error 0A000; 40001
    /// the first time, if it never ran, since it may have been told of a table that was another by then.
    pub fn check_told(&self, plan: &Plan) -> SqlResult<()> {
        match self.told() {
            Some(told) if told.parameters != plan.parameters || told.columns != plan.columns => {
                if !self.ran.load(Ordering::Relaxed) {
                    return Err(SqlError::new(SqlState::SerializationFailure, "a table was changed while the statement was prepared"));
                }
                Err(SqlError::unsupported("cached plan must not change result type").with_hint("Prepare the statement again."))
            }
            _ => Ok(()),
        }
    }

    /// The plan it had last.
    pub fn plan(&self) -> Option<Arc<Plan>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The plan of acquire() and release(), made by `plan` the first time. It sees no tables, so it holds for good.
    pub fn tokens(&self, plan: impl FnOnce() -> SqlResult<TokensPlan>) -> SqlResult<Arc<TokensPlan>> {
        match self.tokens.get() {
            Some(plan) => Ok(plan.clone()),
            None => plan().map(|plan| self.tokens.get_or_init(|| Arc::new(plan)).clone()),
        }
    }

    /// Remembers a plan.
    pub fn set_plan(&self, plan: Option<Arc<Plan>>) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }
}

/// Refuses to run a statement whose parameters were not all given.
pub fn check_parameters(given: &[Datum], wanted: &[SqlType]) -> SqlResult<()> {
    if given.len() == wanted.len() {
        return Ok(());
    }
    Err(SqlError::undefined_parameter(given.len() + 1))
}

/// The statements of one text.
type Statements = Arc<[Arc<Prepared>]>;

/// The statements of the texts seen lately: the least recently used text makes room.
#[derive(Debug, Default)]
pub struct Texts {
    entries: BTreeMap<String, (u64, Statements)>,
    bytes: usize,
    clock: u64,
}

impl Texts {
    /// The statements of a text.
    pub fn statements(&mut self, sql: &str) -> SqlResult<Statements> {
        self.clock += 1;
        if let Some((used, statements)) = self.entries.get_mut(sql) {
            *used = self.clock;
            return Ok(statements.clone());
        }
        let statements: Statements = parser::parse(sql)?.into_iter().map(|statement| Prepared::new(statement, Vec::new())).collect();
        if sql.len() <= TEXT_BYTES_MAX {
            while self.entries.len() >= TEXTS_MAX || self.bytes + sql.len() > TEXTS_BYTES_MAX {
                let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used).map(|(text, _)| text.clone());
                let Some(text) = oldest else { break };
                self.bytes -= text.len();
                self.entries.remove(&text);
            }
            self.bytes += sql.len();
            self.entries.insert(sql.to_string(), (self.clock, statements.clone()));
        }
        Ok(statements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_text_makes_room() {
        let mut texts = Texts::default();
        let first = texts.statements("select 0").expect("a statement");
        for number in 1..TEXTS_MAX {
            texts.statements(&format!("select {number}")).expect("a statement");
        }
        assert!(Arc::ptr_eq(&first, &texts.statements("select 0").expect("a statement")));
        texts.statements("select 'new'").expect("a statement");
        assert_eq!(texts.entries.len(), TEXTS_MAX);
        assert!(texts.entries.contains_key("select 0") && !texts.entries.contains_key("select 1"));
    }

    #[test]
    fn long_texts_make_room_by_their_bytes() {
        let mut texts = Texts::default();
        for number in 0..20 {
            let long = format!("select '{number}{}'", "x".repeat(TEXT_BYTES_MAX - 20));
            texts.statements(&long).expect("a statement");
            assert_eq!(texts.bytes, texts.entries.keys().map(String::len).sum::<usize>());
            assert!(texts.bytes <= TEXTS_BYTES_MAX);
        }
        assert_eq!(texts.entries.len(), TEXTS_BYTES_MAX / TEXT_BYTES_MAX);
        let longer = format!("select '{}'", "x".repeat(TEXT_BYTES_MAX));
        texts.statements(&longer).expect("a statement");
        assert!(!texts.entries.contains_key(&longer));
    }
}
