//! Strongly connected components: Tarjan's algorithm, with a stack of its own, for a history may nest deeper than a thread's.

use super::{Graph, Label, NodeNo};

/// Not yet visited, or not yet in a component.
const NONE: u32 = u32::MAX;

/// For each node the number of its component, over the edges that `allowed` accepts.
pub(super) fn components(graph: &Graph, allowed: impl Fn(Label) -> bool) -> Vec<u32> {
    let count = graph.nodes().len();
    let mut search = Search {
        graph,
        allowed,
        index: vec![NONE; count],
        low: vec![NONE; count],
        component: vec![NONE; count],
        open: Vec::new(),
        visited: 0,
        closed: 0,
    };
    for root in graph.nodes() {
        if search.index[root as usize] == NONE {
            search.visit(root);
        }
    }
    search.component
}

struct Search<'a, F> {
    graph: &'a Graph,
    allowed: F,
    /// The order in which nodes were first visited.
    index: Vec<u32>,
    /// The lowest index known to be reachable within the component.
    low: Vec<u32>,
    component: Vec<u32>,
    /// Visited nodes whose component is not complete.
    open: Vec<NodeNo>,
    visited: u32,
    closed: u32,
}

impl<F: Fn(Label) -> bool> Search<'_, F> {
    /// Visits all that `root` reaches and that was not visited before.
    fn visit(&mut self, root: NodeNo) {
        let mut walk = vec![(root, 0)];
        self.enter(root);
        while let Some((node, edge)) = walk.pop() {
            let Some(&(next, label)) = self.graph.out(node).get(edge) else {
                self.leave(node);
                if let Some(&(parent, _)) = walk.last() {
                    self.lower(parent, self.low[node as usize]);
                }
                continue;
            };
            walk.push((node, edge + 1));
            if !(self.allowed)(label) {
                continue;
            }
            if self.index[next as usize] == NONE {
                self.enter(next);
                walk.push((next, 0));
            } else if self.component[next as usize] == NONE {
                self.lower(node, self.index[next as usize]);
            }
        }
    }

    fn enter(&mut self, node: NodeNo) {
        self.index[node as usize] = self.visited;
        self.low[node as usize] = self.visited;
        self.visited += 1;
        self.open.push(node);
    }

    fn lower(&mut self, node: NodeNo, to: u32) {
        let low = &mut self.low[node as usize];
        *low = to.min(*low);
    }

    /// All that `node` reaches was visited: if it reaches nothing older, what is open above it is its component.
    fn leave(&mut self, node: NodeNo) {
        if self.low[node as usize] < self.index[node as usize] {
            return;
        }
        while let Some(member) = self.open.pop() {
            self.component[member as usize] = self.closed;
            if member == node {
                break;
            }
        }
        self.closed += 1;
    }
}
