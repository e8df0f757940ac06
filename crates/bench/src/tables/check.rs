//! Consistency conditions: each is a query for the rows that break it, so an empty answer passes.

use std::fmt;

use serde::Serialize;

use crate::client::postgres::{Access, Session, retrying};
use crate::error::BenchError;
use crate::progress::{Progress, Unit};

/// Offending rows shown per condition.
const ROWS_SHOWN_MAX: usize = 10;

/// A condition before it is evaluated.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its number, as its specification counts.
    pub number: u32,
    /// What must hold, in words.
    pub title: &'static str,
    /// A query for the rows that break it.
    pub offenders: String,
}

/// A condition evaluated.
#[derive(Clone, Debug, Serialize)]
pub struct Condition {
    /// Its number, as its specification counts.
    pub number: u32,
    /// What must hold, in words.
    pub title: String,
    /// True if it holds.
    pub passed: bool,
    /// The number of rows that break it.
    pub offenders: usize,
    /// The first of them, as `column=value` pairs.
    pub rows: Vec<String>,
}

/// All conditions of a workload, evaluated.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// The workload's name.
    pub workload: String,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

impl CheckReport {
    /// True if every condition holds.
    pub fn passed(&self) -> bool {
        self.conditions.iter().all(|condition| condition.passed)
    }

    /// The conditions that do not hold, a line each.
    pub fn offences(&self) -> Vec<String> {
        let broken = self.conditions.iter().filter(|condition| !condition.passed);
        broken.map(|condition| format!("{}: {}", condition.title, condition.rows.join("; "))).collect()
    }

    /// The report as JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report holds nothing that JSON cannot")
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.conditions.iter().filter(|condition| condition.passed).count();
        writeln!(f, "{} · {passed} of {} conditions hold\n", self.workload, self.conditions.len())?;
        for condition in &self.conditions {
            let mark = if condition.passed { "pass" } else { "FAIL" };
            writeln!(f, "{:>4}  {mark}  {}", condition.number, condition.title)?;
            for row in &condition.rows {
                writeln!(f, "            {row}")?;
            }
            if condition.offenders > condition.rows.len() {
                writeln!(f, "            … {} more", condition.offenders - condition.rows.len())?;
            }
        }
        Ok(())
    }
}

/// Evaluates `rules` one by one, each in a statement and so on a snapshot of its own.
pub async fn evaluate(
    session: &mut Session,
    workload: &'static str,
    rules: &[Rule],
    progress: &dyn Progress,
) -> Result<CheckReport, BenchError> {
    progress.stage("checking", rules.len() as u64, Unit::Conditions);
    let mut conditions = Vec::new();
    for rule in rules {
        let doing = format!("checking condition {} of {workload}", rule.number);
        let rows = retrying(session, &doing, async |session: &mut Session| {
            session.begin_autocommit(Access::ReadOnly).await?;
            session.query_text(&rule.offenders).await
        })
        .await?;
        let shown = rows.iter().take(ROWS_SHOWN_MAX).map(|row| {
            let pairs: Vec<String> = row.iter().map(|(name, value)| format!("{name}={}", value.as_deref().unwrap_or("NULL"))).collect();
            pairs.join(" ")
        });
        conditions.push(Condition {
            number: rule.number,
            title: rule.title.to_owned(),
            passed: rows.is_empty(),
            offenders: rows.len(),
            rows: shown.collect(),
        });
        progress.position(conditions.len() as u64);
    }
    Ok(CheckReport { workload: workload.to_owned(), conditions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_condition_shows_its_rows() {
        let condition = |number, offenders: usize, rows: &[&str]| Condition {
            number,
            title: format!("condition {number}"),
            passed: offenders == 0,
            offenders,
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        };
        let report =
            CheckReport { workload: "tpcc".into(), conditions: vec![condition(1, 0, &[]), condition(12, 3, &["w_id=1", "w_id=2"])] };
        let expect = "\
tpcc · 1 of 2 conditions hold

   1  pass  condition 1
  12  FAIL  condition 12
            w_id=1
            w_id=2
            … 1 more
";
        assert_eq!(report.to_string(), expect);
        assert!(!report.passed());
        assert_eq!(report.offences(), ["condition 12: w_id=1; w_id=2"]);
    }
}
