//! The incarnations of a site, as its data folder lists them: the file [`FILE`].
//!
//! ```text
//!   1732000000000000 commit=5120 quotas=17 catenae=88213 quad=3
//!   1732000400000000 commit=? quotas=? catenae=? quad=?
//! ```
//!
//! A line is an incarnation: the microsecond at which its process began, and of each store that it wrote how often that had synced at
//! its end. The last line's counts are unknown while it runs; whoever starts the site again after it died enters what the stores show.
//! Lines are added at the end, and the oldest go once there are more than [`LINES_MAX`].

use super::Life;
use crate::frame::Service;
use rhumb_store::replace_file;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The file.
pub const FILE: &str = "INCARNATIONS";
/// So many incarnations are remembered, the latest ones.
pub const LINES_MAX: usize = 65_536;

/// An incarnation of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// What it is called.
    pub life: Life,
    /// The stores that it wrote, and how often each had synced at its end, as far as that is known.
    pub stores: BTreeMap<Service, Option<u64>>,
}

/// The incarnations of a site, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(Vec<Incarnation>);

impl History {
    /// That of a data folder; none yet if there is no file.
    pub fn read(folder: &Path) -> io::Result<History> {
        super::read_lines(folder, FILE, parse).map(History)
    }

    /// Has the file say this. It is on disk when this returns.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let text: String = self.0.iter().map(line).collect();
        replace_file(folder, FILE, &text)
    }

    /// Adds an incarnation, which writes these stores.
    pub fn push(&mut self, life: Life, stores: impl Iterator<Item = Service>) {
        self.0.push(Incarnation { life, stores: stores.map(|store| (store, None)).collect() });
        self.0.drain(..self.0.len().saturating_sub(LINES_MAX));
    }

    /// The incarnation called `life`.
    pub fn get(&self, life: Life) -> Option<&Incarnation> {
        self.0.iter().rev().find(|incarnation| incarnation.life == life)
    }

    /// The latest incarnation.
    pub fn last(&self) -> Option<&Incarnation> {
        self.0.last()
    }

    /// The latest incarnation that wrote `store`.
    pub fn last_of(&self, store: Service) -> Option<&Incarnation> {
        self.0.iter().rev().find(|incarnation| incarnation.stores.contains_key(&store))
    }

    /// Notes how often `store` had synced at the end of the latest incarnation that wrote it.
    pub fn count(&mut self, store: Service, syncs: u64) {
        if let Some(count) = self.0.iter_mut().rev().find_map(|incarnation| incarnation.stores.get_mut(&store)) {
            *count = Some(syncs);
        }
    }
}

fn line(Incarnation { life, stores }: &Incarnation) -> String {
    let count = |(store, syncs): (&Service, &Option<u64>)| match syncs {
        Some(syncs) => format!(" {}={syncs}", store.name()),
        None => format!(" {}=?", store.name()),
    };
    format!("{life}{}\n", stores.iter().map(count).collect::<String>())
}

fn parse(line: &str) -> Option<Incarnation> {
    let mut words = line.split(' ');
    let life = words.next()?.parse().ok()?;
    let stores = words.map(|word| {
        let (name, count) = word.split_once('=')?;
        let store = Service::ALL.into_iter().find(|service| service.name() == name)?;
        Some((store, if count == "?" { None } else { Some(count.parse().ok()?) }))
    });
    Some(Incarnation { life, stores: stores.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_history_is_read_back_and_the_oldest_lines_are_forgotten_at_a_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut history = History::read(folder.path()).expect("none yet");
        assert_eq!(history, History::default());
        history.push(7, [Service::Commit, Service::Quotas].into_iter());
        history.count(Service::Commit, 5);
        history.push(8, [Service::Commit].into_iter());
        history.write(folder.path()).expect("written");
        assert_eq!(fs::read_to_string(folder.path().join(FILE)).expect("text"), "7 commit=5 quotas=?\n8 commit=?\n");
        assert_eq!(History::read(folder.path()).expect("readable"), history);
        assert_eq!(history.last_of(Service::Quotas).map(|incarnation| incarnation.life), Some(7));
        assert_eq!(history.last_of(Service::Quad), None);

        (10..10 + LINES_MAX as Life - 1).for_each(|life| history.push(life, std::iter::empty()));
        assert_eq!((history.0.len(), history.get(7), history.0[0].life), (LINES_MAX, None, 8));
    }
}
