//! Which regions hold what: the answer of the planner as the protocols obey it.
//!
//! | role | holds a copy of all rows | votes | its gateway reads |
//! |---|---|---|---|
//! | active | yes | yes | at home |
//! | passive | yes, a little behind | no | at home, validated by the votes |
//! | neither | no | no | at the nearest region that has a copy |
//!
//! Every region has gateways, whatever its role. Source: Zakhary et al., "Global-Scale Placement of Transactional Data
//! Stores", EDBT 2018, section 2.
//!
//! A placement has an *epoch*, one higher than that of the placement before. It is itself a row, one copy of it in every
//! shard, so which placement comes next is decided by a commit of the active regions, like everything else.

use rhumb_core::{Key, RegionId, Topology, Value, record};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Regions that a cluster may have, at the most.
pub const REGIONS_MAX: usize = 64;
/// Former electorates that a placement remembers. A replica that missed more epochs copies all rows afresh.
pub const FORMER_MAX: usize = 64;
/// What the keys of placements begin with. No row of a client does.
const KEY_PREFIX: [u8; 4] = [0xff; 4];

/// Some regions of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Regions(u64);

impl Regions {
    /// None of them.
    pub const NONE: Regions = Regions(0);

    /// The first `count` regions.
    ///
    /// # Panics
    /// If there are more than [`REGIONS_MAX`].
    pub fn first(count: usize) -> Regions {
        (0..count as u16).map(RegionId).collect()
    }

    /// True if `region` is one of them.
    pub fn contains(self, region: RegionId) -> bool {
        usize::from(region.0) < REGIONS_MAX && self.0 & (1 << region.0) != 0
    }

    /// How many they are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The smallest number of them that is more than half.
    pub fn majority(self) -> usize {
        self.len() / 2 + 1
    }

    /// Those in either.
    pub fn or(self, other: Regions) -> Regions {
        Regions(self.0 | other.0)
    }

    /// Those in both.
    pub fn and(self, other: Regions) -> Regions {
        Regions(self.0 & other.0)
    }

    /// Those not in `other`.
    pub fn without(self, other: Regions) -> Regions {
        Regions(self.0 & !other.0)
    }

    /// The regions, in order.
    pub fn iter(self) -> impl Iterator<Item = RegionId> {
        (0..REGIONS_MAX as u16).map(RegionId).filter(move |region| self.contains(*region))
    }
}

impl From<RegionId> for Regions {
    fn from(region: RegionId) -> Regions {
        [region].into_iter().collect()
    }
}

impl FromIterator<RegionId> for Regions {
    fn from_iter<I: IntoIterator<Item = RegionId>>(regions: I) -> Regions {
        Regions(regions.into_iter().fold(0, |bits, region| {
            assert!(usize::from(region.0) < REGIONS_MAX, "a cluster has at most {REGIONS_MAX} regions");
            bits | 1 << region.0
        }))
    }
}

impl fmt::Display for Regions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, region) in self.iter().enumerate() {
            write!(f, "{}{region}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// Which regions hold what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Its number: one more than that of the placement before it.
    pub epoch: u64,
    /// The active ones: their votes decide.
    pub voters: Regions,
    /// Those that hold a copy and do not vote.
    pub passives: Regions,
    /// Where the clients of a region read and commit, if not as near as they can.
    pub coordinators: BTreeMap<RegionId, Coordinators>,
    /// The active regions of the epochs just before this one, the last first.
    pub former: Vec<Regions>,
    /// The regions that were declared lost, with the epoch in which that was so first: what they voted in the epochs before is gone with
    /// them.
    pub lost: BTreeMap<RegionId, u64>,
}

/// Where the clients of a region read and commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coordinators {
    /// Optimistic reads go to this region, unless there is a copy at home.
    pub read: RegionId,
    /// Commits are handed to this region.
    pub commit: RegionId,
}

/// What a new placement is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The active regions.
    pub voters: Regions,
    /// The passive ones.
    pub passives: Regions,
    /// Where the clients of a region read and commit, if not as near as they can.
    pub coordinators: BTreeMap<RegionId, Coordinators>,
    /// Regions that never come back as they were: an operator declares that, see [`Placement::is_lost`].
    pub lost: Regions,
}

/// Why a placement cannot be changed so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// Nobody would decide.
    NoVoter,
    /// A region is said to be both.
    Both(RegionId),
    /// A region is to vote on rows that it does not have.
    NoCopy(RegionId),
    /// Optimistic reads would find nothing.
    NothingToRead(RegionId),
    /// A region that is lost is to hold a copy.
    LostCopy(RegionId),
}

impl ChangeError {
    /// What it says, with the names of regions.
    pub fn named(&self, name: impl Fn(RegionId) -> String) -> String {
        match *self {
            ChangeError::NoVoter => "a placement has at least one active region".into(),
            ChangeError::Both(region) => format!("{} cannot be active and passive at once", name(region)),
            ChangeError::NoCopy(region) => {
                format!("{} cannot become active before it is passive and has a copy of all rows", name(region))
            }
            ChangeError::NothingToRead(region) => format!("{} cannot serve reads: it is to have no copy", name(region)),
            ChangeError::LostCopy(region) => {
                format!("{} cannot be declared lost and hold a copy: leave it out of the active and the passive regions", name(region))
            }
        }
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(|region| region.to_string()))
    }
}

impl std::error::Error for ChangeError {}

impl Placement {
    /// The first placement of a cluster: what `change` says.
    pub fn first(change: Change) -> Result<Placement, ChangeError> {
        change.check()?;
        let Change { voters, passives, coordinators, lost: _ } = change;
        Ok(Placement { epoch: 1, voters, passives, coordinators, former: Vec::new(), lost: BTreeMap::new() })
    }

    /// All of `count` regions are active.
    pub fn everywhere(count: usize) -> Placement {
        let change = Change { voters: Regions::first(count), passives: Regions::NONE, coordinators: BTreeMap::new(), lost: Regions::NONE };
        Placement::first(change).expect("a cluster has a region, and all of them have a copy")
    }

    /// The placement that comes after this one.
    pub fn next(&self, change: Change) -> Result<Placement, ChangeError> {
        change.check()?;
        if let Some(region) = change.voters.without(self.copies()).iter().next() {
            return Err(ChangeError::NoCopy(region));
        }
        let Change { voters, passives, coordinators, lost: lost_now } = change;
        let former = [self.voters].into_iter().chain(self.former.iter().copied()).take(FORMER_MAX).collect();
        let epoch = self.epoch + 1;
        let mut lost = self.lost.clone();
        lost.extend(lost_now.iter().map(|region| (region, epoch)));
        Ok(Placement { epoch, voters, passives, coordinators, former, lost })
    }

    /// True if what `region` voted in `epoch` was declared lost.
    pub fn is_lost(&self, region: RegionId, epoch: u64) -> bool {
        self.lost.get(&region).is_some_and(|lost| epoch < *lost)
    }

    /// The regions that this very placement declares lost. None of them votes for it.
    pub fn declares_lost(&self) -> Regions {
        self.lost.iter().filter(|(_, epoch)| **epoch == self.epoch).map(|(region, _)| *region).collect()
    }

    /// The regions that hold a copy.
    pub fn copies(&self) -> Regions {
        self.voters.or(self.passives)
    }

    /// The regions that serve reads of one replica: those with a copy, or only the active ones.
    pub fn read_by(&self, active: bool) -> Regions {
        if active { self.voters } else { self.copies() }
    }

    /// The active regions of each epoch from `epoch` up to the one before this; none if that is too long ago to know.
    pub fn since(&self, epoch: u64) -> Option<&[Regions]> {
        let epochs = usize::try_from(self.epoch.checked_sub(epoch)?).ok()?;
        self.former.get(..epochs)
    }

    /// The key under which `shard` has the placement.
    pub fn key(shard: u16, topology: &Topology) -> Key {
        let key = |n: u32| Key::new([KEY_PREFIX, n.to_be_bytes()].concat());
        (0..).map(key).find(|key| topology.shard_of(key) == shard).expect("some number hashes to every shard")
    }

    /// True if `key` is one of a placement's.
    pub fn is_key(key: &Key) -> bool {
        key.0.starts_with(&KEY_PREFIX)
    }

    /// The placement as the value of its row.
    pub fn encode(&self) -> Value {
        Value(record::encode(self))
    }

    /// The placement in the value of its row.
    pub fn decode(value: &Value) -> Option<Placement> {
        record::decode(&value.0)
    }
}

impl Change {
    fn check(&self) -> Result<(), ChangeError> {
        let copies = self.voters.or(self.passives);
        if self.voters.is_empty() {
            return Err(ChangeError::NoVoter);
        }
        if let Some(region) = self.voters.and(self.passives).iter().next() {
            return Err(ChangeError::Both(region));
        }
        if let Some(region) = self.lost.and(copies).iter().next() {
            return Err(ChangeError::LostCopy(region));
        }
        match self.coordinators.values().find(|named| !copies.contains(named.read)) {
            Some(named) => Err(ChangeError::NothingToRead(named.read)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} active {}", self.epoch, self.voters)?;
        if !self.passives.is_empty() {
            write!(f, " passive {}", self.passives)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(some: &[u16]) -> Regions {
        some.iter().copied().map(RegionId).collect()
    }

    fn change(voters: &[u16], passives: &[u16]) -> Change {
        Change { voters: regions(voters), passives: regions(passives), coordinators: BTreeMap::new(), lost: Regions::NONE }
    }

    #[test]
    fn regions_are_a_set() {
        let some = regions(&[4, 0, 4]);
        assert_eq!((some.len(), some.majority(), some.to_string()), (2, 2, "r0,r4".to_owned()));
        assert!(some.contains(RegionId(4)) && !some.contains(RegionId(1)) && !some.contains(RegionId(64)));
        assert_eq!(some.without(RegionId(0).into()), RegionId(4).into());
        assert_eq!(Regions::first(3).or(some).len(), 4);
        assert_eq!(Regions::first(3).and(some), RegionId(0).into());
        assert_eq!(Regions::first(REGIONS_MAX).len(), REGIONS_MAX);
        assert!(Regions::NONE.is_empty() && Regions::NONE.iter().next().is_none());
    }

    #[test]
    fn a_region_votes_only_once_it_has_a_copy() {
        let first = Placement::first(change(&[0, 1], &[])).expect("two active regions");
        assert_eq!(first.next(change(&[0, 2], &[])), Err(ChangeError::NoCopy(RegionId(2))));
        let second = first.next(change(&[0, 1], &[2])).expect("r2 becomes passive");
        let third = second.next(change(&[0, 2], &[])).expect("r2 has a copy");
        assert_eq!((third.epoch, third.copies()), (3, regions(&[0, 2])));
        assert_eq!(third.since(1), Some(&[regions(&[0, 1]), regions(&[0, 1])][..]));
        assert_eq!(third.since(3), Some(&[][..]));
        assert_eq!(third.since(0), None, "there was no such epoch");
    }

    #[test]
    fn a_placement_that_cannot_be_is_refused() {
        assert_eq!(Placement::first(change(&[], &[1])), Err(ChangeError::NoVoter));
        assert_eq!(Placement::first(change(&[0, 1], &[1])), Err(ChangeError::Both(RegionId(1))));
        let coordinators = BTreeMap::from([(RegionId(2), Coordinators { read: RegionId(2), commit: RegionId(2) })]);
        assert_eq!(Placement::first(Change { coordinators, ..change(&[0], &[1]) }), Err(ChangeError::NothingToRead(RegionId(2))));
    }

    #[test]
    fn every_shard_has_a_key_of_its_own_for_the_placement() {
        let topology = Topology::new(vec!["a".into()], 5);
        for shard in 0..5 {
            let key = Placement::key(shard, &topology);
            assert_eq!(topology.shard_of(&key), shard);
            assert!(Placement::is_key(&key));
        }
    }

    #[test]
    fn a_placement_round_trips_through_its_row() {
        let placement = Placement::everywhere(3);
        assert_eq!(Placement::decode(&placement.encode()), Some(placement));
        assert_eq!(Placement::decode(&Value::from("x")), None);
    }
}
