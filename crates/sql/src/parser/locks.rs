//! `FOR UPDATE` and its like, wherever in a statement they stand.
//!
//! Locks on more rows than were asked for are safe, locks on fewer are not: so a query that asks for them anywhere reads with locks as a whole. What
//! clients see of it: `docs/sql.md`, "FOR UPDATE".

use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{Query, Statement, Visitor};
use rhumb_generic::walk;
use std::ops::ControlFlow;

/// True if some query of `statement` asks for locks.
///
/// # Errors
/// One is not to wait for locks.
pub fn asked_for(statement: &Statement) -> Result<bool, SqlError> {
    let mut finder = Finder { found: false };
    walk(statement, &mut finder)?;
    Ok(finder.found)
}

struct Finder {
    found: bool,
}

impl Visitor for Finder {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        self.found |= !query.locks.is_empty();
        match query.locks.iter().find_map(|lock| lock.nonblock.as_ref()) {
            None => ControlFlow::Continue(()),
            Some(nonblock) => {
                let message = format!("{nonblock} is not supported: whether a row is locked is known after a trip to a majority");
                let hint = "SET LOCAL lock_timeout bounds how long a statement waits.";
                ControlFlow::Break(SqlError::unsupported(message).with_hint(hint))
            }
        }
    }
}
