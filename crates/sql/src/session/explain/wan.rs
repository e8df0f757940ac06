//! The trips between regions that a statement takes, round by round, as text.

use super::Purpose;
use crate::txn::{Home, Kind, Round};
use rhumb_commit::transaction::{CommitOptions, Gateway, Step, Wait};

/// What is not known.
const UNKNOWN: &str = "?";

/// A table of the rounds, whom each waits for, and for how long; the sum of them, and the least that a commit takes here.
pub fn lines(home: &Home, options: CommitOptions, rounds: &[Round], purpose: Purpose) -> Vec<String> {
    let gateway = home.gateway();
    let commit = gateway.wait(commit(options, purpose));
    let mut steps: Vec<Line> = rounds.iter().map(|round| Line::of(round, gateway, options, purpose)).collect();
    let waits = commit.as_ref().is_none_or(|wait| wait.trips > 0);
    if purpose.is_own && !purpose.is_run && waits {
        steps.push(Line { step: "commit".into(), size: None, trips: None, foreseen: commit.clone(), took: None });
    }
    let here = gateway.regions().into_iter().find(|region| region.local).map_or_else(|| UNKNOWN.to_owned(), |region| region.name);
    let mut lines = vec![format!("Trips between regions, from {here}, by {}:", home.protocol())];
    lines.extend(aligned(&table(&steps, purpose)).into_iter().map(|line| format!("  {line}")));
    if let (false, Some(commit)) = (purpose.is_own, &commit) {
        lines.push(format!("The commit of its transaction: {}", in_words(commit)));
    }
    if commit.is_some()
        && let Some(floor) = gateway.regions().iter().find(|region| region.local).and_then(|region| region.floor)
    {
        lines.push(format!("The floor of a commit here: {:.1} ms", floor.as_millis_f64()));
    }
    lines
}

/// The commit of a transaction that reads so.
pub fn commit(options: CommitOptions, purpose: Purpose) -> Step {
    Step::Commit { reads: purpose.mode, two_rounds: options.two_rounds, handoff: options.handoff }
}

/// A round as it is shown.
struct Line {
    step: String,
    /// Rows and bytes.
    size: Option<(usize, usize)>,
    /// Trips that it took.
    trips: Option<u32>,
    foreseen: Option<Wait>,
    /// Milliseconds.
    took: Option<f64>,
}

impl Line {
    fn of(round: &Round, gateway: &dyn Gateway, options: CommitOptions, purpose: Purpose) -> Line {
        let mode = if purpose.is_run { round.mode } else { purpose.mode };
        let step = match round.kind {
            Kind::Keys | Kind::Range => Step::Read(mode),
            Kind::Commit | Kind::Operations => commit(options, Purpose { mode, ..purpose }),
        };
        let count = u32::try_from(round.count).unwrap_or(u32::MAX);
        let foreseen = gateway.wait(step).map(|wait| Wait {
            trips: wait.trips.saturating_mul(count),
            time: wait.time * u64::from(count),
            regions: wait.regions,
        });
        let several = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
        let step = match round.kind {
            Kind::Keys => format!("read {}", several(round.keys, "key")),
            Kind::Range if round.count == 1 => "read a range".to_owned(),
            Kind::Range => format!("read a range, in {} parts", round.count),
            Kind::Commit => "commit".to_owned(),
            Kind::Operations => format!("commit {}", several(round.keys, "operation")),
        };
        let size = matches!(round.kind, Kind::Keys | Kind::Range).then_some((round.rows, round.bytes));
        let (trips, took) = (round.trips, round.took.as_secs_f64() * 1_000.0);
        Line { step, size, trips: purpose.is_run.then_some(trips), foreseen, took: purpose.is_run.then_some(took) }
    }
}

fn table(steps: &[Line], purpose: Purpose) -> Vec<Vec<String>> {
    let number = |number: Option<usize>| number.map_or_else(String::new, |number| number.to_string());
    let millis = |millis: Option<f64>| millis.map_or_else(|| UNKNOWN.to_owned(), |millis| format!("{millis:.1}"));
    let row = |step: String, size: Option<(usize, usize)>, trips: Option<u32>, waits: String, foreseen: Option<f64>, took: Option<f64>| {
        let trips = trips.map_or_else(|| UNKNOWN.to_owned(), |trips| trips.to_string());
        let mut row = vec![step, number(size.map(|(rows, _)| rows)), number(size.map(|(_, bytes)| bytes)), trips, millis(foreseen)];
        if purpose.is_run {
            row.push(millis(took));
        }
        row.push(waits);
        row
    };
    let mut head = vec!["step", "rows", "bytes", "trips", "foreseen ms"];
    if purpose.is_run {
        head.push("took ms");
    }
    head.push("waits for");
    let mut rows = vec![head.into_iter().map(str::to_owned).collect()];
    let time = |wait: &Option<Wait>| wait.as_ref().map(|wait| wait.time.as_millis_f64());
    let trips = |line: &Line| line.trips.or(line.foreseen.as_ref().map(|wait| wait.trips));
    for line in steps {
        let waits = match &line.foreseen {
            None => UNKNOWN.to_owned(),
            Some(wait) if wait.regions.is_empty() => "no other region".to_owned(),
            Some(wait) => wait.regions.join(", "),
        };
        rows.push(row(line.step.clone(), line.size, trips(line), waits, time(&line.foreseen), line.took));
    }
    let size = steps.iter().filter_map(|line| line.size).fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
    let foreseen = steps.iter().map(|line| time(&line.foreseen)).sum();
    let took = steps.iter().map(|line| line.took).sum();
    rows.push(row("all".into(), Some(size), steps.iter().map(trips).sum(), String::new(), foreseen, took));
    rows
}

/// The cells below one another: numbers to the right, the first column and the last to the left.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let last = rows[0].len() - 1;
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..=last).map(width).collect();
    let cell = |(column, text): (usize, &String)| match column {
        0 => format!("{text:<width$}", width = widths[0]),
        _ if column == last => text.clone(),
        _ => format!("{text:>width$}", width = widths[column]),
    };
    rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()).collect()
}

fn in_words(wait: &Wait) -> String {
    match wait.trips {
        0 => "no trip".to_owned(),
        1 => format!("1 trip, {:.1} ms", wait.time.as_millis_f64()),
        trips => format!("{trips} trips, {:.1} ms", wait.time.as_millis_f64()),
    }
}
