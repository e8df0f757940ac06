//! How the transcript shows what sites of Replicated Commit do.
//!
//! Pings, what sites measure, pulls that find nothing new, and the site's own numbers on disk go on all the time and are left out.

use super::{Envelope, ReplicatedCommit};
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::ReadMode;
use rhumb_core::actor::Op;
use rhumb_core::{Body, Row, SiteId, Timestamp, Topology, Value, record};
use rhumb_replicated_commit::message::{LogPage, Voted};
use rhumb_replicated_commit::records::{LOG, PREPARED, VOTES, VoteRecord};
use rhumb_replicated_commit::{Admin, Answer, Config, Note, Promise, Request, Site};
use rhumb_testkit::Protocol;
use std::sync::Arc;

impl Protocol for ReplicatedCommit {
    type Site = Site;

    fn site(&self, id: SiteId, topology: &Arc<Topology>) -> Site {
        (self.make)(Site::new(id, Arc::clone(topology), self.placement.clone(), Config::default()))
    }

    fn is_background(envelope: &Envelope) -> bool {
        match &envelope.body {
            Body::Note(Note::Ping(_) | Note::Pong { .. } | Note::Measured(_)) | Body::Promise(Promise::Pull(_)) => true,
            Body::Promise(Promise::Log(LogPage { heads, .. })) => heads.is_empty(),
            _ => false,
        }
    }

    fn request(request: &Request) -> String {
        match request {
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
        }
    }

    fn answer(answer: &Answer) -> String {
        match answer {
            Answer::Began { txn } => format!("began {txn}"),
            Answer::Rows { rows, trips, .. } => format!("rows{}, {}", rows.iter().map(row).collect::<String>(), trips_of(*trips)),
            Answer::Committed(committed) => format!("committed at {}, {}", committed.at, trips_of(committed.trips)),
            Answer::Failed(error) => format!("failed: {error}"),
            Answer::Done => "done".into(),
            Answer::Admin(status) => format!("{} prepared, {} in doubt", status.prepared, status.in_doubt),
        }
    }

    fn write(op: &Op) -> Option<String> {
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

    fn assert_may_be_sent(envelope: &Envelope) {
        if let Body::Promise(Promise::Vote(Voted { meta, region, .. })) = &envelope.body {
            assert_eq!(envelope.from, SiteId { region: *region, shard: meta.coordinator }, "a region votes once");
        }
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

fn text_of(value: Option<&Value>) -> String {
    let text = |value: &Value| match Placement::decode(value) {
        Some(placement) => format!("[{placement}]"),
        None => String::from_utf8_lossy(&value.0).into_owned(),
    };
    value.map_or("deleted".into(), text)
}
