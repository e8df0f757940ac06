//! What a message is about: for scenarios that hold some up.

use super::Envelope;
use rhumb_core::{Body, SiteId, TxnId};
use rhumb_replicated_commit::message::{Attempt, Inquiry, Testified, Voted};
use rhumb_replicated_commit::{Note, Promise};

/// The attempt that a message is about.
fn attempt_of(envelope: &Envelope) -> Option<Attempt> {
    match &envelope.body {
        Body::Note(
            Note::Accept { meta, .. }
            | Note::Withdraw { meta }
            | Note::Decided { meta, .. }
            | Note::AskGateway { meta }
            | Note::AskVote { meta }
            | Note::Inquire(Inquiry { meta, .. })
            | Note::Propose { meta, .. }
            | Note::Concluded { meta, .. },
        )
        | Body::Promise(Promise::Aborted { meta, .. } | Promise::Vote(Voted { meta, .. })) => Some(meta.attempt),
        Body::Note(Note::Over { attempt } | Note::Outranked { attempt, .. })
        | Body::Promise(
            Promise::Testified(Testified { attempt, .. })
            | Promise::Contested { attempt, .. }
            | Promise::Accepted { attempt, .. }
            | Promise::Forgotten { attempt, .. },
        ) => Some(*attempt),
        _ => None,
    }
}

/// True for what is about the transaction.
pub fn is_about(envelope: &Envelope, txn: TxnId) -> bool {
    attempt_of(envelope).is_some_and(|attempt| attempt.txn == txn)
}

/// True for an `AskVote`.
pub fn asks_for_votes(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::AskVote { .. }))
}

/// True for what tells an outcome.
pub fn tells_outcome(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Decided { .. } | Note::Concluded { .. }) | Body::Promise(Promise::Aborted { .. }))
}

/// True for what a region says once it has stopped.
pub fn stops(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Stopped(_)))
}

/// True for a page of a log, with its rows or without.
pub fn is_of_log(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Log(_) | Promise::Entries { .. }))
}

/// True for the writes of a commit that its gateway sends to a passive region.
pub fn is_copy(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Copy { .. }))
}

/// True for what a leader asks in the first phase of its round.
pub fn inquires(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Inquire(_)))
}

/// True for an `Accept`.
pub fn is_accept(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Accept { .. }))
}

/// True for a `Vote`.
pub fn is_vote(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Vote(_)))
}

/// True for an `Accept` or a `Vote` of a transaction of `gateway`.
pub fn is_of(envelope: &Envelope, gateway: SiteId) -> bool {
    match &envelope.body {
        Body::Note(Note::Accept { meta, .. }) | Body::Promise(Promise::Vote(Voted { meta, .. })) => meta.attempt.txn.gateway == gateway,
        _ => false,
    }
}
