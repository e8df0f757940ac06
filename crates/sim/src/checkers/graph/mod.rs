//! A directed graph of transactions, and its short cycles.
//!
//! Besides the transactions there are *junctions*: nodes of no transaction that stand between many sources and many targets, so
//! that `a × b` edges take only `a + b`. What an edge says is written on it when it leaves a transaction; from a junction it is
//! [`Label::Onward`]. Invariant: a transaction must never reach itself through junctions alone unless that is a true
//! cycle; who adds edges sees to that.

mod components;

use super::keys::KeyNo;
use crate::history::TxnNo;
use components::components;
use std::collections::VecDeque;
use std::ops::Range;

/// How many edges of a component are tried as the start of its shortest cycle.
const STARTS_MAX: usize = 64;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Label {
    /// Both wrote the key, one after the other.
    Ww(KeyNo),
    /// The second read what the first wrote.
    Wr(KeyNo),
    /// The first read a version older than the one the second wrote.
    Rw(KeyNo),
    /// The same, and what the first read was the absence of the row from a scan.
    Absent(KeyNo),
    /// The first had ended before the second began.
    RealTime,
    /// Goes on from a junction.
    Onward,
}

/// A node: a transaction or a junction.
pub(super) type NodeNo = u32;

/// One edge between two transactions, junctions left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub from: TxnNo,
    pub label: Label,
    pub to: TxnNo,
}

/// The graph. Nodes below `txns` are the transactions of that number.
pub(super) struct Graph {
    txns: usize,
    edges: Vec<Vec<(NodeNo, Label)>>,
}

impl Graph {
    /// A graph of `txns` transactions without edges.
    pub fn new(txns: usize) -> Graph {
        Graph { txns, edges: vec![Vec::new(); txns] }
    }

    /// A new junction.
    pub fn junction(&mut self) -> NodeNo {
        self.edges.push(Vec::new());
        NodeNo::try_from(self.edges.len() - 1).expect("a graph has fewer than 2^32 nodes")
    }

    /// Adds an edge between two transactions; a transaction does not depend on itself.
    pub fn link(&mut self, from: TxnNo, to: TxnNo, label: Label) {
        if from != to {
            self.edge(from.0, to.0, label);
        }
    }

    /// Adds an edge.
    pub fn edge(&mut self, from: NodeNo, to: NodeNo, label: Label) {
        self.edges[from as usize].push((to, label));
    }

    /// The edges out of `node`.
    pub fn out(&self, node: NodeNo) -> &[(NodeNo, Label)] {
        &self.edges[node as usize]
    }

    /// All nodes.
    pub fn nodes(&self) -> Range<NodeNo> {
        0..self.edges.len() as NodeNo
    }

    /// The transaction that `node` is, unless it is a junction.
    pub fn txn(&self, node: NodeNo) -> Option<TxnNo> {
        ((node as usize) < self.txns).then_some(TxnNo(node))
    }

    /// A short cycle of edges that `allowed` accepts, at least one of which `wanted` accepts; `None` if there is none.
    /// `Onward` edges are always allowed and never wanted.
    pub fn cycle(&self, allowed: impl Fn(Label) -> bool, wanted: impl Fn(Label) -> bool) -> Option<Vec<Step>> {
        let allowed = |label| label == Label::Onward || allowed(label);
        let component = components(self, allowed);
        let mut sizes = vec![0_usize; self.edges.len()];
        component.iter().for_each(|&of| sizes[of as usize] += 1);
        let mut starts: Vec<(usize, u32, NodeNo, NodeNo, Label)> = Vec::new();
        for from in self.nodes() {
            for &(to, label) in self.out(from) {
                let home = component[from as usize];
                if label != Label::Onward && allowed(label) && wanted(label) && component[to as usize] == home {
                    starts.push((sizes[home as usize], home, from, to, label));
                }
            }
        }
        starts.sort_unstable();
        let (_, smallest, ..) = *starts.first()?;
        let of_smallest = starts.iter().take_while(|start| start.1 == smallest).take(STARTS_MAX);
        let within = |node: NodeNo| component[node as usize] == smallest;
        let cycles = of_smallest.map(|&(_, _, from, to, label)| self.close(from, to, label, allowed, within));
        cycles.min_by_key(Vec::len)
    }

    /// The shortest cycle that begins with the given edge, by the number of its transactions (0-1 breadth-first search).
    fn close(&self, from: NodeNo, to: NodeNo, label: Label, allowed: impl Fn(Label) -> bool, within: impl Fn(NodeNo) -> bool) -> Vec<Step> {
        let mut best = vec![usize::MAX; self.edges.len()];
        let mut reached_by: Vec<Option<(NodeNo, Label)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([(to, 0)]);
        best[to as usize] = 0;
        while let Some((node, cost)) = queue.pop_front() {
            if node == from {
                break;
            }
            if cost > best[node as usize] {
                continue;
            }
            for &(next, label) in self.out(node).iter().filter(|&&(next, label)| allowed(label) && within(next)) {
                let weight = usize::from(self.txn(next).is_some());
                if cost + weight < best[next as usize] {
                    best[next as usize] = cost + weight;
                    reached_by[next as usize] = Some((node, label));
                    if weight == 0 { queue.push_front((next, cost)) } else { queue.push_back((next, cost + weight)) }
                }
            }
        }
        let mut hops = vec![(from, label, to)];
        let mut node = from;
        while node != to {
            let (before, label) = reached_by[node as usize].expect("both ends of the edge lie in one component");
            hops.push((before, label, node));
            node = before;
        }
        hops[1..].reverse();
        self.without_junctions(&hops)
    }

    /// The same walk, from transaction to transaction.
    fn without_junctions(&self, hops: &[(NodeNo, Label, NodeNo)]) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut leaving: Option<(TxnNo, Label)> = None;
        for &(from, label, to) in hops {
            if let Some(from) = self.txn(from) {
                leaving = Some((from, label));
            }
            if let Some(to) = self.txn(to) {
                let (from, label) = leaving.take().expect("a cycle begins at a transaction");
                steps.push(Step { from, label, to });
            }
        }
        steps
    }
}
