//! Reads under shared locks: at the whole read quorum, and of what it answers the newest.
//!
//! Invariants: all reads of a transaction ask the same quorum; a replica's rows count only in the session of its first ones.
//!
//! Source: section II-B.

use super::{Doing, Gateway, no_quorum, over};
use crate::context::Context;
use crate::message::{Note, Query, Rows};
use crate::planted::Planted;
use crate::request::Answer;
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, KeyRange, Row, SiteId, Timestamp, TxnId, work};
use std::collections::BTreeMap;

impl Gateway {
    pub(super) fn read(&mut self, id: RequestId, txn: TxnId, query: Query, cx: &mut Context<'_>) {
        let Some(open) = self.go_on(id, txn, cx) else { return };
        if open.quorum.is_empty() {
            let Some(found) = cx.configuration.quorums.read(cx.me, &cx.up(), open.turn) else {
                return self.fail(txn, Some(id), no_quorum("read"), cx);
            };
            open.quorum = found;
        }
        open.number += 1;
        open.trips += 1;
        for site in &open.quorum {
            cx.send(*site, Note::Read { txn, number: open.number, query: query.clone() });
        }
        open.doing = Doing::Reading { id, query, answers: BTreeMap::new() };
    }

    pub(crate) fn on_rows(&mut self, from: SiteId, rows: Rows, cx: &mut Context<'_>) {
        let Rows { txn, number, session, .. } = rows;
        let Some(open) = self.open.get_mut(&txn) else { return };
        let Doing::Reading { id, query, answers } = &mut open.doing else { return };
        if number != open.number || !open.quorum.contains(&from) {
            return;
        }
        let id = *id;
        if *open.sessions.entry(from).or_insert(session) != session {
            return self.fail(txn, Some(id), over(), cx);
        }
        answers.insert(from, rows);
        if answers.len() < open.quorum.len() {
            return;
        }
        let answers: Vec<Rows> = std::mem::take(answers).into_values().collect();
        for row in answers.iter().flat_map(|answer| &answer.rows) {
            work::add(1);
            cx.clock.observe(row.version);
        }
        let answer = match query {
            Query::Keys(_) if cx.rules.breaks(Planted::FirstForNewest) => Answer::Rows {
                rows: answers[answers.len() - 1].rows.clone(),
                covered: None,
                more: false,
                trips: open.trips,
                at: Timestamp::ZERO,
            },
            Query::Keys(keys) => {
                let reached = answers.iter().map(|answer| answer.rows.len()).min().expect("a quorum is not empty");
                let rows = newest(&keys[..reached.min(keys.len())], &answers);
                let more = rows.len() < keys.len();
                Answer::Rows { rows, covered: None, more, trips: open.trips, at: Timestamp::ZERO }
            }
            Query::Range { range, limit, reverse } => {
                let (rows, covered) = merge(range, *limit as usize, *reverse, &answers);
                let more = covered != *range;
                Answer::Rows { rows, covered: Some(covered), more, trips: open.trips, at: Timestamp::ZERO }
            }
        };
        open.doing = Doing::Idle;
        open.since = cx.ticks;
        cx.fx.answer(id, answer);
    }
}

/// Of each key the newest row among the answers, which have one for each.
fn newest(keys: &[Key], answers: &[Rows]) -> Vec<Row> {
    let of = |place: usize| answers.iter().map(|answer| &answer.rows[place]).max_by_key(|row| row.version).expect("a quorum is not empty");
    (0..keys.len()).map(|place| of(place).clone()).collect()
}

/// The live rows of a range among the answers, and for which part of the range they speak: as far as every answer reached, and
/// no more than `limit` rows.
fn merge(range: &KeyRange, limit: usize, reverse: bool, answers: &[Rows]) -> (Vec<Row>, KeyRange) {
    let mut covered = range.clone();
    for answer in answers.iter().filter(|answer| answer.more) {
        match answer.rows.last() {
            Some(last) if reverse => covered.start = covered.start.max(last.key.clone()),
            Some(last) => covered.end = covered.end.min(last.key.successor()),
            None => covered.end = covered.start.clone(),
        }
    }
    let mut found: BTreeMap<&Key, &Row> = BTreeMap::new();
    for row in answers.iter().flat_map(|answer| &answer.rows).filter(|row| covered.contains(&row.key)) {
        let newest = found.entry(&row.key).or_insert(row);
        if row.version > newest.version {
            *newest = row;
        }
    }
    let live = found.into_values().filter(|row| row.value.is_some()).cloned();
    let mut rows: Vec<Row> = if reverse { live.rev().collect() } else { live.collect() };
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

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::Value;

    fn row(key: &str, version: u64, value: Option<&str>) -> Row {
        Row { key: key.into(), version: Timestamp::from_bits(version), value: value.map(Value::from) }
    }

    fn answer(rows: Vec<Row>, more: bool) -> Rows {
        let txn = TxnId { began: Timestamp::ZERO, gateway: SiteId::new(0, 0) };
        Rows { txn, number: 1, session: Timestamp::ZERO, rows, more }
    }

    fn range() -> KeyRange {
        KeyRange::new("a".into(), "z".into())
    }

    #[test]
    fn of_each_key_the_newest_row_counts_a_deletion_too() {
        let answers = [
            answer(vec![row("a", 3, Some("old")), row("b", 9, None)], false),
            answer(vec![row("a", 5, Some("new")), row("b", 2, Some("gone"))], false),
        ];
        assert_eq!(newest(&["a".into(), "b".into()], &answers), [row("a", 5, Some("new")), row("b", 9, None)]);
    }

    #[test]
    fn a_scan_speaks_for_as_much_as_every_answer_reached() {
        let cut = answer(vec![row("b", 1, Some("b")), row("d", 1, Some("d"))], true);
        let whole = answer(vec![row("c", 1, Some("c")), row("d", 2, None), row("e", 1, Some("e"))], false);
        let (rows, covered) = merge(&range(), 10, false, &[cut, whole]);
        assert_eq!(rows, [row("b", 1, Some("b")), row("c", 1, Some("c"))], "d is deleted, e lies beyond");
        assert_eq!(covered, KeyRange::new("a".into(), Key::from("d").successor()));
    }

    #[test]
    fn a_scan_from_the_end_is_cut_at_its_start() {
        let cut = answer(vec![row("e", 1, Some("e")), row("c", 1, Some("c"))], true);
        let whole = answer(vec![row("d", 1, Some("d")), row("b", 1, Some("b"))], false);
        let (rows, covered) = merge(&range(), 2, true, &[cut, whole]);
        assert_eq!(rows, [row("e", 1, Some("e")), row("d", 1, Some("d"))]);
        assert_eq!(covered, KeyRange::new("d".into(), "z".into()), "the limit cuts off more than the answers did");
        let nothing = merge(&range(), 0, false, &[answer(vec![], true), answer(vec![row("b", 1, Some("b"))], false)]);
        assert_eq!(nothing, (vec![], KeyRange::new("a".into(), "a".into())));
    }
}
