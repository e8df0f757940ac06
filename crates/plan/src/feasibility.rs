//! Whether constraints can be satisfied together, decided exactly, and which of them conflict if not.
//!
//! At most two constraints divide the regions into groups, so a placement is a flow: from a source through the groups of
//! the first division, one unit per region, through the groups of the second to a sink. A cheapest flow of as many units
//! as replicas are missing is the cheapest placement; there is one within the budget or there is none at all.

use crate::constraints::{Constraint, Groups};
use crate::request::Request;

/// What the constraints of a request come to.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The regions that may hold a replica by every constraint on single regions, ascending.
    pub candidates: Vec<usize>,
    /// The regions that must, ascending.
    pub required: Vec<usize>,
    /// How many replicas a group may hold.
    pub limits: Vec<(u32, Groups)>,
    /// What the replicas may cost, in millionths of a dollar.
    pub budget: Option<u64>,
}

impl Terms {
    /// What `constraints`, some of those of `request`, come to.
    pub fn new<'c>(request: &Request, constraints: impl Iterator<Item = &'c Constraint> + Clone) -> Terms {
        let total: u64 = request.clients.iter().map(|client| client.clients).sum();
        let admitted = |region: &usize| constraints.clone().all(|constraint| admits_region(constraint, *region, total));
        let mut terms = Terms {
            candidates: (0..request.matrix.regions()).filter(admitted).collect(),
            required: Vec::new(),
            limits: Vec::new(),
            budget: None,
        };
        for constraint in constraints {
            match constraint {
                Constraint::Required(region) => terms.required.push(*region),
                Constraint::AtMost { limit, groups } => terms.limits.push((*limit, groups.clone())),
                Constraint::Budget(most) => terms.budget = Some(terms.budget.map_or(*most, |budget| budget.min(*most))),
                Constraint::Within(_) | Constraint::Forbidden(_) | Constraint::Capacity(_) => {}
            }
        }
        terms.required.sort_unstable();
        terms.required.dedup();
        terms
    }

    /// Whether `size` replicas, the `chosen` ones among them, satisfy the terms somewhere.
    pub fn satisfiable(&self, size: usize, chosen: &[usize], price: impl Fn(usize) -> u64) -> bool {
        let mut fixed: Vec<usize> = self.required.iter().chain(chosen).copied().collect();
        fixed.sort_unstable();
        fixed.dedup();
        if fixed.len() > size || fixed.iter().any(|region| self.candidates.binary_search(region).is_err()) {
            return false;
        }
        if self.limits.is_empty() && self.budget.is_none() {
            return self.candidates.len() >= size;
        }
        let Some(mut flow) = Flow::new(self, &fixed, size, &price) else { return false };
        let mut spent: u128 = fixed.iter().map(|&region| u128::from(price(region))).sum();
        for _ in fixed.len()..size {
            let Some(cost) = flow.augment() else { return false };
            // A single unit may lead back over dearer ones, but the sum never falls: prices are not negative.
            spent = spent.checked_add_signed(cost).expect("a flow costs no less than nothing");
        }
        self.budget.is_none_or(|budget| spent <= u128::from(budget))
    }

    /// Whether `replicas`, all of them candidates and each once, satisfy what the terms ask of them together.
    pub fn hold_together(&self, replicas: &[usize], price: impl Fn(usize) -> u64) -> bool {
        self.required.iter().all(|region| replicas.contains(region))
            && self.limits.iter().all(|(limit, groups)| within_limit(replicas, *limit, groups))
            && self.budget.is_none_or(|budget| replicas.iter().map(|&region| price(region)).sum::<u64>() <= budget)
    }
}

/// Whether no group holds more than `limit` of `replicas`. Quadratic in their number, which is small, and allocates nothing.
fn within_limit(replicas: &[usize], limit: u32, groups: &Groups) -> bool {
    replicas.iter().all(|&region| {
        let together = replicas.iter().filter(|&&other| groups.of[other] == groups.of[region]).count();
        together <= limit as usize
    })
}

/// Whether `constraint` lets `region` hold a replica at all, where there are `total` clients.
fn admits_region(constraint: &Constraint, region: usize, total: u64) -> bool {
    match constraint {
        Constraint::Within(regions) => regions.contains(&region),
        Constraint::Forbidden(forbidden) => *forbidden != region,
        Constraint::Capacity(clients) => clients[region] >= total,
        Constraint::Required(_) | Constraint::AtMost { .. } | Constraint::Budget(_) => true,
    }
}

/// The constraints of `request` that conflict, if they do, by their indices: a set of which every proper part can be
/// satisfied. One after another is left out for good if the rest still conflicts.
pub(crate) fn conflict(request: &Request) -> Option<Vec<usize>> {
    let satisfiable = |kept: &[usize]| {
        let price = |region: usize| request.prices.get(region).copied().unwrap_or(0);
        let constraints = kept.iter().map(|&index| &request.constraints[index]);
        Terms::new(request, constraints).satisfiable(2 * request.faults + 1, &[], price)
    };
    let mut core: Vec<usize> = (0..request.constraints.len()).collect();
    if satisfiable(&core) {
        return None;
    }
    for spared in 0..request.constraints.len() {
        let rest: Vec<usize> = core.iter().copied().filter(|&index| index != spared).collect();
        if !satisfiable(&rest) {
            core = rest;
        }
    }
    Some(core)
}

/// A flow network; edge 2i + 1 is edge 2i turned round.
struct Flow {
    nodes: usize,
    edges: Vec<Edge>,
}

struct Edge {
    from: usize,
    to: usize,
    capacity: u32,
    cost: i128,
}

const SOURCE: usize = 0;
const SINK: usize = 1;

impl Flow {
    /// The network of the regions that may yet be chosen besides `fixed`; none if these alone are too many of a group.
    fn new(terms: &Terms, fixed: &[usize], size: usize, price: &impl Fn(usize) -> u64) -> Option<Flow> {
        let mut flow = Flow { nodes: 2, edges: Vec::new() };
        let missing = u32::try_from(size - fixed.len()).expect("a placement has few replicas");
        // Where the nodes of each side's groups begin; a side that nothing limits is one group of all.
        let mut sides = [0, 0];
        for (side, first) in sides.iter_mut().enumerate() {
            *first = flow.nodes;
            let mut room = vec![missing];
            if let Some((limit, groups)) = terms.limits.get(side) {
                room = vec![*limit; groups.names.len()];
                for &region in fixed {
                    let room = &mut room[groups.of[region] as usize];
                    *room = room.checked_sub(1)?;
                }
            }
            flow.nodes += room.len();
            for (group, room) in room.into_iter().enumerate() {
                let (from, to) = if side == 0 { (SOURCE, *first + group) } else { (*first + group, SINK) };
                flow.connect(from, to, room, 0);
            }
        }
        let node = |side: usize, region: usize| sides[side] + terms.limits.get(side).map_or(0, |(_, groups)| groups.of[region] as usize);
        for &region in terms.candidates.iter().filter(|region| !fixed.contains(region)) {
            flow.connect(node(0, region), node(1, region), 1, i128::from(price(region)));
        }
        Some(flow)
    }

    fn connect(&mut self, from: usize, to: usize, capacity: u32, cost: i128) {
        self.edges.push(Edge { from, to, capacity, cost });
        self.edges.push(Edge { from: to, to: from, capacity: 0, cost: -cost });
    }

    /// Sends one more unit the cheapest way, by Bellman and Ford, and says what the whole flow costs more then.
    fn augment(&mut self) -> Option<i128> {
        let mut reached: Vec<Option<(i128, usize)>> = vec![None; self.nodes];
        reached[SOURCE] = Some((0, usize::MAX));
        let mut changed = true;
        while changed {
            changed = false;
            for (index, edge) in self.edges.iter().enumerate().filter(|(_, edge)| edge.capacity > 0) {
                let Some((cost, _)) = reached[edge.from] else { continue };
                if reached[edge.to].is_none_or(|(known, _)| cost + edge.cost < known) {
                    reached[edge.to] = Some((cost + edge.cost, index));
                    changed = true;
                }
            }
        }
        let (cost, _) = reached[SINK]?;
        let mut node = SINK;
        while node != SOURCE {
            let (_, index) = reached[node].expect("a way back from the sink");
            self.edges[index].capacity -= 1;
            self.edges[index ^ 1].capacity += 1;
            node = self.edges[index].from;
        }
        Some(cost)
    }
}
