//! How a commit ends at its gateway: what its client is told, and when it is given up.
//!
//! Source: Replicated Commit, 3.2.2, a majority commits; GPlacer, 2.1 for commits of two rounds, 2.2 for passive copies.

use super::committing::{Aborted, Committing, Whose};
use super::{Gateway, Txn};
use crate::config::ATTEMPTS_MAX;
use crate::context::Context;
use crate::message::{ATTEMPT, Answer, Attempt, Meta, Note, Part};
use rhumb_commit::placement::Regions;
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::{RegionId, SiteId, Timestamp, TxnId, work};
use std::sync::Arc;

impl Gateway {
    pub(super) fn conclude(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        match decision {
            Decision::Committed { floor } => {
                if let Some(Committing { meta, .. }) = self.committing(txn) {
                    cx.fx.agree(ATTEMPT, meta.attempt, &Some(meta.at));
                }
                self.send_committed(txn, decision, cx);
                self.send_copies(txn, floor, cx);
                let wide = cx.is_wide();
                let Some(state) = self.txns.get_mut(&txn) else { return };
                let Some(committing) = &mut state.committing else { return };
                if committing.meta.two_rounds {
                    state.trips += u32::from(wide);
                    committing.confirmed = Some((floor, Regions::NONE));
                } else {
                    self.finish_committed(txn, cx);
                }
            }
            Decision::Aborted => self.on_aborted(txn, cx),
        }
    }

    pub(super) fn send_committed(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        let Some(meta) = self.committing(txn).map(|committing| committing.meta.clone()) else { return };
        self.remember(meta.attempt, Some(decision));
        for region in meta.electorate.iter() {
            cx.send(meta.coordinator_in(region), Note::Decided { meta: meta.clone(), decision });
        }
    }

    /// Sends what was committed to the passive replicas. One that misses it pulls it from a log.
    pub(super) fn send_copies(&mut self, txn: TxnId, floor: Timestamp, cx: &mut Context<'_>) {
        let passives = cx.placement.passives;
        let Some(committing) = self.committing(txn).filter(|_| !passives.is_empty()) else { return };
        let Meta { attempt, at, .. } = committing.meta;
        let meta = committing.meta.of_several_shards();
        let parts = std::mem::take(&mut committing.parts);
        for (shard, Part { writes, .. }) in parts.into_iter().filter(|(_, part)| !part.writes.is_empty()) {
            for region in passives.iter() {
                cx.send(SiteId { region, shard }, Note::Copy { attempt, at, floor, writes: writes.clone(), meta: meta.clone() });
            }
        }
    }

    /// This attempt has certainly aborted.
    pub(super) fn on_aborted(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let epoch = cx.placement.epoch;
        let Some(committing) = self.committing(txn) else { return };
        let mut above = Timestamp::ZERO;
        let mut reason = None;
        for (_, refusal) in committing.tally.refusals() {
            match refusal {
                Refusal::TimestampTooLow(at) => above = above.max(at),
                Refusal::Withdrawn => {}                                           // its own doing
                Refusal::StaleConfiguration if committing.meta.epoch < epoch => {} // and this gateway has heard of it
                other => reason = Some(other),
            }
        }
        match reason {
            None if committing.attempts < ATTEMPTS_MAX => {
                let attempt = committing.meta.attempt;
                self.remember(attempt, Some(Decision::Aborted));
                self.attempt_again(txn, above, cx);
            }
            reason => {
                let of_time = if above > Timestamp::ZERO { Refusal::TimestampTooLow(above) } else { Refusal::Withdrawn };
                let reason = reason.unwrap_or(of_time);
                let is_superseded = reason == Refusal::Superseded;
                cx.fx.count(counted(reason));
                let reason = match reason {
                    Refusal::CopyIncomplete(region) => {
                        format!("{} has not copied all rows yet, and cannot become active before it has", cx.topology.name(region))
                    }
                    reason => reason.to_string(),
                };
                let error = if is_superseded {
                    TxnError::Unknown(format!("{EARLIER_OPEN}: {reason}").into())
                } else {
                    TxnError::Conflict(reason.into())
                };
                if let Some(committing) = self.committing(txn) {
                    committing.aborted = Some(Aborted { error, on_record: Regions::NONE });
                }
                self.put_abort_on_record(txn, cx);
            }
        }
    }

    /// A region has applied a commit of two rounds.
    pub(crate) fn on_confirmed(&mut self, attempt: Attempt, region: RegionId, cx: &mut Context<'_>) {
        let Some(committing) = self.committing(attempt.txn).filter(|committing| committing.meta.attempt == attempt) else { return };
        let electorate = committing.meta.electorate;
        let Some((_, confirmed)) = &mut committing.confirmed else { return };
        *confirmed = confirmed.or(region.into());
        if confirmed.len() >= electorate.majority() {
            self.finish_committed(attempt.txn, cx);
        }
    }

    pub(super) fn finish_committed(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let trips = self.txns[&txn].trips;
        let Some(committing) = self.committing(txn) else { return };
        let committed = Committed { at: committing.meta.at, trips };
        self.finish_commit(txn, Ok(committed), cx);
    }

    pub(super) fn finish_commit(&mut self, txn: TxnId, result: Result<Committed, TxnError>, cx: &mut Context<'_>) {
        let Some(committing) = self.committing(txn) else { return };
        let whose = committing.whose;
        self.end(txn, cx);
        match (whose, result) {
            (Whose::Client(id), Ok(committed)) => cx.fx.answer(id, Answer::Committed(committed)),
            (Whose::Client(id), Err(error)) => cx.fx.answer(id, Answer::Failed(error)),
            (Whose::Gateway(id), result) => self.hand_back(id, result, cx),
        }
    }

    pub(super) fn commits_tick(&mut self, cx: &mut Context<'_>) {
        work::add(self.txns.len());
        let open: Vec<TxnId> = self.txns.iter().filter(|(_, state)| Txn::is_committing(state)).map(|(txn, _)| *txn).collect();
        for txn in open {
            let now = cx.now;
            let config = cx.config.clone();
            let Some(committing) = self.committing(txn) else { continue };
            let age = now.since(committing.made);
            let refused = committing.tally.refusals().next().is_some() && committing.is_undecided();
            let late = now.since(committing.since) + config.withdraw_after >= config.outcome_deadline;
            if committing.confirmed.is_some() {
                self.confirm_tick(txn, cx);
            } else if now.since(committing.since) >= config.outcome_deadline {
                self.give_up(txn, cx);
            } else if committing.aborted.is_some() {
                if now.since(committing.sent) >= config.resend_after {
                    self.put_abort_on_record(txn, cx);
                }
            } else if committing.withdrawn || (age >= config.withdraw_after && (refused || late)) {
                self.withdraw(txn, cx);
            } else if now.since(committing.sent) >= config.resend_after {
                cx.fx.count("commit.accept_sent_again");
                self.send_accepts(txn, cx);
                self.withdraw_if_stuck(txn, cx);
            }
        }
        self.forget_ended(cx);
    }

    /// Resends the decision to the regions that have not confirmed that they applied a commit. Past the deadline the client is answered all the same.
    pub(super) fn confirm_tick(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let (now, resend_after, deadline) = (cx.now, cx.config.resend_after, cx.config.outcome_deadline);
        let Some(committing) = self.committing(txn) else { return };
        if now.since(committing.since) >= deadline {
            return self.finish_committed(txn, cx);
        }
        if now.since(committing.sent) < resend_after {
            return;
        }
        committing.sent = now;
        let (meta, (floor, confirmed)) = (committing.meta.clone(), committing.confirmed.unwrap_or_default());
        let decision = Decision::Committed { floor };
        for region in meta.electorate.without(confirmed).iter() {
            cx.send(meta.coordinator_in(region), Note::Decided { meta: meta.clone(), decision });
        }
    }

    /// Has every region whose vote is not final take it back, or vote no.
    pub(super) fn withdraw(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let Some(committing) = self.committing(txn) else { return };
        committing.withdrawn = true;
        let meta = committing.meta.clone();
        let is_final = |region: &RegionId| committing.tally.of(*region).is_some_and(Vote::is_final);
        let open: Vec<RegionId> = meta.electorate.iter().filter(|region| !is_final(region)).collect();
        cx.fx.count("commit.withdrawn");
        for region in open {
            cx.send(meta.coordinator_in(region), Note::Withdraw { meta: meta.clone() });
        }
    }

    /// The deadline is past: nobody can say yet whether it committed.
    pub(super) fn give_up(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let topology = Arc::clone(&cx.topology);
        let Some(committing) = self.committing(txn) else { return };
        let attempt = committing.meta.attempt;
        let electorate = committing.meta.electorate;
        let (total, majority) = (electorate.len(), electorate.majority());
        let silent = electorate.iter().filter(|region| committing.tally.of(*region).is_none());
        let silent: Vec<&str> = silent.map(|region| topology.name(region)).collect();
        let error = TxnError::Unknown(format!(
            "{} of {total} regions voted in time, {majority} are needed; no vote from {}. It may have been committed or may yet be: check before you repeat it",
            committing.tally.len(),
            silent.join(", "),
        ).into());
        cx.fx.count("commit.unknown");
        self.withdraw(txn, cx);
        self.remember(attempt, None);
        self.finish_commit(txn, Err(error), cx);
    }
}

/// Why the outcome of a transaction is unknown whose last attempt was refused for an earlier one.
const EARLIER_OPEN: &str =
    "an earlier attempt, which a lost region refused, may have been committed or may yet be; check before you repeat it";

impl Txn {
    pub(super) fn is_committing(state: &Txn) -> bool {
        state.committing.is_some()
    }
}

/// The name under which an abort for this reason is counted.
pub(super) fn counted(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Locked => "commit.aborted_locked",
        Refusal::LockLost => "commit.aborted_lock_lost",
        Refusal::Stale => "commit.aborted_stale",
        Refusal::TimestampTooLow(_) => "commit.aborted_timestamp_too_low",
        Refusal::UnknownTransaction => "commit.aborted_unknown_transaction",
        Refusal::Superseded => "commit.aborted_superseded",
        Refusal::TimedOut => "commit.aborted_timed_out",
        Refusal::StaleConfiguration => "commit.aborted_stale_configuration",
        Refusal::CopyIncomplete(_) => "commit.aborted_copy_incomplete",
        Refusal::Withdrawn => "commit.aborted_withdrawn",
    }
}

pub(super) fn versions_read(part: &Part) -> impl Iterator<Item = Timestamp> + '_ {
    let rows = part.reads.iter();
    rows.chain(part.ranges.iter().flat_map(|range| &range.rows)).map(|read| read.seen.version)
}
