//! Whole numbers that are written without a type: each is an `integer` if that holds it, as in PostgreSQL. To the query engine it would be a `bigint`.
//!
//! So each is cast, but where a number is a place, as in `ORDER BY 1`, or where the query engine takes nothing but a number, as in `LIMIT 1`. Those are told apart by the flag
//! that the parser has for a suffix `L`, which no number of PostgreSQL has.

use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Interval,
    LimitClause, OrderByKind, Query, Select, TableFactor, TableFunctionArgs, UnaryOperator, Value,
};

/// A number with its type; `None` if it is none, one that no `integer` holds, or one that is kept. What is below the expression has been given its type before.
pub fn typed(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, false) => digits.parse::<i32>().is_ok().then(|| integer(number(digits))),
            _ => None,
        },
        // The sign belongs to the number.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let digits = if is_kept(expr) { return None } else { whole(expr)? };
            format!("-{digits}").parse::<i32>().ok()?;
            Some(integer(Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(digits)) }))
        }
        _ => None,
    }
}

/// The digits of a number, with its type or without.
pub fn whole(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits),
            _ => None,
        },
        Expr::Cast { expr, data_type: DataType::Int(None), .. } if matches!(**expr, Expr::Value(_)) => whole(expr),
        _ => None,
    }
}

/// A place in the select list, as `ORDER BY` names one.
pub fn place(place: usize) -> Expr {
    number(&place.to_string())
}

fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.to_owned(), true).into())
}

fn integer(expr: Expr) -> Expr {
    Expr::Cast { kind: CastKind::DoubleColon, expr: Box::new(expr), data_type: DataType::Int(None), array: false, format: None }
}

/// Keeps the numbers of `ORDER BY`, `LIMIT` and `OFFSET` as they are.
pub fn keep_of_query(query: &mut Query) {
    if let Some(OrderByKind::Expressions(exprs)) = query.order_by.as_mut().map(|order| &mut order.kind) {
        exprs.iter_mut().for_each(|order| keep(&mut order.expr));
    }
    if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
        limit.iter_mut().for_each(keep);
        offset.iter_mut().for_each(|offset| keep(&mut offset.value));
    }
}

/// The same of `GROUP BY`.
pub fn keep_of_select(select: &mut Select) {
    let GroupByExpr::Expressions(exprs, _) = &mut select.group_by else { return };
    for expr in exprs {
        match expr {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => sets.iter_mut().flatten().for_each(keep),
            expr => keep(expr),
        }
    }
}

/// The same of what a function in `FROM` is given.
pub fn keep_of_table(table: &mut TableFactor) {
    let args = match table {
        TableFactor::Table { args: Some(TableFunctionArgs { args, .. }), .. } | TableFactor::Function { args, .. } => args,
        _ => return,
    };
    for arg in args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) | FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. } = arg {
            keep(expr);
        }
    }
}

/// The same of what is counted: `count(*)` is `count(1)` to the query engine, and both may stand side by side.
pub fn keep_of_function(function: &mut Function) {
    let is_count = function.name.to_string().eq_ignore_ascii_case("count");
    if let FunctionArguments::List(list) = &mut function.args
        && is_count
    {
        for arg in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg {
                keep(expr);
            }
        }
    }
}

/// `INTERVAL '1' DAY`, as a text that is cast. Error 0A000 for one whose fields would cut it.
pub fn interval(interval: &Interval) -> SqlResult<Expr> {
    let refused = || SqlError::unsupported("INTERVAL takes one field, and a whole number of it").with_hint("Write units within the text.");
    let Interval { value, leading_field, last_field: None, leading_precision: None, fractional_seconds_precision: None } = interval else {
        return Err(refused());
    };
    let text = text(value).ok_or_else(refused)?;
    let text = match leading_field {
        Some(field) if text.trim().parse::<i64>().is_ok() => format!("{text} {field}"),
        Some(_) => return Err(refused()),
        None => text.to_owned(),
    };
    let expr = Box::new(Expr::Value(Value::SingleQuotedString(text).into()));
    let data_type = DataType::Interval { fields: None, precision: None };
    Ok(Expr::Cast { kind: CastKind::DoubleColon, expr, data_type, array: false, format: None })
}

/// A sign binds closer than `^`: the power of a negative number, if `expr` is a power.
pub fn power_of_negative(expr: &Expr) -> Option<Expr> {
    let Expr::BinaryOp { left, op: op @ BinaryOperator::PGExp, right } = expr else { return None };
    let base = power_of_negative(left).unwrap_or_else(|| Expr::UnaryOp { op: UnaryOperator::Minus, expr: left.clone() });
    Some(Expr::BinaryOp { left: Box::new(base), op: op.clone(), right: right.clone() })
}

/// The text of a constant.
pub fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Keeps a number as it is.
pub fn keep(expr: &mut Expr) {
    match expr {
        Expr::Value(value) => {
            if let Value::Number(_, is_kept) = &mut value.value {
                *is_kept = true;
            }
        }
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } | Expr::Nested(expr) => keep(expr),
        _ => {}
    }
}

fn is_kept(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(_, true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::expression;

    #[test]
    fn a_number_has_the_smallest_type_of_postgresql_that_holds_it() {
        for (written, expected) in
            [("1", Some("1L::INT")), ("2147483648", None), ("1.5", None), ("-2147483648", Some("-2147483648L::INT")), ("-2147483649", None)]
        {
            let expr = expression(written).expect("an expression");
            assert_eq!(typed(&expr).map(|expr| expr.to_string()).as_deref(), expected, "{written}");
        }
        let signed = typed(&Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(integer(number("5"))) });
        assert_eq!(signed.map(|expr| expr.to_string()).as_deref(), Some("-5L::INT"));
    }
}
