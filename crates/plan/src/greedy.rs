//! One replica after another, each where it lowers the objective most (GPlacer, Algorithm 2).
//!
//! A majority is meanwhile one of the replicas chosen so far. With constraints, a region is passed over if no placement
//! holds it together with those chosen before.

use crate::evaluate::Evaluator;
use crate::exhaustive::Best;
use crate::problem::Problem;

/// The placement that adding the best next replica leads to; of equally good ones, the first by index.
pub fn greedy(problem: &Problem) -> Best {
    let mut evaluator = Evaluator::new(problem);
    let mut replicas: Vec<usize> = Vec::new();
    while replicas.len() < problem.replicas() {
        let mut next: Vec<(u64, usize)> = Vec::new();
        for &region in problem.candidates() {
            if let Err(place) = replicas.binary_search(&region) {
                replicas.insert(place, region);
                next.push((evaluator.latency_cost(&replicas), region));
                replicas.remove(place);
            }
        }
        next.sort_unstable();
        let region = next.into_iter().map(|(_, region)| region).find(|&region| {
            let mut with = replicas.clone();
            with.push(region);
            problem.extendable(&with)
        });
        let region = region.expect("a placement that can be completed has a next replica");
        let place = replicas.partition_point(|&chosen| chosen < region);
        replicas.insert(place, region);
    }
    Best { cost: evaluator.latency_cost(&replicas), replicas }
}
