//! Columns that depend on a primary key which rows are grouped by: `SELECT t.name, count(*) FROM t … GROUP BY t.id`. They have one value in each group,
//! so they are added to GROUP BY. The query engine would do that by itself if it were told of the key, and would then take rows for unique that a
//! join or `unnest()` has made several of.

use crate::error::{SqlError, SqlResult};
use crate::parser::fold;
use crate::schema::TableDescriptor;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, ObjectNamePart, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, Visitor, VisitorMut,
};
use rhumb_generic::{walk, walk_mut};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Adds them, in a query over these tables.
pub fn complete(query: &mut Box<Query>, tables: &[Arc<TableDescriptor>]) -> SqlResult<()> {
    let mut named = Named::default();
    walk(query, &mut named)?;
    // What WITH names is no table, wherever it is.
    let tables: Vec<_> = tables.iter().filter(|table| !named.0.contains(&table.name)).cloned().collect();
    walk_mut(query, &mut Grouping { tables: &tables })
}

/// The names that WITH gives.
#[derive(Default)]
struct Named(BTreeSet<String>);

impl Visitor for Named {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        self.0.extend(query.with.iter().flat_map(|with| &with.cte_tables).map(|table| fold(&table.alias.name)));
        ControlFlow::Continue(())
    }
}

struct Grouping<'a> {
    tables: &'a [Arc<TableDescriptor>],
}

impl VisitorMut for Grouping<'_> {
    type Break = SqlError;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let mut named = Columns::default();
        if let Some(OrderByKind::Expressions(order)) = query.order_by.as_ref().map(|order| &order.kind)
            && let Err(error) = walk(order, &mut named)
        {
            return ControlFlow::Break(error);
        }
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Err(error) = self.complete(select, named)
        {
            return ControlFlow::Break(error);
        }
        ControlFlow::Continue(())
    }
}

impl Grouping<'_> {
    fn complete(&self, select: &mut Select, mut named: Columns) -> SqlResult<()> {
        match &select.group_by {
            GroupByExpr::Expressions(by, modifiers) if !by.is_empty() && modifiers.is_empty() => {}
            _ => return Ok(()),
        }
        walk(&select.projection, &mut named)?;
        walk(&select.having, &mut named)?;
        let factors =
            select.from.iter().flat_map(|item| std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)));
        let relations: Vec<(Ident, &TableDescriptor)> = factors.filter_map(|factor| self.relation(factor)).collect();
        let mut added = Vec::new();
        for (alias, table) in &relations {
            // A column without a table may be that of any.
            let owns = |name: &str| table.column(name).is_some_and(|column| !table.columns[column].hidden);
            let is_alone = |name: &str| owns(name) && relations.iter().filter(|(_, other)| other.column(name).is_some()).count() == 1;
            let GroupByExpr::Expressions(by, _) = &select.group_by else { continue };
            let grouped: BTreeSet<String> = by.iter().filter_map(|expr| column_of(expr, alias, &is_alone)).collect();
            if !table.primary_key.iter().all(|column| grouped.contains(&table.columns[*column].name)) {
                continue;
            }
            let alias_name = fold(alias);
            let mut wanted: BTreeSet<String> =
                named.of_tables.iter().filter(|(of, _)| *of == alias_name).map(|(_, name)| name.clone()).collect();
            wanted.extend(named.plain.iter().filter(|name| is_alone(name)).cloned());
            let all = select.projection.iter().any(|item| match item {
                SelectItem::Wildcard(_) => true,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    name.0.last().and_then(ObjectNamePart::as_ident).map(fold).as_ref() == Some(&alias_name)
                }
                _ => false,
            });
            if all {
                wanted.extend(table.visible_columns().map(|column| table.columns[column].name.clone()));
            }
            let missing = wanted.into_iter().filter(|name| owns(name) && !grouped.contains(name));
            added.extend(missing.map(|name| Expr::CompoundIdentifier(vec![alias.clone(), Ident::with_quote('"', name)])));
        }
        if let GroupByExpr::Expressions(by, _) = &mut select.group_by {
            by.extend(added);
        }
        Ok(())
    }

    /// A table of the database in FROM, and what it is called there.
    fn relation(&self, factor: &TableFactor) -> Option<(Ident, &TableDescriptor)> {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
        let name = name.0.last().and_then(ObjectNamePart::as_ident)?;
        let table = self.tables.iter().find(|table| table.name == fold(name))?;
        Some((alias.as_ref().map_or_else(|| name.clone(), |alias| alias.name.clone()), table))
    }
}

/// The column of a table that an expression is.
fn column_of(expr: &Expr, alias: &Ident, is_alone: &dyn Fn(&str) -> bool) -> Option<String> {
    match expr {
        Expr::Nested(expr) => column_of(expr, alias, is_alone),
        Expr::Identifier(column) => Some(fold(column)).filter(|column| is_alone(column)),
        Expr::CompoundIdentifier(idents) => match idents.as_slice() {
            [table, column] if fold(table) == fold(alias) => Some(fold(column)),
            _ => None,
        },
        _ => None,
    }
}

/// The columns that a part of a statement names.
#[derive(Default)]
struct Columns {
    of_tables: BTreeSet<(String, String)>,
    plain: BTreeSet<String>,
}

impl Visitor for Columns {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::Identifier(column) => drop(self.plain.insert(fold(column))),
            Expr::CompoundIdentifier(idents) => {
                if let [table, column] = idents.as_slice() {
                    self.of_tables.insert((fold(table), fold(column)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
