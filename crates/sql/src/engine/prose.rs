//! SQLSTATEs of errors for which the query engine gives no type, only a sentence: told apart by phrases in it.

use crate::error::{SqlError, SqlState};
use crate::types::SqlType;

/// What the query engine says of a subquery that it cannot turn into a join.
const CORRELATED: [&str; 3] = [
    "Physical plan does not support logical expression ScalarSubquery",
    "Physical plan does not support logical expression OuterReferenceColumn",
    "Physical plan does not support undecorrelated Subquery",
];

/// The conditions of mistakes that the planner finds, by a phrase in their message. The first that fits counts.
const OF_PLAN: [(&str, SqlState); 19] = [
    (NO_FUNCTION, SqlState::UndefinedFunction),
    ("Invalid function", SqlState::UndefinedFunction),
    ("ambiguous", SqlState::AmbiguousColumn),
    ("arithmetic expression", SqlState::UndefinedFunction),
    ("comparison operation", SqlState::UndefinedFunction),
    ("satisfy a call", SqlState::UndefinedFunction),
    ("Unary operator '-'", SqlState::UndefinedFunction),
    ("in LIKE expression", SqlState::UndefinedFunction),
    ("string concat operation", SqlState::UndefinedFunction),
    ("zero arguments", SqlState::UndefinedFunction),
    ("arguments but received", SqlState::UndefinedFunction),
    ("with position", SqlState::InvalidColumnReference),
    ("out of bounds", SqlState::InvalidColumnReference),
    ("must appear in select list", SqlState::InvalidColumnReference),
    ("GROUP BY", SqlState::GroupingError),
    ("Aggregate function", SqlState::GroupingError),
    ("a boolean expression", SqlState::DatatypeMismatch),
    ("coercion", SqlState::DatatypeMismatch),
    ("type", SqlState::DatatypeMismatch),
];

/// What the planner says of arguments that no function of a name takes, before the name and their types in quotes.
const NO_FUNCTION: &str = "No function matches the given name and argument types";

/// What the query engine calls the types of such arguments.
const TYPES: [(&str, SqlType); 9] = [
    ("Boolean", SqlType::Bool),
    ("Int16", SqlType::Int2),
    ("Int32", SqlType::Int4),
    ("Int64", SqlType::Int8),
    ("Float32", SqlType::Float4),
    ("Float64", SqlType::Float8),
    ("Utf8", SqlType::Text),
    ("Date32", SqlType::Date),
    ("Binary", SqlType::Bytea),
];

/// The same of what fails as it runs.
const OF_EXECUTION: [(&str, SqlState); 5] = [
    ("square root of a negative", SqlState::InvalidArgumentForPowerFunction),
    ("regex parse error", SqlState::InvalidRegularExpression),
    ("out of range", SqlState::NumericValueOutOfRange),
    ("verflow", SqlState::NumericValueOutOfRange),
    ("more than one row", SqlState::CardinalityViolation),
];

/// A mistake that the planner found.
pub fn of_planner(message: &str) -> SqlError {
    match missing_function(message) {
        Some(call) => SqlError::new(SqlState::UndefinedFunction, format!("function {call} does not exist"))
            .with_hint("No function matches the given name and argument types. You might need to add explicit type casts."),
        None => SqlError::new(of_plan(message), message),
    }
}

/// The call of a function that does not take its arguments: `abs(text)`.
fn missing_function(message: &str) -> Option<String> {
    let (_, rest) = message.split_once(NO_FUNCTION)?;
    let (name, arguments) = rest.split('\'').nth(1)?.strip_suffix(')')?.split_once('(')?;
    let shown = |ty: &str| TYPES.iter().find(|(engine, _)| *engine == ty).map_or_else(|| ty.to_lowercase(), |(_, ty)| ty.to_string());
    Some(format!("{name}({})", arguments.split(", ").map(shown).collect::<Vec<_>>().join(", ")))
}

/// The condition of a mistake that the planner found.
fn of_plan(message: &str) -> SqlState {
    of(&OF_PLAN, message).unwrap_or(SqlState::SyntaxError)
}

/// What the query engine does not have.
pub fn of_unsupported(message: &str) -> SqlError {
    if CORRELATED.iter().any(|phrase| message.contains(phrase)) {
        return SqlError::unsupported("a subquery that refers to the rows around it by more than equalities")
            .with_hint("Join with its table instead, and group or filter what comes of that.");
    }
    SqlError::unsupported(message)
}

/// What failed as it ran, and has no condition of its own.
pub fn of_other(message: String) -> SqlError {
    match of(&OF_EXECUTION, &message) {
        Some(state) => SqlError::new(state, message.lines().last().unwrap_or_default()),
        None => SqlError::internal(message),
    }
}

/// The condition of what failed as it ran.
pub fn of_execution(message: &str) -> SqlState {
    of(&OF_EXECUTION, message).unwrap_or(SqlState::InvalidParameterValue)
}

fn of(phrases: &[(&str, SqlState)], message: &str) -> Option<SqlState> {
    phrases.iter().find(|(phrase, _)| message.contains(phrase)).map(|(_, state)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentences are the query engine's own; without a phrase, one of them means something else.
    #[test]
    fn each_phrase_of_the_planner_has_its_condition() {
        let sentences = [
            ("column 'id' is ambiguous", "42702"),
            ("Invalid function 'nosuch'.\nDid you mean 'nullif'?", "42883"),
            (
                "Failed to coerce arguments to satisfy a call to 'avg' function: coercion from Utf8 to the signature Numeric(1) failed",
                "42883",
            ),
            ("Cannot coerce arithmetic expression Boolean + Date32 to valid types", "42883"),
            ("Cannot infer common argument type for comparison operation Boolean = Date32", "42883"),
            ("'upper' does not support zero arguments", "42883"),
            ("Function 'abs' expects 1 arguments but received 2", "42883"),
            ("Unary operator '-' only supports signed numeric, interval and timestamp types", "42883"),
            ("There isn't a common type to coerce Int32 and Utf8 in LIKE expression", "42883"),
            ("Cannot infer common string type for string concat operation Int32 || Boolean", "42883"),
            ("Aggregate functions are not allowed in the WHERE clause. Consider using HAVING instead", "42803"),
            ("Aggregate function calls cannot be nested: 'sum(t.a)' is nested inside 'sum(sum(t.a))'", "42803"),
            ("Unary operator 'NOT' requires a boolean expression, got Int32", "42804"),
            ("Cannot find column with position 5 in SELECT clause. Valid columns: 1 to 1", "42P10"),
            ("Order by column out of bounds, specified: 2, max: 1", "42P10"),
            ("For SELECT DISTINCT, ORDER BY expressions o.id must appear in select list", "42P10"),
            ("'t.a' must appear in GROUP BY clause because it's not an aggregate expression", "42803"),
            ("Incompatible inputs for Union: coercion of Int64 and Utf8 failed", "42804"),
            ("Wildcard with empty schema", "42601"),
        ];
        for (sentence, code) in sentences {
            assert_eq!(of_plan(sentence).code(), code, "{sentence}");
        }
    }

    #[test]
    fn a_function_that_takes_no_such_arguments_is_named_with_their_types() {
        let message = "Function 'upper' requires String, but received Int32 (DataType: Int32).. No function matches the given name and argument types \
                       'upper(Int32, Utf8)'. You might need to add explicit type casts.\n\tCandidate functions:\n\tupper(String)";
        let error = of_planner(message);
        assert_eq!((error.state().code(), error.message()), ("42883", "function upper(integer, text) does not exist"));
    }

    #[test]
    fn each_phrase_of_what_runs_has_its_condition() {
        let sentences = [
            ("DATE_BIN result timestamp out of range", "22003"),
            ("start position overflow: -9223372036854775808", "22003"),
            ("Overflow happened on FACTORIAL(21)", "22003"),
            ("Scalar subquery returned more than one row", "21000"),
            ("Execution error: cannot take square root of a negative number", "2201F"),
            ("regex parse error:\n    (\n    ^\nerror: unclosed group", "2201B"),
            ("negative substring length not allowed: substr(<str>, 1, -1)", "22023"),
        ];
        for (sentence, code) in sentences {
            assert_eq!(of_execution(sentence).code(), code, "{sentence}");
        }
    }
}
