//! Reconciliation: a site gets what it lacks of the epochs before one, by difference objects.
//!
//! ```text
//!   puller                                     source
//!     ├── Pull (since, before) ─────────────────▶│ which rows were written in those epochs; their newest versions
//!     │◀────────────────────────── Differences ──┤
//!     │ which of them are newer than here        │
//!     ├── Fetch ────────────────────────────────▶│
//!     │◀─────────────────────────────── Copies ──┤
//!     │ sync; the next page                      │
//!     ├── Pull (commits) ───────────────────────▶│ which commits stand here and are not settled; what they wrote
//!     │◀─────────────────────────────── Commits ──┤
//!     │ put aside, sync                          │
//! ```
//!
//! For a change of configuration all sealed sites are sources, and have their say on the epoch that ends; the *anchor*, which holds
//! all that is older, on as many epochs as the puller has missed. The newest version counts. Section IV forgets the difference
//! objects at each change, so that a slave that was not promoted in one would lack them in the next: here they stay until all members
//! hold the epoch. Who was not waited for catches up from one that holds all.
//!
//! What a sealed source has said stays all that it knows, so that an attempt goes on where the one before came to, and a source that
//! has told all need not be asked again. A page that arrives is news: the mover tells everybody that its attempt advances.
//!
//! Commits that a sealed source has and that are not settled follow after its rows. They count only if the configuration that is decided
//! names them: until then they are put aside, on disk, and shown to nobody. A configuration names them and has none of their rows, so
//! that it stays small; of one that names a commit, each site that was reconciled for it has the rows.
//!
//! Invariants: what is copied was settled, so that it stays true whichever attempt prevails; a source that serves a change is
//! sealed, so that what it says is all; what a source tells is on its disk, so that it stays so over a crash; a copy is as new as what was
//! listed, or newer; a site says that it is reconciled once all it got is on disk; a question has a name that no incarnation of the site gives to
//! another one.

use super::config::{CATCH_UP_TRIES, DIFFERENCES_PAGE, EPOCHS_KEPT_MAX, SESSIONS_MAX};
use super::configuration::{Configuration, Epoch};
use super::context::{Context, Job, Shared};
use super::message::{Cursor, Difference, Differences, Note, Promise, Pull};
use super::planted::Planted;
use super::quorums::SITES_MAX;
use super::records::{ASIDE, BASE, Base, CommitRecord, DIFFERENCES, difference_key, read_difference, txn_key};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::record::encode;
use rhumb_core::{Ballot, Batch, Key, Row, SiteId, Table, Timestamp, TxnId, work};
use std::collections::{BTreeMap, BTreeSet};

/// How much of the past is at a site, and what it is getting of the rest.
#[derive(Clone, Debug, Default)]
pub(super) struct Reconciler {
    base: Base,
    pulling: Option<Pulling>,
    /// Commits of the epoch that ends, as sealed sources told of them.
    aside: BTreeMap<TxnId, CommitRecord>,
    /// Rows that were copied in this incarnation.
    copied: u64,
}

/// What a site is getting, or has got for an attempt.
#[derive(Clone, Debug)]
struct Pulling {
    /// All that was committed before this epoch.
    before: Epoch,
    /// The attempt whose mover waits for it; none: the site catches up by itself.
    attempt: Option<Ballot>,
    /// Who is asked: by this attempt, or by the site itself.
    sources: BTreeSet<SiteId>,
    /// How far each source has been got that was ever asked for this.
    pulls: BTreeMap<SiteId, Progress>,
    copied: u64,
    /// Answers that brought something, over all attempts.
    pages: u64,
}

impl Pulling {
    /// How many rows are to come.
    fn wanted(&self) -> usize {
        self.pulls.values().filter_map(|progress| progress.page.as_ref()).map(|page| page.wanted.len()).sum()
    }

    /// The sources that have not told all.
    fn left(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.sources.iter().filter(|source| !self.pulls[source].is_done).copied()
    }
}

/// What is got from one source.
#[derive(Clone, Debug)]
struct Progress {
    since: Epoch,
    after: Cursor,
    /// It has told all.
    is_done: bool,
    /// Names the question that waits for an answer.
    number: u64,
    /// The page that is being compared or fetched.
    page: Option<Page>,
    /// The tick at which it was last asked.
    told: u64,
    /// How often it was asked again since it last answered.
    again: u64,
}

#[derive(Clone, Debug)]
struct Page {
    entries: Vec<Difference>,
    next: Option<Cursor>,
    /// The rows that are to come, and the versions that the source has listed.
    wanted: BTreeMap<Key, Timestamp>,
}

impl Reconciler {
    /// That of a site of which so much is known to be there.
    pub(super) fn new(base: Base) -> Reconciler {
        Reconciler { base, ..Reconciler::default() }
    }

    /// How much of the past is here.
    pub(super) fn base(&self) -> Base {
        self.base
    }

    /// All that was committed before this epoch is here, as far as the site knows.
    pub(super) fn holds(&self) -> Epoch {
        self.base.holds
    }

    /// Rows that the site got from others in this incarnation because it lacked them.
    pub(super) fn copied(&self) -> u64 {
        self.copied
    }

    /// The same with nothing counted: what it goes on to do does not depend on that.
    #[cfg(test)]
    pub(super) fn uncounted(&self) -> Reconciler {
        Reconciler { copied: 0, ..self.clone() }
    }

    /// Adds to `batch` how much is here.
    pub(super) fn put_base(&self, batch: &mut Batch) {
        batch.put_record(BASE, Vec::new(), encode(&self.base));
    }

    /// An earlier incarnation held so much.
    pub(super) fn restore(&mut self, base: Base) {
        self.base = base;
    }

    /// An earlier incarnation put this commit aside.
    pub(super) fn restore_aside(&mut self, commit: CommitRecord) {
        self.aside.insert(commit.txn, commit);
    }

    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let wanted = self.pulling.as_ref().map_or(0, Pulling::wanted);
        visit(Table::new("pulling.wanted", wanted, SITES_MAX * DIFFERENCES_PAGE));
        visit(Table::new("aside", self.aside.len(), SITES_MAX * SESSIONS_MAX));
    }

    /// The epoch is over: takes what was put aside, and adds to `batch` that it no longer is.
    pub(super) fn take_aside(&mut self, batch: &mut Batch) -> BTreeMap<TxnId, CommitRecord> {
        self.aside.keys().for_each(|txn| batch.delete_record(ASIDE, txn_key(*txn)));
        std::mem::take(&mut self.aside)
    }

    /// The epoch is over: `next` says how much is here.
    pub(super) fn end_epoch(&mut self, next: &Configuration, batch: &mut Batch, cx: &Shared) {
        // What was told of this site in an epoch that it passed over, with the commits carried into that, does not count.
        let reconciled = next.bases.get(&cx.me) == Some(&next.epoch) || cx.rules.breaks(Planted::PassedOverClaimed);
        let holds = if reconciled { next.epoch } else { self.base.holds };
        // A site that is gone for long does not make the others keep what it has missed for ever.
        let oldest = next.oldest_base().max(Epoch(next.epoch.0.saturating_sub(EPOCHS_KEPT_MAX)));
        self.base = Base { holds, kept: self.base.kept.max(oldest) };
        self.put_base(batch);
    }

    /// A configuration is adopted: what was got for it is got. A site that catches up goes on with what it was at.
    pub(super) fn begin_epoch(&mut self, cx: &mut Context<'_>) {
        self.prune(cx);
        let holds = self.base.holds;
        let goes_on = |pulling: &Pulling| pulling.attempt.is_none() && pulling.before > holds;
        self.pulling = self.pulling.take().filter(|pulling| goes_on(pulling) || cx.rules.breaks(Planted::PullsKeptOverEpochs));
        self.catch_up(cx);
    }

    pub(super) fn on_reconcile(&mut self, ballot: Ballot, anchor: SiteId, sources: BTreeSet<SiteId>, cx: &mut Context<'_>) {
        let epoch = cx.configuration.epoch;
        let before = epoch.next();
        if let Some(Pulling { attempt: Some(known), pages, .. }) = self.pulling.as_ref().filter(|pulling| pulling.before == before) {
            if *known == ballot {
                cx.send(ballot.leader, Note::Advances { ballot, pages: *pages });
                return self.finish_if_pulled(cx);
            }
            if *known > ballot {
                return;
            }
        }
        let since = |site: &SiteId| if *site == anchor { self.base.holds.min(epoch) } else { epoch };
        let missing: BTreeMap<SiteId, Epoch> = sources.iter().filter(|site| **site != cx.me).map(|site| (*site, since(site))).collect();
        let missing = if cx.rules.breaks(Planted::ActivatedUnreconciled) { BTreeMap::new() } else { missing };
        self.pull(before, Some(ballot), missing, cx);
    }

    /// Gets what it missed of the epochs before this one, if it missed something and is not at it already.
    fn catch_up(&mut self, cx: &mut Context<'_>) {
        if self.pulling.is_some() || !cx.is_member() || self.base.holds >= cx.configuration.epoch {
            return;
        }
        let up = cx.reachable();
        let holders: Vec<SiteId> = cx.configuration.holders().filter(|site| *site != cx.me && up.contains(site)).collect();
        if let Some(source) = holders.get(cx.ticks as usize % holders.len().max(1)) {
            cx.fx.count("quad.catches_up");
            self.pull(cx.configuration.epoch, None, BTreeMap::from([(*source, self.base.holds)]), cx);
        }
    }

    /// Gets what was committed before that epoch: of each source what it lacks from an epoch on.
    fn pull(&mut self, before: Epoch, attempt: Option<Ballot>, missing: BTreeMap<SiteId, Epoch>, cx: &mut Context<'_>) {
        let is_for_this = |pulling: &Pulling| pulling.before == before || cx.rules.breaks(Planted::PullsKeptOverEpochs);
        let earlier = self.pulling.take().filter(|pulling| is_for_this(pulling) && pulling.attempt.is_some());
        let (mut pulls, copied, pages) = earlier.map_or_else(Default::default, |earlier| (earlier.pulls, earlier.copied, earlier.pages));
        let sources: BTreeSet<SiteId> = missing.keys().copied().collect();
        for (source, since) in missing {
            // What it was asked for from an earlier epoch on is more than enough.
            if pulls.get(&source).is_none_or(|progress| progress.since > since) {
                let number = cx.jobs.fresh_token();
                pulls
                    .insert(source, Progress { since, after: Cursor::Start, is_done: false, number, page: None, told: cx.ticks, again: 0 });
            }
        }
        let pulling = Pulling { before, attempt, sources, pulls, copied, pages };
        let left: Vec<SiteId> = pulling.left().collect();
        self.pulling = Some(pulling);
        for source in left {
            self.ask_source(source, cx);
        }
        self.finish_if_pulled(cx);
    }

    fn ask_source(&self, source: SiteId, cx: &mut Context<'_>) {
        let Some(pulling) = &self.pulling else { return };
        let Progress { since, after, number, page, .. } = &pulling.pulls[&source];
        let note = match page {
            None => Note::Pull(Pull { number: *number, since: *since, before: pulling.before, after: after.clone() }),
            Some(page) => Note::Fetch { number: *number, keys: page.wanted.keys().cloned().collect() },
        };
        cx.send(source, note);
    }

    /// The question `number` to `source`, if it is open.
    fn question(&mut self, source: SiteId, number: u64) -> Option<&mut Progress> {
        let pulling = self.pulling.as_mut().filter(|pulling| pulling.sources.contains(&source))?;
        pulling.pulls.get_mut(&source).filter(|progress| progress.number == number && !progress.is_done)
    }

    pub(super) fn on_differences(&mut self, from: SiteId, page: Differences, cx: &mut Context<'_>) {
        let Some(progress) = self.question(from, page.number).filter(|progress| progress.page.is_none()) else { return };
        progress.told = cx.ticks;
        let keys = page.entries.iter().map(|entry| entry.key.clone()).collect();
        if page.whole {
            let before = self.pulling.as_ref().expect("it was asked").before;
            self.base.kept = self.base.kept.max(before);
        }
        cx.load(Job::Compared { from, page }, Load::Stamps { keys });
    }

    pub(super) fn on_compared(&mut self, from: SiteId, page: Differences, loaded: Loaded, cx: &mut Context<'_>) {
        let Differences { number, entries, next, .. } = page;
        let Loaded::Rows { rows: own, .. } = loaded else { unreachable!("rows were asked for") };
        work::add(own.len());
        let Some(progress) = self.question(from, number).filter(|progress| progress.page.is_none()) else { return };
        let older = entries.iter().zip(&own).filter(|(entry, own)| own.version < entry.version);
        let wanted: BTreeMap<Key, Timestamp> = older.map(|(entry, _)| (entry.key.clone(), entry.version)).collect();
        let lacks_nothing = wanted.is_empty();
        progress.page = Some(Page { entries, next, wanted });
        if lacks_nothing {
            return self.take_page(from, Batch::new(), cx);
        }
        self.ask_source(from, cx);
    }

    /// Writes down what came, and asks for the rest of the page, if there is some. A copy older than the version that was listed is none: the
    /// source no longer has what it told of.
    pub(super) fn on_copies(&mut self, from: SiteId, number: u64, rows: Vec<Row>, cx: &mut Context<'_>) {
        let takes_all = cx.rules.breaks(Planted::OldCopiesTaken);
        let Some(progress) = self.question(from, number) else { return };
        let Some(page) = &mut progress.page else { return };
        let is_wanted = |row: &Row| page.wanted.get(&row.key).is_some_and(|listed| takes_all || row.version >= *listed);
        let rows: Vec<Row> = rows.into_iter().filter(is_wanted).collect();
        if rows.is_empty() {
            // No answer: it is asked again, and another source in the end.
            return cx.fx.count("quad.refused_copies");
        }
        work::add(rows.len());
        for row in &rows {
            page.wanted.remove(&row.key);
        }
        let is_whole = page.wanted.is_empty();
        progress.number = cx.jobs.fresh_token();
        let mut batch = Batch::new();
        self.pulling.as_mut().expect("it was asked").copied += rows.len() as u64;
        self.copied += rows.len() as u64;
        for row in rows {
            cx.observe(row.version, &mut batch);
            batch.put_version(row.key, row.version, row.value);
        }
        if is_whole {
            return self.take_page(from, batch, cx);
        }
        cx.fx.persist(batch);
        self.advance(from, cx);
        self.ask_source(from, cx);
    }

    /// Puts commits aside that the configuration to come may name.
    pub(super) fn on_commits(&mut self, from: SiteId, number: u64, commits: Vec<CommitRecord>, next: Option<Cursor>, cx: &mut Context<'_>) {
        let Some(progress) = self.question(from, number).filter(|progress| progress.page.is_none()) else { return };
        progress.page = Some(Page { entries: Vec::new(), next, wanted: BTreeMap::new() });
        let mut batch = Batch::new();
        for commit in commits {
            work::add(1 + commit.writes.len());
            batch.put_record(ASIDE, txn_key(commit.txn), encode(&commit));
            self.aside.insert(commit.txn, commit);
        }
        self.take_page(from, batch, cx);
    }

    /// Something has come from `source`.
    fn advance(&mut self, source: SiteId, cx: &mut Context<'_>) {
        cx.fx.count("quad.page");
        let pulling = self.pulling.as_mut().expect("it was asked");
        pulling.pages += 1;
        let progress = pulling.pulls.get_mut(&source).expect("it was asked");
        (progress.told, progress.again) = (cx.ticks, 0);
    }

    /// Writes down a page of differences, whose rows are here or in `batch`, and asks for the next one.
    fn take_page(&mut self, from: SiteId, mut batch: Batch, cx: &mut Context<'_>) {
        self.advance(from, cx);
        let pulling = self.pulling.as_mut().expect("there is a page");
        let progress = pulling.pulls.get_mut(&from).expect("there is a page");
        let Page { entries, next, .. } = progress.page.take().expect("there is a page");
        progress.number = cx.jobs.fresh_token();
        progress.is_done = next.is_none();
        progress.after = next.unwrap_or(Cursor::Start);
        for entry in entries.iter().filter(|entry| entry.epoch > Epoch(0)) {
            batch.put_record(DIFFERENCES, difference_key(entry.epoch, &entry.key), Vec::new());
        }
        if !progress.is_done {
            cx.fx.persist(batch);
            return self.ask_source(from, cx);
        }
        // The anchor has told all that is older than the epoch that ends, and need not be asked for it again, whoever is the anchor then.
        if pulling.attempt.is_some() && progress.since.next() < pulling.before {
            self.base.holds = self.base.holds.max(Epoch(pulling.before.0 - 1));
            self.put_base(&mut batch);
        }
        cx.fx.persist(batch);
        self.finish_if_pulled(cx);
    }

    /// If all is here: the mover hears of it, or the site itself holds so much from now on.
    fn finish_if_pulled(&mut self, cx: &mut Context<'_>) {
        let Some(pulling) = self.pulling.as_ref().filter(|pulling| pulling.left().next().is_none()) else { return };
        let Pulling { before, attempt, copied, .. } = *pulling;
        if attempt.is_none() {
            self.base.holds = before;
            self.pulling = None;
        }
        if copied > 0 {
            cx.fx.count("quad.reconciled");
        }
        let mut batch = Batch::new();
        self.put_base(&mut batch);
        match attempt {
            Some(ballot) => cx.promise(batch, ballot.leader, Promise::Reconciled { ballot, copied }),
            None => drop(cx.fx.persist(batch)),
        }
    }

    /// Asks again where no answer came; a site that catches up asks another one in the end.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        let (ticks, patience) = (cx.ticks, cx.config.doubt_ticks);
        let Some(pulling) = &mut self.pulling else { return self.catch_up(cx) };
        let late = |progress: &Progress| !progress.is_done && ticks >= progress.told + patience;
        let late: Vec<SiteId> = pulling.sources.iter().filter(|source| late(&pulling.pulls[source])).copied().collect();
        let mut is_silent = false;
        for source in &late {
            let progress = pulling.pulls.get_mut(source).expect("it is asked");
            (progress.told, progress.again) = (ticks, progress.again + 1);
            is_silent |= progress.again > CATCH_UP_TRIES;
        }
        if pulling.attempt.is_none() && is_silent {
            self.pulling = None;
            return self.catch_up(cx);
        }
        for source in late {
            self.ask_source(source, cx);
        }
    }

    /// Drops differences that no member asks for any more.
    fn prune(&self, cx: &mut Context<'_>) {
        let load = Load::Records { space: DIFFERENCES, from: Vec::new().into(), limit: DIFFERENCES_PAGE, bytes: usize::MAX };
        cx.load(Job::Old, load);
    }

    pub(super) fn on_old_loaded(&self, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        let old = |record: &[u8]| read_difference(record).is_some_and(|(epoch, _)| epoch < self.base.kept);
        let mut batch = Batch::new();
        for (record, _) in records.iter().filter(|(record, _)| old(record)) {
            batch.delete_record(DIFFERENCES, record.clone());
        }
        let goes_on = more && batch.ops.len() == records.len();
        if !batch.ops.is_empty() {
            cx.fx.persist(batch);
        }
        if goes_on {
            self.prune(cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::testing::{Bench, site, txn};
    use super::*;

    const BALLOT: Ballot = Ballot { number: 1, leader: SiteId::new(1, 0) };

    /// A site that is to hold all of the first epoch, which sites 1 and 2 know.
    fn reconciles() -> (Bench, Reconciler) {
        let mut bench = Bench::new(2, 3, Config::default());
        let mut reconciler = Reconciler::new(Base { holds: Epoch::FIRST, kept: Epoch(0) });
        bench.step(|cx| reconciler.on_reconcile(BALLOT, site(1), BTreeSet::from([0, 1, 2].map(site)), cx));
        (bench, reconciler)
    }

    /// What follows from what `from` tells of the row `k`, of which there is no version here.
    fn hears(bench: &mut Bench, reconciler: &mut Reconciler, from: u16, entries: Vec<Difference>) -> Vec<String> {
        let number = reconciler.pulling.as_ref().expect("it pulls").pulls[&site(from)].number;
        let own = entries.iter().map(|entry| Row { key: entry.key.clone(), version: Timestamp::ZERO, value: None }).collect();
        let page = Differences { number, entries, next: None, whole: false };
        bench.step(|cx| reconciler.on_differences(site(from), page.clone(), cx));
        bench.step(|cx| reconciler.on_compared(site(from), page, Loaded::Rows { rows: own, more: false }, cx));
        bench.lines()
    }

    #[test]
    fn a_site_is_reconciled_once_all_that_it_lacked_is_on_disk() {
        let (mut bench, mut reconciler) = reconciles();
        assert_eq!(bench.lines(), ["to r1.0: e1 pull 1: e1 to before e2", "to r2.0: e1 pull 2: e1 to before e2"]);
        let entry = Difference { key: "k".into(), version: Timestamp::from_bits(5), epoch: Epoch::FIRST };
        assert_eq!(hears(&mut bench, &mut reconciler, 1, vec![entry]), ["load versions k", "to r1.0: e1 fetch 1: 1"]);
        let number = reconciler.pulling.as_ref().expect("it pulls").pulls[&site(1)].number;
        let copy = Row { key: "k".into(), version: Timestamp::from_bits(5), value: None };
        bench.step(|cx| reconciler.on_copies(site(1), number, vec![copy], cx));
        assert_eq!(bench.lines(), ["sync +k +difference"]);
        assert_eq!(
            hears(&mut bench, &mut reconciler, 2, Vec::new()),
            ["load versions", "sync", "sync +base; then to r1.0: e1 reconciled 1@r1.0: 1 copied"]
        );
        assert_eq!((reconciler.copied(), reconciler.holds()), (1, Epoch::FIRST), "it holds more once that is decided");
    }

    #[test]
    fn a_source_that_does_not_answer_is_asked_again() {
        let (mut bench, mut reconciler) = reconciles();
        hears(&mut bench, &mut reconciler, 1, Vec::new());
        bench.shared.ticks = bench.shared.config.doubt_ticks;
        bench.step(|cx| reconciler.tick(cx));
        assert_eq!(bench.lines(), ["to r2.0: e1 pull 2: e1 to before e2"]);
    }

    #[test]
    fn commits_that_may_not_count_are_put_aside() {
        let (mut bench, mut reconciler) = reconciles();
        bench.lines();
        let number = reconciler.pulling.as_ref().expect("it pulls").pulls[&site(1)].number;
        let commit = CommitRecord { txn: txn(5, 1), at: Timestamp::from_bits(7), writes: vec![("k".into(), None)] };
        bench.step(|cx| reconciler.on_commits(site(1), number, vec![commit.clone()], None, cx));
        assert_eq!(bench.lines(), ["sync +aside"]);
        let mut batch = Batch::new();
        assert_eq!(reconciler.take_aside(&mut batch).into_values().collect::<Vec<_>>(), [commit]);
        assert_eq!(batch.ops.len(), 1, "nor are they kept aside any longer");
    }

    #[test]
    fn who_lacks_the_past_catches_up_from_one_that_holds_it() {
        let (mut bench, mut reconciler) = (Bench::new(2, 3, Config::default()), Reconciler::default());
        bench.step(|cx| reconciler.tick(cx));
        assert_eq!(bench.lines(), ["to r1.0: e1 pull 1: e0 to before e1"]);
        assert_eq!(hears(&mut bench, &mut reconciler, 1, Vec::new()), ["load versions", "sync", "sync +base"]);
        assert_eq!(reconciler.holds(), Epoch::FIRST);
    }
}
