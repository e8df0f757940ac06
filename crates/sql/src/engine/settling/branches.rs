//! The branches of a `CASE`: all of the type that they have in common. To the query engine the first tells, and the others are cut to it.

use crate::engine::arrays::typing::{is_unknown, type_of};
use crate::types::{NUMERIC_PRECISION_MAX, SqlType, common};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::{Expr, ExprSchemable};
use std::sync::Arc;

/// The `CASE` with its branches cast; `None` if they are of one type, or of none in common.
pub(super) fn unified(case: &Case, schema: &DFSchema) -> Option<Expr> {
    let branches = || case.when_then_expr.iter().map(|(_, then)| &**then).chain(case.else_expr.as_deref());
    let told: Vec<&Expr> = branches().filter(|branch| !is_unknown(branch)).collect();
    let arrow: Vec<DataType> = told.iter().map(|branch| branch.get_type(schema)).collect::<Result<_, _>>().ok()?;
    let first = arrow.first()?;
    if arrow.iter().all(|ty| ty == first) {
        return None;
    }
    let mut types = told.iter().map(|branch| type_of(branch, schema));
    let one = types.next()??;
    let ty = match types.try_fold(one, |one, other| common(&one, &other?))? {
        SqlType::Numeric(_) => decimal(&arrow)?,
        ty => ty,
    };
    let cast = |branch: &Expr| match branch.get_type(schema) {
        Ok(own) if own != ty.arrow() => Box::new(Expr::Cast(Cast { expr: Box::new(branch.clone()), field: Arc::new(ty.field("", true)) })),
        _ => Box::new(branch.clone()),
    };
    Some(Expr::Case(Case {
        expr: case.expr.clone(),
        when_then_expr: case.when_then_expr.iter().map(|(when, then)| (when.clone(), cast(then))).collect(),
        else_expr: case.else_expr.as_deref().map(cast),
    }))
}

/// The decimal type with room for the values of all of these.
fn decimal(types: &[DataType]) -> Option<SqlType> {
    let shapes = types.iter().map(|ty| match ty {
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::Decimal128(precision, scale) => {
            let scale = u8::try_from(*scale).ok()?;
            Some((precision.saturating_sub(scale), scale))
        }
        _ => None,
    });
    let widest = |one: (u8, u8), other: (u8, u8)| (one.0.max(other.0), one.1.max(other.1));
    let (whole, scale) = shapes.collect::<Option<Vec<_>>>()?.into_iter().reduce(widest)?;
    Some(SqlType::Numeric(Some(((whole + scale).clamp(1, NUMERIC_PRECISION_MAX), scale))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_type_has_room_for_all_branches() {
        let of = |types: &[DataType]| decimal(types);
        assert_eq!(of(&[DataType::Decimal128(2, 1), DataType::Decimal128(3, 2)]), Some(SqlType::Numeric(Some((3, 2)))));
        assert_eq!(of(&[DataType::Int32, DataType::Decimal128(3, 2)]), Some(SqlType::Numeric(Some((12, 2)))));
        assert_eq!(of(&[DataType::Decimal128(38, 0), DataType::Decimal128(20, 10)]), Some(SqlType::Numeric(Some((38, 10)))));
        assert_eq!(of(&[DataType::Float64]), None);
    }
}
