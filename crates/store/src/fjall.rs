//! The embedded default: the log-structured engine fjall in a data folder.
//!
//! One keyspace holds all. Writes go to fjall's journal and its memtable; `sync` flushes the journal and waits for
//! `fdatasync`. There are no timers: fjall's one worker thread sleeps until a memtable is full, so an idle site costs
//! nothing.
//!
//! **Damage.** Blocks of table files carry checksums that fjall verifies whenever it reads one from disk. Its journal has
//! checksums too, but recovery takes the first unreadable entry for the end of what was written and cuts off the rest;
//! [`journal`] therefore checks the journals before fjall opens them, with the help of marks: the first
//! write after a sync carries one, so damage that a mark follows lies in what was synced, and no crash can have made it. A mark's value is
//! the [stamp](crate::stamp) of the store.
//! The lists of table files are checked by [`manifest`].

use crate::engine::{Engine, Entries, View, Write};
use crate::error::StoreError;
use crate::error::io_error;
use crate::folder::Folder;
use crate::journal;
use crate::manifest;
use crate::private;
use crate::stamp::{Stamp, Syncs};
use bytes::Bytes;
use fjall::compaction::Leveled;
use fjall::config::FilterPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

const KEYSPACE: &str = "store";
/// Sleeps unless there is something to flush or compact.
const WORKER_THREADS: usize = 1;

/// The bounds of an engine's memory, files and journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FjallOptions {
    /// Cached blocks of table files, in bytes.
    pub cache_bytes: u64,
    /// Writes held in memory before they go to a table file, in bytes; twice as much for a while when one is written.
    pub write_buffer_bytes: u64,
    /// Journals on disk, in bytes: past this, write buffers are flushed to be rid of the oldest. At least 64 MiB.
    pub journal_bytes: u64,
    /// Table files kept open. At least 10.
    pub open_files: usize,
    /// Newly written table files that lie about before they are merged with the older ones: more of them spare writes
    /// and cost reads. Taken over when the engine is made, not when it is opened again.
    pub unmerged_files: u8,
}

impl FjallOptions {
    /// Small: five sites share one machine.
    pub const DEFAULT: FjallOptions =
        FjallOptions { cache_bytes: 32 << 20, write_buffer_bytes: 16 << 20, journal_bytes: 128 << 20, open_files: 128, unmerged_files: 4 };
}

impl Default for FjallOptions {
    fn default() -> FjallOptions {
        FjallOptions::DEFAULT
    }
}

/// The mark that was written last.
struct Marks {
    /// True if nothing was written since the last sync: the next write carries the next mark.
    synced: bool,
    /// What it said; none as long as no site has begun to write the store.
    stamp: Option<Stamp>,
    /// True once a write or a sync failed: nobody knows what of the last group is on disk, so nothing may follow it, not even a mark.
    failed: bool,
}

/// An engine in a data folder.
pub struct FjallEngine {
    path: PathBuf,
    /// Held by whoever writes or syncs, so that nothing slips in between a sync and the mark that vouches for it.
    marks: Mutex<Marks>,
    /// What others may know of the marks.
    syncs: Syncs,
    /// Held while a batch becomes visible, and shared while a snapshot is taken: the database's own threads may publish a
    /// sequence number above that of a batch that is only half in, and a snapshot at it would show the half.
    publishing: RwLock<()>,
    /// A test has the next sync fail.
    #[cfg(test)]
    sync_fails: std::sync::atomic::AtomicBool,
    keyspace: Keyspace,
    database: Database,
    /// Last, so that the folder stays locked until the database is closed.
    _folder: Folder,
}

impl FjallEngine {
    /// Opens the engine in the data folder `path`, making it if it is empty or not there.
    pub fn open(path: &Path, options: FjallOptions) -> Result<FjallEngine, StoreError> {
        let folder = Folder::open(path, |engine| {
            let (database, _) = start(engine, options).map_err(|error| store_error(path, error))?;
            database.persist(PersistMode::SyncAll).map_err(|error| store_error(path, error))
        })?;
        let engine = folder.engine();
        manifest::check(&engine)?;
        journal::check(&engine)?;
        let (database, keyspace) = start(&engine, options).map_err(|error| store_error(&engine, error))?;
        let value = keyspace.get(journal::MARK).map_err(|error| store_error(&engine, error))?;
        let marks = Mutex::new(Marks { synced: true, stamp: Stamp::decode(value.as_deref())?, failed: false });
        let (syncs, publishing) = (Syncs::default(), RwLock::new(()));
        let engine = FjallEngine {
            path: engine,
            marks,
            syncs,
            publishing,
            #[cfg(test)]
            sync_fails: false.into(),
            keyspace,
            database,
            _folder: folder,
        };
        engine.mark(&mut engine.lock())?;
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
        &self.path
    }

    /// Which incarnation of its site has written the store, and how often it has synced in that; none if no site has begun to.
    pub fn stamp(&self) -> Option<Stamp> {
        self.lock().stamp
    }

    /// From now on the store is written by `incarnation`; that is on disk when this returns.
    pub fn begin(&self, incarnation: u64) -> Result<(), StoreError> {
        let mut marks = self.lock();
        marks.stamp = Some(Stamp { incarnation, syncs: 0 });
        self.mark(&mut marks)
    }

    /// How often it has synced, kept up to date.
    pub fn syncs(&self) -> Syncs {
        self.syncs.clone()
    }

    /// Vouches for all that was written before: syncs it, and leaves the mark once more behind it.
    fn mark(&self, marks: &mut Marks) -> Result<(), StoreError> {
        self.persist(marks)?;
        let mut batch = self.database.batch();
        batch.insert(&self.keyspace, journal::MARK, Stamp::encode(marks.stamp));
        self.unless_failed(marks, || batch.commit())?;
        self.persist(marks)
    }

    /// Makes durable what was written.
    fn persist(&self, marks: &mut Marks) -> Result<(), StoreError> {
        self.unless_failed(marks, || self.sync_journal())?;
        marks.synced = true;
        self.syncs.synced(marks.stamp.map_or(0, |stamp| stamp.syncs));
        Ok(())
    }

    fn sync_journal(&self) -> fjall::Result<()> {
        #[cfg(test)]
        if self.sync_fails.swap(false, std::sync::atomic::Ordering::Relaxed) {
            // As a disk fails: what was written is with the system, and perhaps nowhere else.
            self.database.persist(PersistMode::Buffer)?;
            return Err(std::io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()).into());
        }
        self.database.persist(PersistMode::SyncData)
    }

    /// Writes or syncs, but never again after that has failed once.
    fn unless_failed<T>(&self, marks: &mut Marks, write: impl FnOnce() -> fjall::Result<T>) -> Result<T, StoreError> {
        let written = if marks.failed { Err(fjall::Error::Poisoned) } else { write() };
        marks.failed |= written.is_err();
        written.map_err(|error| self.error(error))
    }

    fn lock(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().expect("no thread panics while it holds the lock")
    }

    fn error(&self, error: fjall::Error) -> StoreError {
        store_error(&self.path, error)
    }
}

fn start(path: &Path, options: FjallOptions) -> fjall::Result<(Database, Keyspace)> {
    let database = Database::builder(path)
        .worker_threads(WORKER_THREADS)
        .cache_size(options.cache_bytes)
        .max_journaling_size(options.journal_bytes)
        .max_cached_files(Some(options.open_files))
        .manual_journal_persist(true)
        .open()?;
    // Rows are read by range, which no filter can speed up.
    let keyspace = database.keyspace(KEYSPACE, || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(options.write_buffer_bytes)
            .compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(options.unmerged_files)))
            .filter_policy(FilterPolicy::disabled())
    })?;
    Ok((database, keyspace))
}

impl Drop for FjallEngine {
    fn drop(&mut self) {
        // Without the mark nothing is lost: only damage to the last writes would go unnoticed.
        if self.mark(&mut self.lock()).is_ok() {
            self.syncs.close();
        }
    }
}

/// Bytes written to find out whether the system takes any.
const PROBE_BYTES: usize = 1 << 20;

/// Why the folder takes no more writes. The engine keeps the error of its own threads to itself, so another write is tried.
fn refused_write(folder: &Path) -> String {
    let probe = folder.join("probe");
    let written = private::create_file(&probe).and_then(|mut file| file.write_all(&vec![0; PROBE_BYTES]).and_then(|()| file.sync_all()));
    // Should this fail too, the file is in nobody's way.
    let _ = std::fs::remove_file(&probe);
    match written {
        Err(error) => format!("a write there says: {error}"),
        Ok(()) => "writes succeed again by now".into(),
    }
}

/// What an error of fjall means to the operator.
fn store_error(path: &Path, error: fjall::Error) -> StoreError {
    let damage = |detail: String| StoreError::Corrupt { place: path.display().to_string(), detail };
    match error {
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => match source.kind() {
            // Invalid input: a damaged offset led to a place that no file has.
            ErrorKind::UnexpectedEof | ErrorKind::NotFound | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                damage(format!("a file is missing, cut short or garbled ({source})"))
            }
            _ => io_error(path, source),
        },
        fjall::Error::Locked => StoreError::InUse { path: path.to_owned() },
        fjall::Error::Poisoned => StoreError::Poisoned { path: path.to_owned(), cause: refused_write(path) },
        other => damage(other.to_string()),
    }
}

impl Engine for FjallEngine {
    fn view(&self) -> Box<dyn View + '_> {
        let _whole = self.publishing.read().expect("no thread panics while it publishes");
        Box::new(FjallView { engine: self, snapshot: self.database.snapshot() })
    }

    fn write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        let mut batch = self.database.batch();
        let mut marks = self.lock();
        let next = marks.stamp.map(|stamp| Stamp { syncs: stamp.syncs + u64::from(marks.synced), ..stamp });
        if marks.synced {
            batch.insert(&self.keyspace, journal::MARK, Stamp::encode(next));
        }
        for write in writes {
            match write {
                Write::Put { key, value } => batch.insert(&self.keyspace, key, value),
                Write::Remove { key } => batch.remove(&self.keyspace, key),
            }
        }
        let publishing = self.publishing.write().expect("no thread panics while it publishes");
        self.unless_failed(&mut marks, || batch.commit())?;
        drop(publishing);
        (marks.synced, marks.stamp) = (false, next);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.persist(&mut self.lock())
    }
}

struct FjallView<'a> {
    engine: &'a FjallEngine,
    snapshot: Snapshot,
}

impl View for FjallView<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let found = self.snapshot.get(&self.engine.keyspace, key).map_err(|error| self.engine.error(error))?;
        Ok(found.map(Bytes::from))
    }

    fn range(&self, start: &[u8], end: &[u8], reverse: bool) -> Entries<'_> {
        let guards = self.snapshot.range(&self.engine.keyspace, start..end);
        let entry = |guard: fjall::Guard| match guard.into_inner() {
            Ok((key, value)) => Ok((Bytes::from(key), Bytes::from(value))),
            Err(error) => Err(self.engine.error(error)),
        };
        if reverse { Box::new(guards.rev().map(entry)) } else { Box::new(guards.map(entry)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(engine: &FjallEngine, key: &'static str) -> Result<(), StoreError> {
        engine.write(vec![Write::Put { key: Bytes::from_static(key.as_bytes()), value: Bytes::from_static(&[7; 100]) }])
    }

    fn holds(engine: &FjallEngine, key: &str) -> bool {
        engine.view().get(key.as_bytes()).expect("readable").is_some()
    }

    /// The device may have what the failed sync was for, or not; the system remembers it either way.
    #[test]
    fn after_a_failed_sync_nothing_follows_and_a_restart_goes_by_what_the_device_has() {
        for device_has_it in [true, false] {
            let folder = tempfile::tempdir().expect("a folder");
            let open = || FjallEngine::open(folder.path(), FjallOptions::DEFAULT);
            let journal = folder.path().join("engine/0.jnl");
            let length = || std::fs::metadata(&journal).expect("there").len();
            let engine = open().expect("a new folder");
            engine.begin(7).expect("begun");
            put(&engine, "a").and_then(|()| engine.sync()).expect("a disk that works");
            let synced = length();
            let told = engine.syncs();
            put(&engine, "b").expect("written");
            engine.sync_fails.store(true, std::sync::atomic::Ordering::Relaxed);
            let error = engine.sync().expect_err("the disk fails").to_string();
            assert!(error.contains("Input/output error (os error 5)"), "{error}");
            let written = length();
            // Though the disk works again.
            assert!(matches!(engine.sync(), Err(StoreError::Poisoned { .. })));
            assert!(matches!(put(&engine, "c"), Err(StoreError::Poisoned { .. })));
            drop(engine);
            assert_eq!(length(), written, "no mark vouches for what may not be there");
            assert_eq!((told.durable(), told.is_closed()), (1, false), "nobody is told of the second");
            if !device_has_it {
                let mut bytes = std::fs::read(&journal).expect("readable");
                bytes[synced as usize..].fill(0);
                std::fs::write(&journal, bytes).expect("written");
            }
            let engine = open().expect("whole as far as it was synced");
            assert_eq!((holds(&engine, "a"), holds(&engine, "b"), holds(&engine, "c")), (true, device_has_it, false));
            assert!(engine.stamp().is_some_and(|stamp| stamp.syncs >= told.durable()));
        }
    }

    #[test]
    fn a_stamp_rises_with_each_group_that_is_synced_and_is_on_disk_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || FjallEngine::open(folder.path(), FjallOptions::DEFAULT).expect("its own");
        let engine = open();
        assert_eq!(engine.stamp(), None);
        put(&engine, "a").and_then(|()| engine.sync()).expect("written");
        assert_eq!((engine.stamp(), engine.syncs().durable()), (None, 0), "no site has begun to write it");
        engine.begin(7).expect("begun");
        let syncs = engine.syncs();
        for count in 1..=3 {
            put(&engine, "a").and_then(|()| put(&engine, "b")).expect("written");
            assert_eq!(syncs.durable(), count - 1, "not on disk yet");
            engine.sync().and_then(|()| engine.sync()).expect("synced");
            assert_eq!((engine.stamp(), syncs.durable()), (Some(Stamp { incarnation: 7, syncs: count }), count));
        }
        assert!(!syncs.is_closed());
        drop(engine);
        assert!(syncs.is_closed());
        for _ in 0..3 {
            assert_eq!(open().stamp(), Some(Stamp { incarnation: 7, syncs: 3 }), "to open it is no sync");
        }
        let engine = open();
        engine.begin(8).expect("begun");
        assert_eq!(engine.stamp(), Some(Stamp { incarnation: 8, syncs: 0 }));
    }

    #[test]
    fn a_store_that_takes_no_more_writes_says_what_a_write_meets_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |path: &Path| store_error(path, fjall::Error::Poisoned).to_string();
        assert!(of(folder.path()).contains("earlier one failed (writes succeed again by now): mend the cause"));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing is left behind");
        assert!(of(&folder.path().join("gone")).contains("(a write there says: No such file or directory (os error 2))"));
    }
}
