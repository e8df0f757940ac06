//! What is known of a site and its peers: is it ready, whom does it hear, how far away are they.

use crate::clock::Clock;
use crate::failure::Failure;
use crate::metrics::vitals::Said;
use crate::metrics::{CommitMetrics, EpochMetrics, Metrics, QuadMetrics};
use crate::runtime::Common;
use crate::transport::{Fault, Peer, Transport};
use rhumb_commit::placement::{Coordinators, Placement};
use rhumb_commit::transaction::{RegionStatus, Role, TxnError};
use rhumb_config::Setup;
use rhumb_core::{RegionId, SiteId, Span, Time};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A peer not heard for so long is not counted as reachable. Three pings.
pub const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// What is known of a site and its peers.
pub struct Status {
    setup: Arc<Setup>,
    placement: Mutex<Placement>,
    transport: Arc<Transport>,
    clock: Clock,
    recovering: watch::Sender<usize>,
    failure: Failure,
    stopping: AtomicBool,
    metrics: Arc<Metrics>,
}

impl Status {
    pub(crate) fn new(setup: Arc<Setup>, common: &Common, metrics: Arc<Metrics>) -> Status {
        Status {
            placement: Mutex::new(setup.placement.clone()),
            setup,
            transport: Arc::clone(&common.transport),
            clock: common.clock.clone(),
            recovering: common.recovering.clone(),
            failure: common.failure.clone(),
            stopping: AtomicBool::new(false),
            metrics,
        }
    }

    /// What the site was configured to be.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The same, to keep.
    pub(crate) fn shared_setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup)
    }

    /// Where clients of this process count what became of their transactions of Catenae.
    pub(crate) fn epochs(&self) -> &EpochMetrics {
        &self.metrics.epochs
    }

    /// Likewise of QuAD.
    pub(crate) fn quad(&self) -> &QuadMetrics {
        &self.metrics.quad
    }

    /// An error that a site has told of, with the names of sites.
    pub(crate) fn told(&self, error: TxnError) -> TxnError {
        error.reworded(|reason| reason.named(|site| self.setup.name(site)).into())
    }

    pub(crate) fn names(&self) -> BTreeMap<SiteId, String> {
        self.setup.topology.sites().map(|site| (site, self.setup.name(site))).collect()
    }

    /// Where clients of this process count their commits.
    pub(crate) fn commits(&self) -> &CommitMetrics {
        &self.metrics.commits
    }

    /// The placement as the site last said it: that of the configuration until it has said any.
    pub fn placement(&self) -> Placement {
        self.placement.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The site says which placement it has adopted.
    pub(crate) fn saw_placement(&self, placement: &Placement) {
        let mut seen = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
        if placement.epoch > seen.epoch {
            *seen = placement.clone();
        }
    }

    /// What the site's clock shows: microseconds since the Unix epoch.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// All metrics as text.
    pub fn metrics(&self) -> String {
        self.metrics.render()
    }

    /// Has the metrics show what the actors say now.
    pub(crate) fn show_vitals(&self, said: Said) {
        self.metrics.vitals.show(said, self.now());
    }

    /// What ends the site, if something does.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// From now on the site is not ready: it stops.
    pub(crate) fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// True once it was told to.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Why the site cannot serve anybody until its clock is set right, if so.
    pub fn clock_contradicted(&self) -> Option<String> {
        self.transport.clocks().contradicted()
    }

    /// Waits until every service has recovered what earlier incarnations left on disk.
    pub async fn recovered(&self) {
        // Cannot fail: this status holds the sender.
        let _ = self.recovering.subscribe().wait_for(|services| *services == 0).await;
    }

    /// True once they have.
    pub fn is_recovered(&self) -> bool {
        *self.recovering.borrow() == 0
    }

    /// All peers, in the order of the cluster.
    pub fn peers(&self) -> Vec<Peer> {
        self.transport.peers()
    }

    /// Cuts, slows or heals the link to `peer`. False if there is no such peer.
    pub fn fault(&self, peer: SiteId, fault: Fault) -> bool {
        self.transport.fault(peer, fault)
    }

    /// Ready to serve clients: recovered, and in touch with a majority of active regions. Otherwise says why not.
    pub fn ready(&self) -> Result<(), String> {
        if let Some(reason) = self.failure.reason() {
            return Err(reason);
        }
        if self.is_stopping() {
            return Err("the site is stopping".to_owned());
        }
        if let Some(reason) = self.transport.clocks().waits() {
            return Err(reason);
        }
        if !self.is_recovered() {
            return Err("the site is recovering what is on its disk".to_owned());
        }
        let topology = &self.setup.topology;
        let voters = self.placement().voters;
        let peers = self.peers();
        let heard: Vec<&str> =
            voters.iter().filter(|&region| self.reachable(region, &peers) > 0).map(|region| topology.name(region)).collect();
        let (count, all, majority) = (heard.len(), voters.len(), voters.majority());
        if count >= majority {
            return Ok(());
        }
        let active = if all < topology.region_count() { "active " } else { "" };
        let names = if heard.is_empty() { String::new() } else { format!(" ({})", heard.join(", ")) };
        Err(format!("only {count} of {all} {active}regions can be heard{names}; a majority is {majority}"))
    }

    /// All regions, in the order of the cluster, as this site sees them.
    pub fn regions(&self) -> Vec<RegionStatus> {
        let peers = self.peers();
        let topology = &self.setup.topology;
        let status = |region: RegionId| RegionStatus {
            name: topology.name(region).to_owned(),
            local: region == self.setup.site.region,
            sites: u32::from(topology.shard_count()),
            reachable: self.reachable(region, &peers),
            rtt: self.rtt(region, &peers),
            floor: self.floor(region, &peers),
            role: self.role(region),
            reads_at: self.coordinators(region).map(|named| topology.name(named.read).to_owned()),
            commits_at: self.coordinators(region).map(|named| topology.name(named.commit).to_owned()),
        };
        topology.regions().map(status).collect()
    }

    fn role(&self, region: RegionId) -> Role {
        let Placement { voters, passives, .. } = self.placement();
        if voters.contains(region) {
            Role::Active
        } else if passives.contains(region) {
            Role::Passive
        } else {
            Role::None
        }
    }

    fn coordinators(&self, region: RegionId) -> Option<Coordinators> {
        self.placement().coordinators.get(&region).copied()
    }

    /// The number of sites of `region` heard lately and not for nothing, this one among them: messages of one whose clock is far off are
    /// refused, here or there.
    fn reachable(&self, region: RegionId, peers: &[Peer]) -> u32 {
        let is_heard =
            |peer: &&Peer| peer.heard.is_some_and(|silence| silence < HEARD_WITHIN) && !peer.clock.is_some_and(|clock| clock.apart);
        let heard = peers.iter().filter(|peer| peer.site.region == region).filter(is_heard);
        heard.count() as u32 + u32::from(region == self.setup.site.region)
    }

    /// The measured round trip to the nearest site of `region`; none within this site's own.
    fn rtt(&self, region: RegionId, peers: &[Peer]) -> Option<Span> {
        if region == self.setup.site.region {
            return Some(Span::ZERO);
        }
        peers.iter().filter(|peer| peer.site.region == region).filter_map(|peer| peer.rtt).min()
    }

    /// The floor of a commit in `region`: from the emulated network's matrix; without one only this site's own is
    /// known, by measurement.
    fn floor(&self, region: RegionId, peers: &[Peer]) -> Option<Span> {
        let voters = self.placement().voters;
        if let Some(wan) = &self.setup.wan {
            return wan.matrix.floor_among(region, voters.iter());
        }
        if region != self.setup.site.region {
            return None;
        }
        let mut trips: Vec<Span> = voters.iter().filter_map(|voter| self.rtt(voter, peers)).collect();
        trips.sort_unstable();
        trips.get(voters.majority() - 1).copied()
    }
}
