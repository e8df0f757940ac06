//! What the roles of a site share, and all that a role may touch besides its own state: the time, the configuration, the rules, whether
//! the site is awake, and the effects of the step.

use super::agreement::Pulled;
use super::config::Config;
use super::epoch::Epoch;
use super::planted::Planted;
use super::stream_id::{self, StreamId};
use crate::Site;
use derive_more::{Deref, DerefMut};
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::actor::Token;
use rhumb_core::{Ballot, Effects, Jobs, Load, Rules, SiteId, Time, Topology};
use std::sync::Arc;

/// What a load or a persist is for. Roles keep what they do with it under its token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    /// A part of what earlier incarnations left.
    Recover,
    /// Entries of a stream are durable here, that leader's up to a place.
    Held { id: StreamId, ballot: Ballot, upto: u64 },
    /// Entries of a stream that another site misses.
    Pulled { id: StreamId, pulled: Pulled },
    /// Rows of a transaction.
    Run,
    /// Rows of a transaction that is answered before its place is known, as only a broken rule has it.
    Early,
    /// Rows of a read.
    Read,
}

/// What the roles of a site share.
pub(super) struct Shared {
    pub(super) me: SiteId,
    pub(super) topology: Arc<Topology>,
    pub(super) config: Config,
    pub(super) rules: Rules<Planted>,
    /// This site's clock at the present step.
    pub(super) now: Time,
    /// Ends of epochs in this incarnation.
    pub(super) ticks: u64,
    /// The highest epoch that another coordinator has sealed.
    heard: Epoch,
    /// The tick until which the site is not quiet.
    awake_until: u64,
    pub(super) jobs: Jobs<Job>,
}

/// What a role may touch in a step.
#[derive(Deref, DerefMut)]
pub(super) struct Context<'a> {
    #[deref(forward)]
    #[deref_mut(forward)]
    pub(super) shared: &'a mut Shared,
    pub(super) fx: &'a mut Effects<Site>,
}

impl Context<'_> {
    /// Loads something from disk.
    pub(super) fn load(&mut self, job: Job, load: Load) -> Token {
        let token = self.jobs.begin(job);
        self.fx.load(token, load);
        token
    }
}

impl Shared {
    /// What the site `me` shares before its first step.
    pub(super) fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Shared {
        Shared {
            me,
            topology,
            config,
            rules: Rules::HOLD,
            now: Time::ZERO,
            ticks: 0,
            heard: Epoch::NONE,
            awake_until: 0,
            jobs: Jobs::default(),
        }
    }

    /// All streams.
    pub(super) fn streams(&self) -> impl Iterator<Item = StreamId> + use<> {
        stream_id::all(&self.topology, self.config.coordinators)
    }

    /// The streams of this region that belong to other coordinators.
    pub(super) fn streams_of_others(&self) -> impl Iterator<Item = StreamId> + use<> {
        let own = self.own();
        self.streams().filter(move |id| id.region() == own.region() && *id != own)
    }

    /// This site's own stream; that which it stands by for if it has none.
    pub(super) fn own(&self) -> StreamId {
        StreamId::new(self.me.region, self.me.shard % self.config.coordinators)
    }

    /// The stream of this region that a transaction belongs to.
    pub(super) fn stream_of(&self, transaction: &Transaction) -> StreamId {
        StreamId::new(self.me.region, stream_id::coordinator_of(transaction, self.config.coordinators))
    }

    /// All sites but this one.
    pub(super) fn others(&self) -> impl Iterator<Item = SiteId> + use<> {
        self.topology.others(self.me)
    }

    /// The last epoch that has ended by this site's clock.
    pub(super) fn ended(&self) -> Epoch {
        Epoch::ended_by(self.now, self.config.epoch)
    }

    /// The highest epoch that another coordinator has sealed.
    pub(super) fn heard(&self) -> Epoch {
        self.heard
    }

    /// Another coordinator has sealed `epoch`.
    pub(super) fn hear_of(&mut self, epoch: Epoch) {
        self.heard = self.heard.max(epoch);
    }

    /// Something was asked or told: this site is not quiet for a while.
    pub(super) fn stay_awake(&mut self) {
        self.awake_until = self.ticks.saturating_add(self.config.linger_epochs);
    }

    /// True if something was asked or told lately.
    pub(super) fn is_awake(&self) -> bool {
        self.ticks < self.awake_until
    }
}
