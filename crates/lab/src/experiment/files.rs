//! What an experiment found, as files: a CSV for each table, an SVG for each chart.

use super::chart::{Chart, Series, Shape};
use super::outcome::{Outcome, Sheet};
use rhumb_display::plot::{Axis, Line, LineChart, PlotError};

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl Outcome {
    /// The files of what the experiment called `experiment` found.
    pub fn files(&self, experiment: &str) -> Result<Vec<File>, PlotError> {
        let file = |suffix: String, text| File { name: format!("{experiment}{suffix}"), text };
        let suffix = |index: usize, count: usize| if count == 1 { String::new() } else { format!("-{}", index + 1) };
        let sheets = self.sheets.iter().enumerate().map(|(index, sheet)| {
            let suffix = suffix(index, self.sheets.len());
            file(format!("{suffix}.csv"), sheet.to_csv())
        });
        let mut files: Vec<File> = sheets.collect();
        if let Some(findings) = self.findings_sheet() {
            files.push(file("-paper.csv".to_owned(), Sheet::to_csv(&findings)));
        }
        for (index, chart) in self.charts.iter().enumerate() {
            let suffix = suffix(index, self.charts.len());
            files.push(file(format!("{suffix}.svg"), chart.to_svg()?));
        }
        Ok(files)
    }
}

impl Chart {
    /// The chart as an SVG document. A series without points is left out: nothing of it was measured.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        let measured = self.series.iter().filter(|series| !series.points.is_empty());
        let line = |series: &Series| Line { name: series.name.clone(), points: series.points.clone(), joined: series.shape == Shape::Line };
        let chart = LineChart {
            title: self.title.clone(),
            x: Axis::linear(self.x_label.as_str()),
            y: if self.log_y { Axis::log(self.y_label.as_str()) } else { Axis::linear(self.y_label.as_str()) },
            lines: measured.map(line).collect(),
            references: Vec::new(),
        };
        chart.to_svg()
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Finding;
    use super::*;

    #[test]
    fn every_table_and_chart_has_a_file() {
        let mut chart = Chart::new("Throughput", "minutes", "tps");
        chart.line("A", vec![(0.0, 1.0), (1.0, 2.0)]);
        chart.points("B", vec![(0.5, 1.5)]);
        chart.line("never measured", Vec::new());
        let sheet = Sheet::new("Throughput", &["system", "tps"]);
        let findings = vec![Finding::at_least("A over B", "1.3×", 1.25, 1.3, "×")];
        let outcome = Outcome { sheets: vec![sheet.clone(), sheet], findings, charts: vec![chart], notes: Vec::new() };
        let files = outcome.files("samya-figure9").expect("it can be drawn");
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["samya-figure9-1.csv", "samya-figure9-2.csv", "samya-figure9-paper.csv", "samya-figure9.svg"]);
        assert_eq!(files[2].text, "what,paper,here,verdict\nA over B,1.3×,1.25×,not met\n");
        assert!(files[3].text.starts_with("<svg ") && !files[3].text.contains("never measured"));
    }
}
