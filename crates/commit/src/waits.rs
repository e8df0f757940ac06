//! The wide-area round trips that a step of a transaction takes, as far as they are known before it: whom it waits for, and how long.
//!
//! Invariant: a step that is foreseen to take no trip waits for no other region.

use crate::transaction::{ReadMode, RegionStatus, Role, Step, Wait};
use rhumb_core::Span;

/// A step where reads ask the nearest copy or a majority, and a majority votes on commits, as by Replicated Commit (its section 3.2). `None` if a
/// region that counts has not been heard yet.
pub fn by_majority(regions: &[RegionStatus], step: Step) -> Option<Wait> {
    match step {
        Step::Read(ReadMode::Stale(_) | ReadMode::Optimistic) => nearest(regions, |region| region.role != Role::None),
        Step::Read(ReadMode::Active) => nearest(regions, |region| region.role == Role::Active),
        Step::Read(ReadMode::Locking | ReadMode::Snapshot) => majority(regions),
        Step::Commit { reads, .. } if reads.is_read_only() => Some(Wait::default()),
        Step::Commit { two_rounds, handoff, .. } => {
            let rounds: u32 = if two_rounds { 2 } else { 1 };
            let here = regions.iter().find(|region| region.local)?;
            let to = here.commits_at.as_ref().filter(|_| handoff).and_then(|name| regions.iter().find(|region| region.name == *name));
            match to.filter(|to| !to.local) {
                Some(to) => {
                    let time = to.rtt? + to.floor? * u64::from(rounds);
                    Some(Wait { trips: 1 + rounds, time, regions: vec![to.name.clone()] })
                }
                None => {
                    let Wait { trips, time, regions } = majority(regions)?;
                    Some(Wait { trips: trips * rounds, time: time * u64::from(rounds), regions })
                }
            }
        }
    }
}

/// The gateway's own region, if it passes, or else the one that the placement names or the nearest that does.
fn nearest(regions: &[RegionStatus], passes: impl Fn(&RegionStatus) -> bool) -> Option<Wait> {
    let here = regions.iter().find(|region| region.local)?;
    if passes(here) {
        return Some(Wait::default());
    }
    let named = here.reads_at.as_ref().and_then(|name| regions.iter().find(|region| region.name == *name && passes(region)));
    let nearest = || regions.iter().filter(|region| passes(region) && region.rtt.is_some()).min_by_key(|region| region.rtt);
    let region = named.or_else(nearest)?;
    Some(Wait { trips: 1, time: region.rtt?, regions: vec![region.name.clone()] })
}

/// The nearest regions that make a majority of the active ones.
fn majority(regions: &[RegionStatus]) -> Option<Wait> {
    let active = || regions.iter().filter(|region| region.role == Role::Active);
    let wanted = active().count() / 2 + 1;
    let mut others: Vec<_> = active().filter(|region| !region.local).filter_map(|region| Some((region.rtt?, &region.name))).collect();
    others.sort();
    let wanted = wanted - active().filter(|region| region.local).count();
    if others.len() < wanted {
        return None;
    }
    others.truncate(wanted);
    let time = others.last().map_or(Span::ZERO, |(rtt, _)| *rtt);
    Some(Wait { trips: u32::from(wanted > 0), time, regions: others.into_iter().map(|(_, name)| name.clone()).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::CommitOptions;
    use rhumb_core::Timestamp;

    fn region(name: &str, rtt: u64, role: Role) -> RegionStatus {
        RegionStatus {
            name: name.into(),
            local: rtt == 0,
            sites: 1,
            reachable: 1,
            rtt: Some(Span::from_millis(rtt)),
            floor: Some(Span::from_millis(50)),
            role,
            reads_at: None,
            commits_at: None,
        }
    }

    fn five() -> Vec<RegionStatus> {
        let distances = [("here", 0), ("far", 200), ("near", 20), ("middle", 80), ("farther", 300)];
        distances.into_iter().map(|(name, rtt)| region(name, rtt, Role::Active)).collect()
    }

    fn commit(reads: ReadMode) -> Step {
        let CommitOptions { two_rounds, handoff } = CommitOptions::default();
        Step::Commit { reads, two_rounds, handoff }
    }

    fn wait(trips: u32, millis: u64, regions: &[&str]) -> Option<Wait> {
        Some(Wait { trips, time: Span::from_millis(millis), regions: regions.iter().map(|name| (*name).into()).collect() })
    }

    #[test]
    fn locks_snapshots_and_commits_wait_for_the_nearest_majority() {
        for step in [Step::Read(ReadMode::Locking), Step::Read(ReadMode::Snapshot), commit(ReadMode::Locking), commit(ReadMode::Optimistic)]
        {
            assert_eq!(by_majority(&five(), step), wait(1, 80, &["near", "middle"]), "{step:?}");
        }
        let twice = Step::Commit { reads: ReadMode::Locking, two_rounds: true, handoff: true };
        assert_eq!(by_majority(&five(), twice), wait(2, 160, &["near", "middle"]));
    }

    #[test]
    fn what_only_reads_does_not_commit_and_a_copy_here_is_read_here() {
        let stale = ReadMode::Stale(Timestamp::ZERO);
        for step in
            [commit(ReadMode::Snapshot), commit(stale), Step::Read(stale), Step::Read(ReadMode::Optimistic), Step::Read(ReadMode::Active)]
        {
            assert_eq!(by_majority(&five(), step), wait(0, 0, &[]), "{step:?}");
        }
    }

    #[test]
    fn a_region_without_a_copy_reads_where_the_placement_says_or_at_the_nearest() {
        let mut regions = five();
        regions[0].role = Role::None;
        assert_eq!(by_majority(&regions, Step::Read(ReadMode::Optimistic)), wait(1, 20, &["near"]));
        regions[2].role = Role::Passive;
        assert_eq!(by_majority(&regions, Step::Read(ReadMode::Active)), wait(1, 80, &["middle"]));
        regions[0].reads_at = Some("far".into());
        assert_eq!(by_majority(&regions, Step::Read(ReadMode::Optimistic)), wait(1, 200, &["far"]));
        assert_eq!(by_majority(&regions, commit(ReadMode::Optimistic)), wait(1, 200, &["middle", "far"]), "two of three");
    }

    #[test]
    fn a_commit_that_is_handed_over_takes_the_way_there_and_the_trip_from_there() {
        let mut regions = five();
        regions[0].commits_at = Some("near".into());
        assert_eq!(by_majority(&regions, commit(ReadMode::Optimistic)), wait(2, 70, &["near"]));
        let here = Step::Commit { reads: ReadMode::Optimistic, two_rounds: false, handoff: false };
        assert_eq!(by_majority(&regions, here), wait(1, 80, &["near", "middle"]));
    }

    #[test]
    fn a_region_alone_waits_for_nobody_and_one_that_hears_no_majority_cannot_tell() {
        assert_eq!(by_majority(&[region("here", 0, Role::Active)], commit(ReadMode::Locking)), wait(0, 0, &[]));
        let mut regions = five();
        regions[1..4].iter_mut().for_each(|region| region.rtt = None);
        assert_eq!(by_majority(&regions, commit(ReadMode::Locking)), None);
    }
}
