//! Foreign keys: two descriptors know each of them, that of the table which references and that of the one referenced.
//!
//! Invariant: for each foreign key of a table its parent has one entry in `referenced_by`, and a primary key or unique index over the columns
//! referenced. What would break that is refused, or takes the foreign key along.

use crate::catalog::define::duplicate_constraint;
use crate::catalog::layout::Entry;
use crate::catalog::names::{candidates, key_positions};
use crate::catalog::{CatalogView, ForeignKeySpec};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::schema::{ForeignKey, Referrer, TableDescriptor};
use crate::types::converts;
use rhumb_commit::transaction::Transaction;
use std::collections::BTreeSet;
use std::sync::Arc;

impl CatalogView {
    /// `ADD FOREIGN KEY`; the rows that there are are not looked at. Errors: 42622, 42703, 42701, 42704, 42710, 42804, 42830, 42P01, 42809.
    pub async fn add_foreign_key(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        spec: &ForeignKeySpec,
    ) -> SqlResult<Arc<TableDescriptor>> {
        let mut table = table.clone();
        let columns = key_positions(&table.nameable(), &spec.columns).map_err(|error| not_referenced(error, &table, &spec.columns))?;
        let parent =
            if spec.parent == table.name { Arc::new(table.clone()) } else { self.fresh_table(txn, table.database, &spec.parent).await? };
        let names = candidates(spec.name.as_deref(), &table.name, &spec.columns, "fkey")?;
        let name = names.iter().find(|name| !table.has_constraint(name)).ok_or_else(|| duplicate_constraint(&table.name, &names[0]))?;
        let referenced = referenced(&parent, &spec.parent_columns)?;
        if referenced.len() != columns.len() {
            let message = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new(SqlState::InvalidForeignKey, message));
        }
        if parent.unique_over(&referenced).is_none() {
            let message = format!("there is no unique constraint matching given keys for referenced table \"{}\"", parent.name);
            return Err(SqlError::new(SqlState::InvalidForeignKey, message));
        }
        for (&own, &theirs) in columns.iter().zip(&referenced) {
            let (own, theirs) = (&table.columns[own], &parent.columns[theirs]);
            if !converts(&own.ty, &theirs.ty) {
                let detail = format!(
                    "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                    own.name,
                    theirs.name,
                    own.ty.name(),
                    theirs.ty.name()
                );
                let message = format!("foreign key constraint \"{name}\" cannot be implemented");
                return Err(SqlError::new(SqlState::DatatypeMismatch, message).with_detail(detail));
            }
        }
        let reference = Referrer { child: table.name.clone(), constraint: name.clone() };
        table.foreign_keys.push(ForeignKey {
            name: name.clone(),
            columns,
            parent: parent.name.clone(),
            parent_columns: referenced.iter().map(|&position| parent.columns[position].id).collect(),
            on_delete: spec.on_delete,
            on_update: spec.on_update,
            deferrable: spec.deferrable,
            initially_deferred: spec.initially_deferred,
        });
        if parent.name == table.name {
            table.referenced_by.push(reference);
        } else {
            let mut parent = TableDescriptor::clone(&parent);
            parent.referenced_by.push(reference);
            self.alter(txn, parent)?;
        }
        self.alter(txn, table)
    }

    /// Refuses a name that is not that of a constraint which may be deferred. Errors 42704, 42809.
    pub async fn check_deferrable(&mut self, txn: &mut dyn Transaction, database: &str, name: &str) -> SqlResult<()> {
        let tables = self.tables(txn, database).await?;
        if tables.iter().any(|table| has_deferrable(table, name)) {
            return Ok(());
        }
        Err(match tables.iter().any(|table| table.has_constraint(name)) {
            true => SqlError::new(SqlState::WrongObjectType, format!("constraint \"{name}\" is not deferrable")),
            false => SqlError::new(SqlState::UndefinedObject, format!("constraint \"{name}\" does not exist")),
        })
    }

    /// True if the transaction itself has made or changed a table with a constraint of that name which may be deferred.
    pub fn has_made_deferrable(&self, name: &str) -> bool {
        self.made().any(|entry| matches!(entry, Entry::Table(table) if has_deferrable(table, name)))
    }

    /// Takes a foreign key out of a descriptor, and the entry out of that of its parent.
    pub(super) async fn take_foreign_key(
        &mut self,
        txn: &mut dyn Transaction,
        table: &mut TableDescriptor,
        position: usize,
    ) -> SqlResult<()> {
        let ForeignKey { name, parent, .. } = table.foreign_keys.remove(position);
        if parent == table.name {
            forget(table, &table.name.clone(), &name);
            return Ok(());
        }
        let mut parent = TableDescriptor::clone(&*self.fresh_table(txn, table.database, &parent).await?);
        forget(&mut parent, &table.name, &name);
        self.alter(txn, parent).map(drop)
    }

    /// Before `table` takes the place of a descriptor, without `what`: the foreign keys that reference columns or keys which it has no more, `on`
    /// which they depend, go if `cascade`. Error 2BP01.
    pub(super) async fn settle_references(
        &mut self,
        txn: &mut dyn Transaction,
        table: &mut TableDescriptor,
        cascade: bool,
        (what, on): (&str, &str),
    ) -> SqlResult<()> {
        let mut why = Vec::new();
        for Referrer { child, constraint } in table.referenced_by.clone() {
            let own = child == table.name;
            let other = if own { table.clone() } else { TableDescriptor::clone(&*self.fresh_table(txn, table.database, &child).await?) };
            let Some(position) = other.foreign_keys.iter().position(|foreign| foreign.name == constraint) else { continue };
            let columns = table.positions_of(&other.foreign_keys[position].parent_columns);
            if columns.is_some_and(|columns| table.unique_over(&columns).is_some()) {
                continue;
            }
            why.push(format!("constraint {constraint} on table {child} depends on {on}"));
            if !cascade {
                continue;
            }
            forget(table, &child, &constraint);
            if own {
                table.foreign_keys.retain(|foreign| foreign.name != constraint);
            } else {
                self.without_foreign_key(txn, other, position)?;
            }
        }
        if why.is_empty() || cascade { Ok(()) } else { Err(depended_on(what, &why)) }
    }

    /// Before tables go, all of them called `dropped`: takes foreign keys of others that reference `table`, if `cascade`, and the entries of its own
    /// out of their parents. Error 2BP01.
    pub(super) async fn part_with(
        &mut self,
        txn: &mut dyn Transaction,
        table: &TableDescriptor,
        dropped: &BTreeSet<String>,
        cascade: bool,
    ) -> SqlResult<()> {
        let others: Vec<&Referrer> = table.referenced_by.iter().filter(|reference| !dropped.contains(&reference.child)).collect();
        if !cascade && !others.is_empty() {
            let depends = |Referrer { child, constraint }: &&Referrer| {
                format!("constraint {constraint} on table {child} depends on table {}", table.name)
            };
            return Err(depended_on(&format!("table {}", table.name), &others.iter().map(depends).collect::<Vec<_>>()));
        }
        for Referrer { child, constraint } in others {
            let child = TableDescriptor::clone(&*self.fresh_table(txn, table.database, child).await?);
            if let Some(position) = child.foreign_keys.iter().position(|foreign| foreign.name == *constraint) {
                self.without_foreign_key(txn, child, position)?;
            }
        }
        let parents: BTreeSet<&String> = table.foreign_keys.iter().map(|foreign| &foreign.parent).collect();
        for parent in parents.into_iter().filter(|parent| !dropped.contains(*parent)) {
            let mut parent = TableDescriptor::clone(&*self.fresh_table(txn, table.database, parent).await?);
            parent.referenced_by.retain(|reference| reference.child != table.name);
            self.alter(txn, parent)?;
        }
        Ok(())
    }

    /// Has the other side of all foreign keys of `table`, which was called `from`, know it by its name.
    pub(super) async fn follow_name(&mut self, txn: &mut dyn Transaction, table: &mut TableDescriptor, from: &str) -> SqlResult<()> {
        let to = table.name.clone();
        let renamed = |other: &mut TableDescriptor| {
            other
                .referenced_by
                .iter_mut()
                .filter(|reference| reference.child == from)
                .for_each(|reference| reference.child.clone_from(&to));
            other.foreign_keys.iter_mut().filter(|foreign| foreign.parent == from).for_each(|foreign| foreign.parent.clone_from(&to));
        };
        let parents = table.foreign_keys.iter().map(|foreign| foreign.parent.clone());
        let others: BTreeSet<String> = parents.chain(table.referenced_by.iter().map(|reference| reference.child.clone())).collect();
        for other in others.into_iter().filter(|other| other != from) {
            let mut other = TableDescriptor::clone(&*self.fresh_table(txn, table.database, &other).await?);
            renamed(&mut other);
            self.alter(txn, other)?;
        }
        renamed(table);
        Ok(())
    }

    /// Renames a foreign key of a descriptor, and in that of its parent.
    pub(super) async fn rename_foreign_key(
        &mut self,
        txn: &mut dyn Transaction,
        table: &mut TableDescriptor,
        position: usize,
        to: &str,
    ) -> SqlResult<()> {
        let from = std::mem::replace(&mut table.foreign_keys[position].name, to.to_owned());
        let child = table.name.clone();
        let renamed = |parent: &mut TableDescriptor| {
            let known = parent.referenced_by.iter_mut().filter(|reference| reference.child == child && reference.constraint == from);
            known.for_each(|reference| reference.constraint = to.to_owned());
        };
        let parent = table.foreign_keys[position].parent.clone();
        if parent == table.name {
            renamed(table);
            return Ok(());
        }
        let mut parent = TableDescriptor::clone(&*self.fresh_table(txn, table.database, &parent).await?);
        renamed(&mut parent);
        self.alter(txn, parent).map(drop)
    }

    fn without_foreign_key(&mut self, txn: &mut dyn Transaction, mut table: TableDescriptor, position: usize) -> SqlResult<()> {
        table.foreign_keys.remove(position);
        self.alter(txn, table).map(drop)
    }
}

/// The positions of the columns referenced: those named, or those of the primary key.
fn referenced(parent: &TableDescriptor, names: &[String]) -> SqlResult<Vec<usize>> {
    if !names.is_empty() {
        return key_positions(&parent.nameable(), names).map_err(|error| not_referenced(error, parent, names));
    }
    if parent.primary_key_name.is_empty() {
        return Err(SqlError::new(SqlState::UndefinedObject, format!("there is no primary key for referenced table \"{}\"", parent.name)));
    }
    Ok(parent.primary_key.clone())
}

fn has_deferrable(table: &TableDescriptor, name: &str) -> bool {
    table.foreign_keys.iter().any(|foreign| foreign.name == name && foreign.deferrable)
}

/// 42703 as it is said of the columns of a foreign key.
fn not_referenced(error: SqlError, table: &TableDescriptor, names: &[String]) -> SqlError {
    match names.iter().find(|name| !table.nameable().contains(&name.as_str())) {
        Some(name) if error.state() == SqlState::UndefinedColumn => {
            SqlError::new(SqlState::UndefinedColumn, format!("column \"{name}\" referenced in foreign key constraint does not exist"))
        }
        _ => error,
    }
}

fn forget(parent: &mut TableDescriptor, child: &str, constraint: &str) {
    parent.referenced_by.retain(|reference| reference.child != child || reference.constraint != constraint);
}

/// 2BP01.
pub(super) fn depended_on(what: &str, why: &[String]) -> SqlError {
    SqlError::new(SqlState::DependentObjectsStillExist, format!("cannot drop {what} because other objects depend on it"))
        .with_detail(why.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}
