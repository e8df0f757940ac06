//! ON CONFLICT: which key it is about, and what DO UPDATE makes of the row in the way.

use super::assignment;
use super::expression::{Compiler, Expressions};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::executor::access::index_id;
use crate::executor::conflict::Update;
use crate::parser::fold;
use crate::schema::{Index, IndexId, TableDescriptor};
use crate::storage::OnConflict;
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast;
use std::collections::HashSet;

/// A DO UPDATE whose parameters have no types yet.
pub struct Planned {
    assignments: assignment::Planned,
    filter: Option<Expr>,
}

/// Plans the DO UPDATE of a statement, if it has one. The scope is the existing row, the row proposed, the parameters.
pub fn plan(expressions: &mut Expressions<'_>, table: &TableDescriptor, on: Option<&ast::OnInsert>) -> SqlResult<Option<Planned>> {
    let Some(ast::OnInsert::OnConflict(ast::OnConflict { action: ast::OnConflictAction::DoUpdate(update), .. })) = on else {
        return Ok(None);
    };
    let assignments = assignment::written_out(&update.assignments, table, expressions.facts())?;
    let assignments = assignment::plan(expressions, table, &assignments)?;
    let filter = update.selection.as_ref().map(|filter| expressions.plan_condition(filter, "WHERE")).transpose()?;
    Ok(Some(Planned { assignments, filter }))
}

impl Planned {
    /// Compiles it.
    pub fn compile(self, compiler: &Compiler<'_>) -> SqlResult<Update> {
        let filter = self.filter.map(|filter| compiler.compile(filter)).transpose()?;
        Ok(Update { assignments: assignment::compile(self.assignments, compiler)?, filter })
    }
}

/// What a statement does about conflicts.
pub fn conflict_of(table: &TableDescriptor, on: Option<&ast::OnInsert>) -> SqlResult<OnConflict> {
    let conflict = match on {
        None => return Ok(OnConflict::Error),
        Some(ast::OnInsert::OnConflict(conflict)) => conflict,
        Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE is not supported").with_hint("Write ON CONFLICT.")),
    };
    let key = conflict.conflict_target.as_ref().map(|target| conflict_key(table, target)).transpose()?;
    match (&conflict.action, key) {
        (ast::OnConflictAction::DoNothing, key) => Ok(OnConflict::DoNothing(key)),
        (ast::OnConflictAction::DoUpdate(_), Some(key)) => Ok(OnConflict::DoUpdate(key)),
        (ast::OnConflictAction::DoUpdate(_), None) => {
            Err(SqlError::syntax("ON CONFLICT DO UPDATE requires inference specification or constraint name"))
        }
    }
}

/// The key that ON CONFLICT names by its columns or its constraint.
fn conflict_key(table: &TableDescriptor, target: &ast::ConflictTarget) -> SqlResult<IndexId> {
    let unique = table.indexes.iter().filter(|index| index.unique);
    let mut keys = std::iter::once((None, &table.primary_key_name, &table.primary_key))
        .chain(unique.map(|index: &Index| (Some(index), &index.name, &index.columns)));
    match target {
        ast::ConflictTarget::OnConstraint(name) => {
            let name = name.0.last().and_then(ast::ObjectNamePart::as_ident).map(fold).unwrap_or_default();
            let message = format!("constraint \"{name}\" for table \"{}\" does not exist", table.name);
            keys.find(|(_, key, _)| **key == name)
                .map(|(index, ..)| index_id(index))
                .ok_or_else(|| SqlError::new(SqlState::UndefinedObject, message))
        }
        ast::ConflictTarget::Columns(names) => {
            let wanted: HashSet<usize> = names
                .iter()
                .map(|name| table.column(&fold(name)).ok_or_else(|| SqlError::undefined_column(&fold(name))))
                .collect::<SqlResult<_>>()?;
            let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            keys.find(|(_, _, columns)| columns.iter().copied().collect::<HashSet<_>>() == wanted)
                .map(|(index, ..)| index_id(index))
                .ok_or_else(|| SqlError::new(SqlState::InvalidColumnReference, message))
        }
    }
}
