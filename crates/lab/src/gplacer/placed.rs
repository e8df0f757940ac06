//! What the planner says, as the sites obey it.

use super::form::{Form, Handoff};
use super::parameters::{HANDOFFS, OPERATIONS, PROFILE, READ_PERCENT, REGIONS};
use rhumb_commit::placement::{Change, Coordinators, Placement, Regions};
use rhumb_core::{RegionId, RttMatrix, wan};
use rhumb_plan::{Client, ClientPlan, Evaluation, Matrix, Model, Objective, Problem, Protocol, Reads, Request, evaluate, exhaustive};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The round trips of all nine regions.
pub fn nine() -> RttMatrix {
    wan::profile(PROFILE).expect("it ships").matrix()
}

/// Those of section 5.1.
pub fn five() -> RttMatrix {
    nine().restrict(&REGIONS).expect("they are among the nine")
}

/// Commits alone, in two rounds: what counts where reads cost nothing.
pub const fn commits(protocol: Protocol, handoff: bool) -> Model {
    Model { protocol, reads: Reads::Passive, handoff, read_processing_us: 0 }
}

/// The placement of `2 faults + 1` replicas among `rtt` for so many clients in each of some regions, by the mean over them.
pub fn problem(rtt: &RttMatrix, model: Model, faults: usize, clients: &[(usize, u64)]) -> Problem {
    let reads_milli = (OPERATIONS as u64 * READ_PERCENT) * 10;
    let clients = clients.iter().map(|&(region, clients)| Client { region, clients, reads_milli }).collect();
    let matrix = Arc::new(Matrix::try_from(rtt).expect("the profiles are small"));
    let request = Request { matrix, clients, model, faults, objective: Objective::Mean, constraints: Vec::new(), prices: Vec::new() };
    Problem::new(request).expect("there are regions enough and no constraints")
}

/// One client in each of `count` regions.
pub fn one_each(count: usize) -> Vec<(usize, u64)> {
    (0..count).map(|region| (region, 1)).collect()
}

/// The problem of section 5.1 for `form`: three replicas for clients in five regions.
pub fn five_regions(form: Form) -> Problem {
    problem(&five(), form.model(), 1, &one_each(REGIONS.len()))
}

/// The active regions of section 5.1: those that are best for Maj0, the protocol before any optimization.
pub fn active_of_five() -> Vec<usize> {
    exhaustive(&five_regions(Form::MAJ0)).replicas
}

/// What the planner expects of `form` in section 5.1. With the paper's handoffs, some commits are not run where they would
/// end soonest.
pub fn expected(form: Form) -> Evaluation {
    let problem = five_regions(form);
    let mut evaluation = evaluate(&problem, &active_of_five());
    if form.handoff == Handoff::Paper {
        let own = evaluate(&five_regions(Form { handoff: Handoff::No, ..form }), &evaluation.replicas);
        for (plan, own) in evaluation.clients.iter_mut().zip(own.clients) {
            *plan = match handed_to(plan.region) {
                None => own,
                Some(to) => handed_over(&problem, plan, &own, to, &evaluation.replicas),
            };
        }
        evaluation.mean_ns = evaluation.clients.iter().map(|plan| plan.latency_ns).sum::<u64>() / evaluation.clients.len() as u64;
    }
    evaluation
}

/// Where the paper's clients of `region` hand their commits over.
fn handed_to(region: usize) -> Option<usize> {
    let (_, to) = HANDOFFS.iter().find(|(from, _)| *from == REGIONS[region])?;
    REGIONS.iter().position(|name| name == to)
}

/// `own`, but with commits handed over to `to`.
fn handed_over(problem: &Problem, plan: &ClientPlan, own: &ClientPlan, to: usize, replicas: &[usize]) -> ClientPlan {
    let quorum_us = |from: usize| u64::from(rhumb_plan::evaluate::quorum_us(problem.matrix().from(from), replicas));
    let rounds = problem.model().protocol.rounds();
    let without_commit_ns = own.latency_ns - 1_000 * rounds * quorum_us(own.region);
    let commit_us = u64::from(problem.matrix().hop_us(own.region, to)) + rounds * quorum_us(to);
    ClientPlan { commit_coordinator: to, latency_ns: without_commit_ns + 1_000 * commit_us, ..*plan }
}

/// The placement of section 5.1 for `form`: California, Oregon and Virginia are active, Ireland and São Paulo passive.
pub fn placement(form: Form) -> Placement {
    let expected = expected(form);
    let nearest = evaluate(&five_regions(Form { handoff: Handoff::Planned, ..Form::MAJ1 }), &expected.replicas);
    let coordinators = expected.clients.iter().zip(&nearest.clients).map(|(plan, nearest)| {
        let coordinators = Coordinators { read: id(nearest.read_coordinator), commit: id(plan.commit_coordinator) };
        (id(plan.region), coordinators)
    });
    place(REGIONS.len(), &expected.replicas, true, coordinators.collect())
}

/// `replicas` active of `regions` regions, and the others passive if asked for.
pub fn place(regions: usize, replicas: &[usize], passive: bool, coordinators: BTreeMap<RegionId, Coordinators>) -> Placement {
    let voters: Regions = replicas.iter().map(|&region| id(region)).collect();
    let passives = if passive { Regions::first(regions).without(voters) } else { Regions::NONE };
    Placement::first(Change { voters, passives, coordinators, lost: Regions::NONE }).expect("the planner reads at replicas only")
}

/// The coordinators that `evaluation` names.
pub fn coordinators(evaluation: &Evaluation) -> BTreeMap<RegionId, Coordinators> {
    let nearest = evaluation.replicas[0];
    let named = |plan: &ClientPlan| Coordinators { read: id(nearest), commit: id(plan.commit_coordinator) };
    evaluation.clients.iter().map(|plan| (id(plan.region), named(plan))).collect()
}

/// A region of the planner as a region of the cluster.
pub fn id(region: usize) -> RegionId {
    RegionId(u16::try_from(region).expect("a cluster has few regions"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's choice is the planner's, and its own figures follow from its round trips.
    #[test]
    fn the_planner_places_the_replicas_where_the_paper_has_them() {
        assert_eq!(active_of_five(), [0, 1, 2]);
        let ms = |form: Form| expected(form).clients.iter().map(|plan| plan.latency_ns / 100_000).collect::<Vec<u64>>();
        assert_eq!(ms(Form::MAJ0), [990, 990, 2_925, 5_625, 8_190]);
        assert_eq!(ms(Form::MAJ2), [440, 440, 1_300, 2_500, 3_640]);
        assert_eq!(ms(Form::MAJ2H), [440, 440, 1_300, 1_800, 2_260]);
        assert_eq!(ms(Form::MAJ2P), [440, 440, 1_090, 1_690, 2_260]);
        let placement = placement(Form::MAJ1H);
        assert_eq!(placement.coordinators[&id(4)], Coordinators { read: id(2), commit: id(1) });
        assert_eq!(placement.coordinators[&id(2)], Coordinators { read: id(2), commit: id(2) });
    }
}
