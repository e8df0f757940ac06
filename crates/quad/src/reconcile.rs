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
//! listed, or newer; a site says that it is reconciled once all it got is on disk; a question has a name that no life of the site gives to
//! another one.

use super::config::{CATCH_UP_TRIES, COPIES_BYTES_MAX, DIFFERENCES_PAGE, PAGE_BYTES_MAX};
use super::configuration::Epoch;
use super::message::{Cursor, Difference, Note, Promise};
use super::planted::Planted;
use super::records::{ASIDE, BASE, CommitRecord, DIFFERENCES, difference_key, read_difference, txn_key};
use super::site::{Loading, Site};
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::record::encode;
use rhumb_core::{Ballot, Batch, Effects, Key, KeyRange, Row, SiteId, Timestamp, TxnId, work};
use std::collections::{BTreeMap, BTreeSet};

/// What a site is getting, or has got for an attempt.
#[derive(Debug)]
pub(super) struct Pulling {
    /// All that was committed before this epoch.
    before: Epoch,
    /// The mover who waits for it; none: the site catches up by itself.
    mover: Option<(SiteId, Ballot)>,
    /// Who is asked: by this attempt, or by the site itself.
    sources: BTreeSet<SiteId>,
    /// How far each source has been got that was ever asked for this.
    pulls: BTreeMap<SiteId, Pull>,
    copied: u64,
    /// Answers that brought something, over all attempts.
    pages: u64,
}

impl Pulling {
    /// How many rows are to come.
    pub(super) fn wanted(&self) -> usize {
        self.pulls.values().filter_map(|pull| pull.page.as_ref()).map(|page| page.wanted.len()).sum()
    }

    /// The sources that have not told all.
    fn left(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.sources.iter().filter(|source| !self.pulls[source].is_done).copied()
    }
}

/// What is got from one source.
#[derive(Debug)]
struct Pull {
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

#[derive(Debug)]
struct Page {
    entries: Vec<Difference>,
    next: Option<Cursor>,
    /// The rows that are to come, and the versions that the source has listed.
    wanted: BTreeMap<Key, Timestamp>,
}

impl Site {
    pub(super) fn on_reconcile(&mut self, from: SiteId, ballot: Ballot, anchor: SiteId, sources: BTreeSet<SiteId>, fx: &mut Effects<Site>) {
        let epoch = self.configuration.epoch;
        let before = epoch.next();
        if let Some(Pulling { mover: Some((_, known)), pages, .. }) = self.pulling.as_ref().filter(|pulling| pulling.before == before) {
            if *known == ballot {
                fx.send(from, epoch.says(Note::Advances { ballot, pages: *pages }));
                return self.finish_if_pulled(fx);
            }
            if *known > ballot {
                return;
            }
        }
        let since = |site: &SiteId| if *site == anchor { self.base.holds.min(epoch) } else { epoch };
        let plan: Vec<(SiteId, Epoch)> = sources.iter().filter(|site| **site != self.me).map(|site| (*site, since(site))).collect();
        let plan = if self.rules.breaks(Planted::ActivatedUnreconciled) { Vec::new() } else { plan };
        self.pull(before, Some((from, ballot)), plan, fx);
    }

    /// Gets what it missed of the epochs before this one, if it missed something and is not at it already.
    pub(super) fn catch_up(&mut self, fx: &mut Effects<Site>) {
        if self.pulling.is_some() || !self.is_member() || self.base.holds >= self.configuration.epoch {
            return;
        }
        let up = self.reachable();
        let holders: Vec<SiteId> = self.configuration.holders().filter(|site| *site != self.me && up.contains(site)).collect();
        if let Some(source) = holders.get(self.ticks as usize % holders.len().max(1)) {
            fx.count("quad.catches_up");
            self.pull(self.configuration.epoch, None, vec![(*source, self.base.holds)], fx);
        }
    }

    /// A configuration is adopted: what was got for it is got. A site that catches up goes on with what it was at.
    pub(super) fn end_reconciliation(&mut self) {
        let holds = self.base.holds;
        self.pulling = self.pulling.take().filter(|pulling| pulling.mover.is_none() && pulling.before > holds);
    }

    fn pull(&mut self, before: Epoch, mover: Option<(SiteId, Ballot)>, plan: Vec<(SiteId, Epoch)>, fx: &mut Effects<Site>) {
        let earlier = self.pulling.take().filter(|pulling| pulling.before == before && pulling.mover.is_some());
        let (mut pulls, copied, pages) = earlier.map_or_else(Default::default, |earlier| (earlier.pulls, earlier.copied, earlier.pages));
        let sources: BTreeSet<SiteId> = plan.iter().map(|(source, _)| *source).collect();
        for (source, since) in plan {
            // What it was asked for from an earlier epoch on is more than enough.
            if pulls.get(&source).is_none_or(|pull| pull.since > since) {
                self.tokens += 1;
                let number = self.tokens;
                pulls.insert(source, Pull { since, after: Cursor::Start, is_done: false, number, page: None, told: self.ticks, again: 0 });
            }
        }
        let pulling = Pulling { before, mover, sources, pulls, copied, pages };
        let left: Vec<SiteId> = pulling.left().collect();
        self.pulling = Some(pulling);
        for source in left {
            self.ask_source(source, fx);
        }
        self.finish_if_pulled(fx);
    }

    fn ask_source(&self, source: SiteId, fx: &mut Effects<Site>) {
        let Some(pulling) = &self.pulling else { return };
        let Pull { since, after, number, page, .. } = &pulling.pulls[&source];
        let note = match page {
            None => Note::Pull { number: *number, since: *since, before: pulling.before, after: after.clone() },
            Some(page) => Note::Fetch { number: *number, keys: page.wanted.keys().cloned().collect() },
        };
        fx.send(source, self.configuration.epoch.says(note));
    }

    /// The question `number` to `source`, if it is open.
    fn question(&mut self, source: SiteId, number: u64) -> Option<&mut Pull> {
        let pulling = self.pulling.as_mut().filter(|pulling| pulling.sources.contains(&source))?;
        pulling.pulls.get_mut(&source).filter(|pull| pull.number == number && !pull.is_done)
    }

    /// To the source: what was written?
    pub(super) fn on_pull(
        &mut self,
        (from, asked_in): (SiteId, Epoch),
        number: u64,
        since: Epoch,
        before: Epoch,
        after: Cursor,
        fx: &mut Effects<Site>,
    ) {
        let epoch = self.configuration.epoch;
        // Who asks from within the next epoch has to have what was carried into that, and it is not known here what was.
        let is_sealed = epoch.next() == before && asked_in == epoch && self.sealed.is_some();
        let is_past = epoch >= before && self.base.holds >= before;
        if !is_sealed && !is_past {
            return;
        }
        if let Cursor::Commit(last) = after {
            return self.tell_commits(from, number, last, fx);
        }
        if since < self.base.kept {
            let everything = KeyRange::prefix(&[]);
            let range = match after {
                Cursor::Row(last) => KeyRange::new(last.successor(), everything.end),
                _ => everything,
            };
            let load = Load::ScanStamps { range, limit: self.page_rows(), bytes: PAGE_BYTES_MAX };
            return self.load(Loading::AllRows { to: from, number, before }, load, fx);
        }
        let from_key = match after {
            Cursor::Difference(last) => [&last[..], &[0]].concat(),
            _ => difference_key(since, &Key::default()),
        };
        let load = Load::Records { space: DIFFERENCES, from: from_key.into(), limit: self.page_rows(), bytes: usize::MAX };
        self.load(Loading::Differences { to: from, number, before }, load, fx);
    }

    /// A source's answer. What it says of the past follows from what it has adopted and copied itself, and the puller takes it for all that
    /// there is: it leaves once that is on disk, so that no crash takes back what was told.
    fn tell(&self, to: SiteId, told: Promise, fx: &mut Effects<Site>) {
        fx.persist(Batch::new()).send(to, self.configuration.epoch.says(told));
    }

    fn page_rows(&self) -> usize {
        self.config.page_rows.clamp(1, DIFFERENCES_PAGE)
    }

    /// Where a source goes on once all rows are told: at the commits that are not settled, if there are some.
    fn first_commit(&self, before: Epoch) -> Option<Cursor> {
        let has_some = self.configuration.epoch.next() == before && self.replica.has_commits();
        let has_some = has_some && !self.rules.breaks(Planted::CarriedNotFetched);
        has_some.then_some(Cursor::Commit(None))
    }

    fn tell_commits(&mut self, to: SiteId, number: u64, last: Option<TxnId>, fx: &mut Effects<Site>) {
        let (mut commits, mut more, mut bytes) = (Vec::new(), false, 0);
        for commit in self.replica.commits(last) {
            work::add(1 + commit.writes.len());
            bytes += commit.bytes();
            more = !commits.is_empty() && (bytes > COPIES_BYTES_MAX || commits.len() == self.page_rows());
            if more {
                break;
            }
            commits.push(commit);
        }
        let next = commits.last().filter(|_| more).map(|last: &CommitRecord| Cursor::Commit(Some(last.txn)));
        self.tell(to, Promise::Commits { number, commits, next }, fx);
    }

    pub(super) fn on_differences_loaded(&mut self, (to, number): (SiteId, u64), before: Epoch, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        let fit = fitting(records.iter().map(|(record, _)| record.len()), PAGE_BYTES_MAX).min(records.len());
        let more = more || fit < records.len();
        let records = &records[..fit];
        work::add(fit);
        let mut next = records.last().filter(|_| more).map(|(last, _)| Cursor::Difference(last.to_vec()));
        let mut found: Vec<(Epoch, Key)> = Vec::new();
        for (record, _) in records {
            let (epoch, key) = read_difference(record).expect("the store holds what this protocol wrote");
            if epoch >= before {
                next = None;
                break;
            }
            found.push((epoch, key));
        }
        let next = next.or_else(|| self.first_commit(before));
        let keys = found.iter().map(|(_, key)| key.clone()).collect();
        let epochs = found.into_iter().map(|(epoch, _)| epoch).collect();
        self.load(Loading::Versions { to, number, epochs, next }, Load::Stamps { keys }, fx);
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
        self.tell(to, Promise::Differences { number, entries, next, whole: false }, fx);
    }

    pub(super) fn on_all_rows_loaded(&mut self, (to, number): (SiteId, u64), before: Epoch, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let next = rows.last().filter(|_| more).map(|last| Cursor::Row(last.key.clone())).or_else(|| self.first_commit(before));
        let entries = rows.into_iter().map(|row| (row.key, row.version, Epoch(0))).collect();
        self.tell(to, Promise::Differences { number, entries, next, whole: true }, fx);
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
        self.load(Loading::Compared { from, number, entries, next }, Load::Stamps { keys }, fx);
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
        work::add(own.len());
        let Some(pull) = self.question(from, number).filter(|pull| pull.page.is_none()) else { return };
        let older = entries.iter().zip(&own).filter(|((_, version, _), own)| own.version < *version);
        let wanted: BTreeMap<Key, Timestamp> = older.map(|((key, version, _), _)| (key.clone(), *version)).collect();
        let lacks_nothing = wanted.is_empty();
        pull.page = Some(Page { entries, next, wanted });
        if lacks_nothing {
            return self.take_page(from, Batch::new(), fx);
        }
        self.ask_source(from, fx);
    }

    pub(super) fn on_fetch(&mut self, from: SiteId, number: u64, keys: Vec<Key>, fx: &mut Effects<Site>) {
        if keys.len() <= DIFFERENCES_PAGE {
            self.load(Loading::Copies { to: from, number }, Load::Get { keys, at: Timestamp::MAX, bytes: COPIES_BYTES_MAX }, fx);
        }
    }

    pub(super) fn on_copies_loaded(&mut self, to: SiteId, number: u64, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        self.tell(to, Promise::Copies { number, rows }, fx);
    }

    /// Writes down what came, and asks for the rest of the page, if there is some. A copy older than the version that was listed is none: the
    /// source no longer has what it told of.
    pub(super) fn on_copies(&mut self, from: SiteId, number: u64, rows: Vec<Row>, fx: &mut Effects<Site>) {
        let name = self.tokens + 1;
        let takes_all = self.rules.breaks(Planted::OldCopiesTaken);
        let Some(pull) = self.question(from, number) else { return };
        let Some(page) = &mut pull.page else { return };
        let is_wanted = |row: &Row| page.wanted.get(&row.key).is_some_and(|listed| takes_all || row.version >= *listed);
        let rows: Vec<Row> = rows.into_iter().filter(is_wanted).collect();
        if rows.is_empty() {
            // No answer: it is asked again, and another source in the end.
            return fx.count("quad.refused_copies");
        }
        work::add(rows.len());
        for row in &rows {
            page.wanted.remove(&row.key);
        }
        let is_whole = page.wanted.is_empty();
        pull.number = name;
        self.tokens = name;
        let mut batch = Batch::new();
        self.pulling.as_mut().expect("it was asked").copied += rows.len() as u64;
        self.tally.copied += rows.len() as u64;
        for row in rows {
            self.observe(row.version, &mut batch);
            batch.put_version(row.key, row.version, row.value);
        }
        if is_whole {
            return self.take_page(from, batch, fx);
        }
        fx.persist(batch);
        self.advance(from, fx);
        self.ask_source(from, fx);
    }

    /// Puts commits aside that the configuration to come may name.
    pub(super) fn on_commits(
        &mut self,
        from: SiteId,
        number: u64,
        commits: Vec<CommitRecord>,
        next: Option<Cursor>,
        fx: &mut Effects<Site>,
    ) {
        let Some(pull) = self.question(from, number).filter(|pull| pull.page.is_none()) else { return };
        pull.page = Some(Page { entries: Vec::new(), next, wanted: BTreeMap::new() });
        let mut batch = Batch::new();
        for commit in commits {
            work::add(1 + commit.writes.len());
            batch.put_record(ASIDE, txn_key(commit.txn), encode(&commit));
            self.aside.insert(commit.txn, commit);
        }
        self.take_page(from, batch, fx);
    }

    /// Something has come from `source`.
    fn advance(&mut self, source: SiteId, fx: &mut Effects<Site>) {
        let ticks = self.ticks;
        fx.count("quad.page");
        let pulling = self.pulling.as_mut().expect("it was asked");
        pulling.pages += 1;
        let pull = pulling.pulls.get_mut(&source).expect("it was asked");
        (pull.told, pull.again) = (ticks, 0);
    }

    /// Writes down a page of differences, whose rows are here or in `batch`, and asks for the next one.
    fn take_page(&mut self, from: SiteId, mut batch: Batch, fx: &mut Effects<Site>) {
        self.advance(from, fx);
        self.tokens += 1;
        let pulling = self.pulling.as_mut().expect("there is a page");
        let pull = pulling.pulls.get_mut(&from).expect("there is a page");
        let Page { entries, next, .. } = pull.page.take().expect("there is a page");
        pull.number = self.tokens;
        pull.is_done = next.is_none();
        pull.after = next.unwrap_or(Cursor::Start);
        for (key, _, epoch) in entries.iter().filter(|(_, _, epoch)| *epoch > Epoch(0)) {
            batch.put_record(DIFFERENCES, difference_key(*epoch, key), Vec::new());
        }
        if !pull.is_done {
            fx.persist(batch);
            return self.ask_source(from, fx);
        }
        // The anchor has told all that is older than the epoch that ends, and need not be asked for it again, whoever is the anchor then.
        if pulling.mover.is_some() && pull.since.next() < pulling.before {
            self.base.holds = self.base.holds.max(Epoch(pulling.before.0 - 1));
            batch.put_record(BASE, Vec::new(), encode(&self.base));
        }
        fx.persist(batch);
        self.finish_if_pulled(fx);
    }

    /// If all is here: the mover hears of it, or the site itself holds so much from now on.
    fn finish_if_pulled(&mut self, fx: &mut Effects<Site>) {
        let Some(pulling) = self.pulling.as_ref().filter(|pulling| pulling.left().next().is_none()) else { return };
        let Pulling { before, mover, copied, .. } = *pulling;
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

    /// Asks again where no answer came; a site that catches up asks another one in the end.
    pub(super) fn tick_pulling(&mut self, fx: &mut Effects<Site>) {
        let (ticks, patience) = (self.ticks, self.config.doubt_ticks);
        let Some(pulling) = &mut self.pulling else { return self.catch_up(fx) };
        let late = |pull: &Pull| !pull.is_done && ticks >= pull.told + patience;
        let late: Vec<SiteId> = pulling.sources.iter().filter(|source| late(&pulling.pulls[source])).copied().collect();
        let mut is_silent = false;
        for source in &late {
            let pull = pulling.pulls.get_mut(source).expect("it is asked");
            (pull.told, pull.again) = (ticks, pull.again + 1);
            is_silent |= pull.again > CATCH_UP_TRIES;
        }
        if pulling.mover.is_none() && is_silent {
            self.pulling = None;
            return self.catch_up(fx);
        }
        for source in late {
            self.ask_source(source, fx);
        }
    }

    /// Drops differences that no member asks for any more.
    pub(super) fn prune(&mut self, fx: &mut Effects<Site>) {
        let load = Load::Records { space: DIFFERENCES, from: Vec::new().into(), limit: DIFFERENCES_PAGE, bytes: usize::MAX };
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

/// How many of the first things have no more than so many bytes in sum; one at least, if there is one.
pub(super) fn fitting(bytes: impl Iterator<Item = usize>, bytes_max: usize) -> usize {
    let mut sum = 0;
    let fit = bytes.take_while(|bytes| {
        sum += bytes;
        sum <= bytes_max
    });
    fit.count().max(1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn copies_are_cut_where_their_bytes_end_and_a_large_row_goes_alone() {
        let fitting = |bytes: &[usize], bytes_max| super::fitting(bytes.iter().copied(), bytes_max);
        assert_eq!(fitting(&[10, 10, 10], 20), 2);
        assert_eq!(fitting(&[10, 10, 10], 30), 3);
        assert_eq!(fitting(&[100, 2], 20), 1);
    }
}
