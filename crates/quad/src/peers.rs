//! Who is up, as far as this site knows, and who has been sent what was decided.
//!
//! Source: section IV, of failures that are detected.
//!
//! A site is up that has answered a ping lately: it is heard, and has heard what it was asked. Whoever is merely heard is asked.

use super::config::TOLD_AGAIN_TICKS;
use super::quorums::SITES_MAX;
use rhumb_core::{SiteId, Table};
use std::collections::BTreeMap;

/// What a site knows of the others' links; all in ticks of this incarnation.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    /// When each was last heard of.
    heard: BTreeMap<SiteId, u64>,
    /// When each that was behind this epoch was sent the configuration.
    told: BTreeMap<SiteId, u64>,
    /// When each last answered a ping.
    answered: BTreeMap<SiteId, u64>,
    /// Whom each of them heard then.
    hears: BTreeMap<SiteId, Vec<SiteId>>,
}

impl Peers {
    /// A message of `site` arrives.
    pub(super) fn hear(&mut self, site: SiteId, tick: u64) {
        self.heard.insert(site, tick);
    }

    /// `site` answers a ping, and hears these.
    pub(super) fn answer(&mut self, site: SiteId, tick: u64, hears: Vec<SiteId>) {
        self.answered.insert(site, tick);
        self.hears.insert(site, hears);
    }

    /// True if a site that is behind is to be sent the configuration now: not for each of its messages.
    pub(super) fn is_to_be_told(&mut self, site: SiteId, tick: u64) -> bool {
        let is_due = self.told.get(&site).is_none_or(|told| tick >= told + TOLD_AGAIN_TICKS);
        if is_due {
            self.told.insert(site, tick);
        }
        is_due
    }

    /// Another configuration is there, which nobody was sent yet.
    pub(super) fn begin_epoch(&mut self) {
        self.told.clear();
    }

    /// The sites heard of since `tick`.
    pub(super) fn heard_since(&self, tick: u64) -> impl Iterator<Item = SiteId> + '_ {
        since(&self.heard, tick)
    }

    /// The sites that answered a ping since `tick`.
    pub(super) fn answered_since(&self, tick: u64) -> impl Iterator<Item = SiteId> + '_ {
        since(&self.answered, tick)
    }

    /// Whom each site hears, as it last said.
    pub(super) fn hears(&self) -> &BTreeMap<SiteId, Vec<SiteId>> {
        &self.hears
    }

    /// Lists its tables.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("heard", self.heard.len(), SITES_MAX).stays());
        visit(Table::new("told", self.told.len(), SITES_MAX).stays());
        visit(Table::new("answered", self.answered.len(), SITES_MAX).stays());
        visit(Table::new("hears", self.hears.values().map(Vec::len).sum(), SITES_MAX * SITES_MAX).stays());
    }
}

fn since(ticks: &BTreeMap<SiteId, u64>, tick: u64) -> impl Iterator<Item = SiteId> + '_ {
    ticks.iter().filter(move |(_, at)| **at >= tick).map(|(site, _)| *site)
}
