//! What sites send to each other, and when it arrives.

use super::case::{Case, Frail};
use crate::configuration::{Configuration, Epoch, Stamped};
use crate::message::{Note, Promise};
use crate::testing::site;
use rhumb_core::{Ballot, Body, SiteId};
use std::collections::BTreeSet;
use std::fmt;

/// A message, to all whom the sender sends it in a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) from: SiteId,
    pub(super) to: BTreeSet<SiteId>,
    pub(super) body: Body<Stamped<Note>, Stamped<Promise>>,
}

/// When a message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Never,
    /// In the step in which it is sent.
    AtOnce,
    /// At any time from then on, any number of times, or never.
    Whenever,
}

impl Message {
    /// What `from` sends. Who tells of a decision makes no difference: all are told by the same message.
    pub(super) fn new(from: SiteId, to: SiteId, body: Body<Stamped<Note>, Stamped<Promise>>, case: &Case) -> Message {
        match body {
            Body::Note(Stamped { said: Note::Decided { .. }, .. }) => {
                Message { from: site(0), to: (0..case.sites() as u16).map(site).collect(), body }
            }
            body => Message { from, to: BTreeSet::from([to]), body },
        }
    }

    /// Adds this to what is sent in a step.
    pub(super) fn add_to(self, sent: &mut Vec<Message>) {
        match sent.iter_mut().find(|known| known.body == self.body && known.from == self.from) {
            Some(known) => known.to.extend(self.to),
            None => sent.push(self),
        }
    }

    pub(super) fn arrival(&self, case: &Case) -> Arrival {
        let is_between = |frail: Frail| self.from == site(frail.late_source as u16) && self.to.contains(&site(frail.site as u16));
        let may_be_late = case.frail.is_some_and(is_between);
        match &self.body {
            Body::Note(Stamped { said, .. }) => match said {
                Note::Seal { .. } | Note::Reconcile { .. } | Note::Accept { .. } | Note::Decided { .. } => Arrival::Whenever,
                Note::Pull(_) | Note::Fetch { .. } | Note::Prepare { .. } | Note::Refused { .. } | Note::Abort { .. } => Arrival::AtOnce,
                _ => Arrival::Never,
            },
            Body::Promise(Stamped { said, .. }) => match said {
                Promise::Commit { .. } | Promise::Committed { .. } => Arrival::Whenever,
                _ if may_be_late && self.answers_pull() => Arrival::Whenever,
                _ => Arrival::AtOnce,
            },
        }
    }

    /// The epoch in which alone it counts; none for what speaks of epochs itself.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        match &self.body {
            Body::Note(Stamped { epoch, said }) => {
                let speaks_of_epochs = matches!(said, Note::Decided { .. } | Note::Pull(_) | Note::Fetch { .. });
                (!speaks_of_epochs).then_some(*epoch)
            }
            Body::Promise(Stamped { epoch, .. }) => (!self.answers_pull()).then_some(*epoch),
        }
    }

    /// The configuration that it says was decided.
    pub(super) fn decided(&self) -> Option<&Configuration> {
        match &self.body {
            Body::Note(Stamped { said: Note::Decided { configuration }, .. }) => Some(configuration),
            _ => None,
        }
    }

    /// The configuration that it has others accept, and in which ballot.
    pub(super) fn proposed(&self) -> Option<(Ballot, &Configuration)> {
        match &self.body {
            Body::Note(Stamped { said: Note::Accept { ballot, configuration }, .. }) => Some((*ballot, configuration)),
            _ => None,
        }
    }

    /// True if it says that a commit stands at its sender.
    pub(super) fn confirms_commit(&self) -> bool {
        matches!(self.body, Body::Promise(Stamped { said: Promise::Committed { .. }, .. }))
    }

    /// True if it asks for something that may not be there yet.
    pub(super) fn is_pull(&self) -> bool {
        matches!(self.body, Body::Note(Stamped { said: Note::Pull(_), .. }))
    }

    /// True if it tells what was asked for.
    pub(super) fn answers_pull(&self) -> bool {
        let Body::Promise(Stamped { said, .. }) = &self.body else { return false };
        matches!(said, Promise::Differences(_) | Promise::Commits { .. } | Promise::Copies { .. })
    }

    /// True if it is part of a transaction, and not of a change.
    pub(super) fn is_of_transaction(&self) -> bool {
        match &self.body {
            Body::Note(Stamped { said, .. }) => matches!(said, Note::Prepare { .. } | Note::Refused { .. } | Note::Abort { .. }),
            Body::Promise(Stamped { said, .. }) => {
                matches!(said, Promise::Prepared { .. } | Promise::Commit { .. } | Promise::Committed { .. })
            }
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.from, self.body)
    }
}
