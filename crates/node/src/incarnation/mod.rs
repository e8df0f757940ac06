//! The incarnations of sites: a site that lost its data folder or a part of it, or was given a copy, is found out.
//!
//! A site that has forgotten what it promised breaks the promise: it votes twice, gives away a quota's tokens again, or says of rows
//! that it lacks that there are none. Nothing in a store alone tells so. An incarnation begins when a process does, and is
//! named by its instant. Each store holds the incarnation that writes it and how often it has synced in that (its
//! [stamp](rhumb_store::Stamp)); beside the stores there are three files:
//!
//! | file | says | so that |
//! |---|---|---|
//! | `INCARNATIONS`, [`Incarnations`](rhumb_store::incarnations::Incarnations) | all incarnations, and the last counts of each store | a store that is lost, emptied or older than the others is refused |
//! | `RUNNING`, [`Running`] | that the site runs, or died, and in which folders | a copy of a folder in use is refused |
//! | [`PEERS`] | of each other site the latest incarnation and counts that were heard | peers tell a site whose whole folder is older |
//!
//! ```text
//!   start   RUNNING and INCARNATIONS are checked ▶ stores opened, stamps checked ▶ last counts of the one before noted ▶ RUNNING written
//!           ▶ each store stamped ▶ the incarnation is added to INCARNATIONS ▶ peers are told
//!   stop    stores closed ▶ last counts noted in INCARNATIONS ▶ RUNNING removed
//!
//!   site                                                    peer
//!     ├── hello: my incarnation, the last that I heard of you ─▶│ do I know that one, and as many syncs? else I stop
//!     │◀─ hello: my incarnation, the last that I heard of you ──┤
//!     │ do I know that one, and as many syncs? else stop        │
//!     │ notes the peer's incarnation                            │
//!     ├── the first frame ─────────────────────────────────────▶│ notes the site's incarnation, takes the frame
//!     ├── ping: how often my stores have synced ───────────────▶│ remembers that, on disk soon
//! ```
//!
//! Invariants: an incarnation is in all stores and in the list before it is told to anybody, and a count is on disk before it is told; nothing that
//! a site says is taken, and nothing is said to it, before its incarnation is noted on disk here, and it has been asked about the one noted before.
//! So whoever comes with a folder that does not know what some peer has heard stops when it meets that peer. What is found out by whom, and what is
//! not: `docs/decisions/0017-incarnations.md`.

mod error;
mod history;
mod running;

pub use error::IncarnationError;
pub use running::Running;

use crate::service::Service;
use error::ADVICE;
use history::History;
use rhumb_core::{RegionId, SiteId};
use rhumb_store::incarnations::{Heard, Missed, StampError};
use rhumb_store::{DiskEngine, Stamp, Syncs, replace_file};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};

/// The file of what was heard of others.
pub const PEERS: &str = "PEERS";
/// Of each other site: region, shard, incarnation, and the counts.
const PEERS_WORDS: usize = 3 + STORES;
/// The stores that a site may have.
pub const STORES: usize = Service::ALL.len();

pub use rhumb_store::incarnations::IncarnationId;

/// How often each store has synced in an incarnation, in the order of [`Service::ALL`].
pub type Counts = [u64; STORES];

/// How far a site has come, as it says and others remember.
pub type Progress = Heard<STORES>;

/// What a data folder says of the incarnations before.
pub struct Past<'a> {
    folder: &'a Path,
    history: History,
    running: Option<Running>,
    heard: BTreeMap<SiteId, Progress>,
}

/// What a data folder knows of incarnations.
#[derive(Debug)]
pub struct Incarnations {
    folder: PathBuf,
    history: History,
    incarnation: IncarnationId,
    /// The stores of this incarnation.
    stores: Vec<(Service, Syncs)>,
    /// What was heard of each other site.
    heard: Mutex<BTreeMap<SiteId, Progress>>,
    /// True if more was heard than is on disk.
    heard_more: AtomicBool,
}

impl<'a> Past<'a> {
    /// That of `folder`. Refuses it if one of `stores`, whose data folders these are, is missing or a copy.
    pub fn read(folder: &'a Path, stores: &[(Service, PathBuf)]) -> Result<Past<'a>, IncarnationError> {
        let failed = |name: &str| io_error(folder.join(name));
        let history = history::read(folder).map_err(failed(history::FILE))?;
        let running = Running::read(folder).map_err(failed(running::FILE))?;
        let heard = read_lines(folder, PEERS, read_peer).map_err(failed(PEERS))?.into_iter().collect();
        if let Some((_, path)) = stores.iter().find(|(store, path)| history.last_of(*store).is_some() && !DiskEngine::is_made(path)) {
            return Err(IncarnationError::Missing { folder: path.clone() });
        }
        if let Some(running) = &running {
            if running.is_copied(folder).map_err(failed(running::FILE))? {
                return Err(IncarnationError::Copied { path: folder.to_owned() });
            }
            for (store, path) in stores.iter().filter(|(_, path)| DiskEngine::is_made(path)) {
                let files = DiskEngine::files_of(path);
                if running.is_copied_store(*store, &files).map_err(io_error(files))? {
                    return Err(IncarnationError::Copied { path: path.clone() });
                }
            }
        }
        Ok(Past { folder, history, running, heard })
    }

    /// Begins an incarnation of the site, which writes `stores`. Refuses one that is not as the site left it.
    pub fn begin(mut self, stores: &[(Service, &DiskEngine)]) -> Result<Incarnations, IncarnationError> {
        let folder = self.folder;
        let failed = |name: &str| io_error(folder.join(name));
        // What a start that was interrupted has begun and nobody was told of is gone on with.
        let resumed =
            self.running.as_ref().map(|running| running.incarnation).filter(|incarnation| self.history.get(*incarnation).is_none());
        let unfinished = self.history.last().is_some_and(|last| last.stores.values().any(Option::is_none));
        if unfinished && self.running.is_none() {
            return Err(IncarnationError::Torn { path: folder.join(running::FILE) });
        }
        let stamps: Vec<(Service, Option<Stamp>)> = stores.iter().map(|(store, engine)| (*store, engine.stamp())).collect();
        for ((store, stamp), (_, engine)) in stamps.iter().zip(stores) {
            self.check_store(*store, *stamp, resumed, engine.files())?;
        }
        for (store, stamp) in stamps {
            if let Some(Stamp { incarnation, syncs }) = stamp
                && resumed != Some(incarnation)
            {
                self.history.count(store, syncs);
            }
        }
        history::write(&self.history, folder).map_err(failed(history::FILE))?;
        let incarnation = resumed.unwrap_or_else(|| self.fresh());
        Running::write(folder, incarnation, stores.iter().map(|(store, engine)| (*store, engine.files())))
            .map_err(failed(running::FILE))?;
        for (_, engine) in stores {
            engine
                .begin(incarnation)
                .map_err(|error| IncarnationError::Io { path: engine.files().to_owned(), source: io::Error::other(error) })?;
        }
        self.history.push(incarnation, stores.iter().map(|(store, _)| *store));
        history::write(&self.history, folder).map_err(failed(history::FILE))?;
        let stores = stores.iter().map(|(store, engine)| (*store, engine.syncs())).collect();
        let (heard, heard_more) = (Mutex::new(self.heard), AtomicBool::new(false));
        Ok(Incarnations { folder: folder.to_owned(), history: self.history, incarnation, stores, heard, heard_more })
    }

    /// Whether a store shows what the list says that the site wrote there last.
    fn check_store(
        &self,
        store: Service,
        stamp: Option<Stamp>,
        resumed: Option<IncarnationId>,
        files: &Path,
    ) -> Result<(), IncarnationError> {
        let folder = files.parent().unwrap_or(files).to_owned();
        self.history.check_store(store, stamp, resumed).map_err(|error| match error {
            StampError::Missing => IncarnationError::Missing { folder },
            StampError::Unlisted { found } => {
                let expected = "never, as far as its list of incarnations goes: that is of another time".to_owned();
                IncarnationError::Older { folder, found: describe(found), expected }
            }
            StampError::Older { found, expected } => {
                IncarnationError::Older { folder, found: describe(found), expected: describe(expected) }
            }
        })
    }

    /// The name of an incarnation that begins now: it comes after all others, also where the clock was set back.
    fn fresh(&self) -> IncarnationId {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as IncarnationId;
        self.history.fresh(now)
    }
}

impl Incarnations {
    /// Begins an incarnation of a site whose stores are in memory.
    pub fn begin(folder: &Path) -> Result<Incarnations, IncarnationError> {
        Past::read(folder, &[])?.begin(&[])
    }

    /// The incarnation of now.
    pub fn now(&self) -> IncarnationId {
        self.incarnation
    }

    /// How often its stores have synced in it, as far as that is on disk.
    pub fn counts(&self) -> Counts {
        Service::ALL.map(|service| self.stores.iter().find(|(store, _)| *store == service).map_or(0, |(_, syncs)| syncs.durable()))
    }

    /// What was heard of `peer` here.
    pub fn heard(&self, peer: SiteId) -> Progress {
        self.lock().get(&peer).copied().unwrap_or_default()
    }

    /// Checks that this folder knows what a peer called `name` has heard of this site. If not: why the site must stop.
    pub fn check(&self, name: &str, heard: &Progress) -> Result<(), String> {
        let began = UNIX_EPOCH + Duration::from_micros(heard.incarnation);
        let ago = SystemTime::now().duration_since(began).unwrap_or_default().as_secs();
        let now = Progress { incarnation: self.incarnation, counts: self.counts() };
        let missed = match self.history.check_heard(heard, &now, Service::ALL) {
            Ok(()) => return Ok(()),
            Err(Missed::Incarnation) => "of which the folder knows nothing".to_owned(),
            Err(Missed::Syncs { store, there, here }) => {
                format!("after {there} syncs of {}, of which the folder has {here}", store.name())
            }
        };
        Err(format!(
            "{} is not the data folder that this site had: {name} has heard it in an incarnation that began {ago} s ago, {missed}. It is empty, \
             or was restored from a copy or a snapshot, and {ADVICE}",
            self.folder.display()
        ))
    }

    /// Notes on disk that `peer` was heard in `incarnation`. Blocks.
    pub fn note(&self, peer: SiteId, incarnation: IncarnationId) -> Result<(), IncarnationError> {
        let mut heard = self.lock();
        if heard.entry(peer).or_default().meet(incarnation) { self.write_peers(&heard) } else { Ok(()) }
    }

    /// Remembers what `peer` says of the incarnation that is noted.
    pub fn hear(&self, peer: SiteId, said: &Progress) {
        if let Some(heard) = self.lock().get_mut(&peer) {
            self.heard_more.fetch_or(heard.hear(said), Ordering::Relaxed);
        }
    }

    /// Has the disk know all that was heard. Blocks.
    pub fn save(&self) -> Result<(), IncarnationError> {
        let heard = self.lock();
        if self.heard_more.swap(false, Ordering::Relaxed) { self.write_peers(&heard) } else { Ok(()) }
    }

    /// The site stops well, and its stores are closed: the next start need not ask how it ended. Blocks.
    pub fn end(&self) -> Result<(), IncarnationError> {
        self.save()?;
        if !self.stores.iter().all(|(_, syncs)| syncs.is_closed()) {
            return Ok(());
        }
        let failed = |name: &str| io_error(self.folder.join(name));
        let mut history = self.history.clone();
        self.stores.iter().for_each(|(store, syncs)| history.count(*store, syncs.durable()));
        history::write(&history, &self.folder).map_err(failed(history::FILE))?;
        Running::remove(&self.folder).map_err(failed(running::FILE))
    }

    fn write_peers(&self, heard: &BTreeMap<SiteId, Progress>) -> Result<(), IncarnationError> {
        let counts = |counts: &Counts| counts.map(|count| count.to_string()).join(" ");
        let line = |(peer, said): (&SiteId, &Progress)| {
            format!("{} {} {} {}\n", peer.region.0, peer.shard, said.incarnation, counts(&said.counts))
        };
        let text: String = heard.iter().map(line).collect();
        replace_file(&self.folder, PEERS, &text).map_err(io_error(self.folder.join(PEERS)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SiteId, Progress>> {
        self.heard.lock().expect("nothing panics while it holds what was heard")
    }
}

fn describe(Stamp { incarnation, syncs }: Stamp) -> String {
    format!("in incarnation {incarnation}, up to sync {syncs}")
}

fn io_error(path: PathBuf) -> impl FnOnce(io::Error) -> IncarnationError {
    move |source| IncarnationError::Io { path, source }
}

/// What stands in a file, line by line; nothing if there is none.
fn read_lines<T>(folder: &Path, name: &str, line: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
    let text = match fs::read_to_string(folder.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let damaged = |text: &str| io::Error::new(io::ErrorKind::InvalidData, format!("`{text}` is no line of it"));
    text.lines().map(|text| line(text).ok_or_else(|| damaged(text))).collect()
}

fn read_peer(line: &str) -> Option<(SiteId, Progress)> {
    let words: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [region, shard, incarnation, counts @ ..] = <[u64; PEERS_WORDS]>::try_from(words).ok()?;
    let peer = SiteId { region: RegionId(region.try_into().ok()?), shard: shard.try_into().ok()? };
    Some((peer, Progress { incarnation, counts }))
}

#[cfg(test)]
mod tests;
