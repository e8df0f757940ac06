//! Walks over parsed statements and parts of them.
//!
//! The parser's own walk is generic: each type of visitor compiles it anew, for all that a statement may consist of. That were nine tenths of the
//! time that this crate takes to build. Here it does not know which visitor it has, so there are two of it: one that reads, one that changes.

use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Shows `visitor` all that `part` consists of, until it breaks with an error.
pub fn walk(part: &impl Visit, visitor: &mut dyn Visitor<Break = SqlError>) -> SqlResult<()> {
    match part.visit(&mut Reader(visitor)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// As [`walk`], by a visitor that may change what it sees.
pub fn walk_mut(part: &mut impl VisitMut, visitor: &mut dyn VisitorMut<Break = SqlError>) -> SqlResult<()> {
    match part.visit(&mut Changer(visitor)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The tables that `part` names, as often as it does, those of subqueries included.
pub fn relations(part: &impl Visit) -> Vec<ObjectName> {
    let mut relations = Relations(Vec::new());
    let walked = walk(part, &mut relations);
    debug_assert!(walked.is_ok(), "it sees all of them");
    relations.0
}

struct Reader<'a>(&'a mut dyn Visitor<Break = SqlError>);

struct Changer<'a>(&'a mut dyn VisitorMut<Break = SqlError>);

struct Relations(Vec<ObjectName>);

/// Passes on all that a walk shows to the visitor within.
macro_rules! pass_on {
    ($($method:ident: $part:ty),+ $(,)?) => {
        type Break = SqlError;
        $(fn $method(&mut self, part: $part) -> ControlFlow<SqlError> {
            self.0.$method(part)
        })+
    };
}

impl Visitor for Reader<'_> {
    pass_on! {
        pre_visit_query: &Query,
        post_visit_query: &Query,
        pre_visit_select: &Select,
        post_visit_select: &Select,
        pre_visit_relation: &ObjectName,
        post_visit_relation: &ObjectName,
        pre_visit_table_factor: &TableFactor,
        post_visit_table_factor: &TableFactor,
        pre_visit_expr: &Expr,
        post_visit_expr: &Expr,
        pre_visit_statement: &Statement,
        post_visit_statement: &Statement,
        pre_visit_value: &ValueWithSpan,
        post_visit_value: &ValueWithSpan,
    }
}

impl VisitorMut for Changer<'_> {
    pass_on! {
        pre_visit_query: &mut Query,
        post_visit_query: &mut Query,
        pre_visit_select: &mut Select,
        post_visit_select: &mut Select,
        pre_visit_relation: &mut ObjectName,
        post_visit_relation: &mut ObjectName,
        pre_visit_table_factor: &mut TableFactor,
        post_visit_table_factor: &mut TableFactor,
        pre_visit_expr: &mut Expr,
        post_visit_expr: &mut Expr,
        pre_visit_statement: &mut Statement,
        post_visit_statement: &mut Statement,
        pre_visit_value: &mut ValueWithSpan,
        post_visit_value: &mut ValueWithSpan,
    }
}

impl Visitor for Relations {
    type Break = SqlError;

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<SqlError> {
        self.0.push(name.clone());
        ControlFlow::Continue(())
    }
}
