//! The chains of a region, epoch by epoch: on the coordinator alone, or over all sites of the region; and what is done if they do not
//! end.
//!
//! Only the site that speaks for the region runs them, as only its vote counts. Over several sites a visit, a claim or a grant may be
//! lost, or a site with it. Nothing is asked for twice: a run that does not end in time is begun again by the coordinator alone,
//! whose messages to itself are not lost, and so are the runs of the epochs that follow, for a while. What comes out is a vote all the
//! same, only later; at the worst the region has none on that epoch.

use super::config::{CHAINS_ALONE_TICKS, CHAINS_PATIENCE_TICKS, ChainSites, EARLY_VISITS_MAX};
use super::crossing::{Arrival, Part, Resolution};
use super::epoch::Epoch;
use super::message::{Crossing, Identifier, Note, Order};
use super::planted::Planted;
use super::site::Site;
use super::speculation::{Speculation, Visit};
use super::stream_id::StreamId;
use super::{chain, epochs::Content};
use rhumb_core::{Effects, SiteId, Table, work};
use std::collections::BTreeMap;

/// An epoch's chains, as a site has them.
#[derive(Debug, Default)]
pub(super) struct EpochChains {
    /// The run that this site decides, and the tick in which it began.
    running: Option<(u64, Running)>,
    /// Its servers in a run over several sites.
    part: Option<(Crossing, Part)>,
    /// This site has made the region's vote.
    has_voted: bool,
}

#[derive(Debug)]
enum Running {
    Alone(Speculation),
    Crossing(Crossing, Resolution),
}

/// The same for all epochs.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Visits in epochs whose batches are not all here.
    early: BTreeMap<Epoch, Vec<(Crossing, Visit)>>,
    /// Until that tick chains do not cross sites.
    alone_until: u64,
}

impl Chains {
    /// Lists what waits.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("chains.early", self.early.values().map(Vec::len).sum(), EARLY_VISITS_MAX));
    }
}

impl Site {
    /// Sends the conflicting transactions of a scheduled epoch on their chains, if this region's vote is still to come and this site
    /// is to make it.
    pub(super) fn begin_chains(&mut self, epoch: Epoch, fx: &mut Effects<Site>) {
        let leads = self.speaks_for_region();
        let one_site = self.config.chain_sites == ChainSites::Coordinator || self.topology.shard_count() == 1;
        let alone = one_site || self.ticks < self.chains.alone_until;
        let (me, servers, began) = (self.me, self.config.chain_servers, self.now);
        let in_time = self.votes_in_time(epoch);
        let Some(content) = self.epochs.contents.get_mut(&epoch) else { return };
        let Some(conflicts) = content.conflicts.as_ref().filter(|conflicts| !conflicts.is_empty()) else { return };
        if !leads || !in_time || content.votes.has(me.region) || content.chains.has_voted {
            return;
        }
        if alone {
            let (speculation, visits) = Speculation::begin(epoch, servers, conflicts, &content.footprints);
            content.chains.running = Some((self.ticks, Running::Alone(speculation)));
            return visits.into_iter().for_each(|visit| visit_next(me, visit, fx));
        }
        fx.count("catenae.crossing");
        let crossing = Crossing { coordinator: me, began };
        let transactions: Vec<Identifier> = conflicts.keys().copied().collect();
        content.chains.running = Some((self.ticks, Running::Crossing(crossing, Resolution::begin(epoch, conflicts))));
        transactions.into_iter().for_each(|transaction| self.cross_next(crossing, Visit { transaction, server: servers }, fx));
    }

    /// True for the leader of the region's first stream, where its votes stand.
    fn speaks_for_region(&self) -> bool {
        self.streams[StreamId::first(self.me.region)].leads()
    }

    /// True if a vote on `epoch` would still count.
    fn votes_in_time(&self, epoch: Epoch) -> bool {
        let covered = self.streams[StreamId::first(self.me.region)].view().covered();
        covered < epoch.plus(self.config.window_epochs) || self.rules.breaks(Planted::LateVoteCounts)
    }

    /// At the end of an epoch: begins chains that this site has to run since it speaks for the region, and those again that have not
    /// ended in time.
    pub(super) fn look_after_chains(&mut self, fx: &mut Effects<Site>) {
        if self.me.shard > 0 && !self.speaks_for_region() {
            self.forget_votes();
        }
        let settled = self.epochs.settled;
        self.chains.early.retain(|epoch, _| *epoch > settled);
        let ticks = self.ticks;
        let open =
            self.epochs.contents.iter().inspect(|_| work::add(1)).filter(|(_, content)| content.is_judged() && !content.chains.has_voted);
        let due = open.filter_map(|(epoch, content)| match &content.chains.running {
            None => Some((*epoch, false)),
            Some((since, Running::Crossing(..))) => (ticks - since > CHAINS_PATIENCE_TICKS).then_some((*epoch, true)),
            Some((_, Running::Alone(_))) => None,
        });
        for (epoch, is_late) in due.collect::<Vec<(Epoch, bool)>>() {
            if is_late {
                fx.count("catenae.crossing_lost");
                self.chains.alone_until = ticks + CHAINS_ALONE_TICKS;
            }
            self.begin_chains(epoch, fx);
        }
    }

    /// A transaction arrives at a chain server of this site, which runs the chains alone.
    pub(super) fn on_visit(&mut self, visit: Visit, fx: &mut Effects<Site>) {
        let epoch = visit.transaction.epoch;
        let Some(content) = self.epochs.contents.get_mut(&epoch) else { return };
        let Some((_, Running::Alone(speculation))) = &mut content.chains.running else { return };
        let (visits, order) = (speculation.visit(visit), speculation.order());
        self.end_chains(epoch, order);
        visits.into_iter().for_each(|visit| visit_next(self.me, visit, fx));
    }

    /// A transaction arrives at a chain server of this site, in chains that cross sites.
    pub(super) fn on_cross(&mut self, crossing: Crossing, visit: Visit, fx: &mut Effects<Site>) {
        let epoch = visit.transaction.epoch;
        if epoch <= self.epochs.settled {
            return;
        }
        let Some(content) = self.epochs.contents.get_mut(&epoch).filter(|content| content.conflicts.is_some()) else {
            work::add(self.chains.early.len());
            if self.chains.early.values().map(Vec::len).sum::<usize>() < EARLY_VISITS_MAX {
                self.chains.early.entry(epoch).or_default().push((crossing, visit));
            }
            return;
        };
        let is_new = content.chains.part.as_ref().is_none_or(|(known, _)| known.began < crossing.began);
        if is_new {
            let (servers, sites) = (self.config.chain_servers, self.topology.shard_count());
            let here = (0..servers).filter(|server| server % sites == self.me.shard);
            let conflicts = content.conflicts.as_ref().expect("it is scheduled");
            content.chains.part = Some((crossing, Part::begin(here, servers, conflicts, &content.footprints)));
        }
        let Some((_, part)) = content.chains.part.as_mut().filter(|(known, _)| *known == crossing) else { return };
        match part.come(visit) {
            Arrival::Passes => self.cross_next(crossing, visit, fx),
            Arrival::Claims(open) if crossing.coordinator == self.me => self.on_claim(crossing, visit, open, fx),
            Arrival::Claims(open) => fx.send(crossing.coordinator, Note::Claim { crossing, visit, open }),
            Arrival::Nothing => {}
        }
    }

    /// A chain server asks whether a transaction may be next there.
    pub(super) fn on_claim(&mut self, crossing: Crossing, visit: Visit, open: Vec<Identifier>, fx: &mut Effects<Site>) {
        let Some(resolution) = self.resolution(crossing, visit.transaction) else { return };
        for grant in resolution.claim(visit, open) {
            match self.site_of(grant.server) {
                site if site == self.me => self.on_granted(crossing, grant, fx),
                site => fx.send(site, Note::Granted { crossing, visit: grant }),
            }
        }
    }

    /// A transaction may be next at a chain server of this site.
    pub(super) fn on_granted(&mut self, crossing: Crossing, visit: Visit, fx: &mut Effects<Site>) {
        let content = self.epochs.contents.get_mut(&visit.transaction.epoch);
        let part = content.and_then(|content| content.chains.part.as_mut()).filter(|(known, _)| *known == crossing);
        if part.is_some_and(|(_, part)| part.grant(visit)) {
            self.cross_next(crossing, visit, fx);
        }
    }

    /// A transaction is at the end of its backward pass.
    pub(super) fn on_through(&mut self, crossing: Crossing, transaction: Identifier) {
        let Some(resolution) = self.resolution(crossing, transaction) else { return };
        resolution.through(transaction);
        let order = resolution.order();
        self.end_chains(transaction.epoch, order);
    }

    /// Sends a transaction on from a chain server to its last one below, or has the coordinator know that there is none.
    fn cross_next(&mut self, crossing: Crossing, from: Visit, fx: &mut Effects<Site>) {
        let transaction = from.transaction;
        let footprints = self.epochs.contents.get(&transaction.epoch).map(|content| &content.footprints);
        let Some(own) = footprints.and_then(|footprints| footprints.get(&transaction)) else { return };
        let next = (0..from.server).rev().find(|server| chain::passes(own, *server, self.config.chain_servers));
        match next {
            Some(server) => fx.send(self.site_of(server), Note::Cross { crossing, visit: Visit { transaction, server } }),
            None if crossing.coordinator == self.me => self.on_through(crossing, transaction),
            None => fx.send(crossing.coordinator, Note::Through { crossing, transaction }),
        }
    }

    /// All batches of an epoch are here: takes up the visits that came before them.
    pub(super) fn take_early_visits(&mut self, epoch: Epoch, fx: &mut Effects<Site>) {
        let early = self.chains.early.remove(&epoch).unwrap_or_default();
        early.into_iter().for_each(|(crossing, visit)| self.on_cross(crossing, visit, fx));
    }

    fn end_chains(&mut self, epoch: Epoch, order: Option<Order>) {
        let Some(order) = order else { return };
        let content = self.epochs.contents.get_mut(&epoch).expect("its chains were under way");
        content.chains.running = None;
        content.chains.has_voted = true;
        self.vote(order);
    }

    /// The resolution of such a run, if it is this site's and still under way.
    fn resolution(&mut self, crossing: Crossing, transaction: Identifier) -> Option<&mut Resolution> {
        let content: &mut Content = self.epochs.contents.get_mut(&transaction.epoch)?;
        let known = content.conflicts.as_ref().is_some_and(|conflicts| conflicts.contains_key(&transaction));
        match &mut content.chains.running {
            Some((_, Running::Crossing(own, resolution))) if *own == crossing && known => Some(resolution),
            _ => None,
        }
    }

    /// The site where a chain server stands if they are on all of them.
    fn site_of(&self, server: u16) -> SiteId {
        SiteId { region: self.me.region, shard: server % self.topology.shard_count() }
    }
}

fn visit_next(me: SiteId, visit: Visit, fx: &mut Effects<Site>) {
    fx.send(me, Note::Visit(visit));
}
