//! The quotas of a cluster of one site, in memory.
//!
//! What clients see is what the real ones show them: limits held over the whole hierarchy, operations done once by request
//! id, refusals. Simplified: nothing waits and nothing is moved between sites.

use async_trait::async_trait;
use rhumb_core::SiteId;
use rhumb_quota::gateway::Quotas;
use rhumb_quota::info::{Info, Read, SiteTokens};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, Done, Operation, RequestKey};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::{Spec, check_limit};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// Quotas in memory. Clones share them.
#[derive(Clone, Debug)]
pub struct LocalQuotas {
    shared: Arc<Mutex<Shared>>,
    /// Whether operations wait before they are done.
    held_up: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Shared {
    quotas: BTreeMap<Name, Quota>,
    answered: BTreeMap<RequestKey, (Operation, Done)>,
    refusals: VecDeque<Refusal>,
    operations: u64,
    asked: u64,
}

#[derive(Debug)]
struct Quota {
    spec: Spec,
    held: u64,
}

impl Quota {
    fn left(&self) -> u64 {
        self.spec.limit.saturating_sub(self.held)
    }
}

impl Default for LocalQuotas {
    fn default() -> LocalQuotas {
        LocalQuotas::new()
    }
}

impl LocalQuotas {
    /// No quotas yet.
    pub fn new() -> LocalQuotas {
        LocalQuotas { shared: Arc::default(), held_up: watch::Sender::new(false) }
    }

    /// Whether operations wait, from now on, until this is called again.
    pub fn hold_up(&self, held_up: bool) {
        self.held_up.send_replace(held_up);
    }

    /// The operations asked for so far, refused ones and repeated ones included.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// The requests that have come so far, those that are held up included.
    pub fn asked(&self) -> u64 {
        self.lock().asked
    }

    /// Tokens that clients hold of a quota.
    pub fn held(&self, name: &str) -> u64 {
        self.lock().quotas.get(name).map_or(0, |quota| quota.held)
    }

    /// Refuses the next operations, one for each refusal.
    pub fn refuse(&self, refusals: impl IntoIterator<Item = Refusal>) {
        self.lock().refusals.extend(refusals);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no test panics while it holds the lock")
    }
}

impl Shared {
    /// A quota and all above it, the lowest first.
    fn lineage(&self, name: &Name) -> Result<Vec<Name>, Refusal> {
        let mut lineage = Vec::new();
        let mut next = Some(name.clone());
        while let Some(name) = next {
            next = self.quotas.get(&name).ok_or_else(|| Refusal::Unknown(name.clone()))?.spec.parent.clone();
            lineage.push(name);
        }
        Ok(lineage)
    }

    fn run(&mut self, operation: Operation) -> Result<Done, Refusal> {
        self.operations += 1;
        if let Some(refusal) = self.refusals.pop_front() {
            return Err(refusal);
        }
        let answered = operation.id.as_ref().and_then(|id| self.answered.get(id).map(|answer| (id, answer)));
        if let Some((id, (before, done))) = answered {
            return if *before == operation { Ok(*done) } else { Err(Refusal::IdReused(format!("{id:?}"))) };
        }
        let lineage = self.lineage(&operation.quota)?;
        for name in &lineage {
            let quota = &self.quotas[name];
            let refusal = match operation.action {
                Action::Acquire if quota.left() < operation.amount => Refusal::Exceeded { quota: name.clone(), wanted: operation.amount },
                Action::Release | Action::Free if quota.held < operation.amount => {
                    Refusal::NotHeld { quota: name.clone(), amount: operation.amount }
                }
                _ => continue,
            };
            return Err(refusal);
        }
        for name in &lineage {
            let quota = self.quotas.get_mut(name).expect("it was found just now");
            match operation.action {
                Action::Acquire => quota.held += operation.amount,
                Action::Release | Action::Free => quota.held -= operation.amount,
            }
        }
        let done = Done { left: self.quotas[&operation.quota].left() };
        if let Some(id) = operation.id.clone() {
            self.answered.insert(id, (operation, done));
        }
        Ok(done)
    }

    fn info(&self, name: &Name, read: Read) -> Result<Info, Refusal> {
        let quota = self.quotas.get(name).ok_or_else(|| Refusal::Unknown(name.clone()))?;
        let tokens = SiteTokens {
            site: SiteId::new(0, 0),
            left: quota.left(),
            held: quota.held,
            offered: 0,
            owed: quota.held.saturating_sub(quota.spec.limit),
            freed: 0,
        };
        Ok(Info { name: name.clone(), spec: quota.spec.clone(), read, sites: vec![tokens], missing: Vec::new(), booked: 0 })
    }
}

#[async_trait]
impl Quotas for LocalQuotas {
    async fn run(&self, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>> {
        self.lock().asked += 1;
        let let_go = self.held_up.subscribe().wait_for(|held_up| !held_up).await.is_ok();
        assert!(let_go, "these quotas are there as long as they are asked");
        let mut shared = self.lock();
        operations.into_iter().map(|operation| shared.run(operation)).collect()
    }

    async fn create(&self, name: Name, spec: Spec) -> Result<(), Refusal> {
        spec.check()?;
        let mut shared = self.lock();
        if shared.quotas.contains_key(&name) {
            return Err(Refusal::Exists(name));
        }
        if let Some(parent) = &spec.parent {
            shared.lineage(parent)?;
        }
        shared.quotas.insert(name, Quota { spec, held: 0 });
        Ok(())
    }

    async fn set_limit(&self, name: Name, limit: u64) -> Result<(), Refusal> {
        check_limit(limit)?;
        let mut shared = self.lock();
        let quota = shared.quotas.get_mut(&name).ok_or(Refusal::Unknown(name))?;
        quota.spec.limit = limit;
        Ok(())
    }

    async fn drop(&self, name: Name) -> Result<(), Refusal> {
        let mut shared = self.lock();
        if shared.quotas.values().any(|quota| quota.spec.parent.as_ref() == Some(&name)) {
            return Err(Refusal::HasChildren(name));
        }
        shared.quotas.remove(&name).map(|_| ()).ok_or(Refusal::Unknown(name))
    }

    async fn declare_lost(&self, _: SiteId) -> Result<(), Refusal> {
        Err(Refusal::Invalid("there is one site, and it cannot be lost".into()))
    }

    async fn lost(&self) -> Result<(Vec<SiteId>, usize), Refusal> {
        Ok((Vec::new(), 0))
    }

    async fn get(&self, name: Name, read: Read) -> Result<Info, Refusal> {
        self.lock().info(&name, read)
    }

    async fn list(&self) -> Result<Vec<Info>, Refusal> {
        let shared = self.lock();
        shared.quotas.keys().map(|name| shared.info(name, Read::Local)).collect()
    }
}
