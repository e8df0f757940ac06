//! What unit tests step a role with: what a site shares, and the effects of each step, a line for each.

use super::Site;
use super::config::Config;
use super::configuration::Configuration;
use super::context::{Context, Shared};
use super::quorums::Quorums;
use super::records::{ACCEPTOR, ASIDE, BASE, CLOCK_BOUND, CONFIGURATION, DECISIONS, DIFFERENCES, PREPARED};
use super::request::Answer;
use rhumb_core::actor::{Effect, Space};
use rhumb_core::{Effects, SiteId, Span, Time, Timestamp, TxnId};
use rhumb_testkit::effects;
use std::collections::BTreeSet;

/// The site `r<n>.0`.
pub(super) fn site(n: u16) -> SiteId {
    SiteId::new(n, 0)
}

/// These sites.
pub(super) fn set(of: &[u16]) -> BTreeSet<SiteId> {
    of.iter().copied().map(site).collect()
}

/// A transaction of that site.
pub(super) fn txn(began: u64, gateway: u16) -> TxnId {
    TxnId { began: Timestamp::from_bits(began), gateway: site(gateway) }
}

/// What a site shares with its role, which alone is tested, and the effects of its steps.
pub(super) struct Bench {
    pub(super) shared: Shared,
    fx: Effects<Site>,
}

impl Bench {
    /// That of site 0 among as many, of which the first are cores. Its clock may issue timestamps.
    pub(super) fn new(cores: u16, sites: u16, config: Config) -> Bench {
        let cores: Vec<SiteId> = (0..cores).map(site).collect();
        let preference = (0..sites).map(|n| (site(n), cores.clone())).collect();
        let configuration = Configuration::first(Quorums::Cores { cores, preference });
        let mut shared = Shared::new(site(0), configuration, config);
        shared.now = Time::ZERO + Span::from_secs(1);
        shared.recover_bound(Timestamp::ZERO);
        let bound = shared.clock.renew(shared.now).expect("it has none yet");
        shared.clock.on_durable(bound);
        (1..sites).for_each(|n| shared.peers.answer(site(n), 0, Vec::new()));
        Bench { shared, fx: Effects::new(false).recording() }
    }

    /// Has the role make a step.
    pub(super) fn step<T>(&mut self, step: impl FnOnce(&mut Context<'_>) -> T) -> T {
        step(&mut Context { shared: &mut self.shared, fx: &mut self.fx })
    }

    /// What has been done since this was last asked.
    pub(super) fn effects(&mut self) -> Vec<Effect<Site>> {
        self.fx.take()
    }

    /// The same in lines, but for what is only counted; then what every site must agree on.
    pub(super) fn lines(&mut self) -> Vec<String> {
        let effects = self.effects();
        let shown = effects.iter().filter(|effect| !matches!(effect, Effect::Count(_))).map(effects::line);
        shown.chain(effects::agreed(&mut self.fx)).collect()
    }
}

impl effects::Shown for Site {
    fn record(space: Space) -> &'static str {
        match space {
            PREPARED => "prepared",
            DECISIONS => "decision",
            CLOCK_BOUND => "clock bound",
            ACCEPTOR => "acceptor",
            CONFIGURATION => "configuration",
            BASE => "base",
            DIFFERENCES => "difference",
            ASIDE => "aside",
            _ => "unknown",
        }
    }

    fn answer(answer: &Answer) -> String {
        match answer {
            Answer::Began { txn } => format!("began {txn}"),
            Answer::Rows { rows, .. } => {
                let rows: Vec<String> = rows.iter().map(|row| format!("{}@{}", row.key, row.version)).collect();
                format!("rows {}", rows.join(" "))
            }
            Answer::Committed(committed) => format!("committed after {} trips", committed.trips),
            Answer::Failed(error) => format!("failed: {error}"),
            other => format!("{other:?}"),
        }
    }
}
