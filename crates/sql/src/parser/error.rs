//! Parser errors as PostgreSQL words and places them.

use super::nesting;
use crate::error::SqlError;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::Location;

/// A syntax error at `location` of `sql`.
pub fn at(sql: &str, location: Location, message: impl Into<String>) -> SqlError {
    let error = SqlError::syntax(message);
    match position(sql, location.line, location.column) {
        Some(position) => error.with_position(position),
        None => error,
    }
}

/// The parser says `Expected: …, found: … at Line: 1, Column: 8`; PostgreSQL says `syntax error at or near "…"`.
pub fn from_parser(sql: &str, error: ParserError) -> SqlError {
    let text = match error {
        ParserError::RecursionLimitExceeded => {
            return nesting::too_complex("the statement is nested too deeply").with_hint("Split it, or use a common table expression.");
        }
        ParserError::ParserError(text) | ParserError::TokenizerError(text) => text,
    };
    let (text, place) = match text.rsplit_once(" at Line: ") {
        Some((text, place)) => (text.to_string(), place.split_once(", Column: ")),
        None => (text, None),
    };
    let position = place.and_then(|(line, column)| position(sql, line.parse().ok()?, column.parse().ok()?));
    let error = match text.strip_prefix("Expected: ").and_then(|rest| rest.rsplit_once(", found: ")) {
        Some((expected, "EOF")) => SqlError::syntax("syntax error at end of input").with_hint(format!("Expected {expected}.")),
        Some((expected, found)) => {
            SqlError::syntax(format!("syntax error at or near \"{found}\"")).with_hint(format!("Expected {expected}."))
        }
        None => SqlError::syntax(format!("syntax error: {text}")),
    };
    match position {
        Some(position) => error.with_position(position),
        None => error,
    }
}

/// Characters from the start of the text, from 1, of a line and a column, both from 1.
pub fn position(sql: &str, line: u64, column: u64) -> Option<usize> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let before: usize = sql.split_inclusive('\n').take(line).map(|text| text.chars().count()).sum();
    Some(before + usize::try_from(column).ok()?)
}
