//! Commit as the gateway runs it: one attempt after another until one has an outcome that ends the transaction.
//!
//! ```text
//!   Commit ─▶ Accept to the coordinator of every region ─▶ votes
//!      a majority of yes ─────────────────────────────▶ Committed to the client, whichever regions those are; Decided to all
//!      a majority impossible, only for timestamps ────▶ another attempt, above all timestamps shown
//!      a majority impossible for another reason ──────▶ Conflict to the client; Decided to all
//!      votes missing: Accept again
//!      those in reach decide nothing, or time is up ──▶ Withdraw to all: every yes that is still provisional becomes a no
//!      past the deadline ─────────────────────────────▶ Unknown
//! ```
//!
//! Invariants: another attempt is made only once the one before has certainly aborted; from its first `Withdraw` on a
//! gateway counts final votes only.

use super::Txn;
use crate::replicated_commit::config::{ATTEMPTS_MAX, ENDED_MAX, TXN_BYTES_MAX, TXN_ROWS_MAX};
use crate::replicated_commit::message::{Answer, Attempt, Meta, Note, Part, RangeCheck, ReadCheck};
use crate::replicated_commit::site::Site;
use crate::transaction::{Committed, TxnError};
use crate::votes::{Outcome, Refusal, Tally, Vote};
use rhumb_core::actor::RequestId;
use rhumb_core::{Effects, Key, RegionId, SiteId, Time, Timestamp, TxnId, Value};
use std::collections::BTreeMap;

/// A commit in progress.
#[derive(Debug)]
pub(super) struct Committing {
    id: RequestId,
    parts: BTreeMap<u16, Part>,
    meta: Meta,
    tally: Tally,
    /// `Withdraw` was sent.
    withdrawn: bool,
    attempts: u32,
    /// When the first attempt was made, when this one, and when its `Accept` was last sent.
    since: Time,
    made: Time,
    sent: Time,
}

impl Site {
    pub(in crate::replicated_commit) fn on_commit(
        &mut self,
        id: RequestId,
        txn: TxnId,
        writes: Vec<(Key, Option<Value>)>,
        expect: Vec<(Key, Timestamp)>,
        fx: &mut Effects<Site>,
    ) {
        let Some(state) = self.gateway.txns.get(&txn) else {
            return fx.answer(id, Answer::Failed(TxnError::Invalid("the transaction is over".into())));
        };
        if state.committing.is_some() {
            return fx.answer(id, Answer::Failed(TxnError::Invalid("the transaction is committing already".into())));
        }
        let early = if state.mode.is_read_only() && !writes.is_empty() {
            Some(Answer::Failed(TxnError::Invalid("cannot write in a read-only transaction".into())))
        } else if state.mode.is_read_only() || (writes.is_empty() && state.evidence == 0) {
            Some(Answer::Committed(Committed { at: state.snapshot, trips: state.trips }))
        } else {
            None
        };
        if let Some(answer) = early {
            self.end(txn, fx);
            return fx.answer(id, answer);
        }
        match self.parts_of(txn, writes, expect).and_then(|parts| {
            let shards: Vec<u16> = parts.keys().copied().collect();
            self.check_majority(&shards).map(|()| parts)
        }) {
            Ok(parts) => self.attempt(id, txn, parts, fx),
            Err(error) => {
                self.end(txn, fx);
                fx.answer(id, Answer::Failed(error));
            }
        }
    }

    /// Evidence and writes of a transaction, by shard.
    fn parts_of(
        &self,
        txn: TxnId,
        writes: Vec<(Key, Option<Value>)>,
        expect: Vec<(Key, Timestamp)>,
    ) -> Result<BTreeMap<u16, Part>, TxnError> {
        let state = &self.gateway.txns[&txn];
        if writes.len() > TXN_ROWS_MAX {
            return Err(TxnError::TooLarge(format!("the transaction writes {} rows; at most {TXN_ROWS_MAX} are possible", writes.len())));
        }
        let mut parts: BTreeMap<u16, Part> = BTreeMap::new();
        let mut bytes = 0;
        for (key, version) in &state.rows {
            bytes += key.0.len();
            let check = ReadCheck { key: key.clone(), version: *version };
            parts.entry(self.topology.shard_of(key)).or_default().reads.push(check);
        }
        for (key, version) in expect {
            match state.rows.get(&key) {
                None => {}
                Some(read) if *read == version => continue,
                Some(_) => return Err(TxnError::Conflict(format!("what was expected at {key} has changed"))),
            }
            let check = ReadCheck { key, version };
            let reads = &mut parts.entry(self.topology.shard_of(&check.key)).or_default().reads;
            if !reads.contains(&check) {
                reads.push(check);
            }
        }
        for range in &state.ranges {
            bytes += range.rows.iter().map(|(key, _)| key.0.len() + 8).sum::<usize>();
            let check = RangeCheck { range: range.range.clone(), rows: range.rows.clone() };
            parts.entry(range.shard).or_default().ranges.push(check);
        }
        for (key, value) in writes {
            bytes += key.0.len() + value.as_ref().map_or(0, |value| value.0.len());
            parts.entry(self.topology.shard_of(&key)).or_default().writes.push((key, value));
        }
        if bytes > TXN_BYTES_MAX {
            return Err(TxnError::TooLarge(format!(
                "the commit carries {bytes} bytes; at most {TXN_BYTES_MAX} are possible: split the transaction"
            )));
        }
        Ok(parts)
    }

    /// The first attempt.
    fn attempt(&mut self, id: RequestId, txn: TxnId, parts: BTreeMap<u16, Part>, fx: &mut Effects<Site>) {
        // Where most is written, two-phase commit within the region saves a message by coordinating.
        let coordinator =
            parts.iter().max_by_key(|(shard, part)| (part.writes.len(), std::cmp::Reverse(**shard))).map_or(0, |(shard, _)| *shard);
        let made = self.clock.now(self.now);
        let newest_read = parts.values().flat_map(versions_read).max().unwrap_or(Timestamp::ZERO);
        let meta = Meta {
            attempt: Attempt { txn, made },
            at: made.max(newest_read.next()),
            coordinator,
            participants: parts.keys().copied().collect(),
        };
        let committing = Committing {
            id,
            parts,
            meta,
            tally: Tally::default(),
            withdrawn: false,
            attempts: 1,
            since: self.now,
            made: self.now,
            sent: self.now,
        };
        let state = self.gateway.txns.get_mut(&txn).expect("the commit is of an open transaction");
        state.trips += u32::from(self.topology.region_count() > 1);
        state.committing = Some(committing);
        self.send_accepts(txn, fx);
    }

    /// Another attempt, at a timestamp above `above`, which the regions named as too old.
    fn attempt_again(&mut self, txn: TxnId, above: Timestamp, fx: &mut Effects<Site>) {
        let wide = self.topology.region_count() > 1;
        let made = self.clock.now(self.now);
        let now = self.now;
        let Some(committing) = self.committing(txn) else { return };
        // Whatever is read or written elsewhere goes on rising while the Accept is under way: aim as far ahead as the
        // last attempt took, or a steady reader far away could refuse every attempt.
        let ahead = Timestamp::from_time(now + now.since(committing.made));
        // The first attempt's timestamp lies above all that was read, and none may lie below that.
        let at = made.max(above.next()).max(ahead).max(committing.meta.at);
        committing.meta.attempt.made = made;
        committing.meta.at = at;
        committing.tally = Tally::default();
        committing.withdrawn = false;
        committing.attempts += 1;
        committing.made = now;
        committing.sent = now;
        self.clock.observe(above);
        if let Some(state) = self.gateway.txns.get_mut(&txn) {
            state.trips += u32::from(wide);
        }
        fx.count("commit.attempt_again");
        self.send_accepts(txn, fx);
    }

    fn committing(&mut self, txn: TxnId) -> Option<&mut Committing> {
        self.gateway.txns.get_mut(&txn)?.committing.as_mut()
    }

    /// Sends the `Accept` to the regions whose votes are missing.
    fn send_accepts(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        let now = self.now;
        let regions: Vec<RegionId> = self.topology.regions().collect();
        let Some(committing) = self.committing(txn) else { return };
        committing.sent = now;
        let accept = Note::Accept {
            meta: committing.meta.clone(),
            parts: committing.parts.iter().map(|(shard, part)| (*shard, part.clone())).collect(),
        };
        let missing: Vec<SiteId> = regions
            .into_iter()
            .filter(|region| committing.tally.of(*region).is_none())
            .map(|region| SiteId { region, shard: committing.meta.coordinator })
            .collect();
        for site in missing {
            self.send(site, accept.clone(), fx);
        }
    }

    pub(in crate::replicated_commit) fn on_vote_as_gateway(&mut self, meta: &Meta, region: RegionId, vote: &Vote, fx: &mut Effects<Site>) {
        let regions = self.topology.region_count();
        // Else it is a late vote on an attempt given up.
        let Some(committing) = self.deciding(meta.attempt) else { return };
        committing.tally.record(region, vote.clone());
        let tally = &committing.tally;
        let outcome = if committing.withdrawn { tally.outcome(regions) } else { tally.outcome_at_gateway(regions) };
        match outcome {
            Some(outcome) => self.conclude(meta.attempt.txn, outcome, fx),
            None => self.withdraw_if_stuck(meta.attempt.txn, fx),
        }
    }

    /// Takes the attempt back if no vote is to be expected any more that could decide it: all regions in reach, a majority,
    /// have voted.
    fn withdraw_if_stuck(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        let Some(committing) = self.gateway.txns.get(&txn).and_then(|state| state.committing.as_ref()) else { return };
        let reachable = self.reachable(&committing.meta.participants);
        let voted = |region: &RegionId| committing.tally.of(*region).is_some();
        if !committing.withdrawn && reachable.len() >= self.topology.majority() && reachable.iter().all(voted) {
            self.withdraw(txn, fx);
        }
    }

    /// Sites in doubt have worked the outcome out while this gateway was silent.
    pub(in crate::replicated_commit) fn on_decided_as_gateway(&mut self, meta: &Meta, outcome: Outcome, fx: &mut Effects<Site>) {
        if self.deciding(meta.attempt).is_some() {
            self.conclude(meta.attempt.txn, outcome, fx);
        }
    }

    /// A site in doubt asks whether this gateway is still deciding.
    pub(in crate::replicated_commit) fn on_ask_gateway(&mut self, from: SiteId, meta: Meta, fx: &mut Effects<Site>) {
        let attempt = meta.attempt;
        if self.deciding(attempt).is_some() {
            return;
        }
        let note = match self.gateway.ended.get(&attempt) {
            Some(Some(outcome)) => Note::Decided { meta, outcome: *outcome },
            // Nobody concluded anything here, nor will.
            Some(None) => Note::Withdraw { meta },
            None => Note::Over { attempt },
        };
        self.send(from, note, fx);
    }

    fn remember(&mut self, attempt: Attempt, outcome: Option<Outcome>) {
        let ended = &mut self.gateway.ended;
        ended.insert(attempt, outcome);
        if ended.len() > ENDED_MAX {
            ended.pop_first();
        }
    }

    /// The commit whose present attempt is `attempt`.
    fn deciding(&mut self, attempt: Attempt) -> Option<&mut Committing> {
        self.committing(attempt.txn).filter(|committing| committing.meta.attempt == attempt)
    }

    fn conclude(&mut self, txn: TxnId, outcome: Outcome, fx: &mut Effects<Site>) {
        match outcome {
            Outcome::Committed => {
                let trips = self.gateway.txns[&txn].trips;
                let Some(committing) = self.committing(txn) else { return };
                let at = committing.meta.at;
                self.tell_decided(txn, outcome, fx);
                self.finish_commit(txn, Answer::Committed(Committed { at, trips }), fx);
            }
            Outcome::Aborted => self.on_aborted(txn, fx),
        }
    }

    fn tell_decided(&mut self, txn: TxnId, outcome: Outcome, fx: &mut Effects<Site>) {
        let Some(meta) = self.committing(txn).map(|committing| committing.meta.clone()) else { return };
        self.remember(meta.attempt, Some(outcome));
        let coordinators: Vec<SiteId> = self.topology.replicas(meta.coordinator).collect();
        for site in coordinators {
            self.send(site, Note::Decided { meta: meta.clone(), outcome }, fx);
        }
    }

    /// This attempt has certainly aborted.
    fn on_aborted(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        let Some(committing) = self.committing(txn) else { return };
        let mut above = Timestamp::ZERO;
        let mut reason = None;
        for (_, refusal) in committing.tally.refusals() {
            match refusal {
                Refusal::TooOld(at) => above = above.max(at),
                Refusal::Withdrawn => {} // its own doing
                other => reason = Some(other),
            }
        }
        match reason {
            None if committing.attempts < ATTEMPTS_MAX => {
                let attempt = committing.meta.attempt;
                self.remember(attempt, Some(Outcome::Aborted));
                self.attempt_again(txn, above, fx);
            }
            reason => {
                let of_time = if above > Timestamp::ZERO { Refusal::TooOld(above) } else { Refusal::Withdrawn };
                let reason = reason.unwrap_or(of_time);
                self.tell_decided(txn, Outcome::Aborted, fx);
                self.finish_commit(txn, Answer::Failed(TxnError::Conflict(reason.to_string())), fx);
            }
        }
    }

    fn finish_commit(&mut self, txn: TxnId, answer: Answer, fx: &mut Effects<Site>) {
        let Some(committing) = self.committing(txn) else { return };
        let id = committing.id;
        self.end(txn, fx);
        fx.answer(id, answer);
    }

    pub(super) fn commits_tick(&mut self, fx: &mut Effects<Site>) {
        let open: Vec<TxnId> = self.gateway.txns.iter().filter(|(_, state)| Txn::is_committing(state)).map(|(txn, _)| *txn).collect();
        for txn in open {
            let now = self.now;
            let config = self.config.clone();
            let Some(committing) = self.committing(txn) else { continue };
            let age = now.since(committing.made);
            let refused = committing.tally.refusals().next().is_some();
            let late = now.since(committing.since) + config.withdraw_after >= config.outcome_deadline;
            if now.since(committing.since) >= config.outcome_deadline {
                self.give_up(txn, fx);
            } else if committing.withdrawn || (age >= config.withdraw_after && (refused || late)) {
                self.withdraw(txn, fx);
            } else if now.since(committing.sent) >= config.resend_after {
                fx.count("commit.accept_sent_again");
                self.send_accepts(txn, fx);
                self.withdraw_if_stuck(txn, fx);
            }
        }
        let floor = TxnId { began: Timestamp::from_time(self.now.minus(self.config.forget_after)), gateway: self.me };
        self.gateway.ended = self.gateway.ended.split_off(&Attempt { txn: floor, made: Timestamp::ZERO });
    }

    /// Has every region whose vote is not final take it back, or vote no.
    fn withdraw(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        let regions: Vec<RegionId> = self.topology.regions().collect();
        let Some(committing) = self.committing(txn) else { return };
        committing.withdrawn = true;
        let meta = committing.meta.clone();
        let is_final = |region: &RegionId| committing.tally.of(*region).is_some_and(Vote::is_final);
        let open: Vec<RegionId> = regions.into_iter().filter(|region| !is_final(region)).collect();
        fx.count("commit.withdrawn");
        for region in open {
            self.send(self.site(region, meta.coordinator), Note::Withdraw { meta: meta.clone() }, fx);
        }
    }

    /// The deadline is past: nobody can say yet whether it committed.
    fn give_up(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        let total = self.topology.region_count();
        let majority = self.topology.majority();
        let names: Vec<String> = self.topology.regions().map(|region| self.topology.name(region).to_owned()).collect();
        let Some(committing) = self.committing(txn) else { return };
        let attempt = committing.meta.attempt;
        let silent: Vec<&str> = (0..total as u16)
            .filter(|&region| committing.tally.of(RegionId(region)).is_none())
            .map(|region| names[usize::from(region)].as_str())
            .collect();
        let error = TxnError::Unknown(format!(
            "{} of {total} regions voted in time, {majority} are needed; no vote from {}. It may have been committed or may yet be: check before you repeat it",
            committing.tally.len(),
            silent.join(", "),
        ));
        fx.count("commit.unknown");
        self.withdraw(txn, fx);
        self.remember(attempt, None);
        self.finish_commit(txn, Answer::Failed(error), fx);
    }
}

impl Txn {
    fn is_committing(state: &Txn) -> bool {
        state.committing.is_some()
    }
}

fn versions_read(part: &Part) -> impl Iterator<Item = Timestamp> + '_ {
    let rows = part.reads.iter().map(|read| read.version);
    rows.chain(part.ranges.iter().flat_map(|range| range.rows.iter().map(|(_, version)| *version)))
}
