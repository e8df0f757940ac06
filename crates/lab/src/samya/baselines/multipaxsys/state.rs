//! The replicated state: what every replica gets by applying the same log.

use super::REQUESTS_MAX;
use super::command::{Change, Command, CommandId, Entry, Outcome};
use rhumb_core::SiteId;
use rhumb_quota::info::{Info, Read, SiteTokens};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, Done};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::{QUOTAS_MAX, Spec, check_limit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Outcomes remembered per gateway: as many as it has requests under way.
const OUTCOMES_MAX: usize = REQUESTS_MAX;

/// The replicated state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    applied: u64,
    quotas: BTreeMap<Name, Quota>,
    outcomes: BTreeMap<SiteId, BTreeMap<u64, Outcome>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Quota {
    spec: Spec,
    held: u64,
}

impl State {
    /// The last slot applied; slots count from 1.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Quotas known.
    pub(super) fn quota_count(&self) -> usize {
        self.quotas.len()
    }

    /// Applies the next slot. Returns what became of each of its commands.
    pub(super) fn apply(&mut self, slot: u64, entry: &Entry) -> Vec<(CommandId, Outcome)> {
        assert_eq!(slot, self.applied + 1, "slots are applied in order");
        self.applied = slot;
        entry.iter().map(|command| (command.id, self.carry_out(command))).collect()
    }

    fn carry_out(&mut self, command: &Command) -> Outcome {
        let CommandId { gateway, ticket } = command.id;
        let known = self.outcomes.entry(gateway).or_default();
        if let Some(outcome) = known.get(&ticket) {
            return outcome.clone();
        }
        // A command older than all that is remembered may have been applied and forgotten.
        if known.len() >= OUTCOMES_MAX && known.first_key_value().is_some_and(|(oldest, _)| ticket < *oldest) {
            return command.change.refused(Refusal::UnknownOutcome("it was asked too long ago".into()));
        }
        let outcome = self.change(&command.change);
        let known = self.outcomes.entry(gateway).or_default();
        known.insert(ticket, outcome.clone());
        if known.len() > OUTCOMES_MAX {
            known.pop_first();
        }
        outcome
    }

    fn change(&mut self, change: &Change) -> Outcome {
        match change {
            Change::Run(operations) => {
                Outcome::Ran(operations.iter().map(|(action, quota, amount)| self.operate(*action, quota, *amount)).collect())
            }
            Change::Create(name, spec) => Outcome::Changed(self.create(name, spec)),
            Change::SetLimit(name, limit) => Outcome::Changed(self.set_limit(name, *limit)),
            Change::Drop(name) => Outcome::Changed(self.quotas.remove(name).map(|_| ()).ok_or_else(|| Refusal::Unknown(name.clone()))),
        }
    }

    fn operate(&mut self, action: Action, name: &Name, amount: u64) -> Result<Done, Refusal> {
        let quota = self.quotas.get_mut(name).ok_or_else(|| Refusal::Unknown(name.clone()))?;
        match action {
            Action::Acquire if amount <= quota.left() => quota.held += amount,
            Action::Acquire => return Err(Refusal::Exceeded { quota: name.clone(), wanted: amount }),
            Action::Release | Action::Free if amount <= quota.held => quota.held -= amount,
            Action::Release | Action::Free => return Err(Refusal::NotHeld { quota: name.clone(), amount }),
        }
        Ok(Done { left: quota.left() })
    }

    fn create(&mut self, name: &Name, spec: &Spec) -> Result<(), Refusal> {
        spec.check()?;
        if self.quotas.contains_key(name) {
            return Err(Refusal::Exists(name.clone()));
        }
        if self.quotas.len() >= QUOTAS_MAX {
            return Err(Refusal::Invalid(format!("there are {QUOTAS_MAX} quotas, and no more are allowed; drop one")));
        }
        self.quotas.insert(name.clone(), Quota { spec: spec.clone(), held: 0 });
        Ok(())
    }

    fn set_limit(&mut self, name: &Name, limit: u64) -> Result<(), Refusal> {
        check_limit(limit)?;
        let quota = self.quotas.get_mut(name).ok_or_else(|| Refusal::Unknown(name.clone()))?;
        quota.spec.limit = limit;
        Ok(())
    }

    /// The quota `name` as the replica `site` knows it.
    pub(super) fn info(&self, name: &Name, site: SiteId, read: Read) -> Result<Info, Refusal> {
        let quota = self.quotas.get(name).ok_or_else(|| Refusal::Unknown(name.clone()))?;
        let owed = quota.held.saturating_sub(quota.spec.limit);
        let tokens = SiteTokens { site, left: quota.left(), held: quota.held, offered: 0, owed, freed: 0 };
        Ok(Info { name: name.clone(), spec: quota.spec.clone(), read, sites: vec![tokens], missing: Vec::new(), booked: 0 })
    }

    /// All quotas as the replica `site` knows them.
    pub(super) fn list(&self, site: SiteId) -> Vec<Info> {
        self.quotas.keys().filter_map(|name| self.info(name, site, Read::Local).ok()).collect()
    }
}

impl Quota {
    fn left(&self) -> u64 {
        self.spec.limit.saturating_sub(self.held)
    }
}
