//! `sum()` and `avg()`: of whole and decimal numbers they are exact, of all others the query engine's.

use super::exact::{Distinct, Exact, Kind, Total, distinct_type, state_types};
use super::groups::Groups;
use crate::engine::from_sql;
use crate::error::{SqlError, SqlState};
use crate::types::NUMERIC_PRECISION_MAX;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature, Volatility};
use std::collections::HashSet;
use std::sync::Arc;

/// The decimal places that an average of whole numbers has, as PostgreSQL shows one of up to four digits before the point.
const AVERAGE_PLACES: u8 = 16;

/// Both of them.
pub(super) fn each() -> Vec<Arc<AggregateUDF>> {
    let signature = || Signature::user_defined(Volatility::Immutable);
    let sum = Numbers { is_average: false, others: Arc::new(AggregateUDF::from(Sum::new())), signature: signature() };
    let average = Numbers { is_average: true, others: Arc::new(AggregateUDF::from(Avg::new())), signature: signature() };
    vec![Arc::new(AggregateUDF::from(sum)), Arc::new(AggregateUDF::from(average))]
}

/// One of them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Numbers {
    is_average: bool,
    /// The one of the query engine.
    others: Arc<AggregateUDF>,
    signature: Signature,
}

impl Numbers {
    fn kind(&self, argument: &DataType) -> Kind {
        let places = match argument {
            // As many as there is room for beside the digits before the point.
            DataType::Decimal128(precision, scale) => {
                let scale = u8::try_from(*scale).unwrap_or_default();
                AVERAGE_PLACES.min(NUMERIC_PRECISION_MAX - precision + scale).saturating_sub(scale)
            }
            _ => AVERAGE_PLACES,
        };
        if self.is_average { Kind::Average { more_places: places } } else { Kind::Sum }
    }
}

/// True for a type whose sums are made here.
fn is_exact(ty: &DataType) -> bool {
    matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..))
}

fn undefined(name: &str, arguments: &[DataType]) -> SqlError {
    let arguments: Vec<String> = arguments.iter().map(DataType::to_string).collect();
    SqlError::new(SqlState::UndefinedFunction, format!("function {name}({}) does not exist", arguments.join(", ")))
}

impl AggregateUDFImpl for Numbers {
    fn name(&self) -> &str {
        self.others.name()
    }

    fn aliases(&self) -> &[String] {
        self.others.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [argument] = arguments else { return Err(from_sql(undefined(self.name(), arguments))) };
        let coerced = match argument {
            ty if is_exact(ty) => ty.clone(),
            DataType::Int8 | DataType::UInt8 => DataType::Int16,
            DataType::UInt16 => DataType::Int32,
            DataType::UInt32 | DataType::Null => DataType::Int64,
            DataType::UInt64 => DataType::Decimal128(20, 0),
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => DataType::Decimal128(*precision, *scale),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
            DataType::Duration(_) | DataType::Interval(_) => argument.clone(),
            _ => return Err(from_sql(undefined(self.name(), arguments))),
        };
        Ok(vec![coerced])
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match &arguments[0] {
            // They become [aggregates of their own](super::intervals).
            ty @ DataType::Interval(_) => Ok(ty.clone()),
            ty if !is_exact(ty) => self.others.return_type(arguments),
            DataType::Int16 | DataType::Int32 if !self.is_average => Ok(DataType::Int64),
            DataType::Decimal128(_, scale) => {
                let more = if let Kind::Average { more_places } = self.kind(&arguments[0]) { more_places as i8 } else { 0 };
                Ok(DataType::Decimal128(NUMERIC_PRECISION_MAX, scale + more))
            }
            _ => Ok(DataType::Decimal128(NUMERIC_PRECISION_MAX, if self.is_average { AVERAGE_PLACES as i8 } else { 0 })),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let argument = args.expr_fields[0].data_type();
        if !is_exact(argument) {
            return self.others.accumulator(args);
        }
        let (kind, returns) = (self.kind(argument), args.return_field.data_type().clone());
        Ok(if args.is_distinct {
            Box::new(Distinct { seen: HashSet::new(), kind, returns })
        } else {
            Box::new(Exact { total: Total::NONE, kind, returns })
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !is_exact(args.input_fields[0].data_type()) {
            return self.others.state_fields(args);
        }
        let field = |part, ty| Arc::new(Field::new(format_state_name(args.name, part), ty, true));
        if args.is_distinct {
            let list = DataType::List(Arc::new(Field::new_list_field(distinct_type(), true)));
            return Ok(vec![field("distinct", list)]);
        }
        let [sum, count] = state_types();
        Ok(vec![field("sum", sum), field("count", count)])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        if is_exact(args.expr_fields[0].data_type()) { !args.is_distinct } else { self.others.groups_accumulator_supported(args) }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let argument = args.expr_fields[0].data_type();
        if !is_exact(argument) {
            return self.others.create_groups_accumulator(args);
        }
        Ok(Box::new(Groups::new(self.kind(argument), args.return_field.data_type().clone())))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if is_exact(args.expr_fields[0].data_type()) { self.accumulator(args) } else { self.others.create_sliding_accumulator(args) }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}
