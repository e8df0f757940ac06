//! SQLSTATEs of errors for which the query engine gives no type, only a sentence: told apart by phrases in it.

use crate::error::SqlState;

/// The conditions of mistakes that the planner finds, by a phrase in their message. The first that fits counts.
const OF_PLAN: [(&str, SqlState); 4] = [
    ("Invalid function", SqlState::UndefinedFunction),
    ("ambiguous", SqlState::AmbiguousColumn),
    ("coercion", SqlState::DatatypeMismatch),
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
                "42804",
            ),
            ("Cannot coerce arithmetic expression Boolean + Date32 to valid types", "42804"),
            ("Cannot infer common argument type for comparison operation Boolean = Date32", "42804"),
            ("Wildcard with empty schema", "42601"),
        ];
        for (sentence, code) in sentences {
            assert_eq!(of_plan(sentence).code(), code, "{sentence}");
        }
    }

    #[test]
    fn each_phrase_of_what_runs_has_its_condition() {
        let sentences = [
            ("DATE_BIN result timestamp out of range", "22003"),
            ("start position overflow: -9223372036854775808", "22003"),
            ("Overflow happened on FACTORIAL(21)", "22003"),
            ("negative substring length not allowed: substr(<str>, 1, -1)", "22023"),
        ];
        for (sentence, code) in sentences {
            assert_eq!(of_execution(sentence).code(), code, "{sentence}");
        }
    }
}
