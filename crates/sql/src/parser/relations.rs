//! Bounds the tables, subqueries and functions that the rows of a statement come from.
//!
//! The plan of a statement is as deep as its joins are many, and a name of WITH stands for all that it was given, each time that it
//! is used: thirty of them, each two of the one before, are a thousand million tables.
//!
//! Invariant: with each name of WITH replaced by what it stands for, no statement has more than [`RELATIONS_MAX`] of them.

use super::fold;
use super::nesting::too_complex;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{self, Ident, Query, Statement, TableFactor, Visitor};
use rhumb_generic::walk;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What the rows of a statement come from, counted each time that it is used.
pub const RELATIONS_MAX: usize = 200;

/// Refuses a statement with more. Error 54001.
pub fn check(statement: &Statement) -> SqlResult<()> {
    walk(statement, &mut Counter::default())
}

#[derive(Default)]
struct Counter {
    count: usize,
    /// The queries of WITH that are met but not counted through, by their place in memory.
    named: BTreeMap<*const Query, String>,
    /// What each name of WITH counts for.
    weights: BTreeMap<String, usize>,
    /// The count at the beginning of each query that is under way.
    begun: Vec<usize>,
}

impl Visitor for Counter {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.named.extend(with.map(|table| (&raw const *table.query, fold(&table.alias.name))));
        self.begun.push(self.count);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        let begun = self.begun.pop().unwrap_or_default();
        if let Some(name) = self.named.remove(&(&raw const *query)) {
            let weight = self.weights.entry(name).or_default();
            // A name may be given twice, in two queries.
            *weight = (*weight).max(self.count - begun);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<SqlError> {
        let name = match table {
            TableFactor::Table { name: ast::ObjectName(parts), .. } => match parts.as_slice() {
                [part] => part.as_ident().map(|name: &Ident| fold(name)),
                _ => None,
            },
            _ => None,
        };
        self.count += 1 + name.and_then(|name| self.weights.get(&name).copied()).unwrap_or_default();
        if self.count <= RELATIONS_MAX {
            return ControlFlow::Continue(());
        }
        let message = format!("more than {RELATIONS_MAX} tables and subqueries, those behind names of WITH counted each time");
        ControlFlow::Break(too_complex(message).with_hint("Split the statement, and keep what it is to share in a table."))
    }
}
