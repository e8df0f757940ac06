//! `SELECT id FROM t JOIN u USING (id) WHERE id > 1`: a column of `USING` without a table is that of the left side. The query engine knows it in the select list
//! alone, takes it for ambiguous elsewhere, and in a subquery for a column of what is around it. So it gets the name of its table, where there is only one
//! table to its left.

use crate::error::{SqlError, SqlResult};
use crate::parser::fold;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, ObjectNamePart, Query, Select, SelectItem, TableFactor, VisitorMut,
};
use rhumb_generic::{Part, walk_mut};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Names the tables of all such columns in a part of a statement.
pub fn name_tables(part: &mut impl Part) -> SqlResult<()> {
    walk_mut(part, &mut Selects)
}

struct Selects;

impl VisitorMut for Selects {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        of_select(select).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

fn of_select(select: &mut Select) -> SqlResult<()> {
    let mut named = Named { tables: tables(select), queries: 0 };
    if named.tables.is_empty() {
        return Ok(());
    }
    for item in &mut select.projection {
        // Its name stays.
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            walk_mut(expr, &mut named)?;
        }
    }
    walk_mut(&mut select.selection, &mut named)?;
    walk_mut(&mut select.having, &mut named)?;
    if let GroupByExpr::Expressions(by, _) = &mut select.group_by {
        walk_mut(by, &mut named)?;
    }
    Ok(())
}

/// The tables of the columns of `USING`, by the names of these.
fn tables(select: &Select) -> BTreeMap<String, Ident> {
    let mut found = BTreeMap::new();
    for item in &select.from {
        let Some(left) = name_of(&item.relation) else { continue };
        for (place, join) in item.joins.iter().enumerate() {
            let (JoinOperator::Join(on) | JoinOperator::Inner(on) | JoinOperator::Left(on) | JoinOperator::LeftOuter(on)) =
                &join.join_operator
            else {
                break;
            };
            let JoinConstraint::Using(columns) = on else { break };
            for column in columns.iter().filter_map(|name| name.0.last().and_then(ObjectNamePart::as_ident).map(fold)) {
                // A column that no join before has is one of any of the tables there.
                if place == 0 || found.contains_key(&column) {
                    found.insert(column, left.clone());
                }
            }
        }
    }
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

struct Named {
    tables: BTreeMap<String, Ident>,
    queries: usize,
}

impl VisitorMut for Named {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<SqlError> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<SqlError> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let (Expr::Identifier(name), 0) = (&*expr, self.queries)
            && let Some(table) = self.tables.get(&fold(name))
        {
            *expr = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
        }
        ControlFlow::Continue(())
    }
}
