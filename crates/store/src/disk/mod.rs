//! The embedded default: a log-structured merge tree of the library `lsm-tree` in a data folder, and a journal of our own before it.
//!
//! ```text
//!   write  ──▶ journal (in memory) ──▶ write buffer ──▶ shows in views
//!   sync   ──▶ journal (on disk)
//!   full   ──▶ the segment of the journal is sealed with the write buffer, both anew; the old buffer goes to a table file,
//!              then the old segment is used again
//! ```
//!
//! One tree holds all. A write buffer and a segment belong together: what the segment has, the buffer has. Table files hold
//! what was written up to a batch, and say which one ([`FLUSHED`]): the journal must begin there or before.
//!
//! When table files are merged, garbage is dropped (`garbage.rs`).
//!
//! Views take no lock that a writer holds for long: they show what is below a sequence number that rises when a batch is in.
//!
//! **Damage.** Blocks of table files carry checksums that are verified whenever one is read from disk; lists of table files are checked by
//! [`manifest`], the journal by [`journal`]. A mark has the [stamp](crate::Stamp) of the store.

mod garbage;
mod keeper;
pub mod manifest;
mod options;
#[cfg(test)]
mod tests;
mod views;

use crate::engine::{Engine, Entries, View, Write};
use crate::error::{StoreError, damage, io_error};
use crate::folder::Folder;
use crate::journal::{self, Journal, Recovered};
use crate::private;
use crate::small_file::sync_folder;
use crate::stamp::{Stamp, Syncs};
use bytes::Bytes;
use garbage::Horizon;
use keeper::Keepers;
use lsm_tree::config::{CompressionPolicy, FilterPolicy, PinningPolicy};
use lsm_tree::{AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard, SeqNo, SequenceNumberCounter};
use rhumb_core::Timestamp;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use views::Views;

pub use keeper::{SEALED_MAX, UNMERGED_MAX};
pub use options::DiskOptions;

const TREE: &str = "tree";
const JOURNAL: &str = "journal";
/// The number of the last batch that a write buffer had when it was sealed.
pub const FLUSHED: &[u8] = b"\x00flushed";

/// An engine in a data folder.
pub struct DiskEngine {
    shared: Arc<Shared>,
    keepers: Keepers,
    /// How often it has synced, for others.
    syncs: Syncs,
    /// A test has the next sync fail.
    #[cfg(test)]
    sync_fails: std::sync::atomic::AtomicBool,
    /// Last, so that the folder stays locked until all is closed.
    _folder: Folder,
}

/// What the threads of a store share.
struct Shared {
    path: PathBuf,
    options: DiskOptions,
    tree: AnyTree,
    /// The next sequence number.
    sequence: SequenceNumberCounter,
    views: Views,
    horizon: Horizon,
    /// States of the tree that views may see, each with a sequence number from which on no view does.
    retired: Mutex<Vec<(SeqNo, Box<dyn Send>)>>,
    writing: Mutex<Writing>,
    /// Something was sealed, flushed or merged, or it ends.
    changed: Condvar,
}

/// Held by whoever writes or syncs.
struct Writing {
    journal: Journal,
    /// True if nothing was written since the last sync: the next write carries a mark.
    synced: bool,
    /// What the last mark said; none as long as no site has begun to write the store.
    stamp: Option<Stamp>,
    /// The first failure: nobody knows what of the last group is on disk, so nothing may follow it, not even a mark.
    failed: Option<String>,
    /// Segments whose write buffers are on their way to table files.
    sealed: VecDeque<u64>,
    /// Table files may want to be merged.
    merge_due: bool,
    closing: bool,
}

impl DiskEngine {
    /// Opens the engine in the data folder `path`, making it if it is empty or not there.
    pub fn open(path: &Path, options: DiskOptions) -> Result<DiskEngine, StoreError> {
        let folder = Folder::open(path, |engine| make(engine, options))?;
        let engine = folder.engine();
        let shared = Arc::new(Shared::open(engine.clone(), options)?);
        let keepers = Keepers::start(&shared).map_err(|source| io_error(&engine, source))?;
        let engine = DiskEngine {
            shared,
            keepers,
            syncs: Syncs::default(),
            #[cfg(test)]
            sync_fails: false.into(),
            _folder: folder,
        };
        engine.mark(&mut engine.shared.lock())?;
        Ok(engine)
    }

    /// Whether a data folder was made in `path`, so that to open it would not make one.
    pub fn is_made(path: &Path) -> bool {
        Folder::is_made(path)
    }

    /// The folder in the data folder `path` that holds all that the engine has on disk.
    pub fn files_of(path: &Path) -> PathBuf {
        Folder::engine_of(path)
    }

    /// The same of this engine.
    pub fn files(&self) -> &Path {
        &self.shared.path
    }

    /// Which incarnation of its site has written the store, and how often it has synced in that; none if no site has begun to.
    pub fn stamp(&self) -> Option<Stamp> {
        self.shared.lock().stamp
    }

    /// From now on the store is written by `incarnation`; that is on disk when this returns.
    pub fn begin(&self, incarnation: u64) -> Result<(), StoreError> {
        let mut writing = self.shared.lock();
        writing.stamp = Some(Stamp { incarnation, syncs: 0 });
        self.mark(&mut writing)
    }

    /// How often it has synced, kept up to date.
    pub fn syncs(&self) -> Syncs {
        self.syncs.clone()
    }

    /// Vouches for all that was written before: syncs it, and leaves the mark once more behind it.
    fn mark(&self, writing: &mut Writing) -> Result<(), StoreError> {
        self.persist(writing)?;
        let stamp = writing.stamp;
        self.shared.unless_failed(writing, |writing| writing.journal.append(Some(stamp), &[]))?;
        self.persist(writing)
    }

    /// Makes durable what was written.
    fn persist(&self, writing: &mut Writing) -> Result<(), StoreError> {
        self.shared.unless_failed(writing, |writing| self.sync_journal(&mut writing.journal))?;
        writing.synced = true;
        self.syncs.synced(writing.stamp.map_or(0, |stamp| stamp.syncs));
        Ok(())
    }

    fn sync_journal(&self, journal: &mut Journal) -> std::io::Result<()> {
        #[cfg(test)]
        if self.sync_fails.swap(false, std::sync::atomic::Ordering::Relaxed) {
            // As a disk fails: what was written is with the system, and perhaps nowhere else.
            journal.flush()?;
            return Err(rustix::io::Errno::IO.into());
        }
        journal.sync()
    }
}

impl Drop for DiskEngine {
    fn drop(&mut self) {
        // Without the mark nothing is lost: only damage to the last writes would go unnoticed.
        if self.mark(&mut self.shared.lock()).is_ok() {
            self.syncs.close();
        }
        self.keepers.stop(&self.shared);
    }
}

impl Shared {
    /// Opens the engine in the folder `path`, which is made, and has table files hold what of the journal is in sealed segments.
    fn open(path: PathBuf, options: DiskOptions) -> Result<Shared, StoreError> {
        manifest::check(&path.join(TREE))?;
        let tree_error = |error| store_error(&path, error);
        let sequence = SequenceNumberCounter::default();
        let horizon = Horizon::default();
        let tree = open_tree(&path, options, &sequence, horizon.clone()).map_err(tree_error)?;
        sequence.set(tree.get_highest_persisted_seqno().map_or(1, |highest| highest + 1));
        let flushed = match tree.get(FLUSHED, sequence.get()).map_err(tree_error)? {
            Some(value) => u64::from_be_bytes(value.as_ref().try_into().map_err(|_| damage(&path, "its count of batches is garbled"))?),
            None => 0,
        };
        let recovered = journal::recover(&path.join(JOURNAL), flushed, |writes| insert(&tree, sequence.next(), writes))?;
        let Recovered { journal, sealed, stamp } = recovered;
        let sealed: VecDeque<u64> = sealed.into();
        let whole = sealed.is_empty();
        let writing = Writing { journal, synced: true, stamp, failed: None, sealed, merge_due: true, closing: false };
        let shared = Shared {
            options,
            tree,
            sequence,
            views: Views::default(),
            horizon,
            retired: Mutex::default(),
            writing: Mutex::new(writing),
            changed: Condvar::new(),
            path,
        };
        let mut writing = shared.lock();
        shared.show_all(&writing);
        if whole {
            drop(writing);
        } else {
            // Of the newest segment, too: what table files hold of it will be passed over.
            shared.set_buffer_aside(&mut writing);
            keeper::flush(&shared, writing).map_err(|error| store_error(&shared.path, error))?;
        }
        Ok(shared)
    }

    /// Should the tree panic, whoever closes the store still can; a journal has no halves of batches, whenever that is.
    fn lock(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change.
    fn wait<'a>(&self, writing: MutexGuard<'a, Writing>) -> MutexGuard<'a, Writing> {
        self.changed.wait(writing).unwrap_or_else(PoisonError::into_inner)
    }

    /// Has views show all that has a sequence number. `_writing` says that no batch is half in.
    fn show_all(&self, _writing: &MutexGuard<'_, Writing>) {
        self.views.publish(self.sequence.get());
    }

    /// The state of the tree, which is kept as long as this is.
    fn current(&self) -> Box<dyn Send> {
        Box::new(self.tree.get_version_history_lock().latest_version())
    }

    /// After table files were written or merged: shows all, and has the tree let go of write buffers and files that nobody sees any more. `before` is the
    /// state before that. What is let go of is freed with what this returns, which takes long, so not while others wait for a lock.
    fn let_go(&self, writing: &MutexGuard<'_, Writing>, before: Box<dyn Send>) -> lsm_tree::Result<Vec<Box<dyn Send>>> {
        self.show_all(writing);
        let (superseded_at, oldest) = (self.sequence.get(), self.views.oldest());
        self.tree.get_version_history_lock().maintenance(&self.path.join(TREE), oldest)?;
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.push((superseded_at, before));
        Ok(retired.extract_if(.., |(at, _)| *at <= oldest).map(|(_, state)| state).collect())
    }

    /// Writes or syncs, but never again after that has failed once.
    fn unless_failed(&self, writing: &mut Writing, write: impl FnOnce(&mut Writing) -> std::io::Result<()>) -> Result<(), StoreError> {
        self.check(writing)?;
        write(writing).map_err(|error| {
            writing.failed = Some(error.to_string());
            io_error(&self.path, error)
        })
    }

    /// Nothing has failed so far.
    fn check(&self, writing: &Writing) -> Result<(), StoreError> {
        match &writing.failed {
            Some(cause) => Err(StoreError::Poisoned { path: self.path.clone(), cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Seals the newest segment with its write buffer, once there is room for one more.
    fn seal_if_full<'a>(&'a self, mut writing: MutexGuard<'a, Writing>) -> Result<MutexGuard<'a, Writing>, StoreError> {
        self.check(&writing)?;
        let buffered = self.tree.active_memtable().size().max(writing.journal.bytes());
        if buffered < self.options.write_buffer_bytes {
            return Ok(writing);
        }
        let unmerged_max = usize::from(self.options.unmerged_files) + UNMERGED_MAX;
        while writing.failed.is_none() && (writing.sealed.len() >= SEALED_MAX || self.tree.l0_run_count() >= unmerged_max) {
            writing = self.wait(writing);
        }
        self.seal(&mut writing)?;
        self.changed.notify_all();
        Ok(writing)
    }

    fn seal(&self, writing: &mut Writing) -> Result<(), StoreError> {
        let stamp = writing.stamp;
        self.unless_failed(writing, |writing| writing.journal.seal(stamp))?;
        self.set_buffer_aside(writing);
        writing.synced = true;
        writing.sealed.push_back(writing.journal.segment() - 1);
        Ok(())
    }

    /// Begins a new write buffer; the old one, which is to go to a table file, says up to which batch it goes.
    fn set_buffer_aside(&self, writing: &mut Writing) {
        self.tree.insert(FLUSHED, writing.journal.last().to_be_bytes(), self.sequence.next());
        self.tree.rotate_memtable();
    }
}

impl Engine for DiskEngine {
    fn view(&self) -> Box<dyn View + '_> {
        Box::new(DiskView { shared: &self.shared, snapshot: self.shared.views.open() })
    }

    fn write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        let shared = &self.shared;
        let mut writing = shared.seal_if_full(shared.lock())?;
        let next = writing.stamp.map(|stamp| Stamp { syncs: stamp.syncs + u64::from(writing.synced), ..stamp });
        let mark = writing.synced.then_some(next);
        shared.unless_failed(&mut writing, |writing| writing.journal.append(mark, &writes))?;
        insert(&shared.tree, shared.sequence.next(), writes);
        shared.show_all(&writing);
        (writing.synced, writing.stamp) = (false, next);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.persist(&mut self.shared.lock())
    }

    fn collect(&self, horizon: Timestamp) {
        self.shared.horizon.raise(horizon);
    }
}

/// What a view shows does not change while it is open.
struct DiskView<'a> {
    shared: &'a Shared,
    snapshot: SeqNo,
}

impl View for DiskView<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let found = self.shared.tree.get(key, self.snapshot).map_err(|error| store_error(&self.shared.path, error))?;
        Ok(found.map(Bytes::from))
    }

    fn range(&self, start: &[u8], end: &[u8], reverse: bool) -> Entries<'_> {
        let guards = self.shared.tree.range(start..end, self.snapshot, None);
        let entry = |guard: lsm_tree::IterGuardImpl| match guard.into_inner() {
            Ok((key, value)) => Ok((Bytes::from(key), Bytes::from(value))),
            Err(error) => Err(store_error(&self.shared.path, error)),
        };
        if reverse { Box::new(guards.rev().map(entry)) } else { Box::new(guards.map(entry)) }
    }
}

impl Drop for DiskView<'_> {
    fn drop(&mut self) {
        self.shared.views.close(self.snapshot);
    }
}

/// Makes an empty engine in the folder `engine`; it is on disk when this returns.
fn make(engine: &Path, options: DiskOptions) -> Result<(), StoreError> {
    open_tree(engine, options, &SequenceNumberCounter::default(), Horizon::default()).map_err(|error| store_error(engine, error))?;
    let journal = engine.join(JOURNAL);
    private::make_folder(&journal)
        .and_then(|()| Journal::make(&journal))
        .and_then(|()| sync_folder(engine))
        .map_err(|source| io_error(engine, source))
}

fn open_tree(engine: &Path, options: DiskOptions, sequence: &SequenceNumberCounter, horizon: Horizon) -> lsm_tree::Result<AnyTree> {
    // What the tree says may be seen is not asked: it does not know whether a batch is half in.
    Config::new(engine.join(TREE), sequence.clone(), SequenceNumberCounter::default())
        .use_cache(Arc::new(Cache::with_capacity_bytes(options.cache_bytes)))
        .use_descriptor_table(Some(Arc::new(DescriptorTable::new(options.open_files))))
        // Rows are read by range, which no filter can speed up.
        .filter_policy(FilterPolicy::disabled())
        .with_compaction_filter_factory(Some(Arc::new(horizon)))
        // The index of a table of the two newest levels stays in memory. Of older ones there are too many for that:
        // it is cut into parts, and a read loads the part that it needs instead of the whole.
        .index_block_partitioning_policy(PinningPolicy::new([false, false, true]))
        // The two newest levels are written again soon.
        .data_block_compression_policy(CompressionPolicy::new([CompressionType::None, CompressionType::None, CompressionType::Lz4]))
        .open()
}

/// Puts a batch into the write buffer.
fn insert(tree: &AnyTree, sequence: SeqNo, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::Put { key, value } => tree.insert(key, value, sequence),
            Write::Remove { key } => tree.remove(key, sequence),
        };
    }
}

/// What an error of the tree means to the operator.
fn store_error(path: &Path, error: lsm_tree::Error) -> StoreError {
    match error {
        lsm_tree::Error::Io(source) => match source.kind() {
            // Invalid input: a damaged offset led to a place that no file has.
            ErrorKind::UnexpectedEof | ErrorKind::NotFound | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                damage(path, format!("a file is missing, cut short or garbled ({source})"))
            }
            _ => io_error(path, source),
        },
        other => damage(path, other.to_string()),
    }
}
