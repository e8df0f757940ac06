//! Operators of arrays: `||`, `@>`, `<@`, `&&`, `[…]`, comparisons with `ANY` and `ALL` of an array, and of two arrays; and of dates, times and intervals.

use super::{intervals, is_long, settle};
use crate::engine::arrays::typing::{Role, as_type, is_unknown, settled, type_of};
use crate::engine::arrays::{BEFORE, Quantified, function, make_array};
use crate::engine::bounded::bounded;
use crate::engine::from_sql;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Element, SqlType, several_dimensions};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, GetFieldAccess, Operator, ScalarUDF, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans them.
#[derive(Debug)]
pub struct Planner {
    /// The bytes that each of them may make of one batch of rows.
    pub bytes_max: u64,
}

impl ExprPlanner for Planner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if let BinaryOperator::Custom(name) = &expr.op
            && let Some(quantified) = Quantified::named(name)
        {
            let (value, array) = (known(expr.left, schema)?, known(expr.right, schema)?);
            let args = quantified_arguments(value, array, schema).map_err(from_sql)?;
            return Ok(PlannerResult::Planned(ScalarUDF::from(quantified).call(args)));
        }
        if let Some(planned) = of_moments(&expr, schema) {
            return Ok(PlannerResult::Planned(planned));
        }
        if !concerns_arrays(&expr.op) {
            return Ok(PlannerResult::Original(expr));
        }
        let expr = RawBinaryExpr { left: known(expr.left, schema)?, right: known(expr.right, schema)?, ..expr };
        let is_array = |expr: &Expr| !is_unknown(expr) && matches!(type_of(expr, schema), Some(SqlType::Array(_)));
        match (is_array(&expr.left), is_array(&expr.right)) {
            (false, false) => Ok(PlannerResult::Original(expr)),
            arrays => self.of_arrays(expr, arrays, schema).map_err(from_sql),
        }
    }

    fn plan_array_literal(&self, elements: Vec<Expr>, schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        let elements = elements.into_iter().map(|element| known(element, schema)).collect::<Result<Vec<_>>>()?;
        let elements = settled(&vec![Role::Element; elements.len()], elements, schema).map_err(from_sql)?;
        Ok(PlannerResult::Planned(bounded(&make_array(), self.bytes_max).call(elements)))
    }

    fn plan_field_access(&self, expr: RawFieldAccessExpr, schema: &DFSchema) -> Result<PlannerResult<RawFieldAccessExpr>> {
        if !matches!(type_of(&expr.expr, schema), Some(SqlType::Array(_))) {
            return Ok(PlannerResult::Original(expr));
        }
        let (name, args) = match expr.field_access {
            // Of a slice, another subscript would be one of another dimension.
            _ if matches!(&expr.expr, Expr::ScalarFunction(function) if function.func.name() == "array_slice") => {
                return Err(from_sql(several_dimensions()));
            }
            GetFieldAccess::ListIndex { key } => ("array_element", vec![expr.expr, *key]),
            GetFieldAccess::ListRange { start, stop, stride } => {
                if *stride != lit(1_i64) {
                    return Err(from_sql(SqlError::syntax("a slice of an array has two bounds")));
                }
                ("array_slice", vec![expr.expr, *start, *stop])
            }
            GetFieldAccess::NamedStructField { .. } => return Ok(PlannerResult::Original(expr)),
        };
        let roles = [Role::List, Role::Integer, Role::Integer];
        let args = settled(&roles, args, schema).map_err(from_sql)?;
        Ok(PlannerResult::Planned(function(name, self.bytes_max).call(args)))
    }
}

impl Planner {
    /// An operator of which one side is an array, or both.
    fn of_arrays(
        &self,
        expr: RawBinaryExpr,
        (left_is, right_is): (bool, bool),
        schema: &DFSchema,
    ) -> SqlResult<PlannerResult<RawBinaryExpr>> {
        use Role::{Element, List};
        let RawBinaryExpr { op, left, right } = expr;
        // Beside an array, what is not known to be one value is an array.
        let role = |is_array: bool, expr: &Expr| if is_array || is_unknown(expr) { List } else { Element };
        let roles = match op {
            BinaryOperator::StringConcat => [role(left_is, &left), role(right_is, &right)],
            _ => [List, List],
        };
        let mut args = settled(&roles, vec![left, right], schema)?;
        let (name, swapped, negated) = match (&op, roles) {
            (BinaryOperator::StringConcat, [List, List]) => ("array_cat", false, false),
            (BinaryOperator::StringConcat, [List, _]) => ("array_append", false, false),
            (BinaryOperator::StringConcat, _) => ("array_prepend", false, false),
            (BinaryOperator::AtArrow, _) => ("array_contains", false, false),
            (BinaryOperator::ArrowAt, _) => ("array_contains", true, false),
            (BinaryOperator::PGOverlap, _) => ("array_overlaps", false, false),
            (BinaryOperator::Lt, _) => (BEFORE, false, false),
            (BinaryOperator::Gt, _) => (BEFORE, true, false),
            (BinaryOperator::LtEq, _) => (BEFORE, true, true),
            (BinaryOperator::GtEq, _) => (BEFORE, false, true),
            _ => match <[Expr; 2]>::try_from(args) {
                Ok([left, right]) => return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
                Err(_) => return Err(SqlError::internal("an operator has two sides")),
            },
        };
        if swapped {
            args.swap(0, 1);
        }
        let call = function(name, self.bytes_max).call(args);
        Ok(PlannerResult::Planned(if negated { Expr::Not(Box::new(call)) } else { call }))
    }
}

/// An expression whose type can be told: within, constants and parameters may still have none.
fn known(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if is_unknown(&expr) || type_of(&expr, schema).is_some() { Ok(expr) } else { Ok(settle(expr, schema)?.data) }
}

/// Arithmetic of dates, times and intervals: what stands around it asks for its type at once, and to the query engine some of it has none.
fn of_moments(expr: &RawBinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let op = match expr.op {
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        BinaryOperator::Divide => Operator::Divide,
        _ => return None,
    };
    if is_long(&expr.left, &expr.right) {
        return None;
    }
    intervals::of_binary(&BinaryExpr { left: Box::new(expr.left.clone()), op, right: Box::new(expr.right.clone()) }, schema)
}

/// True for operators that arrays have.
fn concerns_arrays(op: &BinaryOperator) -> bool {
    use BinaryOperator::{ArrowAt, AtArrow, Eq, Gt, GtEq, Lt, LtEq, NotEq, PGOverlap, StringConcat};
    matches!(op, AtArrow | ArrowAt | PGOverlap | Eq | NotEq | Lt | LtEq | Gt | GtEq | StringConcat)
}

/// A value and the array that it is compared with. Errors: 42809, 42883.
fn quantified_arguments(value: Expr, array: Expr, schema: &DFSchema) -> SqlResult<Vec<Expr>> {
    if !is_unknown(&array) && !matches!(type_of(&array, schema), Some(SqlType::Array(_))) {
        return Err(SqlError::new(SqlState::WrongObjectType, "op ANY/ALL (array) requires array on right side"));
    }
    let args = settled(&[Role::Element, Role::List], vec![value, array], schema)?;
    // Where neither tells: texts.
    let text = SqlType::Array(Element::TEXT);
    args.into_iter().zip([SqlType::Text, text]).map(|(arg, ty)| as_type(&ty, arg)).collect()
}
