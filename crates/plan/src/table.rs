//! Tables about regions, read from CSV: a header, then one row per region that begins with its name.
//!
//! Empty lines and lines that begin with `#` are passed over. Rows and columns count from 1, as an editor shows them.

use crate::decimal::decimal;
use crate::matrix::{Matrix, UnknownRegion};
use rhumb_core::csv_rows::csv_rows;
use std::collections::BTreeMap;
use thiserror::Error;

/// What is wrong with a table.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TableError {
    #[error("{file}, row {row}: the header is `{found}`; expected `{expected}`")]
    Header { file: String, row: usize, found: String, expected: String },
    #[error("{file}: the table is empty; expected a header `{expected}` and a row per region")]
    Empty { file: String, expected: String },
    #[error("{file}, row {row}: {found} cells, expected {expected}")]
    Ragged { file: String, row: usize, found: usize, expected: usize },
    #[error("{file}, row {row}, column 1: {unknown}")]
    UnknownRegion { file: String, row: usize, unknown: UnknownRegion },
    #[error("{file}, row {row}, column 1: `{name}` stands in row {first} already")]
    Twice { file: String, row: usize, name: String, first: usize },
    #[error("{place}: `{cell}` is not {expected}")]
    Cell { place: String, cell: String, expected: &'static str },
    #[error("{file}: there is no row for the region `{name}`")]
    Missing { file: String, name: String },
    #[error("{file}, row 1: the header has no column `{kind}`")]
    NoColumn { file: String, kind: String },
    #[error("{file}: no region has clients")]
    NoClients { file: String },
}

/// A table whose regions are known to a matrix.
pub(crate) struct Table {
    file: String,
    /// The headings, that of the region first.
    pub headings: Vec<String>,
    rows: BTreeMap<usize, Row>,
}

struct Row {
    line: usize,
    cells: Vec<String>,
}

/// A cell of a table, which knows where it stands.
pub(crate) struct Cell<'t> {
    table: &'t Table,
    row: &'t Row,
    column: usize,
}

impl Table {
    /// Reads `text`, whose header must begin with `columns` and may go on with `optional` ones in this order; `file` names
    /// it in errors. An asterisk as the last optional heading stands for any further ones.
    pub fn parse(file: &str, text: &str, matrix: &Matrix, columns: &[&str], optional: &[&str]) -> Result<Table, TableError> {
        let expected = expected_header(columns, optional);
        let indices: BTreeMap<&str, usize> = matrix.names().iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        let mut table = Table { file: file.to_owned(), headings: Vec::new(), rows: BTreeMap::new() };
        for (line, cells) in csv_rows(text) {
            if table.headings.is_empty() {
                if !is_header(&cells, columns, optional) {
                    return Err(TableError::Header { file: file.to_owned(), row: line, found: cells.join(","), expected });
                }
                table.headings = cells;
                continue;
            }
            if cells.len() != table.headings.len() {
                return Err(TableError::Ragged { file: file.to_owned(), row: line, found: cells.len(), expected: table.headings.len() });
            }
            let name = cells[0].clone();
            let Some(&region) = indices.get(name.as_str()) else {
                return Err(TableError::UnknownRegion { file: file.to_owned(), row: line, unknown: UnknownRegion::new(matrix, &name) });
            };
            if let Some(earlier) = table.rows.get(&region) {
                return Err(TableError::Twice { file: file.to_owned(), row: line, name, first: earlier.line });
            }
            table.rows.insert(region, Row { line, cells });
        }
        if table.headings.is_empty() { Err(TableError::Empty { file: file.to_owned(), expected }) } else { Ok(table) }
    }

    /// The regions that have a row, ascending.
    pub fn regions(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.keys().copied()
    }

    /// Refuses a table that leaves out a region of `matrix`.
    pub fn require_all(&self, matrix: &Matrix) -> Result<(), TableError> {
        match (0..matrix.regions()).find(|region| !self.rows.contains_key(region)) {
            Some(missing) => Err(TableError::Missing { file: self.file.clone(), name: matrix.names()[missing].clone() }),
            None => Ok(()),
        }
    }

    /// Where the column called `heading` is.
    pub fn column(&self, heading: &str) -> Result<usize, TableError> {
        let place = self.headings.iter().skip(1).position(|known| known == heading);
        place.map(|place| place + 1).ok_or_else(|| TableError::NoColumn { file: self.file.clone(), kind: heading.to_owned() })
    }

    /// The cell of `region`, which has a row, under the heading at place `column` (from 0); none if the table has no such
    /// heading.
    pub fn cell(&self, region: usize, column: usize) -> Option<Cell<'_>> {
        (column < self.headings.len()).then(|| Cell { table: self, row: &self.rows[&region], column })
    }
}

impl Cell<'_> {
    /// The text.
    pub fn text(&self) -> &str {
        &self.row.cells[self.column]
    }

    /// The number, in units of 10^-`decimals`. `expected` says what would have been right.
    pub fn decimal(&self, decimals: usize, expected: &'static str) -> Result<u64, TableError> {
        decimal(self.text(), decimals).ok_or_else(|| self.mistaken(expected))
    }

    /// Degrees of at most `most` to either side of zero, in ten-thousandths. `expected` says what would have been right.
    pub fn degrees(&self, most: u32, expected: &'static str) -> Result<i32, TableError> {
        let digits = self.text().strip_prefix('-');
        let degrees = decimal(digits.unwrap_or(self.text()), 4).filter(|&degrees| degrees <= u64::from(most) * 10_000);
        let degrees = degrees.and_then(|degrees| i32::try_from(degrees).ok()).ok_or_else(|| self.mistaken(expected))?;
        Ok(if digits.is_some() { -degrees } else { degrees })
    }

    fn mistaken(&self, expected: &'static str) -> TableError {
        let (Table { file, headings, .. }, Row { line, cells }) = (self.table, self.row);
        let place = format!("{file}, row {line} ({}), column {} ({})", cells[0], self.column + 1, headings[self.column]);
        TableError::Cell { place, cell: self.text().to_owned(), expected }
    }
}

fn expected_header(columns: &[&str], optional: &[&str]) -> String {
    let mut header = columns.join(",");
    for heading in optional {
        let heading = if *heading == "*" { "…" } else { heading };
        header.push_str(&format!("[,{heading}]"));
    }
    header
}

fn is_header(cells: &[String], columns: &[&str], optional: &[&str]) -> bool {
    let open = optional.last() == Some(&"*");
    let fits = |(index, cell): (usize, &String)| match columns.iter().chain(optional).nth(index) {
        Some(heading) => *heading == "*" || heading == cell,
        None => open,
    };
    cells.len() >= columns.len() && cells.iter().enumerate().all(fits)
}
