//! A cluster in which nothing happens but one commit at a time: what a placement costs, measured.

use super::parameters::SETTLING;
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::{Key, RegionId, RttMatrix, SiteId, Span, Value};
use rhumb_replicated_commit::{Answer, Config as SiteConfig, Request, Site};
use rhumb_sim::{Config, SimError, World};
use std::sync::Arc;

/// Between two commits: all that the first one leaves behind is done.
const REST: Span = Span::from_secs(2);
/// Longer than any commit here takes.
const ANSWERED_WITHIN: Span = Span::from_secs(5);

/// The cluster.
pub struct Idle {
    world: World<Site>,
}

impl Idle {
    /// A cluster of `rtt` and `placement`.
    pub fn new(rtt: RttMatrix, placement: Placement, seed: u64) -> Result<Idle, SimError> {
        let config = Config::new(rtt, 1);
        let topology = Arc::new(config.topology.clone());
        let factory = move |site, _incarnation| Site::new(site, Arc::clone(&topology), placement.clone(), SiteConfig::default());
        let mut world = World::new(config, seed, factory);
        world.run_for(SETTLING)?;
        Ok(Idle { world })
    }

    /// How long a transaction of one write takes at the gateway of `region` to commit.
    pub fn commit(&mut self, region: RegionId, options: CommitOptions) -> Result<Span, SimError> {
        self.world.run_for(REST)?;
        let Answer::Began { txn } = self.ask(region, Request::Begin { mode: ReadMode::Optimistic })? else {
            unreachable!("a gateway with nothing to do begins a transaction")
        };
        let asked = self.world.now();
        let writes = vec![(Key::from("key"), Some(Value::from("value")))];
        let answer = self.ask(region, Request::Commit { txn, writes, expect: Vec::new(), options })?;
        assert!(matches!(answer, Answer::Committed(_)), "nobody is in the way, but: {answer:?}");
        Ok(self.world.now().since(asked))
    }

    fn ask(&mut self, region: RegionId, request: Request) -> Result<Answer, SimError> {
        self.world.submit(SiteId { region, shard: 0 }, request);
        self.world.run_until_reply(self.world.now() + ANSWERED_WITHIN)?;
        let reply = self.world.take_replies().pop().and_then(|reply| reply.answer);
        Ok(reply.expect("nothing goes wrong, so a gateway answers"))
    }
}
