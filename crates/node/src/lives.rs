//! The lives of sites: a site that lost its data folder, or was given an older copy of it, is found out before it says a word.
//!
//! A site that has forgotten what it promised breaks the promise: it votes twice, gives away a quota's tokens again, or says of rows
//! that it lacks that there are none. Nothing in such a folder tells so, but others remember. A life begins when a process does, and
//! is named by its instant. The file [`OWN`] in the folder lists all lives of the site; [`PEERS`] says of each other site which life was
//! heard last.
//!
//! ```text
//!   site                                             peer
//!     ├── hello: my life, the last that I heard of you ─▶│ is that one of mine? else I stop
//!     │◀─ hello: my life, the last that I heard of you ──┤
//!     │ is that one of mine? else I stop                 │
//!     │ notes the peer's life                            │
//!     ├── the first frame ──────────────────────────────▶│ notes the site's life, takes the frame
//! ```
//!
//! Invariants: a life is on disk before it is told to anybody; nothing that a site says is taken, and nothing is said to it, before its
//! life is noted on disk here, and it has been asked about the life noted before. So whoever comes with a folder that does not know the
//! last life that some peer has heard stops when it meets that peer. It is not found out by those alone who never met the one it was.

use rhumb_core::{RegionId, SiteId};
use rhumb_store::replace_file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io};
use thiserror::Error;

/// The file of the site's own lives.
pub const OWN: &str = "LIVES";
/// The file of the last lives of others.
pub const PEERS: &str = "PEERS";
/// So many lives are remembered, the latest ones.
const LIVES_MAX: usize = 65_536;

/// A life: the microsecond since the Unix epoch at which its process began. Zero stands for none.
pub type Life = u64;

/// Why lives cannot be told.
#[derive(Debug, Error)]
#[error("{path} cannot be read or written: {source}")]
pub struct LivesError {
    path: PathBuf,
    source: io::Error,
}

/// What a data folder knows of lives.
#[derive(Debug)]
pub struct Lives {
    folder: PathBuf,
    own: Vec<Life>,
    /// The last life that was heard of each other site.
    heard: Mutex<BTreeMap<SiteId, Life>>,
}

impl Lives {
    /// Begins a life of the site whose data folder this is.
    pub fn begin(folder: &Path) -> Result<Lives, LivesError> {
        let failed = |name| move |source| LivesError { path: folder.join(name), source };
        let own = read(folder, OWN, |line| line.parse().ok()).map_err(failed(OWN))?;
        let heard = read(folder, PEERS, read_peer).map_err(failed(PEERS))?;
        // A clock set back does not give one life the name of another.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as Life;
        let life = (now..).find(|life| *life > 0 && !own.contains(life)).expect("there are more instants than lives");
        let kept = own.len().saturating_sub(LIVES_MAX - 1);
        let own: Vec<Life> = own.into_iter().skip(kept).chain([life]).collect();
        let text: String = own.iter().map(|life| format!("{life}\n")).collect();
        replace_file(folder, OWN, &text).map_err(failed(OWN))?;
        Ok(Lives { folder: folder.to_owned(), own, heard: Mutex::new(heard.into_iter().collect()) })
    }

    /// The life of now.
    pub fn now(&self) -> Life {
        *self.own.last().expect("a life has begun")
    }

    /// The last life of `peer` that was heard here.
    pub fn heard(&self, peer: SiteId) -> Life {
        self.lock().get(&peer).copied().unwrap_or(0)
    }

    /// Checks that `life`, which a peer called `name` has heard of this site, is known to its folder. If not: why the site must stop.
    pub fn check(&self, name: &str, life: Life) -> Result<(), String> {
        if life == 0 || self.own.contains(&life) {
            return Ok(());
        }
        let ago = SystemTime::now().duration_since(UNIX_EPOCH + Duration::from_micros(life)).unwrap_or_default().as_secs();
        Err(format!(
            "{} is not the data folder that this site had: {name} has heard it in a life that began {ago} s ago, and the folder knows of \
             none then. It is empty, or an older copy, and the site would break what it promised since. Start it with the folder that it had; if \
             that is lost, leave it stopped: the others go on without it",
            self.folder.display()
        ))
    }

    /// Notes on disk that `peer` was heard in `life`. Blocks.
    pub fn note(&self, peer: SiteId, life: Life) -> Result<(), LivesError> {
        let mut heard = self.lock();
        if heard.insert(peer, life) != Some(life) {
            let line = |(SiteId { region, shard }, life): (&SiteId, &Life)| format!("{} {shard} {life}\n", region.0);
            let text: String = heard.iter().map(line).collect();
            replace_file(&self.folder, PEERS, &text).map_err(|source| LivesError { path: self.folder.join(PEERS), source })?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SiteId, Life>> {
        self.heard.lock().expect("nothing panics while it holds the lives")
    }
}

/// What stands in a file, line by line; nothing if there is none.
fn read<T>(folder: &Path, name: &str, line: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
    let text = match fs::read_to_string(folder.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let damaged = |text: &str| io::Error::new(io::ErrorKind::InvalidData, format!("`{text}` is no line of it"));
    text.lines().map(|text| line(text).ok_or_else(|| damaged(text))).collect()
}

fn read_peer(line: &str) -> Option<(SiteId, Life)> {
    let mut words = line.split(' ');
    let (region, shard, life) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((SiteId { region: RegionId(region), shard }, life))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: SiteId = SiteId::new(1, 0);

    #[test]
    fn a_folder_knows_all_lives_that_began_with_it_and_the_last_of_each_peer() {
        let folder = tempfile::tempdir().expect("a folder");
        let begin = || Lives::begin(folder.path()).expect("lives");
        let first = begin();
        assert_eq!(first.heard(PEER), 0);
        first.note(PEER, 7).expect("noted");
        first.note(SiteId::new(2, 3), 8).expect("noted");
        first.note(PEER, 9).expect("noted");
        let second = begin();
        assert_ne!(second.now(), first.now());
        assert_eq!((second.heard(PEER), second.heard(SiteId::new(2, 3))), (9, 8));
        assert_eq!([0, first.now(), second.now()].map(|life| second.check("virginia/0", life)), [Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn an_empty_folder_and_an_older_copy_are_not_the_ones_that_a_peer_has_heard_of() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Lives::begin(folder.path()).expect("lives");
        let copy = tempfile::tempdir().expect("a folder");
        fs::copy(folder.path().join(OWN), copy.path().join(OWN)).expect("copied");
        let second = Lives::begin(folder.path()).expect("lives");
        let older = Lives::begin(copy.path()).expect("lives");
        let empty = tempfile::tempdir().expect("a folder");
        let empty = Lives::begin(empty.path()).expect("lives");
        assert_eq!(older.check("virginia/0", first.now()), Ok(()));
        let refused = older.check("virginia/0", second.now()).expect_err("the copy is older");
        assert!(
            refused.starts_with(&format!(
                "{} is not the data folder that this site had: virginia/0 has heard it in a life",
                copy.path().display()
            )),
            "{refused}"
        );
        assert!(empty.check("virginia/0", first.now()).is_err());
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(PEERS), "1 0 7\n1 0\n").expect("written");
        let error = Lives::begin(folder.path()).expect_err("damaged").to_string();
        assert_eq!(error, format!("{} cannot be read or written: `1 0` is no line of it", folder.path().join(PEERS).display()));
    }

    #[test]
    fn the_oldest_lives_are_forgotten_at_a_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let many: String = (1..=LIVES_MAX).map(|life| format!("{life}\n")).collect();
        fs::write(folder.path().join(OWN), many).expect("written");
        let lives = Lives::begin(folder.path()).expect("lives");
        assert_eq!(lives.own.len(), LIVES_MAX);
        assert!(lives.check("virginia/0", 1).is_err() && lives.check("virginia/0", 2).is_ok());
    }
}
