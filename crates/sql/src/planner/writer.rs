//! The constraints of a table, made ready for whatever writes its rows.

use super::defaults::defaults;
use super::expression::Expressions;
use super::parameters::Parameters;
use super::{Planning, rewrite};
use crate::error::{SqlError, SqlResult};
use crate::executor::evaluate::{Compiled, Scope};
use crate::executor::writer::{Child, Parent, Rules, Writer};
use crate::parser;
use crate::schema::{Action, ForeignKey, TableDescriptor};
use crate::txn::Active;
use datafusion::logical_expr::Expr;
use rhumb_commit::transaction::TxnError;
use std::sync::Arc;

/// What is done with rows that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing: rows are added.
    Kept,
    /// They change or go, so rows that reference them may have to.
    Changed,
}

/// The writer of `table`, and the tables that it was made of besides.
pub async fn writer(
    cx: Planning<'_>,
    active: &mut Active,
    table: &Arc<TableDescriptor>,
    existing: Existing,
) -> SqlResult<(Writer, Vec<Arc<TableDescriptor>>)> {
    let mut tables = vec![table.clone()];
    let mut rules: Vec<Rules> = Vec::new();
    let mut others = Vec::new();
    while let Some(table) = tables.get(rules.len()).cloned() {
        let mut parents = Vec::with_capacity(table.foreign_keys.len());
        for foreign in &table.foreign_keys {
            let parent = named(cx, active, &table, &foreign.parent).await?;
            parents.push(parent_of(&table, foreign, &parent)?);
            others.push(parent);
        }
        let mut children = Vec::new();
        if existing == Existing::Changed {
            for reference in &table.referenced_by {
                let child = named(cx, active, &table, &reference.child).await?;
                let known = tables.iter().position(|other| other.id == child.id);
                let place = known.unwrap_or_else(|| {
                    tables.push(child.clone());
                    tables.len() - 1
                });
                let constraint = child.foreign_keys.iter().position(|foreign| foreign.name == reference.constraint);
                let constraint = constraint.ok_or_else(|| apart(&table, &child))?;
                let columns = table.positions_of(&child.foreign_keys[constraint].parent_columns).ok_or_else(|| apart(&table, &child))?;
                children.push(Child { rules: place, constraint, columns });
            }
        }
        let sets_default = |foreign: &ForeignKey| [foreign.on_delete, foreign.on_update].contains(&Action::SetDefault);
        let defaults = match table.foreign_keys.iter().any(sets_default) {
            true => Some(defaults(cx, active, &table, &[], &[]).await?),
            false => None,
        };
        for foreign in table.foreign_keys.iter().filter(|foreign| sets_default(foreign)) {
            foreign.columns.iter().try_for_each(|&column| defaults.as_ref().map_or(Ok(()), |defaults| defaults.check_undrawn(column)))?;
        }
        rules.push(Rules { checks: checks(cx, &table)?, table, parents, children, defaults });
    }
    others.extend(tables.into_iter().skip(1));
    Ok((Writer::new(rules), others))
}

/// A table that `table` names in its constraints.
async fn named(cx: Planning<'_>, active: &mut Active, table: &Arc<TableDescriptor>, name: &str) -> SqlResult<Arc<TableDescriptor>> {
    if name == table.name {
        return Ok(table.clone());
    }
    active.catalog.table(active.txn.as_mut(), &cx.facts.database, name).await
}

/// What a foreign key of `table` references.
fn parent_of(table: &TableDescriptor, foreign: &ForeignKey, parent: &Arc<TableDescriptor>) -> SqlResult<Parent> {
    let columns = parent.positions_of(&foreign.parent_columns).ok_or_else(|| apart(parent, table))?;
    let index = parent.unique_over(&columns).ok_or_else(|| apart(parent, table))?;
    let key = index.map_or(&parent.primary_key, |index| &index.columns);
    let order = key.iter().filter_map(|column| columns.iter().position(|other| other == column)).collect();
    Ok(Parent { table: parent.clone(), index: index.cloned(), order })
}

/// Two descriptors that were read at different times: 40001.
fn apart(parent: &TableDescriptor, child: &TableDescriptor) -> SqlError {
    TxnError::Conflict(format!("tables {} and {} have changed while they were looked up", parent.name, child.name).into()).into()
}

/// The conditions of a table's `CHECK` constraints.
fn checks(cx: Planning<'_>, table: &Arc<TableDescriptor>) -> SqlResult<Vec<Compiled>> {
    let compiled = table.checks.iter().map(|check| {
        let mut condition = parser::expression(&check.condition).map_err(|error| SqlError::corrupted("a CHECK constraint", error))?;
        rewrite::rewrite(&mut condition, cx.facts)?;
        let cx = Planning { hints: &[], ..cx };
        let scope = Scope::default().with(&table.name, &table.arrow_schema());
        let mut expressions = Expressions::new(cx, scope, Parameters::of(&condition, &[])?)?;
        let planned = expressions.plan_condition(&condition, "check constraints")?;
        // A condition that is NULL holds.
        expressions.finish_definition()?.compile(Expr::IsNotFalse(Box::new(planned)))
    });
    compiled.collect()
}
