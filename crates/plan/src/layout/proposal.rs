//! What to propose to a running cluster: from the replicas that a search chose to a layout, and whether it is worth a move.

use super::latency::{indices, read_at, services};
use super::{Coordinators, Layout};
use crate::evaluate::evaluate;
use crate::model::Reads;
use crate::problem::Problem;
use crate::request::Request;
use std::collections::BTreeSet;

/// A move that saves less than this share of the objective, in thousandths, is not proposed: measured round trips waver by as
/// much.
pub const GAIN_MIN_MILLI: u64 = 10;

/// The passive copies of `now` that stay: those in regions that may hold data.
fn kept(problem: &Problem, now: &Layout) -> BTreeSet<String> {
    let may_hold: BTreeSet<&str> = problem.candidates().iter().map(|&region| problem.matrix().names()[region].as_str()).collect();
    now.passive.iter().filter(|name| may_hold.contains(name.as_str())).cloned().collect()
}

/// What a search is to be asked instead of `problem`, so that it counts on the passive copies of `now` that stay: clients that
/// have one at home read there, wherever the replicas are. Clients elsewhere could read at them too; that is not counted (see
/// [`is_exact`]).
pub fn request_beside(problem: &Problem, now: &Layout) -> Request {
    let mut request = problem.request().clone();
    if request.model.reads == Reads::Optimistic {
        let kept = kept(problem, now);
        for client in request.clients.iter_mut().filter(|client| kept.contains(&request.matrix.names()[client.region])) {
            client.reads_milli = 0;
        }
    }
    request
}

/// Whether such a search counts all that passive copies are good for: they are none, or nobody else reads at the nearest.
pub fn is_exact(problem: &Problem, now: &Layout) -> bool {
    let kept = kept(problem, now);
    let elsewhere = |region: usize| !kept.contains(&problem.matrix().names()[region]);
    kept.is_empty()
        || problem.model().reads != Reads::Optimistic
        || !problem.clients().iter().any(|client| client.reads_milli > 0 && elsewhere(client.region))
}

/// The layout in which `replicas` are active. What is passive `now` stays so where data may be held; if clients are to read passive copies of their
/// own, every region with clients holds at least one.
pub fn propose(problem: &Problem, replicas: &[usize], now: &Layout) -> Layout {
    let matrix = problem.matrix();
    let name = |region: usize| matrix.names()[region].clone();
    let active: BTreeSet<String> = replicas.iter().map(|&region| name(region)).collect();
    let mut passive = kept(problem, now);
    if problem.model().reads == Reads::Passive {
        passive.extend(problem.clients().iter().map(|client| name(client.region)));
    }
    let mut layout = Layout { passive: &passive - &active, active, ..Layout::default() };
    for plan in evaluate(problem, replicas).clients {
        if plan.commit_coordinator != plan.region {
            let read = name(read_at(matrix, &layout, plan.region));
            layout.coordinators.insert(name(plan.region), Coordinators { read, commit: name(plan.commit_coordinator) });
        }
    }
    layout
}

/// Whether a move from `now` to `proposed` is worth it: it saves enough, or `now` is not what was asked for.
pub fn is_worth_it(problem: &Problem, now: &Layout, proposed: &Layout) -> bool {
    let (cost_now, cost_then) = (cost(problem, now), cost(problem, proposed));
    let saves = u128::from(cost_now.saturating_sub(cost_then)) * 1_000;
    !is_admissible(problem, now) || saves > u128::from(cost_now) * u128::from(GAIN_MIN_MILLI)
}

/// The objective's integer in `layout`.
pub fn cost(problem: &Problem, layout: &Layout) -> u64 {
    let latencies_ns: Vec<u64> = services(problem, layout).iter().map(|service| service.latency_ns).collect();
    problem.objective().value(&latencies_ns, problem.weights(), &mut Vec::new())
}

/// Whether `layout` has as many active regions as was asked for, keeps to the constraints, has the copies that reads count on,
/// and none where no data may be held.
fn is_admissible(problem: &Problem, layout: &Layout) -> bool {
    let copies = layout.copies();
    let at_home = |region: usize| copies.contains(&problem.matrix().names()[region]);
    let reads_passive = problem.model().reads == Reads::Passive;
    problem.admits(&indices(problem.matrix(), &layout.active))
        && (reads_passive || kept(problem, layout) == layout.passive)
        && (!reads_passive || problem.clients().iter().all(|client| at_home(client.region)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::layout;
    use super::*;
    use crate::exhaustive::exhaustive;
    use crate::{Client, Constraint, Matrix, Model, Objective, Protocol};
    use rhumb_core::wan;
    use std::sync::Arc;

    fn request(protocol: Protocol, reads: Reads, handoff: bool) -> Request {
        let matrix = Matrix::try_from(&wan::profile("paper_gplacer_9").expect("shipped").matrix()).expect("nine regions");
        let clients = [(0, 3), (3, 1), (8, 2)].map(|(region, clients)| Client { region, clients, reads_milli: 1_500 }).to_vec();
        let model = Model { protocol, reads, handoff, read_processing_us: 0 };
        let (matrix, objective) = (Arc::new(matrix), Objective::Mean);
        Request { matrix, clients, model, faults: 1, objective, constraints: Vec::new(), prices: Vec::new() }
    }

    #[test]
    fn what_is_proposed_costs_what_the_planner_says_of_its_replicas() {
        for protocol in [Protocol::ReplicatedCommit, Protocol::TwoRounds] {
            for reads in [Reads::Majority, Reads::Optimistic, Reads::Passive] {
                for handoff in [false, true] {
                    let problem = Problem::new(request(protocol, reads, handoff)).expect("it makes sense");
                    for replicas in [[0, 1, 2], [3, 5, 8], [2, 4, 6]] {
                        let proposed = propose(&problem, &replicas, &Layout::default());
                        let evaluation = evaluate(&problem, &replicas);
                        let expected: Vec<u64> = evaluation.clients.iter().map(|plan| plan.latency_ns).collect();
                        let found: Vec<u64> = services(&problem, &proposed).iter().map(|service| service.latency_ns).collect();
                        assert_eq!(found, expected, "{protocol:?} {reads:?} handoff {handoff}: {proposed}");
                        assert_eq!(cost(&problem, &proposed), evaluation.cost);
                        assert!(handoff || proposed.coordinators.is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn clients_with_a_passive_copy_at_home_go_on_reading_there() {
        let request = request(Protocol::ReplicatedCommit, Reads::Optimistic, false);
        let names = request.matrix.names().to_vec();
        let now = layout(&format!("{} {} {}", names[4], names[5], names[6]), &names[3]);
        let problem = Problem::new(request).expect("it makes sense");
        let beside = Problem::new(request_beside(&problem, &now)).expect("it makes sense");
        let reads: Vec<u64> = beside.clients().iter().map(|client| client.reads_milli).collect();
        assert_eq!(reads, [1_500, 0, 1_500]);
        let best = exhaustive(&beside).replicas;
        let proposed = propose(&problem, &best, &now);
        assert_eq!(proposed.passive.contains(&names[3]), !best.contains(&3));
        assert!(cost(&problem, &proposed) <= evaluate(&beside, &best).cost);
        assert!(!is_exact(&problem, &now) && is_exact(&problem, &layout(&names[0], "")));
        assert!(is_worth_it(&problem, &now, &proposed) && !is_worth_it(&problem, &proposed, &proposed));
    }

    #[test]
    fn a_passive_copy_where_no_data_may_be_held_goes() {
        let mut request = request(Protocol::ReplicatedCommit, Reads::Optimistic, false);
        let names = request.matrix.names().to_vec();
        request.constraints.push(Constraint::Forbidden(3));
        let problem = Problem::new(request).expect("it makes sense");
        let best = exhaustive(&problem).replicas;
        let with = |passive: usize| Layout { passive: [names[passive].clone()].into(), ..propose(&problem, &best, &Layout::default()) };
        let may = (0..9).find(|region| *region != 3 && !best.contains(region)).expect("there are nine");
        assert_eq!(propose(&problem, &best, &with(may)), with(may));
        assert!(propose(&problem, &best, &with(3)).passive.is_empty());
        assert!(is_worth_it(&problem, &with(3), &propose(&problem, &best, &with(3))) && !is_worth_it(&problem, &with(may), &with(may)));
        assert_eq!(request_beside(&problem, &with(3)).clients, problem.clients());
    }

    #[test]
    fn what_does_not_keep_to_the_request_is_to_be_left_at_any_price() {
        let mut request = request(Protocol::ReplicatedCommit, Reads::Optimistic, false);
        let names = request.matrix.names().to_vec();
        let best = exhaustive(&Problem::new(request.clone()).expect("it makes sense")).replicas;
        let now = propose(&Problem::new(request.clone()).expect("it makes sense"), &best, &Layout::default());
        request.constraints.push(Constraint::Forbidden(best[0]));
        let problem = Problem::new(request.clone()).expect("it makes sense");
        let other = propose(&problem, &exhaustive(&problem).replicas, &now);
        assert!(cost(&problem, &other) >= cost(&problem, &now) && is_worth_it(&problem, &now, &other));
        request.constraints.clear();
        request.model.reads = Reads::Passive;
        let problem = Problem::new(request).expect("it makes sense");
        let with_copies = propose(&problem, &best, &now);
        assert_eq!(is_worth_it(&problem, &now, &with_copies), now != with_copies);
        assert!(with_copies.copies().contains(&names[8]));
    }
}
