//! A report as text: the placement, a table of the client regions, the proof, and what else was asked for.

use super::{Report, Summary, Terms};
use std::fmt;

const GAP: &str = "  ";
const RULE: &str = "─";

/// Lines of cells, set in columns: the first `names` of them to the left, numbers to the right.
pub(super) struct Table {
    names: usize,
    lines: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(names: usize, titles: &[&str]) -> Table {
        Table { names, lines: vec![titles.iter().map(|&title| title.to_owned()).collect()] }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.lines.push(cells);
    }
}

impl fmt::Display for Table {
    /// The titles, a rule, and the rows; a row without cells is a rule.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |cell: &String| cell.chars().count();
        let columns = self.lines[0].len();
        let widths: Vec<usize> =
            (0..columns).map(|column| self.lines.iter().filter_map(|line| line.get(column)).map(length).max().unwrap_or(0)).collect();
        let across = widths.iter().sum::<usize>() + GAP.len() * (columns - 1);
        for (number, line) in self.lines.iter().enumerate() {
            if line.is_empty() {
                writeln!(f, "{}", RULE.repeat(across))?;
                continue;
            }
            let padded = line.iter().zip(&widths).enumerate();
            let cell = |(column, (cell, &width))| if column < self.names { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
            writeln!(f, "{}", padded.map(cell).collect::<Vec<String>>().join(GAP).trim_end())?;
            if number == 0 {
                writeln!(f, "{}", RULE.repeat(across))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.replicas.join(", "))?;
        let lost = lost(self.terms.faults);
        writeln!(f, "{} of {} regions hold a replica; {lost}", self.replicas.len(), self.regions)?;
        self.write_terms(f)?;
        write!(f, "\n{}\n{}", self.client_table(), self.proof())?;
        if !self.compared.is_empty() {
            write!(f, "\n{}", self.comparison())?;
            for other in self.compared.iter().filter(|other| !other.violates.is_empty()) {
                writeln!(f, "{} does not keep to: {}", other.replicas.join(", "), other.violates.join("; "))?;
            }
        }
        if !self.front.is_empty() {
            write!(f, "\n{}", self.front_table())?;
        }
        if self.front_complete == Some(false) {
            writeln!(f, "Not proven: placements may be missing here, or be beaten by others.")?;
        }
        Ok(())
    }
}

impl Report {
    /// What was asked for.
    pub(super) fn write_terms(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Terms { protocol, reads, handoff, constraints, assumptions, .. } = &self.terms;
        let handoff = if *handoff { "with handoff" } else { "no handoff" };
        writeln!(f, "{protocol}, {reads} reads, {handoff}; the smallest {}", self.objective)?;
        for constraint in constraints {
            writeln!(f, "kept to: {constraint}")?;
        }
        if let Some(price) = self.price_month {
            writeln!(f, "{price:.2} dollars a month")?;
        }
        assumptions.iter().try_for_each(|assumption| writeln!(f, "{assumption}"))
    }

    fn client_table(&self) -> Table {
        let reads = self.clients.iter().any(|client| client.reads_per_txn > 0.0);
        let mut titles = vec!["clients in", "commit by"];
        titles.extend(reads.then_some("reads by"));
        let names = titles.len();
        titles.extend(["clients", "latency ms", "floor", "gap"]);
        let mut table = Table::new(names, &titles);
        let times = |time: f64, floor: f64| [ms(time), ms(floor), ms(time - floor)];
        for client in &self.clients {
            let mut cells = vec![client.region.clone(), client.commit_coordinator.clone()];
            cells.extend(reads.then(|| client.read_coordinator.clone()));
            cells.push(client.clients.to_string());
            cells.extend(times(client.latency_ms, client.floor_ms));
            table.row(cells);
        }
        table.row(Vec::new());
        let total: u64 = self.clients.iter().map(|client| client.clients).sum();
        let Summary { mean_ms, worst_ms, p95_ms } = self.floors;
        for (title, time, floor) in [("mean", self.mean_ms, mean_ms), ("p95", self.p95_ms, p95_ms), ("worst", self.worst_ms, worst_ms)] {
            let mut cells = vec![String::new(); names];
            cells[0] = title.to_owned();
            cells.push(total.to_string());
            cells.extend(times(time, floor));
            table.row(cells);
        }
        table
    }

    pub(super) fn proof(&self) -> String {
        let looked_at = match (self.method, self.looked_at) {
            ("exhaustive", Some(placements)) => format!("exhaustive search, {placements} placements"),
            (method, Some(nodes)) => format!("{method} search, {nodes} nodes"),
            (method, None) => format!("{method} heuristic"),
        };
        let (objective, size) = (&self.objective, self.replicas.len());
        if self.is_proven() {
            return format!(
                "Proven: no placement of {size} replicas has a smaller {objective} than {} ms ({looked_at}).\n",
                ms(self.objective_ms)
            );
        }
        let (found, bound) = (ms(self.objective_ms), ms(self.bound_ms));
        let gap = 100.0 * self.proven_gap;
        format!("Not proven: {objective} {found} ms; what is certain is that none goes below {bound} ms, {gap:.1} % less ({looked_at}).\n")
    }

    fn comparison(&self) -> Table {
        let priced = self.price_month.is_some();
        let mut titles = vec!["placement", "mean", "p95", "worst", "above"];
        titles.extend(priced.then_some("a month"));
        let mut table = Table::new(1, &titles);
        let mut row = |replicas: &[String], summary: Summary, above: String, price: Option<f64>| {
            let mut cells = vec![replicas.join(", "), ms(summary.mean_ms), ms(summary.p95_ms), ms(summary.worst_ms), above];
            cells.extend(price.map(|price| format!("{price:.2}")));
            table.row(cells);
        };
        let best = Summary { mean_ms: self.mean_ms, worst_ms: self.worst_ms, p95_ms: self.p95_ms };
        row(&self.replicas, best, "the plan".to_owned(), self.price_month);
        for other in &self.compared {
            row(&other.replicas, other.summary, above(other.objective_ms, self.objective_ms), other.price_month);
        }
        table
    }

    fn front_table(&self) -> Table {
        let mut table = Table::new(1, &["price against latency", "a month", &self.objective]);
        for point in &self.front {
            table.row(vec![point.replicas.join(", "), format!("{:.2}", point.price_month), ms(point.objective_ms)]);
        }
        table
    }
}

/// How many regions may be lost.
pub(super) fn lost(faults: usize) -> String {
    match faults {
        0 => "none may be lost".to_owned(),
        1 => "any one may be lost".to_owned(),
        faults => format!("any {faults} may be lost"),
    }
}

pub(super) fn ms(millis: f64) -> String {
    format!("{millis:.1}")
}

/// How much more `time` is than `least`.
fn above(time: f64, least: f64) -> String {
    if least == 0.0 { "-".to_owned() } else { format!("{:+.1} %", 100.0 * (time - least) / least) }
}
