//! Functions of the values of one row, for the query engine.

pub use crate::engine::limits::MADE_BYTES_MAX;

use crate::engine::from_sql;
use crate::engine::limits::{FOLDED_BYTES_MAX, is_folding, not_now, too_large};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, SqlType};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, not_impl_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use rhumb_generic::array_of;
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// How much larger a constant may be than what it is made of, if it is made while a statement is planned: an array of numbers in a text has a byte for each
/// and another between them, where a number has eight.
const FOLDED_TIMES_MAX: u64 = 8;

type Returns = Arc<dyn Fn(&ReturnFieldArgs<'_>) -> SqlResult<Field> + Send + Sync>;
type Body = Arc<dyn Fn(&Field, &[Datum]) -> SqlResult<Datum> + Send + Sync>;

/// A function of the values of one row.
#[derive(Clone)]
pub struct RowFunction {
    name: Cow<'static, str>,
    signature: Signature,
    arguments: RangeInclusive<usize>,
    returns: Returns,
    body: Body,
    bytes_max: u64,
}

impl RowFunction {
    /// A function of so many arguments, whose result depends on them in type, too; `body` is given the field that it returns. To the query engine
    /// functions of one name are the same.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        arguments: RangeInclusive<usize>,
        returns: impl Fn(&ReturnFieldArgs<'_>) -> SqlResult<Field> + Send + Sync + 'static,
        body: impl Fn(&Field, &[Datum]) -> SqlResult<Datum> + Send + Sync + 'static,
    ) -> RowFunction {
        let signature = Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], Volatility::Immutable);
        let (returns, body) = (Arc::new(returns), Arc::new(body));
        RowFunction { name: name.into(), signature, arguments, returns, body, bytes_max: MADE_BYTES_MAX }
    }

    /// The same function with a bound on the bytes that it makes of one batch of rows.
    pub fn with_bound(&self, bytes_max: u64) -> RowFunction {
        RowFunction { bytes_max, ..self.clone() }
    }
}

/// A function that gives values of the type `returns`.
pub fn function(name: &'static str, returns: DataType, body: impl Fn(&[Datum]) -> Datum + Send + Sync + 'static) -> RowFunction {
    RowFunction::new(name, 0..=usize::MAX, move |_| Ok(Field::new(name, returns.clone(), true)), move |_, values| Ok(body(values)))
}

/// The constants that name a type: its number and its modifier.
pub fn numbers_of(ty: &SqlType) -> [Expr; 2] {
    [ty.oid().into(), ty.type_modifier().into()].map(|number| Expr::Literal(Datum::Int64(Some(number)), None))
}

/// The type that two constants name.
pub fn of_numbers(oid: &Datum, modifier: &Datum) -> Option<SqlType> {
    SqlType::from_oid(u32::try_from(whole_number(oid)?).ok()?, i32::try_from(whole_number(modifier)?).ok()?)
}

/// A whole number that is written in a statement.
pub fn whole_number(value: &Datum) -> Option<i64> {
    match value {
        Datum::Int32(number) => number.map(i64::from),
        Datum::Int64(number) => *number,
        _ => None,
    }
}

/// An argument: the same for all rows, or one for each.
enum Argument {
    One(Datum),
    Each(ArrayRef),
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        not_impl_err!("the type of {} depends on more than those of its arguments", self.name)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if !self.arguments.contains(&arguments.arg_fields.len()) {
            let message = format!("function {} does not take {} arguments", self.name, arguments.arg_fields.len());
            return Err(from_sql(SqlError::new(SqlState::UndefinedFunction, message)));
        }
        (self.returns)(&arguments).map(Arc::new).map_err(from_sql)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_folding = is_folding(&arguments);
        let is_one = arguments.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { arguments.number_rows };
        let mut given = 0;
        let args: Vec<Argument> = arguments
            .args
            .into_iter()
            .map(|argument| match argument {
                ColumnarValue::Scalar(value) => {
                    given += value.size() as u64;
                    Argument::One(value)
                }
                ColumnarValue::Array(array) => Argument::Each(array),
            })
            .collect();
        let mut made = 0;
        let value = |row| {
            let of_row = |argument: &Argument| match argument {
                Argument::One(value) => Ok(value.clone()),
                Argument::Each(array) => Datum::try_from_array(array, row),
            };
            let values = args.iter().map(of_row).collect::<Result<Vec<_>>>()?;
            let value = (self.body)(&arguments.return_field, &values).map_err(from_sql)?;
            made += value.size() as u64;
            match made {
                made if made > self.bytes_max => Err(too_large(&self.name, self.bytes_max)),
                made if is_folding && made > given * FOLDED_TIMES_MAX + FOLDED_BYTES_MAX => Err(not_now()),
                _ => Ok(value),
            }
        };
        let mut values = (0..rows).map(value).collect::<Result<Vec<_>>>()?;
        match values.pop() {
            Some(value) if is_one => Ok(ColumnarValue::Scalar(value)),
            last => {
                values.extend(last);
                Ok(ColumnarValue::Array(array_of(arguments.return_field.data_type(), values)?))
            }
        }
    }
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowFunction({})", self.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &RowFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
