//! A value on its way to the server: a typed parameter of a statement, a field of COPY, or a literal of INSERT.
//!
//! Statements are prepared with the types of their values, so they never depend on what a server would infer.

use bytes::BytesMut;
use chrono::NaiveDateTime;
use rust_decimal::Decimal;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// One value of a row or of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// INT
    Int(i32),
    /// BIGINT
    Long(i64),
    /// VARCHAR
    Text(String),
    /// NUMERIC
    Numeric(Decimal),
    /// TIMESTAMP
    Timestamp(NaiveDateTime),
    /// NULL of a type that the server infers.
    Null,
}

const TIMESTAMP_FORMAT: &str = "%Y-%m-%d %H:%M:%S%.6f";

impl Value {
    /// The PostgreSQL type to prepare a parameter with.
    pub fn parameter_type(&self) -> Type {
        match self {
            Value::Int(_) => Type::INT4,
            Value::Long(_) => Type::INT8,
            Value::Text(_) => Type::VARCHAR,
            Value::Numeric(_) => Type::NUMERIC,
            Value::Timestamp(_) => Type::TIMESTAMP,
            Value::Null => Type::UNKNOWN,
        }
    }

    /// Appends the field as COPY's text format writes it.
    pub fn write_copy(&self, out: &mut String) {
        match self {
            Value::Text(text) => {
                for c in text.chars() {
                    match c {
                        '\\' => out.push_str("\\\\"),
                        '\t' => out.push_str("\\t"),
                        '\n' => out.push_str("\\n"),
                        '\r' => out.push_str("\\r"),
                        other => out.push(other),
                    }
                }
            }
            Value::Null => out.push_str("\\N"),
            other => out.push_str(&other.plain()),
        }
    }

    /// Appends the value as an SQL literal.
    pub fn write_literal(&self, out: &mut String) {
        match self {
            Value::Text(text) => {
                out.push('\'');
                out.push_str(&text.replace('\'', "''"));
                out.push('\'');
            }
            Value::Timestamp(_) => {
                out.push_str("TIMESTAMP '");
                out.push_str(&self.plain());
                out.push('\'');
            }
            other => out.push_str(&other.plain()),
        }
    }

    fn plain(&self) -> String {
        match self {
            Value::Int(number) => number.to_string(),
            Value::Long(number) => number.to_string(),
            Value::Text(text) => text.clone(),
            Value::Numeric(number) => number.to_string(),
            Value::Timestamp(time) => time.format(TIMESTAMP_FORMAT).to_string(),
            Value::Null => "NULL".to_owned(),
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Int(number) => number.to_sql(ty, out),
            Value::Long(number) => number.to_sql(ty, out),
            Value::Text(text) => text.to_sql(ty, out),
            Value::Numeric(number) => number.to_sql(ty, out),
            Value::Timestamp(time) => time.to_sql(ty, out),
            Value::Null => Ok(IsNull::Yes),
        }
    }

    /// The statement was prepared with [`Value::parameter_type`], so the types agree.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Int(number)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Long(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Decimal> for Value {
    fn from(number: Decimal) -> Value {
        Value::Numeric(number)
    }
}

impl From<NaiveDateTime> for Value {
    fn from(time: NaiveDateTime) -> Value {
        Value::Timestamp(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &Value, write: fn(&Value, &mut String)) -> String {
        let mut out = String::new();
        write(value, &mut out);
        out
    }

    #[test]
    fn copy_escapes_what_would_end_a_field() {
        assert_eq!(written(&"a\tb\\c\nd".into(), Value::write_copy), "a\\tb\\\\c\\nd");
        assert_eq!(written(&Value::Null, Value::write_copy), "\\N");
        assert_eq!(written(&Decimal::new(-1000, 2).into(), Value::write_copy), "-10.00");
    }

    #[test]
    fn literals_double_their_quotes() {
        assert_eq!(written(&"O'OE".into(), Value::write_literal), "'O''OE'");
        assert_eq!(written(&Value::Null, Value::write_literal), "NULL");
        let time = chrono::DateTime::from_timestamp(86_400, 250_000_000).expect("a date").naive_utc();
        assert_eq!(written(&time.into(), Value::write_literal), "TIMESTAMP '1970-01-02 00:00:00.250000'");
    }
}
