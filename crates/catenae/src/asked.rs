//! A transaction that somebody asks to be run, on its way from the client to the batch that has it, and to the answer.

use super::context::Context;
use super::epoch::Epoch;
use super::message::{Answer, Forwarded, Identifier};
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_commit::transaction::TxnError;
use rhumb_core::SiteId;
use rhumb_core::actor::RequestId;

/// A transaction to be run.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) by: Asker,
    pub(super) transaction: Transaction,
    /// The tick in which it came.
    pub(super) since: u64,
    /// It is not forwarded: it has been already, and was taken back or comes from another site.
    pub(super) stays: bool,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A client of this site.
    Client(RequestId),
    /// Another site of the region, which forwards what a client of its own asks.
    Site {
        /// Which site.
        site: SiteId,
        /// What it calls the transaction.
        name: Forwarded,
        /// The last epoch in which it may be sealed.
        until: Epoch,
    },
}

/// A transaction of a client of this site is agreed on: the client is answered once it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    pub(super) identifier: Identifier,
    pub(super) client: RequestId,
    /// The tick in which it came.
    pub(super) since: u64,
}

impl Asked {
    /// Tells a client that it failed. Another site finds out by itself.
    pub(super) fn fail(self, error: TxnError, cx: &mut Context<'_>) {
        if let Asker::Client(id) = self.by {
            cx.fx.answer(id, Answer::Failed(error));
        }
    }
}
