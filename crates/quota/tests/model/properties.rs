//! What must hold in every state, and what must be reachable.

use super::tables::{Decision, Instance, Tables};
use super::{Avantan, SITES, State, site};
use rhumb_quota::account::Account;
use rhumb_quota::spec::ProtocolKind;
use stateright::Property;

/// Left + held + offered - owed on all disks is the limit, but for lists that some site has applied and another not yet.
pub const CONSERVATION: &str = "no token is minted or lost";
/// No instance decides twice.
pub const AGREEMENT: &str = "no two lists are decided in one instance";
/// No offer is spent twice.
pub const ONCE: &str = "an offer is held by one decided list";
/// Who is a member of a decided list has applied it, or keeps for it what it offered.
pub const MEMBERSHIP: &str = "a member keeps its offer for the list that is decided";
/// The code agrees with itself.
pub const ASSERTIONS: &str = "no assertion of the protocol fails";

pub(super) fn all(model: &Avantan) -> Vec<Property<Avantan>> {
    let mut properties = vec![
        Property::always(CONSERVATION, |model: &Avantan, state: &State| model.with_tables(|tables| conserves(model, tables, state))),
        Property::always(AGREEMENT, |model: &Avantan, state: &State| model.with_tables(|tables| agrees(tables, state))),
        Property::always(ONCE, |model: &Avantan, state: &State| model.with_tables(|tables| holds_once(tables, state))),
        Property::always(MEMBERSHIP, |model: &Avantan, state: &State| model.with_tables(|tables| keeps(model, tables, state))),
        Property::always(ASSERTIONS, |_, state: &State| !state.broken),
        Property::sometimes("a list is decided, and all its members have applied it", |model: &Avantan, state: &State| {
            model.with_tables(|tables| decisions(tables, state).any(|decision| unapplied(tables, state, decision).next().is_none()))
        }),
    ];
    let gives_up = match model.kind {
        ProtocolKind::Majority => model.budget.timeouts[0] > 0,
        ProtocolKind::Any => model.budget.timeouts != [0; SITES],
    };
    if gives_up {
        properties.push(Property::sometimes(
            "a redistribution comes to nothing, and every offer is free again",
            |model: &Avantan, state: &State| {
                let free = |tables: &Tables| accounts(tables, state).all(|account| account.offered.is_none());
                state.decided.is_empty() && offers_were_made(model, state) && model.with_tables(|tables| free(tables))
            },
        ));
    }
    if model.budget.timeouts != [0; SITES] {
        properties.push(Property::sometimes(
            "a list is first found decided by a site that did not build it",
            |model: &Avantan, state: &State| model.with_tables(|tables| decisions(tables, state).any(|decision| !decision.led)),
        ));
    }
    if model.kind == ProtocolKind::Majority && model.budget.starts.iter().sum::<u8>() > 1 {
        properties.push(Property::sometimes("two slots are decided", |model: &Avantan, state: &State| {
            let slot = |decision: &Decision| decision.instance == Instance::Slot(1);
            model.with_tables(|tables| decisions(tables, state).any(slot))
        }));
    }
    properties
}

/// A site other than the leader has answered with an offer.
fn offers_were_made(model: &Avantan, state: &State) -> bool {
    let is_offer = |text: String| text.contains("ElectionOk");
    state.network.len() > SITES && model.with_tables(|tables| state.network.iter().any(|id| is_offer(tables.envelope(*id).to_string())))
}

fn accounts<'a>(tables: &'a Tables, state: &'a State) -> impl Iterator<Item = &'a Account> {
    state.parts.iter().map(|part| &tables.part(*part).disk.account)
}

fn decisions<'a>(tables: &'a Tables, state: &'a State) -> impl Iterator<Item = &'a Decision> {
    state.decided.iter().map(|id| tables.decision(*id))
}

/// The members, by index, that have not applied a decided list yet.
fn unapplied<'a>(tables: &'a Tables, state: &'a State, decision: &'a Decision) -> impl Iterator<Item = usize> + 'a {
    let lacks = |index: &usize| {
        let entry = decision.list.entry(site(*index));
        entry.is_some_and(|entry| tables.part(state.parts[*index]).disk.account.version <= entry.version)
    };
    (0..SITES).filter(lacks)
}

fn conserves(model: &Avantan, tables: &Tables, state: &State) -> bool {
    let signed = |tokens: u64| i128::from(tokens);
    let total = |account: &Account| {
        let Account { tokens, offered, owed, .. } = account;
        signed(tokens.left + tokens.held + offered.left + offered.held) - signed(*owed)
    };
    let mut sum: i128 = accounts(tables, state).map(total).sum();
    for decision in decisions(tables, state) {
        for index in unapplied(tables, state, decision) {
            let entry = decision.list.entry(site(index)).expect("it is a member");
            let share = decision.list.share(site(index)).expect("it is a member");
            let share = rhumb_quota::site::planted::share(model.rules, &decision.list, site(index)).unwrap_or(share);
            sum += signed(share.granted.left + share.granted.held + share.paid) - signed(entry.offered.left + entry.offered.held);
        }
    }
    sum == signed(model.limit())
}

fn agrees(tables: &Tables, state: &State) -> bool {
    let mut found: Vec<Instance> = Vec::new();
    decisions(tables, state).all(|decision| {
        let new = !found.contains(&decision.instance);
        found.push(decision.instance);
        new
    })
}

fn holds_once(tables: &Tables, state: &State) -> bool {
    let mut found = Vec::new();
    decisions(tables, state).flat_map(|decision| &decision.list.entries).all(|entry| {
        let new = !found.contains(&(entry.site, entry.version));
        found.push((entry.site, entry.version));
        new
    })
}

fn keeps(model: &Avantan, tables: &Tables, state: &State) -> bool {
    decisions(tables, state).all(|decision| {
        unapplied(tables, state, decision).all(|index| {
            let part = tables.part(state.parts[index]);
            let entry = decision.list.entry(site(index)).expect("it is a member");
            part.disk.account.offered == entry.offered && part.frozen(model).as_ref() == Some(entry)
        })
    })
}
