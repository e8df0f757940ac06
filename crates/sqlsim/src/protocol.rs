//! The commit protocols under which databases are simulated: how each one's world is made, reached and judged.

use crate::port::VirtualSite;
use crate::shape::Shape;
use rhumb_catenae as catenae;
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::Gateway;
use rhumb_core::{Actor, Rng, SiteId, Span};
use rhumb_quad as quad;
use rhumb_quad::quorums::Policy;
use rhumb_replicated_commit as replicated_commit;
use rhumb_sim::history::Mode;
use rhumb_sim::{Config, FaultRates, World};
use rhumb_sql::Gateways;
use std::sync::Arc;

/// How far clocks are off at the most where epochs follow them.
const EPOCH_SKEW: Span = Span::from_millis(50);
/// Where versions are collected: those superseded for so long.
const KEEP_VERSIONS: Span = Span::from_secs(14);
/// Where versions are collected: what is forgotten after so long.
const FORGET_AFTER: Span = Span::from_secs(9);

/// A commit protocol.
pub trait Protocol: Actor<Request: Send + 'static, Answer: Send + 'static> + 'static {
    /// Its name in `CREATE DATABASE`.
    const NAME: &'static str;
    /// Bytes that a transaction may write, roughly.
    const WRITES_BYTES_MAX: u64;
    /// How a statement that only reads stands in the history: at the timestamp that it is told, or wherever its locks have put it.
    const READS: Mode;

    /// A world of its actors.
    fn world(config: Config, shape: &Shape, seed: u64, rng: &mut Rng) -> World<Self>;

    /// The gateway of a site.
    fn gateway(site: VirtualSite<Self>) -> Arc<dyn Gateway>;

    /// The gateways of a site, `names` that of Replicated Commit.
    fn gateways(own: Arc<dyn Gateway>, names: Arc<dyn Gateway>) -> Gateways;

    /// What goes wrong.
    fn rates(shape: &Shape) -> FaultRates {
        shape.rates()
    }

    /// Once all is healed and quiet, nothing is left undecided.
    fn at_rest(world: &World<Self>) -> Result<(), String>;
}

impl Protocol for replicated_commit::Site {
    const NAME: &'static str = "replicated_commit";
    const WRITES_BYTES_MAX: u64 = 12 << 20;
    const READS: Mode = Mode::ReadOnly;

    fn world(config: Config, shape: &Shape, seed: u64, _: &mut Rng) -> World<Self> {
        let topology = Arc::new(config.topology.clone());
        let placement = Placement::everywhere(topology.region_count());
        let mut protocol = replicated_commit::Config::default();
        if shape.collects {
            protocol.keep_versions = KEEP_VERSIONS;
            protocol.forget_after = FORGET_AFTER;
        }
        World::new(config, seed, move |site, _| {
            replicated_commit::Site::new(site, Arc::clone(&topology), placement.clone(), protocol.clone())
        })
    }

    fn gateway(site: VirtualSite<Self>) -> Arc<dyn Gateway> {
        Arc::new(rhumb_node::gateway::interactive::Gateway::over(site))
    }

    fn gateways(own: Arc<dyn Gateway>, _: Arc<dyn Gateway>) -> Gateways {
        Gateways { replicated_commit: own, catenae: None, quad: None, epochs: None, quorums: None }
    }

    fn at_rest(world: &World<Self>) -> Result<(), String> {
        each(world, |site: &Self| match site.status() {
            status if !status.settled => Err(format!("has not settled in {}", status.placement)),
            status if status.prepared > 0 => Err(format!("is still prepared for {} attempts", status.prepared)),
            _ => Ok(()),
        })
    }
}

impl Protocol for catenae::Site {
    const NAME: &'static str = "catenae";
    const WRITES_BYTES_MAX: u64 = 2 << 20;
    const READS: Mode = Mode::ReadOnly;

    fn world(config: Config, shape: &Shape, seed: u64, _: &mut Rng) -> World<Self> {
        let topology = Arc::new(config.topology.clone());
        let epoch = Span::from_millis(20);
        let epochs = |span: Span| span.as_micros() / epoch.as_micros();
        let mut protocol = catenae::Config {
            epoch,
            window_epochs: epochs(Span::from_millis(960)),
            tolerance_epochs: epochs(Span::from_millis(960)),
            ahead_epochs: epochs(Span::from_millis(1_600)),
            deadline_epochs: epochs(Span::from_secs(5)),
            ..catenae::Config::default()
        };
        if shape.collects {
            protocol.keep_epochs = epochs(KEEP_VERSIONS);
        }
        World::new(config, seed, move |site, _| catenae::Site::new(site, Arc::clone(&topology), protocol.clone()))
    }

    fn gateway(site: VirtualSite<Self>) -> Arc<dyn Gateway> {
        Arc::new(rhumb_node::gateway::catenae::Gateway::over(site))
    }

    fn gateways(own: Arc<dyn Gateway>, names: Arc<dyn Gateway>) -> Gateways {
        Gateways { replicated_commit: names, catenae: Some(own), quad: None, epochs: None, quorums: None }
    }

    fn rates(shape: &Shape) -> FaultRates {
        FaultRates { skew_max: EPOCH_SKEW, ..shape.rates() }
    }

    fn at_rest(world: &World<Self>) -> Result<(), String> {
        each(world, |site: &Self| match site.status().unsettled {
            0 => Ok(()),
            left => Err(format!("has not settled {left} transactions")),
        })
    }
}

impl Protocol for quad::Site {
    const NAME: &'static str = "quad";
    const WRITES_BYTES_MAX: u64 = 12 << 20;
    const READS: Mode = Mode::ReadWrite;

    fn world(config: Config, _: &Shape, seed: u64, rng: &mut Rng) -> World<Self> {
        let sites: Vec<SiteId> = config.topology.sites().collect();
        let cores = rng.between(1, 3) as usize;
        let quorums = rhumb_sim::quad::quorums(&config, sites, Policy::Quad, cores, rng);
        World::new(config, seed, move |site, _| quad::Site::new(site, quorums.clone(), quad::Config::default()))
    }

    fn gateway(site: VirtualSite<Self>) -> Arc<dyn Gateway> {
        Arc::new(rhumb_node::gateway::interactive::Gateway::over(site))
    }

    fn gateways(own: Arc<dyn Gateway>, names: Arc<dyn Gateway>) -> Gateways {
        Gateways { replicated_commit: names, catenae: None, quad: Some(own), epochs: None, quorums: None }
    }

    fn at_rest(world: &World<Self>) -> Result<(), String> {
        each(world, |site: &Self| match site.unresolved() {
            0 => Ok(()),
            left => Err(format!("has {left} unresolved transactions")),
        })
    }
}

/// Every site is up, and well.
fn each<A: Actor>(world: &World<A>, well: impl Fn(&A) -> Result<(), String>) -> Result<(), String> {
    world.topology().sites().try_for_each(|site| match world.actor(site) {
        None => Err(format!("{site} is down at the end")),
        Some(actor) => well(actor).map_err(|what| format!("{site} {what} at the end")),
    })
}
