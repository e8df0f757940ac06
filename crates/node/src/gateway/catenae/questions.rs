//! What the gateway asks the actor of Catenae.

use super::found::Found;
use crate::gateway::question::Question;
use rhumb_catenae::{Admin, Answer, Request, Site, Status};
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::one_shot::execution::Outcome;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::{Key, KeyRange, Timestamp};

/// A transaction that ran: its place, and what became of it.
pub(super) struct Ran {
    pub(super) at: Timestamp,
    pub(super) outcome: Outcome,
}

/// Run a transaction.
pub(super) fn run(transaction: Transaction) -> Question<Site, Ran> {
    Question::new(
        Request::Run(transaction),
        |answer| if let Answer::Ran { at, outcome } = answer { Ok(Ran { at, outcome }) } else { Err(answer) },
    )
}

/// Read rows, and of a range so many.
pub(super) fn read(keys: Vec<Key>, range: Option<(KeyRange, usize)>, reverse: bool, freshness: Freshness) -> Question<Site, Found> {
    let ranges = range.into_iter().map(|(range, rows)| (range, rows as u32)).collect();
    Question::new(Request::Read { keys, ranges, reverse, freshness }, |answer| {
        if let Answer::Rows { at, rows, mut ranges, more } = answer {
            Ok(Found { at, rows, range: ranges.pop().unwrap_or_default(), is_cut: more })
        } else {
            Err(answer)
        }
    })
}

/// How does it fare?
pub(crate) fn status() -> Question<Site, Status> {
    Question::new(Request::Admin(Admin::Status), |answer| if let Answer::Admin(status) = answer { Ok(status) } else { Err(answer) })
}
