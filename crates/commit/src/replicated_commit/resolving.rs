//! Resolving: a site's part in the [resolution](crate::resolution) of attempts that lost regions may have decided.
//!
//! The coordinators of all regions that are not lost take part, voters or not: each of them may have put on record that the attempt
//! aborted. Any voter leads that is in doubt, or is asked by one that is, and hears all survivors: a link may be cut between two of them. Where
//! several lead, the first region of the electorate has the shortest wait between two rounds.
//!
//! A gateway of a region that takes part is bound with it, also where it is another site than the coordinator: it tells what it has seen, and
//! counts votes no more.
//!
//! On the change that declares it lost a region does not vote: so that change is decided by the others, whatever becomes of its gateway.
//! Should another change be in doubt, and keep the row that the declaration has to read and write, the operator's word comes before it
//! ([`Note::Settle`]): that change is resolved in the same way, without the regions that he is about to declare lost.

use super::cohort::{RowsOfDoubt, check_range};
use super::config::PAGE_BYTES_MAX;
use super::message::{ASSUMED, Answer, Attempt, Meta, Note, Part, Promise, RangeCheck};
use super::planted::Planted;
use super::site::{Pending, Site};
use crate::placement::{Placement, Regions};
use crate::resolution::{Leader, Round, Testimony, Verdict};
use crate::votes::{Decision, Refusal, Tally, Vote};
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{Batch, Effects, Key, Load, Loaded, RegionId, SiteId, Span, Table, Timestamp, work};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How often the wait doubles in which a region lets others lead: once a round, so that one comes to its end on slow disks.
const LEAD_DOUBLINGS_MAX: u64 = 2;

/// What the leader of a round proposes.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) meta: Meta,
    pub(super) round: Round,
    pub(super) decision: Decision,
}

/// A proposal whose reads are being looked up, at a survivor.
#[derive(Debug)]
pub(super) struct Examination {
    from: SiteId,
    proposal: Proposal,
    contents: Part,
    /// The ranges, as indices into the contents, that are still to be read, in order, and the one whose rows are awaited.
    ranges: VecDeque<usize>,
    current: Option<usize>,
    /// The load whose rows are awaited. Those of an examination in an earlier round may still come.
    awaited: Option<Token>,
    keys_are_known: bool,
    /// A version was put meanwhile that the loads may have missed.
    is_stale: bool,
}

impl Examination {
    /// A version of `key` is put at `at`.
    fn see(&mut self, key: &Key, at: Timestamp) {
        let is_newer = |version: Timestamp| version < at && at < self.proposal.meta.at;
        let in_range = |check: &RangeCheck| {
            let read = check.rows.binary_search_by(|(known, _)| known.cmp(key)).map_or(Timestamp::ZERO, |index| check.rows[index].1);
            check.range.contains(key) && is_newer(read)
        };
        self.is_stale |= self.contents.reads.iter().any(|read| read.key == *key && is_newer(read.version));
        self.is_stale |= self.contents.ranges.iter().any(in_range);
    }
}

/// The examinations under way at a survivor, one of an attempt at the most.
#[derive(Debug, Default)]
pub(super) struct Examinations(BTreeMap<Attempt, Examination>);

impl Examinations {
    /// A version of `key` is put at `at`.
    pub(super) fn see(&mut self, key: &Key, at: Timestamp) {
        self.0.values_mut().for_each(|examination| examination.see(key, at));
    }

    fn await_load(&mut self, attempt: Attempt, token: Token) {
        if let Some(examination) = self.0.get_mut(&attempt) {
            examination.awaited = Some(token);
        }
    }

    /// Lists its tables.
    pub(super) fn tables(&self, ballots: usize, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("examinations", self.0.len(), ballots));
    }
}

/// What other attempts leave to one that is to be committed by assumption.
enum Way {
    /// None is in its way that may commit.
    Free,
    /// One may.
    Barred,
    /// One is not over yet.
    Open,
}

impl Site {
    /// Leads the resolution of an attempt that somebody is in doubt about, if regions of its electorate are lost: asks whoever has not
    /// answered yet.
    pub(super) fn lead_resolution(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let now = self.now;
        let Some(ballot) = self.coordinator.ballots.get(&attempt).filter(|ballot| ballot.decision.is_none()) else { return };
        let meta = ballot.meta.clone();
        let lost = self.lost_of(&meta);
        if lost.is_empty() || self.is_lost(self.me.region, &meta) {
            return;
        }
        let survivors = self.survivors(&meta);
        // Without one of them a round comes to no end: somebody else leads who hears that one.
        let is_heard = |region| self.peers.is_alive(self.site(region, meta.coordinator), now, self.config.suspect_after);
        let hears_all = survivors.without(self.me.region.into()).iter().all(is_heard);
        let ballot = self.coordinator.ballots.get_mut(&attempt).expect("looked at above");
        let is_over = ballot.leader.as_ref().is_some_and(|leader| leader.survivors() != survivors);
        if is_over {
            ballot.leave_round();
        }
        if ballot.leader.is_none() && hears_all && (is_over || now >= ballot.leads_from) {
            fx.count("commit.resolution_led");
            ballot.lead(self.me.region, survivors);
        }
        self.ask_survivors(&meta, fx);
        self.go_on_resolving(attempt, fx);
    }

    /// The leader asks those survivors that it has not heard in this phase of its round.
    fn ask_survivors(&mut self, meta: &Meta, fx: &mut Effects<Site>) {
        let Some(leader) = &self.coordinator.ballots[&meta.attempt].leader else { return };
        let without = Regions::first(self.topology.region_count()).without(leader.survivors());
        let (round, awaited) = (leader.round(), leader.awaited());
        let note = match leader.proposed() {
            None => Note::Inquire { meta: meta.clone(), round, without },
            Some(decision) => {
                let ballot = &self.coordinator.ballots[&meta.attempt];
                let contents = ballot.contents.clone().filter(|_| ballot.assumes);
                Note::Propose { meta: meta.clone(), round, decision, contents }
            }
        };
        for region in awaited.iter() {
            self.send(self.site(region, meta.coordinator), note.clone(), fx);
        }
    }

    /// All regions that may know something of the attempt, and may yet say so: they only become fewer.
    pub(super) fn survivors(&self, meta: &Meta) -> Regions {
        let gone = |region: RegionId| self.placement.lost.contains_key(&region) && !self.placement.copies().contains(region);
        let all = Regions::first(self.topology.region_count());
        let dead: Regions = all.iter().filter(|region| self.is_lost(*region, meta) || gone(*region)).collect();
        all.without(dead).without(self.presumed_lost(&meta.attempt)).without(meta.declares_lost)
    }

    /// The regions of the electorate that are lost, as the placement says, an operator who is about to declare them so, or a round.
    pub(super) fn lost_of(&self, meta: &Meta) -> Regions {
        let declared: Regions = meta.electorate.iter().filter(|region| self.is_lost(*region, meta)).collect();
        declared.or(self.presumed_lost(&meta.attempt)).and(meta.electorate).without(meta.declares_lost)
    }

    /// A leader asks what this region knows.
    pub(super) fn on_inquire(&mut self, from: SiteId, meta: Meta, round: Round, without: Regions, fx: &mut Effects<Site>) {
        let attempt = meta.attempt;
        if meta.coordinator != self.me.shard || without.contains(self.me.region) {
            return;
        }
        let is_forgotten = self.is_forgotten(&attempt);
        self.look_up(&meta, fx);
        let (now, wait) = (self.now, self.wait_to_lead(&meta));
        self.coordinator.keep_open(attempt);
        let ballot = self.coordinator.ballots.get_mut(&attempt).expect("just looked up");
        ballot.stands_in |= is_forgotten;
        let votes = meta.electorate.contains(self.me.region) && !ballot.stands_in && ballot.decision.is_none();
        if (votes && ballot.vote.is_none() && ballot.is_preparing()) || ballot.acceptor.without().contains(round.leader) {
            return; // the vote is cast soon, and the leader asks again; or it leads for those who come too late
        }
        let unbound = ballot.unbound(self.me);
        if !unbound.is_empty() {
            return unbound.into_iter().for_each(|site| fx.send(site, Note::Bind { meta: meta.clone() })); // the leader asks again
        }
        let is_new = match ballot.acceptor.promise(round, without) {
            Ok(is_new) => is_new,
            Err(promised) => return self.send(from, Note::Outranked { attempt, promised }, fx),
        };
        if ballot.leader.as_ref().is_some_and(|leader| leader.round() != round) {
            ballot.leave_round();
        }
        if is_new {
            // Once a round, however often it asks: a link may be cut between its leader and another survivor.
            ballot.leads_from = now + wait * (1 << round.number.min(LEAD_DOUBLINGS_MAX));
        }
        let last = match ballot.vote {
            _ if !votes => None,
            None => Some(Vote::No(Refusal::NeverHeard)),
            Some(Vote::Yes) => Some(Vote::Firm),
            Some(_) => None,
        };
        self.bind_gateway(attempt);
        match last {
            Some(vote) => self.vote(attempt, vote, Batch::new(), fx),
            None => self.put_on_record(attempt, fx),
        }
        self.testify(from, attempt, round, fx);
    }

    /// The coordinator, another site of this region, is about to take part in a resolution: this one, gateway of the attempt or cohort, acts on no
    /// outcome but by that one's word. What it took over before, it says: it is among the rows then. That it is bound need not outlive a crash: a
    /// later life takes no part over from the log of a lost region, and no copy that was sent before it.
    pub(super) fn on_bind(&mut self, from: SiteId, meta: Meta, fx: &mut Effects<Site>) {
        let attempt = meta.attempt;
        self.clock.observe(meta.at);
        self.bind_gateway(attempt);
        let taken_over = self.cohort.applied.contains(&attempt) || self.coordinator.has_committed(&attempt);
        let committed = Decision::Committed { floor: self.cohort.highest_applied.max(meta.at) };
        if let Some(decision) = self.decided_by_gateway(&attempt).or(taken_over.then_some(committed)) {
            return self.send(from, Note::Decided { meta, decision }, fx);
        }
        if self.is_carried(&attempt) && !self.are_rows_absent(attempt, fx) {
            return; // they are being looked for, and the coordinator asks again
        }
        let votes = self.votes_heard(&attempt).into_iter().collect();
        let mut batch = Batch::new();
        self.cover(&mut batch, meta.at);
        if meta.participants.contains(&self.me.shard) {
            self.cohort.bound.insert(attempt, meta);
        }
        fx.persist(batch).send(from, Promise::Bound { attempt, votes });
    }

    /// The final votes that this site has heard as gateway of the attempt, or as cohort.
    fn votes_heard(&self, attempt: &Attempt) -> BTreeMap<RegionId, Vote> {
        let mut votes = self.votes_at_gateway(attempt);
        let heard = self.cohort.entries.get(attempt).into_iter().flat_map(|entry| entry.tally.final_votes());
        votes.extend(heard.map(|(region, vote)| (region, vote.clone())));
        votes
    }

    /// How long this region lets another one lead.
    fn wait_to_lead(&self, meta: &Meta) -> Span {
        let before = meta.electorate.iter().take_while(|region| *region < self.me.region).count() as u64;
        self.config.ask_after * (before + 2)
    }

    fn put_on_record(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let mut batch = Batch::new();
        self.coordinator.ballots[&attempt].put_record(&mut batch);
        fx.persist(batch);
    }

    /// Says what this region knows, once that is on disk.
    fn testify(&mut self, to: SiteId, attempt: Attempt, round: Round, fx: &mut Effects<Site>) {
        let region = self.me.region;
        let ballot = &self.coordinator.ballots[&attempt];
        let entry = self.cohort.entries.get(&attempt).filter(|entry| entry.is_promised());
        let mut votes = self.votes_heard(&attempt);
        votes.extend(ballot.final_votes());
        votes.extend(ballot.vote.clone().map(|vote| (region, vote)));
        votes.extend(ballot.stands_in.then_some((region, Vote::No(Refusal::NeverHeard))));
        let testimony = Testimony {
            known: ballot.decision,
            votes,
            accepted: ballot.acceptor.accepted(),
            contested: ballot.acceptor.is_contested(),
            forgotten: ballot.stands_in.then_some(self.cohort.log_end),
        };
        let contents = entry.map(|entry| entry.part.clone());
        fx.persist(Batch::new()).send(to, Promise::Testified { attempt, region, round, testimony, contents });
    }

    /// A survivor testifies.
    pub(super) fn on_testified(&mut self, attempt: Attempt, region: RegionId, round: Round, testimony: Testimony, fx: &mut Effects<Site>) {
        let Some(leader) = self.coordinator.leader(&attempt) else { return };
        leader.hear(region, round, testimony);
        self.go_on_resolving(attempt, fx);
    }

    /// The leader has heard something: it proposes once it has heard all survivors, and concludes once all have accepted.
    pub(super) fn go_on_resolving(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let Some(ballot) = self.coordinator.ballots.get(&attempt).filter(|ballot| ballot.decision.is_none()) else { return };
        let Some(leader) = &ballot.leader else { return };
        let meta = ballot.meta.clone();
        if !leader.awaited().is_empty() {
            return;
        }
        if let Some(decision) = leader.proposed() {
            return self.conclude_resolution(&meta, decision, fx);
        }
        // What is forgotten elsewhere and committed is in a log that has to be read first.
        let is_read = |(region, log_end)| region == self.me.region || self.catch_up.cursor(region) >= log_end;
        let is_forgotten = leader.forgotten().next().is_some();
        if is_forgotten && !(self.moving.copied && leader.forgotten().all(is_read)) {
            return;
        }
        if let Some((decision, assumes)) = self.judge(&meta, leader, fx) {
            if is_forgotten && !decision.is_commit() && !self.are_rows_of_forgotten_absent(&meta, fx) {
                return;
            }
            let ballot = self.coordinator.ballots.get_mut(&attempt).expect("it leads");
            ballot.assumes = assumes && decision.is_commit();
            ballot.leader.as_mut().expect("it leads").propose(decision);
            self.ask_survivors(&meta, fx);
        }
    }

    /// True if the rows of an attempt that others have forgotten are not here. That its log has been read says so only to those who remember what
    /// was in it: they are looked for if nobody has done so.
    fn are_rows_of_forgotten_absent(&mut self, meta: &Meta, fx: &mut Effects<Site>) -> bool {
        let ballot = self.coordinator.ballots.get_mut(&meta.attempt).expect("it leads");
        let Some(contents) = ballot.contents.as_ref().filter(|contents| !contents.writes.is_empty()) else { return true };
        match ballot.rows {
            RowsOfDoubt::Absent => return true,
            RowsOfDoubt::Awaited => return false,
            RowsOfDoubt::Unknown => ballot.rows = RowsOfDoubt::Awaited,
        }
        let versions = contents.writes.iter().map(|(key, _)| (key.clone(), meta.at)).collect();
        let token = self.token(Pending::RowsOfForgotten(meta.attempt));
        fx.load(token, Load::Versions { versions, bytes: PAGE_BYTES_MAX });
        false
    }

    /// The rows of what others have forgotten were looked for.
    pub(super) fn on_rows_of_forgotten(&mut self, attempt: Attempt, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt).filter(|ballot| ballot.decision.is_none()) else { return };
        if rows.is_empty() {
            ballot.rows = RowsOfDoubt::Absent;
            return self.go_on_resolving(attempt, fx);
        }
        if !ballot.acceptor.has_accepted_abort() {
            let meta = ballot.meta.clone();
            let decision = Decision::Committed { floor: self.cohort.highest_applied.max(meta.at) };
            self.conclude_as_coordinator(&meta, decision, fx);
        }
    }

    /// All survivors have accepted `decision`.
    fn conclude_resolution(&mut self, meta: &Meta, decision: Decision, fx: &mut Effects<Site>) {
        let mut told: BTreeSet<SiteId> = self.survivors(meta).iter().map(|region| self.site(region, meta.coordinator)).collect();
        told.insert(meta.attempt.txn.gateway);
        for site in told {
            self.send(site, Note::Concluded { meta: meta.clone(), decision }, fx);
        }
    }

    /// All survivors have accepted `decision`.
    pub(super) fn on_concluded(&mut self, meta: &Meta, decision: Decision, fx: &mut Effects<Site>) {
        if meta.coordinator == self.me.shard {
            let now = self.now;
            let ballot = self.coordinator.ballot(meta, now);
            if ballot.decision.is_none() {
                ballot.kept = true;
                self.distribute(meta.attempt, decision, fx);
            }
        }
        self.on_decided_as_gateway(meta, decision, fx);
    }

    /// What follows from all testimonies, and whether that rests on votes that nobody has seen; none as long as too few sites have said how
    /// high they had prepared.
    fn judge(&self, meta: &Meta, leader: &Leader, fx: &mut Effects<Site>) -> Option<(Decision, bool)> {
        let mut refusing = Tally::default();
        meta.refuse_for_lost(&mut refusing);
        let assumed = if self.rules.breaks(Planted::LostRefuses) { Vote::No(Refusal::NeverHeard) } else { Vote::Firm };
        let ballot = &self.coordinator.ballots[&meta.attempt];
        let tally = &ballot.tally;
        match leader.verdict(meta.electorate, refusing, &assumed)? {
            Verdict::Known(decision) => Some((decision, false)),
            _ if self.is_superseded(&meta.attempt) => Some((Decision::Aborted, false)),
            Verdict::Counted(outcome) => Some((self.decision(outcome, tally, meta)?, false)),
            // No survivor has promised it, or one that has promised has its outcome among rows that it copied.
            Verdict::Assumed(_) if ballot.contents.is_none() => Some((Decision::Aborted, true)),
            Verdict::Assumed(outcome) => {
                let decision = self.decision(outcome, tally, meta)?;
                if decision.is_commit() {
                    fx.count("commit.assumed_of_lost");
                    fx.agree(ASSUMED, meta.attempt, &());
                }
                Some((decision, true))
            }
        }
    }

    /// A leader proposes; where that is a commit by assumption, with what the attempt reads and writes in the coordinators' shard.
    pub(super) fn on_propose(&mut self, from: SiteId, proposal: Proposal, contents: Option<Part>, fx: &mut Effects<Site>) {
        let Proposal { meta, round, decision } = proposal;
        let (attempt, region) = (meta.attempt, self.me.region);
        if meta.coordinator != self.me.shard {
            return;
        }
        self.look_up(&meta, fx);
        let ballot = self.coordinator.ballots.get_mut(&attempt).expect("just looked up");
        if ballot.decision.is_some_and(|known| known.outcome() != decision.outcome()) {
            fx.persist(Batch::new()).send(from, Promise::Contested { attempt, region, round });
            return;
        }
        if let Err(promised) = ballot.acceptor.promise(round, Regions::NONE) {
            return self.send(from, Note::Outranked { attempt, promised }, fx);
        }
        let proposal = Proposal { meta, round, decision };
        // Who knows that it committed need not look.
        let Some(contents) = contents.filter(|_| ballot.decision.is_none()) else { return self.accept_proposal(from, &proposal, fx) };
        ballot.contents = Some(contents.clone());
        self.coordinator.assumed.insert(attempt);
        if self.examinations.0.get(&attempt).is_some_and(|known| known.proposal.round == round) {
            return;
        }
        let ranges = (0..contents.ranges.len()).collect();
        let (current, awaited) = (None, None);
        let examination = Examination { from, proposal, contents, ranges, current, awaited, keys_are_known: false, is_stale: false };
        self.examinations.0.insert(attempt, examination);
        self.examine(attempt, fx);
    }

    fn accept_proposal(&mut self, from: SiteId, proposal: &Proposal, fx: &mut Effects<Site>) {
        let (attempt, region, round) = (proposal.meta.attempt, self.me.region, proposal.round);
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) else { return };
        if ballot.decision.is_some_and(|known| known.outcome() != proposal.decision.outcome()) {
            return; // heard meanwhile: the leader asks again, and is told
        }
        if ballot.acceptor.accept(round, proposal.decision).is_ok() {
            let mut batch = Batch::new();
            ballot.put_record(&mut batch);
            fx.persist(batch).send(from, Promise::Accepted { attempt, region, round });
        }
    }

    /// Looks whether what is to be committed by assumption had read the newest versions below its timestamp: else whoever refused it, and be it a
    /// lost region, was right.
    fn examine(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let Some(examination) = self.examinations.0.get_mut(&attempt) else { return };
        let at = examination.proposal.meta.at.previous();
        let contents = &examination.contents;
        let load = if !examination.keys_are_known && !contents.reads.is_empty() {
            Load::Get { keys: contents.reads.iter().map(|read| read.key.clone()).collect(), at, bytes: usize::MAX }
        } else if let Some(index) = examination.ranges.pop_front() {
            examination.current = Some(index);
            let check = &contents.ranges[index];
            Load::Scan { range: check.range.clone(), at, limit: check.rows.len() + 1, bytes: usize::MAX, reverse: false }
        } else {
            return self.end_examination(attempt, fx);
        };
        let token = self.token(Pending::Examine(attempt));
        self.examinations.await_load(attempt, token);
        fx.load(token, load);
    }

    /// What is to be committed by assumption had read these rows.
    pub(super) fn on_examined(&mut self, attempt: Attempt, token: Token, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        work::add(rows.len());
        let examination = self.examinations.0.get_mut(&attempt).filter(|examination| examination.awaited == Some(token));
        let Some(examination) = examination else { return };
        let contents = &examination.contents;
        examination.is_stale |= match examination.current {
            Some(index) => check_range(&contents.ranges[index].rows, &rows).is_err(),
            None => contents.reads.iter().zip(&rows).any(|(read, row)| row.version > read.version),
        };
        examination.keys_are_known = true;
        self.examine(attempt, fx);
    }

    fn end_examination(&mut self, attempt: Attempt, fx: &mut Effects<Site>) {
        let Some(Examination { from, proposal, contents, is_stale, .. }) = self.examinations.0.remove(&attempt) else { return };
        if self.coordinator.ballots.get(&attempt).is_none_or(|ballot| ballot.decision.is_some()) {
            return; // heard meanwhile: the leader asks again, and is told
        }
        let is_stale = is_stale && !self.rules.breaks(Planted::StaleUnseen);
        if is_stale {
            fx.count("commit.resolution_stale");
            return self.contest(from, &proposal, fx);
        }
        let mut batch = Batch::new();
        match self.make_way(attempt, &contents, &mut batch) {
            Way::Free => self.accept_proposal(from, &proposal, fx),
            Way::Barred => self.contest(from, &proposal, fx),
            Way::Open => {
                fx.count("commit.resolution_waits");
                if !batch.ops.is_empty() {
                    fx.persist(batch);
                }
            }
        }
    }

    /// Says that the attempt must not be committed by assumption, for good.
    fn contest(&mut self, from: SiteId, proposal: &Proposal, fx: &mut Effects<Site>) {
        let (attempt, region, round) = (proposal.meta.attempt, self.me.region, proposal.round);
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt).filter(|ballot| ballot.decision.is_none()) else { return };
        fx.count("commit.resolution_contested");
        let mut batch = Batch::new();
        ballot.contest(&mut batch);
        fx.persist(batch).send(from, Promise::Contested { attempt, region, round });
    }

    /// May the attempt, which reads and writes `contents` in this shard, be committed by assumption? Not if it is contested, or this region is
    /// prepared for an earlier one in its way that may be, too. Later ones are contested from now on, by what is added to `batch`. The leader asks
    /// again until all of them are over.
    fn make_way(&mut self, attempt: Attempt, contents: &Part, batch: &mut Batch) -> Way {
        if self.rules.breaks(Planted::RivalsBothCommit) {
            return Way::Free;
        }
        let rivals = self.cohort.entries.values().filter(|entry| entry.is_promised() && entry.meta.coordinator == self.me.shard);
        let rivals = rivals.filter(|entry| entry.meta.attempt != attempt && entry.part.conflicts(contents));
        let rivals: Vec<Attempt> = rivals.map(|entry| entry.meta.attempt).collect();
        let ballots = &mut self.coordinator.ballots;
        let has_priority = |rival: &Attempt| {
            let ballot = ballots.get(rival);
            let accepted = ballot.and_then(|ballot| ballot.decision.or(ballot.acceptor.accepted().map(|(_, decision)| decision)));
            accepted.map_or(*rival < attempt, Decision::is_commit)
        };
        let is_open = |rival: &Attempt| ballots.get(rival).is_some_and(|ballot| ballot.is_in_doubt() && !ballot.acceptor.is_bound());
        if ballots[&attempt].acceptor.is_contested() {
            return Way::Barred;
        }
        if rivals.iter().any(is_open) {
            return Way::Open;
        }
        // One that is carried here has no ballot on which to put that it is contested. And what is in force is committed.
        let is_foreign = |rival: &Attempt| !ballots.contains_key(rival);
        let in_force = contents.placement().is_some_and(|next| next.epoch <= self.placement.epoch && next != self.placement);
        if in_force || rivals.iter().any(|rival| is_foreign(rival) || has_priority(rival)) {
            return Way::Barred;
        }
        let mut way = Way::Free;
        for rival in rivals {
            if let Some(ballot) = ballots.get_mut(&rival).filter(|ballot| ballot.decision.is_none()) {
                way = Way::Open;
                if !ballot.acceptor.is_contested() {
                    ballot.contest(batch);
                }
            }
        }
        way
    }

    /// `attempt` commits here, which has read and written `part`. If it had not seen what another one writes at a lower timestamp that somebody
    /// proposes to commit by assumption, that one is contested.
    pub(super) fn contest_unread(&mut self, meta: &Meta, part: &Part, batch: &mut Batch) {
        for attempt in &self.coordinator.assumed {
            let Some(ballot) = self.coordinator.ballots.get_mut(attempt) else { continue };
            let is_unread = ballot.meta.at < meta.at && ballot.contents.as_ref().is_some_and(|contents| part.has_read_from(contents));
            if *attempt != meta.attempt && is_unread && !ballot.acceptor.is_contested() {
                ballot.contest(batch);
            }
        }
    }

    /// Another attempt is in the way of the one that this site proposes to commit: it aborts in the next round.
    pub(super) fn on_contested(&mut self, attempt: Attempt, region: RegionId, round: Round, fx: &mut Effects<Site>) {
        let own = self.me.region;
        let Some(meta) = self.coordinator.ballots.get(&attempt).map(|ballot| ballot.meta.clone()) else { return };
        let survivors = self.survivors(&meta);
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt) else { return };
        if ballot.leader.as_ref().is_some_and(|leader| leader.round() == round && leader.proposed().is_some()) {
            fx.trace(|| format!("{region} contests {attempt}"));
            ballot.lead(own, survivors);
            self.ask_survivors(&meta, fx);
        }
    }

    /// A survivor accepts what this site proposes.
    pub(super) fn on_accepted(&mut self, attempt: Attempt, region: RegionId, round: Round, fx: &mut Effects<Site>) {
        let Some(leader) = self.coordinator.leader(&attempt) else { return };
        leader.hear_accepted(region, round);
        self.go_on_resolving(attempt, fx);
    }

    /// Another leads a higher round: it is given the time to conclude.
    pub(super) fn on_outranked(&mut self, attempt: Attempt, promised: Round, fx: &mut Effects<Site>) {
        let Some(meta) = self.coordinator.ballots.get(&attempt).map(|ballot| ballot.meta.clone()) else { return };
        let (now, wait) = (self.now, self.wait_to_lead(&meta));
        let Some(ballot) = self.coordinator.ballots.get_mut(&attempt).filter(|ballot| ballot.decision.is_none()) else { return };
        if ballot.leader.as_ref().is_none_or(|leader| leader.round() >= promised) {
            return;
        }
        fx.count("commit.resolution_outranked");
        ballot.leave_round();
        ballot.leads_from = now + wait * (1 << promised.number.min(LEAD_DOUBLINGS_MAX));
        ballot.outranked_by = ballot.outranked_by.max(promised.number);
    }

    /// An operator says that regions are `lost`: tells all sites, for a change of the placement that is in doubt keeps the row that a
    /// declaration has to read and write.
    pub(super) fn on_settle(&mut self, id: RequestId, lost: Regions, fx: &mut Effects<Site>) {
        for site in self.topology.sites().collect::<Vec<_>>() {
            self.send(site, Note::Settle { lost }, fx);
        }
        fx.answer(id, Answer::Done);
    }

    /// Has changes of the placement that are in doubt here resolved without regions that are `lost`.
    pub(super) fn settle_placements(&mut self, lost: Regions, fx: &mut Effects<Site>) {
        if lost.contains(self.me.region) {
            return;
        }
        let key = Placement::key(self.me.shard, &self.topology);
        let holders = self.cohort.locks.exclusive_holders(&key).filter_map(|txn| self.cohort.entry_of(txn));
        let own = holders.filter(|entry| entry.is_promised() && entry.meta.coordinator == self.me.shard);
        let metas: Vec<Meta> = own.map(|entry| entry.meta.clone()).collect();
        for meta in metas {
            self.ballot_of_forgotten(&meta);
            if self.coordinator.presume_lost(meta.attempt, lost) {
                fx.count("placement.settled_for_declaration");
                self.ask_votes(meta.attempt, fx);
            }
        }
    }
}
