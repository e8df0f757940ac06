//! Expressions of SQL that the query engine does not plan, as others that it does.

use crate::engine::arrays::{self, TO_ARRAY};
use crate::engine::functions::MAKE_INTERVAL;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::names::{MARK, select};
use crate::parser::{fold, plain_arguments};
use crate::types::SqlType;
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Fetch, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, LimitClause, ObjectName, ObjectNamePart, Query, Select, SelectItem, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, Value, Visitor,
};
use rhumb_generic::walk;
use std::ops::ControlFlow;

/// `a = ANY (ARRAY[…])` is `a IN (…)`, and `a <> ALL (ARRAY[…])` is `a NOT IN (…)`. A cast of the array is one of each element.
pub fn list_of_array(expr: &Expr) -> Option<Expr> {
    let (left, right, negated) = match expr {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return None,
    };
    let list = elements(right)?;
    if list.is_empty() {
        return Some(Expr::Value(Value::Boolean(negated).into()));
    }
    Some(Expr::InList { expr: left.clone(), list, negated })
}

/// The elements of an array that is written as a list of them.
fn elements(array: &Expr) -> Option<Vec<Expr>> {
    match array {
        Expr::Nested(array) => elements(array),
        Expr::Array(Array { elem, .. }) => Some(elem.clone()),
        Expr::Cast { kind, expr, data_type: DataType::Array(ArrayElemTypeDef::SquareBracket(ty, _)), .. } => {
            let cast =
                |expr: Expr| Expr::Cast { kind: kind.clone(), expr: Box::new(expr), data_type: (**ty).clone(), array: false, format: None };
            Some(elements(expr)?.into_iter().map(cast).collect())
        }
        _ => None,
    }
}

/// A comparison with any or all elements of an array that is no list of expressions, as an operator of its own.
pub fn quantified(expr: &Expr) -> Option<Expr> {
    let (left, op, right, all) = match expr {
        Expr::AnyOp { left, compare_op, right, .. } => (left, compare_op, right, false),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
        _ => return None,
    };
    if matches!(without_brackets(right), Expr::Subquery(_)) {
        return None;
    }
    let op = BinaryOperator::Custom(arrays::quantified(&op.to_string(), all)?);
    let whole = Expr::BinaryOp { left: left.clone(), op, right: without_brackets(right).clone().into() };
    Some(Expr::Nested(Box::new(whole)))
}

/// A cast to the type of an array, which is a call of a function to the query engine.
pub fn cast_to_array(inner: &Expr, ty: &SqlType) -> Expr {
    let number = |number: i64| Expr::Value(Value::Number(number.to_string(), false).into());
    call(TO_ARRAY, vec![inner.clone(), number(ty.oid().into()), number(ty.type_modifier().into())])
}

/// What is cast and to what, as it is written or as [`cast_to_array`] has it.
pub fn cast_of(expr: &Expr) -> Option<(&Expr, SqlType)> {
    match expr {
        Expr::Cast { expr, data_type, .. } => Some((expr, SqlType::from_ast(data_type).ok()?)),
        Expr::Function(function) if function.name.to_string() == TO_ARRAY => match plain_arguments(function)?.as_slice() {
            [expr, oid, modifier] => {
                let number = |expr: &Expr| expr.to_string().parse::<i32>().ok();
                Some((expr, SqlType::from_oid(number(oid)? as u32, number(modifier)?)?))
            }
            _ => None,
        },
        _ => None,
    }
}

/// True if a query calls an aggregate whose result depends on the order of its rows.
pub fn aggregates_in_order(select: &Select) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = SqlError;
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
            let name = if let Expr::Function(function) = expr {
                function.name.0.last().and_then(ObjectNamePart::as_ident).map(fold)
            } else {
                None
            };
            if name.is_some_and(|name| matches!(name.as_str(), "array_agg" | "string_agg")) {
                return ControlFlow::Break(SqlError::internal("it is one"));
            }
            ControlFlow::Continue(())
        }
    }
    walk(&select.projection, &mut Finder).is_err()
}

/// Keeps the order of a query in FROM, as PostgreSQL does for aggregates: the query engine takes its rows to have none, unless it counts them.
pub fn keep_order(query: &mut Query) {
    if query.order_by.is_some() && query.limit_clause.is_none() && query.fetch.is_none() {
        let all = Expr::Value(Value::Number(i64::MAX.to_string(), false).into());
        query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(all), offset: None, limit_by: Vec::new() });
    }
}

/// `FETCH FIRST 2 ROWS ONLY` is `LIMIT 2`.
pub fn fetch_as_limit(query: &mut Query) -> SqlResult<()> {
    let Some(Fetch { with_ties, percent, quantity }) = query.fetch.take() else { return Ok(()) };
    if with_ties || percent {
        return Err(SqlError::unsupported("FETCH FIRST takes neither WITH TIES nor PERCENT"));
    }
    let rows = quantity.unwrap_or_else(|| Expr::Value(Value::Number("1".into(), false).into()));
    let (limit, offset) = match query.limit_clause.take() {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, .. }) => (limit, offset),
        Some(LimitClause::OffsetCommaLimit { .. }) => return Err(SqlError::syntax("LIMIT #,# syntax is not supported")),
    };
    if limit.is_some() {
        return Err(SqlError::syntax("multiple LIMIT clauses not allowed"));
    }
    query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(rows), offset, limit_by: Vec::new() });
    Ok(())
}

/// `ARRAY(SELECT …)`: the rows of a query as an array.
pub fn array_of(mut query: Box<Query>) -> Expr {
    keep_order(&mut query);
    let element = || Ident::with_quote('"', format!("{MARK}element"));
    let column = TableAliasColumnDef { name: element(), data_type: None };
    let alias = TableAlias { explicit: true, name: Ident::with_quote('"', format!("{MARK}rows")), columns: vec![column], at: None };
    let relation = TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
    let elements = call("array_agg", vec![Expr::Identifier(element())]);
    let item = SelectItem::UnnamedExpr(call("coalesce", vec![elements, text("{}")]));
    Expr::Subquery(Box::new(select(vec![item], vec![TableWithJoins { relation, joins: Vec::new() }], None)))
}

/// An expression without brackets around it.
pub fn without_brackets(expr: &Expr) -> &Expr {
    if let Expr::Nested(expr) = expr { without_brackets(expr) } else { expr }
}

/// A pattern of LIKE whose special characters are escaped by another character than the backslash, as one where the backslash does. Error 22025
/// for more than one character.
pub fn with_backslashes(pattern: Expr, escape: &str) -> SqlResult<Expr> {
    /// Stands for the escaped character itself until all others are backslashes. No text has it.
    const ITSELF: &str = "\0";
    let mut characters = escape.chars();
    if characters.next().is_some() && characters.next().is_some() {
        return Err(SqlError::new(SqlState::InvalidEscapeSequence, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let replaced = |pattern: Expr, from: &str, to: &str| call("replace", vec![pattern, text(from), text(to)]);
    let pattern = replaced(pattern, "\\", "\\\\");
    if escape.is_empty() {
        return Ok(pattern);
    }
    let pattern = replaced(pattern, &escape.repeat(2), ITSELF);
    let pattern = replaced(pattern, &format!("{escape}\\\\"), "\\\\");
    let pattern = replaced(pattern, escape, "\\");
    Ok(replaced(pattern, ITSELF, &format!("\\{escape}")))
}

/// A call of a function.
pub fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The same call of another function.
pub fn renamed(function: &Function, name: &str) -> Expr {
    Expr::Function(Function { name: ObjectName::from(vec![Ident::new(name)]), ..function.clone() })
}

/// `make_interval(days => 1)`, with each part at its place. Error 42883.
pub fn with_parts_of_interval(function: &Function) -> SqlResult<Expr> {
    const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
    let undefined = || SqlError::new(SqlState::UndefinedFunction, "make_interval() takes years, months, weeks, days, hours, mins and secs");
    let mut parts = PARTS.map(|_| Expr::Value(Value::Number("0".into(), true).into()));
    let FunctionArguments::List(list) = &function.args else { return Err(undefined()) };
    for (place, argument) in list.args.iter().enumerate() {
        let (place, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (Some(place), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
            | FunctionArg::ExprNamed { name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
                (PARTS.iter().position(|part| name.value.eq_ignore_ascii_case(part)), value)
            }
            _ => return Err(undefined()),
        };
        *place.and_then(|place| parts.get_mut(place)).ok_or_else(undefined)? = value.clone();
    }
    Ok(call(MAKE_INTERVAL, parts.into()))
}

/// A constant.
pub fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::expression;

    #[test]
    fn arrays_of_values_are_lists() {
        for (written, plainer) in [
            ("a = ANY (ARRAY['x', $1])", "a IN ('x', $1)"),
            ("a <> ALL (ARRAY[1.6, $1]::int[])", "a NOT IN (1.6::INT, $1::INT)"),
            ("a = ANY (ARRAY[])", "false"),
        ] {
            let expr = expression(written).expect("an expression");
            assert_eq!(list_of_array(&expr).map(|expr| expr.to_string()).as_deref(), Some(plainer));
        }
        for other in ["a > ANY (ARRAY[1])", "a = ANY ($1)", "a IN (1)"] {
            assert_eq!(list_of_array(&expression(other).expect("an expression")), None, "{other}");
        }
    }
}
