//! Invariant: the transactions that happened can be put into one order that explains all they read and wrote, in which a
//! transaction acknowledged before another began stands before it.
//!
//! Three passes, from what needs least trust in the database to what needs most: a cycle in the dependencies that the data alone
//! shows; a cycle once registers are ordered by commit timestamps; and commit timestamps that do not rise along a
//! dependency, which would let a read at a timestamp see a later transaction and miss an earlier one. Stale reads are no
//! part of the order (see [`stale_reads`](super::stale_reads)), but what they saw had happened.

use super::counterexample;
use super::dependencies::{self, Order};
use super::graph::{Graph, Label, NodeNo, Step};
use super::observations::Observations;
use super::violation::{Anomaly, Violation};
use crate::history::{History, Mode, TxnNo};
use rhumb_core::Timestamp;

/// Checks `history`.
///
/// # Errors
/// The first violation found; a cycle is as short as was found with moderate effort.
pub fn check(history: &History) -> Result<(), Violation> {
    let observations = Observations::of(history)?;
    check_cycles(&observations, &dependencies::graph(&observations, Order::Observed)?)?;
    let graph = dependencies::graph(&observations, Order::Timestamps)?;
    check_cycles(&observations, &graph)?;
    check_timestamps(&observations, &graph)
}

/// Reports a cycle of the worst kind there is, for that is what makes the cause plain.
fn check_cycles(observations: &Observations<'_>, graph: &Graph) -> Result<(), Violation> {
    let any = |_| true;
    if graph.cycle(any, any).is_none() {
        return Ok(());
    }
    let writes = |label| matches!(label, Label::Ww(_));
    let data = |label| matches!(label, Label::Ww(_) | Label::Wr(_));
    let timeless = |label| label != Label::RealTime;
    let cycle = graph.cycle(writes, any).or_else(|| graph.cycle(data, any)).or_else(|| graph.cycle(timeless, any));
    let cycle = cycle.or_else(|| graph.cycle(any, any)).expect("there is a cycle");
    Err(counterexample::explain(observations, classify(&cycle), &cycle))
}

fn classify(cycle: &[Step]) -> Anomaly {
    let count = |wanted: fn(Label) -> bool| cycle.iter().filter(|step| wanted(step.label)).count();
    let anti_dependencies = count(|label| matches!(label, Label::Rw(_) | Label::Absent(_)));
    match anti_dependencies {
        _ if count(|label| label == Label::RealTime) > 0 => Anomaly::RealTime,
        0 if count(|label| matches!(label, Label::Wr(_))) == 0 => Anomaly::DirtyWrite,
        0 => Anomaly::CircularInformation,
        1 => Anomaly::SingleAntiDependency,
        _ => Anomaly::AntiDependencies,
    }
}

/// Along every dependency timestamps must rise. A read-only transaction may stand at the timestamp of the last version it saw.
fn check_timestamps(observations: &Observations<'_>, graph: &Graph) -> Result<(), Violation> {
    let places: Vec<Option<(Timestamp, TxnNo)>> = graph.nodes().map(|node| place(observations, graph, node)).collect();
    for from in graph.nodes().filter_map(|node| graph.txn(node)) {
        let Some((before, _)) = places[from.0 as usize] else { continue };
        for &(node, label) in graph.out(from.0).iter().filter(|(_, label)| *label != Label::RealTime) {
            let Some((after, to)) = places[node as usize] else { continue };
            let equal_will_do = matches!(label, Label::Wr(_)) && observations.history.txn(to).mode == Mode::ReadOnly;
            if after < before || (after == before && !equal_will_do) {
                let step = Step { from, label, to };
                let (name, reason) = (counterexample::name(observations, label), counterexample::reason(observations, &step));
                let story = format!("{from} -{name}-> {to}, but {from} is at {before} and {to} at {after}\n  {reason}");
                return Err(observations.violation(Anomaly::TimestampOrder, story, [from, to]));
            }
        }
    }
    Ok(())
}

/// Where a node stands in the order of timestamps; a junction where the lowest transaction after it stands.
fn place(observations: &Observations<'_>, graph: &Graph, node: NodeNo) -> Option<(Timestamp, TxnNo)> {
    let at = |no| timestamp(observations, no).map(|at| (at, no));
    match graph.txn(node) {
        Some(no) => at(no),
        None => graph.out(node).iter().filter_map(|&(next, _)| graph.txn(next).and_then(at)).min(),
    }
}

/// The place of a transaction in the order of timestamps. One that wrote nothing has a place only if it read at a timestamp.
fn timestamp(observations: &Observations<'_>, no: TxnNo) -> Option<Timestamp> {
    let facts = observations.facts(no);
    facts.at.filter(|_| !facts.writes.is_empty() || observations.history.txn(no).mode == Mode::ReadOnly)
}
