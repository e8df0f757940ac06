//! The faults that can strike a world, each by itself, for scripted scenarios; [`FaultPlan`](crate::FaultPlan) draws them
//! from a seed.

use crate::network::LinkFaults;
use crate::place::{Links, Place};
use rhumb_core::{RegionId, SiteId, Span};
use std::fmt;

/// What takes the place of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The snapshot of the disk.
    Older,
    /// Nothing.
    Empty,
    /// The store of the snapshot, while the list of incarnations stays.
    OlderStore,
    /// An empty store, while the list of incarnations stays.
    EmptyStore,
}

impl Replacement {
    /// Each of them.
    pub const ALL: [Replacement; 4] = [Replacement::Older, Replacement::Empty, Replacement::OlderStore, Replacement::EmptyStore];

    /// The name under which it is counted.
    pub fn probe(self) -> &'static str {
        match self {
            Replacement::Older => "folder.older",
            Replacement::Empty => "folder.empty",
            Replacement::OlderStore => "folder.older_store",
            Replacement::EmptyStore => "folder.empty_store",
        }
    }
}

/// Something that goes wrong, or is set right again.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The sites of `place` crash. All that a process holds is gone: its state, timers, loads under way, what waits for
    /// the disk. The store keeps what was synced, and of the rest what happened to reach the disk.
    Crash {
        /// Which.
        place: Place,
        /// They restart after so long; if not set, only when told to.
        down: Option<Span>,
    },
    /// The site crashes in the middle of carrying out the effects of its next step that has at least two of them.
    CrashMidStep {
        /// Which.
        site: SiteId,
        /// It restarts after so long; if not set, only when told to.
        down: Option<Span>,
    },
    /// Those sites of `place` that are down start again.
    Restart {
        /// Which.
        place: Place,
    },
    /// Nothing sent on these links arrives. One direction: cut the reversed links, too, for a whole partition.
    Cut {
        /// Which.
        links: Links,
        /// For how long; if not set, until mended.
        span: Option<Span>,
    },
    /// A cut of exactly these links ends.
    Mend {
        /// Which.
        links: Links,
    },
    /// These links delay, lose, double or reorder messages; it replaces what was said before of exactly these links.
    Disturb {
        /// Which.
        links: Links,
        /// How.
        faults: LinkFaults,
        /// For how long; if not set, until the world is healed.
        span: Option<Span>,
    },
    /// Each sync of this site takes longer.
    SlowDisk {
        /// Which.
        site: SiteId,
        /// How many times longer.
        factor: u64,
        /// For how long.
        span: Span,
    },
    /// The site stands still, then goes on with all that has piled up. A sync under way ends meanwhile.
    Stall {
        /// Which.
        site: SiteId,
        /// For how long.
        span: Span,
    },
    /// The site's clock is set forwards, or backwards if negative.
    ClockJump {
        /// Which.
        site: SiteId,
        /// How far, in microseconds.
        by_micros: i64,
    },
    /// The next sync of the site fails. Nothing may rest on a disk that has failed, so the process ends, and nothing leaves that waited for
    /// the sync; the store keeps what was durable before, and of the rest what happened to reach the disk.
    FailSync {
        /// Which.
        site: SiteId,
        /// It restarts after so long; if not set, only when told to.
        down: Option<Span>,
    },
    /// The sites of `place` are lost for good, along with their disks: neither a restart nor the healing brings them back.
    Lose {
        /// Which.
        place: Place,
    },
    /// A snapshot of the site's disk is taken, and kept.
    TakeSnapshot {
        /// Of which.
        site: SiteId,
    },
    /// The site ends, and another folder takes the place of its own, or of a part of it. Only if a snapshot was taken before, and if others
    /// could tell.
    ReplaceFolder {
        /// Whose.
        site: SiteId,
        /// By what.
        with: Replacement,
        /// It restarts after so long.
        down: Span,
    },
    /// A block of the site's disk is damaged: its next read fails, and the process ends; so does each that follows.
    Damage {
        /// Whose.
        site: SiteId,
    },
    /// An operator gives a region up in which a site cannot go on with its folder: all its sites are lost for good. Else nothing happens.
    GiveUp {
        /// Which.
        region: RegionId,
    },
    /// Everything but what is lost is up and connected again; faults still to come do not.
    Heal,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Crash { place, down } => write!(f, "crash {place}{}", For(*down)),
            Fault::CrashMidStep { site, down } => write!(f, "crash {site} in its next step{}", For(*down)),
            Fault::Restart { place } => write!(f, "restart {place}"),
            Fault::Cut { links, span } => write!(f, "cut {links}{}", For(*span)),
            Fault::Mend { links } => write!(f, "mend {links}"),
            Fault::Disturb { links, faults, span } => write!(f, "disturb {links} {faults:?}{}", For(*span)),
            Fault::SlowDisk { site, factor, span } => write!(f, "slow disk {site} ×{factor}{}", For(Some(*span))),
            Fault::Stall { site, span } => write!(f, "stall {site}{}", For(Some(*span))),
            Fault::ClockJump { site, by_micros } => write!(f, "clock {site} {by_micros:+}µs"),
            Fault::FailSync { site, down } => write!(f, "the next sync of {site} fails{}", For(*down)),
            Fault::Lose { place } => write!(f, "lose {place}"),
            Fault::TakeSnapshot { site } => write!(f, "snapshot of {site}"),
            Fault::ReplaceFolder { site, with, down } => write!(f, "{with:?} in place of the folder of {site}{}", For(Some(*down))),
            Fault::Damage { site } => write!(f, "damage {site}"),
            Fault::GiveUp { region } => write!(f, "give {region} up"),
            Fault::Heal => f.write_str("heal"),
        }
    }
}

struct For(Option<Span>);

impl fmt::Display for For {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => write!(f, " for {span}"),
            None => Ok(()),
        }
    }
}
