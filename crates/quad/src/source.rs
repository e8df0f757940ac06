//! A source: what a site tells those that lack something of the past. It changes nothing; what there is to tell is what the replica, the
//! reconciler and the disk hold. The messages are those of a reconciliation (`reconcile.rs`).
//!
//! Invariants: a source that serves a change is sealed, so that what it says is all; what it tells is on its disk, so that it stays so over a
//! crash; a page is bounded in rows and in bytes.

use super::config::{COPIES_BYTES_MAX, DIFFERENCES_PAGE, PAGE_BYTES_MAX};
use super::configuration::Epoch;
use super::context::{Asked, Context, Job, Shared};
use super::message::{Cursor, Difference, Differences, Promise, Pull, fitting};
use super::planted::Planted;
use super::records::{Base, CommitRecord, DIFFERENCES, difference_key, read_difference};
use super::replica::Replica;
use rhumb_core::actor::{Load, Loaded};
use rhumb_core::{Batch, Key, KeyRange, SiteId, Timestamp, TxnId, work};

/// What a site can tell of the past.
pub(super) struct Source<'a> {
    /// How much of it is here.
    pub(super) base: Base,
    pub(super) replica: &'a Replica,
    /// The epoch is sealed here.
    pub(super) is_sealed: bool,
}

impl Source<'_> {
    /// To the source: what was written?
    pub(super) fn on_pull(&self, from: SiteId, asked_in: Epoch, pull: Pull, cx: &mut Context<'_>) {
        let Pull { number, since, before, after } = pull;
        let (epoch, asked) = (cx.configuration.epoch, Asked { by: from, number });
        // Who asks from within the next epoch has to have what was carried into that, and it is not known here what was.
        let is_sealed = epoch.next() == before && asked_in == epoch && self.is_sealed;
        let is_past = epoch >= before && self.base.holds >= before;
        if !is_sealed && !is_past {
            return;
        }
        if let Cursor::Commit(last) = after {
            return self.send_commits(asked, last, cx);
        }
        if since < self.base.kept {
            let everything = KeyRange::prefix(&[]);
            let range = match after {
                Cursor::Row(last) => KeyRange::new(last.successor(), everything.end),
                _ => everything,
            };
            let load = Load::ScanStamps { range, limit: page_rows(cx), bytes: PAGE_BYTES_MAX };
            return cx.load(Job::AllRows { asked, before }, load);
        }
        let from_key = match after {
            Cursor::Difference(last) => [&last[..], &[0]].concat(),
            _ => difference_key(since, &Key::default()),
        };
        let load = Load::Records { space: DIFFERENCES, from: from_key.into(), limit: page_rows(cx), bytes: usize::MAX };
        cx.load(Job::Differences { asked, before }, load);
    }

    pub(super) fn on_differences_loaded(&self, asked: Asked, before: Epoch, loaded: Loaded, cx: &mut Context<'_>) {
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
        let next = next.or_else(|| self.first_commit(before, cx));
        let keys = found.iter().map(|(_, key)| key.clone()).collect();
        let epochs = found.into_iter().map(|(epoch, _)| epoch).collect();
        cx.load(Job::Versions { asked, epochs, next }, Load::Stamps { keys });
    }

    pub(super) fn on_versions_loaded(&self, asked: Asked, epochs: Vec<Epoch>, next: Option<Cursor>, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        let entries = rows.into_iter().zip(epochs).map(|(row, epoch)| Difference { key: row.key, version: row.version, epoch }).collect();
        answer(asked, Promise::Differences(Differences { number: asked.number, entries, next, whole: false }), cx);
    }

    pub(super) fn on_all_rows_loaded(&self, asked: Asked, before: Epoch, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let next = rows.last().filter(|_| more).map(|last| Cursor::Row(last.key.clone())).or_else(|| self.first_commit(before, cx));
        let entries = rows.into_iter().map(|row| Difference { key: row.key, version: row.version, epoch: Epoch(0) }).collect();
        answer(asked, Promise::Differences(Differences { number: asked.number, entries, next, whole: true }), cx);
    }

    pub(super) fn on_fetch(&self, asked: Asked, keys: Vec<Key>, cx: &mut Context<'_>) {
        if keys.len() <= DIFFERENCES_PAGE {
            cx.load(Job::Copies(asked), Load::Get { keys, at: Timestamp::MAX, bytes: COPIES_BYTES_MAX });
        }
    }

    pub(super) fn on_copies_loaded(&self, asked: Asked, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        answer(asked, Promise::Copies { number: asked.number, rows }, cx);
    }

    /// Where a source goes on once all rows are told: at the commits that are not settled, if there are some.
    fn first_commit(&self, before: Epoch, cx: &Shared) -> Option<Cursor> {
        let has_some = cx.configuration.epoch.next() == before && self.replica.has_commits();
        (has_some && !cx.rules.breaks(Planted::CarriedNotFetched)).then_some(Cursor::Commit(None))
    }

    fn send_commits(&self, asked: Asked, last: Option<TxnId>, cx: &mut Context<'_>) {
        let (mut commits, mut more, mut bytes) = (Vec::new(), false, 0);
        for commit in self.replica.commits(last) {
            work::add(1 + commit.writes.len());
            bytes += commit.bytes();
            more = !commits.is_empty() && (bytes > COPIES_BYTES_MAX || commits.len() == page_rows(cx));
            if more {
                break;
            }
            commits.push(commit);
        }
        let next = commits.last().filter(|_| more).map(|last: &CommitRecord| Cursor::Commit(Some(last.txn)));
        answer(asked, Promise::Commits { number: asked.number, commits, next }, cx);
    }
}

/// A source's answer. What it says of the past follows from what it has adopted and copied itself, and the puller takes it for all that
/// there is: it leaves once that is on disk, so that no crash takes back what was told.
fn answer(asked: Asked, promise: Promise, cx: &mut Context<'_>) {
    cx.promise(Batch::new(), asked.by, promise);
}

fn page_rows(cx: &Shared) -> usize {
    cx.config.page_rows.clamp(1, DIFFERENCES_PAGE)
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::testing::{Bench, site};
    use super::*;

    /// What follows from a pull of what was written in the first epoch, by a site that is in `asked_in`.
    fn pulled(is_sealed: bool, kept: Epoch, asked_in: Epoch) -> Vec<String> {
        let mut bench = Bench::new(2, 3, Config::default());
        let source = Source { base: Base { holds: Epoch::FIRST, kept }, replica: &Replica::default(), is_sealed };
        let pull = Pull { number: 1, since: Epoch::FIRST, before: Epoch(2), after: Cursor::Start };
        bench.step(|cx| source.on_pull(site(1), asked_in, pull, cx));
        bench.lines()
    }

    #[test]
    fn of_an_epoch_that_goes_on_nothing_is_told() {
        assert_eq!(pulled(false, Epoch(0), Epoch::FIRST).len(), 0);
        assert_eq!(pulled(true, Epoch(0), Epoch(2)).len(), 0, "what was carried into the next one is not known here");
        assert_eq!(pulled(true, Epoch(0), Epoch::FIRST), ["load difference records"]);
    }

    #[test]
    fn whoever_knows_no_differences_goes_through_all_rows() {
        let lines = pulled(true, Epoch(2), Epoch::FIRST);
        assert!(lines[0].starts_with("load ScanStamps"), "{lines:?}");
    }

    #[test]
    fn differences_are_answered_with_the_versions_that_are_here() {
        let mut bench = Bench::new(2, 3, Config::default());
        let source = Source { base: Base::default(), replica: &Replica::default(), is_sealed: true };
        let asked = Asked { by: site(1), number: 3 };
        let records = vec![(difference_key(Epoch::FIRST, &"k".into()).into(), Vec::new().into())];
        bench.step(|cx| source.on_differences_loaded(asked, Epoch(2), Loaded::Records { records, more: false }, cx));
        assert_eq!(bench.lines(), ["load versions k"]);
        let row = rhumb_core::Row { key: "k".into(), version: Timestamp::from_bits(5), value: None };
        bench.step(|cx| source.on_versions_loaded(asked, vec![Epoch::FIRST], None, Loaded::Rows { rows: vec![row], more: false }, cx));
        assert_eq!(bench.lines(), ["sync; then to r1.0: e1 differences 3: 1"]);
    }
}
