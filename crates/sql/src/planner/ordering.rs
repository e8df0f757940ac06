//! `SELECT -id AS id FROM t ORDER BY id + 1`: in an expression, `id` is the column of `t`; alone it would be the one of the select list. To the query engine
//! it is that of the select list in both. So this has another name until the rows are in order:
//!
//! ```text
//!   SELECT "id·" AS id FROM (SELECT -id AS "id·" FROM t ORDER BY id + 1)
//! ```

use super::literals;
use super::plainer::{keep_order, without_brackets};
use crate::error::{SqlError, SqlResult};
use crate::parser::fold;
use crate::parser::names::{MARK, name_items, select};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderBy, OrderByKind, Query, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, Visitor, VisitorMut,
};
use rhumb_generic::{Part, walk, walk_mut};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Rewrites all such queries in a part of a statement.
pub fn rewrite(part: &mut impl Part) -> SqlResult<()> {
    walk_mut(part, &mut Queries)
}

struct Queries;

impl VisitorMut for Queries {
    type Break = SqlError;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        of_query(query).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

fn is_wild(item: &SelectItem) -> bool {
    !matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
}

fn of_query(query: &mut Query) -> SqlResult<()> {
    let (SetExpr::Select(body), Some(OrderBy { kind: OrderByKind::Expressions(keys), .. })) = (query.body.as_mut(), &mut query.order_by)
    else {
        return Ok(());
    };
    // What stands in the select list is sorted by as it is there.
    for key in keys.iter_mut().filter(|key| alone(&key.expr).is_none()) {
        let is_it = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => without_brackets(expr) == without_brackets(&key.expr),
            _ => false,
        };
        if !body.projection.iter().any(is_wild)
            && let Some(place) = body.projection.iter().position(is_it)
        {
            key.expr = literals::place(place + 1);
        }
    }
    let mut mentioned = Mentioned::default();
    for key in keys.iter().filter(|key| alone(&key.expr).is_none()) {
        walk(&key.expr, &mut mentioned)?;
    }
    let has_hidden = mentioned.has_subquery && body.distinct.is_none();
    if mentioned.names.is_empty() && !has_hidden || body.projection.iter().any(is_wild) {
        return Ok(());
    }
    let mut items = body.projection.clone();
    name_items(&mut items);
    let mut renamed = BTreeSet::new();
    let mut outer = Vec::with_capacity(items.len());
    for item in &mut items {
        match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = alias.clone();
                if mentioned.names.contains(&fold(alias)) && alone(expr).is_none_or(|column| fold(column) != fold(alias)) {
                    renamed.insert(fold(alias));
                    *alias = marked(alias);
                }
                outer.push(SelectItem::ExprWithAlias { expr: Expr::Identifier(alias.clone()), alias: name });
            }
            // Other columns have their own names.
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => outer.extend(parts.last().cloned().map(column)),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => outer.push(column(name.clone())),
            _ => return Ok(()),
        }
    }
    if renamed.is_empty() && !has_hidden {
        return Ok(());
    }
    for (place, key) in keys.iter_mut().enumerate() {
        let mut own = Mentioned::default();
        walk(&key.expr, &mut own)?;
        if own.has_subquery && has_hidden {
            let alias = Ident::with_quote('"', format!("{MARK}ordered{place}"));
            let expr = std::mem::replace(&mut key.expr, Expr::Identifier(alias.clone()));
            items.push(SelectItem::ExprWithAlias { expr, alias });
        } else if let Some(name) = alone(&key.expr).filter(|name| renamed.contains(&fold(name))) {
            key.expr = Expr::Identifier(marked(name));
        }
    }
    body.projection = items;
    let ordered = TableAlias { explicit: true, name: Ident::with_quote('"', format!("ordered{MARK}")), columns: Vec::new(), at: None };
    let around = |inner| {
        let relation = TableFactor::Derived { lateral: false, subquery: Box::new(inner), alias: Some(ordered), sample: None };
        select(outer, vec![TableWithJoins { relation, joins: Vec::new() }], None)
    };
    let mut inner = std::mem::replace(query, select(Vec::new(), Vec::new(), None));
    keep_order(&mut inner);
    *query = around(inner);
    Ok(())
}

fn column(name: Ident) -> SelectItem {
    SelectItem::UnnamedExpr(Expr::Identifier(name))
}

/// The name that a key is nothing but.
fn alone(key: &Expr) -> Option<&Ident> {
    if let Expr::Identifier(name) = without_brackets(key) { Some(name) } else { None }
}

fn marked(name: &Ident) -> Ident {
    Ident::with_quote('"', format!("{}{MARK}ordered", fold(name)))
}

/// The names of columns in an expression, outside of subqueries.
#[derive(Default)]
struct Mentioned {
    names: BTreeSet<String>,
    queries: usize,
    has_subquery: bool,
}

impl Visitor for Mentioned {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<SqlError> {
        self.has_subquery = true;
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<SqlError> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        // A column of a table is taken for the one of the select list that is called so, too.
        if let Expr::Identifier(name) = expr {
            self.names.insert(fold(name));
        } else if let Expr::CompoundIdentifier(parts) = expr {
            self.names.extend(parts.last().map(fold));
        }
        ControlFlow::Continue(())
    }
}
