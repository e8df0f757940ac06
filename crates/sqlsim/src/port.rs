//! The way from the gateways of simulated sites to their actors.

use crate::time::VirtualTime;
use futures::channel::oneshot;
use rhumb_commit::transaction::{RegionStatus, Role};
use rhumb_core::actor::RequestId;
use rhumb_core::{Actor, RegionId, SiteId, Span, Time, Topology};
use rhumb_node::gateway::reach::Reach;
use rhumb_node::runtime::{Rejected, Undo};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The requests of all sites to the actors of one world. A session asks one thing at a time, so there are no more of them than sessions,
/// but for what dropped transactions tell.
pub struct Port<A: Actor>(Mutex<Queue<A>>);

struct Queue<A: Actor> {
    /// Not yet handed to the world.
    asked: Vec<Asked<A>>,
    waiting: BTreeMap<RequestId, oneshot::Sender<A::Answer>>,
}

/// A request.
pub struct Asked<A: Actor> {
    /// Of which site.
    pub site: SiteId,
    /// In which of its incarnations it was asked.
    pub incarnation: u64,
    /// What.
    pub request: A::Request,
    reply: Option<oneshot::Sender<A::Answer>>,
}

impl<A: Actor> Default for Port<A> {
    fn default() -> Port<A> {
        Port(Mutex::new(Queue { asked: Vec::new(), waiting: BTreeMap::new() }))
    }
}

impl<A: Actor> Port<A> {
    fn lock(&self) -> MutexGuard<'_, Queue<A>> {
        self.0.lock().expect("nothing panics while it holds the queue")
    }

    /// What was asked since the last call, in order.
    pub fn take(&self) -> Vec<Asked<A>> {
        std::mem::take(&mut self.lock().asked)
    }

    /// The world calls the request so, whose answer `asked` waits for.
    pub fn sent(&self, id: RequestId, reply: Option<oneshot::Sender<A::Answer>>) {
        if let Some(reply) = reply {
            self.lock().waiting.insert(id, reply);
        }
    }

    /// A request has its answer, or none, because its site has crashed.
    pub fn answer(&self, id: RequestId, answer: Option<A::Answer>) {
        let waiting = self.lock().waiting.remove(&id);
        if let (Some(waiting), Some(answer)) = (waiting, answer) {
            // Who asked may have gone.
            let _ = waiting.send(answer);
        }
    }
}

impl<A: Actor> Asked<A> {
    /// The request, and who waits for its answer.
    pub fn split(self) -> (A::Request, Option<oneshot::Sender<A::Answer>>) {
        (self.request, self.reply)
    }
}

/// What the clocks of all sites show, as of the last step of the world.
#[derive(Clone)]
pub struct Clocks(Arc<BTreeMap<SiteId, AtomicU64>>);

impl Clocks {
    /// All at zero.
    pub fn new(topology: &Topology) -> Clocks {
        Clocks(Arc::new(topology.sites().map(|site| (site, AtomicU64::new(0))).collect()))
    }

    /// The clock of `site` shows `now`.
    pub fn set(&self, site: SiteId, now: Time) {
        self.0[&site].store(now.as_micros(), Ordering::Relaxed);
    }

    fn read(&self, site: SiteId) -> Time {
        Time::from_micros(self.0[&site].load(Ordering::Relaxed))
    }
}

/// One incarnation of a simulated site, as its gateway reaches it.
pub struct VirtualSite<A: Actor> {
    /// Which site.
    pub site: SiteId,
    /// Which of its incarnations.
    pub incarnation: u64,
    /// The way to its actor.
    pub port: Arc<Port<A>>,
    /// Its clock among others.
    pub clocks: Clocks,
    /// What it waits by.
    pub time: VirtualTime,
    /// The cluster.
    pub topology: Arc<Topology>,
}

impl<A: Actor> Clone for VirtualSite<A> {
    fn clone(&self) -> VirtualSite<A> {
        let VirtualSite { site, incarnation, .. } = *self;
        let (port, topology) = (Arc::clone(&self.port), Arc::clone(&self.topology));
        VirtualSite { site, incarnation, port, clocks: self.clocks.clone(), time: self.time.clone(), topology }
    }
}

impl<A> Reach<A> for VirtualSite<A>
where
    A: Actor<Request: Send, Answer: Send> + 'static,
{
    async fn ask(&self, request: A::Request) -> Result<A::Answer, Rejected> {
        let (reply, answer) = oneshot::channel();
        self.port.lock().asked.push(Asked { site: self.site, incarnation: self.incarnation, request, reply: Some(reply) });
        answer.await.map_err(|_| Rejected::Stopped)
    }

    /// A client here waits for its answer, unless its site crashes.
    async fn begin(&self, request: A::Request, _undo: Undo<A>) -> Result<A::Answer, Rejected> {
        self.ask(request).await
    }

    fn end(&self, request: A::Request) {
        self.port.lock().asked.push(Asked { site: self.site, incarnation: self.incarnation, request, reply: None });
    }

    fn now(&self) -> Time {
        self.clocks.read(self.site)
    }

    async fn sleep(&self, span: Span) {
        self.time.sleep(span).await;
    }

    fn regions(&self) -> Vec<RegionStatus> {
        let region = |region: RegionId| RegionStatus {
            name: self.region_name(region),
            local: region == self.site.region,
            sites: u32::from(self.topology.shard_count()),
            reachable: u32::from(self.topology.shard_count()),
            rtt: None,
            floor: None,
            role: Role::Active,
            reads_at: None,
            commits_at: None,
        };
        self.topology.regions().map(region).collect()
    }

    fn region_name(&self, region: RegionId) -> String {
        self.topology.name(region).to_owned()
    }

    fn site_names(&self) -> BTreeMap<SiteId, String> {
        self.topology.sites().map(|site| (site, site.to_string())).collect()
    }
}
