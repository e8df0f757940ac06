//! Sites declared lost, at a site: what it takes from them no more, and the end of its own service should it be one of them
//! ([`lost`](crate::lost)). Counts that settle what they have: [`settling`](super::settling).

use super::Site;
use crate::catalog::{Change, QuotaId};
use crate::lost::{Loss, Settled, Terms};
use crate::refusal::Refusal;
use crate::request::Answer;
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, SiteId};

impl Site {
    /// True if this site was declared lost: it serves quotas no more.
    pub fn is_lost(&self) -> bool {
        self.cluster.is_lost(self.cluster.me)
    }

    pub(super) fn on_declare_lost(&mut self, client: RequestId, site: SiteId, fx: &mut Effects<Site>) {
        let answer = |refusal| Answer::Changed(refusal);
        if site == self.cluster.me {
            let refusal = Refusal::Invalid(format!("{site} is this very site and lives; ask another one, and stop this first"));
            return fx.answer(client, answer(Err(refusal)));
        }
        let Some(rank) = self.cluster.sites.iter().position(|known| *known == site) else {
            return fx.answer(client, answer(Err(Refusal::Invalid(format!("this cluster has no site {site}")))));
        };
        if self.cluster.is_lost(site) {
            return fx.answer(client, answer(Ok(())));
        }
        let number = |number| u32::try_from(number).expect("a cluster has few sites");
        let loss = Loss { site, rank: number(rank) };
        self.propose(client, Change::Lost { loss, of: number(self.cluster.sites.len()) }, fx);
    }

    /// What follows once more sites are declared lost.
    pub(super) fn take_up_losses(&mut self, fx: &mut Effects<Site>) {
        if self.is_lost() {
            return self.retire(fx);
        }
        let losses = self.cluster.losses();
        if std::mem::replace(&mut self.losses_known, losses) < losses {
            let cluster = self.cluster.clone();
            self.pace.retain(|site| !cluster.is_lost(site));
            for id in self.quotas.keys().copied().collect::<Vec<_>>() {
                self.quotas.get_mut(&id).expect("it was just listed").settling = None;
                self.with_count(id, fx, |count, _, out| count.lose(&cluster, out));
                self.with_protocol(id, fx, |protocol, port, out| protocol.lose(&cluster, port, out));
            }
        }
    }

    /// Whatever waits here is refused, and nothing is done any more.
    fn retire(&mut self, fx: &mut Effects<Site>) {
        fx.count("quota.lost.retired");
        self.active.clear();
        for id in self.quotas.keys().copied().collect::<Vec<_>>() {
            let quota = self.quotas.get_mut(&id).expect("it was just listed");
            let waiting = quota.take_waiting();
            let readers: Vec<_> = quota.readers.drain(..).collect();
            waiting.into_iter().for_each(|waiting| self.finish(id, waiting, Err(Refusal::DeclaredLost)));
            let told = readers.into_iter().map(|reader| (reader.client, Answer::Got(Err(Refusal::DeclaredLost))));
            self.outcome.answers.extend(told);
        }
        self.forget_reads();
    }

    /// How this site knows quota `id`.
    pub(super) fn terms(&self, id: QuotaId) -> Terms {
        let Some(quota) = self.quotas.get(&id) else { return Terms::default() };
        let definition = &quota.definition;
        let Settled { losses: settled, freed, returned, .. } = definition.settled;
        Terms { limit: definition.spec.limit, losses: self.cluster.losses(), settled, closing: definition.closing, freed, returned }
    }

    /// True if it is known what lost sites have of quota `id`.
    pub(super) fn is_settled(&self, id: QuotaId) -> bool {
        let terms = self.terms(id);
        terms.settled == terms.losses
    }

    /// True if what lost sites have of quota `id` was among what was counted on these terms. It may have been booked in the midst of the count.
    pub(super) fn was_settled(&self, id: QuotaId, terms: Option<Terms>) -> bool {
        let losses = self.cluster.losses();
        self.is_settled(id) && (losses == 0 || terms.is_some_and(|terms| terms.settled == losses))
    }
}
