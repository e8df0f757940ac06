//! Requests that wait until this site may issue a timestamp: transactions and sessions that have no name yet.
//!
//! A clock that hears of a timestamp beyond its bound on disk issues none before a higher one is there. That takes a sync, and requests that arrive
//! in the meantime wait for it instead of being refused: otherwise a gateway whose clock is ahead would stop its peers until their next ticks.
//!
//! Invariant: the waiting requests are bounded in number and in bytes; further ones are refused as if the site had no room for them.

use super::configuration::Stamped;
use super::context::Context;
use super::message::{Note, Query};
use super::replica::Replica;
use super::request::Request;
use rhumb_commit::transaction::ReadMode;
use rhumb_core::actor::RequestId;
use rhumb_core::{SiteId, Table};

/// So many wait at the most.
const UNNAMED_MAX: usize = 10_000;
/// And so many bytes of what they ask and write.
const UNNAMED_BYTES_MAX: usize = 64 << 20;

/// What waits for a timestamp.
#[derive(Clone, Debug)]
pub(super) enum Unnamed {
    /// A client begins a transaction.
    Begin(RequestId, Request),
    /// A transaction comes here for the first time.
    Session(SiteId, Stamped<Note>),
}

/// All that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct UnnamedQueue {
    waiting: Vec<Unnamed>,
    bytes: usize,
}

impl UnnamedQueue {
    /// True if `request` begins a transaction, for which no timestamp may be issued yet, and there is room for it to wait.
    pub(super) fn delays_begin(&self, request: &Request, cx: &mut Context<'_>) -> bool {
        let begins = matches!(request, Request::Begin { mode } if !matches!(mode, ReadMode::Stale(_)));
        begins && cx.is_member() && !cx.may_issue() && self.has_room(0)
    }

    /// The same of a session that `said` begins here.
    pub(super) fn delays_session(&self, said: &Note, replica: &Replica, cx: &mut Context<'_>) -> bool {
        let (Note::Read { txn, .. } | Note::Prepare { txn, session: None, .. }) = said else { return false };
        !replica.works_for(*txn) && !cx.may_issue() && self.has_room(bytes(said))
    }

    /// True if there is room for so many bytes more.
    fn has_room(&self, bytes: usize) -> bool {
        self.waiting.len() < UNNAMED_MAX && self.bytes + bytes <= UNNAMED_BYTES_MAX
    }

    /// Lists it.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("unnamed", self.waiting.len(), UNNAMED_MAX));
        visit(Table::new("unnamed.bytes", self.bytes, UNNAMED_BYTES_MAX));
    }

    /// Adds one, for which there is room.
    pub(super) fn push(&mut self, unnamed: Unnamed) {
        self.bytes += if let Unnamed::Session(_, Stamped { said, .. }) = &unnamed { bytes(said) } else { 0 };
        self.waiting.push(unnamed);
    }

    /// Takes them all, in the order in which they came.
    pub(super) fn take(&mut self) -> Vec<Unnamed> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

/// Bytes of keys and values in what begins a session.
fn bytes(said: &Note) -> usize {
    match said {
        Note::Read { query: Query::Keys(keys), .. } => keys.iter().map(|key| key.0.len()).sum(),
        Note::Read { query: Query::Range { range, .. }, .. } => range.start.0.len() + range.end.0.len(),
        Note::Prepare { writes, .. } => {
            writes.iter().map(|(key, value)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len())).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::testing::{Bench, site, txn};
    use super::*;
    use rhumb_core::{Span, Timestamp};

    #[test]
    fn whoever_has_no_name_waits_while_the_clock_is_beyond_its_bound() {
        let (mut bench, mut queue) = (Bench::new(2, 3, Config::default()), UnnamedQueue::default());
        let begin = Request::Begin { mode: ReadMode::Locking };
        let read = Note::Read { txn: txn(5, 1), number: 1, query: Query::Keys(vec!["k".into()]) };
        assert!(!bench.step(|cx| queue.delays_begin(&begin, cx) || queue.delays_session(&read, &Replica::default(), cx)));
        let ahead = Timestamp::from_time(bench.shared.now).plus(Span::from_secs(60));
        bench.shared.clock.observe(ahead);
        assert!(bench.step(|cx| queue.delays_begin(&begin, cx)));
        assert_eq!(bench.lines(), ["sync +clock bound"], "which is being raised");
        assert!(bench.step(|cx| queue.delays_session(&read, &Replica::default(), cx)));
        assert_eq!(bench.lines().len(), 0, "once");
        let said = bench.shared.configuration.epoch.says(read.clone());
        (0..UNNAMED_MAX).for_each(|_| queue.push(Unnamed::Session(site(1), said.clone())));
        assert!(!bench.step(|cx| queue.delays_session(&read, &Replica::default(), cx)), "there is no room");
        assert_eq!((queue.bytes, queue.take().len(), queue.bytes), (UNNAMED_MAX, UNNAMED_MAX, 0));
    }
}
