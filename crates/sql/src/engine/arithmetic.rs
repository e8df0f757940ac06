//! Sums, differences, products and quotients: PostgreSQL refuses what is out of range, where the query engine's wrap around or are infinite.
//!
//! A chain such as `a + b - c` is one call, however long: the engine looks at the types of all that is below each call.

use crate::engine::from_sql;
use crate::engine::tree::rewrite;
use crate::error::{SqlError, SqlState};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, sub};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// What the query engine calls the function.
const ARITHMETIC: &str = "rhumb_arithmetic";

/// The operation as one that is checked, or the expression as it was: it is none, or not of whole or floating-point numbers.
fn checked(expr: Expr, schema: &DFSchema) -> (Expr, bool) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match Step::of(op, type_of(&left, schema), type_of(&right, schema)) {
            Some(step) => (chained(*left, step, *right), true),
            None => (Expr::BinaryExpr(BinaryExpr { left, op, right }), false),
        },
        Expr::Negative(inner) => {
            let ty = type_of(&inner, schema).filter(is_whole);
            match ty.and_then(|ty| Some((ScalarValue::new_zero(&ty).ok()?, Step { op: Operation::Subtract, ty }))) {
                Some((zero, step)) => (chained(Expr::Literal(zero, None), step, *inner), true),
                None => (Expr::Negative(inner), false),
            }
        }
        other => (other, false),
    }
}

/// An expression with all of its arithmetic checked.
pub fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    rewrite(expr, &mut |expr| {
        let (expr, is_changed) = checked(expr, schema);
        Ok(if is_changed { Transformed::yes(expr) } else { Transformed::no(expr) })
    })
}

fn chained(left: Expr, step: Step, right: Expr) -> Expr {
    let (mut steps, mut operands) = match left {
        Expr::ScalarFunction(ScalarFunction { func, args }) if of(&func).is_some() => {
            (of(&func).map(|chain| chain.steps.clone()).unwrap_or_default(), args)
        }
        other => (Vec::new(), vec![other]),
    };
    steps.push(step);
    operands.push(right);
    let function = Arithmetic { steps, signature: Signature::variadic_any(Volatility::Immutable) };
    ScalarUDF::from(function).call(operands)
}

fn of(function: &ScalarUDF) -> Option<&Arithmetic> {
    function.inner().downcast_ref::<Arithmetic>()
}

/// The type of an operand. Of a chain only its last step is looked at.
fn type_of(expr: &Expr, schema: &DFSchema) -> Option<DataType> {
    match expr {
        Expr::ScalarFunction(function) if of(&function.func).is_some() => of(&function.func)?.steps.last().map(|step| step.ty.clone()),
        other => other.get_type(schema).ok(),
    }
}

fn is_whole(ty: &DataType) -> bool {
    matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

fn is_floating(ty: &DataType) -> bool {
    matches!(ty, DataType::Float32 | DataType::Float64)
}

fn is_number(ty: &DataType) -> bool {
    is_whole(ty) || is_floating(ty) || matches!(ty, DataType::Decimal128(..))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// An operation, and the type of its operands and its result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Step {
    op: Operation,
    ty: DataType,
}

impl Step {
    /// `None` for what the query engine does as PostgreSQL does.
    fn of(op: Operator, left: Option<DataType>, right: Option<DataType>) -> Option<Step> {
        let (left, right) = (left?, right?);
        let ty = match (&left, &right) {
            (left, right) if is_whole(left) && is_whole(right) => {
                if left.primitive_width() < right.primitive_width() {
                    right.clone()
                } else {
                    left.clone()
                }
            }
            (DataType::Float32, DataType::Float32) => DataType::Float32,
            (floating, other) | (other, floating) if is_floating(floating) && is_number(other) => DataType::Float64,
            _ => return None,
        };
        let op = match op {
            Operator::Plus => Operation::Add,
            Operator::Minus => Operation::Subtract,
            Operator::Multiply => Operation::Multiply,
            Operator::Divide if is_floating(&ty) => Operation::Divide,
            _ => return None,
        };
        Some(Step { op, ty })
    }

    fn take(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        let (left, right) = (cast(left, &self.ty)?, cast(right, &self.ty)?);
        let operation = match self.op {
            Operation::Add => add,
            Operation::Subtract => sub,
            Operation::Multiply => mul,
            Operation::Divide => div,
        };
        let result = operation(&left, &right)?;
        match self.ty {
            DataType::Float32 => self.check::<Float32Type>(&left, &right, &result, f32::is_finite)?,
            DataType::Float64 => self.check::<Float64Type>(&left, &right, &result, f64::is_finite)?,
            _ => {}
        }
        Ok(result)
    }

    /// Refuses a division by zero, and what is infinite though its operands are not. Errors 22003, 22012.
    fn check<T: ArrowPrimitiveType>(
        &self,
        left: &ArrayRef,
        right: &ArrayRef,
        result: &ArrayRef,
        is_finite: fn(T::Native) -> bool,
    ) -> Result<()>
    where
        T::Native: Default,
    {
        let (left, right, result) = (left.as_primitive::<T>(), right.as_primitive::<T>(), result.as_primitive::<T>());
        for row in (0..result.len()).filter(|row| result.is_valid(*row)) {
            if self.op == Operation::Divide && right.value(row) == T::Native::default() {
                return Err(from_sql(SqlError::new(SqlState::DivisionByZero, "division by zero")));
            }
            if !is_finite(result.value(row)) && is_finite(left.value(row)) && is_finite(right.value(row)) {
                return Err(from_sql(SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: overflow")));
            }
        }
        Ok(())
    }
}

/// A chain of operations, from the left.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    /// One fewer than there are operands, at least one.
    steps: Vec<Step>,
    signature: Signature,
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        ARITHMETIC
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        match self.steps.last() {
            Some(step) => Ok(step.ty.clone()),
            None => internal_err!("a chain has a step"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = arguments.args.iter().all(|operand| matches!(operand, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { arguments.number_rows };
        let mut operands = arguments.args.iter().map(|operand| operand.to_array(rows));
        let Some(first) = operands.next() else { return internal_err!("a chain has operands") };
        let result = operands.zip(&self.steps).try_fold(first?, |result, (operand, step)| step.take(&result, &operand?))?;
        if is_one { ScalarValue::try_from_array(&result, 0).map(ColumnarValue::Scalar) } else { Ok(ColumnarValue::Array(result)) }
    }
}
