//! The incarnations of a site, as its data folder lists them: the file [`FILE`].
//!
//! ```text
//!   1732000000000000 commit=5120 quotas=17 catenae=88213 quad=3
//!   1732000400000000 commit=? quotas=? catenae=? quad=?
//! ```
//!
//! A line is an incarnation: the microsecond at which its process began, and of each store that it wrote how often that had synced at
//! its end. The last line's counts are unknown while it runs; whoever starts the site again after it died enters what the stores show.
//! Lines are added at the end, and the oldest go once there are more than [`rhumb_store::incarnations::INCARNATIONS_MAX`].

use crate::service::Service;
use rhumb_store::incarnations::{Incarnation, Incarnations};
use rhumb_store::replace_file;
use std::io;
use std::path::Path;

/// The file.
pub const FILE: &str = "INCARNATIONS";

/// The incarnations of a site.
pub type History = Incarnations<Service>;

/// Those of a data folder; none yet if there is no file.
pub fn read(folder: &Path) -> io::Result<History> {
    super::read_lines(folder, FILE, parse).map(History::new)
}

/// Has the file say `history`. It is on disk when this returns.
pub fn write(history: &History, folder: &Path) -> io::Result<()> {
    let text: String = history.iter().map(line).collect();
    replace_file(folder, FILE, &text)
}

fn line(Incarnation { id, stores }: &Incarnation<Service>) -> String {
    let count = |(store, syncs): (&Service, &Option<u64>)| match syncs {
        Some(syncs) => format!(" {}={syncs}", store.name()),
        None => format!(" {}=?", store.name()),
    };
    format!("{id}{}\n", stores.iter().map(count).collect::<String>())
}

fn parse(line: &str) -> Option<Incarnation<Service>> {
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let stores = words.map(|word| {
        let (name, count) = word.split_once('=')?;
        let store = Service::ALL.into_iter().find(|service| service.name() == name)?;
        Some((store, if count == "?" { None } else { Some(count.parse().ok()?) }))
    });
    Some(Incarnation { id, stores: stores.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incarnation::IncarnationId;
    use rhumb_store::incarnations::INCARNATIONS_MAX;
    use std::fs;

    #[test]
    fn a_history_is_read_back_and_the_oldest_lines_are_forgotten_at_a_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut history = read(folder.path()).expect("none yet");
        assert_eq!(history, History::default());
        history.push(7, [Service::Commit, Service::Quotas].into_iter());
        history.count(Service::Commit, 5);
        history.push(8, [Service::Commit].into_iter());
        write(&history, folder.path()).expect("written");
        assert_eq!(fs::read_to_string(folder.path().join(FILE)).expect("text"), "7 commit=5 quotas=?\n8 commit=?\n");
        assert_eq!(read(folder.path()).expect("readable"), history);
        assert_eq!(history.last_of(Service::Quotas).map(|incarnation| incarnation.id), Some(7));
        assert_eq!(history.last_of(Service::Quad), None);

        (10..10 + INCARNATIONS_MAX as IncarnationId - 1).for_each(|incarnation| history.push(incarnation, std::iter::empty()));
        let oldest = history.iter().next().map(|incarnation| incarnation.id);
        assert_eq!((history.iter().count(), history.get(7), oldest), (INCARNATIONS_MAX, None, Some(8)));
    }
}
