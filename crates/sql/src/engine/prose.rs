//! SQLSTATEs of errors for which the query engine gives no type, only a sentence: told apart by phrases in it.

use crate::error::SqlState;

/// The conditions of mistakes that the planner finds, by a phrase in their message. The first that fits counts.
const OF_PLAN: [(&str, SqlState); 6] = [
    ("Invalid function", SqlState::UndefinedFunction),
    ("ambiguous", SqlState::AmbiguousColumn),
    ("Cannot coerce", SqlState::DatatypeMismatch),
    ("coercion", SqlState::DatatypeMismatch),
    ("Cannot infer common", SqlState::DatatypeMismatch),
    ("type", SqlState::DatatypeMismatch),
];

/// The same of what fails as it runs.
const OF_EXECUTION: [(&str, SqlState); 2] =
    [("out of range", SqlState::NumericValueOutOfRange), ("verflow", SqlState::NumericValueOutOfRange)];

/// The condition of a mistake that the planner found.
pub fn of_plan(message: &str) -> SqlState {
    of(&OF_PLAN, message).unwrap_or(SqlState::SyntaxError)
}

/// The condition of what failed as it ran.
pub fn of_execution(message: &str) -> SqlState {
    of(&OF_EXECUTION, message).unwrap_or(SqlState::InvalidParameterValue)
}

fn of(phrases: &[(&str, SqlState)], message: &str) -> Option<SqlState> {
    phrases.iter().find(|(phrase, _)| message.contains(phrase)).map(|(_, state)| *state)
}
