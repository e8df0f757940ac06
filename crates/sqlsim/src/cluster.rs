//! A simulated cluster that serves SQL: the world of its database's protocol, that of the names of databases, the processes of its sites,
//! and whoever runs beside them, in steps of a millisecond.

use crate::executor::{Executor, Joined};
use crate::lane::Lane;
use crate::port::{Clocks, Port, VirtualSite};
use crate::protocol::Protocol;
use crate::sites::Sites;
use crate::time::VirtualTime;
use futures::future::select;
use rhumb_core::{Actor, Rng, SiteId, Span, Time, Topology};
use rhumb_replicated_commit as replicated_commit;
use rhumb_sim::{Config, SimError, World};
use rhumb_sql::catalog::keep_reclaiming;
use rhumb_sql::embedded::Embedded;
use rhumb_sql::environment::Environment;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The world goes on for so long between two turns of the sessions.
const STEP: Span = Span::from_millis(1);
/// How often sites look after rows of what was dropped.
const RECLAIM_EVERY: Duration = Duration::from_secs(4);

/// A cluster.
pub struct Cluster<A: Protocol> {
    /// The database's own world.
    pub lane: Lane<A>,
    /// Where the names of databases are, if that is another one. Nothing goes wrong there: it is its own scenario.
    names: Option<Lane<replicated_commit::Site>>,
    /// The processes.
    pub sites: Sites,
    /// The time.
    pub time: VirtualTime,
    clocks: Clocks,
    executor: Executor,
}

impl<A: Protocol> Cluster<A> {
    /// A cluster of the sites of `world`; that of names is made like `config` if databases of the protocol need one.
    pub fn new(world: World<A>, config: Config, shape: &crate::shape::Shape, rng: &mut Rng) -> Cluster<A> {
        let names = (A::NAME != replicated_commit::Site::NAME).then(|| {
            let seed = rng.below(u64::MAX);
            Lane::new(replicated_commit::Site::world(config, shape, seed, rng))
        });
        let clocks = Clocks::new(world.topology());
        let time = VirtualTime::new(rng.fork());
        let mut cluster = Cluster { lane: Lane::new(world), names, sites: Sites::default(), time, clocks, executor: Executor::default() };
        for site in cluster.lane.world.topology().sites() {
            let process = cluster.process(site);
            cluster.executor.spawn(process.run());
        }
        cluster
    }

    fn process(&self, site: SiteId) -> Process<A> {
        Process {
            site,
            sites: self.sites.clone(),
            own: Arc::clone(&self.lane.port),
            names: self.names.as_ref().map(|lane| Arc::clone(&lane.port)),
            clocks: self.clocks.clone(),
            time: self.time.clone(),
            topology: Arc::new(self.lane.world.topology().clone()),
        }
    }

    /// Runs `work` beside the sites.
    pub fn spawn<T: 'static>(&mut self, work: impl Future<Output = T> + 'static) -> Joined<T> {
        self.executor.spawn(work)
    }

    /// Lets all happen up to `end`, or until `done`.
    pub fn run_until(&mut self, end: Time, mut done: impl FnMut() -> bool) -> Result<(), SimError> {
        while self.time.now() < end && !done() {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), SimError> {
        let to = self.time.now() + STEP;
        self.lane.advance(to)?;
        if let Some(names) = &mut self.names {
            names.advance(to)?;
        }
        let world = &self.lane.world;
        for site in world.topology().sites() {
            self.clocks.set(site, world.clock(site));
            self.sites.set_incarnation(site, world.is_up(site).then(|| world.incarnation(site)));
        }
        self.time.advance(to);
        self.executor.run();
        Ok(())
    }
}

/// The process of a site, incarnation after incarnation.
struct Process<A: Actor> {
    site: SiteId,
    sites: Sites,
    own: Arc<Port<A>>,
    names: Option<Arc<Port<replicated_commit::Site>>>,
    clocks: Clocks,
    time: VirtualTime,
    topology: Arc<Topology>,
}

impl<A: Protocol> Process<A> {
    async fn run(self) {
        loop {
            let incarnation = self.sites.started(self.site).await;
            let own = A::gateway(self.reach(&self.own, incarnation));
            let names = match &self.names {
                None => Arc::clone(&own),
                // Sites of that world never crash: theirs is one incarnation.
                Some(names) => replicated_commit::Site::gateway(self.reach(names, 1)),
            };
            let gateways = A::gateways(own, names);
            let environment: Arc<dyn Environment> = Arc::new(self.time.clone());
            let embedded = Embedded::new(gateways.clone(), self.site, environment.clone()).expect("an engine needs nothing but memory");
            self.sites.serve(self.site, embedded);
            let reclaiming = keep_reclaiming(gateways, RECLAIM_EVERY, environment);
            select(pin!(reclaiming), pin!(self.sites.crashed(self.site, incarnation))).await;
        }
    }

    fn reach<B: Actor>(&self, port: &Arc<Port<B>>, incarnation: u64) -> VirtualSite<B> {
        VirtualSite {
            site: self.site,
            incarnation,
            port: Arc::clone(port),
            clocks: self.clocks.clone(),
            time: self.time.clone(),
            topology: Arc::clone(&self.topology),
        }
    }
}
