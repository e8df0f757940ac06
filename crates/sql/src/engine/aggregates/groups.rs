//! Exact sums and averages of many groups at once.

use super::exact::{Kind, Total, datum, numbers, state_types, totals};
use crate::types::Datum;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use rhumb_generic::array_of;

/// A sum for each group.
#[derive(Debug)]
pub(super) struct Groups {
    totals: Vec<Total>,
    kind: Kind,
    returns: DataType,
}

impl Groups {
    pub(super) fn new(kind: Kind, returns: DataType) -> Groups {
        Groups { totals: Vec::new(), kind, returns }
    }
}

fn is_taken(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Groups {
    fn update_batch(&mut self, values: &[ArrayRef], groups: &[usize], filter: Option<&BooleanArray>, count: usize) -> Result<()> {
        self.totals.resize(count, Total::NONE);
        for (row, (value, group)) in numbers(&values[0])?.zip(groups).enumerate() {
            if let Some(value) = value
                && is_taken(filter, row)
            {
                self.totals[*group].add(value);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.totals.resize(count, Total::NONE);
        for (total, group) in totals(states).zip(groups) {
            if let Some(total) = total {
                self.totals[*group].merge(total);
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut each = Groups::new(self.kind, self.returns.clone());
        let rows = values[0].len();
        each.update_batch(values, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        each.state(EmitTo::All)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let value = |total: Total| datum(total.result(self.kind, &self.returns)?, &self.returns);
        let values = emit_to.take_needed(&mut self.totals).into_iter().map(value).collect::<Result<Vec<Datum>>>()?;
        array_of(&self.returns, values)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let taken = emit_to.take_needed(&mut self.totals);
        let sums = taken.iter().map(|total| Datum::Decimal256(Some(total.sum), 76, 0)).collect();
        let counts = taken.iter().map(|total| Datum::Int64(Some(total.count))).collect();
        let [sum, count] = state_types();
        Ok(vec![array_of(&sum, sums)?, array_of(&count, counts)?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.totals.capacity() * size_of::<Total>()
    }
}
