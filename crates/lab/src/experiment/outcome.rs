//! What an experiment found: tables, each figure beside the paper's, and charts.

use super::chart::Chart;
use rhumb_display::Table;
use std::fmt;

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// What it shows.
    pub title: String,
    /// Its columns; the first one names the rows.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// One figure of the paper, and what was measured here.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is compared.
    pub what: String,
    /// What the paper says.
    pub paper: String,
    /// What was measured.
    pub measured: String,
    /// Whether it is as good as the paper's; none where no such claim is made.
    pub met: Option<bool>,
}

/// What an experiment found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What was measured.
    pub sheets: Vec<Sheet>,
    /// Held against the paper.
    pub findings: Vec<Finding>,
    /// To be drawn.
    pub charts: Vec<Chart>,
    /// What a reader has to know beside.
    pub notes: Vec<String>,
}

impl Sheet {
    /// An empty table.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Sheet {
        Sheet { title: title.into(), columns: columns.iter().map(|&column| column.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// As CSV, with the columns' names in the first line.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
        for line in std::iter::once(&self.columns).chain(&self.rows) {
            writer.write_record(line).expect("memory takes what is written");
        }
        String::from_utf8(writer.into_inner().expect("memory takes what is written")).expect("text in, text out")
    }
}

impl Finding {
    /// A value that is to be at least `least`.
    pub fn at_least(what: impl Into<String>, paper: &str, value: f64, least: f64, unit: &str) -> Finding {
        Finding { what: what.into(), paper: paper.into(), measured: format!("{value:.2}{unit}"), met: Some(value >= least) }
    }

    /// A value that is to be at most `most`.
    pub fn at_most(what: impl Into<String>, paper: &str, value: f64, most: f64, unit: &str) -> Finding {
        Finding { what: what.into(), paper: paper.into(), measured: format!("{value:.2}{unit}"), met: Some(value <= most) }
    }

    /// A value that is to be within bounds.
    pub fn between(what: impl Into<String>, paper: &str, value: f64, least: f64, most: f64, unit: &str) -> Finding {
        Finding {
            what: what.into(),
            paper: paper.into(),
            measured: format!("{value:.2}{unit}"),
            met: Some((least..=most).contains(&value)),
        }
    }

    /// A value that is only reported.
    pub fn plain(what: impl Into<String>, paper: &str, measured: String) -> Finding {
        Finding { what: what.into(), paper: paper.into(), measured, met: None }
    }
}

impl Outcome {
    /// The findings as a table; none if there are none.
    pub fn findings_sheet(&self) -> Option<Sheet> {
        let mut sheet = Sheet::new("Held against the paper", &["what", "paper", "here", "verdict"]);
        for finding in &self.findings {
            let verdict = finding.met.map_or("", |met| if met { "met" } else { "not met" });
            sheet.row([finding.what.clone(), finding.paper.clone(), finding.measured.clone(), verdict.to_owned()]);
        }
        (!sheet.rows.is_empty()).then_some(sheet)
    }

    /// Notes something beside.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        let (first, others) = self.columns.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        let mut table = Table::new(first).group("", &others);
        for row in &self.rows {
            table.row(row.clone());
        }
        table.fmt(f)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for sheet in &self.sheets {
            writeln!(f, "{sheet}")?;
        }
        if let Some(findings) = self.findings_sheet() {
            writeln!(f, "{findings}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_shown_with_its_verdicts() {
        let mut sheet = Sheet::new("Throughput", &["system", "tps"]);
        sheet.row(["A, fast".to_owned(), "17.0".to_owned()]);
        assert_eq!(sheet.to_csv(), "system,tps\n\"A, fast\",17.0\n");
        let findings = vec![Finding::at_least("A over B", "1.3×", 1.25, 1.3, "×"), Finding::at_most("p99", "65 ms", 60.0, 65.0, " ms")];
        let mut outcome = Outcome { sheets: vec![sheet], findings, ..Outcome::default() };
        outcome.note("A note.");
        let text = outcome.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..5], ["Throughput", "", "system     tps", "──────────────", "A, fast   17.0"]);
        assert!(text.contains("1.25×  not met") && text.contains("60.00 ms      met"), "{text}");
        assert!(text.ends_with("A note.\n"));
    }
}
