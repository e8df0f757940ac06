//! What a report says of one plan, to the letter and in its fields.

use super::*;
use crate::exhaustive::Best;
use crate::{Client, Constraint, Matrix, Model, Protocol, Reads, Request, TwoPhase};
use std::sync::Arc;

const PROTOCOL: Protocol = Protocol::SpreadLeaders { multi_partition_milli: 105, two_phase: TwoPhase::BestLeader };

/// Four regions in a line, 10 ms apart; three clients at one end, one at the other.
fn problem(protocol: Protocol, objective: Objective) -> Problem {
    let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let matrix = Matrix::new(names, |from, to| 10_000 * from.abs_diff(to) as u32).expect("four regions");
    let client = |region, clients| Client { region, clients, reads_milli: 1_500 };
    let model = Model { protocol, reads: Reads::Optimistic, handoff: true, read_processing_us: 0 };
    let request = Request {
        matrix: Arc::new(matrix),
        clients: vec![client(0, 3), client(3, 1)],
        model,
        faults: 1,
        objective,
        constraints: vec![Constraint::Forbidden(2)],
        prices: vec![10_000_000; 4],
    };
    Problem::new(request).expect("it makes sense")
}

fn finding(problem: &Problem, bound: u64) -> Finding {
    let replicas = vec![0, 1, 3];
    let cost = evaluate(problem, &replicas).cost;
    Finding { best: Best { replicas, cost }, bound: if bound == 0 { cost } else { bound }, effort: Effort::Greedy }
}

#[test]
fn a_plan_is_told_with_all_that_was_asked_for() {
    let problem = problem(Protocol::TwoRounds, Objective::Mean);
    let mut report = Report::new(&problem, &finding(&problem, 80_000_000));
    report.assume("It is calm.");
    report.compare(&problem, &[1, 2, 3]);
    report.show_front(&problem, &[FrontPoint { price: 30_000_000, best: finding(&problem, 0).best }], false);
    // a commits in two rounds to b; d hands to b or by itself over two rounds of 20 ms.
    let expected = "\
a, b, d
3 of 4 regions hold a replica; any one may be lost
two-round, optimistic reads, with handoff; the smallest mean
kept to: no replica in c
30.00 dollars a month
It is calm.

clients in  commit by  reads by  clients  latency ms  floor  gap
────────────────────────────────────────────────────────────────
a           a          a               3        20.0   20.0  0.0
d           d          d               1        40.0   40.0  0.0
────────────────────────────────────────────────────────────────
mean                                   4        25.0   25.0  0.0
p95                                    4        40.0   40.0  0.0
worst                                  4        40.0   40.0  0.0

Not proven: mean 25.0 ms; what is certain is that none goes below 20.0 ms, 20.0 % less (greedy heuristic).

placement  mean   p95  worst     above  a month
───────────────────────────────────────────────
a, b, d    25.0  40.0   40.0  the plan    30.00
b, c, d    38.8  45.0   45.0   +55.0 %    30.00
b, c, d does not keep to: no replica in c

price against latency  a month  mean
────────────────────────────────────
a, b, d                  30.00  25.0
Not proven: placements may be missing here, or be beaten by others.
";
    assert_eq!(report.to_string(), expected);
}

#[test]
fn objectives_and_models_have_names_and_sums_become_means() {
    let told = |protocol, objective| {
        let problem = problem(protocol, objective);
        let Report { objective, objective_ms, protocol, .. } = Report::new(&problem, &finding(&problem, 0));
        (protocol, objective, objective_ms)
    };
    let named = |objective| told(Protocol::TwoRounds, objective);
    assert_eq!(named(Objective::RegionMean), ("two-round".to_owned(), "region-mean".to_owned(), 30.0));
    assert_eq!(named(Objective::Worst).1, "worst");
    assert_eq!((named(Objective::Percentile(750)).1, named(Objective::Percentile(750)).2), ("p75".to_owned(), 20.0));
    assert_eq!(named(Objective::Percentile(999)).1, "p99.9");
    assert_eq!(told(PROTOCOL, Objective::Mean).0, "spread-leaders, 10.5 % multi-partition by best-leader");
    assert_eq!(told(Protocol::OneLeader, Objective::Mean).0, "one-leader");
}
