//! Arithmetic of dates, times and intervals where the query engine has none, or another: differences of timestamps are intervals, and intervals are as long as
//! their parts together, by which they are compared and ordered.

use super::constants::is_number;
use super::operands::is_comparison;
use crate::engine::aggregates::of_intervals;
use crate::engine::arrays::typing::type_of;
use crate::engine::casts;
use crate::engine::row_function::RowFunction;
use crate::error::{SqlError, SqlState};
use crate::types::{Datum, Interval, MICROS_PER_DAY, SqlType, coerce, interval_out_of_range};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::{Between, Cast, InList, Sort, WindowFunctionDefinition};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, ScalarUDF};
use std::sync::Arc;

const SINCE: &str = "rhumb_since";
const TIMES: &str = "rhumb_times";
const SPAN: &str = "rhumb_span";
const SHIFTED: &str = "rhumb_shifted";
const CONVERTED: &str = "rhumb_converted";
/// More digits than the longest interval has microseconds.
const SPAN_DIGITS: u8 = 38;

/// The expression, not what is below it, as PostgreSQL means it; `None` if the query engine does.
pub(super) fn of_expr(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_interval = |expr: &Expr| type_of(expr, schema) == Some(SqlType::Interval);
    let length = |expr: &Expr| Box::new(span(expr.clone()));
    match expr {
        Expr::BinaryExpr(binary) => of_binary(binary, schema),
        Expr::InList(InList { expr, list, negated }) if is_interval(expr) => {
            Some(Expr::InList(InList { expr: length(expr), list: list.iter().map(|item| span(item.clone())).collect(), negated: *negated }))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_interval(expr) => {
            Some(Expr::Between(Between { expr: length(expr), negated: *negated, low: length(low), high: length(high) }))
        }
        Expr::Cast(Cast { expr: inner, field }) => match (type_of(inner, schema)?, SqlType::of_field(field)?) {
            (SqlType::Time, to @ SqlType::Interval) | (SqlType::Interval, to @ SqlType::Time) => Some(converted(inner, to)),
            _ => None,
        },
        Expr::AggregateFunction(call) if call.params.args.first().is_some_and(is_interval) => {
            let mut call = call.clone();
            call.func = of_intervals(call.func.name())?;
            Some(Expr::AggregateFunction(call))
        }
        Expr::WindowFunction(call) => {
            let mut call = call.clone();
            let mut changed = false;
            if let WindowFunctionDefinition::AggregateUDF(function) = &mut call.fun
                && call.params.args.first().is_some_and(is_interval)
                && let Some(own) = of_intervals(function.name())
            {
                (*function, changed) = (own, true);
            }
            for Sort { expr, .. } in &mut call.params.order_by {
                if is_interval(expr) {
                    (*expr, changed) = (span(expr.clone()), true);
                }
            }
            changed.then_some(Expr::WindowFunction(call))
        }
        _ => None,
    }
}

/// What rows are ordered by: of an interval, its length.
pub(super) fn ordered(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if type_of(&expr, schema) == Some(SqlType::Interval) { Transformed::yes(span(expr)) } else { Transformed::no(expr) }
}

pub(super) fn of_binary(binary: &BinaryExpr, schema: &DFSchema) -> Option<Expr> {
    use Operator::{Divide, Minus, Multiply, Plus, StringConcat};
    use SqlType::{Date, Time, Timestamp, TimestampTz};
    let BinaryExpr { left, op, right } = binary;
    let is_moment = |ty: SqlType| matches!(ty, Date | Timestamp | TimestampTz);
    let plain = |left: Expr, right: Expr| Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op: *op, right: Box::new(right) });
    let cast = |expr: &Expr, ty: SqlType| Expr::Cast(Cast { expr: Box::new(expr.clone()), field: Arc::new(ty.field("", true)) });
    let printed = |expr: &Expr| {
        let field = Arc::new(SqlType::Text.field("", true));
        casts::to_text(&Cast { expr: Box::new(expr.clone()), field }, schema)
    };
    let (one, other) = (left.as_ref().clone(), right.as_ref().clone());
    Some(match (type_of(left, schema)?, op, type_of(right, schema)?) {
        (Date, Minus, Date) => cast(&Expr::BinaryExpr(binary.clone()), SqlType::Int4),
        (from, Minus, to) if is_moment(from) && is_moment(to) => {
            let ty = if [from, to].contains(&TimestampTz) { TimestampTz } else { Timestamp };
            call(since(), vec![cast(left, ty), cast(right, ty)])
        }
        (Time, Minus, Time) => call(since(), vec![one, other]),
        (Date, Plus | Minus, SqlType::Interval) => plain(cast(left, Timestamp), other),
        (SqlType::Interval, Plus, Date) => plain(one, cast(right, Timestamp)),
        (Time, Plus, SqlType::Interval) => call(shifted(), vec![one, other]),
        (Time, Minus, SqlType::Interval) => call(shifted(), vec![one, Expr::Negative(Box::new(other))]),
        (SqlType::Interval, Plus, Time) => call(shifted(), vec![other, one]),
        (Date, Plus, Time) => plain(cast(left, Timestamp), converted(right, SqlType::Interval)),
        (Time, Plus, Date) => plain(converted(left, SqlType::Interval), cast(right, Timestamp)),
        (Timestamp | TimestampTz, Plus | Minus, Time) => plain(one, converted(right, SqlType::Interval)),
        (Time, Plus, Timestamp | TimestampTz) => plain(converted(left, SqlType::Interval), other),
        (text, StringConcat, SqlType::Interval) if text.is_text() => plain(one, printed(right)?),
        (SqlType::Interval, StringConcat, text) if text.is_text() => plain(printed(left)?, other),
        (SqlType::Interval, Multiply | Divide, factor) if is_number(&factor) => {
            call(times(), vec![one, other, Expr::Literal(Datum::Boolean(Some(*op == Divide)), None)])
        }
        (factor, Multiply, SqlType::Interval) if is_number(&factor) => {
            call(times(), vec![other, one, Expr::Literal(Datum::Boolean(Some(false)), None)])
        }
        (SqlType::Interval, op, SqlType::Interval) if is_comparison(*op) => plain(span(one), span(other)),
        _ => return None,
    })
}

fn call(function: RowFunction, arguments: Vec<Expr>) -> Expr {
    ScalarUDF::from(function).call(arguments)
}

/// The time from the second argument to the first: whole days, and the rest.
fn since() -> RowFunction {
    RowFunction::new(
        SINCE,
        2..=2,
        |_| Ok(SqlType::Interval.field(SINCE, true)),
        |_, values| {
            let micros = |value: &Datum| match value {
                Datum::TimestampMicrosecond(value, _) | Datum::Time64Microsecond(value) => Ok(*value),
                Datum::Time64Nanosecond(value) => Ok(value.map(|nanos| nanos / 1_000)),
                _ => Err(SqlError::internal("a difference is one of microseconds")),
            };
            let [one, other] = values else { return Err(SqlError::internal("a difference is one of two")) };
            let (Some(one), Some(other)) = (micros(one)?, micros(other)?) else { return Ok(SqlType::Interval.null()) };
            let micros = one.checked_sub(other).ok_or_else(interval_out_of_range)?;
            let days = i32::try_from(micros / MICROS_PER_DAY).map_err(|_| interval_out_of_range())?;
            Interval { months: 0, days, micros: micros % MICROS_PER_DAY }.stored()
        },
    )
}

/// A time of day, so much later.
fn shifted() -> RowFunction {
    RowFunction::new(
        SHIFTED,
        2..=2,
        |_| Ok(SqlType::Time.field(SHIFTED, true)),
        |_, values| {
            let [time, by] = values else { return Err(SqlError::internal("a time is shifted by an interval")) };
            let (Datum::Time64Microsecond(Some(time)), Some(by)) = (coerce(&SqlType::Time, time.clone())?, Interval::of(by)) else {
                return Ok(SqlType::Time.null());
            };
            Ok(Datum::Time64Microsecond(Some((time + by.micros % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY))))
        },
    )
}

/// An interval, so many times, or divided into so many parts. Errors: 22008, 22012.
fn times() -> RowFunction {
    RowFunction::new(
        TIMES,
        3..=3,
        |_| Ok(SqlType::Interval.field(TIMES, true)),
        |_, values| {
            let [value, factor, divides] = values else { return Err(SqlError::internal("a product is one of two")) };
            let (Some(value), Datum::Float64(Some(factor))) = (Interval::of(value), coerce(&SqlType::Float8, factor.clone())?) else {
                return Ok(SqlType::Interval.null());
            };
            let divides = *divides == Datum::Boolean(Some(true));
            if divides && factor == 0.0 {
                return Err(SqlError::new(SqlState::DivisionByZero, "division by zero"));
            }
            value.scaled(|part| if divides { part / factor } else { part * factor })?.stored()
        },
    )
}

/// How long an interval is, in microseconds.
fn span(interval: Expr) -> Expr {
    let function = RowFunction::new(
        SPAN,
        1..=1,
        |_| Ok(Field::new(SPAN, DataType::Decimal128(SPAN_DIGITS, 0), true)),
        |_, values| {
            let value = values.first().and_then(Interval::of);
            Ok(Datum::Decimal128(value.map(Interval::span), SPAN_DIGITS, 0))
        },
    );
    call(function, vec![interval])
}

/// A time of day as an interval, or the other way round, of which whole days are left out.
fn converted(value: &Expr, to: SqlType) -> Expr {
    // To the query engine functions of one name are the same.
    let name = format!("{CONVERTED}_{}", to.oid());
    let function = RowFunction::new(
        name,
        1..=1,
        move |_| Ok(to.field(CONVERTED, true)),
        move |_, values| match values.first() {
            Some(value) => coerce(&to, value.clone()),
            None => Err(SqlError::internal("one value is converted")),
        },
    );
    call(function, vec![value.clone()])
}
