//! The chains of a region, epoch by epoch: on the coordinator alone, or over all sites of the region; and what is done if they do not
//! end.
//!
//! Only the site that speaks for the region runs them, as only its vote counts. Over several sites a visit, a claim or a grant may be
//! lost, or a site with it. Nothing is asked for twice: a run that does not end in time is begun again by the coordinator alone,
//! whose messages to itself are not lost, and so are the runs of the epochs that follow, for a while. What comes out is a vote all the
//! same, only later; at the worst the region has none on that epoch.
//!
//! Source: section VI.C.
//!
//! Invariants: this site makes one vote on an epoch, at the most; nothing here is durable, and nothing but that vote follows from it.

use super::chain;
use super::config::{CHAINS_ALONE_TICKS, CHAINS_PATIENCE_TICKS, ChainSites, EARLY_VISITS_MAX};
use super::context::{Context, Shared};
use super::crossing::{Arrival, Part, Resolution};
use super::epoch::Epoch;
use super::epochs::{Epochs, Scheduled};
use super::log::Log;
use super::message::{Crossing, Identifier, Note, Order, Visit};
use super::planted::Planted;
use super::speculation::Speculation;
use super::stream_id::StreamId;
use rhumb_core::{SiteId, Table, work};
use std::collections::BTreeMap;

/// An epoch's chains, as a site has them.
#[derive(Debug, Default)]
struct EpochChains {
    running: Option<Running>,
    /// Its servers in a run over several sites.
    part: Option<PartOfRun>,
    /// This site has made the region's vote.
    has_voted: bool,
}

/// The chain servers of this site in a run over several.
#[derive(Debug)]
struct PartOfRun {
    crossing: Crossing,
    part: Part,
}

/// A run that this site decides.
#[derive(Debug)]
enum Running {
    Alone(Speculation),
    Crossing {
        crossing: Crossing,
        resolution: Resolution,
        /// The tick in which it began.
        since: u64,
    },
}

/// The chains of all epochs that are not settled.
#[derive(Debug, Default)]
pub(super) struct Chains {
    epochs: BTreeMap<Epoch, EpochChains>,
    /// Visits in epochs whose batches are not all here.
    early: BTreeMap<Epoch, Vec<(Crossing, Visit)>>,
    /// Until that tick chains do not cross sites.
    alone_until: u64,
}

impl Chains {
    /// Lists its tables, where so many epochs may be unsettled.
    pub(super) fn tables(&self, epochs_max: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("chains", self.epochs.len(), epochs_max));
        visit(Table::new("chains.early", self.early.values().map(Vec::len).sum(), EARLY_VISITS_MAX));
    }

    /// All batches of an epoch are here: sends its conflicting transactions on their chains, and takes up the visits that came before that.
    /// Returns this region's vote, if that is the end of them.
    pub(super) fn on_scheduled(&mut self, epoch: Epoch, log: &Log, cx: &mut Context<'_>) -> Option<Order> {
        let mut vote = self.begin(epoch, log, cx);
        for (crossing, visit) in self.early.remove(&epoch).unwrap_or_default() {
            vote = self.on_cross(crossing, visit, &log.epochs, cx).or(vote);
        }
        vote
    }

    /// Sends the conflicting transactions of a scheduled epoch on their chains, if this region's vote is still to come and this site
    /// is to make it.
    fn begin(&mut self, epoch: Epoch, log: &Log, cx: &mut Context<'_>) -> Option<Order> {
        let Scheduled { conflicts, footprints } = log.epochs.scheduled(epoch).filter(|scheduled| !scheduled.conflicts.is_empty())?;
        let has_voted = self.epochs.get(&epoch).is_some_and(|chains| chains.has_voted);
        let has_vote = has_voted || log.epochs.has_vote(epoch, cx.me.region);
        if has_vote || !log.streams.speaks_for(cx.me.region) || !votes_in_time(epoch, log, cx) {
            return None;
        }
        let servers = cx.config.chain_servers;
        let one_site = cx.config.chain_sites == ChainSites::Coordinator || cx.topology.shard_count() == 1;
        let chains = self.epochs.entry(epoch).or_default();
        if one_site || cx.ticks < self.alone_until {
            let (speculation, visits) = Speculation::begin(epoch, servers, conflicts, footprints);
            chains.running = Some(Running::Alone(speculation));
            visits.into_iter().for_each(|visit| cx.fx.send(cx.shared.me, Note::Visit(visit)));
            return None;
        }
        cx.fx.count("catenae.crossing");
        let crossing = Crossing { coordinator: cx.me, began: cx.now };
        chains.running = Some(Running::Crossing { crossing, resolution: Resolution::begin(epoch, conflicts), since: cx.ticks });
        let mut vote = None;
        for &transaction in conflicts.keys() {
            vote = self.cross_next(crossing, Visit { transaction, server: servers }, &log.epochs, cx).or(vote);
        }
        vote
    }

    /// At the end of an epoch: begins chains that this site has to run since it speaks for the region, and those again that have not
    /// ended in time. Returns the votes of those that end at once.
    pub(super) fn on_end_of_epoch(&mut self, log: &Log, cx: &mut Context<'_>) -> Vec<Order> {
        let settled = log.epochs.settled();
        self.early.retain(|epoch, _| *epoch > settled);
        let mut votes = Vec::new();
        for epoch in log.epochs.undecided() {
            match self.epochs.get(&epoch).and_then(|chains| chains.running.as_ref()) {
                None => {}
                Some(Running::Crossing { since, .. }) if cx.ticks - since > CHAINS_PATIENCE_TICKS => {
                    cx.fx.count("catenae.crossing_lost");
                    self.alone_until = cx.ticks + CHAINS_ALONE_TICKS;
                }
                Some(_) => continue,
            }
            votes.extend(self.begin(epoch, log, cx));
        }
        votes
    }

    /// All up to `epoch` is settled.
    pub(super) fn forget(&mut self, epoch: Epoch) {
        self.epochs = self.epochs.split_off(&epoch.plus(1));
    }

    /// A transaction arrives at a chain server of this site, which runs the chains alone. Returns this region's vote if that ends them.
    pub(super) fn on_visit(&mut self, visit: Visit, cx: &mut Context<'_>) -> Option<Order> {
        let epoch = visit.transaction.epoch;
        let Some(Running::Alone(speculation)) = &mut self.epochs.get_mut(&epoch)?.running else { return None };
        let (visits, order) = (speculation.visit(visit), speculation.order());
        visits.into_iter().for_each(|visit| cx.fx.send(cx.shared.me, Note::Visit(visit)));
        self.end(epoch, order)
    }

    /// A transaction arrives at a chain server of this site, in chains that cross sites. Returns this region's vote if that ends them.
    pub(super) fn on_cross(&mut self, crossing: Crossing, visit: Visit, epochs: &Epochs, cx: &mut Context<'_>) -> Option<Order> {
        let epoch = visit.transaction.epoch;
        if epoch <= epochs.settled() {
            return None;
        }
        let Some(scheduled) = epochs.scheduled(epoch) else {
            work::add(self.early.len());
            if self.early.values().map(Vec::len).sum::<usize>() < EARLY_VISITS_MAX {
                self.early.entry(epoch).or_default().push((crossing, visit));
            }
            return None;
        };
        let part = &mut self.epochs.entry(epoch).or_default().part;
        if part.as_ref().is_none_or(|known| known.crossing.began < crossing.began) {
            *part = Some(PartOfRun { crossing, part: part_of_site(scheduled, cx) });
        }
        let known = part.as_mut().filter(|known| known.crossing == crossing)?;
        match known.part.come(visit) {
            Arrival::Passes => self.cross_next(crossing, visit, epochs, cx),
            Arrival::Claims(open) if crossing.coordinator == cx.me => self.on_claim(crossing, visit, open, epochs, cx),
            Arrival::Claims(open) => {
                cx.fx.send(crossing.coordinator, Note::Claim { crossing, visit, open });
                None
            }
            Arrival::Nothing => None,
        }
    }

    /// A chain server asks whether a transaction may be next there. Returns this region's vote if that ends the chains.
    pub(super) fn on_claim(
        &mut self,
        crossing: Crossing,
        visit: Visit,
        open: Vec<Identifier>,
        epochs: &Epochs,
        cx: &mut Context<'_>,
    ) -> Option<Order> {
        let mut vote = None;
        for grant in self.resolution(crossing, visit.transaction, epochs)?.claim(visit, open) {
            match site_of(grant.server, cx) {
                site if site == cx.me => vote = self.on_granted(crossing, grant, epochs, cx).or(vote),
                site => cx.fx.send(site, Note::Granted { crossing, visit: grant }),
            }
        }
        vote
    }

    /// A transaction may be next at a chain server of this site. Returns this region's vote if that ends the chains.
    pub(super) fn on_granted(&mut self, crossing: Crossing, visit: Visit, epochs: &Epochs, cx: &mut Context<'_>) -> Option<Order> {
        let chains = self.epochs.get_mut(&visit.transaction.epoch)?;
        let known = chains.part.as_mut().filter(|known| known.crossing == crossing)?;
        if known.part.grant(visit) { self.cross_next(crossing, visit, epochs, cx) } else { None }
    }

    /// A transaction is at the end of its backward pass. Returns this region's vote if that ends the chains.
    pub(super) fn on_through(&mut self, crossing: Crossing, transaction: Identifier, epochs: &Epochs) -> Option<Order> {
        let resolution = self.resolution(crossing, transaction, epochs)?;
        resolution.through(transaction);
        let order = resolution.order();
        self.end(transaction.epoch, order)
    }

    /// Sends a transaction on from a chain server to its last one below, or has the coordinator know that there is none.
    fn cross_next(&mut self, crossing: Crossing, from: Visit, epochs: &Epochs, cx: &mut Context<'_>) -> Option<Order> {
        let transaction = from.transaction;
        let own = epochs.scheduled(transaction.epoch)?.footprints.get(&transaction)?;
        let next = (0..from.server).rev().find(|server| chain::passes(own, *server, cx.config.chain_servers));
        match next {
            Some(server) => cx.fx.send(site_of(server, cx), Note::Cross { crossing, visit: Visit { transaction, server } }),
            None if crossing.coordinator == cx.me => return self.on_through(crossing, transaction, epochs),
            None => cx.fx.send(crossing.coordinator, Note::Through { crossing, transaction }),
        }
        None
    }

    /// Chains have ended with this order: it is the region's vote.
    fn end(&mut self, epoch: Epoch, order: Option<Order>) -> Option<Order> {
        let order = order?;
        let chains = self.epochs.get_mut(&epoch).expect("its chains were under way");
        chains.running = None;
        chains.has_voted = true;
        Some(order)
    }

    /// The resolution of such a run, if it is this site's and still under way.
    fn resolution(&mut self, crossing: Crossing, transaction: Identifier, epochs: &Epochs) -> Option<&mut Resolution> {
        let is_known = epochs.scheduled(transaction.epoch)?.conflicts.contains_key(&transaction);
        match &mut self.epochs.get_mut(&transaction.epoch)?.running {
            Some(Running::Crossing { crossing: own, resolution, .. }) if *own == crossing && is_known => Some(resolution),
            _ => None,
        }
    }
}

/// True if a vote on `epoch` would still count.
fn votes_in_time(epoch: Epoch, log: &Log, cx: &Shared) -> bool {
    let covered = log.streams.view(StreamId::first(cx.me.region)).covered();
    covered < epoch.plus(cx.config.window_epochs) || cx.rules.breaks(Planted::LateVoteCounts)
}

/// The chain servers of this site if they are on all sites of the region, for an epoch.
fn part_of_site(Scheduled { conflicts, footprints }: Scheduled<'_>, cx: &Shared) -> Part {
    let servers = cx.config.chain_servers;
    Part::begin((0..servers).filter(|server| site_of(*server, cx) == cx.me), servers, conflicts, footprints)
}

/// The site where a chain server stands if they are on all of them.
fn site_of(server: u16, cx: &Shared) -> SiteId {
    SiteId { region: cx.me.region, shard: server % cx.topology.shard_count() }
}

#[cfg(test)]
mod tests;
