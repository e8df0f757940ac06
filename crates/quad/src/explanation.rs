//! What a site says of its quorums: who is what, what was measured, what would change now and why. By the same function that decides it
//! ([`plan`](super::manager::plan)), so that nobody is told another rule than the one that is followed.

use super::configuration::{Cause, Cores, Epoch};
use super::manager::{Plan, plan};
use super::monitor::Heard;
use super::site::Site;
use rhumb_core::{Inspect, SiteId, Table, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A site's view of the quorums.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Whose view it is.
    pub site: SiteId,
    /// The epoch that it is in.
    pub epoch: Epoch,
    /// How many cores there are to be.
    pub cores: Cores,
    /// What brought the configuration about.
    pub cause: Cause,
    /// The same for people.
    pub why: String,
    /// The epoch is sealed here: the configuration is being changed.
    pub sealed: bool,
    /// All members, this site, and those who ask to join.
    pub sites: Vec<SiteFacts>,
    /// The site that plans: the first member that is up.
    pub planner: Option<SiteId>,
    /// What would change at the end of a period; none if quorums do not follow what is measured.
    pub plan: Option<Plan>,
    /// Transactions that wait for an outcome here, or are decided and not known to all.
    pub unresolved: usize,
    /// What was counted in this life of the site.
    pub tally: Tally,
    /// How full its tables and queues are.
    pub tables: Vec<Table>,
}

/// What a site is in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is in quorums of others.
    Core,
    /// It is in its own alone.
    Slave,
    /// It takes no part.
    Stranger,
}

/// What is known of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteFacts {
    /// Which.
    pub site: SiteId,
    /// What it is.
    pub role: Role,
    /// It has answered lately.
    pub up: bool,
    /// What it had to do in its last period, over its capacity.
    pub load: Option<f64>,
    /// The same as expected of the next period, and the smoothing factor that speaks.
    pub forecast: Option<(f64, f64)>,
    /// How strong it is.
    pub score: Option<f64>,
    /// Whom a read at this site asks now, if there is such a quorum.
    pub reads: BTreeSet<SiteId>,
    /// Whom a write asks.
    pub writes: BTreeSet<SiteId>,
    /// It holds all that was committed before its epoch, as far as is known.
    pub caught_up: bool,
    /// Rows there.
    pub rows: u64,
    /// Rows written in the epoch there.
    pub written: u64,
}

/// What a site counts of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it stopped serving an epoch.
    pub sealed: u64,
    /// Rows that it got from others because it lacked them.
    pub copied: u64,
    /// Configurations that it adopted.
    pub changes: BTreeMap<Cause, u64>,
    /// When it adopted the last one.
    pub since: Option<Time>,
}

impl Tally {
    /// The site adopts a configuration.
    pub(super) fn adopted(&mut self, now: Time, cause: Cause) {
        *self.changes.entry(cause).or_default() += 1;
        self.since = Some(now);
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Core => "core",
            Role::Slave => "slave",
            Role::Stranger => "none",
        })
    }
}

impl Site {
    /// What this site says of the quorums.
    pub fn explanation(&self) -> Explanation {
        let up = self.reachable();
        let joining: BTreeSet<SiteId> = self.monitor.joining().collect();
        let adaptation = self.config.adaptation.as_ref();
        let plan = adaptation.and_then(|adaptation| {
            let (known, age) = (self.known(adaptation), self.age(adaptation));
            plan(&self.configuration, age, adaptation, &known, &self.fit(&up), &joining, true)
        });
        let members = self.configuration.members();
        let all: BTreeSet<SiteId> = members.iter().copied().chain([self.me]).chain(joining).collect();
        Explanation {
            site: self.me,
            epoch: self.configuration.epoch,
            cores: self.configuration.cores,
            cause: self.configuration.cause,
            why: self.configuration.why.clone(),
            sealed: self.sealed.is_some(),
            sites: all.into_iter().map(|site| self.facts(site, &up, plan.as_ref())).collect(),
            planner: members.into_iter().find(|site| up.contains(site)),
            plan,
            unresolved: self.unresolved(),
            tally: self.tally.clone(),
            tables: self.list_tables(),
        }
    }

    fn facts(&self, site: SiteId, up: &BTreeSet<SiteId>, plan: Option<&Plan>) -> SiteFacts {
        let configuration = &self.configuration;
        let role = match configuration.bases.contains_key(&site) {
            false => Role::Stranger,
            true if configuration.quorums.cores().contains(&site) => Role::Core,
            true => Role::Slave,
        };
        let quorum = |found: Option<BTreeSet<SiteId>>| found.filter(|_| role != Role::Stranger).unwrap_or_default();
        let unknown = Heard::default();
        let heard = self.monitor.heard(site).unwrap_or(&unknown);
        let reconciled = configuration.bases.get(&site) == Some(&configuration.epoch);
        SiteFacts {
            site,
            role,
            up: up.contains(&site),
            load: (heard.at > 0).then(|| heard.last.load_ppm as f64 / 1e6),
            forecast: heard.forecast.next().map(|expected| expected.value).zip(heard.forecast.alpha()),
            score: plan.and_then(|plan| plan.scores.get(&site)).copied(),
            reads: quorum(configuration.quorums.read(site, up, 0)),
            writes: quorum(configuration.quorums.write(site, up, 0)),
            caught_up: if site == self.me { self.is_caught_up() } else { reconciled || heard.last.caught_up },
            rows: heard.last.rows,
            written: heard.last.written,
        }
    }
}
