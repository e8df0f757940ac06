//! Which streams there are: so many of each region, numbered from zero. With one coordinator in a region it has one stream.
//!
//! | of stream `n` of a region | |
//! |---|---|
//! | leads it from the beginning | site `n` of the region |
//! | hold its entries, for them to count | the sites `n` of all regions, one disk per region |
//! | take it over, in this order | the sites of the region after site `n`, in a ring; then those of the regions that follow |
//! | carries | the transactions of its namespaces ([`coordinator_of`]), and any other that is put into it |
//!
//! Streams of different numbers share no acceptor and no ballot, so whatever happens to one is nothing to another.
//!
//! Source: section IV: coordinators share a region by namespace.

use super::partition::server_of;
use rhumb_commit::one_shot::operation::Transaction;
use rhumb_core::{Ballot, Key, RegionId, SiteId, Topology};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Index, IndexMut};

/// Regions that can have streams.
pub const STREAM_REGIONS_MAX: usize = 1 << u8::BITS;
/// Bytes of a key that name its namespace: in a database, those of the database and the table.
pub const NAMESPACE_BYTES: usize = 8;

/// A stream: which region's, and which of that region's. On disk and on the wire it is a number of two bytes, that of the region for
/// the first stream of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u16", into = "u16")]
pub struct StreamId {
    number: u8,
    region: u8,
}

impl From<u16> for StreamId {
    fn from(written: u16) -> StreamId {
        StreamId::from_be_bytes(written.to_be_bytes())
    }
}

impl From<StreamId> for u16 {
    fn from(stream: StreamId) -> u16 {
        u16::from_be_bytes(stream.to_be_bytes())
    }
}

impl StreamId {
    /// Stream `number` of `region`.
    pub const fn new(region: RegionId, number: u16) -> StreamId {
        assert!((region.0 as usize) < STREAM_REGIONS_MAX && (number as usize) < STREAM_REGIONS_MAX, "streams are numbered in two bytes");
        StreamId { number: number as u8, region: region.0 as u8 }
    }

    /// The first stream of `region`, where its votes stand.
    pub const fn first(region: RegionId) -> StreamId {
        StreamId::new(region, 0)
    }

    /// As it is written on disk.
    pub const fn to_be_bytes(self) -> [u8; 2] {
        [self.number, self.region]
    }

    /// The stream that is written so.
    pub const fn from_be_bytes(bytes: [u8; 2]) -> StreamId {
        let [number, region] = bytes;
        StreamId { number, region }
    }

    /// Whose it is.
    pub const fn region(self) -> RegionId {
        RegionId(self.region as u16)
    }

    /// Which of its region's.
    pub const fn number(self) -> u16 {
        self.number as u16
    }

    /// True for the first stream of a region.
    pub const fn is_first(self) -> bool {
        self.number() == 0
    }

    /// The site that leads it from the beginning.
    pub const fn head(self) -> SiteId {
        SiteId { region: self.region(), shard: self.number() }
    }

    /// The ballot at which its head leads from the beginning.
    pub const fn first_ballot(self) -> Ballot {
        Ballot { number: 0, leader: self.head() }
    }

    /// True for a site whose disk counts for this stream.
    pub fn is_accepted_by(self, site: SiteId) -> bool {
        site.shard == self.number()
    }

    /// How many sites take this stream over before `site` does.
    pub fn rank(self, site: SiteId, topology: &Topology) -> u64 {
        let turn = |from: u16, to: u16, of: u64| (u64::from(to) + of - u64::from(from)) % of;
        let sites = u64::from(topology.shard_count());
        let away = turn(self.region().0, site.region.0, topology.region_count() as u64);
        away * sites + turn(self.number(), site.shard, sites)
    }
}

/// Which of a region's coordinators a transaction belongs to, of so many: by the namespace of the first key that it writes, or reads if it
/// writes none, the same at all sites. Not simply of its first: SQL begins with a comparison of what the catalog says of the table,
/// which is of one namespace for all tables. Only work is divided by it; any stream may carry any transaction.
pub fn coordinator_of(transaction: &Transaction, coordinators: u16) -> u16 {
    let operations = &transaction.operations;
    let first = operations.iter().find(|operation| operation.writes()).or(operations.first());
    let key = first.and_then(|operation| operation.key().or_else(|| operation.range().map(|(range, _)| &range.start)));
    let namespace = |key: &Key| Key(key.0.slice(..key.0.len().min(NAMESPACE_BYTES)));
    key.map_or(0, |key| server_of(&namespace(key), coordinators))
}

/// One of something for each stream.
#[derive(Clone, Debug)]
pub struct PerStream<T> {
    regions: usize,
    items: Vec<T>,
}

/// All streams of a cluster: the first of each region, the second of each, and so on.
pub fn all(topology: &Topology, coordinators: u16) -> impl Iterator<Item = StreamId> + use<> {
    let regions = topology.region_count() as u16;
    (0..coordinators).flat_map(move |number| (0..regions).map(move |region| StreamId::new(RegionId(region), number)))
}

impl<T> PerStream<T> {
    /// As `make` makes them.
    pub fn new(topology: &Topology, coordinators: u16, make: impl FnMut(StreamId) -> T) -> PerStream<T> {
        PerStream { regions: topology.region_count(), items: all(topology, coordinators).map(make).collect() }
    }

    /// True if there is such a stream.
    pub fn has(&self, stream: StreamId) -> bool {
        usize::from(stream.region().0) < self.regions && self.place(stream) < self.items.len()
    }

    /// All of them, in the order of [`all`].
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// Which place it has among [`all`].
    fn place(&self, stream: StreamId) -> usize {
        usize::from(stream.number()) * self.regions + usize::from(stream.region().0)
    }
}

impl<T> Index<StreamId> for PerStream<T> {
    type Output = T;

    fn index(&self, stream: StreamId) -> &T {
        &self.items[self.place(stream)]
    }
}

impl<T> IndexMut<StreamId> for PerStream<T> {
    fn index_mut(&mut self, stream: StreamId) -> &mut T {
        let place = self.place(stream);
        &mut self.items[place]
    }
}

impl fmt::Display for StreamId {
    /// `r1`, and `r1/1` if it is not the first of its region.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_first() { write!(f, "{}", self.region()) } else { write!(f, "{}/{}", self.region(), self.number()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_commit::one_shot::operation::Operation;
    use rhumb_core::KeyRange;

    const SECOND: StreamId = StreamId::new(RegionId(2), 1);

    #[test]
    fn a_stream_is_called_by_its_region_and_number_and_the_first_one_as_its_region() {
        assert_eq!((SECOND.region(), SECOND.number(), SECOND.to_string()), (RegionId(2), 1, "r2/1".into()));
        let first = StreamId::first(RegionId(2));
        assert_eq!((first.to_be_bytes(), first.to_string()), ([0, 2], "r2".into()));
        assert_eq!(StreamId::from_be_bytes(SECOND.to_be_bytes()), SECOND);
        assert_eq!(SECOND.head(), SiteId::new(2, 1));
    }

    #[test]
    fn the_sites_of_its_own_region_take_a_stream_over_first() {
        let topology = Topology::new(["a", "b", "c"].map(String::from).to_vec(), 2);
        let mut sites: Vec<SiteId> = topology.sites().collect();
        sites.sort_by_key(|site| SECOND.rank(*site, &topology));
        let turn = [(2, 1), (2, 0), (0, 1), (0, 0), (1, 1), (1, 0)];
        assert_eq!(sites, turn.map(|(region, shard)| SiteId::new(region, shard)));
    }

    #[test]
    fn there_is_one_for_each_stream() {
        let topology = Topology::new(["a", "b", "c"].map(String::from).to_vec(), 2);
        let streams = PerStream::new(&topology, 2, |stream| stream);
        assert_eq!(streams.iter().count(), 6);
        assert!(all(&topology, 2).all(|stream| streams[stream] == stream));
    }

    #[test]
    fn a_transaction_belongs_to_the_namespace_of_the_first_key_that_it_writes() {
        let of = |operations: Vec<Operation>| coordinator_of(&Transaction::new(operations), 2);
        let read = |key: &str| Operation::Read { key: key.into() };
        let namespaces: Vec<u16> = (0..9).map(|number| of(vec![read(&format!("table00{number}"))])).collect();
        assert!(namespaces.contains(&0) && namespaces.contains(&1), "{namespaces:?}");
        for (number, namespace) in (0..9).zip(namespaces) {
            let key = |row: &str| format!("table00{number}{row}");
            assert_eq!(of(vec![read(&key("row")), read("elsewhere")]), namespace, "whatever the row, and what comes after");
            let range = KeyRange::prefix(key("").as_bytes());
            assert_eq!(of(vec![Operation::Scan { range, limit: 5 }]), namespace);
            let write = Operation::Add { key: Key::from(key("row").as_str()), amount: 1 };
            assert_eq!(of(vec![read("what the catalog says"), write]), namespace, "all that is read is in the same place");
        }
    }
}
