//! Exact sums of whole and decimal numbers, and their averages: 256 bits wide while they are made, and checked when they are told.

use crate::engine::decimals::{nearest, overflow};
use crate::engine::from_sql;
use crate::error::{SqlError, SqlState};
use crate::types::{Datum, NUMERIC_PRECISION_MAX};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int16Type, Int32Type, Int64Type, i256};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::Accumulator;
use std::collections::HashSet;

/// What becomes of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// It is the result.
    Sum,
    /// It is divided by how many numbers there were, to so many more decimal places than these had.
    Average { more_places: u8 },
}

/// A sum so far, and of how many numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    pub(super) sum: i256,
    pub(super) count: i64,
}

impl Total {
    pub(super) const NONE: Total = Total { sum: i256::ZERO, count: 0 };

    pub(super) fn add(&mut self, value: i128) {
        self.sum = self.sum.wrapping_add(i256::from_i128(value));
        self.count += 1;
    }

    fn take_back(&mut self, value: i128) {
        self.sum = self.sum.wrapping_sub(i256::from_i128(value));
        self.count -= 1;
    }

    /// Adds one that was made of other numbers.
    pub(super) fn merge(&mut self, other: Total) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.count += other.count;
    }

    /// The result as the digits of type `ty`; `None` of no numbers. Error 22003.
    pub(super) fn result(self, kind: Kind, ty: &DataType) -> Result<Option<i128>> {
        if self.count == 0 {
            return Ok(None);
        }
        let value = match kind {
            Kind::Sum => Some(self.sum),
            Kind::Average { more_places } => self.divided(more_places),
        };
        let value = value.and_then(i256::to_i128).filter(|value| match ty {
            DataType::Int64 => i64::try_from(*value).is_ok(),
            _ => value.unsigned_abs() < 10_u128.pow(NUMERIC_PRECISION_MAX.into()),
        });
        let out_of_range = || match ty {
            DataType::Int64 => from_sql(SqlError::new(SqlState::NumericValueOutOfRange, "bigint out of range")),
            _ => from_sql(overflow()),
        };
        value.map(Some).ok_or_else(out_of_range)
    }

    /// Rounded half away from zero.
    fn divided(self, more_places: u8) -> Option<i256> {
        let scaled = self.sum.checked_mul(i256::from_i128(10_i128.pow(more_places.into())))?;
        let count = i256::from_i128(self.count.into());
        nearest(scaled, count)
    }
}

/// The numbers of an array, NULL among them.
pub(super) fn numbers(array: &ArrayRef) -> Result<Box<dyn Iterator<Item = Option<i128>> + '_>> {
    Ok(match array.data_type() {
        DataType::Int16 => Box::new(array.as_primitive::<Int16Type>().iter().map(|value| value.map(i128::from))),
        DataType::Int32 => Box::new(array.as_primitive::<Int32Type>().iter().map(|value| value.map(i128::from))),
        DataType::Int64 => Box::new(array.as_primitive::<Int64Type>().iter().map(|value| value.map(i128::from))),
        DataType::Decimal128(..) => Box::new(array.as_primitive::<Decimal128Type>().iter()),
        other => return internal_err!("a sum of {other}"),
    })
}

/// The sums and counts that a state of [`state_types`] holds.
pub(super) fn totals(states: &[ArrayRef]) -> impl Iterator<Item = Option<Total>> + '_ {
    let sums = states[0].as_primitive::<datafusion::arrow::datatypes::Decimal256Type>();
    let counts: &Int64Array = states[1].as_primitive::<Int64Type>();
    sums.iter().zip(counts.iter()).map(|(sum, count)| Some(Total { sum: sum?, count: count? }))
}

/// The types of the sum and of the count, as they are handed on.
pub(super) fn state_types() -> [DataType; 2] {
    [DataType::Decimal256(76, 0), DataType::Int64]
}

/// A result with its type.
pub(super) fn datum(value: Option<i128>, ty: &DataType) -> Result<Datum> {
    match ty {
        DataType::Int64 => Ok(Datum::Int64(value.and_then(|value| i64::try_from(value).ok()))),
        DataType::Decimal128(precision, scale) => Ok(Datum::Decimal128(value, *precision, *scale)),
        other => internal_err!("a sum as {other}"),
    }
}

/// The sum or the average of one group.
#[derive(Debug)]
pub(super) struct Exact {
    pub(super) total: Total,
    pub(super) kind: Kind,
    pub(super) returns: DataType,
}

impl Accumulator for Exact {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        numbers(&values[0])?.flatten().for_each(|value| self.total.add(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        numbers(&values[0])?.flatten().for_each(|value| self.total.take_back(value));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<Datum> {
        datum(self.total.result(self.kind, &self.returns)?, &self.returns)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<Datum>> {
        Ok(vec![Datum::Decimal256(Some(self.total.sum), 76, 0), Datum::Int64(Some(self.total.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        totals(states).flatten().for_each(|total| self.total.merge(total));
        Ok(())
    }
}

/// The same of the numbers that differ.
#[derive(Debug)]
pub(super) struct Distinct {
    pub(super) seen: HashSet<i128>,
    pub(super) kind: Kind,
    pub(super) returns: DataType,
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.seen.extend(numbers(&values[0])?.flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<Datum> {
        let mut total = Total::NONE;
        self.seen.iter().for_each(|value| total.add(*value));
        datum(total.result(self.kind, &self.returns)?, &self.returns)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.seen.capacity() * size_of::<i128>()
    }

    fn state(&mut self) -> Result<Vec<Datum>> {
        let seen: Vec<Datum> = self.seen.iter().map(|value| Datum::Decimal128(Some(*value), NUMERIC_PRECISION_MAX, 0)).collect();
        Ok(vec![Datum::List(Datum::new_list_nullable(&seen, &distinct_type()))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.seen.extend(numbers(&list)?.flatten());
        }
        Ok(())
    }
}

/// The type of the numbers that differ, as they are handed on.
pub(super) fn distinct_type() -> DataType {
    DataType::Decimal128(NUMERIC_PRECISION_MAX, 0)
}
