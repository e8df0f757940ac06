//! Which types go into which by themselves, where a function or a procedure is given a value, and where a column becomes one of another type.

use super::SqlType;

/// True if a value of type `from` is taken where one of type `to` is wanted, whatever their lengths and digits. As in PostgreSQL, but that
/// integers go into each other as long as they fit: a literal is not known for the smallest type that holds it.
pub fn converts(from: &SqlType, to: &SqlType) -> bool {
    if let (SqlType::Array(from), SqlType::Array(to)) = (from, to) {
        return converts(&from.ty(), &to.ty());
    }
    let same = from.oid() == to.oid();
    same || matches!((kind(from), kind(to)), (Some((kind, from)), Some((wanted, to))) if kind == wanted && from <= to)
}

/// The type that both go into by themselves: one of them, without its length or digits.
pub fn common(one: &SqlType, other: &SqlType) -> Option<SqlType> {
    let (one, other) = (one.unbounded(), other.unbounded());
    if one == other {
        return Some(one);
    }
    match (kind(&one)?, kind(&other)?) {
        ((own, place), (wanted, after)) if own == wanted => {
            Some(if (place, one.type_length()) < (after, other.type_length()) { other } else { one })
        }
        _ => None,
    }
}

impl SqlType {
    /// True for texts, whether or not their length is bounded.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Varchar(_) | Self::Char(_))
    }

    /// True if values of this type become those of a column of type `to` by themselves: where a value is assigned, PostgreSQL casts more than
    /// [where one is given](converts).
    pub fn assigns_to(&self, to: &SqlType) -> bool {
        if let (SqlType::Array(from), SqlType::Array(to)) = (self, to) {
            return from.ty().assigns_to(&to.ty());
        }
        let same_kind = matches!((kind(self), kind(to)), (Some((kind, _)), Some((wanted, _))) if kind == wanted);
        let to_text = matches!(kind(to), Some((Kind::Text, _)));
        let to_time = *to == SqlType::Time && matches!(self, SqlType::Timestamp | SqlType::TimestampTz | SqlType::Interval)
            || (self, to) == (&SqlType::Time, &SqlType::Interval);
        self.oid() == to.oid() || same_kind || to_text || to_time
    }

    /// True if `CAST (… AS to)` takes values of this type: what is assigned, any text, since it may spell a value, and truth values as integers and back.
    pub fn casts_to(&self, to: &SqlType) -> bool {
        if let (SqlType::Array(from), SqlType::Array(to)) = (self, to) {
            return from.ty().casts_to(&to.ty());
        }
        let is_text = matches!(kind(self), Some((Kind::Text, _)));
        let of_truth = matches!((self, to), (SqlType::Bool, SqlType::Int4) | (SqlType::Int4, SqlType::Bool));
        is_text || of_truth || self.assigns_to(to) || [self, to].contains(&&SqlType::Int2Vector)
    }

    /// True if a row that holds a value of this type holds the same one of type `to`: it has the same bytes, and fits.
    pub fn is_stored_in(&self, to: &SqlType) -> bool {
        let integer = |ty: &SqlType| match ty {
            SqlType::Int2 => Some(2),
            SqlType::Int4 => Some(4),
            SqlType::Int8 => Some(8),
            _ => None,
        };
        if let (Some(from), Some(to)) = (integer(self), integer(to)) {
            return from <= to;
        }
        match (self, to) {
            (SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_), SqlType::Text | SqlType::Varchar(None)) => true,
            (SqlType::Varchar(Some(from)) | SqlType::Char(from), SqlType::Varchar(Some(to))) => from <= to,
            (SqlType::Char(from), SqlType::Char(to)) => from <= to,
            (SqlType::Numeric(_), SqlType::Numeric(_)) => {
                let ((from, scale), (to, wanted)) = (self.decimal_shape(), to.decimal_shape());
                scale == wanted && from <= to
            }
            (from, to) => from == to,
        }
    }
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
        SqlType::Bool | SqlType::Bytea | SqlType::Time | SqlType::Interval | SqlType::Uuid | SqlType::Array(_) | SqlType::Int2Vector => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_types_have_the_wider_in_common() {
        use SqlType::*;
        for (one, other, expected) in [
            (Int2, Int8, Some(Int8)),
            (Int8, Int4, Some(Int8)),
            (Int4, Numeric(Some((5, 2))), Some(Numeric(None))),
            (Numeric(None), Float4, Some(Float4)),
            (Varchar(Some(3)), Char(2), Some(Text)),
            (Date, TimestampTz, Some(TimestampTz)),
            (Int4, Text, None),
            (Uuid, Uuid, Some(Uuid)),
            (Bool, Int4, None),
        ] {
            assert_eq!((common(&one, &other), common(&other, &one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn a_column_takes_what_is_assigned_and_keeps_what_is_stored() {
        use SqlType::*;
        // From, to, assigned, stored.
        for (from, to, assigned, stored) in [
            (Int2, Int8, true, true),
            (Int8, Int2, true, false),
            (Int4, Numeric(None), true, false),
            (Int4, Text, true, false),
            (Text, Int4, false, false),
            (Varchar(Some(3)), Text, true, true),
            (Text, Varchar(Some(3)), true, false),
            (Varchar(Some(3)), Varchar(Some(4)), true, true),
            (Char(3), Varchar(Some(2)), true, false),
            (Varchar(Some(3)), Char(3), true, false),
            (Numeric(Some((5, 2))), Numeric(Some((7, 2))), true, true),
            (Numeric(Some((5, 2))), Numeric(Some((7, 3))), true, false),
            (Timestamp, TimestampTz, true, false),
            (TimestampTz, Time, true, false),
            (Bool, Int4, false, false),
            (Uuid, Uuid, true, true),
        ] {
            assert_eq!((from.assigns_to(&to), from.is_stored_in(&to)), (assigned, stored), "{from} {to}");
        }
    }

    #[test]
    fn a_cast_takes_what_is_assigned_and_texts_and_truth_values() {
        use SqlType::*;
        for (from, to, expected) in [
            (Text, Uuid, true),
            (Uuid, Varchar(Some(3)), true),
            (Bool, Int4, true),
            (Int4, Bool, true),
            (Int8, Bool, false),
            (Bool, Numeric(None), false),
            (Float8, Int2, true),
            (Date, Int4, false),
            (Date, TimestampTz, true),
            (Date, Time, false),
            (TimestampTz, Time, true),
            (Time, Timestamp, false),
            (Uuid, Bytea, false),
            (Bytea, Text, true),
        ] {
            assert_eq!(from.casts_to(&to), expected, "{from} {to}");
        }
    }

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
