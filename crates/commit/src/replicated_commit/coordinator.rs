//! The coordinator: one region's vote on an attempt, and the two-phase commit inside the region.
//!
//! ```text
//!   Accept ─▶ Preparing ─▶ all cohorts prepared ─▶ Yes on disk ─▶ told to the gateway
//!                      └─▶ one cannot, or time is up, or asked first ─▶ No on disk ─▶ told likewise
//!   Decided ─▶ Apply or Unprepare to the cohorts ─▶ all applied ─▶ resolved ─▶ forgotten after a while
//!
//!   no Decided for long ─▶ AskGateway ─▶ no answer: it is deciding still
//!                               └─▶ Over, or the gateway is dead ─▶ AskVote to all regions ─▶ Firm, or No, on disk there
//!                                                                   ─▶ enough final votes: Decided to all
//! ```
//!
//! Whoever is asked for a vote asks the others, too, until the outcome is known: one link that is cut must not keep a site in doubt.
//!
//! Invariants: a region has one vote on an attempt, that of the site of the shard which the attempt names; it goes to disk in the step in which it is cast or becomes final; it is tallied, here as elsewhere,
//! only when it comes back from disk; a ballot with a yes-vote is kept until it is resolved.

use super::config::{Config, FORGET_MAX, ORPHANS_MAX};
use super::doubts::ASSUMED;
use super::message::{ATTEMPT, Attempt, Meta, Note, OUTCOME, Part, Promise, Voted};
use super::records::{self, Number, VOTES, VoteRecord};
use super::site::Site;
use crate::placement::Regions;
use crate::votes::{Decision, Outcome, Refusal, Tally, Vote};
use rhumb_core::{Batch, Effects, RegionId, SiteId, Span, Table, Time, Timestamp, record, work};
use std::collections::{BTreeMap, BTreeSet};

/// What a coordinator knows of one attempt.
#[derive(Debug)]
pub(super) struct Ballot {
    pub(super) meta: Meta,
    /// What it does in each shard; empty if no `Accept` came, and once resolved.
    parts: BTreeMap<u16, Part>,
    /// This region's vote, on disk or on its way there.
    pub(super) vote: Option<Vote>,
    tally: Tally,
    pub(super) decision: Option<Decision>,
    prepared: BTreeSet<u16>,
    applied: BTreeSet<u16>,
    /// Peers that have forgotten it, and the ends of their logs.
    forgotten_by: BTreeMap<RegionId, u64>,
    since: Time,
    /// Its gateway has said that it decides no more.
    over: bool,
    /// Somebody in doubt has asked for this region's vote: it may not reach the others that this region reaches.
    asked: bool,
    /// Regions that are lost, as an operator says who cannot declare them so before this is settled.
    presumed_lost: Regions,
    /// Lost regions whose votes this region does not believe any more, on disk or on its way there.
    without: Regions,
    resolved: bool,
}

/// The ballots of one coordinator.
#[derive(Debug, Default)]
pub(super) struct Coordinator {
    pub(super) ballots: BTreeMap<Attempt, Ballot>,
    /// Those not resolved: few beside the many that are kept until they are old.
    unresolved: BTreeSet<Attempt>,
    /// How many ballots have this region's vote.
    voted: usize,
}

impl Coordinator {
    /// Lists its tables at `now`.
    pub(super) fn tables(&self, now: Time, config: &Config, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("coordinator.ballots", self.ballots.len(), config.attempts_kept()).stays());
        visit(Table::new("coordinator.unresolved", self.unresolved.len(), self.ballots.len()).stays());
        let overdue = self.forgettable(now.minus(config.forget_after), config.forget_after * 2, now).count();
        visit(Table::new("coordinator.overdue", overdue, config.attempts_kept()));
    }

    /// The attempts made up to `floor` that are over for this region and were heard of first `age` ago or longer.
    fn forgettable(&self, floor: Time, age: Span, now: Time) -> impl Iterator<Item = Attempt> {
        let floor = Timestamp::from_time(floor);
        // An attempt is made after its transaction began.
        let begun_by_then = self.ballots.range(..=Attempt::last_begun(floor));
        begun_by_then
            .filter(move |(attempt, ballot)| attempt.made <= floor && ballot.is_over() && now.since(ballot.since) >= age)
            .map(|(attempt, _)| *attempt)
    }

    /// The ballot of `meta`'s attempt, a new one if need be.
    fn ballot(&mut self, meta: &Meta, now: Time) -> &mut Ballot {
        self.ballots.entry(meta.attempt).or_insert_with(|| {
            self.unresolved.insert(meta.attempt);
            Ballot::new(meta.clone(), now)
        })
    }

    /// The attempts of the same transaction made before `attempt`, or after it.
    fn siblings(&self, attempt: Attempt) -> (Vec<Attempt>, Vec<Attempt>) {
        let of_txn = |made| Attempt { txn: attempt.txn, made };
        let known = self.ballots.range(of_txn(Timestamp::ZERO)..=of_txn(Timestamp::MAX)).map(|(known, _)| *known);
        known.filter(|known| *known != attempt).partition(|known| *known < attempt)
    }
}

impl Ballot {
    fn new(meta: Meta, since: Time) -> Ballot {
        Ballot {
            meta,
            parts: BTreeMap::new(),
            vote: None,
            tally: Tally::default(),
            decision: None,
            prepared: BTreeSet::new(),
            applied: BTreeSet::new(),
            forgotten_by: BTreeMap::new(),
            since,
            over: false,
            asked: false,
            presumed_lost: Regions::NONE,
            without: Regions::NONE,
            resolved: false,
        }
    }

    fn put_outcome(&self, batch: &mut Batch) {
        if let Some(vote) = &self.vote {
            let record = VoteRecord { meta: self.meta.clone(), vote: vote.clone(), decision: self.decision, without: self.without };
            batch.put_record(VOTES, records::attempt_key(&self.meta.attempt), record::encode(&record));
        }
    }

    /// True if this region has promised to commit and does not know whether to.
    fn is_in_doubt(&self) -> bool {
        self.has_yes() && self.decision.is_none()
    }

    /// True if this region has no part in it any more. A vote whose outcome was only copied stays: whoever asks for it is not to take it for
    /// a refusal.
    fn is_over(&self) -> bool {
        !self.has_yes() || (self.resolved && self.decision.is_some())
    }

    /// True if this region is prepared by its vote.
    pub(super) fn has_yes(&self) -> bool {
        self.vote.as_ref().is_some_and(Vote::is_yes)
    }
}

impl Site {
    pub(super) fn recover_ballot(&mut self, record: VoteRecord, fx: &mut Effects<Site>) {
        let mut ballot = Ballot::new(record.meta, self.now);
        if let Some(decision) = record.decision {
            fx.agree(ATTEMPT, ballot.meta.attempt, &decision.is_commit().then_some(ballot.meta.at));
        }
        ballot.without = record.without;
        // A commit is on disk with the first cohort's rows; the others may still wait for it.
        let applied = record.decision.is_some_and(Decision::is_commit) && ballot.meta.participants == [self.me.shard];
        ballot.resolved = applied || record.decision == Some(Decision::Aborted) || !record.vote.is_yes();
        ballot.decision = record.decision;
        ballot.tally.record(self.me.region, record.vote.clone());
        ballot.vote = Some(record.vote);
        if !ballot.resolved {
            self.coordinator.unresolved.insert(ballot.meta.attempt);
        }
        self.coordinator.voted += 1;
        self.coordinator.ballots.insert(ballot.meta.attempt, ballot);
    }

    fn is_forgotten(&self, attempt: &Attempt) -> bool {
        attempt.made <= self.forgotten && !self.coordinator.ballots.contains_key(attempt)
    }

    /// The gateway asks this region to vote.
    pub(super) fn on_accept(&mut self, meta: Meta, parts: Vec<(u16, Part)>, fx: &mut Effects<Site>) {
        self.clock.observe(meta.at);
        let attempt = meta.attempt;
        if self.is_forgotten(&attempt) {
            fx.count("commit.accept_forgotten");
            return;
        }
        let known = self.coordinator.ballots.contains_key(&attempt);
        self.compare_epoch(attempt.txn.gateway, meta.epoch, fx);
        if !known && (meta.epoch > self.placement.epoch || (meta.epoch == self.placement.epoch && !self.is_settled())) {
            return self.wait_until_settled(attempt.txn.gateway, Note::Accept { meta, parts }, fx);
        }
        let (earlier, later) = self.coordinator.siblings(attempt);
        for earlier in earlier {
            // Its gateway would not have made another attempt, had this one not certainly aborted.
            if self.coordinator.ballots[&earlier].decision.is_none() {
                self.distribute(earlier, Decision::Aborted, fx);
            }
        }
        let superseded = !later.is_empty();
        let now = self.now;
        let ballot = self.coordinator.ballot(&meta, now);
        if ballot.vote.is_some() {
            fx.count("commit.accept_again");
            return self.tell_vote(attempt, &[attempt.txn.gateway], Batch::new(), fx);
        }
        if !ballot.parts.is_empty() {
            return; // its cohorts are being asked already
        }
        ballot.parts = parts.into_iter().collect();
        match ballot.decision {
            Some(decision) => self.distribute(attempt, decision, fx), // it overtook the Accept
            None if meta.epoch < self.placement.epoch => self.vote(attempt, Vote::No(Refusal::Moved), Batch::new(), fx),
            None if superseded => self.vote(attempt, Vote::No(Refusal::Superseded), Batch::new(), fx),
            None => {
                let prepares: Vec<_> = ballot.parts.iter().map(|(shard, part)| (*shard, part.clone())).collect();
                for (shard, part) in prepares {
                    let to = self.site(self.me.region, shard);
                    self.send(to, Note::Prepare { meta: meta.clone(), part }, fx);
                }
            }
        }
    }

    pub(super) fn on_prepared(&mut self, attempt: Attempt, shard: u16, fx: &mut Effects<Site>) {
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) else { return };
        ballot.prepared.insert(shard);
        if ballot.vote.is_none()
            && ballot.decision.is_none()
            && ballot.meta.participants.iter().all(|shard| ballot.prepared.contains(shard))
        {
            self.vote(attempt, Vote::Yes, Batch::new(), fx);
        }
    }

    pub(super) fn on_cannot_prepare(&mut self, attempt: Attempt, refusal: Refusal, fx: &mut Effects<Site>) {
        if self.coordinator.ballots.get(&attempt).is_some_and(|ballot| ballot.vote.is_none() && ballot.decision.is_none()) {
            self.vote(attempt, Vote::No(refusal), Batch::new(), fx);
        }
    }

    /// Casts this region's vote, or makes it final: to disk along with what is in `batch`, then to the gateway.
    pub(super) fn vote(&mut self, attempt: Attempt, vote: Vote, mut batch: Batch, fx: &mut Effects<Site>) {
        let ballot = self.coordinator.ballots.get_mut(&attempt).expect("a vote is cast on a known ballot");
        assert_eq!(ballot.meta.coordinator, self.me.shard, "a region votes once");
        assert!(!ballot.vote.as_ref().is_some_and(Vote::is_final), "a final vote never changes");
        fx.count(match vote {
            Vote::Yes => "commit.vote_yes",
            Vote::Firm => "commit.vote_firm",
            Vote::No(Refusal::Locked) => "commit.vote_no_locked",
            Vote::No(Refusal::LockLost) => "commit.vote_no_lock_lost",
            Vote::No(Refusal::Stale) => "commit.vote_no_stale",
            Vote::No(Refusal::TooOld(_)) => "commit.vote_no_too_old",
            Vote::No(Refusal::NeverHeard) => "commit.vote_no_never_heard",
            Vote::No(Refusal::Superseded) => "commit.vote_no_superseded",
            Vote::No(Refusal::TimedOut) => "commit.vote_no_timed_out",
            Vote::No(Refusal::Moved) => "commit.vote_no_moved",
            Vote::No(Refusal::NotWhole(_)) => "commit.vote_no_not_whole",
            Vote::No(Refusal::Withdrawn) => "commit.vote_no_withdrawn",
        });
        if ballot.vote.replace(vote.clone()).is_none() {
            self.coordinator.voted += 1;
        }
        ballot.put_outcome(&mut batch);
        #[cfg(feature = "planted")]
        if self.has_planted(super::planted::Planted::RefusalNotDurable) && !vote.is_yes() {
            batch = Batch::new();
        }
        let gateway = attempt.txn.gateway;
        let to = [self.me, gateway];
        self.tell_vote(attempt, if gateway == self.me { &to[..1] } else { &to }, batch, fx);
    }

    /// Has the cohorts of this region let go of an attempt that it will not commit by its own vote.
    fn have_unprepared(&mut self, meta: &Meta, fx: &mut Effects<Site>) {
        for &shard in &meta.participants {
            let cohort = self.site(self.me.region, shard);
            self.send(cohort, Note::Unprepare { attempt: meta.attempt }, fx);
        }
    }

    /// Tells this region's vote to `to`, after `batch` and all before it is on disk.
    fn tell_vote(&mut self, attempt: Attempt, to: &[SiteId], batch: Batch, fx: &mut Effects<Site>) {
        let ballot = &self.coordinator.ballots[&attempt];
        let vote = ballot.vote.clone().expect("told once cast");
        let (meta, without) = (ballot.meta.clone(), ballot.without);
        let voted = Voted { meta, region: self.me.region, vote, high: self.cohort.highest, without };
        let mut persist = fx.persist(batch);
        for site in to {
            persist = persist.send(*site, Promise::Vote(voted.clone()));
        }
    }

    /// Tells a vote just cast to `from`, unless it is told anyway.
    fn tell_others(&mut self, attempt: Attempt, from: SiteId, fx: &mut Effects<Site>) {
        if from != self.me && from != attempt.txn.gateway {
            self.tell_vote(attempt, &[from], Batch::new(), fx);
        }
    }

    /// Somebody in doubt asks for this region's vote: whatever it is becomes final. It is to do without the votes of regions that are
    /// `lost`.
    pub(super) fn on_ask_vote(&mut self, from: SiteId, meta: Meta, lost: Regions, fx: &mut Effects<Site>) {
        let attempt = meta.attempt;
        if self.is_forgotten(&attempt) {
            fx.count("commit.asked_forgotten");
            let promise = Promise::Forgotten { attempt, region: self.me.region, log_end: self.cohort.log_end };
            fx.persist(Batch::new()).send(from, promise);
            return;
        }
        let now = self.now;
        let ballot = self.coordinator.ballot(&meta, now);
        ballot.presumed_lost = ballot.presumed_lost.or(lost.without(self.me.region.into()));
        if ballot.decision.is_none() {
            ballot.asked = true;
            self.coordinator.unresolved.insert(attempt);
        }
        if let Some(decision) = self.decided_by_gateway(&attempt)
            && self.coordinator.ballots[&attempt].decision.is_none()
        {
            self.distribute(attempt, decision, fx);
        }
        let gives_word = self.give_word(attempt);
        let ballot = &self.coordinator.ballots[&attempt];
        let provisional = ballot.vote == Some(Vote::Yes);
        #[cfg(feature = "planted")]
        let provisional = provisional && !self.has_planted(super::planted::Planted::ProvisionalCounts);
        let ballot = &self.coordinator.ballots[&attempt];
        match (ballot.decision, &ballot.vote) {
            (Some(decision), _) => self.send(from, Note::Decided { meta, decision }, fx),
            (None, Some(_)) if provisional => {
                self.vote(attempt, Vote::Firm, Batch::new(), fx);
                self.tell_others(attempt, from, fx);
            }
            (None, Some(_)) if gives_word => {
                let mut batch = Batch::new();
                ballot.put_outcome(&mut batch);
                let to = [from, self.me];
                self.tell_vote(attempt, if from == self.me { &to[..1] } else { &to }, batch, fx);
            }
            (None, Some(_)) => self.tell_vote(attempt, &[from], Batch::new(), fx),
            (None, None) if ballot.parts.is_empty() => {
                self.vote(attempt, Vote::No(Refusal::NeverHeard), Batch::new(), fx);
                self.tell_others(attempt, from, fx);
            }
            // Its cohorts are preparing; the vote is cast soon, and who is in doubt asks again.
            (None, None) => {}
        }
    }

    /// This region does without the votes of lost regions from now on, if it knows none of them. True if that is new, and has to go to disk
    /// with its vote.
    fn give_word(&mut self, attempt: Attempt) -> bool {
        let ballot = &self.coordinator.ballots[&attempt];
        let lost = self.lost_of(&ballot.meta);
        let heard = |region: &RegionId| ballot.tally.of(*region).is_some() || self.gateway_heard(&attempt, *region);
        if ballot.decision.is_some() || lost.contains(self.me.region) || lost.iter().any(|region| heard(&region)) {
            return false;
        }
        let ballot = self.coordinator.ballots.get_mut(&attempt).expect("looked at above");
        let fresh = !lost.without(ballot.without).is_empty();
        ballot.without = ballot.without.or(lost);
        fresh
    }

    /// True if this region has given its word to believe nothing of `region` about `attempt`.
    pub(super) fn does_without(&self, region: RegionId, attempt: &Attempt) -> bool {
        self.coordinator.ballots.get(attempt).is_some_and(|ballot| ballot.without.contains(region))
    }

    /// The gateway at this site knows that `attempt` has aborted, and will say so: puts that on record, if this region has voted.
    pub(super) fn record_aborted(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        if self.coordinator.ballots.get(&attempt).is_some_and(|ballot| ballot.vote.is_some() && ballot.decision.is_none()) {
            self.distribute(attempt, Decision::Aborted, fx);
        }
    }

    /// Regions that are lost, as an operator says who cannot declare them so before `attempt` is settled.
    pub(super) fn presumed_lost(&self, attempt: &Attempt) -> Regions {
        self.coordinator.ballots.get(attempt).map_or(Regions::NONE, |ballot| ballot.presumed_lost)
    }

    /// The gateway takes the attempt back, as far as that is still possible.
    pub(super) fn on_withdraw(&mut self, from: SiteId, meta: Meta, fx: &mut Effects<Site>) {
        let attempt = meta.attempt;
        if self.is_forgotten(&attempt) {
            return fx.count("commit.withdraw_forgotten");
        }
        let now = self.now;
        let ballot = self.coordinator.ballot(&meta, now);
        match (ballot.decision, &ballot.vote) {
            (Some(decision), _) => self.send(from, Note::Decided { meta, decision }, fx),
            (None, Some(vote)) if vote.is_final() => self.tell_vote(attempt, &[from], Batch::new(), fx),
            (None, _) => self.vote(attempt, Vote::No(Refusal::Withdrawn), Batch::new(), fx),
        }
    }

    /// The outcome, from the gateway or from whoever worked it out.
    pub(super) fn on_decided_as_coordinator(&mut self, meta: &Meta, decision: Decision, fx: &mut Effects<Site>) {
        let attempt = meta.attempt;
        if meta.coordinator != self.me.shard || self.is_forgotten(&attempt) {
            return;
        }
        let ballots = &self.coordinator.ballots;
        if !ballots.contains_key(&attempt) && ballots.len() >= ORPHANS_MAX + self.coordinator.voted {
            return fx.count("commit.orphan_dropped");
        }
        let now = self.now;
        let ballot = self.coordinator.ballot(meta, now);
        if ballot.decision.is_none() {
            self.distribute(attempt, decision, fx);
        } else if decision.is_commit() && ballot.resolved && ballot.has_yes() {
            self.confirm(meta, Batch::new(), fx); // it did not hear so the first time
        }
    }

    pub(super) fn on_vote_as_coordinator(&mut self, voted: &Voted, fx: &mut Effects<Site>) {
        let Voted { meta, region, vote, high, without } = voted;
        let region = *region;
        let attempt = meta.attempt;
        if meta.coordinator != self.me.shard {
            return;
        }
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) else { return };
        ballot.tally.hear_word(region, *without);
        #[cfg(feature = "planted")]
        ballot.tally.overwrite(region, vote.clone());
        #[cfg(not(feature = "planted"))]
        ballot.tally.record(region, vote.clone());
        ballot.tally.hear_high(voted.coordinator(), *high);
        if region == self.me.region && !vote.is_yes() {
            // Only now that the refusal is on disk: a new life that had forgotten it could count a cohort as prepared
            // that has let go.
            self.have_unprepared(meta, fx);
        }
        self.count_votes(attempt, fx);
    }

    /// A site of another shard says how high it has prepared.
    pub(super) fn on_high_as_coordinator(&mut self, from: SiteId, attempt: Attempt, high: Timestamp, fx: &mut Effects<Site>) {
        if let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) {
            ballot.tally.hear_high(from, high);
            self.count_votes(attempt, fx);
        }
    }

    /// A region has resolved the attempt and forgotten it.
    pub(super) fn on_forgotten(&mut self, attempt: Attempt, region: RegionId, log_end: u64, fx: &mut Effects<Site>) {
        if let Some(entry) = self.cohort.entries.get_mut(&attempt).filter(|entry| entry.as_carried().is_some()) {
            entry.tally.hear_word(region, entry.meta.electorate);
            if region == self.me.region {
                entry.tally.record_if_open(region, Vote::No(Refusal::NeverHeard));
            } else {
                self.ask_to_stop(region, None, fx);
            }
        } else if region == self.me.region {
            // Its own coordinator would remember a commit until this cohort had applied it.
            self.unprepare(attempt, fx);
        }
        if let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) {
            // What it says first suffices: it had forgotten the attempt then.
            ballot.forgotten_by.entry(region).or_insert(log_end);
            self.count_votes(attempt, fx);
        }
    }

    /// The votes as far as they are known. A region that has forgotten the attempt, and in whose log it is not, did not
    /// commit it and never will vote yes: that is known only where its log was read without a gap, and not while rows are copied.
    fn tally(&self, ballot: &Ballot) -> Tally {
        let mut tally = ballot.tally.clone();
        for (region, end) in ballot.forgotten_by.iter().filter(|_| self.moving.copied) {
            if self.catch_up.cursor(*region) >= *end {
                tally.record_if_open(*region, Vote::No(Refusal::NeverHeard));
                tally.hear_word(*region, ballot.meta.electorate);
            }
        }
        tally
    }

    /// What is in doubt here of the epochs before `epoch`, and not prepared any more, has its outcome among the rows that were copied.
    pub(super) fn settle_copied_ballots(&mut self, epoch: u64) {
        work::add(self.coordinator.ballots.len());
        for (attempt, ballot) in &mut self.coordinator.ballots {
            if ballot.is_in_doubt() && ballot.meta.epoch < epoch && !self.cohort.entries.contains_key(attempt) {
                ballot.resolved = true;
                self.coordinator.unresolved.remove(attempt);
            }
        }
    }

    /// Regions that have forgotten attempts about which this site is in doubt, and whose logs it has not read that far.
    pub(super) fn forgetting(&self) -> Regions {
        work::add(self.coordinator.unresolved.len());
        let ballots = self.coordinator.unresolved.iter().map(|attempt| &self.coordinator.ballots[attempt]);
        let open = ballots.filter(|ballot| ballot.is_in_doubt()).flat_map(|ballot| &ballot.forgotten_by);
        let open = open.filter(|(region, end)| self.catch_up.cursor(**region) < **end).map(|(region, _)| *region);
        open.collect::<Regions>().or(self.logs_of_carried())
    }

    /// What `outcome` means to readers; none as long as too few sites have said how high they had prepared.
    pub(super) fn decision(&self, outcome: Outcome, tally: &Tally, meta: &Meta) -> Option<Decision> {
        match outcome {
            Outcome::Aborted => Some(Decision::Aborted),
            Outcome::Committed => {
                let lost = meta.electorate.iter().filter(|region| self.is_lost(*region, meta)).collect();
                let floor = tally.floor(meta.electorate, lost, self.other_shards(meta))?.max(meta.at);
                #[cfg(feature = "planted")]
                let floor = if self.has_planted(super::planted::Planted::FloorsIgnored) { meta.at } else { floor };
                Some(Decision::Committed { floor })
            }
        }
    }

    fn count_votes(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let Some(ballot) = self.coordinator.ballots.get(&attempt).filter(|ballot| ballot.decision.is_none()) else { return };
        if self.is_lost(self.me.region, &ballot.meta) {
            return; // the others have decided it without this region
        }
        let (tally, assumed) = self.with_lost(self.tally(ballot), &ballot.meta);
        let electorate = ballot.meta.electorate;
        let outcome = tally.outcome(electorate);
        #[cfg(feature = "planted")]
        let provisional_counts = self.has_planted(super::planted::Planted::ProvisionalCounts);
        #[cfg(feature = "planted")]
        let outcome = if provisional_counts { tally.outcome_at_gateway(electorate) } else { outcome };
        let Some(outcome) = outcome else { return };
        let meta = ballot.meta.clone();
        let Some(decision) = self.decision(outcome, &tally, &meta) else { return };
        fx.count(if assumed { ASSUMED } else { "commit.worked_out" });
        for region in meta.electorate.without(self.me.region.into()).iter() {
            fx.send(self.site(region, meta.coordinator), Note::Decided { meta: meta.clone(), decision });
        }
        self.distribute(attempt, decision, fx);
    }

    /// A peer's log tells that the attempt committed.
    pub(super) fn learn_committed(&mut self, attempt: Attempt, floor: Timestamp, fx: &mut Effects<Site>) {
        if self.coordinator.ballots.get(&attempt).is_some_and(|ballot| ballot.decision.is_none()) {
            fx.count("commit.learnt_from_log");
            self.distribute(attempt, Decision::Committed { floor }, fx);
        }
    }

    /// The outcome is known: tell the cohorts of this region.
    fn distribute(&mut self, attempt: Attempt, decision: Decision, fx: &mut Effects<Site>) {
        let ballot = self.coordinator.ballots.get_mut(&attempt).expect("an outcome belongs to a ballot");
        assert!(ballot.decision.is_none_or(|known| known.outcome() == decision.outcome()), "an outcome never changes");
        ballot.decision = Some(decision);
        fx.agree(OUTCOME, attempt, &decision.is_commit().then_some(ballot.meta.at));
        match decision {
            Decision::Committed { .. } => {
                fx.agree(ATTEMPT, attempt, &Some(ballot.meta.at));
                self.have_applied(attempt, fx);
            }
            Decision::Aborted => {
                let meta = ballot.meta.clone();
                self.have_unprepared(&meta, fx);
                let mut batch = Batch::new();
                self.resolve(attempt, &mut batch);
                if !batch.ops.is_empty() {
                    fx.persist(batch);
                }
            }
        }
    }

    /// Has the cohorts apply a committed attempt, those that have not yet.
    fn have_applied(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) else { return };
        let Some(Decision::Committed { floor }) = ballot.decision else { return };
        if !ballot.has_yes() && ballot.parts.is_empty() {
            // Nothing of it is here: catch-up brings the rows.
            fx.count("commit.outcome_without_rows");
            ballot.resolved = true;
            self.coordinator.unresolved.remove(&attempt);
            return self.catch_up.hurry();
        }
        let meta = ballot.meta.clone();
        for &shard in &meta.participants {
            let ballot = &self.coordinator.ballots[&attempt];
            if ballot.applied.contains(&shard) {
                continue;
            }
            // A cohort of a region that voted yes has its part on disk; another one gets it.
            let part = if ballot.has_yes() { None } else { ballot.parts.get(&shard).cloned() };
            let cohort = self.site(self.me.region, shard);
            self.send(cohort, Note::Apply { meta: meta.clone(), part, floor }, fx);
        }
    }

    pub(super) fn on_applied(&mut self, attempt: Attempt, shard: u16, fx: &mut Effects<Site>) {
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) else { return };
        ballot.applied.insert(shard);
        if ballot.meta.participants.iter().all(|shard| ballot.applied.contains(shard)) {
            let meta = ballot.meta.clone();
            let mut batch = Batch::new();
            self.resolve(attempt, &mut batch);
            self.confirm(&meta, batch, fx);
        }
    }

    /// The region has applied a commit; its gateway may wait for that.
    pub(super) fn confirm(&mut self, meta: &Meta, batch: Batch, fx: &mut Effects<Site>) {
        if meta.two_rounds {
            let confirmed = Promise::Confirmed { attempt: meta.attempt, region: self.me.region };
            fx.persist(batch).send(meta.attempt.txn.gateway, confirmed);
        } else if !batch.ops.is_empty() {
            fx.persist(batch);
        }
    }

    /// Marks the ballot resolved: nobody in this region waits for it any more. Adds that to `batch`.
    pub(super) fn resolve(&mut self, attempt: Attempt, batch: &mut Batch) {
        if let Some(ballot) = self.coordinator.ballots.get_mut(&attempt)
            && !ballot.resolved
        {
            ballot.resolved = true;
            ballot.parts.clear();
            ballot.put_outcome(batch);
            self.coordinator.unresolved.remove(&attempt);
        }
    }

    /// Adds the outcome of a ballot that is not resolved yet to `batch`: the next life need not ask for it.
    pub(super) fn note_outcome(&self, attempt: Attempt, batch: &mut Batch) {
        if let Some(ballot) = self.coordinator.ballots.get(&attempt) {
            ballot.put_outcome(batch);
        }
    }

    /// Attempts that have waited long for an outcome: their gateway is silent, and regions that could decide are out.
    pub(super) fn in_doubt(&self) -> usize {
        let long = self.config.ask_after * 2;
        let unresolved = self.coordinator.unresolved.iter().map(|attempt| &self.coordinator.ballots[attempt]);
        unresolved.filter(|ballot| ballot.is_in_doubt() && self.now.since(ballot.since) > long).count()
    }

    pub(super) fn coordinator_tick(&mut self, fx: &mut Effects<Site>) {
        let now = self.now;
        let attempts: Vec<Attempt> = self.coordinator.unresolved.iter().copied().collect();
        work::add(attempts.len());
        for attempt in attempts {
            let Some(ballot) = self.coordinator.ballots.get(&attempt).filter(|ballot| !ballot.resolved || ballot.asked) else { continue };
            let age = now.since(ballot.since);
            if ballot.asked && ballot.decision.is_none() && ballot.vote.is_some() {
                self.ask_votes(attempt, fx);
            } else if ballot.is_in_doubt() && age >= self.config.ask_after {
                self.ask(attempt, fx);
            } else if ballot.vote.is_none() && ballot.decision.is_none() && !ballot.parts.is_empty() && age >= self.config.prepare_timeout {
                self.vote(attempt, Vote::No(Refusal::TimedOut), Batch::new(), fx);
            } else if ballot.decision.is_some_and(Decision::is_commit) && age >= self.config.resend_after {
                self.have_applied(attempt, fx);
            }
        }
        self.forget(fx);
    }

    /// In doubt: asks the gateway, and the regions once it is dead or decides no more. Asked too early, votes become final
    /// that the gateway could still have withdrawn.
    fn ask(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let ballot = &self.coordinator.ballots[&attempt];
        let gateway = attempt.txn.gateway;
        if self.is_past_asking(gateway, ballot.over, self.now.since(ballot.since)) {
            return self.ask_votes(attempt, fx);
        }
        self.send(gateway, Note::AskGateway { meta: ballot.meta.clone() }, fx);
    }

    /// The gateway decides no more.
    pub(super) fn on_over(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        if let Some(ballot) = self.coordinator.ballots.get_mut(&attempt)
            && ballot.is_in_doubt()
            && !ballot.over
        {
            ballot.over = true;
            self.ask_votes(attempt, fx);
        }
        self.on_over_as_cohort(attempt, fx);
    }

    fn ask_votes(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        self.count_votes(attempt, fx);
        let ballot = &self.coordinator.ballots[&attempt];
        if ballot.decision.is_some() {
            return;
        }
        fx.count("commit.in_doubt_asks");
        let meta = ballot.meta.clone();
        #[cfg(feature = "planted")]
        if self.has_planted(super::planted::Planted::NaiveBallotOne) {
            return self.repropose(meta, fx);
        }
        // Those whose votes are known as well: they may know the outcome by now. This region only as long as its vote may still change.
        let lost = self.lost_of(&meta);
        let own = ballot.vote.as_ref().is_some_and(Vote::is_final) && lost.without(ballot.without).is_empty();
        let settled = if own { self.me.region.into() } else { Regions::NONE };
        for region in meta.electorate.without(settled).iter() {
            self.send(self.site(region, meta.coordinator), Note::AskVote { meta: meta.clone(), lost }, fx);
        }
        self.ask_highs(&meta, fx);
    }

    /// Drops the ballots that are resolved, or that this region has no part in, once they are old.
    fn forget(&mut self, fx: &mut Effects<Site>) {
        let age = self.config.forget_after;
        let old = self.coordinator.forgettable(self.now.minus(age), age, self.now);
        let gone: Vec<Attempt> = old.inspect(|_| work::add(1)).take(FORGET_MAX).collect();
        if gone.is_empty() {
            return;
        }
        let mut batch = Batch::new();
        for attempt in &gone {
            let ballot = self.coordinator.ballots.remove(attempt);
            self.coordinator.voted -= usize::from(ballot.is_some_and(|ballot| ballot.vote.is_some()));
            self.coordinator.unresolved.remove(attempt);
            batch.delete_record(VOTES, records::attempt_key(attempt));
            self.forgotten = self.forgotten.max(attempt.made);
        }
        Number::Forgotten.put(&mut batch, self.forgotten.bits());
        fx.persist(batch);
    }
}
