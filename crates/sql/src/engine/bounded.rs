//! Functions whose results may be much larger than what they are given, with a bound on how much they make.
//!
//! The query engine counts what it sorts, groups and joins, but not what a function makes: `repeat('x', 2000000000)`, or a few `||` of a
//! text with itself, took gigabytes. So each such function is told how many bytes its result may take before it makes it, and a batch
//! of rows is cut into parts that stay within the bound. `||` is looked at afterwards: it makes at most twice what it was given, and
//! nothing that it is given is larger than the bound.
//!
//! A statement may have a thousand such calls, whose results are there at the same time. So its calls share a bound ([`share`]). And what the
//! planner finds to be constant would be kept with the plan, or copied wherever the plan names it, so while it is [`Folding`](super::limits::Folding) these
//! functions make no more than a few bytes; what is larger is made when the statement runs.
//!
//! Invariants: what one evaluation makes of one batch of rows is at most [`MADE_BYTES_MAX`](super::limits::MADE_BYTES_MAX), what all calls of a statement make of one
//! batch each is at most [`STATEMENT_BYTES_MAX`], or the statement ends with SQLSTATE 54000. A constant made while planning has at most
//! [`FOLDED_BYTES_MAX`](super::limits::FOLDED_BYTES_MAX) more than what it is made of.

use super::limits::{FOLDED_BYTES_MAX, MADE_BYTES_MAX, is_folding, not_now, too_large};
use super::row_function::RowFunction;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, binary_expr,
};
use datafusion::sql::sqlparser::ast::{self, BinaryOperator};
use std::sync::Arc;

/// The bytes that all calls of a statement together may make of one batch of rows each.
const STATEMENT_BYTES_MAX: u64 = 256 << 20;
/// The longest character in bytes.
const CHARACTER_BYTES_MAX: u64 = 4;
/// The bytes that a value counts for that is no text.
const OTHER_BYTES: u64 = 64;

/// How much a function makes of what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Growth {
    /// The first argument so often.
    Times,
    /// So many characters.
    Characters,
    /// All arguments.
    Sum,
    /// All but the first argument, with the first between them.
    Separated,
    /// The third argument for each second one in the first.
    Replace,
    /// The third argument, in which the match may stand, for each match in the first.
    ReplaceMatches,
}

/// What `||` of texts is to the query engine.
pub const JOINED: &str = "bounded";

/// What a cast to an array is to the query engine: a function of a value, the number of the type and its modifier.
pub const TO_ARRAY: &str = "rhumb_to_array";

/// Functions of arrays that may make much of little.
const GROWING_ARRAYS: [&str; 7] =
    ["array_append", "array_cat", "array_prepend", "array_replace", "array_to_string", "string_to_array", TO_ARRAY];

const GROWING: [(&str, Growth); 9] = [
    ("concat", Growth::Sum),
    ("concat_ws", Growth::Separated),
    ("lpad", Growth::Characters),
    ("make_array", Growth::Sum),
    ("overlay", Growth::Sum),
    ("regexp_replace", Growth::ReplaceMatches),
    ("repeat", Growth::Times),
    ("replace", Growth::Replace),
    ("rpad", Growth::Characters),
];

/// True if an expression is, by itself, a call that may make much of little.
pub fn is_growing(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Function(function) => {
            let name = function.name.0.last().and_then(ast::ObjectNamePart::as_ident);
            let mut growing = GROWING.iter().map(|(name, _)| *name).chain(GROWING_ARRAYS);
            name.is_some_and(|name| growing.any(|growing| name.value.eq_ignore_ascii_case(growing)))
        }
        ast::Expr::BinaryOp { op, .. } => *op == BinaryOperator::StringConcat,
        ast::Expr::Overlay { .. } | ast::Expr::Array(_) => true,
        _ => false,
    }
}

/// The bytes that each of so many calls in a statement may make of one batch of rows.
pub fn share(calls: usize) -> u64 {
    (STATEMENT_BYTES_MAX / (calls as u64).max(1)).min(MADE_BYTES_MAX)
}

/// The same function, with a bound if it may make much of little.
pub fn bounded(function: &Arc<ScalarUDF>, bytes_max: u64) -> Arc<ScalarUDF> {
    match GROWING.iter().find(|(name, _)| *name == function.name()) {
        Some((_, growth)) => Arc::new(ScalarUDF::from(Bounded { function: function.clone(), growth: *growth, bytes_max })),
        None => match function.inner().downcast_ref::<RowFunction>() {
            Some(row) if bytes_max < MADE_BYTES_MAX => Arc::new(ScalarUDF::from(row.with_bound(bytes_max))),
            _ => function.clone(),
        },
    }
}

/// Plans with a bound where SQL has a syntax of its own: `||` and OVERLAY.
#[derive(Debug)]
pub struct Planner {
    /// The bytes that each of them may make of one batch of rows.
    pub bytes_max: u64,
}

impl ExprPlanner for Planner {
    fn plan_binary_op(&self, expr: RawBinaryExpr, _schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op != BinaryOperator::StringConcat {
            return Ok(PlannerResult::Original(expr));
        }
        let joined = binary_expr(expr.left, Operator::StringConcat, expr.right);
        Ok(PlannerResult::Planned(ScalarUDF::from(Checked::new(self.bytes_max)).call(vec![joined])))
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let overlay = Bounded { function: datafusion::functions::core::overlay(), growth: Growth::Sum, bytes_max: self.bytes_max };
        Ok(PlannerResult::Planned(ScalarUDF::from(overlay).call(args)))
    }
}

/// A function that says how much it would make before it makes it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    function: Arc<ScalarUDF>,
    growth: Growth,
    bytes_max: u64,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.inner().return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.inner().coerce_types(types)
    }

    fn is_strict(&self) -> bool {
        self.function.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { args.number_rows };
        let made = self.growth.made(&args.args, rows)?;
        if made.iter().any(|bytes| *bytes > self.bytes_max) {
            return Err(too_large(self.name(), self.bytes_max));
        }
        if is_folding(&args) && made.iter().any(|bytes| *bytes > FOLDED_BYTES_MAX) {
            return Err(not_now());
        }
        if is_one {
            return self.function.invoke_with_args(args);
        }
        // A constant among the arguments may be written out for every row.
        let given: u64 = args
            .args
            .iter()
            .map(|arg| if let ColumnarValue::Scalar(_) = arg { lengths(arg, 1) } else { Ok(vec![0]) })
            .try_fold(0, |sum: u64, lengths| lengths.map(|lengths| sum.saturating_add(lengths[0])))?;
        let (mut parts, mut total): (Vec<ArrayRef>, u64) = (Vec::new(), 0);
        let mut start = 0;
        while start < rows {
            let mut within = self.bytes_max;
            let next = |bytes: &&u64| {
                let left = within.checked_sub(bytes.saturating_add(given));
                within = left.unwrap_or(0);
                left.is_some()
            };
            let count = made[start..].iter().take_while(next).count().max(1);
            let part = self.function.invoke_with_args(part(&args, start, count))?.into_array(count)?;
            total = total.saturating_add(text_bytes(&part)?);
            if total > self.bytes_max {
                return Err(too_large(self.name(), self.bytes_max));
            }
            parts.push(part);
            start += count;
        }
        if parts.is_empty() {
            return self.function.invoke_with_args(args);
        }
        let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }
}

/// The arguments of `count` rows from row `start`.
fn part(args: &ScalarFunctionArgs, start: usize, count: usize) -> ScalarFunctionArgs {
    let cut = |arg: &ColumnarValue| match arg {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, count)),
        scalar @ ColumnarValue::Scalar(_) => scalar.clone(),
    };
    ScalarFunctionArgs { args: args.args.iter().map(cut).collect(), number_rows: count, ..args.clone() }
}

impl Growth {
    /// The bytes that each row may become at the most.
    fn made(self, args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
        let length = |arg: usize| args.get(arg).map_or_else(|| Ok(vec![0; rows]), |arg| lengths(arg, rows));
        let of_three = |made: fn(u64, u64, u64) -> u64| -> Result<Vec<u64>> {
            let (text, from, to) = (length(0)?, length(1)?, length(2)?);
            Ok(text.into_iter().zip(from).zip(to).map(|((text, from), to)| made(text, from, to)).collect())
        };
        match self {
            Growth::Times => {
                Ok(length(0)?.into_iter().zip(numbers(args.get(1), rows)?).map(|(text, times)| text.saturating_mul(times)).collect())
            }
            Growth::Characters => {
                Ok(numbers(args.get(1), rows)?.into_iter().map(|characters| characters.saturating_mul(CHARACTER_BYTES_MAX)).collect())
            }
            Growth::Sum => sum(args, rows),
            Growth::Separated => {
                let between = args.len().saturating_sub(2) as u64;
                let separators = length(0)?.into_iter().map(|separator| separator.saturating_mul(between));
                Ok(sum(args.get(1..).unwrap_or(&[]), rows)?
                    .into_iter()
                    .zip(separators)
                    .map(|(sum, more)| sum.saturating_add(more))
                    .collect())
            }
            Growth::Replace => of_three(|text, from, to| match text.checked_div(from) {
                Some(places) => text.saturating_add(places.saturating_mul(to.saturating_sub(from))),
                None => text,
            }),
            // What stands for a part of the match may add half as much again.
            Growth::ReplaceMatches => of_three(|text, _, to| text.saturating_add(text.saturating_add(1).saturating_mul(to))),
        }
    }
}

/// Of each row the bytes of all arguments together.
fn sum(args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
    let mut sums: Vec<u64> = vec![0; rows];
    for arg in args {
        sums.iter_mut().zip(lengths(arg, rows)?).for_each(|(sum, length)| *sum = sum.saturating_add(length));
    }
    Ok(sums)
}

/// The bytes of each value of an argument.
fn lengths(arg: &ColumnarValue, rows: usize) -> Result<Vec<u64>> {
    match arg {
        ColumnarValue::Array(array) => array_lengths(array),
        ColumnarValue::Scalar(value) => Ok(vec![array_lengths(&value.to_array()?)?.first().copied().unwrap_or(0); rows]),
    }
}

/// The bytes of each value of an array, roughly.
pub fn array_lengths(array: &ArrayRef) -> Result<Vec<u64>> {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, List, Utf8, Utf8View};
    if let List(_) = array.data_type() {
        let lists = array.as_list::<i32>();
        let values = match lists.values().data_type().primitive_width() {
            Some(width) => vec![width as u64; lists.values().len()],
            None => array_lengths(lists.values())?,
        };
        // Where each value ends, so that a list is a difference.
        let mut total: u64 = 0;
        let mut ends = vec![0];
        ends.extend(values.iter().map(|bytes| {
            total = total.saturating_add(*bytes);
            total
        }));
        let at = |offset: i32| ends.get(offset as usize).copied().unwrap_or(total);
        return Ok(lists
            .value_offsets()
            .windows(2)
            .map(|ends| at(ends[1]).saturating_sub(at(ends[0])).saturating_add(OTHER_BYTES))
            .collect());
    }
    if !matches!(array.data_type(), Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView) {
        return Ok(vec![OTHER_BYTES; array.len()]);
    }
    integers(&length(array)?)
}

/// The values of an argument that says how often or how many, if it is there.
fn numbers(arg: Option<&ColumnarValue>, rows: usize) -> Result<Vec<u64>> {
    match arg {
        None => Ok(vec![0; rows]),
        Some(ColumnarValue::Array(array)) => integers(array),
        Some(ColumnarValue::Scalar(value)) => Ok(vec![integers(&value.to_array()?)?.first().copied().unwrap_or(0); rows]),
    }
}

/// The values of an array of numbers; those below zero and NULL are 0.
fn integers(array: &ArrayRef) -> Result<Vec<u64>> {
    let array = cast(array, &DataType::Int64)?;
    Ok(array.as_primitive::<Int64Type>().iter().map(|value| value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)).collect())
}

fn text_bytes(array: &ArrayRef) -> Result<u64> {
    Ok(array_lengths(array)?.into_iter().fold(0, u64::saturating_add))
}

/// Its argument, unless that is larger than the bound.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    signature: Signature,
    bytes_max: u64,
}

impl Checked {
    fn new(bytes_max: u64) -> Checked {
        Checked { signature: Signature::any(1, Volatility::Immutable), bytes_max }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        JOINED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(args.arg_fields[0].clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_folding = is_folding(&args);
        let joined = args.args.remove(0);
        let bytes = match &joined {
            ColumnarValue::Array(array) => text_bytes(array)?,
            ColumnarValue::Scalar(_) => lengths(&joined, 1)?[0],
        };
        match bytes {
            _ if bytes > self.bytes_max => Err(too_large("||", self.bytes_max)),
            _ if is_folding && bytes > FOLDED_BYTES_MAX => Err(not_now()),
            _ => Ok(joined),
        }
    }
}
