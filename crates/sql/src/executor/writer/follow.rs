//! Rows that reference what is gone: changed or deleted as their constraints say, and those that reference them, and so on.
//!
//! Depth first, so that each row is met as the changes before have left it. Whether something is missed by what is still there is seen when
//! the statement ends: another constraint may have taken that along.

use super::rules::{Child, Rules, same_as, values_of};
use super::{Unsettled, Writer};
use crate::engine::Engine;
use crate::error::SqlResult;
use crate::executor::gathered::{Gathered, WRITTEN_ROWS_MAX, too_many};
use crate::schema::{Action, ForeignKey};
use crate::storage::{self, Row, each_with};
use crate::txn::{Active, Noted, Reference};
use crate::types::{Datum, coerce};
use datafusion::execution::memory_pool::MemoryReservation;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Rows that are no more, each with what it has become, and how far it was looked for rows that reference them.
pub(super) struct Gone {
    rules: usize,
    rows: Vec<(Row, Option<Row>)>,
    child: usize,
    /// The charge for the rows.
    _charge: Option<MemoryReservation>,
}

/// The keys that rows had and have no more, as a foreign key has them: each with the place of its row.
type Keys = HashMap<Vec<Datum>, usize>;

impl Gone {
    /// Rows of the writer's own table.
    pub(super) fn of(rows: Vec<(Row, Option<Row>)>) -> Gone {
        Gone { rules: 0, rows, child: 0, _charge: None }
    }
}

impl Writer {
    /// Looks for rows that reference what is gone. Errors: those of writing, 54000 if they are too many.
    pub(super) async fn follow(&self, engine: &Engine, active: &mut Active, gone: Gone, unsettled: &mut Unsettled) -> SqlResult<()> {
        let (mut pending, mut count) = (vec![gone], 0);
        while let Some(gone) = pending.last_mut() {
            let at = gone.rules;
            let Some(child) = self.rules[at].children.get(gone.child) else {
                pending.pop();
                continue;
            };
            gone.child += 1;
            let (rules, constraint) = self.constraint(child);
            let keys = self.keys_gone(gone, child);
            let deletes = gone.rows.first().is_some_and(|(_, new)| new.is_none());
            let action = if deletes { constraint.on_delete } else { constraint.on_update };
            if matches!(action, Action::NoAction | Action::Restrict) {
                for (place, values) in keys {
                    unsettled.push(self.missed(gone, child, place, values, action)?)?;
                }
                continue;
            }
            if keys.is_empty() {
                continue;
            }
            let places: Keys = keys.iter().map(|(place, values)| (values.clone(), *place)).collect();
            let wanted: HashSet<Vec<Datum>> = places.keys().cloned().collect();
            let mut gathered = Gathered::to_write(engine);
            let take = |rows| gathered.push(rows).map(|()| ControlFlow::Continue(()));
            each_with(active.txn.as_mut(), &rules.table, &constraint.columns, &wanted, take).await?;
            let (rows, charge) = gathered.into_rows();
            if rows.is_empty() {
                continue;
            }
            count += rows.len();
            if count > WRITTEN_ROWS_MAX {
                return Err(too_many(WRITTEN_ROWS_MAX));
            }
            // A default may be the very key that is gone.
            if action == Action::SetDefault {
                for (place, values) in keys {
                    unsettled.push(self.missed(gone, child, place, values, action)?)?;
                }
            }
            let next = if deletes && action == Action::Cascade {
                storage::delete(active.txn.as_mut(), &self.rules[child.rules].table, &rows)?;
                rows.into_iter().map(|row| (row, None)).collect()
            } else {
                let changed = rows.into_iter().map(|row| self.changed(engine, gone, child, action, &places, row));
                let changed = changed.collect::<SqlResult<Vec<_>>>()?;
                self.change(engine, active, child.rules, &changed, unsettled).await?;
                changed.into_iter().map(|(old, new)| (old, Some(new))).collect()
            };
            pending.push(Gone { rules: child.rules, rows: next, child: 0, _charge: Some(charge) });
        }
        Ok(())
    }

    /// The keys that a constraint references and that are gone, in the order of the rows that had them, as rows of its own table have them.
    fn keys_gone(&self, gone: &Gone, child: &Child) -> Vec<(usize, Vec<Datum>)> {
        let ((rules, constraint), parent) = (self.constraint(child), &self.rules[gone.rules].table);
        let mut keys = Vec::new();
        for (place, (old, new)) in gone.rows.iter().enumerate() {
            let same = new.as_ref().is_some_and(|new| child.columns.iter().all(|&column| old[column] == new[column]));
            if same || child.columns.iter().any(|&column| old[column].is_null()) {
                continue;
            }
            let columns = child.columns.iter().zip(&constraint.columns);
            let values = columns.map(|(&column, &own)| same_as(&parent.columns[column].ty, &rules.table.columns[own].ty, &old[column]));
            // No row has a key that its columns cannot hold.
            keys.extend(values.collect::<Option<Vec<Datum>>>().map(|values| (place, values)));
        }
        keys
    }

    /// What is to be there when the statement ends, if anybody still references it. What is restricted nobody may, whether it is there or not.
    fn missed(&self, gone: &Gone, child: &Child, place: usize, values: Vec<Datum>, action: Action) -> SqlResult<Reference> {
        let ((rules, _), parent) = (self.constraint(child), &self.rules[gone.rules].table);
        let names: Vec<&str> = child.columns.iter().map(|&column| parent.columns[column].name.as_str()).collect();
        let noted = Noted::Gone(storage::key_text(&names, parent, &child.columns, &gone.rows[place].0));
        let key = if action == Action::Restrict { None } else { rules.key(child.constraint, &values)? };
        Ok(Reference { child: rules.table.clone(), constraint: child.constraint, values, key, noted })
    }

    fn constraint(&self, child: &Child) -> (&Rules, &ForeignKey) {
        let rules = &self.rules[child.rules];
        (rules, &rules.table.foreign_keys[child.constraint])
    }

    /// What a row that references a key which is gone becomes.
    fn changed(&self, engine: &Engine, gone: &Gone, child: &Child, action: Action, places: &Keys, row: Row) -> SqlResult<(Row, Row)> {
        let (rules, foreign) = self.constraint(child);
        let parent = places.get(&values_of(foreign, &row)).and_then(|place| gone.rows[*place].1.as_ref());
        let mut new = row.clone();
        for (&theirs, &column) in child.columns.iter().zip(&foreign.columns) {
            let ty = &rules.table.columns[column].ty;
            new[column] = match (action, parent, &rules.defaults) {
                (Action::Cascade, Some(parent), _) => coerce(ty, parent[theirs].clone())?,
                (Action::SetDefault, _, Some(defaults)) => defaults.undrawn(engine, column)?,
                _ => ty.null(),
            };
        }
        Ok((row, new))
    }
}
