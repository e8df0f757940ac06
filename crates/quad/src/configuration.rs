//! A configuration: which sites take part, with which quorums, and since which epoch. There is one at a time; consensus decides the next.
//!
//! What makes a change safe is said of sets of sites here, for all quorum systems at once:
//!
//! - a set *covers* a configuration if no write quorum avoids it: whatever was committed is known to one of the set;
//! - a set *fences* it if no quorum at all avoids it: once the set has stopped, nobody can commit or confirm a read;
//! - a set *carries* a configuration if it holds one of its write quorums: what all of the set hold counts as written there.
//!
//! For QuAD's cores and slaves these are the paper's cases: a majority of the cores covers and fences, and so do one core and all
//! slaves, if the other cores are lost and not merely cut off. Section IV, "Online Reconfiguration", differs: it asks all sites.

use super::quorums::{CORES_MAX, Quorums, SITES_MAX};
use rhumb_commit::reason::Reason;
use rhumb_core::{SiteId, Timestamp, TxnId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Counts configurations, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

impl Epoch {
    /// That of the first configuration.
    pub const FIRST: Epoch = Epoch(1);

    /// That of the next configuration.
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }

    /// A message that a site of this epoch sends.
    pub fn says<T>(self, said: T) -> Stamped<T> {
        Stamped { epoch: self, said }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// A message with its sender's epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped<T> {
    /// The epoch that the sender was in.
    pub epoch: Epoch,
    /// What it said.
    pub said: T,
}

impl<T: fmt::Display> fmt::Display for Stamped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.epoch, self.said)
    }
}

/// How many cores there are to be. One number for the cluster: load, distance and failures are of sites, and not of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cores {
    /// So many; fewer while fewer sites are up.
    Fixed(usize),
    /// As many as availability and load ask for.
    Auto,
}

impl Cores {
    /// What is wrong with it for so many members.
    pub fn validation_error(self, members: usize) -> Option<String> {
        let most = members.min(CORES_MAX);
        let Cores::Fixed(cores) = self else { return None };
        (!(1..=most).contains(&cores)).then(|| format!("{cores} cores are asked for; {members} sites can have 1 to {most}"))
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cores::Fixed(cores) => write!(f, "{cores}"),
            Cores::Auto => write!(f, "auto"),
        }
    }
}

/// What brought a configuration about: its reason in a word, to count by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Cause {
    /// The cluster began with it.
    First,
    /// An operator asked for these quorums.
    Operator,
    /// An operator asked for so many cores, or `auto` needs more of them.
    Cores,
    /// A core was silent.
    Silence,
    /// A site joined.
    Join,
    /// Scores rise by more than the change costs.
    Gain,
    /// An attempt was given up, and the quorums stay as they were.
    Resumed,
    /// A gateway was silent, and what it had prepared kept its locks. The quorums stay as they were.
    Orphans,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::First => "first",
            Cause::Operator => "operator",
            Cause::Cores => "cores",
            Cause::Silence => "silence",
            Cause::Join => "join",
            Cause::Gain => "gain",
            Cause::Resumed => "resumed",
            Cause::Orphans => "orphans",
        })
    }
}

/// What a change of configuration is to bring about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// The new quorums.
    pub quorums: Quorums,
    /// All sites that take part from then on.
    pub members: BTreeSet<SiteId>,
    /// Members of the old configuration that an operator has declared lost: they will never serve again as they are.
    pub lost: BTreeSet<SiteId>,
    /// How many cores there are to be from then on; none: as before.
    pub cores: Option<Cores>,
    /// What it is for.
    pub cause: Cause,
    /// For people: why.
    pub why: Reason,
}

impl Goal {
    /// These quorums of their own sites, with nobody declared lost.
    pub fn of(quorums: Quorums, why: &str) -> Goal {
        Goal { members: quorums.members(), quorums, lost: BTreeSet::new(), cores: None, cause: Cause::Operator, why: why.into() }
    }

    /// What is wrong with it, as a successor of `old`.
    pub fn validation_error(&self, old: &Configuration) -> Option<Reason> {
        let strange = self.quorums.members().into_iter().find(|site| !self.members.contains(site));
        let dead = self.lost.iter().find(|site| self.members.contains(site));
        let unknown = self.lost.iter().find(|site| !old.bases.contains_key(site));
        let error = self.quorums.validation_error();
        if error.is_some() {
            error
        } else if self.members.len() > SITES_MAX {
            Some(format!("{} members are more than a configuration may have: {SITES_MAX}", self.members.len()).into())
        } else if !old.may_lose(&self.lost) {
            Some("so many sites are declared lost that the rest could not know what they do: a majority of all must be left, or all slaves and a core".into())
        } else if let Some(site) = strange {
            Some(Reason::from("site ").then(site).then(" stands in quorums and is no member"))
        } else if let Some(site) = dead {
            Some(Reason::from("site ").then(*site).then(" is declared lost and cannot be a member"))
        } else {
            unknown.map(|site| Reason::from("site ").then(*site).then(" is declared lost and was no member"))
        }
    }
}

/// A transaction whose commit a reconfiguration found, and that takes effect with the new configuration. What it wrote is got by
/// reconciliation, like all other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Which.
    pub txn: TxnId,
    /// Its commit timestamp.
    pub at: Timestamp,
}

/// A configuration, as it was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Its number.
    pub epoch: Epoch,
    /// Its quorums.
    pub quorums: Quorums,
    /// All who take part, in the consensus on the next one too. Of each the latest epoch of which it is known to hold all that was
    /// committed before: this one if it was reconciled for it.
    pub bases: BTreeMap<SiteId, Epoch>,
    /// No timestamp of an earlier epoch that anybody depends on is above it.
    pub floor: Timestamp,
    /// Transactions of the epoch before whose commits were found, not shown to anybody yet.
    pub carried: Vec<Carried>,
    /// How many cores there are to be. Each configuration has it from the one before, unless its goal said otherwise.
    pub cores: Cores,
    /// What brought it about.
    pub cause: Cause,
    /// For people: why it came.
    pub why: Reason,
}

impl Configuration {
    /// The first one: nothing was committed before.
    pub fn first(quorums: Quorums) -> Configuration {
        Configuration {
            epoch: Epoch::FIRST,
            bases: quorums.members().into_iter().map(|site| (site, Epoch::FIRST)).collect(),
            cores: Cores::Fixed(quorums.cores().len()),
            quorums,
            floor: Timestamp::ZERO,
            carried: Vec::new(),
            cause: Cause::First,
            why: "the first".into(),
        }
    }

    /// All who take part.
    pub fn members(&self) -> BTreeSet<SiteId> {
        self.bases.keys().copied().collect()
    }

    /// Those who hold all that was committed before.
    pub fn holders(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.bases.iter().filter(|(_, base)| **base == self.epoch).map(|(site, _)| *site)
    }

    /// From which epoch on differences may still be asked for.
    pub fn oldest_base(&self) -> Epoch {
        self.bases.values().copied().min().unwrap_or(self.epoch)
    }

    /// True if whatever was committed in this epoch is known to one of `sites`.
    pub fn is_covered_by(&self, sites: &BTreeSet<SiteId>) -> bool {
        let rest: BTreeSet<SiteId> = self.members().difference(sites).copied().collect();
        !rest.iter().any(|at| self.quorums.write(*at, &rest, 0).is_some())
    }

    /// True if nothing can be read or committed in this epoch without one of `sites`.
    pub fn is_fenced_by(&self, sites: &BTreeSet<SiteId>) -> bool {
        let rest: BTreeSet<SiteId> = self.members().difference(sites).copied().collect();
        let quorum = |at: &SiteId| self.quorums.read(*at, &rest, 0).or_else(|| self.quorums.write(*at, &rest, 0));
        !rest.iter().any(|at| quorum(at).is_some())
    }

    /// True if `promised` are enough for the consensus on what follows: all but the lost, if an operator has declared some lost; else a
    /// majority of all members, with a slave among them if there are any, or with all cores. So two quorums intersect even if only one of them was
    /// formed after the operator's declaration.
    pub fn is_quorate(&self, promised: &BTreeSet<SiteId>, lost: &BTreeSet<SiteId>) -> bool {
        if !lost.is_empty() {
            return self.may_lose(lost) && self.bases.keys().all(|site| lost.contains(site) || promised.contains(site));
        }
        let has_slave = self.slaves().any(|site| promised.contains(&site));
        let has_all_cores = self.quorums.cores().iter().all(|core| promised.contains(core));
        self.is_majority(promised) && (has_slave || has_all_cores || self.slaves().next().is_none())
    }

    /// True if an operator may declare `lost` lost: those who are left are a majority of all members, or a core and all slaves.
    pub fn may_lose(&self, lost: &BTreeSet<SiteId>) -> bool {
        let left: BTreeSet<SiteId> = self.members().difference(lost).copied().collect();
        let has_core = self.quorums.cores().iter().any(|core| left.contains(core));
        let has_all_slaves = self.slaves().next().is_some() && self.slaves().all(|site| left.contains(&site));
        self.is_majority(&left) || has_core && has_all_slaves
    }

    fn is_majority(&self, sites: &BTreeSet<SiteId>) -> bool {
        sites.iter().filter(|site| self.bases.contains_key(site)).count() * 2 > self.bases.len()
    }

    /// The members that are no cores.
    fn slaves(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.bases.keys().copied().filter(|site| !self.quorums.cores().contains(site))
    }

    /// True if the next configuration may be based on what `sealed` say, since `lost` are lost. If not, more of them are needed.
    pub fn may_be_left(&self, sealed: &BTreeSet<SiteId>, lost: &BTreeSet<SiteId>) -> bool {
        let out: BTreeSet<SiteId> = sealed.union(lost).copied().collect();
        self.is_quorate(sealed, lost) && self.is_covered_by(sealed) && self.is_fenced_by(&out)
    }
}

/// True if what all of `sites` hold counts as written under `quorums`: they hold one of its write quorums.
pub fn carries(quorums: &Quorums, sites: &BTreeSet<SiteId>) -> bool {
    sites.iter().any(|at| quorums.write(*at, sites, 0).is_some())
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |sites: &mut dyn Iterator<Item = SiteId>| sites.map(|site| site.to_string()).collect::<Vec<_>>().join(" ");
        let cores = names(&mut self.quorums.cores().iter().copied());
        write!(
            f,
            "{}: cores {cores}; members {}; holders {}",
            self.epoch,
            names(&mut self.members().into_iter()),
            names(&mut self.holders())
        )?;
        write!(f, "; {} carried", self.carried.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{set, site};
    use super::*;

    /// Sites 0, 1 and 2 are cores, 3 and 4 slaves.
    fn five() -> Configuration {
        let cores: Vec<SiteId> = (0..3).map(site).collect();
        let preference = (0..5).map(|n| (site(n), cores.clone())).collect();
        Configuration::first(Quorums::Cores { cores, preference })
    }

    #[test]
    fn a_majority_of_the_cores_covers_and_fences() {
        assert!(five().is_covered_by(&set(&[0, 2])) && five().is_fenced_by(&set(&[0, 2])));
        assert!(!five().is_covered_by(&set(&[1, 3])), "site 4 could have written with 0 and 2");
        assert!(!five().may_be_left(&set(&[0, 2]), &set(&[])), "two of five are no majority");
        assert!(five().may_be_left(&set(&[0, 2, 4]), &set(&[])));
    }

    #[test]
    fn one_core_and_all_slaves_cover_and_fence_only_if_the_other_cores_are_lost() {
        let left = set(&[1, 3, 4]);
        assert!(five().is_covered_by(&left));
        assert!(!five().is_fenced_by(&left), "the other two could still read");
        assert!(!five().may_be_left(&left, &set(&[])));
        assert!(five().may_be_left(&left, &set(&[0, 2])));
        assert!(!five().may_be_left(&set(&[1, 3]), &set(&[0, 2])), "a slave is missing");
        assert!(!five().may_be_left(&set(&[3, 4]), &set(&[0, 1, 2])), "no core is left");
    }

    #[test]
    fn who_reads_anywhere_and_writes_everywhere_is_fenced_by_all_only() {
        let all = Configuration::first(Quorums::WriteAll { sites: vec![site(0), site(1), site(2)] });
        assert!(all.is_covered_by(&set(&[2])));
        assert!(!all.is_fenced_by(&set(&[0, 2])), "site 1 could still read at home");
        assert!(all.may_be_left(&set(&[0, 2]), &set(&[1])));
    }

    #[test]
    fn what_a_write_quorum_holds_is_carried() {
        let quorums = five().quorums;
        assert!(carries(&quorums, &set(&[0, 1, 2])));
        assert!(carries(&quorums, &set(&[0, 2, 3])), "as a slave writes");
        assert!(!carries(&quorums, &set(&[0, 1])));
    }

    #[test]
    fn a_goal_that_makes_no_sense_is_refused() {
        let old = five();
        let goal = Goal::of(old.quorums.clone(), "as before");
        assert_eq!(goal.validation_error(&old), None);
        let error = |change: &dyn Fn(&mut Goal)| {
            let mut goal = goal.clone();
            change(&mut goal);
            goal.validation_error(&old).expect("something is wrong").to_string()
        };
        assert!(error(&|goal| goal.quorums = Quorums::WriteAll { sites: vec![] }).contains("at least one core"));
        assert!(error(&|goal| goal.members.retain(|member| *member != site(4))).contains("r4.0 stands in quorums"));
        assert!(error(&|goal| assert!(goal.lost.insert(site(4)))).contains("r4.0 is declared lost and cannot"));
        assert!(error(&|goal| assert!(goal.lost.insert(site(9)))).contains("r9.0 is declared lost and was"));
    }
}
