//! Aggregates, windows and groups that the query engine would call alike: it takes their names from their text, and leaves casts and subqueries out of it.
//!
//! `sum(a), sum(a::numeric)` are both `sum(t.a)` to it, and `sum((SELECT …)), sum((SELECT …))` are `sum((<subquery>))`. It refuses two of one name. So what it
//! leaves out becomes the argument of a function that names it, in a select list that has such a pair.

use super::plainer::call;
use super::{literals, own};
use crate::engine::functions::DISAMBIGUATED;
use crate::error::{SqlError, SqlResult};
use crate::parser::fold;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, TypedString, Value, Visitor, VisitorMut,
};
use rhumb_generic::{Part, walk, walk_mut};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Gives each of them a name of its own in a part of a statement.
pub fn disambiguate(part: &mut impl Part) -> SqlResult<()> {
    own::each_select(part, of_select)
}

fn of_select(select: &mut Select, order_by: Option<&mut OrderBy>) -> SqlResult<()> {
    let mut named = Named::default();
    walk(&select.projection, &mut named)?;
    walk(&select.having, &mut named)?;
    if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by.as_deref() {
        walk(keys, &mut named)?;
    }
    named.exprs.extend(groups(select).cloned());
    // Most have none.
    if named.exprs.len() < 2 || !named.has_more {
        return Ok(());
    }
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    let mut is_alike = false;
    for expr in named.exprs {
        let (text, mut plain) = (expr.to_string(), expr);
        walk_mut(&mut plain, &mut Plain)?;
        // To the query engine `count(*)` is `count(1)`, which has the suffix of numbers that are kept as they are.
        let name = plain.to_string().to_lowercase().replace("count(1l)", "count(*)").replace("count(1)", "count(*)");
        is_alike |= by_name.insert(name, text.clone()).is_some_and(|other| other != text);
    }
    if !is_alike {
        return Ok(());
    }
    let mut marked = Vec::new();
    let mut mark = |expr: &mut Expr| {
        mark(expr, &mut marked);
        Ok(())
    };
    own::change(&mut select.projection, &mut mark)?;
    if let GroupByExpr::Expressions(by, _) = &mut select.group_by {
        own::change(by, &mut mark)?;
    }
    own::change(&mut select.having, &mut mark)?;
    if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = order_by {
        own::change(keys, &mut mark)?;
    }
    Ok(())
}

/// What rows are grouped by: an expression, the place of one in the select list, or its alias there.
fn groups(select: &Select) -> impl Iterator<Item = &Expr> {
    let by = if let GroupByExpr::Expressions(by, _) = &select.group_by { by.as_slice() } else { &[] };
    by.iter().map(|expr| {
        let place = literals::whole(expr).and_then(|digits| digits.parse::<usize>().ok());
        let at_place = place.and_then(|place| select.projection.get(place.checked_sub(1)?));
        let called = select.projection.iter().find(
            |item| matches!((item, expr), (SelectItem::ExprWithAlias { alias, .. }, Expr::Identifier(name)) if fold(alias) == fold(name)),
        );
        match at_place.or(called) {
            Some(SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }) => item,
            _ => expr,
        }
    })
}

/// True for what the name of an expression does not tell.
fn is_unnamed(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast { .. } | Expr::TypedString(_) | Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. })
}

/// Finds the calls of functions that are not within others, nor in a subquery.
#[derive(Default)]
struct Named {
    exprs: Vec<Expr>,
    /// True if there is something that names do not tell.
    has_more: bool,
    queries: usize,
    calls: usize,
}

impl Visitor for Named {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<SqlError> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<SqlError> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        self.has_more |= is_unnamed(expr);
        if matches!(expr, Expr::Function(_)) {
            if self.queries == 0 && self.calls == 0 {
                self.exprs.push(expr.clone());
            }
            self.calls += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        self.calls -= usize::from(matches!(expr, Expr::Function(_)));
        ControlFlow::Continue(())
    }
}

/// Leaves in an expression what its name tells.
struct Plain;

impl VisitorMut for Plain {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::Cast { expr: inner, .. } | Expr::Nested(inner) => *expr = (**inner).clone(),
            Expr::TypedString(typed) => *expr = Expr::Value(typed.value.clone()),
            Expr::Subquery(_) => *expr = Expr::Identifier(Ident::new("subquery")),
            Expr::Exists { .. } => *expr = Expr::Identifier(Ident::new("exists")),
            Expr::InSubquery { expr: inner, .. } => *expr = call("in", vec![(**inner).clone()]),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Marks what names do not tell. Equal texts are marked alike.
fn mark(expr: &mut Expr, marked: &mut Vec<String>) {
    if !is_unnamed(expr) {
        return;
    }
    let text = match &*expr {
        Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => data_type.to_string(),
        other => other.to_string(),
    };
    let place = marked.iter().position(|other| *other == text).unwrap_or_else(|| {
        marked.push(text);
        marked.len() - 1
    });
    let number = Expr::Value(Value::Number(place.to_string(), false).into());
    *expr = call(DISAMBIGUATED, vec![expr.clone(), number]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::{StatementKind, parse};

    fn disambiguated(sql: &str) -> String {
        let mut parsed = parse(sql).unwrap_or_else(|error| panic!("{error} by {sql}"));
        let Some(StatementKind::Query { mut query, .. }) = parsed.pop().map(|statement| statement.kind) else { panic!("no query: {sql}") };
        disambiguate(&mut query).unwrap_or_else(|error| panic!("{error} by {sql}"));
        query.to_string().replace(DISAMBIGUATED, "mark")
    }

    #[test]
    fn casts_and_subqueries_are_marked_where_names_would_be_alike() {
        for (sql, marked) in [
            ("SELECT sum(a), sum(a::numeric) FROM t", "SELECT sum(a), sum(mark(a::NUMERIC, 0)) FROM t"),
            ("SELECT count(1::int) FROM t HAVING COUNT(*) > 1", "SELECT count(mark(1::INT, 0)) FROM t HAVING COUNT(*) > 1"),
            (
                "SELECT a::date, a::text, count(*) FROM t GROUP BY 1, 2 ORDER BY 1",
                "SELECT mark(a::DATE, 0), mark(a::TEXT, 1), count(*) FROM t GROUP BY 1, 2 ORDER BY 1",
            ),
            (
                "SELECT a::date, count(a::date), count(a) FROM t GROUP BY a::date HAVING count(a::date) > 1",
                "SELECT mark(a::DATE, 0), count(mark(a::DATE, 0)), count(a) FROM t GROUP BY mark(a::DATE, 0) HAVING count(mark(a::DATE, 0)) > 1",
            ),
            (
                "SELECT sum((SELECT 1)), sum((SELECT b::int FROM u)) FROM t",
                "SELECT sum(mark((SELECT 1), 0)), sum(mark((SELECT b::INT FROM u), 1)) FROM t",
            ),
        ] {
            assert_eq!(disambiguated(sql), marked);
        }
    }

    #[test]
    fn others_stay_as_they_are() {
        for sql in [
            "SELECT sum(a::NUMERIC), sum(b) FROM t",
            "SELECT a::DATE, a::TEXT FROM t",
            "SELECT sum(a::NUMERIC), sum(a::NUMERIC) FROM t GROUP BY a",
            "SELECT sum(a), (SELECT sum(a::NUMERIC) FROM t) FROM t",
        ] {
            assert_eq!(disambiguated(sql), sql);
        }
    }
}
