//! `sum()`, `avg()`, `min()` and `max()` of intervals, whose parts the query engine would compare one by one.

use crate::engine::from_sql;
use crate::error::SqlError;
use crate::types::{Datum, Interval, SqlType};
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNanoType};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    Average,
    Least,
    Greatest,
}

/// The aggregate of intervals for one of the query engine; `None` if that one serves.
pub fn of_intervals(name: &str) -> Option<Arc<AggregateUDF>> {
    let (kind, name) = match name {
        "sum" => (Kind::Sum, "rhumb_interval_sum"),
        "avg" => (Kind::Average, "rhumb_interval_avg"),
        "min" => (Kind::Least, "rhumb_interval_min"),
        "max" => (Kind::Greatest, "rhumb_interval_max"),
        _ => return None,
    };
    Some(Arc::new(AggregateUDF::from(Intervals { kind, name, signature: Signature::any(1, Volatility::Immutable) })))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Intervals {
    kind: Kind,
    name: &'static str,
    signature: Signature,
}

impl AggregateUDFImpl for Intervals {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(SqlType::Interval.arrow())
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct && matches!(self.kind, Kind::Sum | Kind::Average) {
            return Err(from_sql(SqlError::unsupported("DISTINCT in sums of intervals is not supported")));
        }
        Ok(Box::new(Total { kind: self.kind, value: Interval::default(), count: 0 }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |ty: SqlType, part| Arc::new(ty.field(&format_state_name(args.name, part), true));
        Ok(vec![field(SqlType::Interval, "value"), field(SqlType::Int8, "count")])
    }
}

/// What has been found so far, of how many.
#[derive(Debug)]
struct Total {
    kind: Kind,
    value: Interval,
    count: i64,
}

impl Total {
    fn add(&mut self, value: Interval, count: i64) -> Result<()> {
        self.value = match self.kind {
            Kind::Sum | Kind::Average => self.value.plus(value).map_err(from_sql)?,
            _ if self.count == 0 => value,
            Kind::Least => std::cmp::min_by_key(self.value, value, |interval| interval.span()),
            Kind::Greatest => std::cmp::max_by_key(value, self.value, |interval| interval.span()),
        };
        self.count += count;
        Ok(())
    }
}

fn intervals(array: &ArrayRef) -> impl Iterator<Item = Option<Interval>> + '_ {
    array.as_primitive::<IntervalMonthDayNanoType>().iter().map(|value| value.map(Interval::of_arrow))
}

impl Accumulator for Total {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        intervals(&values[0]).flatten().try_for_each(|value| self.add(value, 1))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        intervals(&values[0]).flatten().try_for_each(|value| self.add(value.negated().map_err(from_sql)?, -1))
    }

    fn supports_retract_batch(&self) -> bool {
        matches!(self.kind, Kind::Sum | Kind::Average)
    }

    fn evaluate(&mut self) -> Result<Datum> {
        let made = match self.kind {
            _ if self.count == 0 => return Ok(SqlType::Interval.null()),
            Kind::Average => self.value.scaled(|part| part / self.count as f64),
            _ => Ok(self.value),
        };
        made.and_then(Interval::stored).map_err(from_sql)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<Datum>> {
        let value = self.value.stored().map_err(from_sql)?;
        Ok(vec![value, Datum::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let counts = states[1].as_primitive::<Int64Type>().iter().map(Option::unwrap_or_default);
        let states = intervals(&states[0]).zip(counts).filter(|(_, count)| *count > 0);
        states.filter_map(|(value, count)| Some((value?, count))).try_for_each(|(value, count)| self.add(value, count))
    }
}
