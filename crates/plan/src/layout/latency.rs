//! What a layout means for the clients of each region: who serves them, and how long that takes.
//!
//! It counts as [`evaluate`](crate::evaluate::evaluate) does for protocols without leaders, and besides what a running cluster
//! may have and a placement of 2f + 1 replicas has not: passive copies, any number of active regions, and coordinators that
//! somebody named.

use super::Layout;
use crate::matrix::Matrix;
use crate::model::{Model, Reads};
use crate::problem::Problem;

/// Who serves the clients of a region, and how long an average transaction of theirs takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Who serves their reads: themselves, if they ask a majority.
    pub read: usize,
    /// Who coordinates their commits.
    pub commit: usize,
    /// How long a transaction takes, in nanoseconds.
    pub latency_ns: u64,
}

/// What serves the clients of `problem`, in their order.
///
/// # Panics
/// If the layout names a region that is not in the matrix, or none as active.
pub fn services(problem: &Problem, layout: &Layout) -> Vec<Service> {
    problem.clients().iter().map(|client| service(problem.matrix(), problem.model(), layout, client.region, client.reads_milli)).collect()
}

/// What serves clients in the region `here` that read `reads_milli` thousandths of a time in a transaction.
pub fn service(matrix: &Matrix, model: Model, layout: &Layout, here: usize, reads_milli: u64) -> Service {
    let quorum_us = |from: usize| {
        let mut trips: Vec<u32> = indices(matrix, &layout.active).iter().map(|&to| matrix.rtt_us(from, to)).collect();
        trips.sort_unstable();
        u64::from(trips[trips.len() / 2])
    };
    let named = layout.coordinators.get(&matrix.names()[here]);
    let commit = named.map_or(here, |named| index(matrix, &named.commit));
    let read = match model.reads {
        Reads::Majority => here,
        Reads::Optimistic | Reads::Passive => read_at(matrix, layout, here),
    };
    let read_us = match model.reads {
        Reads::Majority => quorum_us(here),
        Reads::Optimistic | Reads::Passive => u64::from(matrix.hop_us(here, read)),
    };
    let commit_us = u64::from(matrix.hop_us(here, commit)) + model.protocol.rounds() * quorum_us(commit);
    Service { read, commit, latency_ns: reads_milli * read_us + 1_000 * commit_us }
}

/// The copy that is read without locks: at home, else where the layout says, else the nearest, of several the first by the
/// order of the matrix.
pub fn read_at(matrix: &Matrix, layout: &Layout, here: usize) -> usize {
    let copies = indices(matrix, &layout.copies());
    let named = layout.coordinators.get(&matrix.names()[here]).map(|named| index(matrix, &named.read));
    let wished = [Some(here), named].into_iter().flatten().find(|region| copies.contains(region));
    let nearest = || copies.iter().copied().min_by_key(|&copy| (matrix.rtt_us(here, copy), copy));
    wished.or_else(nearest).expect("some region is active")
}

/// The indices of `regions`, ascending.
pub fn indices<'n>(matrix: &Matrix, regions: impl IntoIterator<Item = &'n String>) -> Vec<usize> {
    let mut indices: Vec<usize> = regions.into_iter().map(|name| index(matrix, name)).collect();
    indices.sort_unstable();
    indices
}

fn index(matrix: &Matrix, name: &str) -> usize {
    matrix.region(name).expect("a layout is one of the regions of the matrix")
}

#[cfg(test)]
mod tests {
    use super::super::Coordinators;
    use super::super::tests::layout;
    use super::*;
    use crate::model::Protocol;

    /// Four regions in a line, 10 ms apart.
    fn line() -> Matrix {
        Matrix::new(["a", "b", "c", "d"].map(str::to_owned).to_vec(), |from, to| 10_000 * from.abs_diff(to) as u32).expect("four regions")
    }

    fn served(reads: Reads, protocol: Protocol, layout: &Layout, here: usize) -> (usize, usize, u64) {
        let model = Model { protocol, reads, handoff: false, read_processing_us: 0 };
        let Service { read, commit, latency_ns } = service(&line(), model, layout, here, 2_000);
        (read, commit, latency_ns / 1_000_000)
    }

    #[test]
    fn a_copy_at_home_is_read_there_and_votes_are_those_of_active_regions() {
        let placed = layout("a b c", "d");
        // d: two reads at home, 20 ms to b and c.
        assert_eq!(served(Reads::Optimistic, Protocol::ReplicatedCommit, &placed, 3), (3, 3, 20));
        assert_eq!(served(Reads::Optimistic, Protocol::ReplicatedCommit, &layout("a b c", ""), 3), (2, 3, 2 * 10 + 20));
        assert_eq!(served(Reads::Majority, Protocol::ReplicatedCommit, &placed, 3), (3, 3, 3 * 20));
        assert_eq!(served(Reads::Optimistic, Protocol::TwoRounds, &placed, 3), (3, 3, 40));
        // All four are active: a majority is three of them.
        assert_eq!(served(Reads::Optimistic, Protocol::ReplicatedCommit, &layout("a b c d", ""), 0), (0, 0, 20));
    }

    #[test]
    fn named_coordinators_are_taken_but_for_a_read_at_home() {
        let mut placed = layout("a b c", "");
        placed.coordinators.insert("d".to_owned(), Coordinators { read: "a".to_owned(), commit: "b".to_owned() });
        // Two reads 30 ms away; 20 ms to b, which hears a or c 10 ms later.
        assert_eq!(served(Reads::Optimistic, Protocol::ReplicatedCommit, &placed, 3), (0, 1, 2 * 30 + 20 + 10));
        placed.passive.insert("d".to_owned());
        assert_eq!(served(Reads::Optimistic, Protocol::ReplicatedCommit, &placed, 3), (3, 1, 20 + 10));
    }
}
