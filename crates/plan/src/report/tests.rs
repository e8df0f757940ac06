//! What a report says of one plan, to the letter and in its fields.

use super::*;
use crate::exhaustive::Best;
use crate::layout::tests::layout;
use crate::{Client, Constraint, Matrix, Model, Protocol, Reads, Request, TwoPhase};
use serde_json::json;
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
        let Report { objective, objective_ms, terms, .. } = Report::new(&problem, &finding(&problem, 0));
        (terms.protocol, objective, objective_ms)
    };
    let named = |objective| told(Protocol::TwoRounds, objective);
    assert_eq!(named(Objective::RegionMean), ("two-round".to_owned(), "region-mean".to_owned(), 30.0));
    assert_eq!(named(Objective::Worst).1, "worst");
    assert_eq!((named(Objective::Percentile(750)).1, named(Objective::Percentile(750)).2), ("p75".to_owned(), 20.0));
    assert_eq!(named(Objective::Percentile(999)).1, "p99.9");
    assert_eq!(told(PROTOCOL, Objective::Mean).0, "spread-leaders, 10.5 % multi-partition by best-leader");
    assert_eq!(told(Protocol::OneLeader, Objective::Mean).0, "one-leader");
}

/// The four regions, of which the last three are active and the first passive.
fn change(proposed: Option<&str>) -> change::ChangeReport {
    let problem = problem(Protocol::ReplicatedCommit, Objective::Mean);
    let now = layout("b c d", "a");
    let proposed = proposed.map_or(now.clone(), |active| layout(active, ""));
    let found = Report::new(&problem, &finding(&problem, 0));
    let (from, epoch, counted) = ("http://h:1".to_owned(), 7, change::Counted::TransactionsMilli);
    change::ChangeReport::new(change::Told { problem: &problem, counted, from, epoch, now, proposed, found })
}

#[test]
fn a_change_is_told_by_what_clients_wait_for_now_and_then_and_by_what_moves() {
    let report = change(Some("a b d"));
    // a reads at home either way; the third of its votes is 10 ms nearer. d reads at home, its majority is 10 ms farther.
    let expected = "\
now       epoch 7: active b, c, d; passive a
proposed  active a, b, d
3 of 4 regions vote as proposed, 3 do now; any one may be lost
replicated-commit, optimistic reads, with handoff; the smallest mean
kept to: no replica in c
30.00 dollars a month

clients in  txn/s  reads  latency ms now  then  saved
─────────────────────────────────────────────────────
a            0.00    1.5            20.0  10.0   10.0
d            0.00    1.5            10.0  20.0  -10.0
─────────────────────────────────────────────────────
mean                                17.5  12.5    5.0
p95                                 20.0  20.0    0.0
worst                               20.0  20.0    0.0

Mean 17.5 ms now, 12.5 ms then: 28.6 % saved. Not proven: the search leaves out that passive copies are read from other regions.

What would change, in 2 steps:
  a: passive → active
  c: active → none
";
    assert_eq!(report.to_string(), expected);
    let json = serde_json::to_value(&report).expect("plain data");
    assert_eq!((&json["mean_now_ms"], &json["mean_then_ms"], &json["proven_gap"]), (&json!(17.5), &json!(12.5), &json!(null)));
    assert_eq!(json["steps"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["roles"][1], json!({"region": "c", "from": "active", "to": "none"}));
    let planned: change::Planned = serde_json::from_value(json).expect("what is told can be carried out");
    assert_eq!((planned.from.as_str(), planned.now, planned.proposed), ("http://h:1", report.now, report.proposed));
}

#[test]
fn where_nothing_would_be_gained_nothing_changes() {
    let report = change(None);
    let text = report.to_string();
    assert!(!report.changes_something() && report.steps.is_empty() && report.saved_percent == 0.0);
    assert!(text.starts_with("now       epoch 7: active b, c, d; passive a\nreplicated-commit"), "{text}");
    assert!(text.contains("\nNothing would be gained by a move. Not proven"), "{text}");
    assert!(!text.contains("must vote"), "{text}");
}

#[test]
fn where_all_regions_must_vote_the_report_says_what_would_give_a_choice() {
    let mut request = problem(Protocol::ReplicatedCommit, Objective::Mean).request().clone();
    let names = ["a", "b", "c"].map(str::to_owned).to_vec();
    request.matrix = Arc::new(Matrix::new(names, |from, to| 10_000 * from.abs_diff(to) as u32).expect("three regions"));
    (request.clients[1].region, request.constraints, request.prices) = (2, Vec::new(), Vec::new());
    let problem = Problem::new(request).expect("it makes sense");
    let found = Finding { best: Best { replicas: vec![0, 1, 2], cost: 1 }, bound: 1, effort: Effort::Greedy };
    let (found, now) = (Report::new(&problem, &found), layout("a b c", ""));
    let (from, epoch, counted, proposed) = ("http://h:1".to_owned(), 1, change::Counted::Clients, now.clone());
    let text = change::ChangeReport::new(change::Told { problem: &problem, counted, from, epoch, now, proposed, found }).to_string();
    assert!(text.ends_with("\nAll 3 regions must vote if any one may be lost; with --faults 0 it takes 1 of them.\n"), "{text}");
}
