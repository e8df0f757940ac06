//! What a site measures in a period, and reports at its end.

use super::{Activity, Monitor};
use crate::config::{Adaptation, LOAD_MAX_PPM, RTT_MAX};
use crate::context::{Context, Shared};
use crate::message::{Measured, Note};
use rhumb_core::{SiteId, Span, Time};
use std::collections::BTreeMap;

/// A period. All sites end theirs at the same times, by their clocks: ticks wait for the processor, so that a period counted in them would
/// be the longer the busier its site is. A clock that jumps ends one early.
#[derive(Clone, Debug, Default)]
pub(super) struct Period {
    /// Counted from the clock's zero; none before the first tick.
    pub(super) number: Option<u64>,
    /// Ticks of it so far.
    pub(super) ticks: u64,
    /// It has been measured from its beginning.
    pub(super) is_whole: bool,
    /// The configuration changed in it.
    pub(super) changing: bool,
    /// Transactions in progress, summed over its ticks.
    pub(super) in_progress: u64,
    /// Percent of the capacity that work for others took up, likewise.
    pub(super) injected: u64,
    /// What the site sent itself.
    own: OwnPings,
    /// The shortest round trip to each site, microseconds.
    rtt_micros: BTreeMap<SiteId, u64>,
}

/// Messages of a site to itself in a period: how often, and how long they took, in sum and at the least.
#[derive(Clone, Debug, Default)]
struct OwnPings {
    count: u64,
    sum: Span,
    least: Span,
}

impl Period {
    /// One that is measured from its beginning.
    pub(super) fn begin(number: u64) -> Period {
        Period { number: Some(number), is_whole: true, ..Period::default() }
    }
}

impl Monitor {
    pub(crate) fn on_ping(&mut self, from: SiteId, sent: Time, cx: &mut Context<'_>) {
        if from != cx.me {
            let hears = cx.reachable().into_iter().collect();
            cx.send(from, Note::Pong { sent, hears });
        } else if let Some(took) = took(sent, cx.now) {
            let OwnPings { count, sum, least } = self.period.own;
            self.period.own = OwnPings { count: count + 1, sum: sum + took, least: if count == 0 { took } else { took.min(least) } };
        }
    }

    pub(crate) fn on_pong(&mut self, from: SiteId, sent: Time, cx: &Shared) {
        if let Some(took) = took(sent, cx.now) {
            let micros = took.as_micros();
            self.period.rtt_micros.entry(from).and_modify(|least| *least = micros.min(*least)).or_insert(micros);
        }
    }

    pub(super) fn end_period(&mut self, ended: Period, activity: Activity, adaptation: &Adaptation, cx: &mut Context<'_>) {
        let Period { ticks, is_whole, changing, in_progress, injected, own, rtt_micros, .. } = ended;
        let before = std::mem::replace(&mut self.committed, activity.committed);
        let measured = Measured {
            load_ppm: (in_progress * 1_000_000 / (ticks * adaptation.capacity.max(1)) + injected * 10_000 / ticks).min(LOAD_MAX_PPM),
            latency_micros: own.sum.as_micros() / own.count.max(1),
            queue_micros: own.least.as_micros(),
            reads: activity.committed.reads - before.reads,
            writes: activity.committed.writes - before.writes,
            rows: self.rows.known,
            written: activity.written,
            caught_up: activity.caught_up,
            changing,
            rtt_micros,
        };
        if is_whole && cx.is_member() {
            cx.send_members(&Note::Measured { measured });
        }
    }
}

/// How long a message was under way. A clock that was set meanwhile measures nothing.
fn took(sent: Time, now: Time) -> Option<Span> {
    (sent <= now).then(|| now.since(sent)).filter(|took| *took <= RTT_MAX)
}
