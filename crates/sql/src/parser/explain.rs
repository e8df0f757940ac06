//! EXPLAIN and its options.

use super::{Explain, StatementKind};
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{AnalyzeFormat, AnalyzeFormatKind, Expr, Ident, UtilityOption, Value, ValueWithSpan};

/// What the options of an EXPLAIN ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The statement is run.
    pub analyze: bool,
    /// Trips between regions are shown.
    pub wan: bool,
}

impl Options {
    /// The EXPLAIN of a statement. Error 0A000 for one that has no plan.
    pub fn of(self, kind: StatementKind) -> SqlResult<StatementKind> {
        match kind {
            StatementKind::Query { .. }
            | StatementKind::Numbers(_)
            | StatementKind::Call { .. }
            | StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_) => Ok(StatementKind::Explain(Box::new(Explain { kind, analyze: self.analyze, wan: self.wan }))),
            other => Err(SqlError::unsupported(format!("EXPLAIN of {} is not supported", other.name()))),
        }
    }
}

/// Reads the options in brackets, and ANALYZE and a format that stand alone. What PostgreSQL shows more or less of by an option is shown the same with it.
pub fn options(analyze: bool, options: Vec<UtilityOption>, format: Option<AnalyzeFormatKind>) -> SqlResult<Options> {
    if let Some(AnalyzeFormatKind::Keyword(format) | AnalyzeFormatKind::Assignment(format)) = format
        && format != AnalyzeFormat::TEXT
    {
        return Err(only_text(&format.to_string()));
    }
    let mut found = Options { analyze, wan: false };
    for UtilityOption { name, arg } in options {
        match name.value.to_ascii_lowercase().as_str() {
            "analyze" => found.analyze = is_on(&name, arg.as_ref())?,
            "wan" => found.wan = is_on(&name, arg.as_ref())?,
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" | "generic_plan" => {
                is_on(&name, arg.as_ref())?;
            }
            "format" => match arg.as_ref().and_then(word) {
                Some(word) if word == "text" => {}
                other => return Err(only_text(&other.unwrap_or_default())),
            },
            _ => return Err(SqlError::syntax(format!("unrecognized EXPLAIN option \"{}\"", name.value))),
        }
    }
    Ok(found)
}

fn only_text(format: &str) -> SqlError {
    SqlError::unsupported(format!("EXPLAIN in the format {format} is not supported")).with_hint("Leave FORMAT out: it is text.")
}

/// A word or a number, in small letters.
fn word(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(ident.value.to_ascii_lowercase()),
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text) | Value::Number(text, _), .. }) => {
            Some(text.to_ascii_lowercase())
        }
        Expr::Value(ValueWithSpan { value: Value::Boolean(on), .. }) => Some(on.to_string()),
        _ => None,
    }
}

fn is_on(name: &Ident, value: Option<&Expr>) -> SqlResult<bool> {
    let Some(value) = value else { return Ok(true) };
    match word(value).as_deref() {
        Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        _ => Err(SqlError::syntax(format!("{} requires a Boolean value", name.value.to_ascii_lowercase()))),
    }
}
