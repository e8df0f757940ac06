//! All schedules that depart from a plain one in a few places.
//!
//! What is too large to be explored state by state is run instead, from its beginning, on every schedule with so many departures. Nothing
//! of it is copied or hashed, so whole sites of the product can be run as they are; and what few departures do not bring about is not
//! looked at.

/// A place where a schedule departs from the plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// A message is lost.
    Drop,
    /// A message arrives a few ticks later; what a site writes is not durable for as long.
    PutOff,
    /// A site crashes, and starts again from what is durable.
    Crash(usize),
    /// A site is lost for good.
    Lose(usize),
    /// Nothing reaches or leaves a site for a while.
    Isolate(usize),
}

/// The places of a schedule, by step.
pub type Schedule = Vec<(usize, Departure)>;

/// A property that a schedule violates.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What is wrong.
    pub what: String,
    /// All that happened before, line by line.
    pub trace: Vec<String>,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Searched {
    /// Schedules that were run.
    pub schedules: u64,
    /// Steps of all of them.
    pub steps: u64,
}

/// Which schedules.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Departures in a schedule, at the most.
    pub departures: usize,
    /// Each departure is at most so many steps after the one before it.
    pub apart: usize,
}

/// Has `run` run all of them, which tells how many steps there were. In each of the `ways`.
///
/// # Errors
/// The first violation.
pub fn search(bounds: Bounds, ways: &[Departure], run: impl Fn(&Schedule) -> Result<usize, Violation>) -> Result<Searched, String> {
    let mut searched = Searched::default();
    let mut open: Vec<Schedule> = vec![Vec::new()];
    while let Some(schedule) = open.pop() {
        searched.schedules += 1;
        let steps = run(&schedule).map_err(|Violation { what, trace }| {
            format!("{what}, by {schedule:?}, after {} schedules:\n  {}", searched.schedules, trace.join("\n  "))
        })?;
        searched.steps += steps as u64;
        if schedule.len() == bounds.departures {
            continue;
        }
        let from = schedule.last().map_or(0, |(at, _)| at + 1);
        let to = if schedule.is_empty() { steps } else { steps.min(from + bounds.apart) };
        for at in from..to {
            open.extend(ways.iter().map(|departure| [&schedule[..], &[(at, *departure)]].concat()));
        }
    }
    Ok(searched)
}
