//! A recorded series, read from CSV text.
//!
//! The first line names the columns; each further line is an epoch, oldest first, epochs of equal length. One column is
//! taken. Lines that begin with `#` are comments. Nothing is filled in or skipped: a hole in a series shifts its seasons, so
//! it is an error that names the line.

use crate::forecaster::VALUE_MAX;
use thiserror::Error;

/// The most values of a series: ten years of one-minute epochs.
pub const SERIES_VALUES_MAX: usize = 5_256_000;

/// A recorded series: a value per epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    name: String,
    values: Vec<f64>,
}

/// What is wrong with a file of a series. Lines count from 1, as an editor shows them.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SeriesError {
    #[error("{file}: not a CSV file: {message}")]
    Csv { file: String, message: String },
    #[error("{file}: empty; expected a line that names the columns and a line per epoch")]
    Empty { file: String },
    #[error("{file}: no column `{column}`; there are {found}")]
    NoColumn { file: String, column: String, found: String },
    #[error("{file}: which column is the series? Name one of {found}")]
    WhichColumn { file: String, found: String },
    #[error("{file}, line {line}: {found} cells, expected {expected}")]
    Ragged { file: String, line: u64, found: usize, expected: usize },
    #[error("{file}, line {line}, column `{column}`: `{cell}` is not a number of at most {VALUE_MAX:e}")]
    Cell { file: String, line: u64, column: String, cell: String },
    #[error("{file}: {found} epochs; a series needs at least 2")]
    TooShort { file: String, found: usize },
    #[error("{file}, line {line}: more than {SERIES_VALUES_MAX} epochs; cut the series or make its epochs longer")]
    TooLong { file: String, line: u64 },
}

impl Series {
    /// Reads the column named `column`; the only one, or the second of two, if none is named. `file` names the series and
    /// stands in errors.
    pub fn parse(file: &str, text: &str, column: Option<&str>) -> Result<Series, SeriesError> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let mut records = reader.records();
        let not_csv = |error: csv::Error| SeriesError::Csv { file: file.into(), message: error.to_string() };
        let header = records.next().ok_or_else(|| SeriesError::Empty { file: file.into() })?.map_err(not_csv)?;
        let index = choose(file, &header, column)?;
        let mut values = Vec::new();
        for record in records {
            let record = record.map_err(not_csv)?;
            let line = || line_of(text, &record);
            if record.len() != header.len() {
                return Err(SeriesError::Ragged { file: file.into(), line: line(), found: record.len(), expected: header.len() });
            }
            if values.len() == SERIES_VALUES_MAX {
                return Err(SeriesError::TooLong { file: file.into(), line: line() });
            }
            let cell = &record[index];
            let value = cell.parse::<f64>().ok().filter(|value| value.abs() <= VALUE_MAX);
            let column = &header[index];
            values.push(value.ok_or_else(|| SeriesError::Cell {
                file: file.into(),
                line: line(),
                column: column.into(),
                cell: cell.into(),
            })?);
        }
        if values.len() < 2 {
            return Err(SeriesError::TooShort { file: file.into(), found: values.len() });
        }
        Ok(Series { name: file.into(), values })
    }

    /// What the series is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values, the oldest first.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The first `share` of the series, to train on, and the rest, to test with. Neither is empty.
    pub fn split(&self, share: f64) -> (&[f64], &[f64]) {
        let at = (self.values.len() as f64 * share) as usize;
        self.values.split_at(at.clamp(1, self.values.len() - 1))
    }

    /// The same demand in another time zone: what happens here `epochs` later happens there now. The beginning follows the
    /// end.
    pub fn shifted(&self, epochs: usize) -> Series {
        let mut values = self.values.clone();
        let length = values.len();
        values.rotate_left(epochs % length);
        Series { name: self.name.clone(), values }
    }
}

/// The line of `text` that `record` stands on. The reader says where it began to look for the record: before the empty lines
/// and comments that it skipped.
fn line_of(text: &str, record: &csv::StringRecord) -> u64 {
    let Some(position) = record.position() else { return 1 };
    let rest = text.get(position.byte() as usize..).unwrap_or_default();
    let skipped = rest.lines().take_while(|line| line.is_empty() || line.starts_with('#')).count();
    position.line() + skipped as u64
}

/// The index of the column to take.
fn choose(file: &str, header: &csv::StringRecord, column: Option<&str>) -> Result<usize, SeriesError> {
    let found = || header.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match (column, header.len()) {
        (Some(column), _) => (header.iter().position(|name| name == column)).ok_or_else(|| SeriesError::NoColumn {
            file: file.into(),
            column: column.into(),
            found: found(),
        }),
        (None, 1) => Ok(0),
        (None, 2) => Ok(1),
        (None, _) => Err(SeriesError::WhichColumn { file: file.into(), found: found() }),
    }
}
