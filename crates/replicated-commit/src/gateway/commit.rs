//! Commit as the gateway runs it: one attempt after another until one has an outcome that ends the transaction.
//!
//! ```text
//!   Commit ─▶ Accept to the coordinator of every region ─▶ votes
//!      a majority of yes ─────────────────────────────▶ Committed to the client, whichever regions those are; Decided to all
//!         of two rounds ──────────────────────────────▶ Decided to all; Committed to the client once a majority has applied it
//!      a majority impossible, only for timestamps ────▶ another attempt, above all timestamps shown
//!      a majority impossible for another reason ──────▶ Conflict to the client; Decided to all
//!      votes missing: Accept again
//!      those in reach decide nothing, or time is up ──▶ Withdraw to all: every yes that is still provisional becomes a no
//!      past the deadline ─────────────────────────────▶ Unknown
//! ```
//!
//! Invariants: another attempt is made only once the one before has certainly aborted; from its first `Withdraw` on a
//! gateway counts final votes only.
//!
//! Source: section 3.2.2, Algorithm 1, lines 1 and 2. The gateway is the paper's client, and the only proposer.

use super::{Gateway, Txn};
use crate::config::{ATTEMPTS_MAX, ENDED_MAX, TXN_BYTES_MAX, TXN_ROWS_MAX};
use crate::context::{Context, Local, Shared};
use crate::message::{ABORTED, ATTEMPT, Answer, Attempt, HandoffId, Meta, Note, Part, RangeCheck, ReadCheck, Voted};
use crate::planted::Planted;
use rhumb_commit::placement::Regions;
use rhumb_commit::transaction::{CommitOptions, Committed, TxnError};
use rhumb_commit::votes::{Decision, Refusal, Tally, Vote};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, RegionId, SiteId, Time, Timestamp, TxnId, Value, record, work};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who waits for the end of a commit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// A client of this gateway.
    Client(RequestId),
    /// Another gateway, which has handed it over under this name.
    Gateway(HandoffId),
}

/// An abort that a client is not told yet: should a region that voted be lost, nobody else may know of it.
#[derive(Clone, Debug)]
struct Aborted {
    /// What it is to be told.
    error: TxnError,
    /// The regions that have it on record.
    on_record: Regions,
}

/// A commit in progress.
#[derive(Clone, Debug)]
pub(super) struct Committing {
    whose: Whose,
    parts: BTreeMap<u16, Part>,
    pub(super) meta: Meta,
    pub(super) tally: Tally,
    /// `Withdraw` was sent.
    withdrawn: bool,
    /// Its region takes part in a resolution of it: this gateway counts no votes any more, and is told how that ends.
    bound: bool,
    /// Aborted by the votes that were seen. None until then.
    aborted: Option<Aborted>,
    /// Committed, with this floor; the regions that have confirmed that they applied it. None until then.
    confirmed: Option<(Timestamp, Regions)>,
    attempts: u32,
    /// When the first attempt was made, when this one, and when its `Accept` was last sent.
    since: Time,
    made: Time,
    sent: Time,
}

impl Committing {
    /// True if the votes decide nothing, and none was taken back.
    fn is_undecided(&self) -> bool {
        !self.withdrawn && self.tally.outcome_at_gateway(self.meta.electorate).is_none()
    }

    /// True if the abort outlives the loss of as many regions as may be lost, or of the gateway's own with its clients.
    fn is_on_record(&self, own: RegionId) -> bool {
        let electorate = self.meta.electorate;
        let spare = electorate.len() - electorate.majority();
        self.aborted.as_ref().is_some_and(|aborted| aborted.on_record.contains(own) || aborted.on_record.len() > spare)
    }
}

/// What a transaction is to commit.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) txn: TxnId,
    /// What it does in each shard.
    pub(super) parts: BTreeMap<u16, Part>,
    /// Its client waits until a majority has applied it.
    pub(super) two_rounds: bool,
}

impl Gateway {
    pub(crate) fn on_commit(
        &mut self,
        id: RequestId,
        txn: TxnId,
        writes: Vec<(Key, Option<Value>)>,
        expect: Vec<(Key, Timestamp)>,
        options: CommitOptions,
        cx: &mut Context<'_>,
    ) {
        let Some(state) = self.txns.get(&txn) else {
            return cx.fx.answer(id, Answer::Failed(TxnError::Invalid("the transaction is over".into())));
        };
        if state.committing.is_some() {
            return cx.fx.answer(id, Answer::Failed(TxnError::Invalid("the transaction is committing already".into())));
        }
        let early = if state.mode.is_read_only() && !writes.is_empty() {
            Some(Answer::Failed(TxnError::Invalid("cannot write in a read-only transaction".into())))
        } else if state.mode.is_read_only() || (writes.is_empty() && state.evidence == 0) {
            Some(Answer::Committed(Committed { at: state.snapshot, trips: state.trips }))
        } else {
            None
        };
        if let Some(answer) = early {
            self.end(txn, cx);
            return cx.fx.answer(id, answer);
        }
        self.workload.commits();
        match self.parts_of(cx, txn, writes, expect).and_then(|parts| {
            let shards: Vec<u16> = parts.keys().copied().collect();
            Self::check_majority(cx, &shards).map(|()| Wanted { txn, parts, two_rounds: options.two_rounds })
        }) {
            Ok(wanted) => match Self::commit_coordinator(cx).filter(|_| options.handoff) {
                Some(to) => self.hand_over(id, to, wanted, cx),
                None => self.attempt(Whose::Client(id), wanted, cx),
            },
            Err(error) => {
                self.end(txn, cx);
                cx.fx.answer(id, Answer::Failed(error));
            }
        }
    }

    /// Evidence and writes of a transaction, by shard.
    fn parts_of(
        &self,
        cx: &Shared,
        txn: TxnId,
        writes: Vec<(Key, Option<Value>)>,
        expect: Vec<(Key, Timestamp)>,
    ) -> Result<BTreeMap<u16, Part>, TxnError> {
        let state = &self.txns[&txn];
        if writes.len() > TXN_ROWS_MAX {
            return Err(TxnError::TooLarge(format!("the transaction writes {} rows; at most {TXN_ROWS_MAX} are possible", writes.len())));
        }
        work::add(state.rows.len() + state.ranges.len() + expect.len() + writes.len());
        let mut parts: BTreeMap<u16, Part> = BTreeMap::new();
        for (key, version) in &state.rows {
            let check = ReadCheck { key: key.clone(), version: *version };
            parts.entry(cx.topology.shard_of(key)).or_default().reads.push(check);
        }
        for (key, version) in expect.into_iter().collect::<BTreeSet<_>>() {
            match state.rows.get(&key) {
                None => {}
                Some(read) if *read == version => continue,
                Some(_) => return Err(TxnError::Conflict(format!("what was expected at {key} has changed"))),
            }
            let check = ReadCheck { key, version };
            parts.entry(cx.topology.shard_of(&check.key)).or_default().reads.push(check);
        }
        for range in &state.ranges {
            let check = RangeCheck { range: range.range.clone(), rows: range.rows.clone() };
            parts.entry(range.shard).or_default().ranges.push(check);
        }
        for (key, value) in writes {
            parts.entry(cx.topology.shard_of(&key)).or_default().writes.push((key, value));
        }
        let bytes = record::encoded_bytes(&parts);
        if bytes > TXN_BYTES_MAX {
            return Err(TxnError::TooLarge(format!(
                "the commit has {bytes} bytes on the wire; at most {TXN_BYTES_MAX} are possible: split the transaction"
            )));
        }
        Ok(parts)
    }

    /// The first attempt.
    pub(super) fn attempt(&mut self, whose: Whose, wanted: Wanted, cx: &mut Context<'_>) {
        let Wanted { txn, parts, two_rounds } = wanted;
        // Where most is written, two-phase commit within the region saves a message by coordinating.
        let coordinator =
            parts.iter().max_by_key(|(shard, part)| (part.writes.len(), std::cmp::Reverse(**shard))).map_or(0, |(shard, _)| *shard);
        let made = cx.timestamp();
        let newest_read = parts.values().flat_map(versions_read).max().unwrap_or(Timestamp::ZERO);
        let meta = Meta {
            attempt: Attempt { txn, made },
            at: made.max(newest_read.next()),
            epoch: cx.placement.epoch,
            electorate: cx.placement.voters,
            declares_lost: parts.values().map(Part::declares_lost).fold(Regions::NONE, Regions::or),
            two_rounds,
            coordinator,
            participants: parts.keys().copied().collect(),
        };
        let committing = Committing {
            whose,
            parts,
            meta,
            tally: Tally::default(),
            withdrawn: false,
            bound: false,
            aborted: None,
            confirmed: None,
            attempts: 1,
            since: cx.now,
            made: cx.now,
            sent: cx.now,
        };
        let wide = cx.is_wide();
        let state = self.txns.get_mut(&txn).expect("the commit is of an open transaction");
        state.trips += u32::from(wide);
        state.committing = Some(committing);
        self.have_heard(txn, cx);
        self.send_accepts(txn, cx);
    }

    /// Makes another attempt, at a timestamp above `above`, up to which the regions refused it.
    fn attempt_again(&mut self, txn: TxnId, above: Timestamp, cx: &mut Context<'_>) {
        let wide = cx.is_wide();
        let made = cx.timestamp();
        let now = cx.now;
        let (epoch, electorate) = (cx.placement.epoch, cx.placement.voters);
        let Some(committing) = self.committing(txn) else { return };
        // Whatever is read or written elsewhere goes on rising while the Accept is under way: aim as far ahead as the
        // last attempt took, or a steady reader far away could refuse every attempt.
        let ahead = Timestamp::from_time(now + now.since(committing.made));
        // The first attempt's timestamp lies above all that was read, and none may lie below that.
        let at = made.max(above.next()).max(ahead).max(committing.meta.at);
        committing.meta.attempt.made = made;
        committing.meta.at = at;
        (committing.meta.epoch, committing.meta.electorate) = (epoch, electorate);
        committing.tally = Tally::default();
        (committing.withdrawn, committing.bound) = (false, false);
        committing.attempts += 1;
        committing.made = now;
        committing.sent = now;
        cx.clock.observe(above);
        if let Some(state) = self.txns.get_mut(&txn) {
            state.trips += u32::from(wide);
        }
        cx.fx.count("commit.attempt_again");
        self.have_heard(txn, cx);
        self.send_accepts(txn, cx);
    }

    fn committing(&mut self, txn: TxnId) -> Option<&mut Committing> {
        self.txns.get_mut(&txn)?.committing.as_mut()
    }

    /// Tells the regions that do not vote at which timestamp this attempt is made.
    fn have_heard(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let Some(Meta { at, electorate, coordinator, .. }) = self.committing(txn).map(|committing| committing.meta.clone()) else { return };
        let others = Regions::first(cx.topology.region_count()).without(electorate).without(cx.me.region.into());
        for region in others.iter() {
            cx.fx.send(SiteId { region, shard: coordinator }, Note::Heard { at });
        }
    }

    /// Sends the `Accept` to the regions whose votes are missing.
    fn send_accepts(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let now = cx.now;
        let Some(committing) = self.committing(txn) else { return };
        committing.sent = now;
        let accept = Note::Accept {
            meta: committing.meta.clone(),
            parts: committing.parts.iter().map(|(shard, part)| (*shard, part.clone())).collect(),
        };
        let electorate = committing.meta.electorate;
        let missing: Vec<SiteId> = electorate
            .iter()
            .filter(|region| committing.tally.of(*region).is_none())
            .map(|region| SiteId { region, shard: committing.meta.coordinator })
            .collect();
        let meta = committing.meta.clone();
        for site in missing {
            cx.send(site, accept.clone());
        }
        cx.request_highs(&meta);
    }

    pub(crate) fn on_vote(&mut self, voted: &Voted, cx: &mut Context<'_>) {
        let attempt = voted.meta.attempt;
        // Else it is a late vote on an attempt given up.
        let Some(committing) = self.deciding(attempt) else { return };
        committing.tally.record(voted.region, voted.vote.clone());
        committing.tally.hear_high(voted.coordinator(), voted.high);
        self.count(attempt, cx);
    }

    /// A site of another shard says how high it has prepared.
    pub(crate) fn on_high(&mut self, from: SiteId, attempt: Attempt, high: Timestamp, cx: &mut Context<'_>) {
        if let Some(committing) = self.deciding(attempt) {
            committing.tally.hear_high(from, high);
            self.count(attempt, cx);
        }
    }

    fn count(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(committing) = self.deciding(attempt).filter(|committing| !committing.bound) else { return };
        let (tally, meta) = (committing.tally.clone(), committing.meta.clone());
        let counts_provisional = !committing.withdrawn || cx.rules.breaks(Planted::GatewayCountsOn);
        let outcome = if counts_provisional { tally.outcome_at_gateway(meta.electorate) } else { tally.outcome(meta.electorate) };
        match outcome {
            Some(outcome) => {
                if let Some(decision) = cx.decision(outcome, &tally, &meta, cx.declared_lost(&meta)) {
                    self.conclude(attempt.txn, decision, cx);
                }
            }
            None => self.withdraw_if_stuck(attempt.txn, cx),
        }
    }

    /// Takes the attempt back if no vote is to be expected any more that could decide it: all regions in reach, a majority,
    /// have voted.
    fn withdraw_if_stuck(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let Some(committing) = self.txns.get(&txn).and_then(|state| state.committing.as_ref()) else { return };
        let electorate = committing.meta.electorate;
        let mut reachable = cx.reachable(&committing.meta.participants);
        reachable.retain(|region| electorate.contains(*region));
        let voted = |region: &RegionId| committing.tally.of(*region).is_some();
        if committing.is_undecided() && reachable.len() >= electorate.majority() && reachable.iter().all(voted) {
            self.withdraw(txn, cx);
        }
    }

    /// Sites in doubt claim that they have worked the outcome out. That an attempt aborted which others agree on is not believed.
    pub(crate) fn on_claimed(&mut self, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
        let is_bound = self.deciding(meta.attempt).is_some_and(|committing| committing.bound);
        if decision.is_commit() || !is_bound {
            self.on_decided(meta, decision, cx);
        }
    }

    /// The outcome is known elsewhere.
    pub(crate) fn on_decided(&mut self, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
        if decision.is_commit()
            && let Some(committing) = self.committing(meta.attempt.txn).filter(|committing| committing.meta.attempt == meta.attempt)
        {
            // The survivors of a region whose refusal was seen here have agreed otherwise.
            committing.aborted = None;
        }
        if self.deciding(meta.attempt).is_some() {
            self.conclude(meta.attempt.txn, decision, cx);
        }
    }

    /// A region has it on record that the attempt aborted.
    pub(crate) fn on_abort_on_record(&mut self, from: SiteId, meta: &Meta, cx: &mut Context<'_>) {
        if from.shard != meta.coordinator {
            return;
        }
        self.on_decided(meta, Decision::Aborted, cx);
        let own = cx.me.region;
        let Some(committing) = self.committing(meta.attempt.txn).filter(|committing| committing.meta.attempt == meta.attempt) else {
            return;
        };
        let Some(aborted) = &mut committing.aborted else { return };
        aborted.on_record = aborted.on_record.or(from.region.into());
        if committing.is_on_record(own) {
            self.finish_aborted(meta.attempt, cx);
        }
    }

    /// The client is told that its transaction aborted.
    fn finish_aborted(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(aborted) = self.committing(attempt.txn).and_then(|committing| committing.aborted.take()) else { return };
        cx.fx.agree(ATTEMPT, attempt, &ABORTED);
        self.remember(attempt, Some(Decision::Aborted));
        self.finish_commit(attempt.txn, Err(aborted.error), cx);
    }

    /// Has the abort put on record, in this region, or, should that not answer, in enough others.
    fn put_abort_on_record(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let now = cx.now;
        let Some(committing) = self.committing(txn) else { return };
        committing.sent = now;
        cx.notify(Local::GatewayAborts(committing.meta.clone()));
    }

    /// A site in doubt asks whether this gateway is still deciding.
    pub(crate) fn on_ask_gateway(&mut self, from: SiteId, meta: Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        if self.committing(attempt.txn).is_some_and(|committing| committing.meta.attempt == attempt) {
            return;
        }
        let note = match self.ended.get(&attempt) {
            Some(Some(decision)) => Note::Decided { meta, decision: *decision },
            // The gateway has concluded nothing and never will: a region whose vote is not final votes no. That is for its coordinator to do; no
            // other site has a vote to take back.
            Some(None) if from.shard == meta.coordinator => Note::Withdraw { meta },
            Some(None) | None => Note::Over { attempt },
        };
        cx.send(from, note);
    }

    /// This region is about to take part in a resolution of an attempt: its gateway, if this site is that, concludes nothing from votes any more.
    pub(crate) fn bind(&mut self, attempt: Attempt) {
        if let Some(committing) = self.deciding(attempt) {
            committing.bound = true;
        }
    }

    fn remember(&mut self, attempt: Attempt, decision: Option<Decision>) {
        let ended = &mut self.ended;
        ended.insert(attempt, decision);
        if ended.len() > ENDED_MAX {
            ended.pop_first();
        }
    }

    /// The commit whose present attempt is `attempt`.
    fn deciding(&mut self, attempt: Attempt) -> Option<&mut Committing> {
        self.committing(attempt.txn)
            .filter(|committing| committing.meta.attempt == attempt && committing.confirmed.is_none() && committing.aborted.is_none())
    }

    fn conclude(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
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

    fn send_committed(&mut self, txn: TxnId, decision: Decision, cx: &mut Context<'_>) {
        let Some(meta) = self.committing(txn).map(|committing| committing.meta.clone()) else { return };
        self.remember(meta.attempt, Some(decision));
        for region in meta.electorate.iter() {
            cx.send(meta.coordinator_in(region), Note::Decided { meta: meta.clone(), decision });
        }
    }

    /// Sends what was committed to the passive replicas. One that misses it pulls it from a log.
    fn send_copies(&mut self, txn: TxnId, floor: Timestamp, cx: &mut Context<'_>) {
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
    fn on_aborted(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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
                let error = if is_superseded { TxnError::Unknown(format!("{EARLIER_OPEN}: {reason}")) } else { TxnError::Conflict(reason) };
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

    fn finish_committed(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let trips = self.txns[&txn].trips;
        let Some(committing) = self.committing(txn) else { return };
        let committed = Committed { at: committing.meta.at, trips };
        self.finish_commit(txn, Ok(committed), cx);
    }

    fn finish_commit(&mut self, txn: TxnId, result: Result<Committed, TxnError>, cx: &mut Context<'_>) {
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
        let floor = TxnId { began: Timestamp::from_time(cx.now.minus(cx.config.forget_after)), gateway: cx.me };
        self.ended = self.ended.split_off(&Attempt { txn: floor, made: Timestamp::ZERO });
    }

    /// Resends the decision to the regions that have not confirmed that they applied a commit. Past the deadline the client is answered all the same.
    fn confirm_tick(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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
    fn withdraw(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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
    fn give_up(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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
        ));
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
    fn is_committing(state: &Txn) -> bool {
        state.committing.is_some()
    }
}

/// The name under which an abort for this reason is counted.
fn counted(reason: Refusal) -> &'static str {
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

fn versions_read(part: &Part) -> impl Iterator<Item = Timestamp> + '_ {
    let rows = part.reads.iter().map(|read| read.version);
    rows.chain(part.ranges.iter().flat_map(|range| range.rows.iter().map(|(_, version)| *version)))
}
