//! Constants that are written as texts and are none: each takes the type of what it meets, as in PostgreSQL. The query engine would make a text of what it
//! meets, or read the constant by rules of its own.

use super::operands::is_comparison;
use crate::engine::arrays::COALESCE;
use crate::engine::arrays::typing::{as_type, type_of};
use crate::error::SqlResult;
use crate::types::{SqlType, common};
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::{Between, Case, InList, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// An expression with the constants in it, not below it, as what they meet has them; `None` if there are none to be read. Errors of a text that spells no
/// such value.
pub(super) fn read(expr: &Expr, schema: &DFSchema) -> SqlResult<Option<Expr>> {
    let plain = |expr: &Expr| type_of(expr, schema).filter(is_read);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_text(left) != is_text(right) => {
            let other = if is_text(left) { right } else { left };
            let is_later = |ty: &SqlType| *op == Operator::Plus && matches!(ty, SqlType::Timestamp | SqlType::TimestampTz);
            // What is added to a moment is an interval.
            match plain(other).map(|ty| if is_later(&ty) { SqlType::Interval } else { ty }).filter(|ty| takes(*op, ty)) {
                Some(ty) => Some(Expr::BinaryExpr(BinaryExpr { left: boxed(&ty, left)?, op: *op, right: boxed(&ty, right)? })),
                None => None,
            }
        }
        Expr::InList(InList { expr, list, negated }) if list.iter().any(is_text) => match plain(expr) {
            Some(ty) => Some(Expr::InList(InList { expr: expr.clone(), list: each(&ty, list)?, negated: *negated })),
            None => None,
        },
        Expr::Between(Between { expr, negated, low, high }) if is_text(low) || is_text(high) => match plain(expr) {
            Some(ty) => {
                Some(Expr::Between(Between { expr: expr.clone(), negated: *negated, low: boxed(&ty, low)?, high: boxed(&ty, high)? }))
            }
            None => None,
        },
        Expr::ScalarFunction(ScalarFunction { func, args })
            if matches!(func.name(), COALESCE | "nullif" | "greatest" | "least") && args.iter().any(is_text) =>
        {
            match of_others(args.iter(), schema) {
                Some(ty) => Some(Expr::ScalarFunction(ScalarFunction { func: func.clone(), args: each(&ty, args)? })),
                None => None,
            }
        }
        Expr::Case(case) => of_case(case, schema)?.map(Expr::Case),
        _ => None,
    })
}

/// Both what is compared with the first expression of a CASE, and its results.
fn of_case(case: &Case, schema: &DFSchema) -> SqlResult<Option<Case>> {
    let results = || case.when_then_expr.iter().map(|(_, then)| &**then).chain(case.else_expr.as_deref());
    if !case.when_then_expr.iter().any(|(when, _)| is_text(when)) && !results().any(is_text) {
        return Ok(None);
    }
    let mut read = case.clone();
    let compared = case.expr.as_ref().and_then(|expr| type_of(expr, schema)).filter(is_read);
    let result = of_others(results(), schema);
    for (when, then) in &mut read.when_then_expr {
        if let Some(ty) = &compared {
            *when = boxed(ty, when)?;
        }
        if let Some(ty) = &result {
            *then = boxed(ty, then)?;
        }
    }
    if let (Some(ty), Some(other)) = (&result, &mut read.else_expr) {
        *other = boxed(ty, other)?;
    }
    Ok((read != *case).then_some(read))
}

/// The type that all but the constants have in common.
fn of_others<'a>(exprs: impl Iterator<Item = &'a Expr>, schema: &DFSchema) -> Option<SqlType> {
    let mut types = exprs.filter(|expr| !is_text(expr)).filter_map(|expr| type_of(expr, schema));
    let first = types.next()?.unbounded();
    types.try_fold(first, |one, other| common(&one, &other)).filter(is_read)
}

/// True for a constant that is written as a text.
fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => matches!(value.try_as_str(), Some(Some(_))),
        Expr::Alias(alias) => is_text(&alias.expr),
        _ => false,
    }
}

/// Texts stay as they are; arrays have [rules of their own](crate::engine::arrays).
fn is_read(ty: &SqlType) -> bool {
    !ty.is_text() && ty.element().is_none()
}

/// True if both operands of the operator have one type where one of them has this one.
fn takes(op: Operator, ty: &SqlType) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    match op {
        op if is_comparison(op) => true,
        Plus if matches!(ty, SqlType::Interval) => true,
        Plus | Multiply | Divide | Modulo => is_number(ty),
        Minus => is_number(ty) || matches!(ty, SqlType::Date),
        _ => false,
    }
}

pub(super) fn is_number(ty: &SqlType) -> bool {
    use SqlType::{Float4, Float8, Int2, Int4, Int8, Numeric};
    matches!(ty, Int2 | Int4 | Int8 | Numeric(_) | Float4 | Float8)
}

fn each(ty: &SqlType, exprs: &[Expr]) -> SqlResult<Vec<Expr>> {
    exprs.iter().map(|expr| one(ty, expr)).collect()
}

fn boxed(ty: &SqlType, expr: &Expr) -> SqlResult<Box<Expr>> {
    one(ty, expr).map(Box::new)
}

fn one(ty: &SqlType, expr: &Expr) -> SqlResult<Expr> {
    if is_text(expr) { as_type(&ty.unbounded(), expr.clone()) } else { Ok(expr.clone()) }
}
