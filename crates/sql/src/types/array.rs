//! Arrays: lists of values of one scalar type, in one dimension, numbered from 1.
//!
//! As text they are `{1,NULL,"two words"}`. In binary:
//!
//! ```text
//! dimensions: i32 | has NULLs: i32 | type of the elements: u32 | length: i32 | number of the first: i32 | element …
//! element = length: i32, -1 for NULL | value
//! ```
//!
//! An empty array has no dimension, and neither a length nor the number of the first.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::sql_type::Element;
use crate::types::{Datum, SqlType};

const NULL_WORD: &str = "NULL";

/// An array of values, which are of the element's type.
pub fn array(element: Element, values: &[Datum]) -> Datum {
    Datum::List(Datum::new_list(values, &element.ty().arrow(), true))
}

/// The most elements of an array.
pub const ELEMENTS_MAX: usize = 1 << 20;

/// 54000.
pub fn too_many_elements() -> SqlError {
    SqlError::too_large(format!("an array has at most {ELEMENTS_MAX} elements"))
}

/// How many elements an array has; `None` if the value is NULL or none.
pub fn length_of(value: &Datum) -> Option<usize> {
    match value {
        Datum::List(list) if !value.is_null() => Some(list.value(0).len()),
        Datum::LargeList(list) if !value.is_null() => Some(list.value(0).len()),
        Datum::FixedSizeList(list) if !value.is_null() => Some(list.value(0).len()),
        _ => None,
    }
}

/// The elements of an array that is not NULL; `None` if the value is none.
pub fn elements(value: &Datum) -> Option<Vec<Datum>> {
    let values = match value {
        Datum::List(list) if !value.is_null() => list.value(0),
        Datum::LargeList(list) if !value.is_null() => list.value(0),
        Datum::FixedSizeList(list) if !value.is_null() => list.value(0),
        _ => return None,
    };
    (0..values.len()).map(|index| Datum::try_from_array(&values, index).ok()).collect()
}

/// Elements as PostgreSQL prints an array of them, given their texts.
pub(super) fn print(texts: impl Iterator<Item = Option<String>>) -> String {
    let written: Vec<String> = texts.map(printed).collect();
    format!("{{{}}}", written.join(","))
}

/// The type that a value is printed as of which no more is known: numbers of as many digits as `numeric` without a precision has are such.
pub fn shown_type(value: &Datum) -> SqlType {
    match SqlType::of_arrow(&value.data_type()).unwrap_or(SqlType::Text) {
        ty @ SqlType::Numeric(_) if ty.decimal_shape() == SqlType::Numeric(None).decimal_shape() => SqlType::Numeric(None),
        ty => ty,
    }
}

fn printed(text: Option<String>) -> String {
    let Some(text) = text else { return NULL_WORD.to_owned() };
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_ascii_whitespace() || c == '\x0b';
    if !text.is_empty() && !text.eq_ignore_ascii_case(NULL_WORD) && !text.contains(special) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The texts of the elements of the array that a text spells; `None` for NULL. Errors: 22P02; 0A000 for several dimensions and for other numbers than from 1.
pub(super) fn split(text: &str) -> SqlResult<Vec<Option<String>>> {
    let malformed = |detail: &str| {
        SqlError::new(SqlState::InvalidTextRepresentation, format!("malformed array literal: \"{text}\"")).with_detail(detail)
    };
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if trimmed.starts_with('[') {
        return Err(SqlError::unsupported("arrays whose elements are not numbered from 1 are not supported"));
    }
    let inside = trimmed.strip_prefix('{').ok_or_else(|| malformed("Array value must start with \"{\" or dimension information."))?;
    let pieces = pieces(inside).map_err(|problem| match problem {
        Problem::Nested => several_dimensions(),
        Problem::TooMany => too_many_elements(),
        Problem::Malformed(detail) => malformed(detail),
    })?;
    let value = |piece: Piece| (piece.quoted || !piece.text.eq_ignore_ascii_case(NULL_WORD)).then_some(piece.text);
    Ok(pieces.into_iter().map(value).collect())
}

/// 0A000.
pub fn several_dimensions() -> SqlError {
    SqlError::unsupported("arrays of several dimensions are not supported")
}

struct Piece {
    text: String,
    quoted: bool,
}

enum Problem {
    Nested,
    TooMany,
    Malformed(&'static str),
}

/// What stands between the commas, up to the closing brace.
fn pieces(inside: &str) -> Result<Vec<Piece>, Problem> {
    let mut pieces = Vec::new();
    let mut rest = inside.chars().peekable();
    let blank = |c: &char| c.is_ascii_whitespace();
    loop {
        if pieces.len() >= ELEMENTS_MAX {
            return Err(Problem::TooMany);
        }
        while rest.next_if(blank).is_some() {}
        let mut piece = Piece { text: String::new(), quoted: false };
        if rest.next_if_eq(&'"').is_some() {
            piece.quoted = true;
            loop {
                match rest.next().ok_or(Problem::Malformed("Unexpected end of input."))? {
                    '"' => break,
                    '\\' => piece.text.extend(rest.next()),
                    other => piece.text.push(other),
                }
            }
            while rest.next_if(blank).is_some() {}
        } else {
            // Blanks at its end do not belong to it, but for one behind a backslash.
            let mut kept = 0;
            while let Some(next) = rest.next_if(|c| !matches!(c, ',' | '}')) {
                match next {
                    '{' => return Err(Problem::Nested),
                    '"' => return Err(Problem::Malformed("Incorrectly quoted array element.")),
                    '\\' => {
                        piece.text.extend(rest.next());
                        // What is escaped is not the word.
                        piece.quoted = true;
                        kept = piece.text.len();
                    }
                    other => {
                        piece.text.push(other);
                        if !blank(&other) {
                            kept = piece.text.len();
                        }
                    }
                }
            }
            piece.text.truncate(kept);
        }
        let is_empty = piece.text.is_empty() && !piece.quoted;
        match rest.next() {
            Some('}') if is_empty && pieces.is_empty() => {}
            Some(',' | '}') if is_empty => return Err(Problem::Malformed("Unexpected \"}\" or \",\" character.")),
            Some(',') => {
                pieces.push(piece);
                continue;
            }
            Some('}') => pieces.push(piece),
            Some(_) => return Err(Problem::Malformed("Incorrectly quoted array element.")),
            None => return Err(Problem::Malformed("Unexpected end of input.")),
        }
        let trailing = rest.any(|c| !c.is_ascii_whitespace());
        return if trailing { Err(Problem::Malformed("Junk after closing right brace.")) } else { Ok(pieces) };
    }
}

/// Elements as those of another type.
pub(super) fn converted(element: Element, values: Vec<Datum>, convert: impl Fn(&SqlType, Datum) -> SqlResult<Datum>) -> SqlResult<Datum> {
    let ty = element.ty();
    if values.iter().any(|value| elements(value).is_some()) {
        return Err(several_dimensions());
    }
    let values: Vec<Datum> = values.into_iter().map(|value| convert(&ty, value)).collect::<SqlResult<_>>()?;
    Ok(array(element, &values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::samples::TYPES;
    use crate::types::{parse_text, to_text};

    fn of(ty: SqlType) -> SqlType {
        SqlType::Array(Element::try_from(ty).expect("a scalar type"))
    }

    /// What a text prints as, once read; or the code of the error.
    fn read(ty: SqlType, text: &str) -> String {
        match parse_text(&of(ty), text) {
            Ok(value) => to_text(&of(ty), &value).expect("not NULL"),
            Err(error) => error.state().code().to_string(),
        }
    }

    #[test]
    fn every_scalar_type_is_one_of_elements() {
        for ty in TYPES.into_iter().filter(|ty| !matches!(ty, SqlType::Array(_))) {
            let array = of(ty);
            assert_eq!(SqlType::from_oid(array.oid(), array.type_modifier()), Some(array), "{ty}");
            assert_eq!(array.name(), format!("{}[]", ty.name()));
            assert!(array.null().is_null() && array.null().data_type() == array.arrow(), "{ty}");
            let kept = serde_json::to_string(&array).expect("written");
            assert_eq!(serde_json::from_str::<SqlType>(&kept).expect("read"), array, "{kept}");
        }
        assert!(Element::try_from(of(SqlType::Int4)).is_err());
    }

    #[test]
    fn arrays_are_read_and_printed_as_postgresql_does() {
        for (text, printed) in [
            ("{}", "{}"),
            (" { } ", "{}"),
            ("{1,2}", "{1,2}"),
            ("{ a , b c }", "{a,\"b c\"}"),
            ("{NULL,null,\"NULL\"}", "{NULL,NULL,\"NULL\"}"),
            ("{\"\",\"a\\\"b\",a\\,b, x\\ }", "{\"\",\"a\\\"b\",\"a,b\",\"x \"}"),
            ("{\"{}\" , \"\\\\\"}", "{\"{}\",\"\\\\\"}"),
            ("", "22P02"),
            ("1,2", "22P02"),
            ("{1,2", "22P02"),
            ("{1,}", "22P02"),
            ("{,1}", "22P02"),
            ("{1}x", "22P02"),
            ("{a\"b\"}", "22P02"),
            ("{\"a\"b}", "22P02"),
            ("{\"a", "22P02"),
            ("{{1},{2}}", "0A000"),
            ("[0:1]={1,2}", "0A000"),
        ] {
            assert_eq!(read(SqlType::Text, text), printed, "{text}");
        }
        assert_eq!(read(SqlType::Int4, "{1, -2 ,NULL}"), "{1,-2,NULL}");
        assert_eq!(read(SqlType::Int4, "{1,x}"), "22P02");
        assert_eq!(read(SqlType::Bool, "{true,f}"), "{t,f}");
        assert_eq!(read(SqlType::Varchar(Some(2)), "{abc}"), "22001");
        assert_eq!(read(SqlType::Timestamp, "{2024-01-02 03:04:05}"), "{\"2024-01-02 03:04:05\"}");
        assert_eq!(read(SqlType::Bytea, "{\"\\\\x0aff\"}"), "{\"\\\\x0aff\"}");
    }
}
