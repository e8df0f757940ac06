//! Which majority of the cores each slave is assigned to (equations 4 to 7): near, not loaded, and not the one that everybody has.
//!
//! An assignment problem with one row per slave and, for each majority, one column for its first slave, one for its second and so
//! on: the balancing penalty is the price of being the n-th. It rises with n, so that an optimum fills the columns of a majority
//! in order and the sum is the cost that the paper means. Solved by the Hungarian method, in whole numbers.

use super::majority;
use super::measures::Measures;
use pathfinding::kuhn_munkres::kuhn_munkres_min;
use pathfinding::matrix::Matrix;
use serde::{Deserialize, Serialize};

/// What counts how much in an assignment's cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostWeights {
    /// `w_1`, of the distance to the farthest core of the majority.
    pub communication: f64,
    /// `w_2`, of the load of its most loaded core, times the slave's.
    pub load: f64,
    /// `w_3`, of the slaves that it has already.
    pub balance: f64,
}

impl Default for CostWeights {
    /// All alike; the paper names no weights.
    fn default() -> CostWeights {
        CostWeights { communication: 1.0, load: 1.0, balance: 1.0 }
    }
}

/// Costs in whole numbers: so many to one.
const UNIT: f64 = 1e12;

/// All majorities of `cores`, no larger than needed, in lexical order of their places.
pub fn majorities(cores: &[usize]) -> Vec<Vec<usize>> {
    fn choose(from: &[usize], count: usize) -> Vec<Vec<usize>> {
        if count == 0 {
            return vec![Vec::new()];
        }
        let mut chosen = Vec::new();
        for (place, first) in from.iter().enumerate() {
            for mut rest in choose(&from[place + 1..], count - 1) {
                rest.insert(0, *first);
                chosen.push(rest);
            }
        }
        chosen
    }
    choose(cores, majority(cores.len()))
}

/// The majority of `cores` for each of `slaves`, in their order. All are indices of `measures`.
pub fn assign(measures: &Measures, cores: &[usize], slaves: &[usize], weights: CostWeights) -> Vec<Vec<usize>> {
    if slaves.is_empty() {
        return Vec::new();
    }
    let majorities = majorities(cores);
    let costs = slaves.iter().map(|slave| {
        let by_majority = majorities.iter().flat_map(|cores| {
            let own = own_cost(measures, *slave, cores, weights);
            (0..slaves.len()).map(move |before| whole(own + weights.balance * penalty(before, slaves.len())))
        });
        by_majority.collect::<Vec<i64>>()
    });
    let matrix = Matrix::from_rows(costs).expect("every slave has a cost for every column");
    let (_, columns) = kuhn_munkres_min(&matrix);
    columns.into_iter().map(|column| majorities[column / slaves.len()].clone()).collect()
}

/// The cost of a slave at a majority, but for the balance: equations 5 and 6.
fn own_cost(measures: &Measures, slave: usize, cores: &[usize], weights: CostWeights) -> f64 {
    let most = |of: &dyn Fn(usize) -> f64| cores.iter().map(|core| of(*core)).fold(0.0, f64::max);
    let communication = most(&|core| measures.relative_rtt(slave, core));
    let load = measures.relative_load(slave) * most(&|core| measures.relative_load(core));
    weights.communication * communication + weights.load * load
}

/// The penalty of a majority that has `before` of the `slaves` already: equation 7.
fn penalty(before: usize, slaves: usize) -> f64 {
    libm::exp(before as f64 + 1.0 - slaves as f64)
}

fn whole(cost: f64) -> i64 {
    (cost * UNIT).round() as i64
}
