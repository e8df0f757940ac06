//! Reads: under locks, of a snapshot, or as of a timestamp; each from the leaders of the groups that have a part of it, or from replicas nearby.

use super::{Doing, Gateway, Parts, Reading, conflict};
use crate::config::{CEILING_LEAD, WRITES_BYTES_MAX};
use crate::context::Context;
use crate::message::{Note, Query};
use rhumb_commit::interactive::Answer;
use rhumb_commit::transaction::{ReadMode, TxnError};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, KeyRange, Row, SiteId, Timestamp, TxnId};
use std::collections::BTreeMap;

impl Gateway {
    pub(super) fn read(
        &mut self,
        id: RequestId,
        (txn, mode): (TxnId, ReadMode),
        query: Query,
        expect: Vec<(Key, Timestamp)>,
        cx: &mut Context<'_>,
    ) {
        let Some(open) = self.open.get_mut(&txn).filter(|open| matches!(open.doing, Doing::Idle)) else {
            return cx.fx.answer(id, Answer::Failed(conflict("the transaction is not known here any more")));
        };
        if mode.is_read_only() && !open.asked.is_empty() || !mode.is_read_only() && open.at.is_some() {
            // A commit validates what was read under locks, or else nothing.
            let why = "a transaction reads under locks, or a snapshot, and not both";
            return cx.fx.answer(id, Answer::Failed(TxnError::Invalid(why.into())));
        }
        if open.lost {
            return cx.fx.answer(id, Answer::Failed(conflict("an older transaction took its locks over")));
        }
        let parts: BTreeMap<u16, Query> = match &query {
            Query::Keys(keys) if keys.is_empty() => {
                return cx
                    .fx
                    .answer(id, Answer::Rows { rows: Vec::new(), covered: None, more: false, trips: open.trips, at: Timestamp::ZERO });
            }
            Query::Keys(keys) => by_shard(keys.iter(), cx),
            Query::Range { .. } => (0..cx.topology.shard_count()).map(|shard| (shard, query.clone())).collect(),
        };
        open.mode = mode;
        open.expect_bytes += expect.iter().map(|(key, _)| key.0.len() + 16).sum::<usize>();
        if open.expect_bytes > WRITES_BYTES_MAX {
            let why = format!("a transaction depends on at most {WRITES_BYTES_MAX} bytes of keys");
            return cx.fx.answer(id, Answer::Failed(TxnError::TooLarge(why.into())));
        }
        let snapshot = match mode {
            ReadMode::Locking | ReadMode::Optimistic | ReadMode::Active => None,
            ReadMode::Snapshot => Some((open.at.unwrap_or_else(|| cx.timestamp()), true)),
            ReadMode::Stale(at) if at > cx.timestamp().plus(CEILING_LEAD) => {
                return cx.fx.answer(id, Answer::Failed(TxnError::OutOfRange("the timestamp lies in the future".into())));
            }
            ReadMode::Stale(at) => Some((at, false)),
        };
        // A read in the past has today's schema anyway.
        let expect = match mode {
            ReadMode::Snapshot => expect,
            ReadMode::Stale(_) => Vec::new(),
            ReadMode::Locking | ReadMode::Optimistic | ReadMode::Active => {
                open.expect.extend(expect);
                Vec::new()
            }
        };
        let (rows, expected) = (Parts::of(parts), Parts::of(by_shard(expect.iter().map(|(key, _)| key), cx)));
        self.numbers += 2;
        let near = matches!(mode, ReadMode::Stale(_));
        open.trips += u32::from(!near);
        (open.since, open.hops) = (cx.ticks, 0);
        let (number, above, since, sent) = (self.numbers, Timestamp::ZERO, cx.ticks, cx.ticks);
        open.doing = Doing::Reading(Reading { id, number, query, expect, snapshot, near, rows, expected, above, since, sent });
        self.ask(txn, None, cx);
    }

    /// A leader, or a replica, has read.
    pub(crate) fn on_rows(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        let Note::Rows { txn, number, session, rows, more, above } = note else { unreachable!("they are rows") };
        let Some(open) = self.open.get_mut(&txn) else { return };
        let Doing::Reading(reading) = &mut open.doing else { return };
        if !reading.is_answered_by(number) {
            return;
        }
        if let Some(session) = session {
            let known = *open.sessions.entry(from.shard).or_insert(session);
            if known != session {
                return self.fail(txn, conflict("its locks were lost along with their leader"), cx);
            }
        }
        reading.above = reading.above.max(above);
        let parts = if number == reading.number { &mut reading.rows } else { &mut reading.expected };
        parts.found.insert(from.shard, (rows, more));
        if !reading.rows.is_complete() || !reading.expected.is_complete() {
            return;
        }
        match reading.snapshot {
            Some((at, true)) if reading.above > at => {
                cx.clock.observe(reading.above);
                if open.at.is_some() {
                    return self.fail(txn, conflict("rows have changed since the snapshot that it reads"), cx);
                }
                // All that was committed before the read began lies at or below.
                reading.snapshot = Some((reading.above, false));
                self.numbers += 2;
                (reading.number, reading.sent) = (self.numbers, cx.ticks);
                [&mut reading.rows, &mut reading.expected].into_iter().for_each(|parts| parts.found.clear());
                open.trips += 1;
                self.ask(txn, None, cx);
            }
            _ => match reading.unexpected() {
                Some(why) => self.fail(txn, why, cx),
                None => self.answer_rows(txn, cx),
            },
        }
    }

    fn answer_rows(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let open = self.open.get_mut(&txn).expect("it reads");
        let Doing::Reading(reading) = std::mem::replace(&mut open.doing, Doing::Idle) else { unreachable!("it reads") };
        open.at = reading.snapshot.map(|(at, _)| at);
        let (trips, at) = (open.trips, open.at.unwrap_or_default());
        let answer = match &reading.query {
            Query::Keys(keys) => {
                let mut found: BTreeMap<Key, Row> =
                    reading.rows.found.into_values().flat_map(|(rows, _)| rows).map(|row| (row.key.clone(), row)).collect();
                let mut rows = Vec::new();
                for key in keys {
                    match found.get_mut(key) {
                        Some(row) => rows.push(row.clone()),
                        None => break,
                    }
                }
                let more = rows.len() < keys.len();
                Answer::Rows { rows, covered: None, more, trips, at }
            }
            Query::Range { range, limit, reverse } => {
                let (rows, covered) = merge(range, *limit as usize, *reverse, reading.rows.found.into_values().collect());
                let more = covered != *range;
                Answer::Rows { rows, covered: Some(covered), more, trips, at }
            }
        };
        cx.fx.answer(reading.id, answer);
    }
}

impl Reading {
    /// Why the snapshot is not what is expected of it, if it is not.
    fn unexpected(&self) -> Option<TxnError> {
        let found: BTreeMap<&Key, Timestamp> =
            self.expected.found.values().flat_map(|(rows, _)| rows).map(|row| (&row.key, row.version)).collect();
        self.expect.iter().find_map(|(key, version)| match found.get(key) {
            Some(found) if found == version => None,
            Some(_) => Some(conflict("rows that it depends on have changed")),
            None => Some(TxnError::TooLarge("the rows that a snapshot depends on are larger than an answer may be".into())),
        })
    }
}

/// Asks each group for its keys.
fn by_shard<'a>(keys: impl Iterator<Item = &'a Key>, cx: &Context<'_>) -> BTreeMap<u16, Query> {
    let mut parts: BTreeMap<u16, Vec<Key>> = BTreeMap::new();
    keys.for_each(|key| parts.entry(cx.topology.shard_of(key)).or_default().push(key.clone()));
    parts.into_iter().map(|(shard, keys)| (shard, Query::Keys(keys))).collect()
}

/// The live rows of a range, of which each group has its own, and for which part of the range they speak.
fn merge(range: &KeyRange, limit: usize, reverse: bool, found: Vec<(Vec<Row>, bool)>) -> (Vec<Row>, KeyRange) {
    let mut covered = range.clone();
    for (rows, _) in found.iter().filter(|(_, more)| *more) {
        match rows.last() {
            Some(last) if reverse => covered.start = covered.start.max(last.key.clone()),
            Some(last) => covered.end = covered.end.min(last.key.successor()),
            None => covered.end = covered.start.clone(),
        }
    }
    let live = found.into_iter().flat_map(|(rows, _)| rows).filter(|row| row.value.is_some() && covered.contains(&row.key));
    let mut rows: Vec<Row> = live.collect();
    rows.sort_by(|a, b| a.key.cmp(&b.key));
    if reverse {
        rows.reverse();
    }
    if rows.len() >= limit
        && let Some(last) = rows.get(limit.max(1) - 1)
    {
        match reverse {
            true => covered.start = last.key.clone(),
            false => covered.end = last.key.successor(),
        }
        rows.truncate(limit);
    }
    (rows, covered)
}
