//! Assignments as they are carried out: on rows that were read, or on rows as the commit finds them.

use super::access::exact;
use super::evaluate::Compiled;
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult};
use crate::schema::TableDescriptor;
use crate::storage::{Row, operations};
use crate::types::{Datum, coerce};
use rhumb_core::fields::Change;

/// The assignments of a statement.
#[derive(Debug)]
pub struct Assignments(pub Vec<(usize, Compiled)>);

impl Assignments {
    /// The rows that `rows` become; `input(row, position)` is the value of an input of the expressions' scope.
    pub fn apply<'a>(
        &self,
        engine: &Engine,
        table: &TableDescriptor,
        rows: &[Row],
        input: impl Fn(usize, usize) -> &'a Datum + Copy,
    ) -> SqlResult<Vec<Row>> {
        let mut changed = rows.to_vec();
        for (column, value) in &self.0 {
            let values = value.evaluate(engine, rows.len(), input)?;
            for (row, value) in changed.iter_mut().zip(values) {
                row[*column] = assigned(table, *column, value)?;
            }
        }
        Ok(changed)
    }
}

/// New values that follow from the old ones without their being read: the column assigned, and how it changes.
#[derive(Debug)]
pub struct Amendments(pub Vec<(usize, Amendment)>);

/// How a column changes.
#[derive(Debug)]
pub enum Amendment {
    /// To a value that has nothing to do with the row.
    Set(Compiled),
    /// By an amount that has nothing to do with the row.
    Add { amount: Compiled, negative: bool },
}

impl Amendments {
    /// The changes of a row's fields; `None` if a value is not one that can be set or added without a look at the row: it is to be
    /// rounded, or does not fit.
    pub fn changes(&self, engine: &Engine, table: &TableDescriptor, parameters: &[Datum]) -> SqlResult<Option<Vec<Change>>> {
        let width = table.columns.len();
        let value = |expr: &Compiled| {
            let values = expr.evaluate(engine, 1, |_, input| &parameters[input - width])?;
            SqlResult::Ok(values.into_iter().next().expect("one value for one row"))
        };
        let mut changes = Vec::with_capacity(self.0.len());
        for (column, amendment) in &self.0 {
            let change = match amendment {
                Amendment::Set(expr) => Some(operations::setting(table, *column, &assigned(table, *column, value(expr)?)?)?),
                Amendment::Add { amount, negative } => {
                    let amount = Some(value(amount)?).filter(is_exact).and_then(|amount| exact(&table.columns[*column].ty, amount));
                    amount.and_then(|amount| operations::adding(table, *column, &amount, *negative))
                }
            };
            let Some(change) = change else { return Ok(None) };
            changes.push(change);
        }
        Ok(Some(changes))
    }
}

/// True for numbers with which sums are exact.
fn is_exact(value: &Datum) -> bool {
    let exact = matches!(value, Datum::Int8(_) | Datum::Int16(_) | Datum::Int32(_) | Datum::Int64(_) | Datum::Decimal128(..));
    exact && !value.is_null()
}

/// A value as the column stores it.
pub fn assigned(table: &TableDescriptor, column: usize, value: Datum) -> SqlResult<Datum> {
    let definition = &table.columns[column];
    let value = coerce(&definition.ty, value)?;
    if value.is_null() && !definition.nullable {
        return Err(SqlError::not_null(&table.name, &definition.name));
    }
    Ok(value)
}
