//! One quota at one site: its tokens and the acquires that wait for more of them.

use bytes::Bytes;
use rhumb_core::actor::RequestId;
use std::collections::VecDeque;

/// One quota at one site.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Tokens that the site may give out.
    pub(super) left: u64,
    /// Tokens that its clients hold.
    pub(super) held: u64,
    /// Acquires that wait for tokens, in order. No more than clients have requests outstanding.
    pub(super) waiting: VecDeque<Waiter>,
    /// The round of borrowing under way.
    pub(super) round: Option<Round>,
}

/// An acquire that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    /// The call that it belongs to.
    pub(super) call: RequestId,
    /// Which operation of that call.
    pub(super) index: usize,
    /// Tokens wanted.
    pub(super) amount: u64,
}

/// A round of borrowing: one lender is asked after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    /// The lender asked, by its place in the order.
    pub(super) lender: usize,
    /// The waiters that were there when the round began: if it ends in vain, they are refused.
    pub(super) began_with: usize,
}

const RECORD_BYTES: usize = 16;

impl Account {
    /// What is kept on disk.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [self.left.to_be_bytes(), self.held.to_be_bytes()].concat()
    }

    /// What was kept on disk; `None` if the bytes are none of ours.
    pub(super) fn from_bytes(bytes: &Bytes) -> Option<Account> {
        let bytes: &[u8; RECORD_BYTES] = bytes.as_ref().try_into().ok()?;
        let (left, held) = bytes.split_first_chunk::<8>()?;
        Some(Account { left: u64::from_be_bytes(*left), held: u64::from_be_bytes(held.try_into().ok()?), ..Account::default() })
    }

    /// Takes `amount` tokens for a client, if there are as many.
    pub(super) fn take(&mut self, amount: u64) -> bool {
        let enough = amount <= self.left;
        if enough {
            self.left -= amount;
            self.held += amount;
        }
        enough
    }

    /// Takes `amount` tokens back from a client, if its site's clients hold as many.
    pub(super) fn put_back(&mut self, amount: u64) -> bool {
        let held = amount <= self.held;
        if held {
            self.held -= amount;
            self.left += amount;
        }
        held
    }
}
