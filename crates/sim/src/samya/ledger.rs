//! What the clients of a run know to be true, by their own books.

use rhumb_core::{SiteId, Time};
use rhumb_quota::name::Name;
use rhumb_quota::spec::Spec;
use std::collections::{BTreeMap, BTreeSet};

/// The books of all clients together.
#[derive(Default)]
pub struct Ledger {
    /// Tokens acquired and not yet released, by the quota named in the operation.
    held: BTreeMap<Name, u64>,
    /// Tokens of operations whose outcome is not known.
    pending: BTreeMap<Name, u64>,
    /// Of these, those whose outcome nobody will ever know.
    given_up: BTreeMap<Name, u64>,
    /// Somebody has asked for a site to be declared lost.
    pub declares: bool,
    /// Sites known to be declared lost.
    pub declared: BTreeSet<SiteId>,
    /// The quotas above each, and its limits: the last one that was acknowledged, and the highest ever asked for.
    quotas: BTreeMap<Name, Quota>,
    /// What was between a question and its answer, by the client that asks.
    watches: BTreeMap<u32, Watch>,
    /// A refusal says what was true after the question, not just before.
    pub asks_anew: bool,
    /// A quota below which another one comes and goes: tokens that clients hold of that are in no books.
    pub churned: Option<Name>,
    /// Operations done.
    pub done: u64,
    /// Operations refused.
    pub refused: u64,
    /// Requests whose site died before it answered. They were asked again.
    pub lost: u64,
    /// The first thing that was answered wrongly.
    pub wrong: Option<String>,
}

/// The bounds of what clients held of each quota since a question was asked.
struct Watch {
    /// Surely held at every moment: the least of it. Perhaps held at some moment: the most of it.
    bounds: BTreeMap<Name, (u64, u64)>,
}

struct Quota {
    parent: Option<Name>,
    limit: u64,
    highest: u64,
    lowest: u64,
}

impl Ledger {
    /// Empty books; `churned`: [`Ledger::churned`].
    pub fn new(asks_anew: bool, churned: Option<Name>) -> Ledger {
        Ledger { asks_anew, churned, ..Ledger::default() }
    }

    /// A quota was made.
    pub fn create(&mut self, name: &Name, spec: &Spec) {
        let quota = Quota { parent: spec.parent.clone(), limit: spec.limit, highest: spec.limit, lowest: spec.limit };
        self.quotas.insert(name.clone(), quota);
    }

    /// The names of all quotas.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.quotas.keys()
    }

    /// The quota right above.
    pub fn parent(&self, name: &Name) -> Option<&Name> {
        self.quotas[name].parent.as_ref()
    }

    /// True if clients may hold tokens of `name` that are in no books.
    pub fn is_churned(&self, name: &Name) -> bool {
        self.churned.as_ref() == Some(name)
    }

    /// The lowest limit that was ever asked for.
    pub fn lowest(&self, name: &Name) -> u64 {
        self.quotas[name].lowest
    }

    /// The limit last acknowledged.
    pub fn limit(&self, name: &Name) -> u64 {
        self.quotas[name].limit
    }

    /// A limit is asked for.
    pub fn limit_asked(&mut self, name: &Name, limit: u64) {
        let quota = self.quotas.get_mut(name).expect("quotas are made first");
        quota.highest = limit.max(quota.highest);
        quota.lowest = limit.min(quota.lowest);
    }

    /// A limit is acknowledged.
    pub fn limit_set(&mut self, name: &Name, limit: u64) {
        self.quotas.get_mut(name).expect("quotas are made first").limit = limit;
    }

    /// Tokens are acquired for good.
    pub fn acquired(&mut self, name: &Name, amount: u64, now: Time) {
        *self.held.entry(name.clone()).or_default() += amount;
        self.done += 1;
        self.moved();
        for quota in self.names().cloned().collect::<Vec<_>>() {
            let (held, highest) = (self.held(&quota), self.quotas[&quota].highest);
            if held > highest {
                self.find_wrong(format!("{now}: clients hold {held} tokens of {quota}, whose limit was never above {highest}"));
            }
        }
    }

    /// Up to `most` tokens of `name` for somebody to release: they count as held no more.
    pub fn take(&mut self, name: &Name, most: u64) -> u64 {
        let held = self.held.entry(name.clone()).or_default();
        let taken = most.min(*held);
        *held -= taken;
        self.moved();
        taken
    }

    /// What was taken to be released was not.
    pub fn put_back(&mut self, name: &Name, amount: u64) {
        *self.held.entry(name.clone()).or_default() += amount;
        self.moved();
    }

    /// An operation is sent, or has its outcome.
    pub fn set_pending(&mut self, name: &Name, amount: u64, pending: bool) {
        let sum = self.pending.entry(name.clone()).or_default();
        *sum = if pending { *sum + amount } else { *sum - amount };
        self.moved();
    }

    /// Nobody will know what became of an operation.
    pub fn give_up(&mut self, name: &Name, amount: u64) {
        *self.given_up.entry(name.clone()).or_default() += amount;
    }

    /// `client` asks something, and will want to know what was true meanwhile.
    pub fn watch(&mut self, client: u32) {
        self.watches.insert(client, Watch { bounds: BTreeMap::new() });
        self.moved();
    }

    /// The least and the most that clients can have held of `name` at any moment since `client` asked.
    pub fn watched(&mut self, client: u32, name: &Name) -> (u64, u64) {
        self.watches.get(&client).and_then(|watch| watch.bounds.get(name)).copied().expect("it was watched")
    }

    /// Books have changed.
    fn moved(&mut self) {
        let now: BTreeMap<Name, (u64, u64)> = self
            .quotas
            .keys()
            .map(|name| {
                let surely = Self::total(&self.quotas, &self.held, name);
                (name.clone(), (surely, surely + Self::total(&self.quotas, &self.pending, name)))
            })
            .collect();
        for watch in self.watches.values_mut() {
            for (name, (least, most)) in &now {
                let bounds = watch.bounds.entry(name.clone()).or_insert((*least, *most));
                *bounds = (bounds.0.min(*least), bounds.1.max(*most));
            }
        }
    }

    /// A sum over a quota and all below it.
    fn total(quotas: &BTreeMap<Name, Quota>, amounts: &BTreeMap<Name, u64>, name: &Name) -> u64 {
        let own = amounts.get(name).copied().unwrap_or(0);
        let below = quotas.iter().filter(|(_, quota)| quota.parent.as_ref() == Some(name));
        own + below.map(|(child, _)| Self::total(quotas, amounts, child)).sum::<u64>()
    }

    /// True if every operation has its outcome.
    pub fn is_settled(&self) -> bool {
        self.pending.iter().all(|(name, pending)| *pending == self.given_up.get(name).copied().unwrap_or(0))
    }

    /// What clients hold of `name` at the most: operations of which nobody knows the outcome have left them with tokens.
    pub fn held_at_most(&self, name: &Name) -> u64 {
        self.held(name) + Self::total(&self.quotas, &self.given_up, name)
    }

    /// What clients hold of `name`, by way of it and of the quotas below it.
    pub fn held(&self, name: &Name) -> u64 {
        Self::total(&self.quotas, &self.held, name)
    }

    /// What clients hold of `name`, by way of it alone.
    pub fn held_directly(&self, name: &Name) -> u64 {
        self.held.get(name).copied().unwrap_or(0)
    }

    /// The same at the most.
    pub fn held_directly_at_most(&self, name: &Name) -> u64 {
        self.held_directly(name) + self.given_up.get(name).copied().unwrap_or(0)
    }

    /// Something was answered wrongly; the first such thing is kept.
    pub fn find_wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }
}
