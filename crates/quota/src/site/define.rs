//! The quotas that there are at this site: what follows here from a change in the catalog.

use super::Site;
use super::quota::Quota;
use super::waiting::Slot;
use crate::account::Account;
use crate::avantan::Protocol;
use crate::catalog::{self, Asker, Catalog, Change, Definition, Definitions, QuotaId};
use crate::cluster::Cluster;
use crate::count::Count;
use crate::demand::Demand;
use crate::lost::Settled;
use crate::message::{Note, Promise};
use crate::operation::Done;
use crate::planted::Planted;
use crate::records;
use crate::refusal::Refusal;
use crate::request::Answer;
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, Rules, record, work};
use std::collections::{BTreeMap, BTreeSet};

impl Site {
    pub(super) fn propose(&mut self, client: RequestId, change: Change, fx: &mut Effects<Site>) {
        self.with_catalog(fx, |catalog, out| catalog.propose(Asker::Request(client), change, out));
    }

    /// A step of the catalog, and what follows from it.
    pub(super) fn with_catalog(&mut self, fx: &mut Effects<Site>, step: impl FnOnce(&mut Catalog, &mut catalog::Out)) {
        let mut out = catalog::Out::default();
        step(&mut self.catalog, &mut out);
        self.outcome.catalog |= out.changed;
        if out.redefined {
            self.redefine(fx);
        }
        for (to, note) in out.notes {
            fx.send(to, Note::Catalog(note));
        }
        self.outcome.promises.extend(out.promises.into_iter().map(|(to, promise)| (to, Promise::Catalog(promise))));
        for (asker, outcome) in out.answers {
            self.tell(asker, outcome);
        }
    }

    /// Tells who asked for a change what became of it.
    fn tell(&mut self, asker: Asker, outcome: Result<(), Refusal>) {
        match asker {
            Asker::Request(client) => self.outcome.answers.push((client, Answer::Changed(outcome))),
            Asker::Operation { client, index, quota } => {
                let left = self.quotas.get(&quota).map_or(0, |quota| quota.account.tokens.left);
                self.settle(Slot { client, index }, outcome.map(|()| Done { left }));
            }
            Asker::Site => {}
        }
    }

    /// Takes up, changes and drops quotas until this site has those of the catalog.
    fn redefine(&mut self, fx: &mut Effects<Site>) {
        self.cluster = self.cluster.without(self.catalog.definitions().lost());
        let defined: BTreeMap<QuotaId, Definition> = self.catalog.definitions().quotas.clone();
        let gone: Vec<QuotaId> = self.quotas.keys().filter(|id| !defined.contains_key(id)).copied().collect();
        let mut changed = BTreeSet::new();
        for id in gone.into_iter().rev() {
            changed.extend(self.drop_quota(id, fx));
        }
        work::add(defined.len());
        for (id, definition) in defined {
            if self.quotas.get(&id).is_some_and(|quota| quota.definition != definition) {
                self.interrupt_count(id, fx);
            }
            match self.quotas.get_mut(&id) {
                Some(quota) if quota.definition == definition => continue,
                Some(quota) => {
                    if definition.settled.losses > quota.definition.settled.losses {
                        quota.account.in_doubt = 0;
                    }
                    quota.definition = definition.clone();
                }
                None => {
                    let quota = self.new_quota(definition.clone(), Account::default());
                    self.quotas.insert(id, quota);
                }
            }
            let quota = self.quotas.get_mut(&id).expect("it was there or was just put there");
            // A site that is lost has no part in what comes later, and hears of that and of its loss at once.
            if !self.cluster.is_lost(self.cluster.me) {
                take_over(&self.cluster, &definition, &mut quota.account, self.rules);
                let issued = part(&self.cluster, self.catalog.definitions(), &definition, quota.account.settled);
                quota.account.issue(issued);
            }
            quota.granted(&self.config);
            quota.shortage.end();
            quota.collect_at_once(&self.config);
            self.outcome.batch.put_record(records::DEFINITIONS, records::quota_key(id), record::encode(&definition));
            self.outcome.accounts.insert(id);
            changed.insert(id);
        }
        self.relate();
        self.take_up_losses(fx);
        if self.is_lost() {
            return;
        }
        for id in changed {
            self.on_more_tokens(id, fx);
            self.maybe_redistribute(id, fx);
        }
    }

    /// A quota as it is here, without what redistributions brought.
    pub(super) fn new_quota(&self, definition: Definition, account: Account) -> Quota {
        let spec = &definition.spec;
        let protocol = Protocol::new(spec.protocol, self.cluster.clone(), spec.reallocation).with_rules(self.rules);
        let predictor = self.config.predictors.as_ref().and_then(|predictors| predictors(&definition.name));
        let demand = Demand::new(self.config.epoch, predictor);
        let count = Count::new(self.cluster.clone()).with_rules(self.rules);
        Quota::new(definition, account, protocol, count, demand, &self.config)
    }

    /// Works out who stands above whom.
    pub(super) fn relate(&mut self) {
        let definitions = self.catalog.definitions();
        for (id, quota) in &mut self.quotas {
            quota.chain = definitions.chain(*id).collect();
        }
    }

    /// What clients hold of a quota that ends, they hold of those above it no more: as many as are held of it here are taken back above it,
    /// wherever those are held. Tokens that are on offer are left out: another site may have been given them. Where tokens of lost sites are
    /// booked nobody knows how many clients hold, so they stay held above until they are released or freed there.
    fn give_back(&mut self, quota: &Quota, fx: &mut Effects<Site>) -> Vec<QuotaId> {
        if quota.definition.settled.booked > 0 || quota.definition.settled.losses < self.cluster.losses() {
            return Vec::new();
        }
        let Account { tokens, returning, .. } = quota.account;
        let above: Vec<QuotaId> = quota.chain.iter().skip(1).copied().collect();
        for link in &above {
            self.interrupt_count(*link, fx);
            let Some(above) = self.quotas.get_mut(link) else { continue };
            above.account.take_back(super::planted::held_below(self.rules, tokens.held, &above.account));
            // Of what other sites hold of the quota, clients hold so many fewer.
            above.account.hold_again(returning);
            if above.account.returning > 0 {
                above.collect_at_once(&self.config);
            }
            self.outcome.accounts.insert(*link);
        }
        above
    }

    /// Ends a quota here. Tokens of the quotas above it have changed hands, which it returns.
    fn drop_quota(&mut self, id: QuotaId, fx: &mut Effects<Site>) -> Vec<QuotaId> {
        let quota = self.quotas.get_mut(&id).expect("it was just looked at");
        let unknown = Refusal::Unknown(quota.definition.name.clone());
        for waiting in quota.take_waiting() {
            self.finish(id, waiting, Err(unknown.clone()));
        }
        let quota = self.quotas.remove(&id).expect("it was just looked at");
        self.active.remove(&id);
        let above = self.give_back(&quota, fx);
        for reader in quota.readers {
            self.outcome.answers.push((reader.client, Answer::Got(Err(unknown.clone()))));
        }
        for space in [records::DEFINITIONS, records::ACCOUNTS, records::PROTOCOLS, records::LISTS] {
            self.outcome.batch.delete_record(space, records::quota_key(id));
        }
        self.outcome.accounts.remove(&id);
        self.outcome.protocols.remove(&id);
        self.outcome.lists.remove(&id);
        above
    }
}

/// The heir of lost sites takes over what was booked for them, and takes back what operators have freed of it.
fn take_over(cluster: &Cluster, definition: &Definition, account: &mut Account, rules: Rules<Planted>) {
    let Settled { losses, booking, freed, .. } = &definition.settled;
    if cluster.heir(*losses) != cluster.me {
        return;
    }
    if account.settled < *losses {
        match booking {
            Some(booking) => {
                account.inherit(booking, *losses);
                super::planted::leave_lost_share(rules, booking, account);
            }
            None => account.settled = *losses,
        }
    }
    if rules.breaks(Planted::FreedAgain) {
        account.freed = 0;
    }
    account.free(*freed);
}

/// This site's part of a limit, with those of the first `settled` lost sites.
fn part(cluster: &Cluster, definitions: &Definitions, definition: &Definition, settled: u32) -> u64 {
    let own = definition.parts(cluster.sites.len()).nth(cluster.rank()).expect("a part for each site");
    own + definitions.made.parts(definition.spec.limit, 0, settled)
}
