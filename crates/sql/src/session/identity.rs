//! ALTER TABLE of identity columns, and of sequences that are called tables.

use super::Session;
use crate::catalog::{GeneratedSpec, SequenceOptions, visible};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::SequenceClause;
use crate::parser::{IdentityChange, fold, unqualified};
use crate::planner::{identity_of, sequence_options};
use crate::schema::{Column, Identity, TableDescriptor};
use crate::txn::Active;
use datafusion::sql::sqlparser::ast::{AlterTable, AlterTableOperation, ObjectName, RenameTableNameKind};

impl Session {
    /// ALTER TABLE … ALTER COLUMN, of what makes it an identity column.
    pub(super) async fn alter_identity(
        &self,
        active: &mut Active,
        table: &ObjectName,
        if_exists: bool,
        column: &str,
        change: &IdentityChange,
    ) -> SqlResult<()> {
        let database = self.facts.database.as_str();
        let table = match self.table_now(active, &fold(&unqualified(table, database)?)).await {
            Err(error) if if_exists && error.state() == SqlState::UndefinedTable => return Ok(()),
            found => found?,
        };
        active.deferred.refuse_change("ALTER TABLE", &table.name)?;
        let position = visible(&table, column)?;
        let sequence = table.identity_sequence(position);
        let none = || {
            let message = format!("column \"{column}\" of relation \"{}\" is not an identity column", table.name);
            SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
        };
        let (catalog, txn) = (&mut active.catalog, active.txn.as_mut());
        match change {
            IdentityChange::Add { always, clauses } => {
                let generated = identity_of(*always, clauses, database)?;
                self.add_identity(active, &table, position, &generated).await
            }
            IdentityChange::Drop { if_exists: true } if sequence.is_none() => Ok(()),
            IdentityChange::Drop { .. } => {
                sequence.ok_or_else(none)?;
                catalog.drop_identity(txn, &table, position).await
            }
            IdentityChange::SetGenerated(always) => {
                sequence.ok_or_else(none)?;
                let mut altered = TableDescriptor::clone(&table);
                altered.columns[position].identity = Some(if *always { Identity::Always } else { Identity::ByDefault });
                catalog.alter(txn, altered).map(drop)
            }
            IdentityChange::Restart(number) => {
                let sequence = catalog.sequence_to_alter(txn, database, sequence.ok_or_else(none)?).await?;
                let options: SequenceOptions = sequence_options(&[SequenceClause::Restart(number.clone())], database)?;
                catalog.alter_sequence(txn, &sequence, &options).await
            }
        }
    }

    /// ADD GENERATED … AS IDENTITY. Error 55000 where the column cannot become one.
    pub(super) async fn add_identity(
        &self,
        active: &mut Active,
        table: &TableDescriptor,
        position: usize,
        generated: &GeneratedSpec,
    ) -> SqlResult<()> {
        let column = &table.columns[position];
        let fault = match column {
            Column { identity: Some(_), .. } => "is already an identity column",
            Column { default: Some(_), .. } => "already has a default value",
            Column { nullable: true, .. } => "must be declared NOT NULL before identity can be added",
            _ => return active.catalog.add_sequence(active.txn.as_mut(), table, position, generated).await.map(drop),
        };
        let message = format!("column \"{}\" of relation \"{}\" {fault}", column.name, table.name);
        Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message))
    }

    /// ALTER TABLE of a sequence, as dumps of older versions and some libraries write it: its owner and its name; `error`: of a table.
    pub(super) async fn alter_sequence_as_table(
        &self,
        active: &mut Active,
        name: &str,
        alter: &AlterTable,
        error: SqlError,
    ) -> SqlResult<()> {
        let (catalog, txn) = (&mut active.catalog, active.txn.as_mut());
        let sequence = match catalog.sequence_to_alter(txn, &self.facts.database, name).await {
            Err(other) if matches!(other.state(), SqlState::WrongObjectType | SqlState::UndefinedTable) => return Err(error),
            found => found?,
        };
        match alter.operations.as_slice() {
            [AlterTableOperation::OwnerTo { .. }] => Ok(()),
            [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) | RenameTableNameKind::As(to) }] => {
                catalog.rename_sequence(txn, &sequence, &fold(&unqualified(to, &self.facts.database)?)).await
            }
            _ => Err(error),
        }
    }
}
