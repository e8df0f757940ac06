//! `SELECT id FROM t JOIN u USING (id) WHERE id > 1`: a column of `USING` without a table is that of the left side. The query engine knows it in the select list
//! alone, takes it for ambiguous elsewhere, and in a subquery for a column of what is around it. So it gets the name of its table, where there is only one
//! table to its left.

use super::own;
use crate::error::SqlResult;
use crate::parser::fold;
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, ObjectNamePart, Select, TableFactor};
use rhumb_generic::Part;
use std::collections::{BTreeMap, BTreeSet};

/// Names the tables of all such columns in a part of a statement.
pub fn name_tables(part: &mut impl Part) -> SqlResult<()> {
    own::each_select(part, |select, _| of_select(select))
}

fn of_select(select: &mut Select) -> SqlResult<()> {
    let tables = tables(select);
    if tables.is_empty() {
        return Ok(());
    }
    let mut name = |expr: &mut Expr| {
        if let Expr::Identifier(column) = &*expr
            && let Some(table) = tables.get(&fold(column))
        {
            *expr = Expr::CompoundIdentifier(vec![table.clone(), column.clone()]);
        }
        Ok(())
    };
    own::change(&mut select.projection, &mut name)?;
    own::change(&mut select.selection, &mut name)?;
    own::change(&mut select.having, &mut name)?;
    if let GroupByExpr::Expressions(by, _) = &mut select.group_by {
        own::change(by, &mut name)?;
    }
    Ok(())
}

/// The tables of the columns of `USING`, by the names of these.
fn tables(select: &Select) -> BTreeMap<String, Ident> {
    let (mut found, mut several) = (BTreeMap::<String, Ident>::new(), BTreeSet::new());
    for item in &select.from {
        let Some(left) = &name_of(&item.relation) else { continue };
        for (place, join) in item.joins.iter().enumerate() {
            let (JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::Left(on) | JoinOperator::LeftOuter(on)) =
                &join.join_operator
            else {
                break;
            };
            let JoinConstraint::Using(columns) = on else { break };
            for column in columns.iter().filter_map(|name| name.0.last().and_then(ObjectNamePart::as_ident).map(fold)) {
                // A column that no join before has is one of any of the tables there.
                match found.get(&column) {
                    Some(table) if table != left => drop(several.insert(column)),
                    None if place == 0 => drop(found.insert(column, left.clone())),
                    _ => {}
                }
            }
        }
    }
    // One of two pairs of tables is ambiguous, and stays so.
    found.retain(|column, _| !several.contains(column));
    found
}

fn name_of(table: &TableFactor) -> Option<Ident> {
    match table {
        TableFactor::Table { name, alias, .. } => match alias {
            Some(alias) => Some(alias.name.clone()),
            None => name.0.last().and_then(ObjectNamePart::as_ident).cloned(),
        },
        TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| alias.name.clone()),
        _ => None,
    }
}
