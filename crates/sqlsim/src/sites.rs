//! The processes of simulated sites: which life each is in, and where its sessions begin.

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
    /// Its life, if it is up.
    life: Option<u64>,
    /// Where its sessions begin, once it serves any.
    serves: Option<Embedded>,
    /// Who waits for its next start or crash.
    waiting: Vec<Waker>,
}

impl Sites {
    /// `site` is in this life now, or is down. Sessions of another life end.
    pub fn set_life(&self, site: SiteId, life: Option<u64>) {
        let waiting = {
            let mut processes = self.0.borrow_mut();
            let process = processes.entry(site).or_default();
            if process.life == life {
                return;
            }
            (process.life, process.serves) = (life, None);
            std::mem::take(&mut process.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The sessions of this life of `site` begin at `embedded`.
    pub fn serve(&self, site: SiteId, embedded: Embedded) {
        self.0.borrow_mut().entry(site).or_default().serves = Some(embedded);
    }

    /// The life that `site` is in and where its sessions begin, if it serves any.
    pub fn serving(&self, site: SiteId) -> Option<(u64, Embedded)> {
        let processes = self.0.borrow();
        let process = processes.get(&site)?;
        Some((process.life?, process.serves.clone()?))
    }

    /// Waits until `site` is up; the life that it is in.
    pub async fn started(&self, site: SiteId) -> u64 {
        self.wait(site, |life| life).await
    }

    /// Waits until `life` of `site` is over.
    pub async fn crashed(&self, site: SiteId, life: u64) {
        self.wait(site, |now| (now != Some(life)).then_some(())).await;
    }

    async fn wait<T>(&self, site: SiteId, found: impl Fn(Option<u64>) -> Option<T>) -> T {
        std::future::poll_fn(|context| {
            let mut processes = self.0.borrow_mut();
            let process = processes.entry(site).or_default();
            match found(process.life) {
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
