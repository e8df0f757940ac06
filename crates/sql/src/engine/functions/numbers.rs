//! Functions of numbers: of decimal ones they are exact, of all others floating-point numbers, as in PostgreSQL.

use crate::engine::decimals::{Decimal, digits_of, overflow};
use crate::engine::row_function::{RowFunction, whole_number};
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, NUMERIC_PRECISION_MAX, SqlType, coerce};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::ReturnFieldArgs;

/// The most decimal places that a number is rounded to.
const PLACES_MAX: i64 = 28;

/// All of them.
pub(super) fn each() -> Vec<RowFunction> {
    let own = |name, of_decimal, of_float| function(name, 1..=1, of_decimal, of_float);
    vec![
        function("round", 1..=2, Decimal::rounded, f64::round_ties_even),
        function("trunc", 1..=2, Decimal::cut, f64::trunc),
        own("ceil", |number, _| number.up(), f64::ceil),
        own("floor", |number, _| number.down(), f64::floor),
        own("sign", |number, _| Some(number.sign()), |number| if number == 0.0 || number.is_nan() { number } else { number.signum() }),
        div(),
        float("ln", 1..=1, |numbers| logarithm(numbers[0])),
        float("log", 1..=2, |numbers| match *numbers {
            [base, number] => Ok(logarithm(number)? / nonzero(logarithm(base)?)?),
            _ => logarithm(numbers[0]).map(|_| numbers[0].log10()),
        }),
        float("log10", 1..=1, |numbers| logarithm(numbers[0]).map(|_| numbers[0].log10())),
        float("exp", 1..=1, |numbers| in_range(numbers, numbers[0].exp())),
        float("power", 2..=2, power),
        float("pow", 2..=2, power),
        float("asin", 1..=1, |numbers| of_one(numbers[0]).map(f64::asin)),
        float("acos", 1..=1, |numbers| of_one(numbers[0]).map(f64::acos)),
    ]
}

/// A function of floating-point numbers, which is refused where it has no value.
fn float(
    name: &'static str,
    arguments: std::ops::RangeInclusive<usize>,
    body: impl Fn(&[f64]) -> SqlResult<f64> + Send + Sync + 'static,
) -> RowFunction {
    let returned = move |arguments: &ReturnFieldArgs<'_>| {
        let types = arguments.arg_fields.iter().zip(arguments.scalar_arguments);
        let refused =
            types.filter_map(|(field, written)| SqlType::of_field(field).zip(Some(written.is_some()))).find(|(ty, is_written)| {
                use SqlType::{Float4, Float8, Int2, Int4, Int8, Numeric};
                !(matches!(ty, Int2 | Int4 | Int8 | Numeric(_) | Float4 | Float8) || ty.is_text() && *is_written)
            });
        match refused {
            None => Ok(Field::new(name, DataType::Float64, true)),
            Some((ty, _)) => Err(SqlError::new(SqlState::UndefinedFunction, format!("function {name}() of {} does not exist", ty.name()))),
        }
    };
    RowFunction::new(name, arguments, returned, move |_, values| {
        let mut numbers = Vec::with_capacity(values.len());
        for value in values {
            match coerce(&SqlType::Float8, value.clone())? {
                Datum::Float64(Some(number)) => numbers.push(number),
                _ => return Ok(Datum::Float64(None)),
            }
        }
        body(&numbers).map(|number| Datum::Float64(Some(number)))
    })
}

/// The natural logarithm. Error 2201E.
fn logarithm(number: f64) -> SqlResult<f64> {
    let refused = |what: &str| Err(SqlError::new(SqlState::InvalidArgumentForLogarithm, format!("cannot take logarithm of {what}")));
    match number {
        0.0 => refused("zero"),
        ..0.0 => refused("a negative number"),
        number => Ok(number.ln()),
    }
}

/// Error 22012.
fn nonzero(number: f64) -> SqlResult<f64> {
    if number == 0.0 { Err(SqlError::new(SqlState::DivisionByZero, "division by zero")) } else { Ok(number) }
}

/// Error 22003 for what is infinite or nothing, of numbers that are neither.
fn in_range(of: &[f64], result: f64) -> SqlResult<f64> {
    let refused = |what: &str| Err(SqlError::new(SqlState::NumericValueOutOfRange, format!("value out of range: {what}")));
    match result {
        result if of.iter().any(|number| !number.is_finite()) => Ok(result),
        result if result.is_infinite() => refused("overflow"),
        0.0 if of[0] != 0.0 => refused("underflow"),
        result => Ok(result),
    }
}

/// Errors: 2201F, 22003.
fn power(numbers: &[f64]) -> SqlResult<f64> {
    let refused = |what: &str| Err(SqlError::new(SqlState::InvalidArgumentForPowerFunction, what));
    match *numbers {
        [0.0, exponent] if exponent < 0.0 => refused("zero raised to a negative power is undefined"),
        [base, exponent] if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 => {
            refused("a negative number raised to a non-integer power yields a complex result")
        }
        [base, exponent] => in_range(numbers, base.powf(exponent)),
        _ => Err(SqlError::internal("a power is one of two numbers")),
    }
}

/// Error 22003 for what is beyond one.
fn of_one(number: f64) -> SqlResult<f64> {
    if number.abs() > 1.0 { Err(SqlError::new(SqlState::NumericValueOutOfRange, "input is out of range")) } else { Ok(number) }
}

type OfDecimal = fn(Decimal, i8) -> Option<Decimal>;

/// A function of a number, and of how many decimal places it is to have.
fn function(
    name: &'static str,
    arguments: std::ops::RangeInclusive<usize>,
    of_decimal: OfDecimal,
    of_float: fn(f64) -> f64,
) -> RowFunction {
    RowFunction::new(
        name,
        arguments,
        move |arguments| {
            let ty = match result(name, arguments)? {
                Some((whole, places)) => decimal_type(whole, places),
                None => DataType::Float64,
            };
            Ok(Field::new(name, ty, true))
        },
        move |field, values| match (field.data_type(), values) {
            (DataType::Decimal128(precision, scale), [value, rest @ ..]) => {
                let places = match rest.first() {
                    None => 0,
                    Some(places) => match coerce(&SqlType::Int4, places.clone())? {
                        Datum::Int32(Some(places)) => i8::try_from(i64::from(places).clamp(-PLACES_MAX, PLACES_MAX)).unwrap_or_default(),
                        _ => return Ok(Datum::Decimal128(None, *precision, *scale)),
                    },
                };
                let made = decimal(value)?.map(|number| of_decimal(number, places).ok_or_else(overflow)).transpose()?;
                made.map(|number| number.stored(*scale)).transpose().map(|digits| Datum::Decimal128(digits, *precision, *scale))
            }
            (_, [value, ..]) => match coerce(&SqlType::Float8, value.clone())? {
                Datum::Float64(number) => Ok(Datum::Float64(number.map(of_float))),
                _ => Err(SqlError::internal("a number is a floating-point number")),
            },
            _ => Err(SqlError::internal("a function of numbers has arguments")),
        },
    )
}

/// With room for so many digits before the point, one more that rounding may make, and so many behind it.
fn decimal_type(whole: u8, places: i8) -> DataType {
    DataType::Decimal128((whole + 1 + places.unsigned_abs()).min(NUMERIC_PRECISION_MAX), places)
}

/// The digits of a number's type before the point and behind it; `None` if it is neither whole nor decimal.
fn shape(ty: &SqlType) -> Option<(u8, i8)> {
    match ty {
        SqlType::Int2 => Some((5, 0)),
        SqlType::Int4 => Some((10, 0)),
        SqlType::Int8 => Some((19, 0)),
        SqlType::Numeric(_) => {
            let (precision, scale) = ty.decimal_shape();
            Some((precision.saturating_sub(scale.unsigned_abs()), scale))
        }
        _ => None,
    }
}

/// The digits of the result before the point and behind it; `None` if it is a floating-point number. Error 42883.
fn result(name: &str, arguments: &ReturnFieldArgs<'_>) -> SqlResult<Option<(u8, i8)>> {
    let types: Vec<Option<SqlType>> = arguments.arg_fields.iter().map(|field| SqlType::of_field(field)).collect();
    let is_whole = |ty: &SqlType| matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    let is_null = |place: usize| arguments.arg_fields.get(place).is_some_and(|field| *field.data_type() == DataType::Null);
    let undefined = || {
        let names: Vec<&str> = types.iter().map(|ty| ty.as_ref().map_or("unknown", SqlType::name)).collect();
        SqlError::new(SqlState::UndefinedFunction, format!("function {name}({}) does not exist", names.join(", ")))
    };
    match types.as_slice() {
        [Some(ty @ SqlType::Numeric(_))] => Ok(shape(ty).map(|(whole, _)| (whole, 0))),
        [Some(SqlType::Float4 | SqlType::Float8)] => Ok(None),
        [Some(ty)] if is_whole(ty) => Ok(None),
        // What is written as a text is one.
        [Some(ty)] if ty.is_text() && arguments.scalar_arguments[0].is_some() => Ok(None),
        [_] if is_null(0) => Ok(None),
        [number, places] if places.as_ref().is_some_and(is_whole) || is_null(1) => {
            let (whole, own) = number.as_ref().and_then(shape).ok_or_else(undefined)?;
            let written = arguments.scalar_arguments[1].and_then(whole_number);
            let places = written.and_then(|places| i8::try_from(places.clamp(0, PLACES_MAX)).ok());
            Ok(Some((whole, places.unwrap_or(own))))
        }
        _ => Err(undefined()),
    }
}

/// `div(a, b)`: how often `b` goes into `a`. Error 22012.
fn div() -> RowFunction {
    RowFunction::new(
        "div",
        2..=2,
        |arguments| {
            let shape = |place: usize| SqlType::of_field(&arguments.arg_fields[place]).as_ref().and_then(shape).unwrap_or((28, 10));
            Ok(Field::new("div", decimal_type(shape(0).0 + shape(1).1.unsigned_abs(), 0), true))
        },
        |field, values| {
            let DataType::Decimal128(precision, _) = *field.data_type() else { return Err(SqlError::internal("a quotient is decimal")) };
            let none = Datum::Decimal128(None, precision, 0);
            let [one, other] = values else { return Err(SqlError::internal("a quotient is one of two")) };
            let (Some(one), Some(other)) = (decimal(one)?, decimal(other)?) else { return Ok(none) };
            let quotient = one.whole_quotient(other)?.ok_or_else(overflow)?;
            Ok(Datum::Decimal128(Some(quotient.stored(0)?), precision, 0))
        },
    )
}

/// A number of any type.
fn decimal(value: &Datum) -> SqlResult<Option<Decimal>> {
    Ok(match digits_of(value) {
        None if !value.is_null() => digits_of(&coerce(&SqlType::Numeric(None), value.clone())?),
        number => number,
    })
}
