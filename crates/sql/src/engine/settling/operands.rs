//! Operands that do not go together: PostgreSQL asks for a cast where the query engine would convert one of them, each row anew, or call the other false.

use crate::engine::arrays::COALESCE;
use crate::engine::arrays::typing::told_type;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{SqlType, common};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::{Between, InList, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// Refuses a condition that is no truth value. Error 42804.
pub fn check_condition(expr: &Expr, schema: &DFSchema, place: &str) -> SqlResult<()> {
    match told_type(expr, schema) {
        None | Some(SqlType::Bool) => Ok(()),
        Some(ty) => {
            let message = format!("argument of {place} must be type boolean, not type {}", ty.name());
            Err(SqlError::new(SqlState::DatatypeMismatch, message))
        }
    }
}

/// Refuses operands of types that have none in common. Errors 42883, 42804.
pub(super) fn check(expr: &Expr, schema: &DFSchema) -> SqlResult<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let place = if *op == Operator::And { "AND" } else { "OR" };
            check_condition(left, schema, place)?;
            check_condition(right, schema, place)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => compared(left, &op.to_string(), right, schema),
        Expr::InList(InList { expr, list, .. }) => list.iter().try_for_each(|item| compared(expr, "=", item, schema)),
        Expr::Between(Between { expr, low, high, .. }) => {
            compared(expr, ">=", low, schema)?;
            compared(expr, "<=", high, schema)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => match (func.name(), args.as_slice()) {
            ("nullif", [one, other]) => compared(one, "=", other, schema),
            (name @ (COALESCE | "greatest" | "least"), _) => in_common(&name.to_uppercase(), args.iter(), schema),
            _ => Ok(()),
        },
        Expr::Case(case) => {
            for (when, _) in &case.when_then_expr {
                match &case.expr {
                    Some(expr) => compared(expr, "=", when, schema)?,
                    None => check_condition(when, schema, "CASE/WHEN")?,
                }
            }
            let results = case.when_then_expr.iter().map(|(_, then)| &**then);
            in_common("CASE", results.chain(case.else_expr.as_deref()), schema)
        }
        _ => Ok(()),
    }
}

fn compared(one: &Expr, op: &str, other: &Expr, schema: &DFSchema) -> SqlResult<()> {
    match (told_type(one, schema), told_type(other, schema)) {
        (Some(one), Some(other)) if are_apart(&one, &other) => {
            let message = format!("operator does not exist: {} {op} {}", one.name(), other.name());
            let hint = "No operator matches the given name and argument types. You might need to add explicit type casts.";
            Err(SqlError::new(SqlState::UndefinedFunction, message).with_hint(hint))
        }
        _ => Ok(()),
    }
}

fn in_common<'a>(name: &str, exprs: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> SqlResult<()> {
    let mut types = exprs.filter_map(|expr| told_type(expr, schema));
    let Some(first) = types.next() else { return Ok(()) };
    match types.find(|ty| are_apart(&first, ty)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("{name} types {} and {} cannot be matched", first.name(), other.name());
            Err(SqlError::new(SqlState::DatatypeMismatch, message))
        }
    }
}

/// Arrays have rules of their own.
fn are_apart(one: &SqlType, other: &SqlType) -> bool {
    one.element().is_none() && other.element().is_none() && common(one, other).is_none()
}

/// True for the operators that compare two values of one type.
pub(super) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
