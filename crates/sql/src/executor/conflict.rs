//! DO UPDATE as it runs: what becomes of the row in the way.

use super::Running;
use super::assignment::Assignments;
use super::evaluate::Compiled;
use crate::error::SqlResult;
use crate::schema::TableDescriptor;
use crate::storage::Row;
use crate::types::Datum;

/// DO UPDATE: expressions over the existing row, the row proposed (`excluded`) and the parameters.
#[derive(Debug)]
pub struct Update {
    pub assignments: Assignments,
    pub filter: Option<Compiled>,
}

impl Update {
    /// The position of a proposed row with the existing row in its way and what that becomes.
    pub fn changes(
        &self,
        cx: Running<'_>,
        table: &TableDescriptor,
        proposed: &[Row],
        conflicts: Vec<(usize, Row)>,
    ) -> SqlResult<Vec<(usize, (Row, Row))>> {
        let width = table.columns.len();
        let (mut positions, mut existing): (Vec<usize>, Vec<Row>) = conflicts.into_iter().unzip();
        if let Some(filter) = &self.filter {
            let input = |row: usize, input: usize| input_of(&existing[row], &proposed[positions[row]], cx.parameters, width, input);
            let kept = filter.select(cx.engine, existing.len(), input)?;
            let mut flags = kept.iter();
            positions.retain(|_| flags.next() == Some(&true));
            let mut flags = kept.iter();
            existing.retain(|_| flags.next() == Some(&true));
        }
        let input = |row: usize, input: usize| input_of(&existing[row], &proposed[positions[row]], cx.parameters, width, input);
        let new = self.assignments.apply(cx.engine, table, &existing, input)?;
        Ok(positions.iter().copied().zip(existing.iter().cloned().zip(new)).collect())
    }
}

fn input_of<'a>(existing: &'a Row, proposed: &'a Row, parameters: &'a [Datum], width: usize, input: usize) -> &'a Datum {
    if input < width {
        &existing[input]
    } else if input < 2 * width {
        &proposed[input - width]
    } else {
        &parameters[input - 2 * width]
    }
}
