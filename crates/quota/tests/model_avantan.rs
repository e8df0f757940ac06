//! Both versions of Avantan, checked exhaustively in small configurations, and the checks held against protocols with one
//! rule broken.

mod model;

use model::{Avantan, Budget, Tokens};
use rhumb_quota::spec::ProtocolKind::{Any, Majority};
use stateright::{Checker, HasDiscoveries, Model};

/// The first two sites want more than they have; the third has enough for one of them.
const TOKENS: [Tokens; 3] = [
    Tokens { left: 2, held: 1, keeps: 0, wants: 3, owes: 0 },
    Tokens { left: 2, held: 0, keeps: 0, wants: 3, owes: 0 },
    Tokens { left: 4, held: 0, keeps: 1, wants: 0, owes: 0 },
];
/// Nothing but what the messages in the network bring about.
const QUIET: Budget = Budget { starts: [0; 3], nudges: 0, timeouts: [0; 3], crashes: [0; 3], uses: 0 };
const FIRST_LEADS: Budget = Budget { starts: [1, 0, 0], ..QUIET };
const TWO_LEAD: Budget = Budget { starts: [1, 1, 0], ..QUIET };

/// Explores all that `model` can reach: nothing that must not happen does, and everything that should be possible is.
fn check(model: Avantan) {
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    println!("{} states, {} steps, depth {}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
    println!("{}", checker.model().with_tables(|tables| tables.to_string()));
    for (name, path) in checker.discoveries() {
        println!("\"{name}\":\n  {}", checker.model().describe_all(path.into_actions()).join("\n  "));
    }
    checker.assert_properties();
}

#[test]
fn majority_with_two_leaders_is_safe() {
    check(Avantan::new(Majority, TOKENS, TWO_LEAD));
}

#[test]
fn majority_with_a_slot_taken_over_is_safe() {
    check(Avantan::new(Majority, TOKENS, Budget { nudges: 1, timeouts: [0, 1, 0], uses: 1, ..FIRST_LEADS }));
}

#[test]
fn majority_with_an_eager_leader_and_a_cohort_that_asks_is_safe() {
    check(Avantan::new(Majority, TOKENS, Budget { nudges: 1, timeouts: [1, 0, 0], uses: 1, ..FIRST_LEADS }));
}

#[test]
fn majority_with_a_leader_that_crashes_is_safe() {
    check(Avantan::new(Majority, TOKENS, Budget { timeouts: [0, 1, 0], crashes: [1, 0, 0], ..FIRST_LEADS }));
}

#[test]
fn majority_with_a_cohort_that_crashes_is_safe() {
    check(Avantan::new(Majority, TOKENS, Budget { timeouts: [0, 1, 0], crashes: [0, 1, 0], uses: 1, ..FIRST_LEADS }));
}

#[test]
fn any_with_two_leaders_that_lose_patience_is_safe() {
    check(Avantan::new(Any, TOKENS, Budget { nudges: 1, timeouts: [1, 1, 0], ..TWO_LEAD }));
}

#[test]
fn any_with_a_member_that_crashes_is_safe() {
    check(Avantan::new(Any, TOKENS, Budget { timeouts: [0, 1, 0], crashes: [0, 1, 0], ..TWO_LEAD }));
}

#[test]
fn any_with_a_leader_that_crashes_is_safe() {
    check(Avantan::new(Any, TOKENS, Budget { timeouts: [0, 1, 1], crashes: [1, 0, 0], ..TWO_LEAD }));
}

#[test]
#[ignore = "15 million states, two minutes: `make soak` runs it"]
fn any_with_tokens_in_use_meanwhile_is_safe() {
    check(Avantan::new(Any, TOKENS, Budget { nudges: 1, timeouts: [1, 1, 0], uses: 1, ..TWO_LEAD }));
    check(Avantan::new(Any, TOKENS, Budget { timeouts: [0, 1, 0], crashes: [0, 1, 0], uses: 1, ..TWO_LEAD }));
}

#[test]
fn debts_are_paid_and_no_token_is_lost() {
    let mut tokens = TOKENS;
    tokens[0] = Tokens { left: 0, held: 3, keeps: 0, wants: 0, owes: 2 };
    for kind in [Majority, Any] {
        check(Avantan::new(kind, tokens, Budget { timeouts: [0, 1, 0], uses: 1, ..FIRST_LEADS }));
    }
}

/// Protocols with one rule broken.
#[cfg(feature = "planted")]
mod planted {
    use super::model::{ASSERTIONS, CONSERVATION, MEMBERSHIP};
    use super::*;
    use rhumb_core::Rules;
    use rhumb_quota::planted::Planted;
    use rhumb_quota::spec::ProtocolKind;

    /// A short way to a violation of each of `properties`, by steps as they print.
    fn counterexamples<const N: usize>(
        planted: Planted,
        kind: ProtocolKind,
        tokens: [Tokens; 3],
        budget: Budget,
        properties: [&'static str; N],
    ) -> [String; N] {
        let model = Avantan { rules: Rules::breaking(planted), ..Avantan::new(kind, tokens, budget) };
        let checker = model.checker().finish_when(HasDiscoveries::AllOf(properties.into())).spawn_bfs().join();
        println!("{planted:?}: {} states", checker.unique_state_count());
        properties.map(|property| {
            let path = checker.discovery(property).unwrap_or_else(|| panic!("{planted:?} does not violate \"{property}\""));
            let steps = checker.model().describe_all(path.into_actions());
            println!("\"{property}\":\n  {}", steps.join("\n  "));
            steps.join("; ")
        })
    }

    #[test]
    fn an_offer_taken_back_on_silence_is_refuted() {
        let budget = Budget { nudges: 1, ..FIRST_LEADS };
        let found = counterexamples(Planted::UnfreezeOnTimeout, Majority, TOKENS, budget, [MEMBERSHIP, ASSERTIONS]);
        assert!(found.iter().all(|steps| steps.contains("Nudge")), "without patience lost all is well: {found:#?}");
    }

    #[test]
    fn a_list_applied_again_is_refuted() {
        for kind in [Majority, Any] {
            let [steps] = counterexamples(Planted::SlotReplay, kind, TOKENS, FIRST_LEADS, [CONSERVATION]);
            assert!(steps.matches("Decided").count() > 1, "told once, all is well: {steps}");
        }
    }

    #[test]
    fn a_leader_that_aborts_with_its_list_out_is_refuted() {
        let budget = Budget { nudges: 1, timeouts: [0, 1, 0], ..FIRST_LEADS };
        let [steps] = counterexamples(Planted::AbortAfterAccept, Any, TOKENS, budget, [MEMBERSHIP]);
        assert!(steps.contains("Nudge at r0.0"), "without patience lost all is well: {steps}");
    }

    #[test]
    fn tokens_of_refused_sites_counted_again_are_refuted() {
        let mut tokens = TOKENS;
        tokens[0].wants = 8;
        let budget = Budget { nudges: 1, ..FIRST_LEADS };
        for kind in [Majority, Any] {
            counterexamples(Planted::AsPrinted, kind, tokens, budget, [CONSERVATION]);
        }
    }
}
