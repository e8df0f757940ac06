//! Pages of records: a new incarnation reads what earlier ones have left on disk, a bounded part of it at once.
//!
//! ```text
//!   role                                  disk
//!     ├── load: the first page ─────────────▶│
//!     │◀─────────────────────── some records ┤
//!     ├── load: what comes after the last ──▶│
//!     │                …                     │
//!   all spaces are read, one after the other: it serves
//! ```
//!
//! Invariant: one page is outstanding at a time, bounded in records and in bytes; each record is read once, spaces in their order, the
//! records of one in the order of their keys.

use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Load, Loaded};

/// A walk through the records of some spaces.
#[derive(Clone, Debug)]
pub struct Pages {
    spaces: &'static [Space],
    /// Records of a page, and their bytes, at the most.
    records_max: usize,
    bytes_max: usize,
    /// The space that is being read.
    place: usize,
    /// Where its next page begins.
    from: Bytes,
}

impl Pages {
    /// Those of `spaces`, in this order, each of at most so many records and bytes.
    pub fn new(spaces: &'static [Space], records_max: usize, bytes_max: usize) -> Pages {
        Pages { spaces, records_max, bytes_max, place: 0, from: Bytes::new() }
    }

    /// The load of the next page; none once all is read.
    pub fn next_load(&self) -> Option<Load> {
        let space = *self.spaces.get(self.place)?;
        Some(Load::Records { space, from: self.from.clone(), limit: self.records_max, bytes: self.bytes_max })
    }

    /// The records of the page that was loaded last, and the space that they are of.
    ///
    /// # Panics
    /// If something else than records was loaded, or nothing was to be.
    pub fn take(&mut self, loaded: Loaded) -> (Space, Vec<(Bytes, Bytes)>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        let space = self.spaces[self.place];
        match records.last() {
            Some((last, _)) if more => self.from = [last.as_ref(), &[0]].concat().into(),
            _ => {
                self.place += 1;
                self.from = Bytes::new();
            }
        }
        (space, records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACES: [Space; 2] = [Space(3), Space(1)];

    fn page(keys: &[&'static str], more: bool) -> Loaded {
        Loaded::Records { records: keys.iter().map(|key| (Bytes::from_static(key.as_bytes()), Bytes::new())).collect(), more }
    }

    fn next(pages: &Pages) -> Option<(Space, Bytes)> {
        pages.next_load().map(|load| match load {
            Load::Records { space, from, limit: 2, bytes: 9 } => (space, from),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn each_space_is_read_page_by_page_after_the_one_before() {
        let mut pages = Pages::new(&SPACES, 2, 9);
        assert_eq!(next(&pages), Some((SPACES[0], Bytes::new())));
        assert_eq!(pages.take(page(&["a", "b"], true)).0, SPACES[0]);
        assert_eq!(next(&pages), Some((SPACES[0], Bytes::from_static(b"b\0"))), "right after the last record");
        assert_eq!(pages.take(page(&["c"], false)).1.len(), 1);
        assert_eq!(next(&pages), Some((SPACES[1], Bytes::new())));
        assert_eq!(pages.take(page(&[], false)), (SPACES[1], vec![]));
        assert_eq!(next(&pages), None);
    }
}
