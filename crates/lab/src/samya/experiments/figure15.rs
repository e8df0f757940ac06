//! Figure 15: throughput as more of the transactions are reads of all tokens.

use super::super::lab::Lab;
use super::super::parameters::POINTS_OF_TEN_MINUTES;
use super::common::{MULTIPAXSYS, PAPER, SPARE};
use crate::experiment::{Chart, Failure, Finding, Outcome, Progress, Sheet, one};

const READ_PERCENT: [u8; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];

pub(super) fn run(lab: &mut Lab, progress: &mut dyn Progress) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let limit = &lab.limits()[2];
    let systems: Vec<_> = PAPER.into_iter().chain(SPARE).chain([MULTIPAXSYS]).collect();
    let names: Vec<String> = systems.iter().map(|system| system.name()).collect();
    let columns: Vec<&str> = std::iter::once("reads %").chain(names.iter().map(String::as_str)).collect();
    let mut sheet = Sheet::new(format!("Throughput by share of reads, {}", limit.name), &columns);
    let mut lines = vec![Vec::new(); systems.len()];
    for read_percent in READ_PERCENT {
        let mut cells = vec![read_percent.to_string()];
        for (system, line) in systems.iter().zip(&mut lines) {
            let mut setup = lab.setup(*system, POINTS_OF_TEN_MINUTES);
            (setup.limit, setup.read_percent) = (limit.tokens, read_percent);
            let rate = lab.run(&setup, progress)?.meter.throughput();
            cells.push(one(rate));
            line.push((f64::from(read_percent), rate));
        }
        sheet.row(cells);
    }
    let multipaxsys = lines[systems.len() - 1].clone();
    for (name, line) in names.iter().zip(&lines).take(systems.len() - 1) {
        let measured = crossing(line, &multipaxsys).map_or("never".to_owned(), |percent| format!("{percent:.0} %"));
        outcome.findings.push(Finding::plain(format!("reads from which MultiPaxSys beats {name}"), "65 %", measured));
    }
    let mut chart = Chart::new(format!("Throughput by share of reads, {}", limit.name), "reads %", "transactions per second");
    names.iter().zip(lines).for_each(|(name, line)| chart.line(name.clone(), line));
    outcome.sheets.push(sheet);
    outcome.charts.push(chart);
    Ok(outcome)
}

/// Where `other` first passes `line`, between two points by straight lines.
fn crossing(line: &[(f64, f64)], other: &[(f64, f64)]) -> Option<f64> {
    let ahead: Vec<(f64, f64)> = line.iter().zip(other).map(|((x, mine), (_, theirs))| (*x, theirs - mine)).collect();
    ahead.windows(2).find(|pair| pair[0].1 <= 0.0 && pair[1].1 > 0.0).map(|pair| {
        let ((x, before), (next, after)) = (pair[0], pair[1]);
        x + (next - x) * (-before) / (after - before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cross_between_two_points() {
        let line = [(0.0, 10.0), (10.0, 6.0), (20.0, 2.0)];
        assert_eq!(crossing(&line, &[(0.0, 4.0), (10.0, 4.0), (20.0, 4.0)]), Some(15.0));
        assert_eq!(crossing(&line, &[(0.0, 1.0), (10.0, 1.0), (20.0, 1.0)]), None);
    }
}
