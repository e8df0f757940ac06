//! How the transcript shows what quota sites do.
//!
//! How far sites know the catalog they tell each other all the time; that is left out.

use super::{Envelope, Quotas};
use rhumb_core::actor::Op;
use rhumb_core::record::decode;
use rhumb_core::{Body, SiteId, Topology};
use rhumb_quota::account::Account;
use rhumb_quota::catalog;
use rhumb_quota::info::Info;
use rhumb_quota::message::Note;
use rhumb_quota::operation::{Action, Operation};
use rhumb_quota::records::{self, ACCOUNTS, ANSWERS, LISTS, PROTOCOLS};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::{Config, Site};
use rhumb_testkit::Protocol;
use std::sync::Arc;

impl Protocol for Quotas {
    type Site = Site;

    fn site(&self, id: SiteId, topology: &Arc<Topology>) -> Site {
        (self.make)(Site::new(id, topology, Config::default()))
    }

    fn is_background(envelope: &Envelope) -> bool {
        matches!(envelope.body, Body::Note(Note::Catalog(catalog::Note::At { .. })))
    }

    fn request(request: &Request) -> String {
        match request {
            Request::Run(operations) => operations.iter().map(operation).collect::<Vec<_>>().join(", "),
            Request::Create { name, spec } => format!("create {name}, limit {}", spec.limit),
            Request::SetLimit { name, limit } => format!("set the limit of {name} to {limit}"),
            Request::Drop { name } => format!("drop {name}"),
            Request::DeclareLost { site } => format!("declare {site} lost"),
            Request::Get { name, read } => format!("get {name}, {read}"),
            Request::List => "list".into(),
            Request::Status => "status".into(),
        }
    }

    fn answer(answer: &Answer) -> String {
        match answer {
            Answer::Ran(results) => {
                let outcomes = results.iter().map(|result| outcome(result, |done| format!("done, {} left", done.left)));
                outcomes.collect::<Vec<_>>().join(", ")
            }
            Answer::Changed(result) => outcome(result, |()| "changed".into()),
            Answer::Got(result) => outcome(result, info),
            Answer::Listed(infos) => infos.iter().map(info).collect::<Vec<_>>().join(", "),
            Answer::Status(status) => format!("{status:?}"),
        }
    }

    fn write(op: &Op) -> Option<String> {
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
