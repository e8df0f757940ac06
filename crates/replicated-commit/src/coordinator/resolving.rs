//! Resolving: a site's part in the [resolution](crate::resolution) of attempts that lost regions may have decided.
//!
//! The coordinators of all regions that are not lost take part, voters or not: each of them may have put on record that the attempt
//! aborted. A voter leads if it hears all survivors (a link may be cut between two of them) and is in doubt, or was asked by a region that is. Where
//! several lead, the first region of the electorate waits shortest between two rounds.
//!
//! The gateway of a region that takes part is bound as well, even if it is a different site from the coordinator: it reports the votes that it has
//! seen and stops counting.
//!
//! A region does not vote on the change that declares it lost, so the others can decide that change even if its gateway dies. If another change is in
//! doubt and holds the lock on the row that the declaration reads and writes, the operator's request resolves that one first ([`Note::Settle`]), in
//! the same way, without the regions that are about to be declared lost.

use super::Coordinator;
use crate::context::{Context, Local, Shared};
use crate::job::Job;
use crate::message::{ASSUMED, Answer, Attempt, Inquiry, Meta, Note, Part, Promise, Testified};
use crate::planted::Planted;
use crate::resolution::{Leader, Round, Testimony, Verdict};
use crate::trace::Found;
use crate::views::{CoordinatorView, NearCoordinator};
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::votes::{Decision, Refusal, Tally, Vote};
use rhumb_core::actor::{RequestId, Token};
use rhumb_core::{Batch, Loaded, RegionId, SiteId, Span};
use std::collections::BTreeSet;

/// So many waits a region that cannot tell how an attempt ended lets others lead.
const UNTOLD_WAITS: u64 = 16;

/// How often the wait doubles in which a region lets others lead: once a round, so that one comes to its end on slow disks.
const LEAD_DOUBLINGS_MAX: u64 = 2;

impl Coordinator {
    /// A site of this region carries an attempt. If regions are lost that voted on it, this one leads its resolution: all who voted on it may
    /// have forgotten it.
    pub(crate) fn lead_for_carrier(&mut self, near: &NearCoordinator<'_>, meta: &Meta, cx: &mut Context<'_>) {
        if !self.lost_of(cx, meta).is_empty() {
            self.state_of_forgotten(cx, meta);
            self.lead_resolution(near, meta.attempt, cx);
        }
    }

    /// The leader asks those survivors that it has not heard in this phase of its round.
    fn query_survivors(&mut self, meta: &Meta, cx: &mut Context<'_>) {
        let Some(leader) = &self.attempts[&meta.attempt].leader else { return };
        let without = Regions::first(cx.topology.region_count()).without(leader.survivors());
        let (round, awaited) = (leader.round(), leader.awaited());
        let note = match leader.proposed() {
            None => Note::Inquire(Inquiry { meta: meta.clone(), round, without }),
            Some(decision) => {
                let state = &self.attempts[&meta.attempt];
                let contents = state.contents.clone().filter(|_| state.assumes);
                Note::Propose { meta: meta.clone(), round, decision, contents }
            }
        };
        for region in awaited.iter() {
            cx.send(meta.coordinator_in(region), note.clone());
        }
    }

    fn put_on_record(&mut self, attempt: Attempt, cx: &mut Context<'_>) {
        let mut batch = Batch::new();
        self.attempts[&attempt].put_record(&mut batch);
        cx.fx.persist(batch);
    }

    /// True if an attempt that others have forgotten has certainly not been applied in this region. That their logs have been read says so only to
    /// those who remember what was in them: its rows are looked for if nobody has done so. If nobody here can tell, this region leads no more.
    fn is_certainly_absent(&mut self, near: &NearCoordinator<'_>, meta: &Meta, cx: &mut Context<'_>) -> bool {
        let state = self.attempts.get_mut(&meta.attempt).expect("it leads");
        if near.cohort.lacks(&meta.attempt) || !state.lacking.is_empty() || state.watched {
            return true;
        }
        let found = match &state.contents {
            Some(contents) => {
                state.trace.look(meta, contents, near.cohort.dropped(), |load| cx.load(Job::RowsOfForgotten(meta.attempt), load));
                state.trace.found()
            }
            None => Some(Found::Covered),
        };
        if cx.rules.breaks(Planted::CoveredIsAbsent) {
            return found.is_some();
        }
        if found == Some(Found::Covered) {
            self.give_up_round(near, meta, cx);
        }
        found == Some(Found::Absent)
    }

    /// Nobody in this region can tell whether the attempt has committed. If somebody elsewhere waits for its outcome, that one leads; else nobody asks
    /// any more, and the logs tell whoever lacks it.
    fn give_up_round(&mut self, near: &NearCoordinator<'_>, meta: &Meta, cx: &mut Context<'_>) {
        cx.fx.count("commit.resolution_untold");
        let (now, wait) = (cx.now, self.wait_to_lead(cx, meta));
        let state = self.attempts.get_mut(&meta.attempt).expect("it leads");
        let Some(leader) = &state.leader else { return };
        let (round, told) = (leader.round(), if leader.waits_nobody() { leader.survivors() } else { Regions::NONE });
        if state.trace.found() == Some(Found::Covered) {
            cx.notify(Local::CoveredHere(meta.attempt));
        }
        state.leave_round();
        state.leads_from = now + wait * UNTOLD_WAITS;
        for region in told.without(cx.me.region.into()).iter() {
            cx.send(meta.coordinator_in(region), Note::Untold { meta: meta.clone(), round });
        }
        if told.contains(cx.me.region) {
            self.leave(near, meta, cx);
        }
    }

    /// This region waits for the outcome no more, nor does any site of it that had left that to the coordinator.
    fn leave(&mut self, near: &NearCoordinator<'_>, meta: &Meta, cx: &mut Context<'_>) {
        let attempt = meta.attempt;
        let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.decision().is_none()) else { return };
        state.asked = false;
        state.rest(true);
        state.bound.clear();
        state.lacking.clear();
        state.leave_round();
        self.unresolved.remove(&attempt);
        self.assumed.remove(&attempt);
        let cohorts = meta.participants.iter().map(|shard| SiteId { region: cx.me.region, shard: *shard });
        let cohorts: Vec<SiteId> = cohorts.filter(|site| *site != cx.me).collect();
        let mut persist = cx.fx.persist(Batch::new());
        for site in cohorts {
            persist = persist.send(site, Promise::Forgotten { attempt, region: site.region, log_end: near.cohort.log_end() });
        }
    }

    /// Whether somebody in this region, which has a copy, waits for the outcome of `attempt`.
    fn waits(&self, near: &NearCoordinator<'_>, cx: &Shared, attempt: &Attempt) -> bool {
        let state = &self.attempts[attempt];
        let is_in_doubt = state.is_in_doubt() && !state.is_settled_by_copy();
        cx.has_copy() && (is_in_doubt || near.cohort.has_entry(attempt) || !state.lacking.is_empty())
    }

    /// The leader of `round` says that nobody can tell how the attempt ended, and that nobody waits for that.
    pub(crate) fn on_untold(&mut self, near: &NearCoordinator<'_>, meta: &Meta, round: Round, cx: &mut Context<'_>) {
        let promised = self.attempts.get(&meta.attempt).and_then(|state| state.acceptor.promised());
        if promised == Some(round) && !self.waits(near, cx, &meta.attempt) {
            self.leave(near, meta, cx);
        }
    }

    /// `attempt` commits here, which has read and written `part`. If it had not seen what another one writes at a lower timestamp that somebody
    /// proposes to commit by assumption, that one is contested.
    pub(crate) fn contest_unread(&mut self, meta: &Meta, part: &Part, batch: &mut Batch) {
        for attempt in &self.assumed {
            let Some(state) = self.attempts.get_mut(attempt) else { continue };
            let is_unread = state.meta.at < meta.at && state.contents.as_ref().is_some_and(|contents| part.has_read_from(contents));
            if *attempt != meta.attempt && is_unread && !state.acceptor.is_contested() {
                state.contest(batch);
            }
        }
    }
}

impl Coordinator {
    /// All regions that may know something of the attempt, and may yet say so: they only become fewer.
    pub(crate) fn survivors(&self, cx: &Shared, meta: &Meta) -> Regions {
        let gone = |region: RegionId| cx.placement.lost.contains_key(&region) && !cx.placement.copies().contains(region);
        let all = Regions::first(cx.topology.region_count());
        let dead: Regions = all.iter().filter(|region| cx.is_lost(*region, meta) || gone(*region)).collect();
        all.without(dead).without(self.presumed_lost(&meta.attempt)).without(meta.declares_lost)
    }

    /// Another attempt is in the way of the one that this site proposes to commit: it aborts in the next round.
    pub(crate) fn on_contested(&mut self, attempt: Attempt, region: RegionId, round: Round, cx: &mut Context<'_>) {
        let own = cx.me.region;
        let Some(meta) = self.attempts.get(&attempt).map(|state| state.meta.clone()) else { return };
        let survivors = self.survivors(cx, &meta);
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        if state.leader.as_ref().is_some_and(|leader| leader.round() == round && leader.proposed().is_some()) {
            cx.fx.trace(|| format!("{region} contests {attempt}"));
            state.lead(own, survivors);
            self.query_survivors(&meta, cx);
        }
    }
}

impl Coordinator {
    /// All survivors have accepted `decision`.
    fn conclude_resolution(&mut self, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
        let mut told: BTreeSet<SiteId> = self.survivors(cx, meta).iter().map(|region| meta.coordinator_in(region)).collect();
        told.insert(meta.attempt.txn.gateway);
        for site in told {
            cx.send(site, Note::Concluded { meta: meta.clone(), decision });
        }
    }
}

impl Coordinator {
    /// Leads the resolution of an attempt that somebody is in doubt about, if regions of its electorate are lost: asks whoever has not
    /// answered yet.
    pub(super) fn lead_resolution(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let now = cx.now;
        let Some(state) = self.attempts.get(&attempt).filter(|state| state.decision().is_none()) else { return };
        let meta = state.meta.clone();
        let lost = self.lost_of(cx, &meta);
        if lost.is_empty() || cx.is_lost(cx.me.region, &meta) {
            return;
        }
        let survivors = self.survivors(cx, &meta);
        // Without one of them a round comes to no end: somebody else leads who hears that one.
        let is_heard = |region| cx.peers.is_alive(meta.coordinator_in(region), now, cx.config.suspect_after);
        let hears_all = survivors.without(cx.me.region.into()).iter().all(is_heard);
        let state = self.attempts.get_mut(&attempt).expect("looked at above");
        let is_over = state.leader.as_ref().is_some_and(|leader| leader.survivors() != survivors);
        if is_over {
            state.leave_round();
        }
        if state.leader.is_none() && hears_all && (is_over || now >= state.leads_from) {
            cx.fx.count("commit.resolution_led");
            state.lead(cx.me.region, survivors);
        }
        self.query_survivors(&meta, cx);
        self.go_on_resolving(near, attempt, cx);
    }

    /// A leader asks what this region knows.
    pub(crate) fn on_inquire(&mut self, near: &NearCoordinator<'_>, from: SiteId, inquiry: Inquiry, cx: &mut Context<'_>) {
        let Inquiry { meta, round, without } = inquiry;
        let attempt = meta.attempt;
        if meta.coordinator != cx.me.shard || without.contains(cx.me.region) {
            return;
        }
        let is_forgotten = self.is_forgotten(&attempt);
        self.look_up(near, &meta, cx);
        let (now, wait) = (cx.now, self.wait_to_lead(cx, &meta));
        self.keep_open(attempt);
        let state = self.attempts.get_mut(&attempt).expect("just looked up");
        state.stands_in |= is_forgotten;
        let votes = meta.electorate.contains(cx.me.region) && !state.stands_in && state.decision().is_none();
        if (votes && state.vote.is_none() && state.is_preparing()) || state.acceptor.without().contains(round.leader) {
            return; // the vote is cast soon, and the leader asks again; or it leads for those who come too late
        }
        let unbound = state.unbound(cx.me);
        if !unbound.is_empty() {
            return unbound.into_iter().for_each(|site| cx.fx.send(site, Note::Bind { meta: meta.clone() })); // the leader asks again
        }
        let is_new = match state.acceptor.promise(round, without) {
            Ok(is_new) => is_new,
            Err(promised) => return cx.send(from, Note::Outranked { attempt, promised }),
        };
        if state.leader.as_ref().is_some_and(|leader| leader.round() != round) {
            state.leave_round();
        }
        state.take_part();
        if is_new {
            // Once a round, however often it asks: a link may be cut between its leader and another survivor.
            state.leads_from = state.leads_from.max(now + wait * (1 << round.number.min(LEAD_DOUBLINGS_MAX)));
        }
        let last = match state.vote {
            _ if !votes => None,
            None => Some(Vote::No(Refusal::UnknownTransaction)),
            Some(Vote::Yes) => Some(Vote::Firm),
            Some(_) => None,
        };
        cx.notify(Local::BindGateway(attempt));
        match last {
            Some(vote) => self.vote(near, attempt, vote, Batch::new(), cx),
            None => self.put_on_record(attempt, cx),
        }
        self.testify(near, from, attempt, round, cx);
    }

    /// How long this region lets another one lead.
    fn wait_to_lead(&self, cx: &Shared, meta: &Meta) -> Span {
        let before = meta.electorate.iter().take_while(|region| *region < cx.me.region).count() as u64;
        cx.config.ask_after * (before + 2)
    }

    /// Says what this region knows, once that is on disk.
    fn testify(&mut self, near: &NearCoordinator<'_>, to: SiteId, attempt: Attempt, round: Round, cx: &mut Context<'_>) {
        let region = cx.me.region;
        let state = &self.attempts[&attempt];
        let entry = near.cohort.promised_entry(&attempt);
        let mut votes = near.votes_heard(&attempt);
        votes.extend(state.final_votes());
        votes.extend(state.vote.clone().map(|vote| (region, vote)));
        votes.extend(state.stands_in.then_some((region, Vote::No(Refusal::UnknownTransaction))));
        let testimony = Testimony {
            known: state.decision(),
            votes,
            accepted: state.acceptor.accepted(),
            contested: state.acceptor.is_contested(),
            forgotten: state.stands_in.then_some(near.cohort.log_end()),
            waits: self.waits(near, cx, &attempt),
        };
        let contents = entry.map(|entry| entry.part.clone());
        let high = near.cohort.highest();
        cx.fx.persist(Batch::new()).send(to, Promise::Testified(Testified { attempt, region, round, testimony, high, contents }));
    }

    /// A survivor testifies.
    pub(crate) fn on_testified(&mut self, near: &NearCoordinator<'_>, testified: Testified, cx: &mut Context<'_>) {
        let Testified { attempt, region, round, testimony, high, contents } = testified;
        self.hear_contents(&attempt, contents);
        let testimony = if cx.rules.breaks(Planted::AcceptedIgnored) { Testimony { accepted: None, ..testimony } } else { testimony };
        let Some(leader) = self.leader(&attempt) else { return };
        leader.hear(region, round, testimony);
        if let Some(state) = self.attempts.get_mut(&attempt) {
            state.tally.hear_high(SiteId { region, shard: cx.me.shard }, high);
        }
        self.go_on_resolving(near, attempt, cx);
    }

    /// The leader has heard something: it proposes once it has heard all survivors, and concludes once all have accepted.
    fn go_on_resolving(&mut self, near: &NearCoordinator<'_>, attempt: Attempt, cx: &mut Context<'_>) {
        let Some(state) = self.attempts.get(&attempt).filter(|state| state.decision().is_none()) else { return };
        let Some(leader) = &state.leader else { return };
        let meta = state.meta.clone();
        let missing =
            if cx.rules.breaks(Planted::MajorityOfSurvivors) { leader.survivors().len() - leader.survivors().majority() } else { 0 };
        if leader.awaited().len() > missing {
            return;
        }
        if let Some(decision) = leader.proposed() {
            return self.conclude_resolution(&meta, decision, cx);
        }
        // What is forgotten elsewhere and committed is in a log that has to be read first.
        let is_read = |(region, log_end)| region == cx.me.region || near.catch_up.cursor(region) >= log_end;
        let is_forgotten = leader.forgotten().next().is_some() && leader.known().is_none();
        if is_forgotten && !(near.mover.has_rows() && leader.forgotten().all(is_read)) {
            return;
        }
        if let Some((decision, assumes)) = self.judge(near, &meta, leader, cx) {
            if is_forgotten && !decision.is_commit() && !self.is_certainly_absent(near, &meta, cx) {
                return;
            }
            let state = self.attempts.get_mut(&attempt).expect("it leads");
            state.assumes = assumes && decision.is_commit();
            state.leader.as_mut().expect("it leads").propose(decision);
            self.query_survivors(&meta, cx);
        }
    }

    /// The rows of what others have forgotten were looked for.
    pub(crate) fn on_rows_of_forgotten(
        &mut self,
        near: &NearCoordinator<'_>,
        attempt: Attempt,
        token: Token,
        loaded: Loaded,
        cx: &mut Context<'_>,
    ) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.decision().is_none()) else { return };
        let found =
            state.contents.as_ref().and_then(|contents| state.trace.take(&state.meta, contents, near.cohort.dropped(), token, &rows));
        if found != Some(Found::Committed) {
            return self.go_on_resolving(near, attempt, cx);
        }
        if !state.acceptor.has_accepted_abort() {
            let meta = state.meta.clone();
            let decision = Decision::Committed { floor: near.cohort.highest_applied().max(meta.at) };
            self.conclude_as_coordinator(near, &meta, decision, cx);
        }
    }

    /// All survivors have accepted `decision`.
    pub(crate) fn on_concluded(&mut self, near: &NearCoordinator<'_>, meta: &Meta, decision: Decision, cx: &mut Context<'_>) {
        if meta.coordinator == cx.me.shard {
            let state = self.state_of(meta, cx.now);
            if state.decision().is_none() {
                state.kept = true;
                self.distribute(near, meta.attempt, decision, cx);
            }
        }
    }

    /// What follows from all testimonies, and whether that rests on votes that nobody has seen; none as long as too few sites have said how
    /// high they had prepared.
    fn judge(&self, near: &NearCoordinator<'_>, meta: &Meta, leader: &Leader, cx: &mut Context<'_>) -> Option<(Decision, bool)> {
        let mut refusing = Tally::default();
        meta.refuse_for_lost(&mut refusing);
        let assumed = if cx.rules.breaks(Planted::LostRefuses) { Vote::No(Refusal::UnknownTransaction) } else { Vote::Firm };
        let state = &self.attempts[&meta.attempt];
        let tally = &state.tally;
        match leader.verdict(meta.electorate, refusing, &assumed)? {
            Verdict::Known(decision) => Some((decision, false)),
            _ if self.is_superseded(near, &meta.attempt) => Some((Decision::Aborted, false)),
            Verdict::Counted(outcome) => Some((cx.decision(outcome, tally, meta, self.lost_of(cx, meta))?, false)),
            // No survivor has promised it, or one that has promised has its outcome among rows that it copied.
            Verdict::Assumed(_) if state.contents.is_none() => Some((Decision::Aborted, true)),
            Verdict::Assumed(outcome) => {
                let decision = cx.decision(outcome, tally, meta, self.lost_of(cx, meta))?;
                if decision.is_commit() {
                    cx.fx.count("commit.assumed_of_lost");
                    cx.fx.agree(ASSUMED, meta.attempt, &());
                }
                Some((decision, true))
            }
        }
    }

    /// A survivor accepts what this site proposes.
    pub(crate) fn on_accepted(
        &mut self,
        near: &NearCoordinator<'_>,
        attempt: Attempt,
        region: RegionId,
        round: Round,
        cx: &mut Context<'_>,
    ) {
        let Some(leader) = self.leader(&attempt) else { return };
        leader.hear_accepted(region, round);
        self.go_on_resolving(near, attempt, cx);
    }

    /// Another leads a higher round: it is given the time to conclude.
    pub(crate) fn on_outranked(&mut self, attempt: Attempt, promised: Round, cx: &mut Context<'_>) {
        let Some(meta) = self.attempts.get(&attempt).map(|state| state.meta.clone()) else { return };
        let (now, wait) = (cx.now, self.wait_to_lead(cx, &meta));
        let Some(state) = self.attempts.get_mut(&attempt).filter(|state| state.decision().is_none()) else { return };
        if state.leader.as_ref().is_none_or(|leader| leader.round() >= promised) {
            return;
        }
        cx.fx.count("commit.resolution_outranked");
        state.leave_round();
        state.leads_from = now + wait * (1 << promised.number.min(LEAD_DOUBLINGS_MAX));
        state.outranked_by = state.outranked_by.max(promised.number);
    }

    /// An operator says that regions are `lost`: tells all sites, for a change of the placement that is in doubt keeps the row that a
    /// declaration has to read and write.
    pub(crate) fn on_settle(&mut self, id: RequestId, lost: Regions, cx: &mut Context<'_>) {
        for site in cx.topology.sites().collect::<Vec<_>>() {
            cx.send(site, Note::Settle { lost });
        }
        cx.fx.answer(id, Answer::Done);
    }

    /// Has changes of the placement that are in doubt here resolved without regions that are `lost`.
    pub(crate) fn settle_placements(&mut self, near: &NearCoordinator<'_>, lost: Regions, cx: &mut Context<'_>) {
        if lost.contains(cx.me.region) {
            return;
        }
        let key = Placement::key(cx.me.shard, &cx.topology);
        let own = near.cohort.promised_to_write(&key).into_iter().filter(|entry| entry.meta.coordinator == cx.me.shard);
        let metas: Vec<Meta> = own.map(|entry| entry.meta.clone()).collect();
        for meta in metas {
            self.state_of_forgotten(cx, &meta);
            if self.presume_lost(meta.attempt, lost) {
                cx.fx.count("placement.settled_for_declaration");
                self.request_votes(near, meta.attempt, cx);
            }
        }
    }
}
