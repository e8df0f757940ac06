//! A site: gateway of its clients and replica in one actor. Here are dispatch, recovery, and who is up.

use super::acceptor::Sealed;
use super::burden::Burdened;
use super::config::{
    CEILINGS_MAX, COLLECT_EVERY, Config, DIFFERENCES_PAGE, HELD_MAX, RECOVERY_PAGE, SESSIONS_MAX, TOLD_AGAIN_TICKS, WAITING_MAX,
};
use super::configuration::{Configuration, Cores, Epoch, Stamped};
use super::explanation::Tally;
use super::gateway::{Gateway, Waiting};
use super::message::{Admin, Answer, Cursor, Difference, Note, Promise, Request};
use super::monitor::Monitor;
use super::mover::Attempt;
use super::planted::Planted;
use super::quorums::{Quorums, SITES_MAX};
use super::reconcile::Pulling;
use super::records::{ACCEPTOR, ASIDE, BASE, Base, CEILING, CONFIGURATION, CommitRecord, DECISIONS, PREPARED, put_ceiling};
use super::replica::Replica;
use super::unnamed::{Unnamed, UnnamedQueue};
use rhumb_commit::clock_lease::ClockLease;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Actor, Body, Collect, Input, Load, Loaded, RequestId, Space, Token};
use rhumb_core::record::{decode, encode};
use rhumb_core::{Batch, Effects, Inspect, Rules, SiteId, Table, Time, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A timer of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// See [`Config::tick`].
    Tick,
    /// The transaction that this site had no time for is served, if it is still the one of this turn. See `burden.rs`.
    Held(u64),
}

/// What a load is for.
#[derive(Debug)]
pub(super) enum Loading {
    /// A read under locks.
    Read { txn: TxnId, number: u32, session: Timestamp },
    /// Records, after a start.
    Recovery(Space),
    /// A page of differences, for a puller.
    Differences { to: SiteId, number: u64, before: Epoch },
    /// The versions of the rows on it.
    Versions { to: SiteId, number: u64, epochs: Vec<Epoch>, next: Option<Cursor> },
    /// A page of all rows, for a puller.
    AllRows { to: SiteId, number: u64, before: Epoch },
    /// Rows that it lacks.
    Copies { to: SiteId, number: u64 },
    /// The own versions of rows on a page of a source.
    Compared { from: SiteId, number: u64, entries: Vec<Difference>, next: Option<Cursor> },
    /// Differences that may be too old.
    Old,
    /// Rows, to count them.
    Counted,
}

/// A site. See the module's first lines.
#[derive(Debug)]
pub struct Site {
    pub(super) me: SiteId,
    pub(super) configuration: Configuration,
    /// Set while the epoch is sealed here.
    pub(super) sealed: Option<Sealed>,
    /// How much of the past is here.
    pub(super) base: Base,
    /// A change of configuration that this site attempts.
    pub(super) attempt: Option<Attempt>,
    /// The highest number of a ballot that it has heard of.
    pub(super) heard_ballot: u64,
    pub(super) pulling: Option<Pulling>,
    /// Commits of the epoch that ends, as sealed sources told of them.
    pub(super) aside: BTreeMap<TxnId, CommitRecord>,
    pub(super) monitor: Monitor,
    pub(super) burdened: Burdened,
    pub(super) tally: Tally,
    /// Requests that wait for the next configuration.
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) config: Config,
    pub(super) clock: ClockLease,
    /// Ceilings on their way to disk, by token.
    ceilings: BTreeMap<Token, Timestamp>,
    /// What waits for a higher one.
    pub(super) unnamed: UnnamedQueue,
    /// Ticks of this life.
    pub(super) ticks: u64,
    /// The tick at which each site was last heard of.
    heard: BTreeMap<SiteId, u64>,
    /// The tick at which each site that was behind this epoch was told so.
    pub(super) told: BTreeMap<SiteId, u64>,
    /// The tick at which each last answered a ping.
    pub(super) answered: BTreeMap<SiteId, u64>,
    /// Whom each of them heard then.
    pub(super) hears: BTreeMap<SiteId, Vec<SiteId>>,
    serving: bool,
    loads: BTreeMap<Token, Loading>,
    pub(super) tokens: Token,
    pub(super) gateway: Gateway,
    pub(super) replica: Replica,
    pub(super) rules: Rules<Planted>,
}

impl Site {
    /// The site `me` of a cluster that began with these quorums, before its start. If it is in none of them, it may join.
    pub fn new(me: SiteId, quorums: Quorums, config: Config) -> Site {
        let mut configuration = Configuration::first(quorums);
        if let Some(adaptation) = &config.adaptation {
            configuration.cores = if adaptation.auto { Cores::Auto } else { Cores::Fixed(adaptation.settings.cores) };
        }
        let holds = configuration.bases.get(&me).copied().unwrap_or_default();
        Site {
            me,
            configuration,
            sealed: None,
            base: Base { holds, kept: Epoch(0) },
            attempt: None,
            heard_ballot: 0,
            pulling: None,
            aside: BTreeMap::new(),
            monitor: Monitor::default(),
            burdened: Burdened::default(),
            tally: Tally::default(),
            waiting: VecDeque::new(),
            clock: ClockLease::new(config.ceiling_lead),
            config,
            ceilings: BTreeMap::new(),
            unnamed: UnnamedQueue::default(),
            ticks: 0,
            heard: BTreeMap::new(),
            told: BTreeMap::new(),
            answered: BTreeMap::new(),
            hears: BTreeMap::new(),
            serving: false,
            loads: BTreeMap::new(),
            tokens: 0,
            gateway: Gateway::default(),
            replica: Replica::default(),
            rules: Rules::HOLD,
        }
    }

    /// How many transactions wait for an outcome here, or are decided and not known to all.
    pub fn unresolved(&self) -> usize {
        self.replica.prepared() + self.gateway.undelivered()
    }

    /// The configuration that this site has adopted.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// True if it has stopped serving its epoch.
    pub fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// True if all that was committed before its epoch is here.
    pub fn is_caught_up(&self) -> bool {
        self.base.holds >= self.configuration.epoch
    }

    /// All that was committed before this epoch is here, as far as the site knows.
    pub fn holds(&self) -> Epoch {
        self.base.holds
    }

    /// True if the site takes part in its configuration.
    pub(super) fn is_member(&self) -> bool {
        self.configuration.bases.contains_key(&self.me)
    }

    /// Why a site that takes no part serves nobody.
    pub(super) fn stranger(&self) -> String {
        format!("site {} takes no part in the quorums; connect to another site, or have it join (rhumb quorum join)", self.me)
    }

    /// The sites that are up, as far as this one knows, members or not: they are heard, and have heard what they were asked.
    pub(super) fn reachable(&self) -> BTreeSet<SiteId> {
        self.lately(&self.answered).chain([self.me]).collect()
    }

    /// Those of whom that was so not long ago.
    fn lately<'a>(&'a self, ticks: &'a BTreeMap<SiteId, u64>) -> impl Iterator<Item = SiteId> + 'a {
        ticks.iter().filter(|(_, at)| **at + self.config.silent_ticks >= self.ticks).map(|(site, _)| *site)
    }

    /// The members that are up, as far as this one knows.
    pub(super) fn up(&self) -> BTreeSet<SiteId> {
        let mut up = self.reachable();
        up.retain(|site| self.configuration.bases.contains_key(site));
        up
    }

    /// True if a timestamp issued now would be one that no other life of this site issues; else the ceiling is being raised for it.
    pub(super) fn may_issue(&mut self, now: Time, fx: &mut Effects<Site>) -> bool {
        if let Some(bound) = self.clock.renew(now) {
            self.write_ceiling(bound, Batch::new(), fx);
        }
        self.clock.may_issue()
    }

    pub(super) fn load(&mut self, loading: Loading, load: Load, fx: &mut Effects<Site>) {
        self.tokens += 1;
        self.loads.insert(self.tokens, loading);
        fx.load(self.tokens, load);
    }

    fn recover(&mut self, space: Space, from: Vec<u8>, fx: &mut Effects<Site>) {
        self.load(Loading::Recovery(space), Load::Records { space, from: from.into(), limit: RECOVERY_PAGE, bytes: usize::MAX }, fx);
    }

    fn on_loaded(&mut self, now: Time, token: Token, loaded: Loaded, fx: &mut Effects<Site>) {
        match self.loads.remove(&token).expect("only what was asked for is loaded") {
            Loading::Read { txn, number, session } => self.on_read_loaded(txn, number, session, loaded, fx),
            Loading::Recovery(space) => self.on_records(now, space, loaded, fx),
            Loading::Differences { to, number, before } => self.on_differences_loaded((to, number), before, loaded, fx),
            Loading::Versions { to, number, epochs, next } => self.on_versions_loaded((to, number), epochs, next, loaded, fx),
            Loading::AllRows { to, number, before } => self.on_all_rows_loaded((to, number), before, loaded, fx),
            Loading::Copies { to, number } => self.on_copies_loaded(to, number, loaded, fx),
            Loading::Compared { from, number, entries, next } => self.on_compared((from, number), entries, next, loaded, fx),
            Loading::Old => self.on_old_loaded(loaded, fx),
            Loading::Counted => self.on_counted(loaded),
        }
    }

    fn on_records(&mut self, now: Time, space: Space, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        const SOUND: &str = "the store holds what this protocol wrote";
        for (_, bytes) in &records {
            match space {
                CEILING => {
                    let ceiling: Timestamp = decode(bytes).expect(SOUND);
                    self.clock = self.clock.recovered(ceiling);
                    // Timestamps are far more than questions, so that no life gives a question a name of one before it.
                    self.tokens = self.tokens.max(ceiling.bits());
                }
                CONFIGURATION => self.configuration = decode(bytes).expect(SOUND),
                BASE => self.base = decode(bytes).expect(SOUND),
                ACCEPTOR => {
                    self.sealed = Some(Sealed { record: decode(bytes).expect(SOUND), since: self.ticks, began: self.ticks, tries: 0 })
                }
                DECISIONS => self.gateway.restore(decode(bytes).expect(SOUND)),
                PREPARED => self.replica.restore(decode(bytes).expect(SOUND)),
                _ => {
                    let commit: CommitRecord = decode(bytes).expect(SOUND);
                    self.aside.insert(commit.txn, commit);
                }
            }
        }
        match (space, records.last()) {
            (_, Some((last, _))) if more => self.recover(space, [last, &[0][..]].concat(), fx),
            (CEILING, _) => self.recover(CONFIGURATION, Vec::new(), fx),
            (CONFIGURATION, _) => self.recover(BASE, Vec::new(), fx),
            (BASE, _) => self.recover(ACCEPTOR, Vec::new(), fx),
            (ACCEPTOR, _) => self.recover(DECISIONS, Vec::new(), fx),
            (DECISIONS, _) => self.recover(PREPARED, Vec::new(), fx),
            (PREPARED, _) => self.recover(ASIDE, Vec::new(), fx),
            _ => self.begin_to_serve(now, fx),
        }
    }

    /// Writes `batch` with this ceiling.
    fn write_ceiling(&mut self, bound: Timestamp, mut batch: Batch, fx: &mut Effects<Site>) {
        put_ceiling(&mut batch, bound);
        self.tokens += 1;
        self.ceilings.insert(self.tokens, bound);
        fx.persist(batch).notify(self.tokens);
    }

    /// All that was on disk is read. What the site begins with is written: the first configuration follows from settings, and they may be
    /// others at the next start.
    fn begin_to_serve(&mut self, now: Time, fx: &mut Effects<Site>) {
        let mut batch = Batch::new();
        batch.put_record(CONFIGURATION, Vec::new(), encode(&self.configuration));
        batch.put_record(BASE, Vec::new(), encode(&self.base));
        let bound = self.clock.renew(now).expect("a life begins at its bound");
        self.write_ceiling(bound, batch, fx);
    }

    /// The ceiling on disk has risen: what waited for a timestamp goes on.
    fn on_ceiling(&mut self, now: Time, token: Token, fx: &mut Effects<Site>) {
        let ceiling = self.ceilings.remove(&token).expect("only ceilings ask for that");
        self.clock.on_durable(ceiling);
        self.serving = true;
        for unnamed in self.unnamed.take() {
            match unnamed {
                Unnamed::Begin(id, request) => self.on_request(now, id, request, fx),
                Unnamed::Session(from, note) => self.on_note(now, from, note, fx),
            }
        }
    }

    fn on_tick(&mut self, now: Time, fx: &mut Effects<Site>) {
        fx.set_timer(Timer::Tick, self.config.tick);
        self.ticks += 1;
        let epoch = self.configuration.epoch;
        // Those who may join, too.
        let asked: BTreeSet<SiteId> = self.lately(&self.heard).chain(self.configuration.members()).collect();
        for site in asked.into_iter().filter(|site| *site != self.me) {
            fx.send(site, epoch.says(Note::Ping { sent: now }));
        }
        if !self.serving {
            return;
        }
        if let Some(bound) = self.clock.renew_ahead(now) {
            self.write_ceiling(bound, Batch::new(), fx);
        }
        if self.sealed.is_none() {
            self.tick_replica(now, fx);
            self.tick_orphans(fx);
        }
        self.tick_gateway(fx);
        self.tick_waiting(fx);
        self.tick_sealed(fx);
        self.tick_mover(fx);
        self.tick_pulling(fx);
        self.tick_monitor(now, fx);
        if self.ticks.is_multiple_of(COLLECT_EVERY) {
            // Whoever reads, or asks what it lacks, asks for the newest version. Deletions stay: who has missed one would show again what it
            // deleted.
            fx.collect(Collect { horizon: self.clock.last(), deletions: Timestamp::ZERO });
        }
    }

    /// True if what was said in `epoch` is to be heard: only if this site is in the same one. Who is behind is told what it missed.
    fn is_of_now(&mut self, from: SiteId, epoch: Epoch, fx: &mut Effects<Site>) -> bool {
        let mine = self.configuration.epoch;
        if epoch < mine {
            let ticks = self.ticks;
            if self.told.get(&from).is_none_or(|told| ticks >= told + TOLD_AGAIN_TICKS) {
                self.told.insert(from, ticks);
                let configuration = Box::new(self.configuration.clone());
                fx.send(from, mine.says(Note::Decided { configuration }));
            }
        } else if epoch > mine {
            fx.send(from, mine.says(Note::Behind));
        }
        if self.rules.breaks(Planted::OldEpochServed) {
            return epoch <= mine;
        }
        epoch == mine
    }

    /// True if transactions of the epoch go on here.
    fn is_open(&self) -> bool {
        if self.rules.breaks(Planted::OldEpochServed) {
            return self.is_member();
        }
        self.sealed.is_none() && self.is_member()
    }

    fn on_note(&mut self, now: Time, from: SiteId, Stamped { epoch, said }: Stamped<Note>, fx: &mut Effects<Site>) {
        match said {
            // These speak of epochs themselves.
            Note::Behind => drop(self.is_of_now(from, Epoch(0), fx)),
            Note::Decided { configuration } => self.on_decided(now, *configuration, fx),
            Note::Pull { number, since, before, after } => self.on_pull((from, epoch), number, since, before, after, fx),
            Note::Fetch { number, keys } => self.on_fetch(from, number, keys, fx),
            _ if !self.is_of_now(from, epoch, fx) => {}
            Note::Ping { sent } => self.on_ping(now, from, sent, fx),
            Note::Pong { sent, hears } => self.on_pong(now, from, sent, hears),
            Note::Measured { measured } => self.on_measured(from, measured, fx),
            Note::Join => self.on_join(from),
            Note::Seal { ballot, goal } => self.on_seal(from, ballot, goal, fx),
            Note::Outbid { ballot } => self.on_outbid(ballot, fx),
            Note::Reconcile { ballot, anchor, sources } => self.on_reconcile(from, ballot, anchor, sources, fx),
            Note::Advances { ballot, pages } => self.on_advances(from, ballot, pages, fx),
            Note::Accept { ballot, configuration } => self.on_accept(from, ballot, configuration, fx),
            _ if !self.is_open() => {}
            said if self.awaits_timestamp(now, &said, fx) => {
                self.unnamed.push(Unnamed::Session(from, Stamped { epoch, said }));
            }
            Note::Read { txn, number, query } => self.on_read(now, txn, number, query, fx),
            Note::Rows { txn, number, session, rows, more } => self.on_rows(from, (txn, number, session), (rows, more), fx),
            Note::Confirm { txn, session } => self.on_confirm(now, txn, session, fx),
            Note::Confirmed { txn } => self.on_confirmed(now, from, txn, fx),
            Note::Prepare { txn, session, writes } => self.on_prepare(now, (txn, session), writes, fx),
            Note::Refused { txn, session } => self.on_refused(from, txn, session, fx),
            Note::Abort { txn } => self.on_abort(now, txn, fx),
            Note::Inquire { txn, committed } => self.on_inquire(from, txn, committed, fx),
            Note::Settled { txn } => self.on_settled(now, txn, fx),
        }
    }

    fn on_promise(&mut self, now: Time, from: SiteId, Stamped { epoch, said }: Stamped<Promise>, fx: &mut Effects<Site>) {
        match said {
            // These speak of epochs themselves.
            Promise::Commits { number, commits, next } => self.on_commits(from, number, commits, next, fx),
            Promise::Differences { number, entries, next, whole } => self.on_differences(from, number, (entries, next), whole, fx),
            Promise::Copies { number, rows } => self.on_copies(from, number, rows, fx),
            _ if !self.is_of_now(from, epoch, fx) => {}
            Promise::Sealed { ballot, report } => self.on_sealed(from, ballot, report, fx),
            Promise::Reconciled { ballot, .. } => self.on_reconciled(from, ballot, fx),
            Promise::Accepted { ballot } => self.on_accepted(from, ballot, fx),
            Promise::Committed { txn } => {
                // The decision is this site's own.
                self.on_committed(from, txn, fx);
                if self.is_open() {
                    self.on_confirmed_commit(now, from, txn, fx);
                }
            }
            _ if !self.is_open() => {}
            Promise::Prepared { txn, clock } => self.on_prepared(now, from, txn, clock, fx),
            Promise::Commit { txn, at, participants } => self.on_commit(now, (txn, at), participants, fx),
        }
    }

    fn on_admin(&mut self, id: RequestId, asked: Admin, fx: &mut Effects<Site>) {
        match asked {
            Admin::Change(goal) => self.change(goal, Some(id), fx),
            Admin::Join => {
                self.monitor.join();
                fx.answer(id, Answer::Done);
            }
            Admin::Leave(leave) => self.on_leave(id, leave, fx),
            Admin::Cores(cores) => self.on_cores(id, cores, fx),
            Admin::Explain => fx.answer(id, Answer::Admin(Box::new(self.explanation()))),
            Admin::Burden(burden) => self.on_burden(id, burden, fx),
        }
    }
}

impl Inspect for Site {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        self.gateway.tables(visit);
        self.replica.tables(visit);
        self.unnamed.tables(visit);
        visit(Table::new("waiting", self.waiting.len(), WAITING_MAX));
        visit(Table::new("burdened", self.burdened.len(), HELD_MAX));
        let wanted = self.pulling.as_ref().map_or(0, Pulling::wanted);
        visit(Table::new("pulling.wanted", wanted, SITES_MAX * DIFFERENCES_PAGE));
        visit(Table::new("aside", self.aside.len(), SITES_MAX * SESSIONS_MAX));
        visit(Table::new("heard", self.heard.len(), SITES_MAX).stays());
        visit(Table::new("told", self.told.len(), SITES_MAX).stays());
        visit(Table::new("answered", self.answered.len(), SITES_MAX).stays());
        visit(Table::new("hears", self.hears.values().map(Vec::len).sum(), SITES_MAX * SITES_MAX).stays());
        // A read each, and a page for each site that pulls.
        visit(Table::new("loads", self.loads.len(), SESSIONS_MAX + SITES_MAX).resting_at(SITES_MAX));
        visit(Table::new("ceilings", self.ceilings.len(), CEILINGS_MAX).resting_at(1));
    }
}

impl Actor for Site {
    type Note = Stamped<Note>;
    type Promise = Stamped<Promise>;
    type Timer = Timer;
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, now: Time, input: Input<Site>, fx: &mut Effects<Site>) {
        let Some(input) = self.hold(input, fx) else { return };
        match input {
            Input::Start => {
                fx.set_timer(Timer::Tick, self.config.tick);
                self.recover(CEILING, Vec::new(), fx);
            }
            Input::Loaded { token, loaded } => self.on_loaded(now, token, loaded, fx),
            Input::Persisted { token } => self.on_ceiling(now, token, fx),
            Input::Timer(Timer::Tick) => self.on_tick(now, fx),
            Input::Timer(Timer::Held(_)) => unreachable!("what was held is served in its place"),
            Input::Client { id, .. } if !self.serving => {
                fx.answer(id, Answer::Failed(TxnError::Unavailable("this site is still reading its disk".into())));
            }
            Input::Client { id, request: Request::Admin(asked) } => self.on_admin(id, asked, fx),
            Input::Client { id, request } => self.on_request(now, id, request, fx),
            Input::Message { from, body } => {
                self.heard.insert(from, self.ticks);
                match body {
                    _ if !self.serving => {}
                    Body::Note(note) => self.on_note(now, from, note, fx),
                    Body::Promise(promise) => self.on_promise(now, from, promise, fx),
                }
            }
        }
    }
}
