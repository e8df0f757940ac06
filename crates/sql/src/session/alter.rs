//! ALTER TABLE and ALTER INDEX, in the transaction of the session.
//!
//! ```text
//!   each action in turn, what drops something first, then types, columns, and the rest:
//!                         the table as it is now ─▶ its rows looked at, or rewritten ─▶ its descriptor
//!   at the end:           do its defaults and constraints still make sense?
//! ```
//! Most actions change the descriptor alone. A new column needs no rows rewritten, whatever its default, unless that is another one for
//! each row. Constraints look at all rows; so rows are rewritten for a new primary key, and for a type that stores them in another way.

use super::Session;
use crate::catalog::{
    CheckSpec, ForeignKeySpec, IndexSpec, KeySpec, SequenceOptions, check_keys, undefined_constraint, visible, with_column,
};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::Defaults;
use crate::executor::reshape::{all_rows, rewrite};
use crate::parser::{columns_named, fold, unqualified};
use crate::planner::{
    Constraint, Conversion, Existing, Planning, check_table, column_definition, constraint, conversion, default_text, defaults, identity,
    varies_by_row, writer,
};
use crate::schema::{ForeignKey, TableDescriptor, bounds};
use crate::storage::{self, Row, each_page, missing};
use crate::txn::Active;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, DropBehavior, GeneratedAs, ObjectName, RenameTableNameKind,
    TableConstraint,
};
use std::sync::Arc;

impl Session {
    /// ALTER TABLE.
    pub(super) async fn alter_table(&self, active: &mut Active, alter: &AlterTable) -> SqlResult<()> {
        let mut name = fold(&unqualified(&alter.name, &self.facts.database)?);
        let before = match self.table_now(active, &name).await {
            Err(error) if alter.if_exists && error.state() == SqlState::UndefinedTable => return Ok(()),
            Err(error) if error.state() == SqlState::WrongObjectType => {
                return self.alter_sequence_as_table(active, &name, alter, error).await;
            }
            found => found?,
        };
        active.deferred.refuse_change("ALTER TABLE", &name)?;
        check_conversions(&alter.operations)?;
        let mut actions: Vec<&AlterTableOperation> = alter.operations.iter().collect();
        actions.sort_by_key(|action| pass(action));
        for action in actions {
            if let AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) | RenameTableNameKind::As(to) } = action {
                let table = self.table_now(active, &name).await?;
                name = fold(&unqualified(to, &self.facts.database)?);
                active.catalog.rename_table(active.txn.as_mut(), &table, &name).await?;
                continue;
            }
            self.take_action(active, &name, action).await?;
        }
        let table = self.table_now(active, &name).await?;
        active.catalog.settle_defaults(active.txn.as_mut(), Some(&before), Some(&table)).await?;
        check_table(self.planning(), active, &table).await
    }

    /// ALTER INDEX … RENAME TO.
    pub(super) async fn rename_index(&self, active: &mut Active, from: &ObjectName, to: &ObjectName) -> SqlResult<()> {
        let database = self.facts.database.as_str();
        let (from, to) = (fold(&unqualified(from, database)?), fold(&unqualified(to, database)?));
        let txn = active.txn.as_mut();
        let table = active.catalog.table_of_index(txn, database, &from).await?;
        active.catalog.rename_index(txn, &table, &from, &to).await
    }

    async fn take_action(&self, active: &mut Active, name: &str, action: &AlterTableOperation) -> SqlResult<()> {
        use AlterTableOperation as Action;
        let table = self.table_now(active, name).await?;
        let (catalog, txn) = (&mut active.catalog, active.txn.as_mut());
        match action {
            Action::AddColumn { if_not_exists, column_def, .. } => {
                if *if_not_exists && table.column(&fold(&column_def.name)).is_some() {
                    return Ok(());
                }
                self.add_column(active, table, column_def).await
            }
            Action::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                for column in column_names.iter().map(fold) {
                    let table = catalog.table_to_alter(txn, &self.facts.database, name).await?;
                    match catalog.drop_column(txn, &table, &column, cascades(*drop_behavior)).await {
                        Err(error) if *if_exists && error.state() == SqlState::UndefinedColumn => {}
                        dropped => dropped?,
                    }
                }
                Ok(())
            }
            Action::RenameColumn { old_column_name, new_column_name } => {
                catalog.rename_column(txn, &table, &fold(old_column_name), &fold(new_column_name))
            }
            Action::RenameConstraint { old_name, new_name } => {
                catalog.rename_constraint(txn, &table, &fold(old_name), &fold(new_name)).await
            }
            Action::AlterColumn { column_name, op } => self.alter_column(active, table, &fold(column_name), op).await,
            Action::AddConstraint { constraint: added, .. } => {
                let added = constraint(added, &table.name, &self.facts.database)?;
                self.add_constraint(active, table, added).await
            }
            Action::DropConstraint { if_exists, name, drop_behavior } => {
                let constraint = fold(name);
                if !table.primary_key_name.is_empty() && table.primary_key_name == constraint {
                    return self.drop_primary_key(active, &table, cascades(*drop_behavior)).await;
                }
                match catalog.drop_constraint(txn, &table, &constraint, cascades(*drop_behavior)).await {
                    Err(error) if *if_exists && error.state() == SqlState::UndefinedObject => Ok(()),
                    dropped => dropped,
                }
            }
            // All constraints were looked at when they were added.
            Action::ValidateConstraint { name } if table.has_constraint(&fold(name)) => Ok(()),
            Action::ValidateConstraint { name } => Err(undefined_constraint(&table, &fold(name))),
            // There is nobody else that it could belong to.
            Action::OwnerTo { .. } => Ok(()),
            other => Err(SqlError::unsupported(format!("ALTER TABLE … {other} is not supported"))),
        }
    }

    async fn add_column(&self, active: &mut Active, before: Arc<TableDescriptor>, definition: &ColumnDef) -> SqlResult<()> {
        let definition = column_definition(definition, &before.name, &self.facts.database)?;
        let column = &definition.column;
        let (catalog, txn) = (&mut active.catalog, active.txn.as_mut());
        let mut table = match &column.default {
            Some(default) => {
                let position = before.columns.len();
                let after = Arc::new(with_column(&before, column, None)?);
                let defaults = defaults(self.planning(), active, &after, &[], &[]).await?;
                if varies_by_row(self.planning(), active, default).await? {
                    let after = active.catalog.add_column(active.txn.as_mut(), &before, column, None)?;
                    self.fill_column(active, &before, &after, &defaults).await?;
                    after
                } else {
                    let value = defaults.undrawn(&self.engine, position)?;
                    active.catalog.add_column(active.txn.as_mut(), &before, column, missing(&column.ty, &value)?)?
                }
            }
            None if let Some(generated) = &column.generated => {
                let position = before.columns.len();
                let plain = catalog.add_column(txn, &before, column, None)?;
                let after = catalog.add_sequence(txn, &plain, position, generated).await?;
                let defaults = defaults(self.planning(), active, &after, &[], &[]).await?;
                self.fill_column(active, &before, &after, &defaults).await?;
                after
            }
            None => {
                if !column.nullable {
                    each_page(txn, &before, |_| Err(holds_nulls(&before, &column.name))).await?;
                }
                catalog.add_column(txn, &before, column, None)?
            }
        };
        for constraint in definition.constraints {
            self.add_constraint(active, table, constraint).await?;
            table = self.table_now(active, &before.name).await?;
        }
        Ok(())
    }

    /// Rewrites the rows of a table that has got one more column, with its default for each.
    async fn fill_column(
        &self,
        active: &mut Active,
        before: &Arc<TableDescriptor>,
        after: &Arc<TableDescriptor>,
        defaults: &Defaults,
    ) -> SqlResult<()> {
        let (old, _charge) = all_rows(&self.engine, active.txn.as_mut(), before).await?;
        let mut rows = Vec::with_capacity(old.len());
        for row in old {
            let value = defaults.drawn(&self.engine, &self.drawn, active, before.columns.len()).await?;
            let new = row.iter().cloned().chain([value]).collect();
            rows.push((row, new));
        }
        storage::rewrite(active.txn.as_mut(), before, after, &rows)
    }

    async fn alter_column(
        &self,
        active: &mut Active,
        before: Arc<TableDescriptor>,
        column: &str,
        operation: &AlterColumnOperation,
    ) -> SqlResult<()> {
        use AlterColumnOperation as Action;
        let position = visible(&before, column)?;
        let mut after = TableDescriptor::clone(&before);
        if before.columns[position].identity.is_some()
            && matches!(operation, Action::SetDefault { .. } | Action::DropDefault | Action::DropNotNull)
        {
            return Err(SqlError::syntax(format!("column \"{column}\" of relation \"{}\" is an identity column", before.name)));
        }
        match operation {
            Action::SetNotNull => {
                self.check_no_nulls(active, &before, position).await?;
                after.columns[position].nullable = false;
            }
            Action::DropNotNull if before.primary_key.contains(&position) => {
                return Err(SqlError::new(SqlState::InvalidTableDefinition, format!("column \"{column}\" is in a primary key")));
            }
            Action::DropNotNull => after.columns[position].nullable = true,
            Action::SetDefault { value } => after.columns[position].default = default_text(value)?,
            Action::DropDefault => after.columns[position].default = None,
            Action::SetDataType { data_type, using, .. } => {
                let Conversion { ty, value } = conversion(self.planning(), &before, position, data_type, using.as_ref())?;
                if before.columns[position].identity.is_some() && bounds(ty).is_none() {
                    let message = "identity column type must be smallint, integer, or bigint";
                    return Err(SqlError::new(SqlState::InvalidParameterValue, message));
                }
                after.columns[position].ty = ty;
                check_keys(&after)?;
                if let Some(sequence) = before.identity_sequence(position) {
                    let options = SequenceOptions { ty: Some(ty), ..SequenceOptions::default() };
                    let (catalog, txn) = (&mut active.catalog, active.txn.as_mut());
                    let sequence = catalog.sequence_to_alter(txn, &self.facts.database, sequence).await?;
                    catalog.alter_sequence(txn, &sequence, &options).await?;
                }
                if let Some(value) = value {
                    self.refuse_references(active, &before, position).await?;
                    after.columns[position].missing = None;
                    let (writer, _) = writer(self.planning(), active, &Arc::new(after.clone()), Existing::Kept).await?;
                    let convert = |rows: &[Row]| {
                        let new = value.apply(&self.engine, rows)?;
                        writer.check(&self.engine, new.len(), |row| &new[row]).map(|()| new)
                    };
                    rewrite(&self.engine, active.txn.as_mut(), &before, &after, convert).await?;
                }
            }
            Action::AddGenerated { generated_as, sequence_options } => {
                let generated = identity(
                    generated_as.unwrap_or(GeneratedAs::ByDefault),
                    sequence_options.as_deref().unwrap_or_default(),
                    &self.facts.database,
                )?;
                return self.add_identity(active, &before, position, &generated).await;
            }
        }
        active.catalog.alter(active.txn.as_mut(), after).map(drop)
    }

    async fn add_constraint(&self, active: &mut Active, table: Arc<TableDescriptor>, constraint: Constraint) -> SqlResult<()> {
        match constraint {
            Constraint::Check(check) => self.add_check(active, table, &check).await,
            Constraint::ForeignKey(foreign) => self.add_foreign_key(active, table, &foreign).await,
            Constraint::Unique(KeySpec { name, columns }) => {
                let spec = IndexSpec { name, table: table.name.clone(), unique: true, constraint: true, columns };
                active.catalog.create_index(active.txn.as_mut(), &self.facts.database, &spec, false).await.map(drop)
            }
            Constraint::PrimaryKey(key) => {
                let after = active.catalog.add_primary_key(active.txn.as_mut(), &table, &key).await?;
                for &position in &after.primary_key {
                    let position = visible(&table, &after.columns[position].name)?;
                    self.check_no_nulls(active, &table, position).await?;
                }
                let without_row_id = |row: &Row| {
                    let columns = row.iter().zip(&table.columns).filter(|(_, column)| !column.hidden);
                    columns.map(|(value, _)| value.clone()).collect()
                };
                let become_of = |rows: &[Row]| Ok(rows.iter().map(without_row_id).collect());
                rewrite(&self.engine, active.txn.as_mut(), &table, &after, become_of).await
            }
        }
    }

    async fn add_check(&self, active: &mut Active, table: Arc<TableDescriptor>, check: &CheckSpec) -> SqlResult<()> {
        let after = active.catalog.add_check(active.txn.as_mut(), &table, check)?;
        let added = after.checks.last().map(|check| check.name.clone()).unwrap_or_default();
        let (writer, _) = writer(self.planning(), active, &after, Existing::Kept).await?;
        let look = |page: Vec<Row>| {
            let checked = writer.check(&self.engine, page.len(), |row| &page[row]);
            checked.map_err(|error| match error.constraint() == Some(&added) {
                true => violated(&after, &added),
                false => error,
            })
        };
        each_page(active.txn.as_mut(), &after, look).await
    }

    async fn add_foreign_key(&self, active: &mut Active, table: Arc<TableDescriptor>, spec: &ForeignKeySpec) -> SqlResult<()> {
        let after = active.catalog.add_foreign_key(active.txn.as_mut(), &table, spec).await?;
        let (writer, _) = writer(self.planning(), active, &after, Existing::Kept).await?;
        writer.check_rows(active, after.foreign_keys.len() - 1).await
    }

    async fn drop_primary_key(&self, active: &mut Active, before: &Arc<TableDescriptor>, cascade: bool) -> SqlResult<()> {
        let txn = active.txn.as_mut();
        let after = active.catalog.drop_primary_key(txn, before, cascade).await?;
        let with_row_id = |row: &Row| row.iter().cloned().chain([self.engine.row_ids.next(self.engine.now())]).collect();
        rewrite(&self.engine, txn, before, &after, |rows| Ok(rows.iter().map(with_row_id).collect())).await
    }

    /// Rows of a foreign key hold the values of both sides; a type that stores them in another way is for one side only. Error 0A000.
    async fn refuse_references(&self, active: &mut Active, table: &TableDescriptor, position: usize) -> SqlResult<()> {
        let column = &table.columns[position];
        let mut constraint =
            table.foreign_keys.iter().find(|foreign| foreign.columns.contains(&position)).map(|foreign| foreign.name.clone());
        for reference in &table.referenced_by {
            let child = self.table_now(active, &reference.child).await?;
            let names_it = |foreign: &&ForeignKey| foreign.name == reference.constraint && foreign.parent_columns.contains(&column.id);
            constraint = constraint.or_else(|| child.foreign_keys.iter().find(names_it).map(|foreign| foreign.name.clone()));
        }
        let Some(constraint) = constraint else { return Ok(()) };
        let message =
            format!("another type for column \"{}\", which is part of foreign key \"{constraint}\", is not supported", column.name);
        Err(SqlError::unsupported(message).with_hint("Drop the constraint, alter both columns, and add it again."))
    }

    async fn check_no_nulls(&self, active: &mut Active, table: &Arc<TableDescriptor>, position: usize) -> SqlResult<()> {
        let column = &table.columns[position];
        if !column.nullable {
            return Ok(());
        }
        let look = |page: Vec<Row>| {
            let is_null = page.iter().any(|row| row[position].is_null());
            if is_null { Err(holds_nulls(table, &column.name)) } else { Ok(()) }
        };
        each_page(active.txn.as_mut(), table, look).await
    }

    pub(super) async fn table_now(&self, active: &mut Active, name: &str) -> SqlResult<Arc<TableDescriptor>> {
        active.catalog.table_to_alter(active.txn.as_mut(), &self.facts.database, name).await
    }

    /// What planning an expression of a definition needs.
    pub(super) fn planning(&self) -> Planning<'_> {
        Planning { engine: &self.engine, facts: &self.facts, hints: &[] }
    }
}

/// When an action is taken, as in PostgreSQL: constraints may name columns that the same statement adds.
fn pass(action: &AlterTableOperation) -> u8 {
    use AlterTableOperation as Action;
    match action {
        Action::DropColumn { .. } | Action::DropConstraint { .. } => 0,
        Action::AlterColumn { op: AlterColumnOperation::SetDataType { .. }, .. } => 1,
        Action::AddColumn { .. } => 2,
        // After the keys that they reference.
        Action::AddConstraint { constraint: TableConstraint::ForeignKey(_), .. } => 4,
        _ => 3,
    }
}

/// Each action sees what those before it have done, so no USING may name another column whose type changes. Error 0A000.
fn check_conversions(actions: &[AlterTableOperation]) -> SqlResult<()> {
    let conversions = actions.iter().filter_map(|action| match action {
        AlterTableOperation::AlterColumn { column_name, op: AlterColumnOperation::SetDataType { using, .. } } => {
            Some((fold(column_name), using))
        }
        _ => None,
    });
    let conversions: Vec<_> = conversions.collect();
    for (column, using) in &conversions {
        let named = using.as_ref().map(columns_named).unwrap_or_default();
        if let Some((other, _)) = conversions.iter().find(|(other, _)| other != column && named.contains(other)) {
            return Err(SqlError::unsupported(format!("USING cannot name column \"{other}\", whose type the same statement changes"))
                .with_hint("Alter the two columns by two statements."));
        }
    }
    Ok(())
}

fn cascades(behaviour: Option<DropBehavior>) -> bool {
    behaviour == Some(DropBehavior::Cascade)
}

/// 23502.
fn holds_nulls(table: &TableDescriptor, column: &str) -> SqlError {
    let message = format!("column \"{column}\" of relation \"{}\" contains null values", table.name);
    SqlError::new(SqlState::NotNullViolation, message)
}

/// 23514.
fn violated(table: &TableDescriptor, check: &str) -> SqlError {
    let message = format!("check constraint \"{check}\" of relation \"{}\" is violated by some row", table.name);
    SqlError::new(SqlState::CheckViolation, message).with_constraint(check)
}
