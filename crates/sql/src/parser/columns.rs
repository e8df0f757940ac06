//! The columns that an expression over one table names.

use super::fold;
use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Visitor, VisitorMut};
use rhumb_generic::{walk, walk_mut};
use std::ops::ControlFlow;

/// The names of columns in an expression, each once, in the order in which they come up; whatever stands for one, be there such a column or not.
pub fn columns_named(expr: &Expr) -> Vec<String> {
    let mut finder = Finder(Vec::new());
    let walked = walk(expr, &mut finder);
    debug_assert!(walked.is_ok(), "it sees all of them");
    finder.0
}

/// Has the expression name the column `from` as `to`.
pub fn rename_column(expr: &mut Expr, from: &str, to: &str) {
    let walked = walk_mut(expr, &mut Renamer { from, to });
    debug_assert!(walked.is_ok(), "it sees all of them");
}

/// Has the expression name columns of `table` by their names alone, so that it outlives that of the table.
pub fn without_table(expr: &mut Expr, table: &str) {
    let walked = walk_mut(expr, &mut Stripper { table });
    debug_assert!(walked.is_ok(), "it sees all of them");
}

/// The last part of the name of a column.
fn column(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(ident) => Some(ident),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

struct Finder(Vec<String>);

impl Visitor for Finder {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if let Some(name) = column(expr).map(fold).filter(|name| !self.0.contains(name)) {
            self.0.push(name);
        }
        ControlFlow::Continue(())
    }
}

struct Renamer<'a> {
    from: &'a str,
    to: &'a str,
}

impl VisitorMut for Renamer<'_> {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let ident = match expr {
            Expr::Identifier(ident) => Some(ident),
            Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(ident) = ident.filter(|ident| fold(ident) == self.from) {
            *ident = Ident::with_quote('"', self.to);
        }
        ControlFlow::Continue(())
    }
}

struct Stripper<'a> {
    table: &'a str,
}

impl VisitorMut for Stripper<'_> {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, column] = parts.as_slice()
            && fold(table) == self.table
        {
            *expr = Expr::Identifier(column.clone());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::expression;

    #[test]
    fn columns_are_found_and_renamed_wherever_they_stand() {
        let mut expr = expression("t.a > 0 AND (\"B\" IS NULL OR lower(c) = 'a') AND a < coalesce(A, 5)").expect("an expression");
        assert_eq!(columns_named(&expr), ["a", "B", "c"]);
        without_table(&mut expr, "t");
        rename_column(&mut expr, "a", "New");
        assert_eq!(expr.to_string(), "\"New\" > 0 AND (\"B\" IS NULL OR lower(c) = 'a') AND \"New\" < coalesce(\"New\", 5)");
    }
}
