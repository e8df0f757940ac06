//! The faults that can strike a world, each by itself, for scripted scenarios; [`FaultPlan`](crate::FaultPlan) draws them
//! from a seed.

use crate::network::LinkFaults;
use crate::place::{Links, Place};
use rhumb_core::{SiteId, Span};
use std::fmt;

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
    /// Everything is up and connected again; faults still to come do not.
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
