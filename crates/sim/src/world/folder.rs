//! The data folder of a site beside its store: which incarnations it lists, and what was heard of others. By the rules of
//! [`rhumb_store::incarnations`], as in the node, a site whose folder or store is not what it left is found out: at its start, or when it
//! meets a site that has heard of more.
//!
//! ```text
//!   start of a process   the store must show what the list says ▶ a new incarnation: in the store, then in the list
//!   two sites meet       each must know what the other has heard of it ▶ each notes the other's incarnation
//!   each comparison      of clocks tells how often the store has synced
//! ```
//!
//! Two sites meet when their processes compare clocks, or when the first message arrives: nothing is taken from a site before. A site that is
//! refused ends, and so does each of its next starts.
//!
//! A folder is a snapshot of the disk here: it has the births that it had, so that only the list and the peers tell. What was heard of syncs
//! counts for nothing once a peer has restarted, as the node writes it every few seconds only. Nobody can tell that a folder
//! lacks what no peer has heard of, or what one has heard that is met too late; so a folder is only replaced by one of which all other
//! sites have noted a later incarnation.

use super::World;
use crate::fault::Replacement;
use crate::planted::Planted;
use rhumb_core::SiteId;
use rhumb_core::actor::Actor;
use rhumb_store::incarnations::{Heard, IncarnationId, Incarnations};
use rhumb_store::{MemoryEngine, Stamp, Store};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::iter;

/// Starts and meetings that were refused, and reads of a damaged disk, are counted under this name.
pub(crate) const REFUSED: &str = "folder.refused";

/// What stands in the folder beside the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    incarnations: Incarnations<()>,
    stamp: Option<Stamp>,
    heard: BTreeMap<SiteId, Heard<1>>,
}

/// A snapshot of a site's disk.
pub(crate) struct Snapshot {
    folder: Folder,
    engine: MemoryEngine,
}

impl Folder {
    /// Begins an incarnation that is called `now`, or by the next name that is free.
    fn begin(&mut self, now: IncarnationId) {
        if let Some(stamp) = self.stamp {
            self.incarnations.count((), stamp.syncs);
        }
        let incarnation = self.incarnations.fresh(now);
        self.stamp = Some(Stamp { incarnation, syncs: 0 });
        self.incarnations.push(incarnation, iter::once(()));
        self.heard.values_mut().for_each(|heard| heard.counts = [0]);
    }

    /// One more group of writes is on disk.
    pub(crate) fn synced(&mut self) {
        if let Some(stamp) = &mut self.stamp {
            stamp.syncs += 1;
        }
    }

    /// How far the site has come.
    fn progress(&self) -> Heard<1> {
        self.stamp.map_or(Heard::default(), |stamp| Heard { incarnation: stamp.incarnation, counts: [stamp.syncs] })
    }

    /// What was heard of `peer`.
    fn heard(&self, peer: SiteId) -> Heard<1> {
        self.heard.get(&peer).copied().unwrap_or_default()
    }
}

impl<A: Actor> World<A> {
    /// A process of `site` opens its folder. False if that is not what the site left.
    pub(crate) fn open_folder(&mut self, site: SiteId) -> bool {
        let (now, believes) = (self.now.as_micros() + 1, self.rules.breaks(Planted::OldFoldersAccepted));
        let folder = &mut self.site_mut(site).folder;
        match folder.incarnations.check_store((), folder.stamp, None) {
            Err(error) if !believes => {
                self.refuse(site, error);
                false
            }
            _ => {
                folder.begin(now);
                true
            }
        }
    }

    /// `a` and `b`, whose processes both run, meet, unless they have. False if one of them is not what the other knows, and ends.
    pub(crate) fn meet(&mut self, a: SiteId, b: SiteId) -> bool {
        if self.have_met(a, b) {
            return true;
        }
        for (site, peer) in [(a, b), (b, a)] {
            let (folder, heard) = (&self.site(site).folder, self.site(peer).folder.heard(site));
            if let Err(missed) = folder.incarnations.check_heard(&heard, &folder.progress(), [()])
                && !self.rules.breaks(Planted::OldFoldersAccepted)
            {
                self.refuse(site, missed);
                return false;
            }
        }
        for (site, peer) in [(a, b), (b, a)] {
            let incarnation = self.site(peer).folder.progress().incarnation;
            self.site_mut(site).folder.heard.entry(peer).or_default().meet(incarnation);
        }
        let processes = (self.site(a.min(b)).processes, self.site(a.max(b)).processes);
        self.met.insert((a.min(b), a.max(b)), processes);
        true
    }

    /// True if the present processes of `a` and `b` have met.
    pub(crate) fn have_met(&self, a: SiteId, b: SiteId) -> bool {
        let processes = (self.site(a.min(b)).processes, self.site(a.max(b)).processes);
        a == b || self.met.get(&(a.min(b), a.max(b))) == Some(&processes)
    }

    /// `site` and those whom it reaches meet, and tell each other how far they have come. False if `site` is refused.
    pub(crate) fn greet(&mut self, site: SiteId) -> bool {
        let reached: Vec<SiteId> = self.reached(site).collect();
        for peer in reached {
            if !self.meet(site, peer) {
                if self.site(site).is_running() {
                    continue;
                }
                return false;
            }
            let (said, heard) = (self.site(site).folder.progress(), self.site(peer).folder.progress());
            self.site_mut(peer).folder.heard.entry(site).or_default().hear(&said);
            self.site_mut(site).folder.heard.entry(peer).or_default().hear(&heard);
        }
        true
    }

    /// Ends `site`, whose folder cannot be gone on with.
    pub(crate) fn refuse(&mut self, site: SiteId, why: impl Debug) {
        self.trace.line(self.now, format_args!("{site} refuses its folder: {why:?}"));
        *self.probes.entry(REFUSED).or_default() += 1;
        self.crash(site, None);
    }

    /// Takes a snapshot of the disk of `site`.
    pub(crate) fn take_snapshot(&mut self, site: SiteId) {
        let state = self.site_mut(site);
        state.snapshot = Some(Snapshot { folder: state.folder.clone(), engine: state.store.engine().durable() });
    }

    /// Puts something else in the place of the folder of `site`, or of its store, which ends for it. Nothing is done where nobody could tell.
    pub(crate) fn replace_folder(&mut self, site: SiteId, with: Replacement) {
        let Some(snapshot) = self.site_mut(site).snapshot.take() else { return };
        let known = match with {
            Replacement::Older => snapshot.folder.incarnations.clone(),
            Replacement::Empty => Incarnations::default(),
            Replacement::OlderStore if snapshot.folder.progress().incarnation == self.site(site).folder.progress().incarnation => return,
            Replacement::OlderStore | Replacement::EmptyStore => self.site(site).folder.incarnations.clone(),
        };
        let is_whole = matches!(with, Replacement::Older | Replacement::Empty);
        let noted = |peer: &SiteId| known.get(self.site(*peer).folder.heard(site).incarnation).is_none() && self.has_heard_of(*peer, site);
        if is_whole && !self.sites_left().filter(|peer| *peer != site).all(|peer| noted(&peer)) {
            return;
        }
        *self.probes.entry(with.probe()).or_default() += 1;
        self.crash(site, None);
        let is_unfit = !self.rules.breaks(Planted::OldFoldersAccepted);
        let state = self.site_mut(site);
        state.is_unfit = is_unfit;
        let engine = match with {
            Replacement::Older | Replacement::OlderStore => snapshot.engine,
            Replacement::Empty | Replacement::EmptyStore => MemoryEngine::new(),
        };
        state.store = Store::open(engine).expect("a snapshot opens, and so does an empty engine");
        match with {
            Replacement::Older => state.folder = snapshot.folder,
            Replacement::Empty => state.folder = Folder::default(),
            Replacement::OlderStore => state.folder.stamp = snapshot.folder.stamp,
            Replacement::EmptyStore => state.folder.stamp = None,
        }
    }

    fn has_heard_of(&self, peer: SiteId, site: SiteId) -> bool {
        self.site(peer).folder.heard(site).incarnation != 0
    }
}
