//! Request handling (Samya, 4.1.1 and 4.1.2, step 3): answers from the tokens at hand, or has them redistributed.
//!
//! An operation takes from its quota and from all above it, or from none: all are at this site, so that is one batch.

use super::Site;
use super::waiting::{RETRIES_ATTACHED_MAX, Slot, Waiting};
use crate::catalog::{Asker, Change, QuotaId};
use crate::operation::{Action, Done, Operation};
use crate::planted::Planted;
use crate::refusal::Refusal;
use crate::request::Answer;
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, work};
use std::sync::Arc;

/// A request of which some operation waits.
pub struct Running {
    results: Vec<Option<Result<Done, Refusal>>>,
    open: usize,
}

/// What came of a first look at an operation.
enum Look {
    Settled(Result<Done, Refusal>),
    /// The quota of the chain that has too few tokens here.
    Lacks(QuotaId),
    /// The very same operation waits already, or it is for the catalog to decide.
    Pending,
}

impl Site {
    pub(super) fn on_run(&mut self, client: RequestId, operations: Vec<Operation>, fx: &mut Effects<Site>) {
        let mut results = Vec::with_capacity(operations.len());
        let mut open = Vec::new();
        for (index, operation) in operations.into_iter().enumerate() {
            match self.look(&operation, fx) {
                Look::Settled(result) => results.push(Some(result)),
                Look::Lacks(quota) => {
                    results.push(None);
                    open.push((index, operation, Some(quota)));
                }
                Look::Pending => {
                    results.push(None);
                    open.push((index, operation, None));
                }
            }
        }
        if open.is_empty() {
            return self.outcome.answers.push((client, ran(results)));
        }
        self.running.insert(client, Running { results, open: open.len() });
        for (index, operation, lacking) in open {
            self.wait(operation, Slot { client, index }, lacking, fx);
        }
    }

    /// Carries out `operation` if that can be done here and now.
    fn look(&mut self, operation: &Operation, fx: &mut Effects<Site>) -> Look {
        let id = self.catalog.definitions().id(&operation.quota);
        if let Some(found) = self.window.find(operation, id.clone().ok()) {
            fx.count("quota.answered_again");
            return Look::Settled(found);
        }
        let id = match id {
            Ok(id) => id,
            Err(refusal) => return Look::Settled(Err(refusal)),
        };
        if operation.action == Action::Free || operation.id.as_ref().is_some_and(|key| self.waiting_ids.contains_key(key)) {
            return Look::Pending;
        }
        if operation.id.is_some() && self.window.is_full() {
            fx.count("quota.refused.window");
            let why = "this site has no memory for further request ids until those of the last minute may be forgotten";
            return Look::Settled(Err(Refusal::Unavailable(why.into())));
        }
        if operation.action == Action::Acquire {
            for link in Arc::clone(&self.quotas[&id].chain).iter() {
                self.quotas.get_mut(link).expect("a chain is of quotas").demand.acquire(operation.amount, self.now);
            }
        }
        match self.carry_out(id, operation) {
            Ok(done) => {
                self.after(id, operation.action, fx);
                Look::Settled(Ok(done))
            }
            Err(lacking) => match self.refuse_at_once(lacking, operation) {
                Some(refusal) => Look::Settled(Err(refusal)),
                None => Look::Lacks(lacking),
            },
        }
    }

    /// Carries out `operation` with the tokens at hand, or says which quota of the chain has too few.
    pub(super) fn carry_out(&mut self, id: QuotaId, operation: &Operation) -> Result<Done, QuotaId> {
        let chain = Arc::clone(&self.quotas[&id].chain);
        let amount = operation.amount;
        work::add(chain.len());
        let lacks = |id: &&QuotaId| !self.quotas[id].allows(operation.action, amount);
        if let Some(lacking) = chain.iter().find(lacks) {
            return Err(*lacking);
        }
        for link in chain.iter() {
            let quota = self.quotas.get_mut(link).expect("a chain is of quotas");
            let enough = match operation.action {
                Action::Acquire => quota.account.acquire(amount),
                Action::Release => {
                    quota.demand.release(amount, self.now);
                    quota.account.release(amount)
                }
                Action::Free => unreachable!("the catalog decides what is freed"),
            };
            assert!(enough, "it was looked at before");
            quota.shortage.carried_out(operation.action, amount);
            self.outcome.accounts.insert(*link);
        }
        let done = Done { left: self.quotas[&id].account.tokens.left };
        if self.rules.breaks(Planted::ForgottenRequestId) {
            return Ok(done);
        }
        self.window.remember(operation, id, done, self.ticks, &mut self.outcome.batch);
        Ok(done)
    }

    /// Why it is no use to wait for what `operation` lacks, if it is none.
    pub(super) fn refuse_at_once(&mut self, lacking: QuotaId, operation: &Operation) -> Option<Refusal> {
        let quota = self.quotas.get_mut(&lacking)?;
        let (name, amount) = (quota.definition.name.clone(), operation.amount);
        match operation.action {
            Action::Acquire if self.cluster.size() == 1 => Some(Refusal::Exceeded { quota: name, wanted: amount }),
            Action::Release | Action::Free if self.cluster.size() == 1 => Some(Refusal::NotHeld { quota: name, amount }),
            // There are enough, as soon as they are counted.
            _ if quota.account.allows(operation.action, amount) => None,
            _ => quota.shortage.refusal(operation, &name),
        }
    }

    /// After tokens of `id` changed hands: serves who waits for just those, and looks ahead.
    fn after(&mut self, id: QuotaId, action: Action, fx: &mut Effects<Site>) {
        let chain = Arc::clone(&self.quotas[&id].chain);
        let highest = *chain.last().expect("a chain has its quota");
        // What was acquired may be what a release waits for, and the other way round; who waits to do the same waits on.
        let serves = if action == Action::Acquire { Action::Release } else { Action::Acquire };
        if self.let_go(highest, &[serves], fx) {
            self.on_more_tokens(highest, fx);
        }
        work::add(chain.len());
        for link in chain.iter() {
            self.look_ahead(*link, fx);
        }
    }

    /// Lets `operation` wait, and has tokens redistributed for it.
    fn wait(&mut self, operation: Operation, slot: Slot, lacking: Option<QuotaId>, fx: &mut Effects<Site>) {
        let key = operation.id.clone();
        if let Some(id) = key.as_ref().and_then(|key| self.waiting_ids.get(key).copied()) {
            return self.attach(id, &operation, slot);
        }
        let Ok(id) = self.catalog.definitions().id(&operation.quota) else {
            let unknown = Refusal::Unknown(operation.quota);
            return self.settle(slot, Err(unknown));
        };
        if operation.action == Action::Free {
            return self.free(operation, id, slot, fx);
        }
        // Another of this request, under the same id, may have been carried out meanwhile.
        if let Some(found) = self.window.find(&operation, Some(id)) {
            return self.settle(slot, found);
        }
        let of_quota = self.quotas[&id].acquires.len() + self.quotas[&id].releases.len();
        if self.waiting >= self.config.waiting || of_quota >= self.config.waiting_per_quota {
            return self.settle(slot, Err(Refusal::Unavailable("too many operations are waiting for tokens".into())));
        }
        let lacking = lacking.unwrap_or(id);
        if let Some(key) = key {
            self.waiting_ids.insert(key, id);
        }
        self.waiting += 1;
        let offers = self.quotas[&lacking].offers;
        let quota = self.quotas.get_mut(&id).expect("a name leads to a quota");
        let queue = if operation.action == Action::Acquire { &mut quota.acquires } else { &mut quota.releases };
        let (action, amount) = (operation.action, operation.amount);
        queue.push_back(Waiting { operation, slots: vec![slot], lacking, offers, tries: 0, waited: 0 });
        self.need(id, action, amount);
        fx.count("quota.waited");
        self.maybe_redistribute(lacking, fx);
    }

    /// Has the catalog decide that tokens of quota `id` are freed.
    fn free(&mut self, operation: Operation, id: QuotaId, slot: Slot, fx: &mut Effects<Site>) {
        let Operation { quota: name, amount, id: key, .. } = operation;
        let asker = Asker::Operation { client: slot.client, index: slot.index, quota: id };
        self.with_catalog(fx, |catalog, out| catalog.propose(asker, Change::Free { quota: id, name, amount, id: key }, out));
    }

    /// A retry of an operation that waits is answered with it.
    fn attach(&mut self, id: QuotaId, operation: &Operation, slot: Slot) {
        let quota = self.quotas.get_mut(&id).expect("what waits, waits for a quota");
        work::add(quota.acquires.len() + quota.releases.len());
        let key = operation.id.as_ref();
        let mut waiting = quota.acquires.iter_mut().chain(quota.releases.iter_mut());
        let found = waiting.find(|waiting| waiting.key() == key).expect("its id is among those that wait");
        if found.operation != *operation {
            let reused = Refusal::IdReused(key.map(|key| format!("{key:?}")).unwrap_or_default());
            self.settle(slot, Err(reused));
        } else if found.slots.len() >= RETRIES_ATTACHED_MAX {
            self.settle(slot, Err(Refusal::Unavailable("this very operation is waiting for tokens".into())));
        } else {
            found.slots.push(slot);
        }
    }

    /// An operation waits for tokens of `id`, and so of all quotas above.
    fn need(&mut self, id: QuotaId, action: Action, amount: u64) {
        let chain = Arc::clone(&self.quotas[&id].chain);
        work::add(chain.len());
        let mut below = None;
        for link in chain.iter() {
            let needs = self.quotas.get_mut(link).expect("a chain is of quotas").needs_of(action);
            needs.amount += u128::from(amount);
            needs.below.extend(below.replace(*link));
        }
        self.active.extend(chain.iter());
    }

    /// It does so no more.
    fn need_no_more(&mut self, id: QuotaId, action: Action, amount: u64) {
        let chain = Arc::clone(&self.quotas[&id].chain);
        work::add(chain.len());
        let mut satisfied = None;
        for link in chain.iter() {
            let needs = self.quotas.get_mut(link).expect("a chain is of quotas").needs_of(action);
            needs.amount -= u128::from(amount);
            if let Some(below) = satisfied {
                needs.below.remove(&below);
            }
            satisfied = Some(*link).filter(|_| needs.amount == 0);
        }
    }

    /// An operation that waited in quota `id` has its outcome.
    pub(super) fn finish(&mut self, id: QuotaId, waiting: Waiting, result: Result<Done, Refusal>) {
        self.waiting -= 1;
        self.need_no_more(id, waiting.operation.action, waiting.operation.amount);
        if let Some(key) = waiting.key() {
            self.waiting_ids.remove(key);
        }
        for slot in waiting.slots {
            self.settle(slot, result.clone());
        }
    }

    /// An operation of a request has its outcome; with the last one, the request has its answer.
    pub(super) fn settle(&mut self, slot: Slot, result: Result<Done, Refusal>) {
        let running = self.running.get_mut(&slot.client).expect("a request is running until all is settled");
        let before = running.results[slot.index].replace(result);
        assert!(before.is_none(), "an operation has one outcome");
        running.open -= 1;
        if running.open == 0 {
            let running = self.running.remove(&slot.client).expect("it was just looked at");
            self.outcome.answers.push((slot.client, ran(running.results)));
        }
    }
}

fn ran(results: Vec<Option<Result<Done, Refusal>>>) -> Answer {
    Answer::Ran(results.into_iter().map(|result| result.expect("each operation has its outcome")).collect())
}
