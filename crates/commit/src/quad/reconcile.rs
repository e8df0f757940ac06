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
//! ```
//!
//! For a change of configuration all sealed sites are sources, and have their say on the epoch that ends; the *anchor*, which holds
//! all that is older, on as many epochs as the puller has missed. The newest version counts. Section IV forgets the difference
//! objects at each change, so that a slave that was not promoted in one would lack them in the next: here they stay until all members
//! hold the epoch. Who was not waited for catches up from one that holds all.
//!
//! Invariants: what is copied was settled, so that it stays true whichever attempt prevails; a source that serves a change is
//! sealed, so that what it says is all; a site says that it is reconciled once all it got is on disk.

use super::config::DIFFERENCES_PAGE;
use super::configuration::{Ballot, Epoch};
use super::message::{Cursor, Difference, Note, Promise};
#[cfg(feature = "planted")]
use super::planted::Planted;
use super::records::{BASE, DIFFERENCES, difference_key, read_difference};
use super::site::{Loading, Site};
use crate::replicated_commit::records::encode;
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{Batch, Effects, Key, KeyRange, Row, SiteId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What a site is getting, or has got for an attempt.
#[derive(Debug)]
pub(super) struct Pulling {
    /// All that was committed before this epoch.
    before: Epoch,
    /// The mover who waits for it; none: the site catches up by itself.
    mover: Option<(SiteId, Ballot)>,
    left: BTreeMap<SiteId, Pull>,
    copied: u64,
}

/// What is got from one source.
#[derive(Debug)]
struct Pull {
    since: Epoch,
    after: Cursor,
    /// Names the question that waits for an answer.
    number: u64,
    /// The page that is being compared or fetched.
    page: Option<Page>,
    /// The tick at which it was last asked.
    told: u64,
}

#[derive(Debug)]
struct Page {
    entries: Vec<Difference>,
    next: Option<Cursor>,
    keys: Vec<Key>,
}

impl Site {
    pub(super) fn on_reconcile(&mut self, from: SiteId, ballot: Ballot, anchor: SiteId, sources: BTreeSet<SiteId>, fx: &mut Effects<Site>) {
        let epoch = self.configuration.epoch;
        let mover = Some((from, ballot));
        let is_running = self.pulling.as_ref().is_some_and(|pulling| pulling.mover == mover && pulling.before == epoch.next());
        if is_running {
            if self.pulling.as_ref().is_some_and(|pulling| pulling.left.is_empty()) {
                self.finish_pulling(fx);
            }
            return;
        }
        let since = |site: &SiteId| if *site == anchor { self.base.holds.min(epoch) } else { epoch };
        let plan: Vec<(SiteId, Epoch)> = sources.iter().filter(|site| **site != self.me).map(|site| (*site, since(site))).collect();
        #[cfg(feature = "planted")]
        let plan = if self.has_planted(Planted::ActivatedUnreconciled) { Vec::new() } else { plan };
        self.pull(epoch.next(), mover, plan, fx);
    }

    /// Gets what it missed of the epochs before this one, if it missed something.
    pub(super) fn catch_up(&mut self, fx: &mut Effects<Site>) {
        self.pulling = None;
        if !self.is_member() || self.base.holds >= self.configuration.epoch {
            return;
        }
        let up = self.reachable();
        let holders: Vec<SiteId> = self.configuration.holders().filter(|site| *site != self.me && up.contains(site)).collect();
        if let Some(source) = holders.get(self.ticks as usize % holders.len().max(1)) {
            fx.count("quad.catches_up");
            self.pull(self.configuration.epoch, None, vec![(*source, self.base.holds)], fx);
        }
    }

    fn pull(&mut self, before: Epoch, mover: Option<(SiteId, Ballot)>, plan: Vec<(SiteId, Epoch)>, fx: &mut Effects<Site>) {
        let mut left = BTreeMap::new();
        for (source, since) in plan {
            self.tokens += 1;
            left.insert(source, Pull { since, after: Cursor::Start, number: self.tokens, page: None, told: self.ticks });
        }
        let sources: Vec<SiteId> = left.keys().copied().collect();
        self.pulling = Some(Pulling { before, mover, left, copied: 0 });
        for source in sources {
            self.ask_source(source, fx);
        }
        self.finish_if_pulled(fx);
    }

    fn ask_source(&self, source: SiteId, fx: &mut Effects<Site>) {
        let Some(pulling) = &self.pulling else { return };
        let Pull { since, after, number, page, .. } = &pulling.left[&source];
        let note = match page {
            None => Note::Pull { number: *number, since: *since, before: pulling.before, after: after.clone() },
            Some(page) => Note::Fetch { number: *number, keys: page.keys.clone() },
        };
        fx.send(source, self.configuration.epoch.says(note));
    }

    /// The question `number` to `source`, if it is open.
    fn question(&mut self, source: SiteId, number: u64) -> Option<&mut Pull> {
        self.pulling.as_mut()?.left.get_mut(&source).filter(|pull| pull.number == number)
    }

    /// To the source: what was written?
    pub(super) fn on_pull(&mut self, from: SiteId, number: u64, since: Epoch, before: Epoch, after: Cursor, fx: &mut Effects<Site>) {
        let epoch = self.configuration.epoch;
        let is_sealed = epoch.next() == before && self.sealed.is_some();
        let is_past = epoch >= before && self.base.holds >= before;
        if !is_sealed && !is_past {
            return;
        }
        if since < self.base.kept {
            let everything = KeyRange::prefix(&[]);
            let range = match after {
                Cursor::Row(last) => KeyRange::new(last.successor(), everything.end),
                _ => everything,
            };
            let load = Load::Scan { range, at: Timestamp::MAX, limit: DIFFERENCES_PAGE, reverse: false };
            return self.load(Loading::AllRows { to: from, number }, load, fx);
        }
        let from_key = match after {
            Cursor::Difference(last) => [&last[..], &[0]].concat(),
            _ => difference_key(since, &Key::default()),
        };
        let load = Load::Records { space: DIFFERENCES, from: from_key.into(), limit: DIFFERENCES_PAGE };
        self.load(Loading::Differences { to: from, number, before }, load, fx);
    }

    pub(super) fn on_differences_loaded(&mut self, to: SiteId, number: u64, before: Epoch, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        let mut next = records.last().filter(|_| more).map(|(last, _)| Cursor::Difference(last.to_vec()));
        let mut found: Vec<(Epoch, Key)> = Vec::new();
        for (record, _) in &records {
            let (epoch, key) = read_difference(record).expect("the store holds what this protocol wrote");
            if epoch >= before {
                next = None;
                break;
            }
            found.push((epoch, key));
        }
        let keys = found.iter().map(|(_, key)| key.clone()).collect();
        let epochs = found.into_iter().map(|(epoch, _)| epoch).collect();
        self.load(Loading::Versions { to, number, epochs, next }, Load::Get { keys, at: Timestamp::MAX }, fx);
    }

    pub(super) fn on_versions_loaded(
        &mut self,
        (to, number): (SiteId, u64),
        epochs: Vec<Epoch>,
        next: Option<Cursor>,
        loaded: Loaded,
        fx: &mut Effects<Site>,
    ) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        let entries = rows.into_iter().zip(epochs).map(|(row, epoch)| (row.key, row.version, epoch)).collect();
        fx.send(to, self.configuration.epoch.says(Note::Differences { number, entries, next, whole: false }));
    }

    pub(super) fn on_all_rows_loaded(&mut self, to: SiteId, number: u64, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let next = rows.last().filter(|_| more).map(|last| Cursor::Row(last.key.clone()));
        let entries = rows.into_iter().map(|row| (row.key, row.version, Epoch(0))).collect();
        fx.send(to, self.configuration.epoch.says(Note::Differences { number, entries, next, whole: true }));
    }

    pub(super) fn on_differences(
        &mut self,
        from: SiteId,
        number: u64,
        (entries, next): (Vec<Difference>, Option<Cursor>),
        whole: bool,
        fx: &mut Effects<Site>,
    ) {
        let ticks = self.ticks;
        let Some(pull) = self.question(from, number).filter(|pull| pull.page.is_none()) else { return };
        pull.told = ticks;
        let keys = entries.iter().map(|(key, ..)| key.clone()).collect();
        if whole {
            let before = self.pulling.as_ref().expect("it was asked").before;
            self.base.kept = self.base.kept.max(before);
        }
        self.load(Loading::Compared { from, number, entries, next }, Load::Get { keys, at: Timestamp::MAX }, fx);
    }

    pub(super) fn on_compared(
        &mut self,
        (from, number): (SiteId, u64),
        entries: Vec<Difference>,
        next: Option<Cursor>,
        loaded: Loaded,
        fx: &mut Effects<Site>,
    ) {
        let Loaded::Rows { rows: own, .. } = loaded else { unreachable!("rows were asked for") };
        let Some(pull) = self.question(from, number).filter(|pull| pull.page.is_none()) else { return };
        let older = entries.iter().zip(&own).filter(|((_, version, _), own)| own.version < *version);
        let keys: BTreeSet<Key> = older.map(|((key, ..), _)| key.clone()).collect();
        pull.page = Some(Page { entries, next, keys: keys.iter().cloned().collect() });
        if keys.is_empty() {
            return self.take_page(from, Vec::new(), fx);
        }
        self.ask_source(from, fx);
    }

    pub(super) fn on_fetch(&mut self, from: SiteId, number: u64, keys: Vec<Key>, fx: &mut Effects<Site>) {
        if keys.len() <= DIFFERENCES_PAGE {
            self.load(Loading::Copies { to: from, number }, Load::Get { keys, at: Timestamp::MAX }, fx);
        }
    }

    pub(super) fn on_copies_loaded(&mut self, to: SiteId, number: u64, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        fx.send(to, self.configuration.epoch.says(Note::Copies { number, rows }));
    }

    pub(super) fn on_copies(&mut self, from: SiteId, number: u64, rows: Vec<Row>, fx: &mut Effects<Site>) {
        if self.question(from, number).is_some_and(|pull| pull.page.is_some()) {
            self.take_page(from, rows, fx);
        }
    }

    /// Writes down a page of differences, with the rows that were missing, and asks for the next one.
    fn take_page(&mut self, from: SiteId, rows: Vec<Row>, fx: &mut Effects<Site>) {
        self.tokens += 1;
        let (number, ticks) = (self.tokens, self.ticks);
        let pulling = self.pulling.as_mut().expect("there is a page");
        let pull = pulling.left.get_mut(&from).expect("there is a page");
        let Page { entries, next, .. } = pull.page.take().expect("there is a page");
        pulling.copied += rows.len() as u64;
        let is_last = next.is_none();
        match next {
            Some(next) => {
                pull.after = next;
                (pull.number, pull.told) = (number, ticks);
            }
            None => drop(pulling.left.remove(&from)),
        }
        let mut batch = Batch::new();
        for (key, _, epoch) in entries.iter().filter(|(_, _, epoch)| *epoch > Epoch(0)) {
            batch.put_record(DIFFERENCES, difference_key(*epoch, key), Vec::new());
        }
        for row in rows {
            self.observe(row.version, &mut batch);
            batch.put_version(row.key, row.version, row.value);
        }
        fx.persist(batch);
        if is_last {
            self.finish_if_pulled(fx);
        } else {
            self.ask_source(from, fx);
        }
    }

    fn finish_if_pulled(&mut self, fx: &mut Effects<Site>) {
        if self.pulling.as_ref().is_some_and(|pulling| pulling.left.is_empty()) {
            self.finish_pulling(fx);
        }
    }

    /// All is here: the mover hears of it, or the site itself holds so much from now on.
    fn finish_pulling(&mut self, fx: &mut Effects<Site>) {
        let Some(Pulling { before, mover, copied, .. }) = &self.pulling else { return };
        let (before, mover, copied) = (*before, *mover, *copied);
        if mover.is_none() {
            self.base.holds = before;
            self.pulling = None;
        }
        if copied > 0 {
            fx.count("quad.reconciled");
        }
        let mut batch = Batch::new();
        batch.put_record(BASE, Vec::new(), encode(&self.base));
        let persist = fx.persist(batch);
        if let Some((mover, ballot)) = mover {
            persist.send(mover, self.configuration.epoch.says(Promise::Reconciled { ballot, copied }));
        }
    }

    /// Asks again where no answer came; a site that catches up asks another one.
    pub(super) fn tick_pulling(&mut self, fx: &mut Effects<Site>) {
        let (ticks, patience) = (self.ticks, self.config.doubt_ticks);
        let Some(pulling) = &mut self.pulling else { return self.catch_up(fx) };
        let late = pulling.left.iter_mut().filter(|(_, pull)| ticks >= pull.told + patience);
        let late: Vec<SiteId> = late.map(|(source, pull)| (pull.told = ticks, *source).1).collect();
        if late.is_empty() {
            return;
        }
        if pulling.mover.is_none() {
            return self.catch_up(fx);
        }
        for source in late {
            self.ask_source(source, fx);
        }
    }

    /// Drops differences that no member asks for any more.
    pub(super) fn prune(&mut self, fx: &mut Effects<Site>) {
        let load = Load::Records { space: DIFFERENCES, from: Vec::new().into(), limit: DIFFERENCES_PAGE };
        self.load(Loading::Old, load, fx);
    }

    pub(super) fn on_old_loaded(&mut self, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        let old = |record: &[u8]| read_difference(record).is_some_and(|(epoch, _)| epoch < self.base.kept);
        let mut batch = Batch::new();
        for (record, _) in records.iter().filter(|(record, _)| old(record)) {
            batch.delete_record(DIFFERENCES, record.clone());
        }
        let goes_on = more && batch.ops.len() == records.len();
        if !batch.ops.is_empty() {
            fx.persist(batch);
        }
        if goes_on {
            self.prune(fx);
        }
    }
}
