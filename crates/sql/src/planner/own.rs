//! Walks over the SELECTs of a part of a statement, and over the expressions that are a part's own: those in its subqueries are not.

use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{Expr, OrderBy, Query, Select, SetExpr, VisitorMut};
use rhumb_generic::{Part, walk_mut};
use std::ops::ControlFlow;

/// Makes `change` to each of them, after those within it.
pub fn change(part: &mut impl Part, change: &mut dyn FnMut(&mut Expr) -> SqlResult<()>) -> SqlResult<()> {
    walk_mut(part, &mut Own { change, queries: 0 })
}

/// Makes `change` to each SELECT and the ORDER BY behind it, before those within it.
pub fn each_select(part: &mut impl Part, change: fn(&mut Select, Option<&mut OrderBy>) -> SqlResult<()>) -> SqlResult<()> {
    walk_mut(part, &mut Selects(change))
}

struct Selects(fn(&mut Select, Option<&mut OrderBy>) -> SqlResult<()>);

impl VisitorMut for Selects {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        match query.body.as_mut() {
            SetExpr::Select(select) => (self.0)(select, query.order_by.as_mut()).map_or_else(ControlFlow::Break, ControlFlow::Continue),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Those of a UNION and the like; in a query of its own nothing is left to change.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        (self.0)(select, None).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

struct Own<'a> {
    change: &'a mut dyn FnMut(&mut Expr) -> SqlResult<()>,
    queries: usize,
}

impl VisitorMut for Own<'_> {
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
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        (self.change)(expr).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}
