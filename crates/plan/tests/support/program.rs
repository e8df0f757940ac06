//! The placement problem as an integer program, for any solver: the objective and constraints of the paper's section 3,
//! written as inequalities that know nothing of the planner's searches.
//!
//! ```text
//!   x[r]        region r holds a replica                            Σ x = 2f + 1
//!   z[r, d]     a majority is within the d-th trip of r             (f + 1) z[r, d] <= Σ x[i] over i within that trip
//!   w[c, r, d]  c's commits are coordinated by r, which needs d     Σ w[c] = 1,  w <= z[r, d],  Σ_d w <= x[r] unless r = c
//! ```
//!
//! With one leader, all clients share w. A protocol whose leaders follow from the nearest replica is not a matter of choice
//! and is left to the other tests.

use good_lp::{Expression, ProblemVariables, Solution, Solver, SolverModel, Variable, constraint, variable};
use rhumb_plan::{Objective, Problem, Protocol, Reads};

/// Who coordinates, and which round trip of the coordinator completes its majority.
struct Assignment {
    coordinator: usize,
    majority_ms: f64,
    share: Variable,
}

struct Program<'p> {
    problem: &'p Problem,
    variables: ProblemVariables,
    constraints: Vec<good_lp::Constraint>,
    /// Whether a region holds a replica.
    holds: Vec<Variable>,
    /// For each region, whether a majority is within the trip to each other one.
    within: Vec<Vec<Variable>>,
}

/// The placement that `solver` finds, ascending, and the objective that it claims: a mean or a latency, in milliseconds.
pub fn solve<S: Solver>(solver: S, problem: &Problem) -> (Vec<usize>, f64) {
    let mut program = Program::new(problem);
    let latencies = program.latencies();
    let objective = program.objective(latencies);
    let Program { variables, constraints, holds, .. } = program;
    let model = variables.minimise(objective.clone()).using(solver).with_all(constraints);
    let solution = model.solve().expect("a problem has a solution");
    let replicas = (0..holds.len()).filter(|&region| solution.value(holds[region]) > 0.5).collect();
    (replicas, solution.eval(&objective))
}

impl<'p> Program<'p> {
    fn new(problem: &'p Problem) -> Program<'p> {
        let n = problem.matrix().regions();
        let mut variables = ProblemVariables::new();
        let holds: Vec<Variable> = (0..n).map(|_| variables.add(variable().binary())).collect();
        let within: Vec<Vec<Variable>> = (0..n).map(|_| (0..n).map(|_| variables.add(variable().binary())).collect()).collect();
        let mut program = Program { problem, variables, constraints: Vec::new(), holds, within };
        program.placement();
        program.majorities();
        program
    }

    fn milliseconds(&self, from: usize, to: usize) -> f64 {
        f64::from(self.problem.matrix().rtt_us(from, to)) / 1_000.0
    }

    fn hop(&self, from: usize, to: usize) -> f64 {
        if from == to { 0.0 } else { self.milliseconds(from, to) }
    }

    /// As many replicas as must be, where constraints let them.
    fn placement(&mut self) {
        let problem = self.problem;
        let all: Expression = self.holds.iter().sum();
        self.constraints.push(constraint!(all == problem.replicas() as f64));
        for (region, &holds) in self.holds.iter().enumerate() {
            if !problem.candidates().contains(&region) {
                self.constraints.push(constraint!(holds == 0.0));
            }
            if problem.required().contains(&region) {
                self.constraints.push(constraint!(holds == 1.0));
            }
        }
        for (limit, groups) in problem.limits() {
            for group in 0..groups.names.len() as u32 {
                let members = (0..self.holds.len()).filter(|&region| groups.of[region] == group);
                let held: Expression = members.map(|region| self.holds[region]).sum();
                self.constraints.push(constraint!(held <= f64::from(*limit)));
            }
        }
        if let Some(budget) = problem.budget() {
            let price: Expression = self.holds.iter().enumerate().map(|(region, &holds)| problem.price(region) as f64 * holds).sum();
            self.constraints.push(constraint!(price <= budget as f64));
        }
    }

    fn majorities(&mut self) {
        let majority = (self.problem.replicas() / 2 + 1) as f64;
        for (from, within) in self.within.iter().enumerate() {
            let trips = self.problem.matrix().from(from);
            for (to, &within) in within.iter().enumerate() {
                let near = (0..trips.len()).filter(|&region| trips[region] <= trips[to]);
                let held: Expression = near.map(|region| self.holds[region]).sum();
                self.constraints.push(constraint!(majority * within <= held));
            }
        }
    }

    /// A choice of one of `coordinators` and of a majority of it. All must hold a replica, but for `exempt`. What one client
    /// chooses alone has no reason to be a mixture; a leader for all must be told not to be one.
    fn assign(&mut self, coordinators: impl Iterator<Item = usize>, exempt: Option<usize>) -> Vec<Assignment> {
        let share = if exempt.is_some() { variable().min(0.0).max(1.0) } else { variable().binary() };
        let mut assignments = Vec::new();
        for coordinator in coordinators {
            let mut by_this = Expression::from(0.0);
            for to in 0..self.holds.len() {
                let share = self.variables.add(share.clone());
                self.constraints.push(constraint!(share <= self.within[coordinator][to]));
                by_this += share;
                assignments.push(Assignment { coordinator, majority_ms: self.milliseconds(coordinator, to), share });
            }
            if exempt != Some(coordinator) {
                self.constraints.push(constraint!(by_this <= self.holds[coordinator]));
            }
        }
        let all: Expression = assignments.iter().map(|assignment| assignment.share).sum();
        self.constraints.push(constraint!(all == 1.0));
        assignments
    }

    /// The latency of every client region, in milliseconds.
    fn latencies(&mut self) -> Vec<Expression> {
        let (problem, n) = (self.problem, self.holds.len());
        let model = problem.model();
        let leader = (model.protocol == Protocol::OneLeader).then(|| self.assign(0..n, None));
        let mut latencies = Vec::new();
        for client in problem.clients() {
            let here = client.region;
            let reads = client.reads_milli as f64 / 1_000.0;
            let own;
            let commits = match (&leader, model.protocol) {
                (Some(leader), _) => leader,
                (None, Protocol::ReplicatedCommit | Protocol::TwoRounds) => {
                    own = self.assign((0..n).filter(|&region| region == here || model.handoff), Some(here));
                    &own
                }
                (None, _) => unreachable!("a protocol whose leaders are not chosen is no integer program here"),
            };
            let rounds = model.protocol.rounds() as f64;
            let trip = |commit: &Assignment| self.hop(here, commit.coordinator) + rounds * commit.majority_ms;
            let mut latency: Expression = commits.iter().map(|commit| trip(commit) * commit.share).sum();
            let read: Expression = match model.reads {
                Reads::Passive => Expression::from(0.0),
                Reads::Majority if leader.is_some() => commits.iter().map(|commit| self.hop(here, commit.coordinator) * commit.share).sum(),
                Reads::Majority => {
                    let majorities = self.assign(std::iter::once(here), Some(here));
                    majorities.iter().map(|majority| majority.majority_ms * majority.share).sum()
                }
                Reads::Optimistic => self.nearest(here),
            };
            latency += reads * read;
            if model.reads != Reads::Passive {
                latency += reads * f64::from(model.read_processing_us) / 1_000.0;
            }
            latencies.push(latency);
        }
        latencies
    }

    /// The hop to the nearest replica.
    fn nearest(&mut self, here: usize) -> Expression {
        let shares: Vec<Variable> = self.holds.iter().map(|_| self.variables.add(variable().min(0.0).max(1.0))).collect();
        for (&share, &holds) in shares.iter().zip(&self.holds) {
            self.constraints.push(constraint!(share <= holds));
        }
        let all: Expression = shares.iter().sum();
        self.constraints.push(constraint!(all == 1.0));
        shares.iter().enumerate().map(|(region, &share)| self.hop(here, region) * share).sum()
    }

    fn objective(&mut self, latencies: Vec<Expression>) -> Expression {
        let clients: Vec<f64> = self.problem.clients().iter().map(|client| client.clients as f64).collect();
        let total: f64 = clients.iter().sum();
        let most = self.variables.add(variable().min(0.0));
        match self.problem.objective() {
            Objective::Mean => latencies.into_iter().zip(clients).map(|(latency, clients)| latency * (clients / total)).sum(),
            Objective::RegionMean => {
                let regions = latencies.len() as f64;
                latencies.into_iter().map(|latency| latency * (1.0 / regions)).sum()
            }
            Objective::Worst => {
                for latency in latencies {
                    self.constraints.push(constraint!(latency <= most));
                }
                Expression::from(most)
            }
            Objective::Percentile(milli) => {
                // Regions may be left out, as long as enough clients remain.
                let trip_ms = f64::from(self.problem.matrix().longest_us()) / 1_000.0;
                let mut left_out = Expression::from(0.0);
                for ((latency, clients), client) in latencies.into_iter().zip(clients).zip(self.problem.clients()) {
                    let out = self.variables.add(variable().binary());
                    let longest_ms = (client.reads_milli as f64 / 1_000.0) * (trip_ms + 3.0) + 4.0 * trip_ms;
                    self.constraints.push(constraint!(latency <= most + longest_ms * out));
                    left_out += clients * out;
                }
                let covered = (f64::from(milli) * total / 1_000.0).ceil();
                self.constraints.push(constraint!(left_out <= total - covered));
                Expression::from(most)
            }
        }
    }
}

/// Whether the solver's answer is the optimum that exhaustive search finds: to the nanosecond for the placement, and up to
/// what floats allow for what the solver claims.
pub fn check<S: Solver>(solver: S, problem: &Problem) {
    let best = rhumb_plan::exhaustive(problem);
    let (replicas, claimed_ms) = solve(solver, problem);
    let cost = rhumb_plan::Evaluator::new(problem).cost(&replicas);
    assert_eq!(cost, Some(best.cost), "{replicas:?} instead of {:?}", best.replicas);
    let weight = match problem.objective() {
        Objective::Mean => problem.weights().iter().sum(),
        Objective::RegionMean => problem.weights().len() as u64,
        Objective::Worst | Objective::Percentile(_) => 1,
    };
    let found_ms = best.cost as f64 / weight as f64 / 1_000_000.0;
    assert!((found_ms - claimed_ms).abs() < 1e-3, "{claimed_ms} ms instead of {found_ms} ms");
}
