//! Invariant: a row that a scan did not return was not there in the order that explains everything else.
//!
//! The absence of a row from a scan is a read of the state before the row was inserted (or after it was deleted), so the scan
//! comes before the insert: an `rw` edge like any other, and a phantom is a cycle through such an edge. Looks at the same
//! graph as [`strict_serializability`](super::strict_serializability), but only for those cycles, so that a range lock
//! forgotten is told from a row lock forgotten.

use super::counterexample;
use super::dependencies::{self, Order};
use super::graph::Label;
use super::observations::Observations;
use super::violation::{Anomaly, Violation};
use crate::history::History;

/// Checks `history`.
///
/// # Errors
/// A cycle through a row absent from a scan, or a read that makes no sense by itself.
pub fn check(history: &History) -> Result<(), Violation> {
    let observations = Observations::of(history)?;
    for order in [Order::Observed, Order::Timestamps] {
        let graph = dependencies::graph(&observations, order)?;
        if let Some(cycle) = graph.cycle(|_| true, |label| matches!(label, Label::Absent(_))) {
            return Err(counterexample::explain(&observations, Anomaly::Phantom, &cycle));
        }
    }
    Ok(())
}
