//! What the roles of a site share, and all that a role may touch in a step besides its own state: the time, the clock and its bound on disk,
//! the configuration, who is up, the settings, the rules, and the effects of the step.
//!
//! Invariants: a configuration is replaced by a later one only; a token names one load, write or question in all incarnations of the site, so
//! that no answer to an earlier one is taken for an answer to this one.

use super::Site;
use super::config::{CLOCK_BOUNDS_MAX, Config, SESSIONS_MAX};
use super::configuration::{Configuration, Epoch};
use super::message::{Cursor, Differences, Note, Promise};
use super::peers::Peers;
use super::planted::Planted;
use super::quorums::SITES_MAX;
use super::records::put_clock_bound;
use super::request::Answer;
use derive_more::{Deref, DerefMut};
use rhumb_commit::clock_lease::ClockLease;
use rhumb_commit::reason::Reason;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Load, RequestId};
use rhumb_core::{Batch, Effects, Jobs, Rules, SiteId, Table, Time, Timestamp, TxnId};
use std::collections::BTreeSet;

/// A timer of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// See [`Config::tick`].
    Tick,
    /// The transaction that this site had no time for is served, if it is still the one of this turn. See `injected_load.rs`.
    Held(u64),
}

/// A question of a puller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) by: SiteId,
    pub(super) number: u64,
}

/// What a load or a persist is for.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// A bound of the clock is durable.
    ClockBound(Timestamp),
    /// A read under locks.
    Read { txn: TxnId, number: u32, session: Timestamp },
    /// A page of records, after a start.
    Recover,
    /// A page of differences, for a puller.
    Differences { asked: Asked, before: Epoch },
    /// The versions of the rows on it.
    Versions { asked: Asked, epochs: Vec<Epoch>, next: Option<Cursor> },
    /// A page of all rows, for a puller.
    AllRows { asked: Asked, before: Epoch },
    /// Rows that it lacks.
    Copies(Asked),
    /// The own versions of rows on a page of a source.
    Compared { from: SiteId, page: Differences },
    /// Differences that may be too old.
    Old,
    /// Rows, to count them.
    Counted,
}

/// What the roles of a site share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) me: SiteId,
    pub(super) config: Config,
    pub(super) rules: Rules<Planted>,
    /// The machine's clock at the present step.
    pub(super) now: Time,
    /// Ticks of this incarnation.
    pub(super) ticks: u64,
    pub(super) configuration: Configuration,
    pub(super) clock: ClockLease,
    pub(super) peers: Peers,
    /// Questions have their names of it, too.
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
    /// Sends a note of this epoch.
    pub(super) fn send(&mut self, to: SiteId, note: Note) {
        self.fx.send(to, self.shared.configuration.epoch.says(note));
    }

    /// Sends a note to all members.
    pub(super) fn send_members(&mut self, note: &Note) {
        let configuration = &self.shared.configuration;
        configuration.bases.keys().for_each(|site| self.fx.send(*site, configuration.epoch.says(note.clone())));
    }

    /// Sends a promise of this epoch once `batch` is on disk.
    pub(super) fn promise(&mut self, batch: Batch, to: SiteId, promise: Promise) {
        self.fx.persist(batch).send(to, self.shared.configuration.epoch.says(promise));
    }

    /// Sends a promise of this epoch to each of `sites` once `batch` is on disk.
    pub(super) fn promise_each<'s>(&mut self, batch: Batch, sites: impl IntoIterator<Item = &'s SiteId>, promise: &Promise) {
        let epoch = self.shared.configuration.epoch;
        let persist = self.fx.persist(batch);
        sites.into_iter().fold(persist, |persist, site| persist.send(*site, epoch.says(promise.clone())));
    }

    /// Tells a client, or an operator, that it does not get what it asked for.
    pub(super) fn refuse(&mut self, id: RequestId, error: TxnError) {
        self.fx.answer(id, Answer::Failed(error));
    }

    /// Loads something from disk.
    pub(super) fn load(&mut self, job: Job, load: Load) {
        let token = self.jobs.begin(job);
        self.fx.load(token, load);
    }

    /// True if a timestamp issued now would be one that no other incarnation of this site issues; else the clock's bound is being raised for it.
    pub(super) fn may_issue(&mut self) -> bool {
        if let Some(bound) = self.shared.clock.renew(self.shared.now) {
            self.write_bound(bound, Batch::new());
        }
        self.clock.may_issue()
    }

    /// Writes `batch` with a bound of the clock.
    pub(super) fn write_bound(&mut self, bound: Timestamp, mut batch: Batch) {
        put_clock_bound(&mut batch, bound);
        let token = self.jobs.begin(Job::ClockBound(bound));
        self.fx.persist(batch).notify(token);
    }

    /// True if a message of `epoch` from `from` counts: only if this site is in the same epoch. A site that is behind is sent the configuration that
    /// it missed.
    pub(super) fn is_of_now(&mut self, from: SiteId, epoch: Epoch) -> bool {
        let mine = self.configuration.epoch;
        if epoch < mine {
            let tick = self.ticks;
            if self.peers.is_to_be_told(from, tick) {
                let configuration = Box::new(self.configuration.clone());
                self.send(from, Note::Decided { configuration });
            }
        } else if epoch > mine {
            self.send(from, Note::Behind);
        }
        epoch == mine || epoch < mine && self.rules.breaks(Planted::OldEpochServed)
    }
}

impl Shared {
    /// What a site shares before its first step.
    pub(super) fn new(me: SiteId, configuration: Configuration, config: Config) -> Shared {
        Shared {
            me,
            rules: Rules::HOLD,
            now: Time::ZERO,
            ticks: 0,
            configuration,
            clock: ClockLease::new(config.clock_lead),
            config,
            peers: Peers::default(),
            jobs: Jobs::default(),
        }
    }

    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        self.peers.tables(visit);
        let bounds = self.jobs.count_of(|job| matches!(job, Job::ClockBound(_)));
        // A read each, and a page for each site that pulls.
        visit(Table::new("loads", self.jobs.count() - bounds, SESSIONS_MAX + SITES_MAX).resting_at(SITES_MAX));
        visit(Table::new("clock bounds", bounds, CLOCK_BOUNDS_MAX).resting_at(1));
    }

    /// Another configuration is adopted.
    pub(super) fn adopt(&mut self, next: Configuration) {
        assert!(next.epoch > self.configuration.epoch, "epochs follow one another");
        self.configuration = next;
        self.peers.begin_epoch();
    }

    /// An earlier incarnation adopted this one.
    pub(super) fn recover_configuration(&mut self, configuration: Configuration) {
        self.configuration = configuration;
    }

    /// Earlier incarnations have left this bound of the clock. Timestamps are far more than questions, so that no incarnation gives a question
    /// a name of one before it.
    pub(super) fn recover_bound(&mut self, bound: Timestamp) {
        self.clock = self.clock.recovered(bound);
        if !self.rules.breaks(Planted::QuestionsNamedAnew) {
            self.jobs.skip_to(bound.bits());
        }
    }

    /// A timestamp above all that were issued or observed.
    pub(super) fn timestamp(&mut self) -> Timestamp {
        self.clock.now(self.now)
    }

    /// A new timestamp, which [may](Context::may_issue) be issued.
    pub(super) fn issue(&mut self) -> Timestamp {
        self.clock.issue(self.now).expect("it may issue one")
    }

    /// Later timestamps lie above `at`, also those of a later incarnation.
    pub(super) fn observe(&mut self, at: Timestamp, batch: &mut Batch) {
        self.clock.observe(at);
        if let Some(bound) = self.clock.cover(at) {
            put_clock_bound(batch, bound);
        }
    }

    /// True if the site takes part in its configuration.
    pub(super) fn is_member(&self) -> bool {
        self.configuration.bases.contains_key(&self.me)
    }

    /// True if `promised` are enough for the consensus on what follows this epoch, since `lost` are lost.
    pub(super) fn is_quorate(&self, promised: &BTreeSet<SiteId>, lost: &BTreeSet<SiteId>) -> bool {
        self.configuration.is_quorate(promised, lost) || self.rest_goes_on(promised, lost)
    }

    /// True if the next configuration may be based on what `sealed` say, since `lost` are lost.
    pub(super) fn may_be_left(&self, sealed: &BTreeSet<SiteId>, lost: &BTreeSet<SiteId>) -> bool {
        self.configuration.may_be_left(sealed, lost) || self.rest_goes_on(sealed, lost)
    }

    /// What is planted in place of the bound on losses: true if `rest` are all but `lost`.
    fn rest_goes_on(&self, rest: &BTreeSet<SiteId>, lost: &BTreeSet<SiteId>) -> bool {
        let is_accounted_for = |site: &SiteId| rest.contains(site) || lost.contains(site);
        self.rules.breaks(Planted::LossUnbounded) && self.configuration.bases.keys().all(is_accounted_for)
    }

    /// Why a site that takes no part serves nobody.
    pub(super) fn not_a_member(&self) -> TxnError {
        let advice = " takes no part in the quorums; connect to another site, or have it join (rhumb quorum join)";
        TxnError::Unavailable(Reason::from("site ").then(self.me).then(advice))
    }

    /// The sites heard of lately, members or not.
    pub(super) fn heard(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.peers.heard_since(self.lately())
    }

    /// The sites that are up, as far as this one knows, members or not.
    pub(super) fn reachable(&self) -> BTreeSet<SiteId> {
        self.peers.answered_since(self.lately()).chain([self.me]).collect()
    }

    /// The members that are up, as far as this one knows.
    pub(super) fn up(&self) -> BTreeSet<SiteId> {
        let mut up = self.reachable();
        up.retain(|site| self.configuration.bases.contains_key(site));
        up
    }

    /// A site that was last heard before this tick is silent.
    fn lately(&self) -> u64 {
        self.ticks.saturating_sub(self.config.silent_ticks)
    }
}
