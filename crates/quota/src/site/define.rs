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
        // Those below others first: what waits for one of them waits for those above it as well.
        gone.into_iter().rev().for_each(|id| self.drop_quota(id));
        let mut changed = BTreeSet::new();
        work::add(defined.len());
        for (id, definition) in defined {
            if self.quotas.get(&id).is_some_and(|quota| quota.definition != definition) {
                self.interrupt_count(id, fx);
            }
            if definition.closing && self.quotas.get(&id).is_some_and(|quota| !quota.definition.closing) {
                self.close(id);
            }
            match self.quotas.get_mut(&id) {
                Some(quota) if quota.definition == definition => continue,
                Some(quota) => {
                    if definition.settled.losses > quota.definition.settled.losses {
                        quota.account.in_doubt = 0;
                        // What was counted is booked.
                        quota.settling = None;
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
        self.plan_counts();
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

    /// Clients have to do with quota `id` no more: who waits for it is refused.
    fn close(&mut self, id: QuotaId) {
        let quota = self.quotas.get_mut(&id).expect("it was just looked at");
        let unknown = Refusal::Unknown(quota.definition.name.clone());
        quota.needs_recount = false;
        for reader in std::mem::take(&mut quota.readers) {
            self.outcome.answers.push((reader.client, Answer::Got(Err(unknown.clone()))));
        }
        for waiting in quota.take_waiting() {
            self.finish(id, waiting, Err(unknown.clone()));
        }
    }

    /// Ends a quota here.
    fn drop_quota(&mut self, id: QuotaId) {
        self.close(id);
        self.quotas.remove(&id);
        self.active.remove(&id);
        for space in [records::DEFINITIONS, records::ACCOUNTS, records::PROTOCOLS, records::LISTS] {
            self.outcome.batch.delete_record(space, records::quota_key(id));
        }
        self.outcome.accounts.remove(&id);
        self.outcome.protocols.remove(&id);
        self.outcome.lists.remove(&id);
    }
}

/// The heir of lost sites takes over what was booked for them, and takes back what operators have freed of it. It takes back as well what quotas
/// below have given back: some site has to, and which one then follows from the catalog, as does how much.
fn take_over(cluster: &Cluster, definition: &Definition, account: &mut Account, rules: Rules<Planted>) {
    let Settled { losses, booking, freed, returned, .. } = &definition.settled;
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
    account.take_up(*freed, *returned);
    super::planted::forget_what_is_held_elsewhere(rules, account);
}

/// This site's part of a limit, with those of the first `settled` lost sites.
fn part(cluster: &Cluster, definitions: &Definitions, definition: &Definition, settled: u32) -> u64 {
    let own = definition.parts(cluster.sites.len()).nth(cluster.rank()).expect("a part for each site");
    own + definitions.made.parts(definition.spec.limit, 0, settled)
}
