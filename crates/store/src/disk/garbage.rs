//! Garbage is dropped when table files are merged.
//!
//! What supersedes it is in one of those files, hence durable. A view that was opened before reads the files as they were.

use crate::sieve::Sieve;
use lsm_tree::compaction::filter::Context;
use lsm_tree::compaction::{CompactionFilter, Factory, ItemAccessor, Verdict};
use rhumb_core::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Up to where versions that are superseded are garbage.
#[derive(Clone, Debug, Default)]
pub struct Horizon(Arc<AtomicU64>);

impl Horizon {
    /// Raises it.
    pub fn raise(&self, horizon: Timestamp) {
        self.0.fetch_max(horizon.bits(), Ordering::Relaxed);
    }
}

impl Factory for Horizon {
    fn name(&self) -> &str {
        "superseded versions"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter(Sieve::new(Timestamp::from_bits(self.0.load(Ordering::Relaxed)))))
    }
}

/// Of one merge, which shows it what is in the files in order.
struct Filter(Sieve);

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        // Without a mark that it was removed: should an older copy of it lie in a file that is not merged now, that one is garbage, too.
        Ok(if self.0.is_garbage(item.key()) { Verdict::Destroy } else { Verdict::Keep })
    }
}
