//! What every site measures for whoever plans placements, and tells all others: how far away the other regions are, and how
//! much its own clients commit and read. So any site can answer for the whole cluster.
//!
//! Rates forget: what happened a minute ago counts a third.

use super::context::{Context, Shared};
use super::message::{Measured, Note};
use rhumb_core::{RegionId, SiteId, Span};
use std::collections::BTreeMap;

/// Ticks between two tellings.
const TELL_TICKS: u64 = 4;
/// A rate moves by this part of its distance at every tick: with two ticks a second, e-fold in about a minute.
const FORGETS: u64 = 128;
/// The fixed point of rates, in parts of an event per tick.
const SCALE: u64 = 1 << 20;

/// Events a tick, in the fixed point.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    level: u64,
    counted: u64,
}

impl Rate {
    fn tick(&mut self) {
        let counted = std::mem::take(&mut self.counted).min(u64::MAX / SCALE) * SCALE;
        self.level = self.level - self.level / FORGETS + counted / FORGETS;
    }

    fn per_second_milli(&self, tick: Span) -> u64 {
        let per_tick_milli = u128::from(self.level) * 1_000 / u128::from(SCALE);
        u64::try_from(per_tick_milli * 1_000_000 / u128::from(tick.as_micros().max(1))).unwrap_or(u64::MAX)
    }
}

/// How much the clients of a gateway do.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    commits: Rate,
    reads: Rate,
}

impl Workload {
    /// A client asks to commit.
    pub(super) fn commits(&mut self) {
        self.commits.counted += 1;
    }

    /// A client reads in a transaction that it may commit.
    pub(super) fn reads(&mut self) {
        self.reads.counted += 1;
    }

    /// A tick has passed.
    pub(super) fn tick(&mut self) {
        self.commits.tick();
        self.reads.tick();
    }

    /// The same with the round trips that this site has measured.
    fn measured(&self, cx: &Shared) -> Measured {
        let same_shard = |region: RegionId| SiteId { region, shard: cx.me.shard };
        let others = cx.topology.regions().filter(|region| *region != cx.me.region);
        Measured {
            rtts: others.filter_map(|region| Some((region, cx.peers.rtt(same_shard(region))?))).collect(),
            commits_milli: self.commits.per_second_milli(cx.config.tick),
            reads_milli: self.reads.per_second_milli(cx.config.tick),
        }
    }
}

/// What the other sites have measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Measures {
    ticks: u64,
    told: BTreeMap<SiteId, Measured>,
}

impl Measures {
    /// How many sites have told what they measured.
    pub(super) fn len(&self) -> usize {
        self.told.len()
    }

    /// What all sites have measured, as far as they have told, and this one with its `workload`.
    pub(super) fn all(&self, workload: &Workload, cx: &Shared) -> BTreeMap<SiteId, Measured> {
        let mut all = self.told.clone();
        all.insert(cx.me, workload.measured(cx));
        all
    }

    /// Tells the others from time to time.
    pub(super) fn tick(&mut self, workload: &Workload, cx: &mut Context<'_>) {
        self.ticks += 1;
        if self.ticks.is_multiple_of(TELL_TICKS) {
            let measured = workload.measured(cx);
            cx.broadcast(&Note::Measured(measured));
        }
    }

    /// Another site tells what it has measured.
    pub(super) fn on_measured(&mut self, from: SiteId, measured: Measured) {
        self.told.insert(from, measured);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_comes_to_what_happens_and_forgets_it() {
        let tick = Span::from_millis(500);
        let mut rate = Rate::default();
        for _ in 0..2_000 {
            rate.counted = 50;
            rate.tick();
        }
        assert!((99_000..=100_000).contains(&rate.per_second_milli(tick)), "a hundred a second: {}", rate.per_second_milli(tick));
        (0..128).for_each(|_| rate.tick());
        assert!((36_000..=37_500).contains(&rate.per_second_milli(tick)), "a third of it a minute later");
        (0..4_000).for_each(|_| rate.tick());
        assert_eq!(rate.per_second_milli(tick), 0);
    }
}
