//! The threads that keep a store small: one writes full write buffers to table files, one merges table files.
//!
//! ```text
//!   writer  ──full──▶ sealed: segment 7, segment 8 ──flush──▶ table files ──merge──▶ fewer table files
//!              ◀──── waits while there are SEALED_MAX, or UNMERGED_MAX table files lie about ────
//! ```
//!
//! There are no timers: both sleep until a write buffer is full. If one of them fails, no more writes are taken.

use super::{Shared, Writing, store_error};
use lsm_tree::AbstractTree;
use lsm_tree::compaction::Leveled;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, MutexGuard};
use std::thread::JoinHandle;
use std::{fs, io, panic, thread};

/// Full write buffers that are on their way to table files, at the most: with one more, writes wait.
pub const SEALED_MAX: usize = 2;
/// A table file has about so many bytes: when it is synced, whoever syncs the journal waits for it.
const TABLE_BYTES: u64 = 32 << 20;
/// Table files that lie about unmerged, beyond those that may: with one more, writes wait.
pub const UNMERGED_MAX: usize = 16;

/// The threads of a store.
pub struct Keepers(Vec<JoinHandle<()>>);

impl Keepers {
    /// Starts both threads.
    pub fn start(shared: &Arc<Shared>) -> io::Result<Keepers> {
        let thread = |name: &str, work: fn(&Shared) -> lsm_tree::Result<()>| {
            let shared = Arc::clone(shared);
            thread::Builder::new().name(name.into()).spawn(move || run(&shared, work))
        };
        let mut keepers = Keepers(vec![thread("store-flush", flush_all)?]);
        match thread("store-merge", merge_all) {
            Ok(merge) => keepers.0.push(merge),
            Err(error) => {
                keepers.stop(shared);
                return Err(error);
            }
        }
        Ok(keepers)
    }

    /// Has both end, once they are done with what they do now.
    pub fn stop(&mut self, shared: &Shared) {
        shared.lock().closing = true;
        shared.changed.notify_all();
        for thread in self.0.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Works until the store is closed or the work fails; then no more writes are taken.
fn run(shared: &Shared, work: fn(&Shared) -> lsm_tree::Result<()>) {
    let cause = match panic::catch_unwind(AssertUnwindSafe(|| work(shared))) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => store_error(&shared.path, error).to_string(),
        Err(_) => "a thread of the store panicked".to_owned(),
    };
    tracing::error!("{} takes no more writes: {cause}", shared.path.display());
    shared.lock().failed.get_or_insert(cause);
    shared.changed.notify_all();
}

fn flush_all(shared: &Shared) -> lsm_tree::Result<()> {
    loop {
        let mut writing = shared.lock();
        while writing.sealed.is_empty() && !writing.closing {
            writing = shared.wait(writing);
        }
        if writing.closing {
            return Ok(());
        }
        flush(shared, writing)?;
    }
}

/// Writes the write buffers that are sealed to a table file, and gives up their segments.
pub fn flush(shared: &Shared, writing: MutexGuard<'_, Writing>) -> lsm_tree::Result<()> {
    let sealed: Vec<u64> = writing.sealed.iter().copied().collect();
    drop(writing);
    let before = shared.current();
    shared.tree.flush(&shared.tree.get_flush_lock(), shared.views.oldest())?;
    let mut writing = shared.lock();
    let retired = shared.let_go(&writing, before)?;
    writing.sealed.retain(|segment| !sealed.contains(segment));
    writing.merge_due = true;
    let mut surplus = Vec::new();
    for segment in sealed {
        if !writing.journal.recycle(segment, 2 * shared.options.write_buffer_bytes)? {
            surplus.push(writing.journal.path_of(segment));
        }
    }
    drop(writing);
    shared.changed.notify_all();
    drop(retired);
    surplus.iter().try_for_each(|path| Ok(fs::remove_file(path)?))
}

fn merge_all(shared: &Shared) -> lsm_tree::Result<()> {
    loop {
        let mut writing = shared.lock();
        while !writing.merge_due && !writing.closing {
            writing = shared.wait(writing);
        }
        if writing.closing {
            return Ok(());
        }
        writing.merge_due = false;
        drop(writing);
        let strategy = Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES).with_l0_threshold(shared.options.unmerged_files));
        let (before, version) = (shared.current(), shared.tree.current_version().id());
        shared.tree.compact(strategy, shared.views.oldest())?;
        let mut writing = shared.lock();
        let retired = shared.let_go(&writing, before)?;
        // One merge may make the next one due.
        writing.merge_due |= shared.tree.current_version().id() != version;
        drop(writing);
        shared.changed.notify_all();
        drop(retired);
    }
}
