//! The processes of simulated sites: which incarnation each is in, and where its sessions begin.

use rhumb_core::SiteId;
use rhumb_sql::embedded::Embedded;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// All sites. Clones share them.
#[derive(Clone, Default)]
pub struct Sites(Rc<RefCell<BTreeMap<SiteId, Process>>>);

#[derive(Default)]
struct Process {
    /// Its incarnation, if it is up.
    incarnation: Option<u64>,
    /// Where its sessions begin, once it serves any.
    serves: Option<Embedded>,
    /// Who waits for its next start or crash.
    waiting: Vec<Waker>,
}

impl Sites {
    /// `site` is in this incarnation now, or is down. Sessions of another incarnation end.
    pub fn set_incarnation(&self, site: SiteId, incarnation: Option<u64>) {
        let waiting = {
            let mut processes = self.0.borrow_mut();
            let process = processes.entry(site).or_default();
            if process.incarnation == incarnation {
                return;
            }
            (process.incarnation, process.serves) = (incarnation, None);
            std::mem::take(&mut process.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The sessions of this incarnation of `site` begin at `embedded`.
    pub fn serve(&self, site: SiteId, embedded: Embedded) {
        self.0.borrow_mut().entry(site).or_default().serves = Some(embedded);
    }

    /// The incarnation that `site` is in and where its sessions begin, if it serves any.
    pub fn serving(&self, site: SiteId) -> Option<(u64, Embedded)> {
        let processes = self.0.borrow();
        let process = processes.get(&site)?;
        Some((process.incarnation?, process.serves.clone()?))
    }

    /// Waits until `site` is up; the incarnation that it is in.
    pub async fn started(&self, site: SiteId) -> u64 {
        self.wait(site, |incarnation| incarnation).await
    }

    /// Waits until `incarnation` of `site` is over.
    pub async fn crashed(&self, site: SiteId, incarnation: u64) {
        self.wait(site, |now| (now != Some(incarnation)).then_some(())).await;
    }

    async fn wait<T>(&self, site: SiteId, found: impl Fn(Option<u64>) -> Option<T>) -> T {
        std::future::poll_fn(|context| {
            let mut processes = self.0.borrow_mut();
            let process = processes.entry(site).or_default();
            match found(process.incarnation) {
                Some(found) => Poll::Ready(found),
                None => {
                    if !process.waiting.iter().any(|waiting| waiting.will_wake(context.waker())) {
                        process.waiting.push(context.waker().clone());
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }
}
