//! What the roles of a site share, and all that a role may touch besides its own state: the time, the clock and its bound on disk, the
//! configuration, what is known of the cluster, the rules, and the effects of the step.
//!
//! Invariant kept here: no transaction begins at a timestamp, and no read is answered at one, that lies above the clock's bound on disk; a new
//! incarnation starts its clock, and refuses writes, at the bound of the incarnations before.

use super::config::Config;
use super::message::{Attempt, Meta, Note, Promise};
use super::peers::Peers;
use super::planted::Planted;
use super::records::Number;
use crate::Site;
use crate::job::Job;
use derive_more::{Deref, DerefMut};
use rhumb_commit::clock_lease::ClockLease;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::votes::{Decision, Outcome, Refusal, Tally};
use rhumb_core::actor::Token;
use rhumb_core::{Batch, Effects, Jobs, Load, RegionId, Rules, SiteId, Span, Table, Time, Timestamp, Topology};
use std::collections::VecDeque;
use std::sync::Arc;

/// What one role of a site tells another.
#[derive(Clone, Debug)]
pub(super) enum Local {
    /// What any site may be told.
    Note(Note),
    /// To the coordinator, of the gateway: the votes say that an attempt aborted; a client waits until that is on record.
    GatewayAborts(Meta),
    /// To the gateway, of the coordinator: this region takes part in the resolution of an attempt; conclude nothing from votes any more.
    BindGateway(Attempt),
    /// To the coordinator, of the cohort: the votes that it has heard decide an attempt.
    CohortDecides(Meta, Decision),
    /// To the coordinator, of the cohort: an attempt is carried here; lead its resolution, if regions are lost that voted on it.
    CarriedHere(Meta),
    /// To the cohort, of the coordinator: nobody here can tell how an attempt ended, and all that it writes here is covered.
    CoveredHere(Attempt),
    /// To the mover: handle this note of a site once all commits of the epochs before are known here.
    AwaitSettling(SiteId, Note),
    /// To catch-up: a commit is missing here.
    Hurry,
    /// To the cohort, of catch-up: stale reads that waited may be served.
    SafeHasRisen,
}

/// What the roles of a site share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) me: SiteId,
    pub(super) topology: Arc<Topology>,
    pub(super) config: Config,
    pub(super) rules: Rules<Planted>,
    /// The machine's clock at the present step.
    pub(super) now: Time,
    pub(super) clock: ClockLease,
    /// This incarnation began above it; no other did.
    pub(super) incarnation: Timestamp,
    pub(super) placement: Placement,
    pub(super) peers: Peers,
    pub(super) jobs: Jobs<Job>,
    /// What its roles tell each other, handled in this order before the step ends.
    inbox: VecDeque<Local>,
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
    /// Sends a note; one to this site is handled before the step ends.
    pub(super) fn send(&mut self, to: SiteId, note: Note) {
        if to == self.me {
            self.notify(Local::Note(note));
        } else {
            self.fx.send(to, note);
        }
    }

    /// Sends a note to every other site.
    pub(super) fn broadcast(&mut self, note: &Note) {
        self.shared.topology.others(self.me).for_each(|site| self.fx.send(site, note.clone()));
    }

    /// Asks the sites of all shards but the coordinator's, in the regions that vote on `meta`, how high they have prepared.
    pub(super) fn request_highs(&mut self, meta: &Meta) {
        for shard in self.other_shards(meta) {
            for region in meta.electorate.iter() {
                self.send(SiteId { region, shard }, Note::AskHigh { attempt: meta.attempt, epoch: meta.epoch });
            }
        }
    }

    /// Another site is in `epoch`: sees to it that both are in the same one soon.
    pub(super) fn compare_epoch(&mut self, other: SiteId, epoch: u64) {
        if epoch > self.placement.epoch {
            self.send(other, Note::AskPlacement);
        } else if epoch < self.placement.epoch {
            self.send_placement(other);
        }
    }

    /// A site is in an earlier epoch, or asks which one this is.
    pub(super) fn send_placement(&mut self, to: SiteId) {
        if to != self.me {
            let placement = self.placement.clone();
            self.fx.persist(Batch::new()).send(to, Promise::Placed { placement });
        }
    }

    /// Asks the replica in `region` whether it has stopped, and what it is in doubt about after the attempt `after`.
    pub(super) fn request_stop(&mut self, region: RegionId, after: Option<Attempt>) {
        let note = Note::AskStopped { placement: self.placement.clone(), after };
        self.send(SiteId { region, shard: self.me.shard }, note);
    }

    /// Tells the coordinator of this region that its cohort here cannot prepare `meta`.
    pub(super) fn refuse(&mut self, meta: &Meta, refusal: Refusal) {
        let coordinator = meta.coordinator_in(self.me.region);
        self.send(coordinator, Note::CannotPrepare { attempt: meta.attempt, refusal });
    }

    /// Asks all regions for their votes on what a cohort is in doubt about. Its own may not vote on it, and know how it ended or have to lead
    /// its resolution.
    pub(super) fn request_votes(&mut self, meta: &Meta) {
        self.fx.count("commit.cohort_asks");
        for region in meta.electorate.or(self.me.region.into()).iter() {
            self.send(meta.coordinator_in(region), Note::AskVote { meta: meta.clone() });
        }
        self.request_highs(meta);
    }

    /// Loads something from disk for `job`.
    pub(super) fn load(&mut self, job: Job, load: Load) -> Token {
        let token = self.jobs.begin(job);
        self.fx.load(token, load);
        token
    }

    /// Writes a bound of the clock, if one is to be written.
    pub(super) fn write_bound(&mut self, bound: Option<Timestamp>) {
        let Some(bound) = bound else { return };
        let mut batch = Batch::new();
        Number::ClockBound.put(&mut batch, bound.bits());
        let token = self.jobs.begin(Job::ClockBound(bound));
        self.fx.persist(batch).notify(token);
    }

    /// True if a transaction may begin now; else the clock's bound on disk is being raised for it.
    pub(super) fn may_begin(&mut self) -> bool {
        let now = self.now;
        let bound = self.clock.renew(now);
        self.write_bound(bound);
        self.clock.may_issue()
    }
}

impl Shared {
    /// What the site `me` shares before its first step.
    pub(super) fn new(me: SiteId, topology: Arc<Topology>, placement: Placement, config: Config) -> Shared {
        Shared {
            me,
            topology,
            rules: Rules::HOLD,
            now: Time::ZERO,
            clock: ClockLease::new(config.clock_lead),
            config,
            incarnation: Timestamp::ZERO,
            placement,
            peers: Peers::default(),
            jobs: Jobs::default(),
            inbox: VecDeque::new(),
        }
    }

    /// Lists its tables, where `everywhere` transactions may be open in the cluster.
    pub(super) fn tables(&self, everywhere: usize, visit: &mut dyn FnMut(Table)) {
        let sites = self.topology.sites().count();
        visit(Table::new("peers", self.peers.len(), sites).stays());
        // A read each, and a page of the log or of rows for each replica that takes over.
        visit(Table::new("loads", self.jobs.count(), everywhere + sites).resting_at(2 * sites));
        visit(Table::new("inbox", self.inbox.len(), 0));
    }

    /// Tells another role of this site, before the step ends.
    pub(super) fn notify(&mut self, local: Local) {
        self.inbox.push_back(local);
    }

    /// The next of what the roles of this site tell each other.
    pub(super) fn next_local(&mut self) -> Option<Local> {
        self.inbox.pop_front()
    }

    /// A timestamp of now, by the hybrid clock.
    pub(super) fn timestamp(&mut self) -> Timestamp {
        self.clock.now(self.now)
    }

    /// The timestamp at which a transaction begins that [may](Context::may_begin).
    pub(super) fn begin_now(&mut self) -> Timestamp {
        self.clock.issue(self.now).expect("a transaction begins only below the bound on disk")
    }

    /// Adds to `batch` a bound of the clock of `at` or above, unless an earlier write has one.
    pub(super) fn cover(&mut self, batch: &mut Batch, at: Timestamp) {
        if let Some(bound) = self.clock.cover(at) {
            Number::ClockBound.put(batch, bound.bits());
        }
    }

    /// True if this site is the whole cluster: what it votes is the outcome.
    pub(super) fn is_alone(&self) -> bool {
        self.topology.region_count() == 1 && self.topology.shard_count() == 1
    }

    /// All shards.
    pub(super) fn all_shards(&self) -> Vec<u16> {
        (0..self.topology.shard_count()).collect()
    }

    /// True if a site in doubt should ask the regions rather than this gateway, for an attempt that it has held for `age`.
    pub(super) fn is_past_asking(&self, gateway: SiteId, over: bool, age: Span) -> bool {
        let silent = gateway != self.me && self.peers.is_silent(gateway, self.config.gateway_silent_ticks);
        // A gateway that is heard but does not hear us would be asked for ever.
        over || silent || age >= self.config.outcome_deadline + self.config.withdraw_after
    }

    /// The regions in which the sites of all `shards` answered lately.
    pub(super) fn reachable(&self, shards: &[u16]) -> Vec<RegionId> {
        self.peers.reachable(&self.topology, shards, self.now, self.config.suspect_after)
    }

    /// The active regions in which the sites of all `shards` answered lately.
    pub(super) fn reachable_voters(&self, shards: &[u16]) -> Vec<RegionId> {
        self.reachable(shards).into_iter().filter(|region| self.placement.voters.contains(*region)).collect()
    }

    /// True if a commit, or a read of a majority, leaves this region.
    pub(super) fn is_wide(&self) -> bool {
        self.placement.voters != self.me.region.into()
    }

    /// True if this region is to hold a copy.
    pub(super) fn has_copy(&self) -> bool {
        self.placement.copies().contains(self.me.region)
    }

    /// The shards whose coordinators do not vote on `meta`.
    pub(super) fn other_shards(&self, meta: &Meta) -> impl Iterator<Item = u16> + use<> {
        let coordinator = meta.coordinator;
        (0..self.topology.shard_count()).filter(move |shard| *shard != coordinator)
    }

    /// The regions of `meta`'s electorate that the placement declares lost.
    pub(super) fn declared_lost(&self, meta: &Meta) -> Regions {
        let lost: Regions = meta.electorate.iter().filter(|region| self.is_lost(*region, meta)).collect();
        lost.without(meta.declares_lost)
    }

    /// What an outcome by these votes comes to, of an attempt that regions which are `lost` say no more about. None as long as too few sites
    /// have said how high they have prepared.
    pub(super) fn decision(&self, outcome: Outcome, tally: &Tally, meta: &Meta, lost: Regions) -> Option<Decision> {
        match outcome {
            Outcome::Aborted => Some(Decision::Aborted),
            Outcome::Committed => {
                let floor = tally.floor(meta.electorate, lost, self.other_shards(meta))?.max(meta.at);
                let floor = if self.rules.breaks(Planted::FloorsIgnored) { meta.at } else { floor };
                Some(Decision::Committed { floor })
            }
        }
    }

    /// True if what `region` says of an attempt of `meta`'s epoch does not count any more.
    pub(super) fn is_lost(&self, region: RegionId, meta: &Meta) -> bool {
        self.placement.is_lost(region, meta.epoch)
    }
}
