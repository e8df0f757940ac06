//! What a site measures in each period, what the others tell of theirs, and who acts on it.
//!
//! ```text
//!   each tick:    Ping ──▶ Pong           who is up; the shortest round trip of the period; to itself: how long what arrives has to wait,
//!                                         which is no part of the distance
//!   each period:  Measured ──▶ all members    transactions, load over capacity, latency, rows
//!   then:         all members plan (`manager.rs`); if something is due, the first that is up changes the configuration, and if it has
//!                 not the next time, the second, and so on
//! ```
//!
//! All members receive all reports, so that any of them can plan. Two members that both consider themselves the first do no harm, because consensus
//! decides. An implausible report is dropped and counted.
//!
//! **The load of a site is what its own clients have in progress**, not how much work it does. That depends on the quorums: cores work for others, so
//! every site would look like the wrong core as soon as it is one. Nor is it the number of transactions that its clients finish: those are faster
//! near cores, so the sites near cores would look loaded. Clients that wait for their answers have as many in progress under any quorums; the others
//! have fewer where they are served faster, so that a good choice looks better, not worse. While the configuration changes all that begins waits for
//! that, at every site: such a period counts for no load.
//!
//! | file | what |
//! |---|---|
//! | `period.rs` | what is measured here, and reported |
//! | `heard.rs` | what the others report |
//! | `plan.rs` | which change is due, and whose it is |
//! | `row_count.rs` | how many rows are here |
//!
//! Source: section III-B, "Load Prediction and Monitoring"; the load is that of equation 3.
mod heard;
mod period;
mod plan;
mod row_count;
#[cfg(test)]
mod tests;

use self::heard::Heard;
use self::period::Period;
use self::row_count::RowCount;
use super::config::Adaptation;
use super::configuration::{Epoch, Goal};
use super::context::{Context, Shared};
use super::gateway::Commits;
use super::message::Note;
use rhumb_core::SiteId;
use std::collections::{BTreeMap, BTreeSet};

/// What is measured at a site, and heard from others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    /// The running one.
    period: Period,
    /// What had committed before it.
    committed: Commits,
    rows: RowCount,
    heard: BTreeMap<SiteId, Heard>,
    /// The epoch that it has seen last.
    epoch: Epoch,
    /// The tick of this incarnation at which that began.
    since: u64,
    due: Due,
    /// Sites that asked to join, and when.
    joining: BTreeMap<SiteId, u64>,
    /// This site asks to join.
    joins: bool,
}

/// How often in a row a change was due and did not come.
#[derive(Clone, Debug, Default)]
struct Due {
    /// At the end of a period.
    at_period: u64,
    /// In between.
    at_once: u64,
}

/// What the other roles of a site are at, as its monitor sees it at a tick.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    /// Transactions of its own clients.
    pub(crate) in_progress: usize,
    /// What has committed in this incarnation.
    pub(crate) committed: Commits,
    /// Percent of the capacity that work for others takes up.
    pub(crate) injected_percent: u64,
    /// Rows written in this epoch.
    pub(crate) written: u64,
    /// All that was committed before the epoch is here.
    pub(crate) caught_up: bool,
    /// The epoch is sealed here.
    pub(crate) sealed: bool,
    /// The site attempts a change.
    pub(crate) moving: bool,
}

impl Monitor {
    /// The sites that asked to join lately.
    pub(crate) fn joining(&self) -> BTreeSet<SiteId> {
        self.joining.keys().copied().collect()
    }

    /// Another configuration is there: nothing is due any more.
    pub(crate) fn begin_epoch(&mut self) {
        self.due = Due::default();
        self.period.changing = true;
    }

    /// This site asks to become a member, until it is one.
    pub(crate) fn join(&mut self) {
        self.joins = true;
    }

    pub(crate) fn on_join(&mut self, from: SiteId, tick: u64) {
        self.joining.insert(from, tick);
    }

    /// A site that is to join asks the members for that.
    pub(crate) fn ask_to_join(&mut self, cx: &mut Context<'_>) {
        // A site that is removed later was not asked to rejoin.
        self.joins &= !cx.is_member();
        if self.joins {
            cx.send_members(&Note::Join);
        }
    }

    /// The change that is due, if it is this site's to bring it about.
    pub(crate) fn tick(&mut self, activity: Activity, cx: &mut Context<'_>) -> Option<Goal> {
        let adaptation = cx.config.adaptation.clone()?;
        if self.epoch != cx.configuration.epoch {
            (self.epoch, self.since) = (cx.configuration.epoch, cx.ticks);
        }
        self.count_on(cx);
        cx.send(cx.me, Note::Ping { sent: cx.now });
        let number = cx.now.as_micros() / adaptation.period.as_micros().max(1);
        let period = &mut self.period;
        period.changing |= activity.sealed;
        period.in_progress += activity.in_progress as u64;
        period.injected += activity.injected_percent;
        period.ticks += 1;
        if *period.number.get_or_insert(number) != number {
            let ended = std::mem::replace(period, Period::begin(number));
            self.end_period(ended, activity, &adaptation, cx);
        }
        // Reports of the last period have come by then.
        let settled = (ticks_of_a_period(cx, &adaptation) / 2).min(cx.config.silent_ticks);
        let is_settled = self.period.is_whole && self.period.ticks == settled;
        if is_settled || cx.ticks.is_multiple_of(cx.config.silent_ticks) {
            return self.change_due(activity, is_settled, cx);
        }
        None
    }
}

/// How many ticks a period has where nothing waits.
fn ticks_of_a_period(cx: &Shared, adaptation: &Adaptation) -> u64 {
    (adaptation.period.as_micros() / cx.config.tick.as_micros().max(1)).max(1)
}
