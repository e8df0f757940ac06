//! Which types go into which by themselves, where a function or a procedure is given a value.

use super::SqlType;

/// True if a value of type `from` is taken where one of type `to` is wanted, whatever their lengths and digits. As in PostgreSQL, but that
/// integers go into each other as long as they fit: a literal is not known for the smallest type that holds it.
pub fn converts(from: &SqlType, to: &SqlType) -> bool {
    let same = from.oid() == to.oid();
    same || matches!((kind(from), kind(to)), (Some((kind, from)), Some((wanted, to))) if kind == wanted && from <= to)
}

#[derive(PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Moment,
}

/// What a type is one of, and its place among them: it goes into those at the same place and after.
fn kind(ty: &SqlType) -> Option<(Kind, u8)> {
    Some(match ty {
        SqlType::Int2 | SqlType::Int4 | SqlType::Int8 => (Kind::Number, 0),
        SqlType::Numeric(_) => (Kind::Number, 1),
        SqlType::Float4 => (Kind::Number, 2),
        SqlType::Float8 => (Kind::Number, 3),
        SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => (Kind::Text, 0),
        SqlType::Date => (Kind::Moment, 0),
        SqlType::Timestamp => (Kind::Moment, 1),
        SqlType::TimestampTz => (Kind::Moment, 2),
        SqlType::Bool | SqlType::Bytea | SqlType::Time | SqlType::Uuid => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_narrower_goes_into_what_is_wider_and_not_back() {
        for (from, to, both) in [
            (SqlType::Int8, SqlType::Int2, true),
            (SqlType::Int8, SqlType::Numeric(Some((6, 2))), false),
            (SqlType::Numeric(None), SqlType::Float8, false),
            (SqlType::Float4, SqlType::Float8, false),
            (SqlType::Char(3), SqlType::Varchar(None), true),
            (SqlType::Date, SqlType::TimestampTz, false),
        ] {
            assert!(converts(&from, &to) && converts(&to, &from) == both, "{from} {to}");
        }
        for (from, to) in [(SqlType::Int4, SqlType::Text), (SqlType::Text, SqlType::Uuid), (SqlType::Bool, SqlType::Int4)] {
            assert!(!converts(&from, &to) && !converts(&to, &from) && converts(&to, &to), "{from} {to}");
        }
    }
}
