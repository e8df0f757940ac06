//! What the roles of a site share, and all that a role may touch besides its own state.

use crate::Site;
use crate::config::{CLOCK_LEAD, Config};
use crate::message::{Cursor, Note};
use crate::planted::Planted;
use crate::records;
use derive_more::{Deref, DerefMut};
use rhumb_commit::clock_lease::ClockLease;
use rhumb_core::{Batch, Effects, Jobs, Rules, SiteId, Time, Timestamp, Topology, TxnId};
use std::sync::Arc;

/// What a load or a persist is for.
#[derive(Debug)]
pub(crate) enum Job {
    /// What earlier incarnations have left, a page of it.
    Recover,
    /// A bound of the clock is durable.
    ClockBound(Timestamp),
    /// Rows that a transaction has locked.
    Locked { txn: TxnId, number: u64, instance: u64 },
    /// Versions that a transaction depends on.
    Expected { txn: TxnId, instance: u64 },
    /// Rows of a snapshot.
    Snapshot { to: SiteId, txn: TxnId, number: u64, at: Timestamp, strict: bool },
    /// Rows of a state that is transferred.
    Page { to: SiteId, transfer: u64, cursor: Cursor },
}

/// What the roles of a site share.
pub(crate) struct Shared {
    pub(crate) me: SiteId,
    pub(crate) topology: Arc<Topology>,
    pub(crate) config: Config,
    /// This site's clock at the current step.
    pub(crate) now: Time,
    /// Ticks in this incarnation.
    pub(crate) ticks: u64,
    pub(crate) clock: ClockLease,
    pub(crate) rules: Rules<Planted>,
    pub(crate) jobs: Jobs<Job>,
    /// Who is believed to lead each group.
    leaders: Vec<SiteId>,
    /// All regions, the best for leaders first.
    preference: Vec<u16>,
}

/// What a role may touch in a step.
#[derive(Deref, DerefMut)]
pub(crate) struct Context<'a> {
    #[deref(forward)]
    #[deref_mut(forward)]
    pub(crate) shared: &'a mut Shared,
    pub(crate) fx: &'a mut Effects<Site>,
}

impl Shared {
    pub(crate) fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Shared {
        let named: Vec<u16> = config.leaders.iter().map(|region| region.0).collect();
        let others = topology.regions().map(|region| region.0).filter(|region| !named.contains(region));
        let preference: Vec<u16> = named.iter().copied().chain(others).collect();
        Shared {
            me,
            leaders: (0..topology.shard_count()).map(|shard| SiteId::new(preference[0], shard)).collect(),
            preference,
            topology,
            config,
            now: Time::ZERO,
            ticks: 0,
            clock: ClockLease::new(CLOCK_LEAD),
            rules: Rules::HOLD,
            jobs: Jobs::default(),
        }
    }

    /// The replicas of a shard, the preferred leader first.
    pub(crate) fn members(&self, shard: u16) -> Vec<SiteId> {
        self.preference.iter().map(|region| SiteId::new(*region, shard)).collect()
    }

    /// Who is believed to lead the group of `shard`.
    pub(crate) fn leader_of(&self, shard: u16) -> SiteId {
        self.leaders[usize::from(shard)]
    }

    /// `leader` has done what leaders do, or was said to lead.
    pub(crate) fn note_leader(&mut self, leader: SiteId) {
        self.leaders[usize::from(leader.shard)] = leader;
    }

    /// Whoever is believed to lead the group is silent: perhaps the next one does.
    pub(crate) fn doubt_leader(&mut self, shard: u16) {
        let members = self.members(shard);
        let place = members.iter().position(|member| *member == self.leader_of(shard)).expect("leaders are members");
        self.leaders[usize::from(shard)] = members[(place + 1) % members.len()];
    }

    /// A timestamp above all that were issued or observed.
    pub(crate) fn timestamp(&mut self) -> Timestamp {
        self.clock.now(self.now)
    }
}

impl Context<'_> {
    /// Sends to whoever is believed to lead the group of `shard`.
    pub(crate) fn send_leader(&mut self, shard: u16, note: Note) {
        let leader = self.leader_of(shard);
        self.fx.send(leader, note);
    }

    /// Writes a bound of the clock, if one is to be written.
    pub(crate) fn write_bound(&mut self, bound: Option<Timestamp>) {
        let Some(bound) = bound else { return };
        let mut batch = Batch::new();
        records::put_clock_bound(&mut batch, bound);
        let token = self.jobs.begin(Job::ClockBound(bound));
        self.fx.persist(batch).notify(token);
    }
}
