//! Models explored with stateright. Their steps print as [`Model::format_action`] shows them.

use stateright::{Checker, HasDiscoveries, Model, Path};
use std::fmt::Debug;
use std::hash::Hash;

/// A model that can be explored, by all that stateright asks of it.
pub trait Explored:
    Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq + Send + Sync> + Send + Sync + 'static
{
}

impl<M> Explored for M where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq + Send + Sync>
        + Send
        + Sync
        + 'static
{
}

/// Explores all that `model` can reach: nothing that must not happen does, and everything that should be possible is.
pub fn check<M: Explored>(model: M) -> impl Checker<M> {
    check_shown(model, steps)
}

/// The same, where `show` says a path, a line for each step.
pub fn check_shown<M: Explored>(model: M, show: impl Fn(&M, Path<M::State, M::Action>) -> Vec<String>) -> impl Checker<M> {
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    report(&checker);
    for (name, path) in checker.discoveries() {
        println!("\"{name}\":\n  {}", show(checker.model(), path).join("\n  "));
    }
    checker.assert_properties();
    checker
}

/// Prints how much was explored.
pub fn report<M: Explored>(checker: &impl Checker<M>) {
    println!("{} states, {} steps, depth {}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
}

/// Finds a short way to a violation of `property`; its steps.
pub fn refute<M: Explored>(model: M, property: &'static str) -> Vec<String> {
    refute_shown(model, property, steps)
}

/// The same, where `show` says a path, a line for each step.
pub fn refute_shown<M: Explored>(
    model: M,
    property: &'static str,
    show: impl Fn(&M, Path<M::State, M::Action>) -> Vec<String>,
) -> Vec<String> {
    let checker = model.checker().finish_when(HasDiscoveries::AllOf([property].into())).spawn_bfs().join();
    let path = checker.discovery(property).unwrap_or_else(|| panic!("nothing violates \"{property}\""));
    let steps = show(checker.model(), path);
    println!("\"{property}\" after {} states:\n  {}", checker.unique_state_count(), steps.join("\n  "));
    steps
}

fn steps<M: Explored>(model: &M, path: Path<M::State, M::Action>) -> Vec<String> {
    path.into_actions().iter().map(|action| model.format_action(action)).collect()
}
