//! The series that models are trained on: a shipped one, or a file of the user's.

use super::TRAINED_SHARE;
use super::error::ForecastError;
use rhumb_forecast::{PERIOD_MAX, Series, Shipped};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A series with what is known of it.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What tables and plots call it.
    pub name: String,
    /// Its periods in epochs, such as a day and a week. May be empty.
    pub periods: Vec<usize>,
    /// The length of an epoch, if it is known.
    pub epoch_seconds: Option<u64>,
    series: Series,
}

impl Demand {
    /// A series that ships with Rhumb.
    pub fn shipped(shipped: &Shipped) -> Demand {
        Demand {
            name: shipped.key.to_owned(),
            periods: shipped.periods.to_vec(),
            epoch_seconds: Some(shipped.epoch_seconds),
            series: shipped.series(),
        }
    }

    /// Reads the column `column` of a CSV file; which one if none is named: see [`Series::parse`].
    pub fn read(path: &Path, column: Option<&str>, periods: &[usize]) -> Result<Demand, ForecastError> {
        if let Some(found) = periods.iter().find(|period| !(2..=PERIOD_MAX).contains(*period)) {
            return Err(ForecastError::Period { found: *found });
        }
        let shown = path.display().to_string();
        let unreadable = |reason: io::Error| ForecastError::Read { path: shown.clone(), reason };
        let mut text = String::new();
        let mut file = File::open(path).map_err(unreadable)?.take(FILE_BYTES_MAX + 1);
        let read = file.read_to_string(&mut text).map_err(unreadable)?;
        if read as u64 > FILE_BYTES_MAX {
            return Err(ForecastError::TooLarge { path: shown, max: FILE_BYTES_MAX });
        }
        let series = Series::parse(&shown, &text, column)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Demand { name, periods: periods.to_vec(), epoch_seconds: None, series })
    }

    /// All values, the oldest first.
    pub fn values(&self) -> &[f64] {
        self.series.values()
    }

    /// The values to train on, and those to judge by.
    pub(super) fn split(&self) -> (&[f64], &[f64]) {
        self.series.split(TRAINED_SHARE)
    }
}
