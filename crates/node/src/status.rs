//! What is known of a site and its peers: is it ready, whom does it hear, how far away are they.

use crate::config::Setup;
use crate::metrics::Metrics;
use crate::runtime::{Clock, Common, Failure};
use crate::transport::{Fault, Peer, Transport};
use crate::vitals::Vitals;
use rhumb_commit::transaction::RegionStatus;
use rhumb_core::{RegionId, SiteId, Span, Time};
use rhumb_quota::request::Status as QuotaVitals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// A peer not heard for so long is not counted as reachable. Three pings.
pub const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// What is known of a site and its peers.
pub struct Status {
    setup: Arc<Setup>,
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
            setup,
            transport: Arc::clone(&common.transport),
            clock: common.clock,
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

    /// What the site's clock shows: microseconds since the Unix epoch.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// All metrics as text.
    pub fn metrics(&self) -> String {
        self.metrics.render()
    }

    /// Has the metrics show what the actors say now.
    pub(crate) fn show_vitals(&self, commits: Option<Vitals>, quotas: Option<QuotaVitals>) {
        self.metrics.vitals.show(commits, quotas, self.now());
    }

    /// What ends the site, if something does.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// From now on the site is not ready: it stops.
    pub(crate) fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Waits until every service has recovered what its lives before left on disk.
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

    /// Ready to serve clients: recovered, and in touch with a majority of regions. Otherwise says why not.
    pub fn ready(&self) -> Result<(), String> {
        if let Some(reason) = self.failure.reason() {
            return Err(reason);
        }
        if self.stopping.load(Ordering::Relaxed) {
            return Err("the site is stopping".to_owned());
        }
        if !self.is_recovered() {
            return Err("the site is recovering what is on its disk".to_owned());
        }
        let topology = &self.setup.topology;
        let peers = self.peers();
        let heard: Vec<&str> =
            topology.regions().filter(|&region| self.reachable(region, &peers) > 0).map(|region| topology.name(region)).collect();
        if heard.len() < topology.majority() {
            return Err(format!(
                "only {} of {} regions can be heard ({}); a majority is {}",
                heard.len(),
                topology.region_count(),
                heard.join(", "),
                topology.majority()
            ));
        }
        Ok(())
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
        };
        topology.regions().map(status).collect()
    }

    /// The number of sites of `region` heard lately, this one among them.
    fn reachable(&self, region: RegionId, peers: &[Peer]) -> u32 {
        let heard = peers.iter().filter(|peer| peer.site.region == region && peer.heard.is_some_and(|silence| silence < HEARD_WITHIN));
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
        if let Some(wan) = &self.setup.wan {
            return Some(wan.matrix.floor(region));
        }
        if region != self.setup.site.region {
            return None;
        }
        let mut trips: Vec<Span> = self.setup.topology.regions().filter_map(|other| self.rtt(other, peers)).collect();
        trips.sort_unstable();
        trips.get(self.setup.topology.majority() - 1).copied()
    }
}
