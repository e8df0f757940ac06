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

use super::configuration::{Configuration, Epoch, Goal, carries};
use super::message::{Note, Report};
use super::site::Site;
use crate::message::Answer;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::RequestId;
use rhumb_core::ballot::to_propose_again;
use rhumb_core::{Ballot, Effects, SiteId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// An attempt to change the configuration.
#[derive(Debug)]
pub(super) struct Attempt {
    ballot: Ballot,
    goal: Goal,
    /// The operator who waits.
    id: Option<RequestId>,
    /// The tick at which it last advanced.
    since: u64,
    reports: BTreeMap<SiteId, Report>,
    stage: Stage,
}

#[derive(Debug)]
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

impl Site {
    /// An operator, or this site itself, wants another configuration.
    pub(super) fn change(&mut self, goal: Goal, id: Option<RequestId>, fx: &mut Effects<Site>) {
        let up = self.reachable();
        let flaw = goal.flaw(&self.configuration).map(TxnError::Invalid);
        let flaw = flaw.or_else(|| {
            let busy = || TxnError::Unavailable("the configuration is being changed already".into());
            self.is_changing(id.is_some()).then(busy)
        });
        let flaw = flaw.or_else(|| (!self.is_member()).then(|| TxnError::Unavailable(self.stranger())));
        // Rather no attempt than one that interrupts whoever is in reach and then does not get on.
        let flaw = flaw.or_else(|| (!self.configuration.may_be_left(&up, &goal.lost)).then(|| self.cannot_leave(&up, &goal.lost)));
        let flaw = flaw.or_else(|| {
            let silent = || TxnError::Unavailable("too few cores of the new configuration are in reach".into());
            (!carries(&goal.quorums, &up)).then(silent)
        });
        match (flaw, id) {
            (Some(flaw), Some(id)) => fx.answer(id, Answer::Failed(flaw)),
            (Some(flaw), None) => fx.trace(|| format!("no change: {flaw}")),
            (None, id) => self.attempt(goal, id, fx),
        }
    }

    /// True if a change is under way that another one is not to disturb. Where one has not come about for long, an operator may ask for
    /// another: what an attempt of this site itself aims at is a guess.
    fn is_changing(&self, by_operator: bool) -> bool {
        let for_long = self.sealed.as_ref().is_none_or(|sealed| self.ticks >= sealed.began + self.config.sealed_ticks);
        let asked = self.attempt.as_ref().is_some_and(|attempt| attempt.id.is_some());
        let is_idle = self.sealed.is_none() && self.attempt.is_none();
        !(is_idle || by_operator && for_long && !asked)
    }

    /// Begins an attempt, in a ballot above all that this site knows.
    pub(super) fn attempt(&mut self, goal: Goal, id: Option<RequestId>, fx: &mut Effects<Site>) {
        let ballot = self.acceptor().next_ballot(self.heard_ballot, self.me);
        self.heard_ballot = ballot.number;
        fx.count("quad.attempt");
        self.attempt = Some(Attempt { ballot, goal, id, since: self.ticks, reports: BTreeMap::new(), stage: Stage::Sealing });
        self.urge(fx);
    }

    fn cannot_leave(&self, sealed: &BTreeSet<SiteId>, lost: &BTreeSet<SiteId>) -> TxnError {
        let missing = self.configuration.members().into_iter().filter(|site| !sealed.contains(site) && !lost.contains(site));
        let missing: Vec<String> = missing.map(|site| site.to_string()).collect();
        let missing = if missing.is_empty() { "a core that is not lost".into() } else { missing.join(", ") };
        TxnError::Unavailable(format!("the quorums cannot be changed without more of their sites; missing: {missing}"))
    }

    /// Says what the attempt's stage has to say, to those who have not answered.
    fn urge(&self, fx: &mut Effects<Site>) {
        let Some(attempt) = &self.attempt else { return };
        let (epoch, ballot) = (self.configuration.epoch, attempt.ballot);
        let members = self.configuration.members();
        let mut members: Vec<SiteId> = members.difference(&attempt.goal.lost).copied().collect();
        match &attempt.stage {
            Stage::Sealing => {
                members.retain(|site| !attempt.reports.contains_key(site));
                for site in members {
                    fx.send(site, epoch.says(Note::Seal { ballot, goal: attempt.goal.clone() }));
                }
            }
            Stage::Reconciling { anchor, done, .. } => {
                let up = self.reachable();
                let cores: BTreeSet<SiteId> = attempt.goal.quorums.cores().iter().copied().collect();
                let targets = if cores.is_subset(&up) { cores } else { attempt.goal.members.intersection(&up).copied().collect() };
                for site in targets.difference(done) {
                    let sources = attempt.reports.keys().copied().collect();
                    fx.send(*site, epoch.says(Note::Reconcile { ballot, anchor: *anchor, sources }));
                }
            }
            Stage::Accepting { configuration, accepted } => {
                members.retain(|site| !accepted.contains(site));
                for site in members {
                    fx.send(site, epoch.says(Note::Accept { ballot, configuration: configuration.clone() }));
                }
            }
        }
    }

    pub(super) fn on_sealed(&mut self, from: SiteId, ballot: Ballot, report: Report, fx: &mut Effects<Site>) {
        let epoch = self.configuration.epoch;
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot) else { return };
        if !matches!(attempt.stage, Stage::Sealing) {
            return;
        }
        attempt.reports.insert(from, report);
        let sealed: BTreeSet<SiteId> = attempt.reports.keys().copied().collect();
        // Its own seal is on disk before it proposes anything, so that it does not begin the same ballot again after a crash.
        if !sealed.contains(&self.me) || !self.configuration.is_quorate(&sealed, &attempt.goal.lost) {
            return;
        }
        if let Some(configuration) = to_propose_again(attempt.reports.values().filter_map(|report| report.accepted.as_ref())) {
            attempt.stage = Stage::Accepting { configuration: configuration.clone(), accepted: BTreeSet::new() };
            attempt.since = self.ticks;
        } else if self.configuration.may_be_left(&sealed, &attempt.goal.lost) {
            let anchor = attempt.reports.iter().find(|(_, report)| report.holds >= epoch).map(|(site, _)| *site);
            // Those who hold all are a write quorum, which those who are sealed meet.
            let anchor = anchor.expect("one of the sealed sites holds all that was committed before this epoch");
            attempt.stage = Stage::Reconciling { anchor, done: BTreeSet::new(), pages: BTreeMap::new() };
            attempt.since = self.ticks;
        } else {
            return;
        }
        self.urge(fx);
    }

    pub(super) fn on_reconciled(&mut self, from: SiteId, ballot: Ballot, fx: &mut Effects<Site>) {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot) else { return };
        let Stage::Reconciling { done, .. } = &mut attempt.stage else { return };
        done.insert(from);
        if !carries(&attempt.goal.quorums, done) {
            return;
        }
        let next = successor(&self.configuration, &attempt.goal, &attempt.reports, done);
        attempt.stage = Stage::Accepting { configuration: Box::new(next), accepted: BTreeSet::new() };
        attempt.since = self.ticks;
        self.urge(fx);
    }

    /// To the mover: somebody has got so many pages. It lets everybody know, so that nobody takes an attempt over that advances. To the
    /// others: so it is.
    pub(super) fn on_advances(&mut self, from: SiteId, ballot: Ballot, pages: u64, fx: &mut Effects<Site>) {
        let epoch = self.configuration.epoch;
        if ballot.leader != self.me {
            if let Some(sealed) = self.sealed.as_mut().filter(|sealed| sealed.record.acceptor.promised() == Some(ballot)) {
                sealed.since = self.ticks;
            }
            return;
        }
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot) else { return };
        let Stage::Reconciling { pages: known, .. } = &mut attempt.stage else { return };
        let known = known.entry(from).or_default();
        if pages <= *known {
            return;
        }
        *known = pages;
        attempt.since = self.ticks;
        for site in self.configuration.bases.keys().filter(|site| **site != self.me) {
            fx.send(*site, epoch.says(Note::Advances { ballot, pages }));
        }
    }

    pub(super) fn on_accepted(&mut self, from: SiteId, ballot: Ballot, fx: &mut Effects<Site>) {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot) else { return };
        let Stage::Accepting { configuration, accepted } = &mut attempt.stage else { return };
        accepted.insert(from);
        if !self.configuration.is_quorate(accepted, &attempt.goal.lost) {
            return;
        }
        let everybody: BTreeSet<SiteId> = self.configuration.members().union(&configuration.members()).copied().collect();
        for site in everybody {
            fx.send(site, configuration.epoch.says(Note::Decided { configuration: configuration.clone() }));
        }
    }

    pub(super) fn on_outbid(&mut self, ballot: Ballot, fx: &mut Effects<Site>) {
        self.heard_ballot = self.heard_ballot.max(ballot.number);
        if self.attempt.as_ref().is_some_and(|attempt| attempt.ballot < ballot) {
            self.give_up("another site changes the configuration", fx);
        }
    }

    pub(super) fn tick_mover(&mut self, fx: &mut Effects<Site>) {
        let Some(attempt) = &self.attempt else { return };
        if self.ticks < attempt.since + self.config.move_ticks {
            return self.urge(fx);
        }
        let sealed: BTreeSet<SiteId> = attempt.reports.keys().copied().collect();
        let why = match attempt.stage {
            Stage::Sealing => self.cannot_leave(&sealed, &attempt.goal.lost).to_string(),
            Stage::Reconciling { .. } => "the cores of the new configuration were not reconciled in time".into(),
            Stage::Accepting { .. } => "the new configuration was not accepted in time".into(),
        };
        self.give_up(&why, fx);
    }

    /// Ends the attempt. What it sealed stays sealed, until somebody takes over.
    fn give_up(&mut self, why: &str, fx: &mut Effects<Site>) {
        fx.count("quad.given_up");
        if let Some(id) = self.attempt.take().and_then(|attempt| attempt.id) {
            fx.answer(id, Answer::Failed(TxnError::Unavailable(format!("{why}; the change may yet come about"))));
        }
    }

    /// A configuration is adopted, this attempt's or another's.
    pub(super) fn end_attempt(&mut self, fx: &mut Effects<Site>) {
        let Some(Attempt { goal, id: Some(id), .. }) = self.attempt.take() else { return };
        let adopted = &self.configuration;
        let has_cores = goal.cores.is_none_or(|cores| cores == adopted.cores);
        let is_it = adopted.quorums == goal.quorums && adopted.members() == goal.members && has_cores;
        let other = || TxnError::Unavailable("another change of the quorums was decided first; look at them, and ask again".into());
        fx.answer(id, if is_it { Answer::Done } else { Answer::Failed(other()) });
    }
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
