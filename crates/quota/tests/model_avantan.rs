//! Both versions of Avantan, checked exhaustively in small configurations, and the checks held against protocols with one
//! rule broken.

mod model;

use model::{Avantan, Budget, Tokens};
use rhumb_quota::spec::ProtocolKind;
use stateright::{Checker, HasDiscoveries, Model};

/// The first two sites want more than they have; any two sites together have enough for one of them.
const TOKENS: [Tokens; 3] = [
    Tokens { left: 2, held: 1, keeps: 0, wants: 3, owes: 0 },
    Tokens { left: 2, held: 0, keeps: 0, wants: 3, owes: 0 },
    Tokens { left: 4, held: 0, keeps: 1, wants: 0, owes: 0 },
];

fn check(model: Avantan) {
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).target_state_count(std::env::var("N").map_or(20_000_000, |x| x.parse().unwrap())).spawn_dfs().join();
    println!("{} states, {} steps, depth {}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
    println!("{:?} sites, messages, steps of sites", checker.model().with_tables(|tables| tables.sizes()));
    for (name, path) in checker.discoveries() {
        let steps: Vec<String> = path.into_actions().into_iter().map(|action| checker.model().describe(action)).collect();
        println!("\"{name}\":\n  {}", steps.join("\n  "));
    }
    checker.assert_properties();
}

#[test]
fn majority_probe() {
    let v: Vec<u8> = std::env::var("B").unwrap_or("1,0,0,1,1,0,0,0,0,0,0".into()).split(',').map(|x| x.parse().unwrap()).collect();
    let budget = Budget { starts: [v[0], v[1], v[2]], nudges: v[3], timeouts: [v[4], v[5], v[6]], crashes: [v[7], v[8], v[9]], uses: v[10] };
    let kind = if std::env::var_os("ANY").is_some() { ProtocolKind::Any } else { ProtocolKind::Majority };
    check(Avantan::new(kind, TOKENS, budget));
}
