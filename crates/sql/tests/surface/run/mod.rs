//! Running scripts: against what is recorded, and to record.

pub mod record;

use crate::client::{Client, Target};
use crate::script::{Item, NO_REASON, Outcome, Record, Script};
use std::collections::HashMap;
use std::fmt;

/// A statement whose result is not what its script says.
#[derive(Debug)]
pub enum Complaint {
    /// A result other than the one that is expected, and why that is expected.
    Other {
        sql: String,
        expected: Outcome,
        actual: Outcome,
    },
    /// PostgreSQL's result where a difference is said to be.
    Same {
        sql: String,
        reason: String,
    },
    NotRecorded(String),
    NoReason(String),
}

impl Complaint {
    /// Its kind, in words.
    pub fn kind(&self) -> &'static str {
        match self {
            Complaint::Other { .. } => "another result",
            Complaint::Same { .. } => "no difference",
            Complaint::NotRecorded(_) => "not recorded",
            Complaint::NoReason(_) => "no reason",
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind())?;
        match self {
            Complaint::Other { sql, expected, actual } => {
                write!(f, "{sql}\n  expected {}\n  got      {}", expected.brief(), actual.brief())
            }
            Complaint::Same { sql, reason } => write!(f, "{sql}\n  is PostgreSQL's now, take out `differs: {reason}` with `make surface`"),
            Complaint::NotRecorded(sql) => write!(f, "{sql}\n  has no result, `make surface` records it"),
            Complaint::NoReason(sql) => write!(f, "{sql}\n  differs, and nobody says why"),
        }
    }
}

/// The sessions of a script on one server.
pub struct Sessions<'a> {
    target: &'a Target,
    clients: HashMap<String, Client>,
    current: String,
}

impl<'a> Sessions<'a> {
    pub fn new(target: &'a Target) -> Sessions<'a> {
        Sessions { target, clients: HashMap::new(), current: "a".to_owned() }
    }

    /// From now on statements are of this session.
    pub fn change_to(&mut self, name: &str) {
        self.current = name.to_owned();
    }

    /// Runs a statement. A session whose connection breaks has a new one afterwards.
    pub fn run(&mut self, sql: &str) -> Outcome {
        let client = self.clients.remove(&self.current);
        let mut client = client.unwrap_or_else(|| Client::connect(self.target).expect("connected"));
        match client.run(sql) {
            Ok(outcome) => {
                self.clients.insert(self.current.clone(), client);
                outcome
            }
            Err(error) => Outcome { head: format!("error connection: {:?}", error.kind()), rows: Vec::new() },
        }
    }
}

/// Runs a script on a server of Rhumb; what is not as recorded.
pub fn check(script: &Script, target: &Target) -> Vec<Complaint> {
    let mut sessions = Sessions::new(target);
    let mut complaints = Vec::new();
    for item in &script.items {
        match item {
            Item::Comment(_) => {}
            Item::Session(name) => sessions.change_to(name),
            Item::Record(record) => complaints.extend(judge(record, sessions.run(&record.sql))),
        }
    }
    complaints
}

fn judge(record: &Record, actual: Outcome) -> Option<Complaint> {
    let sql = record.sql.clone();
    let Some(expected) = &record.expected else { return Some(Complaint::NotRecorded(sql)) };
    match &record.difference {
        Some(difference) if actual == *expected => Some(Complaint::Same { sql, reason: difference.reason.clone() }),
        Some(difference) if actual == difference.outcome => (difference.reason == NO_REASON).then_some(Complaint::NoReason(sql)),
        Some(difference) => Some(Complaint::Other { sql, expected: difference.outcome.clone(), actual }),
        None if actual == *expected => None,
        None => Some(Complaint::Other { sql, expected: expected.clone(), actual }),
    }
}
