//! Ways to take fewer trips, each with the time that it would save.

use super::super::Session;
use super::{Purpose, wan};
use crate::executor::Plan;
use crate::parser::StatementKind;
use crate::txn::{Kind, Round};
use rhumb_commit::transaction::{CommitOptions, ReadMode, Step, Wait};

/// Ways to take fewer trips; none if nothing is known to save any.
pub fn lines(session: &Session, kind: &StatementKind, plan: &Plan, rounds: &[Round], purpose: Purpose) -> Vec<String> {
    let gateway = session.home.gateway();
    let options = session.facts.settings.commit_options();
    let reads = || rounds.iter().filter(|round| matches!(round.kind, Kind::Keys | Kind::Range));
    let mut advice = Vec::new();
    let read = gateway.wait(Step::Read(purpose.mode));
    let nearby = gateway.wait(Step::Read(ReadMode::Optimistic));
    if let (Some(read), Some(nearby)) = (&read, &nearby)
        && read.trips > nearby.trips
    {
        let count: usize = reads().map(|round| round.count).sum();
        let saved = |trips: usize| in_all(read, nearby, trips);
        if !kind.writes() && !kind.locks_rows() && purpose.is_own && count > 0 {
            advice.push(format!("AS OF SYSTEM TIME '-5s' reads the nearest copy, as it was then: {}", saved(count)));
        }
        if !purpose.is_own && !purpose.mode.is_read_only() && count > 0 {
            advice.push(format!(
                "SET rhumb.read_mode = 'optimistic' before BEGIN reads the nearest copy, and the commit checks what was read: {}",
                saved(count)
            ));
        }
        let parts: usize = reads().filter(|round| round.kind == Kind::Range).map(|round| round.count - 1).sum();
        if parts > 0 {
            advice.push(format!("a range that fits into one part takes one trip: read fewer rows, or fewer at a time, {}", saved(parts)));
        }
    }
    if !purpose.is_own && read.is_some_and(|read| read.trips > 0) && gateway.takes_operations() {
        advice.push("the statements of the transaction in one text, BEGIN and COMMIT included, are sent as one".to_owned());
    }
    for table in plan.scanned() {
        advice.push(format!("all rows of {table} are read: an index on the columns of the condition would find them"));
    }
    let once = wan::commit(CommitOptions { two_rounds: false, ..options }, purpose);
    if let (true, Some(twice), Some(once)) = (options.two_rounds, gateway.wait(wan::commit(options, purpose)), gateway.wait(once))
        && twice.trips > once.trips
    {
        advice.push(format!("SET rhumb.commit_rounds = 1 answers once the votes are in: {}", in_all(&twice, &once, 1)));
    }
    if advice.is_empty() {
        return advice;
    }
    std::iter::once("To take fewer:".to_owned()).chain(advice.into_iter().map(|way| format!("  - {way}"))).collect()
}

/// What `count` steps save that wait for `less` in place of `more`.
fn in_all(more: &Wait, less: &Wait, count: usize) -> String {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let trips = (more.trips - less.trips).saturating_mul(count);
    let millis = (more.time.as_millis_f64() - less.time.as_millis_f64()) * f64::from(count);
    let noun = if trips == 1 { "trip" } else { "trips" };
    format!("{trips} {noun} and {millis:.1} ms less")
}
