//! Decimal numbers of a value each: their rounding, quotients and products, which the query engine cuts off after few places.

use crate::engine::row_function::RowFunction;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::types::{Datum, NUMERIC_PRECISION_MAX};
use datafusion::arrow::datatypes::{DataType, Field, i256};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarUDF};

const QUOTIENT: &str = "rhumb_quotient";
const PRODUCT: &str = "rhumb_product";
/// The decimal places that a quotient has at least, as in PostgreSQL one of up to four digits before the point.
const QUOTIENT_PLACES: i8 = 16;
/// The most decimal places of a product that the query engine makes: as many digits again are left for what is before the point.
const PRODUCT_PLACES_MAX: i8 = 19;

/// A decimal number: its digits, and how many of them are behind the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: i256,
    scale: i8,
}

/// A whole or decimal number; `None` of NULL, and of all others.
pub fn digits_of(value: &Datum) -> Option<Decimal> {
    let (digits, scale) = match value {
        Datum::Int16(value) => ((*value)?.into(), 0),
        Datum::Int32(value) => ((*value)?.into(), 0),
        Datum::Int64(value) => ((*value)?.into(), 0),
        Datum::Decimal128(value, _, scale) => ((*value)?, *scale),
        _ => return None,
    };
    Some(Decimal { digits: i256::from_i128(digits), scale })
}

fn power_of_ten(places: u8) -> Option<i256> {
    i256::from_i128(10).checked_pow(places.into())
}

impl Decimal {
    /// The digits with so many decimal places. Error 22003 for more than a number may have.
    pub fn stored(self, scale: i8) -> SqlResult<i128> {
        let digits = self.rescaled(scale).and_then(|number| number.digits.to_i128()).ok_or_else(overflow)?;
        if digits.unsigned_abs() < 10_u128.pow(NUMERIC_PRECISION_MAX.into()) { Ok(digits) } else { Err(overflow()) }
    }

    /// With so many decimal places: rounded half away from zero.
    fn rescaled(self, scale: i8) -> Option<Decimal> {
        let digits = match i16::from(scale) - i16::from(self.scale) {
            more @ 0.. => self.digits.checked_mul(power_of_ten(more.try_into().ok()?)?)?,
            fewer => nearest(self.digits, power_of_ten(fewer.unsigned_abs().try_into().ok()?)?)?,
        };
        Some(Decimal { digits, scale })
    }

    /// Rounded to so many places, of which negative ones are before the point. `None` if it has too many digits.
    pub fn rounded(self, places: i8) -> Option<Decimal> {
        if places >= self.scale { self.rescaled(places) } else { self.rescaled(places)?.rescaled(places.max(0)) }
    }

    /// The same, but what is cut off does not count.
    pub fn cut(self, places: i8) -> Option<Decimal> {
        if places >= self.scale {
            return self.rescaled(places);
        }
        let unit = power_of_ten(u8::try_from(i16::from(self.scale) - i16::from(places)).ok()?)?;
        Decimal { digits: self.digits.checked_div(unit)?, scale: places }.rescaled(places.max(0))
    }

    /// The least whole number that is not less.
    pub fn up(self) -> Option<Decimal> {
        let cut = self.cut(0)?;
        let more = i256::from_i128((cut.rescaled(self.scale)?.digits < self.digits).into());
        Some(Decimal { digits: cut.digits.checked_add(more)?, scale: 0 })
    }

    /// The greatest whole number that is not more.
    pub fn down(self) -> Option<Decimal> {
        let cut = self.cut(0)?;
        let fewer = i256::from_i128((cut.rescaled(self.scale)?.digits > self.digits).into());
        Some(Decimal { digits: cut.digits.checked_sub(fewer)?, scale: 0 })
    }

    /// -1, 0 or 1.
    pub fn sign(self) -> Decimal {
        let sign = match self.digits.cmp(&i256::ZERO) {
            std::cmp::Ordering::Less => i256::MINUS_ONE,
            std::cmp::Ordering::Equal => i256::ZERO,
            std::cmp::Ordering::Greater => i256::ONE,
        };
        Decimal { digits: sign, scale: 0 }
    }

    /// The quotient with so many decimal places, rounded; `None` if it has too many digits. Error 22012.
    fn quotient(self, by: Decimal, scale: i8) -> SqlResult<Option<Decimal>> {
        Ok(self.fraction(by, scale)?.and_then(|(over, under)| Some(Decimal { digits: nearest(over, under)?, scale })))
    }

    /// The quotient without what is behind the point; `None` if it has too many digits. Error 22012.
    pub fn whole_quotient(self, by: Decimal) -> SqlResult<Option<Decimal>> {
        Ok(self.fraction(by, 0)?.and_then(|(over, under)| Some(Decimal { digits: over.checked_div(under)?, scale: 0 })))
    }

    /// Two numbers whose quotient has so many decimal places.
    fn fraction(self, by: Decimal, scale: i8) -> SqlResult<Option<(i256, i256)>> {
        if by.digits == i256::ZERO {
            return Err(SqlError::new(SqlState::DivisionByZero, "division by zero"));
        }
        let places = i16::from(scale) + i16::from(by.scale) - i16::from(self.scale);
        let power = power_of_ten(u8::try_from(places.unsigned_abs()).unwrap_or(u8::MAX));
        let both = |power: i256| match places {
            0.. => Some((self.digits.checked_mul(power)?, by.digits)),
            _ => Some((self.digits, by.digits.checked_mul(power)?)),
        };
        Ok(power.and_then(both))
    }
}

/// Error 22003.
pub fn overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value overflows numeric format")
}

/// The quotient, rounded half away from zero.
pub fn nearest(over: i256, under: i256) -> Option<i256> {
    let (quotient, rest) = (over.checked_div(under)?, over.checked_rem(under)?);
    let (rest, size) = (rest.checked_abs()?, under.checked_abs()?);
    let one = if (over < i256::ZERO) == (under < i256::ZERO) { i256::ONE } else { i256::MINUS_ONE };
    if rest.checked_add(rest)? >= size { quotient.checked_add(one) } else { Some(quotient) }
}

/// A quotient of decimal numbers, and a product of more decimal places than there is room for; `None` if it is none.
pub fn of_binary(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    let BinaryExpr { left, op, right } = binary;
    let (one, other) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    if !matches!((&one, &other), (DataType::Decimal128(..), _) | (_, DataType::Decimal128(..))) {
        return None;
    }
    let places = places(&one)?.checked_add(places(&other)?)?;
    let function = match op {
        Operator::Divide => function(QUOTIENT, |_| QUOTIENT_PLACES, Decimal::quotient),
        Operator::Multiply if places > PRODUCT_PLACES_MAX => function(PRODUCT, room, |one, other, scale| {
            let digits = one.digits.checked_mul(other.digits);
            Ok(digits.and_then(|digits| Decimal { digits, scale: one.scale + other.scale }.rescaled(scale)))
        }),
        _ => return None,
    };
    Some(ScalarUDF::from(function).call(vec![left.as_ref().clone(), right.as_ref().clone()]))
}

fn places(ty: &DataType) -> Option<i8> {
    match ty {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(0),
        DataType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    }
}

/// The decimal places of a product for which there is room beside the digits before the point.
fn room(types: &[&DataType]) -> i8 {
    let digits = types.iter().map(|ty| match ty {
        DataType::Decimal128(precision, scale) => i16::from(*precision) - i16::from(*scale),
        _ => 19,
    });
    let all = types.iter().filter_map(|ty| places(ty)).map(i16::from).sum::<i16>();
    i8::try_from(all.min(i16::from(NUMERIC_PRECISION_MAX) - digits.sum::<i16>())).unwrap_or_default()
}

/// A function of two numbers, whose result has as many decimal places as either, and at least so many. Errors: 22003, 22012.
fn function(
    name: &'static str,
    places_min: fn(&[&DataType]) -> i8,
    body: impl Fn(Decimal, Decimal, i8) -> SqlResult<Option<Decimal>> + Send + Sync + 'static,
) -> RowFunction {
    let returned = move |arguments: &ReturnFieldArgs<'_>| {
        let types: Vec<&DataType> = arguments.arg_fields.iter().map(|field| field.data_type()).collect();
        let own = types.iter().filter_map(|ty| places(ty)).max().unwrap_or_default();
        Ok(Field::new(name, DataType::Decimal128(NUMERIC_PRECISION_MAX, own.max(places_min(&types))), true))
    };
    RowFunction::new(name, 2..=2, returned, move |field, values| {
        let (DataType::Decimal128(precision, scale), [one, other]) = (field.data_type(), values) else {
            return Err(SqlError::internal("two numbers make a decimal number"));
        };
        let (Some(one), Some(other)) = (digits_of(one), digits_of(other)) else { return Ok(Datum::Decimal128(None, *precision, *scale)) };
        let made = body(one, other, *scale)?.ok_or_else(overflow)?;
        Ok(Datum::Decimal128(Some(made.stored(*scale)?), *precision, *scale))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(digits: i128, scale: i8) -> Decimal {
        Decimal { digits: i256::from_i128(digits), scale }
    }

    #[test]
    fn quotients_are_rounded_half_away_from_zero() {
        let quotient = |one, other, scale| decimal(one, 0).quotient(decimal(other, 0), scale).ok().flatten();
        assert_eq!(quotient(2, 3, 4), Some(decimal(6_667, 4)));
        assert_eq!(quotient(-2, 3, 4), Some(decimal(-6_667, 4)));
        assert_eq!(quotient(1, -2, 0), Some(decimal(-1, 0)));
        assert_eq!(decimal(-75, 1).whole_quotient(decimal(2, 0)).ok().flatten(), Some(decimal(-3, 0)));
        assert!(decimal(1, 0).quotient(decimal(0, 3), 4).is_err());
    }

    #[test]
    fn numbers_are_rounded_to_places_before_and_behind_the_point() {
        let number = decimal(-12_345, 2);
        assert_eq!((number.rounded(1), number.rounded(-1)), (Some(decimal(-1_235, 1)), Some(decimal(-120, 0))));
        assert_eq!((number.cut(1), number.cut(-2)), (Some(decimal(-1_234, 1)), Some(decimal(-100, 0))));
        assert_eq!((number.up(), number.down()), (Some(decimal(-123, 0)), Some(decimal(-124, 0))));
        assert_eq!((decimal(25, 1).rounded(0), decimal(25, 1).rounded(3)), (Some(decimal(3, 0)), Some(decimal(2_500, 3))));
        assert!(decimal(i128::MAX, 0).stored(0).is_err());
    }
}
