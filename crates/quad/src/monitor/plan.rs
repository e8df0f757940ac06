//! Which change is due by what was measured, and whether it is this site's to bring it about.

use super::heard::Heard;
use super::{Activity, Monitor, ticks_of_a_period};
use crate::configuration::{Cores, Goal};
use crate::context::{Context, Shared};
use crate::links::Ears;
use crate::manager::{Known, Plan, Scores, Situation};
use rhumb_core::SiteId;
use std::collections::BTreeSet;

impl Monitor {
    pub(super) fn change_due(&mut self, activity: Activity, is_settled: bool, cx: &mut Context<'_>) -> Option<Goal> {
        let up = cx.reachable();
        let before_me = cx.configuration.bases.keys().take_while(|site| **site != cx.me).filter(|site| up.contains(site)).count();
        // Right after a start nobody has been heard of yet.
        let is_ready = cx.ticks > 2 * cx.config.silent_ticks && !activity.sealed && !activity.moving;
        if !cx.is_member() || !is_ready {
            return None;
        }
        let lately = cx.ticks.saturating_sub(cx.config.silent_ticks);
        self.joining.retain(|_, at| *at >= lately);
        let situation = Situation { up: fit(&up, cx), ..self.situation(cx)? };
        // Of a silence not all learn in the same tick: that looks like a cut link for a moment.
        let may_pass = cx.configuration.members().intersection(&up).any(|site| !situation.up.contains(site));
        let scores = if is_settled && self.has_measured(&situation.up, cx) { Scores::Compared } else { Scores::Awaited };
        let goal = situation.plan(scores).and_then(|plan| plan.goal);
        let due = if is_settled { &mut self.due.at_period } else { &mut self.due.at_once };
        *due = if goal.is_some() { *due + 1 } else { 0 };
        let goal = goal.filter(|_| *due > (before_me + usize::from(may_pass)) as u64)?;
        *due = 0;
        cx.fx.count("quad.planned");
        cx.fx.trace(|| format!("plans a change: {}", goal.why));
        Some(goal)
    }

    /// What a choice of quorums follows from, where every site in reach may be a core; none if quorums do not follow what is measured.
    pub(crate) fn situation<'a>(&self, cx: &'a Shared) -> Option<Situation<'a>> {
        let adaptation = cx.config.adaptation.as_ref()?;
        let (ticks, period) = (cx.ticks, ticks_of_a_period(cx, adaptation));
        let known = |heard: &Heard| {
            let load = heard.forecast.next().filter(|_| heard.at + 2 * period >= ticks);
            Known { load, latency_ms: load.and_then(|load| heard.latency.expect_ms(load)), measured: heard.measured() }
        };
        Some(Situation {
            old: &cx.configuration,
            age: ticks.saturating_sub(self.since) / period,
            adaptation,
            known: self.heard.iter().map(|(site, heard)| (*site, known(heard))).collect(),
            up: cx.reachable(),
            joining: self.joining(),
        })
    }

    /// What would change at the end of a period; none if quorums do not follow what is measured.
    pub(crate) fn plan(&self, cx: &Shared) -> Option<Plan> {
        let situation = self.situation(cx)?;
        Situation { up: fit(&situation.up, cx), ..situation }.plan(Scores::Compared)
    }
}

/// The sites that may be cores: those that all hear, if they are enough. Otherwise every site that is alive keeps its place, and only a core that
/// finds no quorum decides by what it hears itself.
fn fit(up: &BTreeSet<SiteId>, cx: &Shared) -> BTreeSet<SiteId> {
    let (members, quorums) = (cx.configuration.members(), &cx.configuration.quorums);
    let ears = Ears { me: cx.me, up, hears: cx.peers.hears() };
    let (alive, fit) = (ears.alive(&members), ears.heard_by_all(&members));
    let wanted = match cx.configuration.cores {
        Cores::Fixed(cores) => cores,
        Cores::Auto => quorums.cores().len(),
    };
    let found = if fit.len() >= wanted.min(alive.len()) {
        fit
    } else if quorums.cores().contains(&cx.me) && quorums.write(cx.me, up, 0).is_none() {
        up.clone()
    } else {
        alive
    };
    found.union(&up.difference(&members).copied().collect()).copied().collect()
}
