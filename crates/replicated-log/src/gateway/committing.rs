//! Commits: every group of a transaction prepares its part, and the first one says what became of it.

use super::{Doing, Gateway, Open, Part, conflict};
use crate::config::WRITES_BYTES_MAX;
use crate::context::Context;
use crate::message::{Fate, Refusal};
use rhumb_commit::interactive::Answer;
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, Timestamp, TxnId, Value};
use std::collections::BTreeMap;

impl Gateway {
    pub(super) fn commit(
        &mut self,
        id: RequestId,
        txn: TxnId,
        writes: Vec<(Key, Option<Value>)>,
        expect: Vec<(Key, Timestamp)>,
        cx: &mut Context<'_>,
    ) {
        let Some(open) = self.open.get_mut(&txn).filter(|open| matches!(open.doing, Doing::Idle)) else {
            return cx.fx.answer(id, Answer::Failed(conflict("the transaction is not known here any more")));
        };
        if open.lost {
            self.give_up(txn, cx);
            return cx.fx.answer(id, Answer::Failed(conflict("an older transaction took its locks over")));
        }
        if open.mode.is_read_only() {
            let (at, trips) = (open.at.unwrap_or_else(|| cx.timestamp()), open.trips);
            self.open.remove(&txn);
            let answer = match writes.is_empty() {
                true => Answer::Committed(Committed { at, trips }),
                false => Answer::Failed(TxnError::Invalid("the transaction is read-only".into())),
            };
            return cx.fx.answer(id, answer);
        }
        let depends: usize = expect.iter().map(|(key, _)| key.0.len() + 16).sum::<usize>() + open.expect_bytes;
        let bytes: usize =
            depends + writes.iter().map(|(key, value)| key.0.len() + value.as_ref().map_or(0, |value| value.0.len()) + 16).sum::<usize>();
        if bytes > WRITES_BYTES_MAX {
            self.give_up(txn, cx);
            let why = format!("a transaction writes and depends on at most {WRITES_BYTES_MAX} bytes, not {bytes}");
            return cx.fx.answer(id, Answer::Failed(TxnError::TooLarge(why.into())));
        }
        let mut parts: BTreeMap<u16, Part> = open.sessions.keys().map(|shard| (*shard, Part::default())).collect();
        for (key, value) in writes.into_iter().collect::<BTreeMap<_, _>>() {
            parts.entry(cx.topology.shard_of(&key)).or_default().writes.push((key, value));
        }
        for (key, version) in open.expect.drain(..).chain(expect) {
            parts.entry(cx.topology.shard_of(&key)).or_default().expect.push((key, version));
        }
        if parts.is_empty() {
            let (at, trips) = (cx.timestamp(), open.trips);
            self.open.remove(&txn);
            return cx.fx.answer(id, Answer::Committed(Committed { at, trips }));
        }
        // A group decides whose leader is here, so that the outcome is near.
        let mut shards: Vec<u16> = parts.keys().copied().collect();
        if let Some(place) = shards.iter().position(|shard| cx.leader_of(*shard).region == cx.me.region) {
            shards.swap(0, place);
        }
        open.trips += if shards.len() == 1 { 2 } else { 4 };
        open.hops = 0;
        open.doing = Doing::Committing { id, shards, parts, since: cx.ticks, sent: cx.ticks };
        self.ask(txn, None, cx);
    }

    /// The first group of a transaction says what became of it.
    pub(crate) fn on_outcome(&mut self, txn: TxnId, fate: Fate, cx: &mut Context<'_>) {
        let Some(Open { doing: Doing::Committing { id, .. }, trips, .. }) = self.open.get(&txn) else { return };
        let (id, trips) = (*id, *trips);
        self.open.remove(&txn);
        let answer = match fate {
            Fate::Committed(at) => {
                cx.clock.observe(at);
                Answer::Committed(Committed { at, trips })
            }
            Fate::Aborted(why) => {
                cx.fx.count("log.aborted");
                Answer::Failed(refused(why))
            }
            Fate::Forgotten => {
                cx.fx.count("log.forgotten");
                Answer::Failed(TxnError::Unknown("the transaction has ended so long ago that its outcome is forgotten".into()))
            }
        };
        cx.fx.answer(id, answer);
    }
}

/// What a client is told of a refusal.
pub(super) fn refused(why: Option<Refusal>) -> TxnError {
    let why = match why {
        Some(Refusal::TooLarge) => return TxnError::TooLarge("a transaction has read more than can be kept locked".into()),
        Some(Refusal::VersionsGone) => return TxnError::OutOfRange("versions of that time are not kept there".into()),
        None => "the transaction was given up",
        Some(Refusal::LocksLost) => "its locks were lost to an older transaction, or along with their leader",
        Some(Refusal::OlderInTheWay) => "an older transaction is in the way",
        Some(Refusal::Changed) => "rows that it depends on have changed",
        Some(Refusal::TooOld) => "it began too long ago",
        Some(Refusal::TooLate) => "not all of its groups have prepared it in time",
        Some(Refusal::Busy) => "a group has too many transactions under way",
    };
    conflict(why)
}
