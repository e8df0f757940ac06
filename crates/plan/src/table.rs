//! Tables about regions, read from CSV: a header, then one row per region that begins with its name.
//!
//! Empty lines and lines that begin with `#` are passed over. Rows and columns count from 1, as an editor shows them.

use crate::matrix::Matrix;
use std::collections::BTreeMap;
use thiserror::Error;

/// What is wrong with a table.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TableError {
    #[error("{file}, row {row}: the header is `{found}`; expected `{expected}`")]
    Header { file: String, row: u64, found: String, expected: String },
    #[error("{file}: the table is empty; expected a header `{expected}` and a row per region")]
    Empty { file: String, expected: String },
    #[error("{file}, row {row}: {found} cells, expected {expected}")]
    Ragged { file: String, row: u64, found: usize, expected: usize },
    #[error("{file}, row {row}, column 1: `{name}` is not a region of the matrix of round trips")]
    UnknownRegion { file: String, row: u64, name: String },
    #[error("{file}, row {row}, column 1: `{name}` stands in row {first} already")]
    Twice { file: String, row: u64, name: String, first: u64 },
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
    line: u64,
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
        for (line, cells) in (1..).zip(text.lines()) {
            if cells.trim().is_empty() || cells.starts_with('#') {
                continue;
            }
            let cells = cells_of(cells);
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
                return Err(TableError::UnknownRegion { file: file.to_owned(), row: line, name });
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
        decimal(self.text(), decimals).ok_or_else(|| {
            let (Table { file, headings, .. }, Row { line, cells }) = (self.table, self.row);
            let place = format!("{file}, row {line} ({}), column {} ({})", cells[0], self.column + 1, headings[self.column]);
            TableError::Cell { place, cell: self.text().to_owned(), expected }
        })
    }
}

/// A number without sign or exponent and with at most `decimals` decimals, in units of 10^-`decimals`, to the digit.
fn decimal(text: &str, decimals: usize) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || fraction.is_some_and(|fraction| !digits(fraction) || fraction.len() > decimals) {
        return None;
    }
    format!("{whole}{:0<decimals$}", fraction.unwrap_or_default()).parse().ok()
}

/// The cells of one line. A line at a time, since a reader of whole files does not count the lines that it passes over.
/// Cells with line breaks have no place in these tables.
fn cells_of(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
    // There is none if the line holds nothing but a byte order mark.
    let record = reader.records().next().map(|record| record.expect("one line of text is one record"));
    record.iter().flatten().map(str::to_owned).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_to_the_digit_or_not_at_all() {
        assert_eq!(decimal("2.5", 3), Some(2_500));
        assert_eq!(decimal("0", 3), Some(0));
        assert_eq!(decimal("12", 0), Some(12));
        assert_eq!(decimal("18446744073709551615", 0), Some(u64::MAX));
        for bad in ["", ".", "1.", ".5", "-1", "+1", "1e3", "1.2345", "NaN", "0x1", "1 000", "18446744073709551616"] {
            assert_eq!(decimal(bad, 3), None, "{bad}");
        }
        assert_eq!(decimal("1.0", 0), None);
    }
}
