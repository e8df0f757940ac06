//! Requests that make no sense or cannot be met, and what is said then.

mod support;

use rhumb_plan::*;
use support::{commits, nine, request};

fn plain(faults: usize) -> Request {
    request(nine(), commits(Protocol::ReplicatedCommit, false), faults)
}

fn refused(request: Request) -> String {
    Problem::new(request).expect_err("it makes no sense").to_string()
}

fn constrained(faults: usize, constraints: Vec<Constraint>) -> String {
    refused(Request { constraints, ..plain(faults) })
}

#[test]
fn a_request_that_makes_no_sense_is_refused() {
    assert_eq!(refused(plain(5)), "to survive 5 lost regions takes 11 replicas, but there are 9 regions: at most 4 can be survived");
    assert_eq!(refused(plain(16)), "16 faults are more than a plan is made for (15)");
    assert_eq!(refused(Request { clients: Vec::new(), ..plain(1) }), "no region has clients; a plan needs at least one");
    let clients = vec![Client { region: 0, clients: u64::MAX / 2, reads_milli: 0 }];
    assert_eq!(refused(Request { clients, ..plain(1) }), "the counts of the workload are too large to add up; give them in thousands");
    for milli in [0, 1_001] {
        let objective = Objective::Percentile(milli);
        assert_eq!(refused(Request { objective, ..plain(1) }), format!("a percentile is between 1 and 1000 thousandths, not {milli}"));
    }
    let protocol = Protocol::SpreadLeaders { multi_partition_milli: 1_001, two_phase: TwoPhase::OwnLeader };
    let model = commits(protocol, false);
    assert_eq!(refused(Request { model, ..plain(1) }), "a share of transactions is at most 1000 thousandths, not 1001");
    let groups = places::by_continent(&nine()).expect("all known");
    let limit = Constraint::AtMost { limit: 3, groups };
    assert_eq!(constrained(1, vec![limit; 3]), "3 constraints limit groups of regions; at most 2 can be combined");
}

#[test]
fn what_cannot_be_met_names_the_constraints_that_conflict_and_no_others() {
    let place = |name| nine().region(name).expect("known");
    let america = Constraint::Within(["california", "oregon", "virginia"].map(place).into());
    let continents = |limit| Constraint::AtMost { limit, groups: places::by_continent(&nine()).expect("all known") };
    let providers = |limit| Constraint::AtMost { limit, groups: places::by_provider(&nine()).expect("all known") };
    let (virginia, not_tokyo, not_virginia) =
        (Constraint::Required(place("virginia")), Constraint::Forbidden(place("tokyo")), Constraint::Forbidden(place("virginia")));
    assert_eq!(
        constrained(1, vec![not_tokyo.clone(), america.clone(), virginia.clone(), continents(2)]),
        "no placement of 3 replicas satisfies all of: data stays within california, oregon, virginia; at most 2 per continent; \
         give up one of these"
    );
    assert_eq!(
        constrained(1, vec![america, virginia, not_tokyo, not_virginia]),
        "no placement of 3 replicas satisfies all of: a replica in virginia; no replica in virginia; give up one of these"
    );
    assert_eq!(
        constrained(1, vec![providers(2)]),
        "no placement of 3 replicas satisfies all of: at most 2 per provider; give up one of these"
    );
    // Nine clients; only Oregon and Tokyo carry as many.
    let capacity = Constraint::Capacity((0..9).map(|region| if [1, 5].contains(&region) { 9 } else { 8 }).collect());
    assert_eq!(
        constrained(1, vec![capacity]),
        "no placement of 3 replicas satisfies all of: a replica only where there is capacity for all clients; give up one of these"
    );
    let prices = (0..9).map(|region| 100_000_000 + region).collect();
    let constraints = vec![continents(1), Constraint::Budget(299_990_000)];
    assert_eq!(
        refused(Request { prices, constraints, ..plain(1) }),
        "no placement of 3 replicas satisfies all of: at most 299.99 dollars a month; give up one of these"
    );
}

#[test]
fn thousands_of_regions_are_checked_for_feasibility() {
    let n = 4_000;
    let names: Vec<String> = (0..n).map(|region| format!("r{region}")).collect();
    let matrix = Matrix::new(names, |from, to| (from.abs_diff(to)) as u32).expect("fewer than the bound");
    let groups = |kind: &str, size: usize| Groups::new(kind, (0..n).map(|region| format!("g{}", region / size)));
    let mut request = request(matrix, commits(Protocol::ReplicatedCommit, false), 2);
    request.prices = (0..4_000).map(|region| 1_000 * region).collect();
    request.constraints = vec![
        Constraint::AtMost { limit: 2, groups: groups("country", 1_000) },
        Constraint::AtMost { limit: 1, groups: groups("city", 10) },
    ];
    // The cheapest: two cities of each of the first countries, the first region of each: 0, 10, 1000, 1010 and 2000.
    for (budget, feasible) in [(4_020_000, true), (4_019_999, false)] {
        let mut tight = request.clone();
        tight.constraints.push(Constraint::Budget(budget));
        assert_eq!(Problem::new(tight).is_ok(), feasible);
    }
}
