//! Both versions of Avantan, checked exhaustively in small configurations, and the checks held against protocols with one
//! rule broken.

mod model;

use model::{Avantan, Budget, Tokens};
use rhumb_quota::spec::ProtocolKind::{Any, Majority};
use stateright::Checker;

/// The first two sites want more than they have; the third has enough for one of them.
const TOKENS: [Tokens; 3] = [
    Tokens { left: 2, held: 1, keeps: 0, wants: 3, owes: 0 },
    Tokens { left: 2, held: 0, keeps: 0, wants: 3, owes: 0 },
    Tokens { left: 4, held: 0, keeps: 1, wants: 0, owes: 0 },
];
/// Nothing but what the messages in the network bring about.
const QUIET: Budget = Budget { starts: [0; 3], resends: 0, timeouts: [0; 3], crashes: [0; 3], uses: 0 };
const FIRST_LEADS: Budget = Budget { starts: [1, 0, 0], ..QUIET };
const TWO_LEAD: Budget = Budget { starts: [1, 1, 0], ..QUIET };

/// Explores all that can become of the tokens.
fn check(model: Avantan) {
    let checker = rhumb_testkit::model::check(model);
    println!("{}", checker.model().with_tables(|tables| tables.to_string()));
}

#[test]
fn majority_with_two_leaders_is_safe() {
    check(Avantan::new(Majority, TOKENS, TWO_LEAD));
}

#[test]
fn majority_with_a_slot_taken_over_is_safe() {
    check(Avantan::new(Majority, TOKENS, Budget { resends: 1, timeouts: [0, 1, 0], uses: 1, ..FIRST_LEADS }));
}

#[test]
fn majority_with_an_eager_leader_and_a_cohort_that_asks_is_safe() {
    check(Avantan::new(Majority, TOKENS, Budget { resends: 1, timeouts: [1, 0, 0], uses: 1, ..FIRST_LEADS }));
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
    check(Avantan::new(Any, TOKENS, Budget { resends: 1, timeouts: [1, 1, 0], ..TWO_LEAD }));
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
    check(Avantan::new(Any, TOKENS, Budget { resends: 1, timeouts: [1, 1, 0], uses: 1, ..TWO_LEAD }));
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
mod planted {
    use super::model::{ASSERTIONS, CONSERVATION, MEMBERSHIP};
    use super::*;
    use rhumb_core::Rules;
    use rhumb_quota::planted::Planted;
    use rhumb_quota::spec::ProtocolKind;

    /// A short way to a violation of `property`, by steps as they print.
    fn counterexample(planted: Planted, kind: ProtocolKind, tokens: [Tokens; 3], budget: Budget, property: &'static str) -> String {
        let model = Avantan { rules: Rules::breaking(planted), ..Avantan::new(kind, tokens, budget) };
        rhumb_testkit::model::refute(model, property).join("; ")
    }

    #[test]
    fn an_offer_taken_back_on_silence_is_refuted() {
        let budget = Budget { resends: 1, ..FIRST_LEADS };
        for property in [MEMBERSHIP, ASSERTIONS] {
            let steps = counterexample(Planted::UnfreezeOnTimeout, Majority, TOKENS, budget, property);
            assert!(steps.contains("Resend"), "without patience lost all is well: {steps}");
        }
    }

    #[test]
    fn a_list_applied_again_is_refuted() {
        for kind in [Majority, Any] {
            let steps = counterexample(Planted::SlotReplay, kind, TOKENS, FIRST_LEADS, CONSERVATION);
            assert!(steps.matches("Decided").count() > 1, "told once, all is well: {steps}");
        }
    }

    #[test]
    fn a_leader_that_aborts_with_its_list_out_is_refuted() {
        let budget = Budget { resends: 1, timeouts: [0, 1, 0], ..FIRST_LEADS };
        let steps = counterexample(Planted::AbortAfterAccept, Any, TOKENS, budget, MEMBERSHIP);
        assert!(steps.contains("Resend at r0.0"), "without patience lost all is well: {steps}");
    }

    #[test]
    fn tokens_of_refused_sites_counted_again_are_refuted() {
        let mut tokens = TOKENS;
        tokens[0].wants = 8;
        let budget = Budget { resends: 1, ..FIRST_LEADS };
        for kind in [Majority, Any] {
            counterexample(Planted::AsPrinted, kind, tokens, budget, CONSERVATION);
        }
    }
}
