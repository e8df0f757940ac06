//! Expressions of SQL that the query engine does not plan, as others that it does.

use crate::error::{SqlError, SqlResult, SqlState};
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, Value,
};

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

fn text(value: &str) -> Expr {
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
