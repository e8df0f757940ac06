//! A site that changes the configuration: it seals the epoch, has the next one's cores reconciled, and gets it accepted.
//!
//! ```text
//!   mover                     members of the epoch           cores to be
//!     ├── Seal ─────────────────────▶│ stop serving, sync         │
//!     │◀──────────────────── Sealed ─┤                            │    until they cover and fence the epoch
//!     ├── Reconcile ──────────────────────────────────────────────▶│
//!     │                              │◀── Pull, Fetch ─────────────┤
//!     │                              ├── Differences, Copies ─────▶│ sync
//!     │◀───────────────────────────────────────────── Advances ────┤    page by page
//!     ├── Advances ─────────────────▶│ wait on                    │
//!     │◀──────────────────────────────────────────── Reconciled ──┤    until they carry the next one
//!     ├── Accept ───────────────────▶│ sync                        │
//!     │◀────────────────── Accepted ─┤                             │
//!     ├── Decided ──────────────────▶│ serve the next epoch ──────▶│
//! ```
//!
//! Any site may be the mover, several may at a time, and each may stop anywhere: a sealed site takes over after a while. Section
//! IV has one manager and two-phase commit over all sites instead, which stop at the first that is dead.
//!
//! Invariants: nothing is proposed before a write quorum of it holds all that the sealed sites hold, and names the
//! commits that they found not settled; a value that a sealed site has accepted is proposed again as it is; what is decided for an
//! epoch never changes.
//!
//! Source: section IV, "One-Copy View on Quorums".

use super::acceptor::Acceptor;
use super::configuration::{Configuration, Epoch, Goal, carries};
use super::context::{Context, Shared};
use super::message::{Note, Report};
use super::planted::Planted;
use super::request::Answer;
use rhumb_commit::reason::Reason;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::RequestId;
use rhumb_core::ballot::to_propose_again;
use rhumb_core::{Ballot, SiteId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The changes that a site attempts, one at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Mover {
    attempt: Option<Attempt>,
    /// The highest number of a ballot that it has heard of.
    heard_ballot: u64,
}

/// An attempt to change the configuration.
#[derive(Clone, Debug)]
struct Attempt {
    ballot: Ballot,
    goal: Goal,
    /// The operator who waits.
    id: Option<RequestId>,
    /// The tick at which it last advanced.
    since: u64,
    reports: BTreeMap<SiteId, Report>,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    Sealing,
    /// `pages`: how far those have come that are not done.
    Reconciling {
        anchor: SiteId,
        done: BTreeSet<SiteId>,
        pages: BTreeMap<SiteId, u64>,
    },
    Accepting {
        configuration: Box<Configuration>,
        accepted: BTreeSet<SiteId>,
    },
}

impl Attempt {
    fn enter(&mut self, stage: Stage, tick: u64) {
        (self.stage, self.since) = (stage, tick);
    }
}

impl Mover {
    /// True if it attempts a change.
    pub(super) fn is_busy(&self) -> bool {
        self.attempt.is_some()
    }

    /// An operator, or this site itself, wants another configuration.
    pub(super) fn change(&mut self, goal: Goal, id: Option<RequestId>, acceptor: &Acceptor, cx: &mut Context<'_>) {
        match (self.refusal(&goal, id, acceptor, cx), id) {
            (Some(refusal), Some(id)) => cx.refuse(id, refusal),
            (Some(refusal), None) => cx.fx.trace(|| format!("no change: {refusal}")),
            (None, id) => self.attempt(goal, id, acceptor, cx),
        }
    }

    /// Why `goal` is not attempted now, if it is not.
    fn refusal(&self, goal: &Goal, id: Option<RequestId>, acceptor: &Acceptor, cx: &Shared) -> Option<TxnError> {
        let (old, up) = (&cx.configuration, cx.reachable());
        let unavailable = |why: &str| Some(TxnError::Unavailable(why.into()));
        if let Some(error) = goal.validation_error(old).filter(|_| !cx.rules.breaks(Planted::LossUnbounded)) {
            Some(TxnError::Invalid(error))
        } else if self.is_changing(id, acceptor, cx) {
            unavailable("the configuration is being changed already")
        } else if !cx.is_member() {
            Some(cx.not_a_member())
        } else if !cx.may_be_left(&up, &goal.lost) {
            // No attempt is better than one that interrupts all sites in reach and then makes no progress.
            Some(TxnError::Unavailable(cannot_leave(old, &up, &goal.lost)))
        } else if !carries(&goal.quorums, &up) {
            unavailable("too few cores of the new configuration are in reach")
        } else {
            None
        }
    }

    /// True if a change is under way that another one is not to disturb. Where one has not come about for long, an operator may ask for
    /// another: what an attempt of this site itself aims at is a guess.
    fn is_changing(&self, id: Option<RequestId>, acceptor: &Acceptor, cx: &Shared) -> bool {
        let for_long = acceptor.sealed_since().is_none_or(|began| cx.ticks >= began + cx.config.sealed_ticks);
        let asked = self.attempt.as_ref().is_some_and(|attempt| attempt.id.is_some());
        let is_idle = !acceptor.is_sealed() && self.attempt.is_none();
        !(is_idle || id.is_some() && for_long && !asked)
    }

    /// Begins an attempt, in a ballot above all that this site knows.
    pub(super) fn attempt(&mut self, goal: Goal, id: Option<RequestId>, acceptor: &Acceptor, cx: &mut Context<'_>) {
        let ballot = acceptor.paxos().next_ballot(self.heard_ballot, cx.me);
        self.heard_ballot = ballot.number;
        cx.fx.count("quad.attempt");
        self.attempt = Some(Attempt { ballot, goal, id, since: cx.ticks, reports: BTreeMap::new(), stage: Stage::Sealing });
        self.urge(cx);
    }

    /// The attempt, if it is in this ballot.
    fn attempt_in(&mut self, ballot: Ballot) -> Option<&mut Attempt> {
        self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot)
    }

    /// Says what the attempt's stage has to say, to those who have not answered.
    fn urge(&self, cx: &mut Context<'_>) {
        let Some(attempt) = &self.attempt else { return };
        let ballot = attempt.ballot;
        let members = cx.configuration.members();
        let mut members: Vec<SiteId> = members.difference(&attempt.goal.lost).copied().collect();
        match &attempt.stage {
            Stage::Sealing => {
                members.retain(|site| !attempt.reports.contains_key(site));
                for site in members {
                    cx.send(site, Note::Seal { ballot, goal: attempt.goal.clone() });
                }
            }
            Stage::Reconciling { anchor, done, .. } => {
                let up = cx.reachable();
                let cores: BTreeSet<SiteId> = attempt.goal.quorums.cores().iter().copied().collect();
                let targets = if cores.is_subset(&up) { cores } else { attempt.goal.members.intersection(&up).copied().collect() };
                for site in targets.difference(done) {
                    let sources = attempt.reports.keys().copied().collect();
                    cx.send(*site, Note::Reconcile { ballot, anchor: *anchor, sources });
                }
            }
            Stage::Accepting { configuration, accepted } => {
                members.retain(|site| !accepted.contains(site));
                for site in members {
                    cx.send(site, Note::Accept { ballot, configuration: configuration.clone() });
                }
            }
        }
    }

    pub(super) fn on_sealed(&mut self, from: SiteId, ballot: Ballot, report: Report, cx: &mut Context<'_>) {
        let epoch = cx.configuration.epoch;
        let Some(attempt) = self.attempt_in(ballot) else { return };
        if !matches!(attempt.stage, Stage::Sealing) {
            return;
        }
        attempt.reports.insert(from, report);
        let sealed: BTreeSet<SiteId> = attempt.reports.keys().copied().collect();
        // Its own seal is on disk before it proposes anything, so that it does not begin the same ballot again after a crash.
        if !sealed.contains(&cx.me) || !cx.is_quorate(&sealed, &attempt.goal.lost) {
            return;
        }
        let accepted = to_propose_again(attempt.reports.values().filter_map(|report| report.accepted.as_ref()));
        if let Some(configuration) = accepted.filter(|_| !cx.rules.breaks(Planted::AcceptedIgnored)) {
            let stage = Stage::Accepting { configuration: configuration.clone(), accepted: BTreeSet::new() };
            attempt.enter(stage, cx.ticks);
        } else if cx.may_be_left(&sealed, &attempt.goal.lost) {
            let anchor = attempt.reports.iter().find(|(_, report)| report.holds >= epoch).map(|(site, _)| *site);
            // Those who hold all are a write quorum, which those who are sealed meet.
            let anchor = anchor.expect("one of the sealed sites holds all that was committed before this epoch");
            attempt.enter(Stage::Reconciling { anchor, done: BTreeSet::new(), pages: BTreeMap::new() }, cx.ticks);
        } else {
            return;
        }
        self.urge(cx);
    }

    pub(super) fn on_reconciled(&mut self, from: SiteId, ballot: Ballot, cx: &mut Context<'_>) {
        let Some(attempt) = self.attempt_in(ballot) else { return };
        let Stage::Reconciling { done, .. } = &mut attempt.stage else { return };
        done.insert(from);
        if !carries(&attempt.goal.quorums, done) {
            return;
        }
        let next = successor(&cx.configuration, &attempt.goal, &attempt.reports, done);
        attempt.enter(Stage::Accepting { configuration: Box::new(next), accepted: BTreeSet::new() }, cx.ticks);
        self.urge(cx);
    }

    /// Somebody has got so many pages. All hear of it, so that nobody takes an attempt over that advances.
    pub(super) fn on_advances(&mut self, from: SiteId, ballot: Ballot, pages: u64, cx: &mut Context<'_>) {
        let Some(attempt) = self.attempt_in(ballot) else { return };
        let Stage::Reconciling { pages: known, .. } = &mut attempt.stage else { return };
        let known = known.entry(from).or_default();
        if pages <= *known {
            return;
        }
        *known = pages;
        attempt.since = cx.ticks;
        let mut others = cx.configuration.members();
        others.remove(&cx.me);
        for site in others {
            cx.send(site, Note::Advances { ballot, pages });
        }
    }

    pub(super) fn on_accepted(&mut self, from: SiteId, ballot: Ballot, cx: &mut Context<'_>) {
        let Some(attempt) = self.attempt_in(ballot) else { return };
        let Stage::Accepting { configuration, accepted } = &mut attempt.stage else { return };
        accepted.insert(from);
        if !cx.is_quorate(accepted, &attempt.goal.lost) && !cx.rules.breaks(Planted::MinorityDecides) {
            return;
        }
        let everybody: BTreeSet<SiteId> = cx.configuration.members().union(&configuration.members()).copied().collect();
        for site in everybody {
            cx.fx.send(site, configuration.epoch.says(Note::Decided { configuration: configuration.clone() }));
        }
    }

    pub(super) fn on_outbid(&mut self, ballot: Ballot, cx: &mut Context<'_>) {
        self.heard_ballot = self.heard_ballot.max(ballot.number);
        if self.attempt.as_ref().is_some_and(|attempt| attempt.ballot < ballot) {
            self.give_up("another site changes the configuration", cx);
        }
    }

    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        let Some(attempt) = &self.attempt else { return };
        if cx.ticks < attempt.since + cx.config.move_ticks {
            return self.urge(cx);
        }
        let sealed: BTreeSet<SiteId> = attempt.reports.keys().copied().collect();
        let why = match attempt.stage {
            Stage::Sealing => cannot_leave(&cx.configuration, &sealed, &attempt.goal.lost),
            Stage::Reconciling { .. } => "the cores of the new configuration were not reconciled in time".into(),
            Stage::Accepting { .. } => "the new configuration was not accepted in time".into(),
        };
        self.give_up(why, cx);
    }

    /// Ends the attempt. What it sealed stays sealed, until somebody takes over.
    fn give_up(&mut self, why: impl Into<Reason>, cx: &mut Context<'_>) {
        cx.fx.count("quad.given_up");
        if let Some(id) = self.attempt.take().and_then(|attempt| attempt.id) {
            cx.refuse(id, TxnError::Unavailable(why.into().then("; the change may yet come about")));
        }
    }

    /// A configuration is adopted, this attempt's or another's.
    pub(super) fn end_attempt(&mut self, cx: &mut Context<'_>) {
        let Some(Attempt { goal, id: Some(id), .. }) = self.attempt.take() else { return };
        let adopted = &cx.configuration;
        let has_cores = goal.cores.is_none_or(|cores| cores == adopted.cores);
        let is_it = adopted.quorums == goal.quorums && adopted.members() == goal.members && has_cores;
        let other = || TxnError::Unavailable("another change of the quorums was decided first; look at them, and ask again".into());
        cx.fx.answer(id, if is_it { Answer::Done } else { Answer::Failed(other()) });
    }
}

/// Why the epoch cannot end by what `sealed` say.
fn cannot_leave(old: &Configuration, sealed: &BTreeSet<SiteId>, lost: &BTreeSet<SiteId>) -> Reason {
    let missing: Vec<SiteId> = old.members().into_iter().filter(|site| !sealed.contains(site) && !lost.contains(site)).collect();
    let missing = if missing.is_empty() { "a core that is not lost".into() } else { Reason::list(&missing) };
    Reason::from("the quorums cannot be changed without more of their sites; missing: ").then(missing)
}

/// The configuration that brings `goal` about, now that `done` hold all that those who reported do.
fn successor(old: &Configuration, goal: &Goal, reports: &BTreeMap<SiteId, Report>, done: &BTreeSet<SiteId>) -> Configuration {
    let epoch = old.epoch.next();
    let base = |site: &SiteId| match reports.get(site) {
        _ if done.contains(site) => epoch,
        Some(report) => report.holds,
        None => old.bases.get(site).copied().unwrap_or(Epoch(0)),
    };
    let unsettled = reports.values().flat_map(|report| &report.unsettled);
    let carried: BTreeMap<_, _> = unsettled.map(|carried| (carried.txn, *carried)).collect();
    let carried: Vec<_> = carried.into_values().collect();
    let clocks = reports.values().map(|report| report.clock);
    Configuration {
        epoch,
        quorums: goal.quorums.clone(),
        bases: goal.members.iter().map(|site| (*site, base(site))).collect(),
        floor: clocks.chain(carried.iter().map(|carried| carried.at)).max().unwrap_or(Timestamp::ZERO),
        carried,
        cores: goal.cores.unwrap_or(old.cores),
        cause: goal.cause,
        why: goal.why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::super::testing::{Bench, site};
    use super::*;

    /// A mover that wants all three sites to be cores.
    fn moves() -> (Bench, Mover, Ballot) {
        let (mut bench, mut mover) = (Bench::new(2, 3, Config::default()), Mover::default());
        let goal = Goal::of(Bench::new(3, 3, Config::default()).shared.configuration.quorums, "a test's");
        bench.step(|cx| mover.change(goal, Some(7), &Acceptor::default(), cx));
        (bench, mover, Ballot { number: 1, leader: site(0) })
    }

    fn report() -> Report {
        Report { accepted: None, holds: Epoch::FIRST, clock: Timestamp::from_bits(5), unsettled: Vec::new() }
    }

    #[test]
    fn a_change_seals_reconciles_and_is_accepted() {
        let (mut bench, mut mover, ballot) = moves();
        assert_eq!(bench.lines(), ["to r0.0: e1 seal 1@r0.0", "to r1.0: e1 seal 1@r0.0", "to r2.0: e1 seal 1@r0.0"]);
        bench.step(|cx| mover.on_sealed(site(2), ballot, report(), cx));
        bench.step(|cx| mover.on_sealed(site(1), ballot, report(), cx));
        assert_eq!(bench.lines().len(), 0, "its own seal is not on disk yet");
        bench.step(|cx| mover.on_sealed(site(0), ballot, report(), cx));
        assert_eq!(
            bench.lines(),
            [
                "to r0.0: e1 reconcile 1@r0.0 with 3, from r0.0",
                "to r1.0: e1 reconcile 1@r0.0 with 3, from r0.0",
                "to r2.0: e1 reconcile 1@r0.0 with 3, from r0.0"
            ]
        );
        bench.step(|cx| mover.on_advances(site(2), ballot, 1, cx));
        bench.step(|cx| mover.on_advances(site(2), ballot, 1, cx));
        assert_eq!(bench.lines(), ["to r1.0: e1 advances 1@r0.0: 1 pages", "to r2.0: e1 advances 1@r0.0: 1 pages"], "once for each page");
        (0..2).for_each(|n| bench.step(|cx| mover.on_reconciled(site(n), ballot, cx)));
        assert_eq!(bench.lines().len(), 0, "site 2 is to be a core");
        bench.step(|cx| mover.on_reconciled(site(2), ballot, cx));
        assert_eq!(
            bench.lines(),
            [
                "to r0.0: e1 accept 1@r0.0: e2: cores r0.0 r1.0 r2.0; members r0.0 r1.0 r2.0; holders r0.0 r1.0 r2.0; 0 carried",
                "to r1.0: e1 accept 1@r0.0: e2: cores r0.0 r1.0 r2.0; members r0.0 r1.0 r2.0; holders r0.0 r1.0 r2.0; 0 carried",
                "to r2.0: e1 accept 1@r0.0: e2: cores r0.0 r1.0 r2.0; members r0.0 r1.0 r2.0; holders r0.0 r1.0 r2.0; 0 carried"
            ]
        );
        bench.step(|cx| mover.on_accepted(site(0), ballot, cx));
        bench.step(|cx| mover.on_accepted(site(2), ballot, cx));
        assert_eq!(
            bench.lines(),
            [
                "to r0.0: e2 decided e2: cores r0.0 r1.0 r2.0; members r0.0 r1.0 r2.0; holders r0.0 r1.0 r2.0; 0 carried",
                "to r1.0: e2 decided e2: cores r0.0 r1.0 r2.0; members r0.0 r1.0 r2.0; holders r0.0 r1.0 r2.0; 0 carried",
                "to r2.0: e2 decided e2: cores r0.0 r1.0 r2.0; members r0.0 r1.0 r2.0; holders r0.0 r1.0 r2.0; 0 carried"
            ]
        );
        let next = Configuration { epoch: Epoch(2), ..Bench::new(3, 3, Config::default()).shared.configuration };
        bench.shared.adopt(next);
        bench.step(|cx| mover.end_attempt(cx));
        assert_eq!(bench.lines(), ["answer 7: Done"]);
    }

    #[test]
    fn what_a_sealed_site_has_accepted_is_proposed_again() {
        let (mut bench, mut mover, ballot) = moves();
        let other = Configuration { epoch: Epoch(2), why: "another's".into(), ..bench.shared.configuration.clone() };
        let accepted = Some((Ballot { number: 0, leader: site(1) }, Box::new(other)));
        bench.lines();
        bench.step(|cx| mover.on_sealed(site(1), ballot, Report { accepted, ..report() }, cx));
        bench.step(|cx| mover.on_sealed(site(0), ballot, report(), cx));
        assert_eq!(
            bench.lines(),
            [
                "to r0.0: e1 accept 1@r0.0: e2: cores r0.0 r1.0; members r0.0 r1.0 r2.0; holders ; 0 carried",
                "to r1.0: e1 accept 1@r0.0: e2: cores r0.0 r1.0; members r0.0 r1.0 r2.0; holders ; 0 carried",
                "to r2.0: e1 accept 1@r0.0: e2: cores r0.0 r1.0; members r0.0 r1.0 r2.0; holders ; 0 carried"
            ]
        );
    }

    #[test]
    fn who_is_outbid_gives_up_and_tells_its_operator() {
        let (mut bench, mut mover, _) = moves();
        bench.lines();
        bench.step(|cx| mover.on_outbid(Ballot { number: 4, leader: site(1) }, cx));
        assert_eq!(bench.lines(), ["answer 7: failed: another site changes the configuration; the change may yet come about"]);
        assert!(!mover.is_busy());
    }

    #[test]
    fn no_attempt_is_made_that_cannot_get_on() {
        let (mut bench, mut mover) = (Bench::new(2, 3, Config::default()), Mover::default());
        bench.shared.ticks = 100;
        let goal = Goal::of(bench.shared.configuration.quorums.clone(), "a test's");
        bench.step(|cx| mover.change(goal, Some(7), &Acceptor::default(), cx));
        assert_eq!(bench.lines(), ["answer 7: failed: the quorums cannot be changed without more of their sites; missing: r1.0, r2.0"]);
    }
}
