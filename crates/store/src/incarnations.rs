//! The incarnations of a site, as its data folder lists them, and the rules by which a folder is found not to be what the site left.
//!
//! An incarnation begins when a process does, and is named by its instant. Of each the list knows which stores it wrote, and how
//! often each had synced at its end: unknown while it runs; whoever starts the site again after it died enters what the stores show.
//! Others remember the latest incarnation that they heard, and how far its stores had come ([`Heard`]).
//!
//! - A store must show the [stamp](Stamp) of the last incarnation that wrote it, with the count at its end: [`Incarnations::check_store`].
//! - The list must know what others have heard: [`Incarnations::check_heard`].
//!
//! Where all this stands on a disk is the driver's to know: files in the node, the folders of the simulator.

use crate::stamp::Stamp;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// An incarnation: the microsecond since the Unix epoch at which its process began. Zero stands for none.
pub type IncarnationId = u64;

/// So many incarnations are remembered, the latest ones.
pub const INCARNATIONS_MAX: usize = 65_536;

/// An incarnation of a site whose stores are named by `S`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incarnation<S: Ord> {
    /// Its name.
    pub id: IncarnationId,
    /// The stores that it wrote, and how often each had synced at its end, as far as that is known.
    pub stores: BTreeMap<S, Option<u64>>,
}

/// The incarnations of a site, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incarnations<S: Ord>(Vec<Incarnation<S>>);

/// Why a store is not what its site left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampError {
    /// It is empty, and the site has written it.
    Missing,
    /// It is written, and the list does not know of that.
    Unlisted {
        /// What it shows.
        found: Stamp,
    },
    /// It is of another time than the list says.
    Older {
        /// What it shows.
        found: Stamp,
        /// What it should show.
        expected: Stamp,
    },
}

/// What others have heard of a site and its list does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed<S> {
    /// The whole incarnation.
    Incarnation,
    /// Some syncs of it.
    Syncs {
        /// Of which store.
        store: S,
        /// How many were heard of.
        there: u64,
        /// How many the list, or the store, knows.
        here: u64,
    },
}

/// What was heard of a site: how far it had come. `STORES` is how many stores a site may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard<const STORES: usize> {
    /// Its incarnation.
    pub incarnation: IncarnationId,
    /// How often its stores have synced in that.
    pub counts: [u64; STORES],
}

impl<const STORES: usize> Default for Heard<STORES> {
    fn default() -> Heard<STORES> {
        Heard { incarnation: 0, counts: [0; STORES] }
    }
}

impl<const STORES: usize> Heard<STORES> {
    /// The site is met in `incarnation`. True if that is another one than before, which has to be on disk before anything is taken from it.
    pub fn meet(&mut self, incarnation: IncarnationId) -> bool {
        let is_other = self.incarnation != incarnation;
        if is_other {
            *self = Heard { incarnation, counts: [0; STORES] };
        }
        is_other
    }

    /// Remembers what the site `said` of the incarnation that it was met in. True if that is more than before.
    pub fn hear(&mut self, said: &Heard<STORES>) -> bool {
        let before = *self;
        if said.incarnation == self.incarnation {
            self.counts = std::array::from_fn(|store| before.counts[store].max(said.counts[store]));
        }
        *self != before
    }
}

impl<S: Ord> Default for Incarnations<S> {
    fn default() -> Incarnations<S> {
        Incarnations(Vec::new())
    }
}

impl<S: Copy + Debug + Ord> Incarnations<S> {
    /// Those, in their order.
    pub fn new(incarnations: Vec<Incarnation<S>>) -> Incarnations<S> {
        Incarnations(incarnations)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Incarnation<S>> {
        self.0.iter()
    }

    /// Adds an incarnation, which writes these stores. The oldest goes once there are more than [`INCARNATIONS_MAX`].
    pub fn push(&mut self, id: IncarnationId, stores: impl Iterator<Item = S>) {
        self.0.push(Incarnation { id, stores: stores.map(|store| (store, None)).collect() });
        self.0.drain(..self.0.len().saturating_sub(INCARNATIONS_MAX));
    }

    /// The incarnation of this name.
    pub fn get(&self, id: IncarnationId) -> Option<&Incarnation<S>> {
        self.0.iter().rev().find(|incarnation| incarnation.id == id)
    }

    /// The latest incarnation.
    pub fn last(&self) -> Option<&Incarnation<S>> {
        self.0.last()
    }

    /// The latest incarnation that wrote `store`.
    pub fn last_of(&self, store: S) -> Option<&Incarnation<S>> {
        self.0.iter().rev().find(|incarnation| incarnation.stores.contains_key(&store))
    }

    /// Notes how often `store` had synced at the end of the latest incarnation that wrote it.
    pub fn count(&mut self, store: S, syncs: u64) {
        if let Some(count) = self.0.iter_mut().rev().find_map(|incarnation| incarnation.stores.get_mut(&store)) {
            *count = Some(syncs);
        }
    }

    /// The name of an incarnation that begins at `now`. It comes after all others, also where the clock was set back: of two connections of a
    /// site peers keep the one of the later incarnation.
    pub fn fresh(&self, now: IncarnationId) -> IncarnationId {
        let last = self.0.iter().map(|incarnation| incarnation.id).max().unwrap_or(0);
        now.max(last + 1)
    }

    /// Checks that `store`, which shows `stamp`, is what the list says that the site wrote there last. `resumed` is an incarnation whose
    /// start was interrupted, and that nobody was told of.
    pub fn check_store(&self, store: S, stamp: Option<Stamp>, resumed: Option<IncarnationId>) -> Result<(), StampError> {
        let begun = |stamp: Stamp| resumed == Some(stamp.incarnation);
        match (self.last_of(store), stamp) {
            (_, Some(stamp)) if begun(stamp) => Ok(()),
            (None, None) => Ok(()),
            (Some(_), None) => Err(StampError::Missing),
            (None, Some(found)) => Err(StampError::Unlisted { found }),
            (Some(last), Some(found)) => {
                let count = last.stores[&store];
                let is_same = last.id == found.incarnation && count.is_none_or(|count| count == found.syncs);
                let expected = Stamp { incarnation: last.id, syncs: count.unwrap_or(found.syncs) };
                if is_same { Ok(()) } else { Err(StampError::Older { found, expected }) }
            }
        }
    }

    /// Checks that the list knows what somebody has `heard` of the site, which runs now in the incarnation `now`. `stores` names the
    /// stores, in the order of the counts.
    pub fn check_heard<const STORES: usize>(
        &self,
        heard: &Heard<STORES>,
        now: &Heard<STORES>,
        stores: [S; STORES],
    ) -> Result<(), Missed<S>> {
        let Heard { incarnation, counts } = *heard;
        if incarnation == 0 {
            return Ok(());
        }
        let Some(listed) = self.get(incarnation) else { return Err(Missed::Incarnation) };
        let known = |index: usize| match listed.stores.get(&stores[index]) {
            _ if incarnation == now.incarnation => now.counts[index],
            Some(count) => count.unwrap_or(u64::MAX),
            None => 0,
        };
        match (0..STORES).find(|index| counts[*index] > known(*index)) {
            Some(index) => Err(Missed::Syncs { store: stores[index], there: counts[index], here: known(index) }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: u8 = 7;

    fn stamp(incarnation: u64, syncs: u64) -> Stamp {
        Stamp { incarnation, syncs }
    }

    /// Two incarnations: the first ended after five syncs, the second runs.
    fn two() -> Incarnations<u8> {
        let mut list = Incarnations::default();
        list.push(10, [STORE].into_iter());
        list.count(STORE, 5);
        list.push(20, [STORE].into_iter());
        list
    }

    #[test]
    fn a_store_shows_the_last_incarnation_and_its_end() {
        let mut list = two();
        assert_eq!(list.check_store(STORE, Some(stamp(20, 3)), None), Ok(()), "how it ends is not known yet");
        assert_eq!(list.check_store(STORE, None, None), Err(StampError::Missing));
        let older = StampError::Older { found: stamp(10, 5), expected: stamp(20, 5) };
        assert_eq!(list.check_store(STORE, Some(stamp(10, 5)), None), Err(older));
        list.count(STORE, 4);
        let older = StampError::Older { found: stamp(20, 3), expected: stamp(20, 4) };
        assert_eq!(list.check_store(STORE, Some(stamp(20, 3)), None), Err(older));
        assert_eq!(list.check_store(9, Some(stamp(20, 3)), None), Err(StampError::Unlisted { found: stamp(20, 3) }));
        assert_eq!(list.check_store(9, Some(stamp(30, 1)), Some(30)), Ok(()), "begun, and told to nobody");
        assert_eq!(list.check_store(9, None, None), Ok(()), "never written");
    }

    #[test]
    fn a_list_knows_all_that_was_heard() {
        let (list, now) = (two(), Heard { incarnation: 20, counts: [3] });
        let check = |incarnation, count| list.check_heard(&Heard { incarnation, counts: [count] }, &now, [STORE]);
        assert_eq!(check(0, 0), Ok(()));
        assert_eq!((check(10, 5), check(20, 3)), (Ok(()), Ok(())));
        assert_eq!(check(10, 6), Err(Missed::Syncs { store: STORE, there: 6, here: 5 }));
        assert_eq!(check(20, 4), Err(Missed::Syncs { store: STORE, there: 4, here: 3 }));
        assert_eq!(check(15, 0), Err(Missed::Incarnation));
        assert_eq!(list.fresh(20), 21);
    }

    #[test]
    fn an_incarnation_comes_after_all_others_whatever_the_clock_shows() {
        let list = two();
        assert_eq!([list.fresh(0), list.fresh(15), list.fresh(20), list.fresh(30)], [21, 21, 21, 30]);
        assert_eq!(Incarnations::<u8>::default().fresh(0), 1);
    }

    #[test]
    fn what_is_heard_grows_within_an_incarnation_and_begins_anew_with_the_next() {
        let mut heard = Heard::<2>::default();
        assert!(heard.meet(10) && !heard.meet(10));
        assert!(heard.hear(&Heard { incarnation: 10, counts: [3, 1] }));
        assert!(!heard.hear(&Heard { incarnation: 10, counts: [2, 1] }) && !heard.hear(&Heard { incarnation: 9, counts: [9, 9] }));
        assert_eq!(heard.counts, [3, 1]);
        assert!(heard.meet(20));
        assert_eq!(heard.counts, [0, 0]);
    }
}
