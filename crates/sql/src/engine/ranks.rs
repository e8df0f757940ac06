//! Window functions that count rows, with the types of PostgreSQL: the query engine's are of numbers without a sign, which PostgreSQL has not.

use crate::types::SqlType;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use std::ops::Range;
use std::sync::Arc;

/// The query engine's window functions with those that differ.
pub fn with_functions(functions: Vec<Arc<WindowUDF>>) -> Vec<Arc<WindowUDF>> {
    let typed = |counted: Arc<WindowUDF>| match counted.name() {
        "row_number" | "rank" | "dense_rank" => Arc::new(WindowUDF::from(Counted { counted, ty: DataType::Int64 })),
        "ntile" => Arc::new(WindowUDF::from(Counted { counted, ty: DataType::Int32 })),
        _ => counted,
    };
    functions.into_iter().map(typed).collect()
}

/// One of them, and the type of its results.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Counted {
    counted: Arc<WindowUDF>,
    ty: DataType,
}

impl WindowUDFImpl for Counted {
    fn name(&self) -> &str {
        self.counted.name()
    }

    fn signature(&self) -> &Signature {
        self.counted.signature()
    }

    fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>> {
        self.counted.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Counts { counts: self.counted.partition_evaluator_factory(args)?, ty: self.ty.clone() }))
    }

    fn simplify(&self) -> Option<WindowFunctionSimplification> {
        self.counted.simplify()
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let field = self.counted.field(args)?;
        let ty = SqlType::of_arrow(&self.ty).unwrap_or(SqlType::Int8);
        Ok(Arc::new(ty.field(field.name(), field.is_nullable())))
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.counted.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        self.counted.reverse_expr()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.counted.inner().limit_effect(args)
    }
}

/// Its results for one partition.
#[derive(Debug)]
struct Counts {
    counts: Box<dyn PartitionEvaluator>,
    ty: DataType,
}

impl PartitionEvaluator for Counts {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.counts.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.counts.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.counts.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(cast(&self.counts.evaluate_all(values, rows)?, &self.ty)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.counts.evaluate(values, range)?.cast_to(&self.ty)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(cast(&self.counts.evaluate_all_with_rank(rows, ranks)?, &self.ty)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.counts.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.counts.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.counts.include_rank()
    }
}
