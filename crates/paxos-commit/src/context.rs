//! What the roles of a site share, and all that a role may touch besides its own state.

use super::config::{CLOCK_LEAD, Config};
use super::planted::Planted;
use super::reading::Reading;
use super::records;
use crate::Site;
use derive_more::{Deref, DerefMut};
use rhumb_commit::clock_lease::ClockLease;
use rhumb_commit::placement::Regions;
use rhumb_core::{Batch, Effects, Jobs, Rules, SiteId, Time, Timestamp, Topology, TxnId};
use std::sync::Arc;

/// What a load or a persist is for.
#[derive(Debug)]
pub(super) enum Job {
    /// What earlier incarnations have left, a page of it.
    Recover,
    /// A bound of the clock is durable.
    ClockBound(Timestamp),
    /// Rows of an attempt: for an execution of this round, or to validate it.
    Read { txn: TxnId, round: Option<u64>, reading: Reading, is_range: bool },
}

/// What the roles of a site share.
pub(super) struct Shared {
    pub(super) me: SiteId,
    pub(super) topology: Arc<Topology>,
    pub(super) config: Config,
    /// All regions: they vote.
    pub(super) regions: Regions,
    /// This site's clock at the current step.
    pub(super) now: Time,
    /// Ticks in this incarnation.
    pub(super) ticks: u64,
    pub(super) clock: ClockLease,
    pub(super) rules: Rules<Planted>,
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

impl Shared {
    pub(super) fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Shared {
        Shared {
            me,
            regions: Regions::first(topology.region_count()),
            topology,
            config,
            now: Time::ZERO,
            ticks: 0,
            clock: ClockLease::new(CLOCK_LEAD),
            rules: Rules::HOLD,
            jobs: Jobs::default(),
        }
    }

    /// All sites.
    pub(super) fn sites(&self) -> impl Iterator<Item = SiteId> + use<> {
        self.topology.sites()
    }

    /// All sites but this one.
    pub(super) fn others(&self) -> impl Iterator<Item = SiteId> + use<> {
        self.topology.others(self.me)
    }

    /// A timestamp of now, by the hybrid clock.
    pub(super) fn timestamp(&mut self) -> Timestamp {
        self.clock.now(self.now)
    }
}

impl Context<'_> {
    /// The first identifier of a transaction, with room for all its attempts behind it; none before the clock's bound on disk allows that.
    pub(super) fn issue(&mut self) -> Option<Timestamp> {
        let room = |began: Timestamp| Timestamp::from_bits(began.bits() + self.config.concurrency.attempts_max());
        let next = room(self.clock.last().next().max(Timestamp::from_time(self.now)));
        let now = self.now;
        let bound = self.clock.raise(next, now);
        self.write_bound(bound);
        if next > self.clock.bound() {
            return None;
        }
        let began = self.clock.issue(now)?;
        self.clock.observe(next);
        Some(began)
    }

    /// Writes a bound of the clock, if one is to be written.
    pub(super) fn write_bound(&mut self, bound: Option<Timestamp>) {
        let Some(bound) = bound else { return };
        let mut batch = Batch::new();
        records::put_clock_bound(&mut batch, bound);
        let token = self.jobs.begin(Job::ClockBound(bound));
        self.fx.persist(batch).notify(token);
    }
}
