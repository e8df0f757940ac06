//! How the transcript shows what sites do. What replicas say to each other when nothing is proposed goes on all the time and is left out.

use super::{Envelope, ReplicatedLog};
use rhumb_commit::interactive::{Answer, Request};
use rhumb_core::actor::Op;
use rhumb_core::{Body, SiteId, Topology, Value};
use rhumb_replicated_log::group::GroupNote;
use rhumb_replicated_log::{Command, Note, Site};
use rhumb_testkit::Protocol;
use std::sync::Arc;

/// True for what no transaction is about.
fn is_idle(command: &Command) -> bool {
    matches!(command, Command::Nothing | Command::Advance { .. })
}

impl Protocol for ReplicatedLog {
    type Site = Site;

    fn site(&self, id: SiteId, topology: &Arc<Topology>) -> Site {
        Site::new(id, Arc::clone(topology), self.config.clone()).with_rules(self.rules)
    }

    fn is_background(envelope: &Envelope) -> bool {
        match &envelope.body {
            Body::Note(Note::Group(GroupNote::Append { entries, .. })) => entries.iter().all(|entry| is_idle(&entry.command)),
            Body::Note(Note::Group(_)) | Body::Promise(_) => true,
            Body::Note(_) => false,
        }
    }

    fn request(request: &Request) -> String {
        match request {
            Request::Begin { mode } => format!("Begin {mode:?}"),
            Request::Get { txn, mode, keys, .. } => {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                format!("Get {txn} {mode:?} {}", keys.join(" "))
            }
            Request::Scan { txn, mode, range, .. } => format!("Scan {txn} {mode:?} {range}"),
            Request::Commit { txn, writes, .. } => {
                let writes: Vec<String> = writes.iter().map(|(key, value)| format!("{key}={}", text_of(value.as_ref()))).collect();
                format!("Commit {txn} {}", writes.join(" "))
            }
            Request::Rollback { txn } => format!("Rollback {txn}"),
            Request::Admin(none) => match *none {},
        }
    }

    fn answer(answer: &Answer) -> String {
        match answer {
            Answer::Began { txn } => format!("Began {txn}"),
            Answer::Rows { rows, at, .. } => {
                let rows: Vec<String> =
                    rows.iter().map(|row| format!("{}={}@{}", row.key, text_of(row.value.as_ref()), row.version)).collect();
                format!("Rows at {at}: {}", rows.join(" "))
            }
            Answer::Committed(committed) => format!("Committed at {}, {} trips", committed.at, committed.trips),
            Answer::Failed(error) => format!("Failed: {error}"),
            Answer::Done => "Done".to_owned(),
            Answer::Admin(none) => match *none {},
        }
    }

    fn write(op: &Op) -> Option<String> {
        match op {
            Op::PutVersion { key, at, value } => Some(format!("{key}={}@{at}", text_of(value.as_ref()))),
            _ => None,
        }
    }
}

fn text_of(value: Option<&Value>) -> String {
    value.map_or("deleted".into(), |value| String::from_utf8_lossy(&value.0).into_owned())
}
