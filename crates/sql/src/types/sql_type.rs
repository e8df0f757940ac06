//! The types that a column can have, and their names in SQL, in Arrow and in PostgreSQL's catalog.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::Datum;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion::sql::sqlparser::ast::{self, ArrayElemTypeDef, CharacterLength, ExactNumberInfo, TimezoneInfo};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The most digits of a NUMERIC.
pub const NUMERIC_PRECISION_MAX: u8 = 38;
/// The digits of an unconstrained NUMERIC, before and after the point together.
pub const NUMERIC_DEFAULT_PRECISION: u8 = 38;
/// The digits after the point of an unconstrained NUMERIC.
pub const NUMERIC_DEFAULT_SCALE: u8 = 10;
/// The most characters of `varchar(n)` and `char(n)`, as in PostgreSQL.
pub const CHARACTERS_MAX: u32 = 10_485_760;

/// The time zone of every `timestamptz` in Arrow.
pub(crate) const UTC: &str = "+00:00";
/// The key of an Arrow field's metadata that holds `<oid>:<type modifier>`.
const FIELD_TYPE_KEY: &str = "rhumb.type";
/// PostgreSQL counts the length word of a value in its type modifiers.
const MODIFIER_HEADER: i32 = 4;

/// PostgreSQL's numbers of the types of elements and of their arrays.
const ARRAY_OIDS: [(u32, u32); 17] = [
    (16, 1000),
    (17, 1001),
    (20, 1016),
    (21, 1005),
    (23, 1007),
    (25, 1009),
    (700, 1021),
    (701, 1022),
    (1042, 1014),
    (1043, 1015),
    (1082, 1182),
    (1083, 1183),
    (1114, 1115),
    (1184, 1185),
    (1186, 1187),
    (1700, 1231),
    (2950, 2951),
];

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SqlType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric` (`None`) or `numeric(precision, scale)`
    Numeric(Option<(u8, u8)>),
    /// `text`
    Text,
    /// `varchar` (`None`) or `varchar(n)`
    Varchar(Option<u32>),
    /// `char(n)`
    Char(u32),
    /// `bytea`
    Bytea,
    /// `date`
    Date,
    /// `time without time zone`
    Time,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    TimestampTz,
    /// `interval`
    Interval,
    /// `uuid`
    Uuid,
    /// `integer[]` and the like
    Array(Element),
    /// `int2vector`: the columns of an index, in system tables
    Int2Vector,
}

impl SqlType {
    /// The type without its length or digits, which are checked where a value is stored: that of a parameter that meets a column of this one.
    pub fn unbounded(self) -> SqlType {
        match self {
            SqlType::Numeric(_) => SqlType::Numeric(None),
            SqlType::Varchar(_) | SqlType::Char(_) => SqlType::Text,
            SqlType::Array(element) => element.ty().unbounded().try_into().map_or(self, SqlType::Array),
            other => other,
        }
    }

    /// The type of its values in Arrow.
    pub fn arrow(&self) -> DataType {
        match self {
            SqlType::Bool => DataType::Boolean,
            SqlType::Int2 => DataType::Int16,
            SqlType::Int4 => DataType::Int32,
            SqlType::Int8 => DataType::Int64,
            SqlType::Float4 => DataType::Float32,
            SqlType::Float8 => DataType::Float64,
            SqlType::Numeric(_) => {
                let (precision, scale) = self.decimal_shape();
                DataType::Decimal128(precision, scale)
            }
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Uuid => DataType::Utf8,
            SqlType::Bytea => DataType::Binary,
            SqlType::Date => DataType::Date32,
            SqlType::Time => DataType::Time64(TimeUnit::Microsecond),
            SqlType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            SqlType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from(UTC))),
            SqlType::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            SqlType::Array(element) => element.list(),
            SqlType::Int2Vector => Element::INT2.list(),
        }
    }

    /// The Arrow field of a column of this type; [`SqlType::of_field`] reads the type back.
    pub fn field(&self, name: &str, nullable: bool) -> Field {
        let tag = format!("{}:{}", self.oid(), self.type_modifier());
        Field::new(name, self.arrow(), nullable).with_metadata(HashMap::from([(FIELD_TYPE_KEY.to_string(), tag)]))
    }

    /// The type of a column of a result: what its field says if it still has the Arrow type that goes with it, else the
    /// type that its Arrow type suggests.
    pub fn of_field(field: &Field) -> Option<SqlType> {
        let tagged = field.metadata().get(FIELD_TYPE_KEY).and_then(|tag| {
            let (oid, modifier) = tag.split_once(':')?;
            SqlType::from_oid(oid.parse().ok()?, modifier.parse().ok()?)
        });
        tagged.filter(|ty| ty.arrow() == *field.data_type()).or_else(|| SqlType::of_arrow(field.data_type()))
    }

    /// The type whose values hold those of an Arrow type; `None` if there is none. A wider Arrow type than `arrow()`
    /// gives (an unsigned integer, a timestamp of nanoseconds) is answered with the type to cast it to.
    pub fn of_arrow(arrow: &DataType) -> Option<SqlType> {
        Some(match arrow {
            DataType::Boolean => SqlType::Bool,
            DataType::Int8 | DataType::Int16 | DataType::UInt8 => SqlType::Int2,
            DataType::Int32 | DataType::UInt16 => SqlType::Int4,
            DataType::Int64 | DataType::UInt32 => SqlType::Int8,
            DataType::UInt64 => SqlType::Numeric(Some((20, 0))),
            DataType::Float16 | DataType::Float32 => SqlType::Float4,
            DataType::Float64 => SqlType::Float8,
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) | DataType::Decimal128(precision, scale) => {
                SqlType::Numeric(Some((*precision, u8::try_from(*scale).ok()?)))
            }
            DataType::Decimal256(_, scale) => SqlType::Numeric(Some((NUMERIC_PRECISION_MAX, u8::try_from(*scale).ok()?))),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => SqlType::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => SqlType::Bytea,
            DataType::Date32 | DataType::Date64 => SqlType::Date,
            DataType::Time32(_) | DataType::Time64(_) => SqlType::Time,
            DataType::Timestamp(_, None) => SqlType::Timestamp,
            DataType::Timestamp(_, Some(_)) => SqlType::TimestampTz,
            DataType::Interval(_) => SqlType::Interval,
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                SqlType::Array(SqlType::of_field(item)?.try_into().ok()?)
            }
            _ => return None,
        })
    }

    /// NULL of this type.
    pub fn null(&self) -> Datum {
        match self {
            SqlType::Bool => Datum::Boolean(None),
            SqlType::Int2 => Datum::Int16(None),
            SqlType::Int4 => Datum::Int32(None),
            SqlType::Int8 => Datum::Int64(None),
            SqlType::Float4 => Datum::Float32(None),
            SqlType::Float8 => Datum::Float64(None),
            SqlType::Numeric(_) => {
                let (precision, scale) = self.decimal_shape();
                Datum::Decimal128(None, precision, scale)
            }
            SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Uuid => Datum::Utf8(None),
            SqlType::Bytea => Datum::Binary(None),
            SqlType::Date => Datum::Date32(None),
            SqlType::Time => Datum::Time64Microsecond(None),
            SqlType::Timestamp => Datum::TimestampMicrosecond(None, None),
            SqlType::TimestampTz => Datum::TimestampMicrosecond(None, Some(Arc::from(UTC))),
            SqlType::Interval => Datum::IntervalMonthDayNano(None),
            SqlType::Array(element) => element.null_list(),
            SqlType::Int2Vector => Element::INT2.null_list(),
        }
    }

    /// The type of the elements, if its values are lists.
    pub fn element(&self) -> Option<Element> {
        match self {
            SqlType::Array(element) => Some(*element),
            SqlType::Int2Vector => Some(Element::INT2),
            _ => None,
        }
    }

    /// PostgreSQL's number for the type.
    pub fn oid(&self) -> u32 {
        match self {
            SqlType::Bool => 16,
            SqlType::Bytea => 17,
            SqlType::Int8 => 20,
            SqlType::Int2 => 21,
            SqlType::Int4 => 23,
            SqlType::Text => 25,
            SqlType::Float4 => 700,
            SqlType::Float8 => 701,
            SqlType::Char(_) => 1042,
            SqlType::Varchar(_) => 1043,
            SqlType::Date => 1082,
            SqlType::Time => 1083,
            SqlType::Timestamp => 1114,
            SqlType::TimestampTz => 1184,
            SqlType::Interval => 1186,
            SqlType::Numeric(_) => 1700,
            SqlType::Uuid => 2950,
            SqlType::Array(element) => array_oid(element.ty().oid()),
            SqlType::Int2Vector => 22,
        }
    }

    /// PostgreSQL's type modifier (`atttypmod`): the length or the digits, -1 for none.
    pub fn type_modifier(&self) -> i32 {
        match self {
            SqlType::Numeric(Some((precision, scale))) => ((i32::from(*precision) << 16) | i32::from(*scale)) + MODIFIER_HEADER,
            SqlType::Varchar(Some(length)) | SqlType::Char(length) => *length as i32 + MODIFIER_HEADER,
            SqlType::Array(element) => element.ty().type_modifier(),
            _ => -1,
        }
    }

    /// The type with PostgreSQL's number and modifier; `None` if it is not one of ours.
    pub fn from_oid(oid: u32, type_modifier: i32) -> Option<SqlType> {
        let modifier = type_modifier.checked_sub(MODIFIER_HEADER).and_then(|modifier| u32::try_from(modifier).ok());
        Some(match oid {
            16 => SqlType::Bool,
            17 => SqlType::Bytea,
            20 => SqlType::Int8,
            21 => SqlType::Int2,
            22 => SqlType::Int2Vector,
            23 => SqlType::Int4,
            // `name`, the type of PostgreSQL's own identifiers, is text to us.
            19 | 25 => SqlType::Text,
            700 => SqlType::Float4,
            701 => SqlType::Float8,
            // Without a length it has no blanks to pad with.
            1042 => modifier.map_or(SqlType::Text, SqlType::Char),
            1043 => SqlType::Varchar(modifier),
            1082 => SqlType::Date,
            1083 => SqlType::Time,
            1114 => SqlType::Timestamp,
            1184 => SqlType::TimestampTz,
            1186 => SqlType::Interval,
            1700 => SqlType::Numeric(modifier.map(|modifier| ((modifier >> 16) as u8, modifier as u8))),
            2950 => SqlType::Uuid,
            other => {
                let (element, _) = ARRAY_OIDS.into_iter().find(|(_, array)| *array == other)?;
                SqlType::Array(SqlType::from_oid(element, type_modifier)?.try_into().ok()?)
            }
        })
        .filter(SqlType::is_sound)
    }

    /// The bytes of a value as PostgreSQL's `typlen` says: -1 if they vary.
    pub fn type_length(&self) -> i16 {
        match self {
            SqlType::Bool => 1,
            SqlType::Int2 => 2,
            SqlType::Int4 | SqlType::Float4 | SqlType::Date => 4,
            SqlType::Int8 | SqlType::Float8 | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => 8,
            SqlType::Uuid | SqlType::Interval => 16,
            SqlType::Numeric(_) | SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) | SqlType::Bytea => -1,
            SqlType::Array(_) | SqlType::Int2Vector => -1,
        }
    }

    /// The name without length or digits, as PostgreSQL's messages use it.
    pub fn name(&self) -> &'static str {
        match self {
            SqlType::Bool => "boolean",
            SqlType::Int2 => "smallint",
            SqlType::Int4 => "integer",
            SqlType::Int8 => "bigint",
            SqlType::Float4 => "real",
            SqlType::Float8 => "double precision",
            SqlType::Numeric(_) => "numeric",
            SqlType::Text => "text",
            SqlType::Varchar(_) => "character varying",
            SqlType::Char(_) => "character",
            SqlType::Bytea => "bytea",
            SqlType::Date => "date",
            SqlType::Time => "time without time zone",
            SqlType::Timestamp => "timestamp without time zone",
            SqlType::TimestampTz => "timestamp with time zone",
            SqlType::Interval => "interval",
            SqlType::Uuid => "uuid",
            SqlType::Array(element) => match element.ty() {
                SqlType::Bool => "boolean[]",
                SqlType::Int2 => "smallint[]",
                SqlType::Int4 => "integer[]",
                SqlType::Int8 => "bigint[]",
                SqlType::Float4 => "real[]",
                SqlType::Float8 => "double precision[]",
                SqlType::Numeric(_) => "numeric[]",
                SqlType::Text | SqlType::Array(_) | SqlType::Int2Vector => "text[]",
                SqlType::Varchar(_) => "character varying[]",
                SqlType::Char(_) => "character[]",
                SqlType::Bytea => "bytea[]",
                SqlType::Date => "date[]",
                SqlType::Time => "time without time zone[]",
                SqlType::Timestamp => "timestamp without time zone[]",
                SqlType::TimestampTz => "timestamp with time zone[]",
                SqlType::Interval => "interval[]",
                SqlType::Uuid => "uuid[]",
            },
            SqlType::Int2Vector => "int2vector",
        }
    }

    /// The digits of a NUMERIC, all and after the point, in Arrow's integers. Of any other type those of a plain one.
    pub(crate) fn decimal_shape(&self) -> (u8, i8) {
        match self {
            SqlType::Numeric(Some((precision, scale))) => (*precision, *scale as i8),
            _ => (NUMERIC_DEFAULT_PRECISION, NUMERIC_DEFAULT_SCALE as i8),
        }
    }

    /// True if its length or digits are within their bounds.
    pub(crate) fn is_sound(&self) -> bool {
        match self {
            SqlType::Numeric(Some((precision, scale))) => (1..=NUMERIC_PRECISION_MAX).contains(precision) && scale <= precision,
            SqlType::Varchar(Some(length)) | SqlType::Char(length) => (1..=CHARACTERS_MAX).contains(length),
            SqlType::Array(element) => element.ty().is_sound(),
            _ => true,
        }
    }

    /// The type that a statement names. Errors: 0A000 for a type that PostgreSQL has and Rhumb has not, 22023 for a
    /// length or precision out of bounds, 42704 for a name that nobody knows.
    pub fn from_ast(ast: &ast::DataType) -> SqlResult<SqlType> {
        use ast::DataType as Ast;
        Ok(match ast {
            Ast::Bool | Ast::Boolean => SqlType::Bool,
            Ast::SmallInt(None) | Ast::Int2(None) => SqlType::Int2,
            Ast::Int(None) | Ast::Int4(None) | Ast::Integer(None) => SqlType::Int4,
            Ast::BigInt(None) | Ast::Int8(None) => SqlType::Int8,
            Ast::Real | Ast::Float4 => SqlType::Float4,
            Ast::Float8 | Ast::DoublePrecision | Ast::Double(ExactNumberInfo::None) | Ast::Float(ExactNumberInfo::None) => SqlType::Float8,
            // PostgreSQL counts the bits of the mantissa here.
            Ast::Float(ExactNumberInfo::Precision(1..=24)) => SqlType::Float4,
            Ast::Float(ExactNumberInfo::Precision(25..=53)) => SqlType::Float8,
            Ast::Numeric(digits) | Ast::Decimal(digits) | Ast::Dec(digits) => SqlType::Numeric(numeric_digits(digits)?),
            Ast::Text => SqlType::Text,
            Ast::Varchar(length) | Ast::CharacterVarying(length) | Ast::CharVarying(length) => {
                SqlType::Varchar(characters(length.as_ref(), "varchar")?)
            }
            Ast::Char(length) | Ast::Character(length) => SqlType::Char(characters(length.as_ref(), "char")?.unwrap_or(1)),
            Ast::Bytea => SqlType::Bytea,
            Ast::Date => SqlType::Date,
            Ast::Time(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => SqlType::Time,
            Ast::Timestamp(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => SqlType::Timestamp,
            Ast::Timestamp(None | Some(6), TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => SqlType::TimestampTz,
            Ast::Uuid => SqlType::Uuid,
            Ast::Interval { fields: None, precision: None | Some(6) } => SqlType::Interval,
            Ast::Array(ArrayElemTypeDef::SquareBracket(element, _)) => match SqlType::from_ast(element)? {
                // PostgreSQL takes any number of brackets for the same type.
                ty @ SqlType::Array(_) => ty,
                ty => SqlType::Array(ty.try_into().map_err(SqlError::internal)?),
            },
            Ast::Custom(name, modifiers) => custom(&name.to_string(), modifiers)?,
            other => return Err(SqlError::unsupported(format!("type {} is not supported", other.to_string().to_lowercase()))),
        })
    }
}

impl fmt::Display for SqlType {
    /// As PostgreSQL's `format_type` writes it: `character varying(10)`, `numeric(12,2)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let SqlType::Array(element) = self {
            return write!(f, "{}[]", element.ty());
        }
        f.write_str(self.name())?;
        match self {
            SqlType::Varchar(Some(length)) | SqlType::Char(length) => write!(f, "({length})"),
            SqlType::Numeric(Some((precision, scale))) => write!(f, "({precision},{scale})"),
            _ => Ok(()),
        }
    }
}

/// The type of an array's elements: any scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "SqlType", into = "SqlType")]
pub struct Element {
    oid: u32,
    modifier: i32,
}

impl Element {
    /// `smallint`.
    pub const INT2: Element = Element { oid: 21, modifier: -1 };
    /// `text`.
    pub const TEXT: Element = Element { oid: 25, modifier: -1 };

    /// The one with this number and modifier.
    #[cfg(test)]
    pub(super) const fn sample(oid: u32, modifier: i32) -> Element {
        Element { oid, modifier }
    }

    /// The Arrow type of its arrays.
    fn list(self) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(self.ty().arrow(), true)))
    }

    /// NULL of the type of its arrays.
    fn null_list(self) -> Datum {
        Datum::new_null_list(self.ty().arrow(), true, 1)
    }

    /// The type itself.
    pub fn ty(self) -> SqlType {
        SqlType::from_oid(self.oid, self.modifier).unwrap_or(SqlType::Text)
    }
}

impl TryFrom<SqlType> for Element {
    type Error = &'static str;

    fn try_from(ty: SqlType) -> Result<Element, &'static str> {
        match ty {
            SqlType::Array(_) | SqlType::Int2Vector => Err("an array is no element of an array"),
            ty => Ok(Element { oid: ty.oid(), modifier: ty.type_modifier() }),
        }
    }
}

impl From<Element> for SqlType {
    fn from(element: Element) -> SqlType {
        element.ty()
    }
}

/// The number of the arrays of a type.
fn array_oid(element: u32) -> u32 {
    ARRAY_OIDS.into_iter().find(|(of, _)| *of == element).map_or(0, |(_, array)| array)
}

fn numeric_digits(digits: &ExactNumberInfo) -> SqlResult<Option<(u8, u8)>> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => return Ok(None),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let precision = u8::try_from(precision).ok().filter(|precision| (1..=NUMERIC_PRECISION_MAX).contains(precision)).ok_or_else(|| {
        let message = format!("NUMERIC precision {precision} must be between 1 and {NUMERIC_PRECISION_MAX}");
        SqlError::new(SqlState::InvalidParameterValue, message)
    })?;
    let scale = u8::try_from(scale).ok().filter(|scale| *scale <= precision).ok_or_else(|| {
        let message = format!("NUMERIC scale {scale} must be between 0 and precision {precision}");
        SqlError::new(SqlState::InvalidParameterValue, message)
    })?;
    Ok(Some((precision, scale)))
}

fn characters(length: Option<&CharacterLength>, name: &str) -> SqlResult<Option<u32>> {
    let length = match length {
        None => return Ok(None),
        Some(CharacterLength::IntegerLength { length, .. }) => *length,
        Some(CharacterLength::Max) => return Err(SqlError::unsupported(format!("{name}(max) is not supported; use text"))),
    };
    match u32::try_from(length) {
        Ok(length @ 1..=CHARACTERS_MAX) => Ok(Some(length)),
        _ => {
            let message = format!("length for type {name} must be between 1 and {CHARACTERS_MAX}");
            Err(SqlError::new(SqlState::InvalidParameterValue, message))
        }
    }
}

/// Names of PostgreSQL that the parser has no word for.
fn custom(name: &str, modifiers: &[String]) -> SqlResult<SqlType> {
    match (name.to_lowercase().as_str(), modifiers) {
        ("timestamptz", []) => Ok(SqlType::TimestampTz),
        ("name", []) => Ok(SqlType::Text),
        _ => Err(SqlError::new(SqlState::UndefinedObject, format!("type \"{name}\" does not exist"))),
    }
}
