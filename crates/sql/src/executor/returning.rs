//! Select lists over the columns of one table as they are evaluated: of a SELECT on the fast path, and of RETURNING.

use super::evaluate::Compiled;
use super::result::{PAGE_BYTES_FULL, ResultColumn, bytes_of, check_bytes};
use crate::engine::Engine;
use crate::error::{SqlResult, SqlState};
use crate::storage::Row;
use crate::types::{Datum, coerce};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// A select list, ready to be evaluated.
#[derive(Debug)]
pub struct Projection {
    /// The columns of its rows.
    pub columns: Arc<[ResultColumn]>,
    /// What makes their values.
    pub items: Vec<Body>,
}

/// An item of a select list.
#[derive(Debug)]
pub enum Body {
    Column(usize),
    /// With the bytes of the constants in it.
    Expr(Compiled, u64),
}

impl Projection {
    /// True if it shows columns as they are, each at most once: no row can make that fail, and it has no more bytes than the rows.
    pub fn is_plain(&self) -> bool {
        let mut seen = BTreeSet::new();
        self.items.iter().all(|item| matches!(item, Body::Column(position) if seen.insert(*position)))
    }

    /// What it shows of rows of the table, if it [is plain](Self::is_plain).
    pub fn pick(&self, rows: Vec<Row>) -> Vec<Row> {
        let value = |row: &mut Row, item: &Body| match item {
            Body::Column(position) => std::mem::replace(&mut row[*position], Datum::Null),
            Body::Expr(..) => unreachable!("it is plain"),
        };
        rows.into_iter().map(|mut row| self.items.iter().map(|item| value(&mut row, item)).collect()).collect()
    }

    /// Takes the first of `rows`, as many as make a page, and shows them. Error 54000 if a single one shows too many bytes.
    pub fn page(&self, engine: &Engine, rows: &mut VecDeque<Row>, parameters: &[Datum]) -> SqlResult<Vec<Row>> {
        let (given, mut bytes) = (parameters.iter().map(bytes_of).sum::<u64>(), 0_u64);
        let fits = |row: &&Row| {
            let of_row = row.iter().map(bytes_of).sum::<u64>();
            // An expression may show all that it can see.
            let of_item = |item: &Body| match item {
                Body::Column(position) => bytes_of(&row[*position]),
                Body::Expr(_, constants) => constants.saturating_add(given).saturating_add(of_row),
            };
            bytes = self.items.iter().map(of_item).fold(bytes, u64::saturating_add);
            bytes <= PAGE_BYTES_FULL
        };
        let mut count = rows.iter().take_while(fits).count().max(1).min(rows.len());
        loop {
            match self.rows(engine, &rows.make_contiguous()[..count], parameters) {
                // What functions make is known only then.
                Err(error) if error.state() == SqlState::ProgramLimitExceeded && count > 1 => count /= 2,
                shown => {
                    rows.drain(..count);
                    return shown;
                }
            }
        }
    }

    /// The rows that it makes of rows of the table. Error 54000 if they have too many bytes to be there at once.
    pub fn rows(&self, engine: &Engine, rows: &[Row], parameters: &[Datum]) -> SqlResult<Vec<Row>> {
        let mut results: Vec<Row> = rows.iter().map(|_| Vec::with_capacity(self.items.len())).collect();
        let mut bytes = 0;
        for (item, column) in self.items.iter().zip(self.columns.iter()) {
            match item {
                Body::Column(position) => {
                    bytes += rows.iter().map(|row| bytes_of(&row[*position])).sum::<u64>();
                    check_bytes(bytes)?;
                    results.iter_mut().zip(rows).for_each(|(result, row)| result.push(row[*position].clone()));
                }
                Body::Expr(compiled, _) => {
                    let values = compiled.evaluate(engine, rows.len(), |row, input| input_of(&rows[row], parameters, input))?;
                    bytes += values.iter().map(bytes_of).sum::<u64>();
                    check_bytes(bytes)?;
                    for (result, value) in results.iter_mut().zip(values) {
                        let exact = value.data_type() == column.ty.arrow();
                        result.push(if exact { value } else { coerce(&column.ty, value)? });
                    }
                }
            }
        }
        Ok(results)
    }
}

/// The value of an input of a scope that is a table's columns, then the parameters.
pub fn input_of<'a>(row: &'a Row, parameters: &'a [Datum], input: usize) -> &'a Datum {
    if input < row.len() { &row[input] } else { &parameters[input - row.len()] }
}
