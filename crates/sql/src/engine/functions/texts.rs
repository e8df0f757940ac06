//! Functions of texts: quoting, and regular expressions.

use crate::engine::row_function::{RowFunction, function};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::parser::quoted;
use crate::types::{Datum, Element, SqlType, array, to_text};
use datafusion::arrow::datatypes::DataType;
use regex::Regex;

/// The characters that a value of `format` may be filled up to.
const WIDTH_MAX: usize = 10_000;

/// All of them.
pub(super) fn each() -> Vec<RowFunction> {
    vec![quote_ident(), quote_literal("quote_literal", None), quote_literal("quote_nullable", Some("NULL")), format(), split(), part()]
}

fn text(value: Option<String>) -> Datum {
    Datum::Utf8(value)
}

/// A value as it is printed; `None` of NULL.
fn printed(value: &Datum) -> Option<String> {
    to_text(&SqlType::of_arrow(&value.data_type())?, value)
}

fn quote_ident() -> RowFunction {
    function("quote_ident", DataType::Utf8, |values| text(values.first().and_then(printed).map(|name| quoted(&name))))
}

fn quote_literal(name: &'static str, of_null: Option<&'static str>) -> RowFunction {
    function(name, DataType::Utf8, move |values| {
        text(values.first().and_then(printed).map(|value| literal(&value)).or_else(|| of_null.map(str::to_owned)))
    })
}

/// A text as it is written in a statement.
fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

/// `format('%s is %L', …)`.
fn format() -> RowFunction {
    RowFunction::new(
        "format",
        1..=usize::MAX,
        |_| Ok(SqlType::Text.field("format", true)),
        |_, values| match values {
            [template, arguments @ ..] => match template.try_as_str() {
                Some(Some(template)) => formatted(template, arguments).map(|made| text(Some(made))),
                _ => Ok(text(None)),
            },
            [] => Ok(text(None)),
        },
    )
}

fn formatted(template: &str, arguments: &[Datum]) -> SqlResult<String> {
    let invalid = |message: &str| SqlError::new(SqlState::InvalidParameterValue, message);
    let (mut made, mut rest, mut next) = (String::new(), template, 0);
    while let Some((before, after)) = rest.split_once('%') {
        made.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            made.push('%');
            rest = after;
            continue;
        }
        // A number and `$` name an argument, a minus and a number a width.
        let named = after.split_once('$').and_then(|(number, after)| Some((number.parse::<usize>().ok()?, after)));
        let (place, after) = named.map_or((next, after), |(number, after)| (number.wrapping_sub(1), after));
        let left = after.strip_prefix('-');
        let digits = left.unwrap_or(after);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let width = if end == 0 {
            0
        } else {
            digits[..end].parse::<usize>().ok().filter(|width| *width <= WIDTH_MAX).ok_or_else(|| invalid("number is out of range"))?
        };
        let mut kinds = digits[end..].chars();
        let kind = kinds.next().ok_or_else(|| invalid("unterminated format() type specifier"))?;
        rest = kinds.as_str();
        let value = arguments.get(place).ok_or_else(|| invalid("too few arguments for format()"))?;
        let shown = match (kind, printed(value)) {
            ('s', value) => value.unwrap_or_default(),
            ('L', value) => value.map_or_else(|| "NULL".to_owned(), |value| literal(&value)),
            ('I', Some(name)) => quoted(&name),
            ('I', None) => {
                return Err(SqlError::new(SqlState::NullValueNotAllowed, "null values cannot be formatted as an SQL identifier"));
            }
            (other, _) => return Err(invalid(&format!("unrecognized format() type specifier \"{other}\""))),
        };
        let padding = " ".repeat(width.saturating_sub(shown.chars().count()));
        made.extend(if left.is_some() { [shown, padding] } else { [padding, shown] });
        next = place + 1;
    }
    made.push_str(rest);
    Ok(made)
}

/// A regular expression with the flags that one letter each asks for. Errors: 2201B, 22023.
fn regex(pattern: &str, flags: &str) -> SqlResult<Regex> {
    let mut options = String::new();
    for flag in flags.chars() {
        match flag {
            'i' => options.push('i'),
            'm' | 'n' => options.push('m'),
            's' => options.push('s'),
            'x' => options.push('x'),
            'g' | 'c' => {}
            other => {
                return Err(SqlError::new(SqlState::InvalidParameterValue, format!("invalid regular expression option: \"{other}\"")));
            }
        }
    }
    let pattern = if options.is_empty() { pattern.to_owned() } else { format!("(?{options}){pattern}") };
    Regex::new(&pattern).map_err(|error| {
        let message = error.to_string();
        let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        SqlError::new(SqlState::InvalidRegularExpression, format!("invalid regular expression: {last}"))
    })
}

/// The texts among `values` from the first on; `None` if one of them is NULL.
fn texts(values: &[Datum]) -> Option<Vec<&str>> {
    values.iter().map(|value| value.try_as_str().flatten()).collect()
}

fn split() -> RowFunction {
    let returns = || SqlType::Array(Element::TEXT);
    RowFunction::new(
        "regexp_split_to_array",
        2..=3,
        move |_| Ok(returns().field("regexp_split_to_array", true)),
        move |_, values| {
            let Some(given) = texts(values) else { return Ok(returns().null()) };
            let regex = regex(given[1], given.get(2).unwrap_or(&""))?;
            let parts: Vec<Datum> = regex.split(given[0]).map(|part| text(Some(part.to_owned()))).collect();
            Ok(array(Element::TEXT, &parts))
        },
    )
}

fn part() -> RowFunction {
    RowFunction::new(
        "regexp_substr",
        2..=2,
        |_| Ok(SqlType::Text.field("regexp_substr", true)),
        |_, values| {
            let Some(given) = texts(values) else { return Ok(text(None)) };
            Ok(text(regex(given[1], "")?.find(given[0]).map(|found| found.as_str().to_owned())))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_of_postgresql() {
        let arguments = [text(Some("a".into())), text(Some("b'c".into())), text(Some("D".into())), text(None)];
        for (template, made) in
            [("%s is %L and %I", "a is 'b''c' and \"D\""), ("100%% %2$s", "100% b'c"), ("[%3s|%-3s]", "[  a|b'c]"), ("%4$s%4$L", "NULL")]
        {
            assert_eq!(formatted(template, &arguments).as_deref(), Ok(made), "{template}");
        }
        for template in ["%", "%s%s%s%s%s", "%x", "%4$I"] {
            assert!(formatted(template, &arguments).is_err(), "{template}");
        }
    }
}
