//! Cycles in graphs, against the obvious but slow way to find them.

use super::super::graph::{Graph, Label, Step};
use crate::history::TxnNo;
use rhumb_core::Rng;
use std::collections::BTreeSet;

const ANY: fn(Label) -> bool = |_| true;

fn step(from: u32, label: Label, to: u32) -> Step {
    Step { from: TxnNo(from), label, to: TxnNo(to) }
}

#[test]
fn of_two_cycles_the_shorter_is_found() {
    let mut graph = Graph::new(5);
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0), (3, 2), (3, 4)] {
        graph.link(TxnNo(from), TxnNo(to), Label::Ww(0));
    }
    assert_eq!(graph.cycle(ANY, ANY), Some(vec![step(2, Label::Ww(0), 3), step(3, Label::Ww(0), 2)]));
}

#[test]
fn junctions_cost_nothing_and_do_not_show() {
    let mut graph = Graph::new(3);
    let chain: Vec<u32> = (0..50).map(|_| graph.junction()).collect();
    chain.windows(2).for_each(|pair| graph.edge(pair[0], pair[1], Label::Onward));
    graph.edge(0, chain[0], Label::RealTime);
    graph.edge(chain[49], 1, Label::Onward);
    for (from, to) in [(0, 2), (2, 1), (1, 0)] {
        graph.link(TxnNo(from), TxnNo(to), Label::Rw(7));
    }
    assert_eq!(graph.cycle(ANY, ANY), Some(vec![step(0, Label::RealTime, 1), step(1, Label::Rw(7), 0)]));
    let data = graph.cycle(|label| label != Label::RealTime, ANY);
    assert_eq!(data.map(|cycle| cycle.len()), Some(3));
}

#[test]
fn a_wanted_edge_must_lie_on_the_cycle() {
    let mut graph = Graph::new(3);
    graph.link(TxnNo(0), TxnNo(1), Label::Ww(0));
    graph.link(TxnNo(1), TxnNo(0), Label::Ww(0));
    graph.link(TxnNo(1), TxnNo(2), Label::Absent(0));
    let absent = |label| matches!(label, Label::Absent(_));
    assert_eq!(graph.cycle(ANY, absent), None);
    graph.link(TxnNo(2), TxnNo(1), Label::Wr(0));
    assert_eq!(graph.cycle(ANY, absent), Some(vec![step(1, Label::Absent(0), 2), step(2, Label::Wr(0), 1)]));
}

#[test]
fn random_graphs_agree_with_the_slow_way() {
    let mut cyclic = 0;
    for seed in 0..2_000 {
        let mut rng = Rng::seeded(seed);
        let (nodes, mut edges) = (rng.between(2, 8) as u32, BTreeSet::new());
        let mut graph = Graph::new(nodes as usize);
        for _ in 0..rng.below(12) {
            let (from, to) = (rng.below(nodes.into()) as u32, rng.below(nodes.into()) as u32);
            graph.link(TxnNo(from), TxnNo(to), Label::Ww(0));
            edges.extend((from != to).then_some((from, to)));
        }
        let is_cyclic = (0..nodes).any(|node| comes_back(node, &edges));
        assert_eq!(graph.cycle(ANY, ANY).is_some(), is_cyclic, "seed {seed}: {edges:?}");
        let Some(cycle) = graph.cycle(ANY, ANY) else { continue };
        cyclic += 1;
        let closed = cycle.iter().zip(cycle.iter().cycle().skip(1)).all(|(step, next)| step.to == next.from);
        assert!(closed && cycle.iter().all(|step| edges.contains(&(step.from.0, step.to.0))), "seed {seed}: {cycle:?}");
    }
    assert!((200..1_800).contains(&cyclic), "{cyclic} graphs have cycles");
}

fn comes_back(home: u32, edges: &BTreeSet<(u32, u32)>) -> bool {
    let mut reached = BTreeSet::new();
    for _ in 0..edges.len() {
        reached.extend(edges.iter().filter(|(from, _)| *from == home || reached.contains(from)).map(|&(_, to)| to).collect::<Vec<_>>());
    }
    reached.contains(&home)
}
