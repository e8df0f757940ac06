//! The types of a statement's parameters: what the client says, else what the column they meet says, else text. And how much of the
//! statement's memory each of its calls may take, which is known from the same look at it.

use super::plainer;
use crate::engine::analyze;
use crate::engine::bounded::{is_growing, share};
use crate::engine::tree::{any, visit};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::SqlType;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, Value, ValueWithSpan, Visitor};
use rhumb_generic::{Part, walk};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The most parameters of a statement: what the wire's 16-bit count allows.
pub const PARAMETERS_MAX: usize = u16::MAX as usize;

/// The parameters of one statement while it is planned.
#[derive(Clone, Debug)]
pub struct Parameters {
    types: Vec<Option<SqlType>>,
    /// The calls that may make much of little.
    growing: usize,
}

impl Parameters {
    /// The parameters that occur in `part`, with the types that the client gave.
    pub fn of(part: &impl Part, hints: &[Option<SqlType>]) -> SqlResult<Parameters> {
        let mut counter = Counter { count: hints.len(), casts: Vec::new(), growing: 0 };
        walk(part, &mut counter)?;
        let mut types = hints.to_vec();
        types.resize(counter.count, None);
        let mut parameters = Parameters { types, growing: counter.growing };
        counter.casts.iter().for_each(|(id, ty)| parameters.set(id, ty.unbounded()));
        Ok(parameters)
    }

    /// Learns types from the places where parameters stand in a planned expression; `expected` is the type of the whole.
    pub fn learn(&mut self, expr: &Expr, expected: Option<&SqlType>) {
        if let (Expr::Placeholder(placeholder), Some(ty)) = (expr, expected) {
            self.set(&placeholder.id, ty.unbounded());
        }
        // Walking an expression in memory cannot fail.
        let _ = visit(expr, &mut |expr| {
            if let Expr::Placeholder(Placeholder { id, field: Some(field) }) = expr
                && let Some(ty) = SqlType::of_field(field)
            {
                self.set(id, ty.unbounded());
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }

    /// Learns the type of parameter `id` from a field it is compared with.
    pub fn learn_field(&mut self, id: &str, field: &FieldRef) {
        if let Some(ty) = SqlType::of_field(field) {
            self.set(id, ty.unbounded());
        }
    }

    fn set(&mut self, id: &str, ty: SqlType) {
        let slot = id
            .strip_prefix('$')
            .and_then(|number| number.parse::<usize>().ok())
            .and_then(|number| self.types.get_mut(number.checked_sub(1)?));
        if let Some(slot @ None) = slot {
            *slot = Some(ty);
        }
    }

    /// What is known so far, for the query engine's planner.
    pub fn fields(&self) -> Vec<Option<FieldRef>> {
        self.types.iter().map(|ty| ty.map(|ty| Arc::new(ty.field("", true)) as FieldRef)).collect()
    }

    /// The bytes that a call of the statement may make of one batch of rows.
    pub fn made_max(&self) -> u64 {
        share(self.growing)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.types.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The types at last: text where nothing is known.
    pub fn finish(self) -> Vec<SqlType> {
        self.types.into_iter().map(|ty| ty.unwrap_or(SqlType::Text)).collect()
    }
}

struct Counter {
    count: usize,
    /// The types that parameters are cast to right where they stand.
    casts: Vec<(String, SqlType)>,
    growing: usize,
}

impl Visitor for Counter {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &SqlExpr) -> ControlFlow<SqlError> {
        self.cast(expr);
        self.growing += usize::from(is_growing(expr));
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<SqlError> {
        let Value::Placeholder(name) = &value.value else { return ControlFlow::Continue(()) };
        match name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()) {
            Some(number) if (1..=PARAMETERS_MAX).contains(&number) => {
                self.count = self.count.max(number);
                ControlFlow::Continue(())
            }
            Some(1..) => {
                let message = format!("a statement can have at most {PARAMETERS_MAX} parameters; there is no {name}");
                ControlFlow::Break(SqlError::new(SqlState::TooManyArguments, message).with_hint("Split it into several, or use COPY."))
            }
            _ => ControlFlow::Break(SqlError::new(SqlState::UndefinedParameter, format!("there is no parameter {name}"))),
        }
    }
}

impl Counter {
    fn cast(&mut self, expr: &SqlExpr) {
        if let Some((expr, ty)) = plainer::cast_of(expr)
            && let SqlExpr::Value(ValueWithSpan { value: Value::Placeholder(id), .. }) = plainer::without_brackets(expr)
        {
            self.casts.push((id.clone(), ty));
        }
    }
}

/// Refuses what can only be computed over many rows, where a single row's value is wanted.
pub fn require_scalar(expr: &Expr, place: &str) -> SqlResult<()> {
    if analyze::is_scalar(expr) {
        return Ok(());
    }
    if any(expr, &mut |part| matches!(part, Expr::AggregateFunction(_))) {
        return Err(SqlError::new(SqlState::GroupingError, format!("aggregate functions are not allowed in {place}")));
    }
    if any(expr, &mut |part| matches!(part, Expr::WindowFunction(_))) {
        return Err(SqlError::new(SqlState::WindowingError, format!("window functions are not allowed in {place}")));
    }
    Err(SqlError::unsupported(format!("subqueries are not supported in {place}")))
}
