//! What the other roles of a site see of its replica.

use super::Cohort;
use super::entry::{Entry, Stage};
use crate::config::PAGE_BYTES_MAX;
use crate::context::Shared;
use crate::message::{Attempt, Doubt};
use crate::records::PreparedRecord;
use crate::trace::{Dropped, Found};
use crate::views::{CohortView, Promised};
use rhumb_commit::votes::Vote;
use rhumb_core::{Key, RegionId, Timestamp, record, work};
use std::ops::Bound;

impl CohortView for Cohort {
    fn collected(&self) -> Timestamp {
        self.collected
    }

    fn dropped(&self) -> Dropped {
        Dropped { versions: self.history_floor, deletions: self.collected, taken_over: self.holes_upto }
    }

    fn lacks(&self, attempt: &Attempt) -> bool {
        match self.entries.get(attempt).map(|entry| &entry.stage) {
            Some(Stage::Prepared) => true,
            Some(Stage::Carried(carried)) => carried.trace.found() == Some(Found::Absent),
            Some(Stage::Validating(_) | Stage::Committing) | None => false,
        }
    }

    fn has_applied(&self, attempt: &Attempt) -> bool {
        self.applied.contains(attempt)
    }

    fn has_applied_later(&self, attempt: &Attempt) -> bool {
        let last = Attempt { txn: attempt.txn, made: Timestamp::MAX };
        self.applied.range((Bound::Excluded(*attempt), Bound::Included(last))).next().is_some()
    }

    fn has_entry(&self, attempt: &Attempt) -> bool {
        self.entries.contains_key(attempt)
    }

    fn highest(&self) -> Timestamp {
        self.highest
    }

    fn highest_applied(&self) -> Timestamp {
        self.highest_applied
    }

    fn is_bound(&self, attempt: &Attempt) -> bool {
        self.bound.contains_key(attempt)
    }

    fn log_end(&self) -> u64 {
        self.log_end
    }

    fn read_upto(&self) -> Timestamp {
        self.timestamp_cache.highest().max(self.collected)
    }

    fn votes_heard(&self, attempt: &Attempt) -> Vec<(RegionId, Vote)> {
        let heard = self.entries.get(attempt).into_iter().flat_map(|entry| entry.tally.final_votes());
        heard.map(|(region, vote)| (region, vote.clone())).collect()
    }

    fn lowest_promised_before(&self, epoch: u64) -> Option<Timestamp> {
        work::add(self.entries.len());
        let is_old = |entry: &&Entry| entry.is_promised() && entry.meta.epoch < epoch;
        self.entries.values().filter(is_old).map(|entry| entry.meta.at).min()
    }

    fn promised(&self) -> Box<dyn Iterator<Item = Promised<'_>> + '_> {
        Box::new(self.entries.values().filter(|entry| entry.is_promised()).map(Entry::promised))
    }

    fn promised_entry(&self, attempt: &Attempt) -> Option<Promised<'_>> {
        self.entries.get(attempt).filter(|entry| entry.is_promised()).map(Entry::promised)
    }

    fn promised_to_write(&self, key: &Key) -> Vec<Promised<'_>> {
        let holders = self.locks.exclusive_holders(key).filter_map(|txn| self.entry_of(txn));
        holders.filter(|entry| entry.is_promised()).map(Entry::promised).collect()
    }

    fn has_doubts(&self, cx: &Shared) -> bool {
        self.doubts_after(cx, None).next().is_some()
    }

    fn page_of_doubts(&self, cx: &Shared, after: Option<Attempt>) -> (Vec<Doubt>, bool) {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for entry in self.doubts_after(cx, after) {
            let record = PreparedRecord { meta: entry.meta.clone(), part: entry.part.clone() };
            let doubt = Doubt { record, carried: entry.as_carried().is_some() };
            bytes += record::encoded_bytes(&doubt);
            if bytes > PAGE_BYTES_MAX && !page.is_empty() {
                return (page, true);
            }
            page.push(doubt);
        }
        (page, false)
    }
}
