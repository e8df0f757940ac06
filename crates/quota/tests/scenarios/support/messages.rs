//! What a message is: for scenarios that hold some up.

use super::Envelope;
use rhumb_core::Body;
use rhumb_quota::avantan::{self, any, majority};
use rhumb_quota::catalog::{self, Change};
use rhumb_quota::count;
use rhumb_quota::message::{Note, Promise};

fn majority(envelope: &Envelope) -> Option<&majority::Promise> {
    match &envelope.body {
        Body::Promise(Promise::Avantan(_, avantan::Promise::Majority(promise))) => Some(promise),
        _ => None,
    }
}

fn any(envelope: &Envelope) -> Option<&any::Promise> {
    match &envelope.body {
        Body::Promise(Promise::Avantan(_, avantan::Promise::Any(promise))) => Some(promise),
        _ => None,
    }
}

/// True for what a site says to another's look at its tokens.
pub fn is_seen(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Seen(..)))
}

/// True for all that is said in a redistribution.
pub fn is_of_a_redistribution(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Avantan(..)) | Body::Note(Note::Avantan(..)))
}

/// True for all that is said in a count.
pub fn is_of_a_count(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Count(..)) | Body::Note(Note::Count(..)))
}

/// True for the call to stand still for a count.
pub fn is_stand(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Count(_, count::Promise::Stand { .. })))
}

/// True for the word that a site has stood still until it was told to go on.
pub fn is_stood(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Count(_, count::Promise::Stood { .. })))
}

/// True for the proposal to book what lost sites have.
pub fn is_booking(envelope: &Envelope) -> bool {
    matches!(&envelope.body, Body::Promise(Promise::Catalog(catalog::Promise::Accept { command, .. })) if matches!(command.change, Change::Book { .. }))
}

/// True for the outcome of a count.
pub fn is_counted(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Promise(Promise::Count(_, count::Promise::Counted { .. })))
}

/// True for the word that a count has come to nothing.
pub fn is_void(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Count(_, count::Note::Void { .. })))
}

/// True for an `ElectionOk`.
pub fn is_election_ok(envelope: &Envelope) -> bool {
    matches!(majority(envelope), Some(majority::Promise::ElectionOk { .. }))
        || matches!(any(envelope), Some(any::Promise::ElectionOk { .. }))
}

/// True for an `Accept`.
pub fn is_accept(envelope: &Envelope) -> bool {
    matches!(majority(envelope), Some(majority::Promise::Accept { .. })) || matches!(any(envelope), Some(any::Promise::Accept { .. }))
}

/// True for an `AcceptOk`.
pub fn is_accept_ok(envelope: &Envelope) -> bool {
    matches!(majority(envelope), Some(majority::Promise::AcceptOk { .. })) || matches!(any(envelope), Some(any::Promise::AcceptOk { .. }))
}

/// True for a `Decided`.
pub fn is_decided(envelope: &Envelope) -> bool {
    let noted = matches!(envelope.body, Body::Note(Note::Avantan(_, avantan::Note::Majority(majority::Note::Decided { .. }))));
    noted || matches!(any(envelope), Some(any::Promise::Decided { .. }))
}
