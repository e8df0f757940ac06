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

use super::Ended;
use super::Gateway;
use super::committing::{Committing, Wanted, Whose};
use super::conclusion::versions_read;
use crate::config::{ENDED_MAX, TXN_BYTES_MAX, TXN_ROWS_MAX};
use crate::context::{Context, Local, Shared};
use crate::message::{ABORTED, ATTEMPT, Answer, Attempt, Meta, Note, Part, RangeCheck, ReadCheck, Seen, Voted};
use crate::planted::Planted;
use rhumb_commit::placement::Regions;
use rhumb_commit::transaction::{CommitOptions, Committed, TxnError};
use rhumb_commit::votes::{Decision, Tally};
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, RegionId, SiteId, Timestamp, TxnId, Value, record, work};
use std::collections::{BTreeMap, BTreeSet};

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
        } else if state.mode.is_read_only() || (writes.is_empty() && expect.is_empty() && state.evidence == 0) {
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
            // Those of the others say how high they have prepared, which the commit's floor is made of.
            Self::check_majority(cx, &cx.all_shards()).map(|()| Wanted { txn, parts, two_rounds: options.two_rounds })
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
            return Err(TxnError::TooLarge(
                format!("the transaction writes {} rows; at most {TXN_ROWS_MAX} are possible", writes.len()).into(),
            ));
        }
        work::add(state.rows.len() + state.ranges.len() + expect.len() + writes.len());
        let mut parts: BTreeMap<u16, Part> = BTreeMap::new();
        for (key, seen) in &state.rows {
            let check = ReadCheck { key: key.clone(), seen: *seen };
            parts.entry(cx.topology.shard_of(key)).or_default().reads.push(check);
        }
        for (key, version) in expect.into_iter().collect::<BTreeSet<_>>() {
            match state.rows.get(&key) {
                None => {}
                Some(read) if read.version == version => continue,
                Some(_) => return Err(TxnError::Conflict(format!("what was expected at {key} has changed").into())),
            }
            // Nobody expects a row that is absent.
            let check = ReadCheck { key, seen: Seen { version, is_live: true } };
            parts.entry(cx.topology.shard_of(&check.key)).or_default().reads.push(check);
        }
        for range in &state.ranges {
            let check = RangeCheck { range: range.range.clone(), rows: range.rows.clone() };
            parts.entry(range.shard).or_default().ranges.push(check);
        }
        for (shard, collected) in &state.collected {
            parts.entry(*shard).and_modify(|part| part.collected = *collected);
        }
        for (key, value) in writes {
            parts.entry(cx.topology.shard_of(&key)).or_default().writes.push((key, value));
        }
        let bytes = record::encoded_bytes(&parts);
        if bytes > TXN_BYTES_MAX {
            return Err(TxnError::TooLarge(
                format!("the commit has {bytes} bytes on the wire; at most {TXN_BYTES_MAX} are possible: split the transaction").into(),
            ));
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
    pub(super) fn attempt_again(&mut self, txn: TxnId, above: Timestamp, cx: &mut Context<'_>) {
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

    pub(super) fn committing(&mut self, txn: TxnId) -> Option<&mut Committing> {
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
    pub(super) fn send_accepts(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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
        committing.tally.record(voted.region, voted.vote.clone(), cx.rules);
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
    pub(super) fn withdraw_if_stuck(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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
    pub(super) fn put_abort_on_record(&mut self, txn: TxnId, cx: &mut Context<'_>) {
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
        let note = match self.outcome(&attempt) {
            Some(Some(decision)) => Note::Decided { meta, decision },
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

    /// Keeps how `attempt` ended, for sites in doubt.
    pub(super) fn remember(&mut self, attempt: Attempt, decision: Option<Decision>) {
        self.ended.insert(attempt.made, Ended { attempt, decision });
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_first();
        }
    }

    /// How `attempt` ended here, if it has and that is not forgotten.
    pub(super) fn outcome(&self, attempt: &Attempt) -> Option<Option<Decision>> {
        self.ended.get(&attempt.made).filter(|ended| ended.attempt == *attempt).map(|ended| ended.decision)
    }

    /// Forgets attempts that have ended and were made long ago, whenever their transactions began.
    pub(super) fn forget_ended(&mut self, cx: &Shared) {
        self.ended = self.ended.split_off(&Timestamp::from_time(cx.now.minus(cx.config.forget_after)));
    }

    /// The commit whose present attempt is `attempt`.
    fn deciding(&mut self, attempt: Attempt) -> Option<&mut Committing> {
        self.committing(attempt.txn)
            .filter(|committing| committing.meta.attempt == attempt && committing.confirmed.is_none() && committing.aborted.is_none())
    }
}
