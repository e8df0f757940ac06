//! The keys of a history, numbered in their order, each with its model.

use super::violation::{Anomaly, Violation};
use crate::history::{Cell, History, Op};
use rhumb_core::{Key, KeyRange};
use std::collections::BTreeMap;
use std::ops::Range;

/// Names a key: its rank among the keys of the history.
pub(super) type KeyNo = usize;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// A list of elements.
    List,
    /// A register. Also what nobody ever wrote or found.
    Register,
}

/// The keys of a history.
pub(super) struct Keys<'a> {
    sorted: Vec<(&'a Key, Model)>,
}

impl<'a> Keys<'a> {
    /// The keys that `history` names.
    pub fn of(history: &'a History) -> Result<Keys<'a>, Violation> {
        let mut models: BTreeMap<&Key, Option<Model>> = BTreeMap::new();
        for txn in history.txns() {
            let mut note = |key, model: Option<Model>| {
                let known = models.entry(key).or_default();
                if known.is_some() && model.is_some() && *known != model {
                    return Err(Violation::new(Anomaly::Misuse, format!("{key} is used both as a list and as a register"), [txn]));
                }
                *known = known.or(model);
                Ok(())
            };
            for op in &txn.ops {
                match op {
                    Op::Append { key, .. } => note(key, Some(Model::List))?,
                    Op::Write { key, .. } | Op::Delete { key } => note(key, Some(Model::Register))?,
                    Op::Read { key, cell, .. } => note(key, cell.as_ref().map(model_of))?,
                    Op::Scan { rows, .. } => rows.iter().try_for_each(|row| note(&row.key, Some(model_of(&row.cell))))?,
                }
            }
        }
        let sorted = models.into_iter().map(|(key, model)| (key, model.unwrap_or(Model::Register))).collect();
        Ok(Keys { sorted })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The number of `key`.
    pub fn number(&self, key: &Key) -> KeyNo {
        self.sorted.binary_search_by_key(&key, |&(key, _)| key).expect("every key of the history is numbered")
    }

    /// The key of that number.
    pub fn key(&self, key: KeyNo) -> &'a Key {
        self.sorted[key].0
    }

    /// What it holds.
    pub fn model(&self, key: KeyNo) -> Model {
        self.sorted[key].1
    }

    /// The keys of the history that lie in `range`.
    pub fn within(&self, range: &KeyRange) -> Range<KeyNo> {
        let below = |bound: &Key| self.sorted.partition_point(|&(key, _)| key < bound);
        below(&range.start)..below(&range.end).max(below(&range.start))
    }
}

fn model_of(cell: &Cell) -> Model {
    match cell {
        Cell::List(_) => Model::List,
        Cell::Register(_) => Model::Register,
    }
}
