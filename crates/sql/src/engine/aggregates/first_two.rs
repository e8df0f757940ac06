//! The first two of some values: as many as it takes to see whether there is more than one.

use crate::types::Datum;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use std::sync::{Arc, LazyLock};

/// How many are kept.
const KEPT: usize = 2;

/// The aggregate, whose result is an array. No client calls it.
pub fn first_two() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> =
        LazyLock::new(|| Arc::new(AggregateUDF::from(FirstTwo(Signature::any(1, Volatility::Immutable)))));
    FUNCTION.clone()
}

fn list_of(ty: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(ty.clone(), true)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FirstTwo(Signature);

impl AggregateUDFImpl for FirstTwo {
    fn name(&self) -> &str {
        "rhumb_first_two"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(list_of(&arguments[0]))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Kept { values: Vec::new(), ty: args.expr_fields[0].data_type().clone() }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let ty = list_of(args.input_fields[0].data_type());
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "kept"), ty, true))])
    }
}

#[derive(Debug)]
struct Kept {
    values: Vec<Datum>,
    ty: DataType,
}

impl Kept {
    fn keep(&mut self, values: &dyn Array) -> Result<()> {
        for row in 0..values.len().min(KEPT - self.values.len()) {
            self.values.push(Datum::try_from_array(values, row)?);
        }
        Ok(())
    }

    fn list(&self) -> Datum {
        Datum::List(Datum::new_list(&self.values, &self.ty, true))
    }
}

impl Accumulator for Kept {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match values {
            [values] => self.keep(values),
            _ => internal_err!("it has one argument"),
        }
    }

    fn evaluate(&mut self) -> Result<Datum> {
        Ok(self.list())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(Datum::size).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<Datum>> {
        Ok(vec![self.list()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|states| states.as_list_opt::<i32>()) else {
            return internal_err!("its state is a list");
        };
        lists.iter().flatten().try_for_each(|list| self.keep(&list))
    }
}
