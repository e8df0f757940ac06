//! What happened in a scenario, one line each, and the comparison with what is recorded.
//!
//! ```text
//!   client → r0.0   asks            r0.0 → r1.0   a message, when it is delivered (or lost)
//!   r0.0 writes     to its disk     r0.0 → client is told
//! ```
//!
//! How far sites know the catalog they tell each other all the time; that is left out.

use super::Envelope;
use rhumb_core::actor::Op;
use rhumb_core::record::decode;
use rhumb_core::{Batch, Body, SiteId};
use rhumb_quota::account::Account;
use rhumb_quota::catalog;
use rhumb_quota::info::Info;
use rhumb_quota::message::Note;
use rhumb_quota::operation::{Action, Operation};
use rhumb_quota::records::{self, ACCOUNTS, ANSWERS, LISTS, PROTOCOLS};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
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

    pub fn written(&mut self, site: SiteId, batch: &Batch) {
        let ops: Vec<String> = batch.ops.iter().filter_map(describe).collect();
        if !ops.is_empty() {
            self.line(format!("{site} writes"), &ops.join(" + "));
        }
    }

    pub fn requested(&mut self, site: SiteId, request: &Request) {
        let what = match request {
            Request::Run(operations) => operations.iter().map(operation).collect::<Vec<_>>().join(", "),
            Request::Create { name, spec } => format!("create {name}, limit {}", spec.limit),
            Request::SetLimit { name, limit } => format!("set the limit of {name} to {limit}"),
            Request::Drop { name } => format!("drop {name}"),
            Request::DeclareLost { site } => format!("declare {site} lost"),
            Request::Get { name, read } => format!("get {name}, {read}"),
            Request::List => "list".into(),
            Request::Status => "status".into(),
        };
        self.line(format!("client → {site}"), &what);
    }

    pub fn answered(&mut self, site: SiteId, answer: &Answer) {
        let what = match answer {
            Answer::Ran(results) => {
                let outcomes = results.iter().map(|result| outcome(result, |done| format!("done, {} left", done.left)));
                outcomes.collect::<Vec<_>>().join(", ")
            }
            Answer::Changed(result) => outcome(result, |()| "changed".into()),
            Answer::Got(result) => outcome(result, info),
            Answer::Listed(infos) => infos.iter().map(info).collect::<Vec<_>>().join(", "),
            Answer::Status(status) => format!("{status:?}"),
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
            "{} differs from line {} on:\n  recorded: {}\n  now:      {}\nIf the change is meant, record it: UPDATE_GOLDEN=1 cargo test -p rhumb-quota",
            path.display(),
            line + 1,
            recorded.lines().nth(line).unwrap_or("(nothing)"),
            self.text.lines().nth(line).unwrap_or("(nothing)"),
        );
    }
}

fn is_background(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Catalog(catalog::Note::At { .. })))
}

fn operation(operation: &Operation) -> String {
    let Operation { action, quota, amount, id } = operation;
    let verb = match action {
        Action::Acquire => "acquire",
        Action::Release => "release",
        Action::Free => "free",
    };
    let id = id.as_ref().map_or(String::new(), |id| format!(" as {id:?}"));
    format!("{verb} {amount} of {quota}{id}")
}

fn outcome<T>(result: &Result<T, Refusal>, show: impl Fn(&T) -> String) -> String {
    result.as_ref().map_or_else(|refusal| format!("refused: {refusal}"), show)
}

fn info(info: &Info) -> String {
    let sites = info.sites.iter().map(|tokens| format!(" {} {} left, {} held", tokens.site, tokens.left, tokens.held));
    format!("{} of {}:{}", info.name, info.spec.limit, sites.collect::<Vec<_>>().join(";"))
}

fn describe(op: &Op) -> Option<String> {
    match op {
        Op::PutRecord { space: ACCOUNTS, key, bytes } => {
            let Account { tokens, offered, owed, .. } = decode(bytes).expect("an account decodes");
            let quota = records::quota_of(key).expect("the key of a quota");
            let offered = if offered.is_none() { String::new() } else { format!(", offers {offered}") };
            let owed = if owed == 0 { String::new() } else { format!(", owes {owed}") };
            Some(format!("{quota}: {tokens}{offered}{owed}"))
        }
        Op::PutRecord { space: PROTOCOLS, .. } => Some("state".into()),
        Op::PutRecord { space: LISTS, .. } => Some("list".into()),
        Op::PutRecord { space: ANSWERS, .. } => Some("answer".into()),
        _ => None,
    }
}
