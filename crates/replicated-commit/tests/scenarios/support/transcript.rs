//! What happened in a scenario, one line each, and the comparison with what is recorded.
//!
//! ```text
//!   client → r0.0   asks            r0.0 → r1.0   a message, when it is delivered (or lost)
//!   r1.0 writes     to its disk     r0.0 → client is told
//! ```
//!
//! Pings, what sites measure, pulls that find nothing new, and the site's own numbers on disk go on all the time and are left out.

use super::Envelope;
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::ReadMode;
use rhumb_core::actor::Op;
use rhumb_core::{Batch, Body, Row, SiteId, Timestamp, record};
use rhumb_replicated_commit::message::LogPage;
use rhumb_replicated_commit::records::{LOG, PREPARED, VOTES, VoteRecord};
use rhumb_replicated_commit::{Admin, Answer, Note, Promise, Request};
use std::fmt::Write;
use std::path::Path;

/// Where a line's second column begins.
const COLUMN: usize = 16;

pub struct Transcript {
    text: String,
}

impl Transcript {
    pub fn new(goal: &str) -> Transcript {
        Transcript { text: goal.lines().map(|line| format!("{}\n", format!("# {}", line.trim()).trim_end())).collect() }
    }

    pub fn narrate(&mut self, text: &str) {
        write!(self.text, "\n-- {text}\n").expect("a string takes all");
    }

    fn line(&mut self, who: String, what: &str) {
        // What happens before the story begins is not told.
        if self.text.contains("\n-- ") {
            let padding = " ".repeat(COLUMN.saturating_sub(who.chars().count()));
            writeln!(self.text, "{who}{padding}{}", what.trim_end()).expect("a string takes all");
        }
    }

    pub fn delivered(&mut self, envelope: &Envelope) {
        if !is_background(envelope) {
            self.line(format!("{} → {}", envelope.from, envelope.to), &envelope.body.to_string());
        }
    }

    pub fn lost(&mut self, envelope: &Envelope) {
        if !is_background(envelope) {
            self.line(format!("{} → {}", envelope.from, envelope.to), &format!("(lost) {}", envelope.body));
        }
    }

    pub fn written(&mut self, site: SiteId, batch: &Batch, stalled: bool) {
        let ops: Vec<String> = batch.ops.iter().filter_map(describe).collect();
        if !ops.is_empty() {
            let verb = if stalled { "(not synced) " } else { "" };
            self.line(format!("{site} writes"), &format!("{verb}{}", ops.join(" + ")));
        }
    }

    pub fn requested(&mut self, site: SiteId, request: &Request) {
        let what = match request {
            Request::Begin { mode } => format!("begin {}", name_of(*mode)),
            Request::Get { keys, mode, .. } => {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                format!("get {}, {}", keys.join(" "), name_of(*mode))
            }
            Request::Scan { range, mode, .. } => format!("scan {range}, {}", name_of(*mode)),
            Request::Commit { writes, .. } => {
                let writes = writes.iter().map(|(key, value)| format!(" {key}={}", text_of(value.as_ref())));
                format!("commit{}", writes.collect::<String>())
            }
            Request::Rollback { .. } => "rollback".into(),
            Request::Admin(Admin::Settle { lost }) => format!("settle without {lost}"),
            Request::Admin(Admin::Status) => "status".into(),
        };
        self.line(format!("client → {site}"), &what);
    }

    pub fn answered(&mut self, site: SiteId, answer: &Answer) {
        let what = match answer {
            Answer::Began { txn } => format!("began {txn}"),
            Answer::Rows { rows, trips, .. } => format!("rows{}, {}", rows.iter().map(row).collect::<String>(), trips_of(*trips)),
            Answer::Committed(committed) => format!("committed at {}, {}", committed.at, trips_of(committed.trips)),
            Answer::Failed(error) => format!("failed: {error}"),
            Answer::Done => "done".into(),
            Answer::Admin(status) => format!("{} prepared, {} in doubt", status.prepared, status.in_doubt),
        };
        self.line(format!("{site} → client"), &what);
    }

    /// Panics unless this is what is recorded under `name`. With `UPDATE_GOLDEN` set, records it instead.
    #[allow(clippy::disallowed_methods)] // the protocol does no I/O; its tests read what they recorded
    pub fn check(self, name: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &self.text).expect("the golden file can be written");
            return;
        }
        let recorded = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = recorded.lines().zip(self.text.lines()).position(|(recorded, now)| recorded != now);
        let line = differs.unwrap_or(recorded.lines().count().min(self.text.lines().count()));
        assert!(
            recorded == self.text,
            "{} differs from line {} on:\n  recorded: {}\n  now:      {}\nIf the change is meant, record it: UPDATE_GOLDEN=1 cargo test -p rhumb-replicated-commit",
            path.display(),
            line + 1,
            recorded.lines().nth(line).unwrap_or("(nothing)"),
            self.text.lines().nth(line).unwrap_or("(nothing)"),
        );
    }
}

fn is_background(envelope: &Envelope) -> bool {
    match &envelope.body {
        Body::Note(Note::Ping(_) | Note::Pong { .. } | Note::Measured(_)) | Body::Promise(Promise::Pull(_)) => true,
        Body::Promise(Promise::Log(LogPage { heads, .. })) => heads.is_empty(),
        _ => false,
    }
}

fn trips_of(trips: u32) -> String {
    format!("{trips} trip{}", if trips == 1 { "" } else { "s" })
}

fn name_of(mode: ReadMode) -> String {
    match mode {
        ReadMode::Locking => "locking".into(),
        ReadMode::Optimistic => "optimistic".into(),
        ReadMode::Active => "active".into(),
        ReadMode::Snapshot => "snapshot".into(),
        ReadMode::Stale(at) => format!("stale as of {at}"),
    }
}

fn row(row: &Row) -> String {
    match row.version {
        Timestamp::ZERO => format!(" {} unwritten", row.key),
        version => format!(" {}={}@{version}", row.key, text_of(row.value.as_ref())),
    }
}

fn text_of(value: Option<&rhumb_core::Value>) -> String {
    let text = |value: &rhumb_core::Value| match Placement::decode(value) {
        Some(placement) => format!("[{placement}]"),
        None => String::from_utf8_lossy(&value.0).into_owned(),
    };
    value.map_or("deleted".into(), text)
}

fn describe(op: &Op) -> Option<String> {
    match op {
        Op::PutVersion { key, at, value } => Some(format!("{key}={}@{at}", text_of(value.as_ref()))),
        Op::PutRecord { space: VOTES, bytes, .. } => {
            let record: VoteRecord = record::decode(bytes).expect("a vote decodes");
            let outcome = record.decision.map_or(String::new(), |decision| format!(", {decision}"));
            let vote = record.vote.map_or("none".into(), |vote| vote.to_string());
            Some(format!("vote {vote}{outcome}"))
        }
        Op::PutRecord { space: PREPARED, .. } => Some("prepared".into()),
        Op::PutRecord { space: LOG, .. } => Some("log entry".into()),
        Op::DeleteRecord { space: PREPARED, .. } => Some("not prepared".into()),
        _ => None,
    }
}
