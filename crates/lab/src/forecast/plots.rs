//! The models as plots: their errors as bars, and what they forecast beside what came.

use super::compare::{Comparison, Measured};
use rhumb_display::plot::{Axis, Bar, BarChart, Bars, Line, LineChart, PlotError};

/// Epochs shown of the part held back: half a day of five minutes.
const STRETCH_EPOCHS: usize = 144;
const HOUR_SECONDS: f64 = 3_600.0;

impl Comparison {
    /// The models' errors as shares of the random walk's, a bar for each series, the paper's as marks. As SVG.
    pub fn errors_svg(&self) -> Result<String, PlotError> {
        let mut kinds: Vec<&'static str> = Vec::new();
        for row in self.series.iter().flat_map(|series| &series.table.rows) {
            if !kinds.contains(&row.kind) {
                kinds.push(row.kind);
            }
        }
        let bars = |series: &Measured| {
            let bar = |kind: &&str| {
                let row = series.table.rows.iter().find(|row| row.kind == *kind);
                // A series that never changes leaves the random walk without an error to have a share of.
                let share = row.map(|row| row.errors.share()).filter(|share| share.is_finite());
                Bar { value: share, mark: row.and_then(|row| row.paper_share()) }
            };
            Bars { name: series.table.series.clone(), bars: kinds.iter().map(bar).collect() }
        };
        let chart = BarChart {
            title: "Mean absolute error of one-step forecasts".into(),
            y: "share of the random walk's error".into(),
            groups: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            series: self.series.iter().map(bars).collect(),
            mark: "Samya, Table 4 (another series)".into(),
            decimals: 2,
        };
        chart.to_svg()
    }
}

impl Measured {
    /// What came in the first epochs of the part held back, and what the best model had forecast of each. As SVG.
    pub fn stretch_svg(&self) -> Result<String, PlotError> {
        let models = self.table.rows.iter().zip(&self.forecasts);
        let best = models.min_by(|one, other| one.0.errors.mae.total_cmp(&other.0.errors.mae));
        let (unit, length) = self.epoch_seconds.map_or(("epochs", 1.0), |seconds| ("hours", seconds as f64 / HOUR_SECONDS));
        let line = |name: &str, values: &[f64]| {
            let points = values.iter().take(STRETCH_EPOCHS).enumerate();
            let points = points.map(|(epoch, value)| (epoch as f64 * length, *value)).collect();
            Line { name: name.to_owned(), points, joined: true }
        };
        let forecast = best.map(|(row, values)| line(&format!("{}, one epoch before", row.model), values));
        let chart = LineChart {
            title: format!("{}: what came, and what the best model had forecast", self.table.series),
            x: Axis::linear(format!("{unit} into the part held back")),
            y: Axis::linear("demand per epoch"),
            lines: std::iter::once(line("what came", &self.actual)).chain(forecast).collect(),
            references: Vec::new(),
        };
        chart.to_svg()
    }
}
