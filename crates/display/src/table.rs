//! A table of text: names to the left, numbers to the right, columns gathered under group titles.

use std::fmt;

const GAP: &str = "  ";
const RULE: &str = "─";

/// Characters of a column of numbers, at least: rows of different tables then line up more often than not.
const NUMBER_WIDTH_MIN: usize = 5;

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Column {
    group: &'static str,
    title: String,
}

#[derive(Clone, Debug)]
enum Line {
    Row(Vec<String>),
    Rule,
}

impl Table {
    /// A table whose first column is titled `title` and holds names.
    pub fn new(title: &str) -> Table {
        Table { columns: vec![Column { group: "", title: title.to_owned() }], lines: Vec::new() }
    }

    /// Adds columns of numbers under a common `group` title, which may be empty.
    pub fn group(mut self, group: &'static str, titles: &[&str]) -> Table {
        self.columns.extend(titles.iter().map(|title| Column { group, title: (*title).to_owned() }));
        self
    }

    /// Adds a row; cells that are missing stay empty.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.lines.push(Line::Row(cells));
    }

    /// Adds a rule across the table.
    pub fn rule(&mut self) {
        self.lines.push(Line::Rule);
    }

    fn widths(&self) -> Vec<usize> {
        let least = |i: usize| if i == 0 { 0 } else { NUMBER_WIDTH_MIN };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(|(i, column)| width(&column.title).max(least(i))).collect();
        for line in &self.lines {
            if let Line::Row(cells) = line {
                for (known, cell) in widths.iter_mut().zip(cells) {
                    *known = (*known).max(width(cell));
                }
            }
        }
        // A group title wider than its columns widens the last of them.
        for span in self.groups() {
            let across = across(&widths[span.clone()]);
            let title = width(self.columns[span.start].group);
            widths[span.end - 1] += title.saturating_sub(across);
        }
        widths
    }

    /// The ranges of neighbouring columns that share a group.
    fn groups(&self) -> Vec<std::ops::Range<usize>> {
        let mut spans: Vec<std::ops::Range<usize>> = Vec::new();
        for (i, column) in self.columns.iter().enumerate() {
            match spans.last_mut() {
                Some(span) if self.columns[span.start].group == column.group => span.end = i + 1,
                _ => spans.push(i..i + 1),
            }
        }
        spans
    }

    fn write_groups(&self, f: &mut fmt::Formatter<'_>, widths: &[usize]) -> fmt::Result {
        if self.columns.iter().all(|column| column.group.is_empty()) {
            return Ok(());
        }
        let mut line = String::new();
        for span in self.groups() {
            let (title, room) = (self.columns[span.start].group, across(&widths[span.clone()]));
            let fill = room.saturating_sub(width(title) + 1);
            let cell = match title {
                "" => " ".repeat(room),
                _ if fill == 0 => format!("{title}{}", " ".repeat(room - width(title))),
                _ => format!("{title} {}", RULE.repeat(fill)),
            };
            line.push_str(&cell);
            line.push_str(GAP);
        }
        writeln!(f, "{}", line.trim_end())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        self.write_groups(f, &widths)?;
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        writeln!(f, "{}", joined(&titles, &widths))?;
        writeln!(f, "{}", RULE.repeat(across(&widths)))?;
        for line in &self.lines {
            match line {
                Line::Row(cells) => writeln!(f, "{}", joined(cells, &widths))?,
                Line::Rule => writeln!(f, "{}", RULE.repeat(across(&widths)))?,
            }
        }
        Ok(())
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn across(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

fn joined(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(i, (cell, &width))| if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
        .collect();
    padded.join(GAP).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_under_their_groups() {
        let mut table = Table::new("region").group("", &["txn/s"]).group("COMMIT ms", &["p50", "p99"]).group("a long title", &["x"]);
        table.row(vec!["são paulo".into(), "1 204".into(), "8.25".into(), "104".into(), "2".into()]);
        table.rule();
        table.row(vec!["all".into(), "7".into()]);
        let expect = [
            "                  COMMIT ms ──  a long title",
            "region     txn/s    p50    p99             x",
            "────────────────────────────────────────────",
            "são paulo  1 204   8.25    104             2",
            "────────────────────────────────────────────",
            "all            7",
            "",
        ]
        .join("\n");
        assert_eq!(table.to_string(), expect);
    }
}
