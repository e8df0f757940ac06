//! What a message is about: for scenarios that hold some up.

use super::Envelope;
use rhumb_core::Body;
use rhumb_replicated_log::{Note, Promise};

/// True for what the replicas of a group say to each other.
pub fn is_of_group(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Note(Note::Group(_)) | Body::Promise(Promise::Group(_)))
}

/// What a message says to its last recipient.
fn note(envelope: &Envelope) -> Option<&Note> {
    match &envelope.body {
        Body::Note(Note::Relay { note, .. }) => Some(note),
        Body::Note(note) => Some(note),
        Body::Promise(_) => None,
    }
}

/// True for a `Prepare`.
pub fn prepares(envelope: &Envelope) -> bool {
    matches!(note(envelope), Some(Note::Prepare { .. }))
}

/// True for a `Prepared`.
pub fn is_prepared(envelope: &Envelope) -> bool {
    matches!(note(envelope), Some(Note::Prepared { .. }))
}

/// True for what the first group has decided, to the others.
pub fn is_decided(envelope: &Envelope) -> bool {
    matches!(note(envelope), Some(Note::Decided { .. }))
}

/// True for a `Finished`.
pub fn is_finished(envelope: &Envelope) -> bool {
    matches!(note(envelope), Some(Note::Finished { .. }))
}

/// True for an outcome, to a gateway.
pub fn is_outcome(envelope: &Envelope) -> bool {
    matches!(note(envelope), Some(Note::Outcome { .. }))
}

/// True for what a replica says that does not lead.
pub fn is_elsewhere(envelope: &Envelope) -> bool {
    matches!(note(envelope), Some(Note::Elsewhere { .. }))
}
