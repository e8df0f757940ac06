//! Who leads a stream: its own region, a secondary coordinator, or another region that passes over a silent one.
//!
//! ```text
//!   Follower ── silent for long ──▶ Preparing ── promises of n - f regions ──▶ Behind ── caught up ──▶ Leader
//!       ▲                                                                                              │
//!       └───────────────────────────── a higher ballot is heard of ────────────────────────────────────┘
//! ```
//!
//! A region is silent if its stream covers no further epoch for as long as the *delay tolerance*, here or elsewhere; for twice as long after
//! each false alarm. Time alone abandons nothing: a new leader asks the others by ballot which entries they hold, proposes those again, and only then
//! passes the region over. It does so for many epochs ahead, so that a lost region costs the wait once. When the region is back, it takes its stream
//! over again and seals the epochs after that. A *secondary coordinator*, the second site of a region, takes over before others do, and seals epochs
//! for its own clients; it holds no vote on entries. Where a region has several coordinators, each is the secondary of the one before it, and goes on
//! with its own stream beside the one that it took over.
//!
//! Source: section IV for the secondary coordinator, VIII.B for the delay tolerance.

use super::{Agreement, Cx, Effect, Moment, Part, Sealed};
use crate::config::{QUIET_REPEAT_TICKS, REPEATED_BYTES_MAX};
use crate::epoch::Epoch;
use crate::message::{Entry, Note, Promise, Standing};
use crate::planted::Planted;
use crate::{records, stream};
use rhumb_core::{Ballot, Batch, SiteId};
use std::collections::{BTreeMap, BTreeSet};

/// What a site is to a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Lead {
    /// It listens.
    Follower,
    /// It asks for promises.
    Preparing {
        /// At this ballot.
        ballot: Ballot,
        /// After which place each acceptor was last asked.
        asked: BTreeMap<SiteId, u64>,
        /// Who has promised, and said all that it has accepted.
        promised: BTreeSet<SiteId>,
        /// The highest place that one of them knows to be chosen.
        chosen: u64,
        /// What they have accepted after that, each at its highest ballot.
        accepted: BTreeMap<u64, (Standing, Entry)>,
    },
    /// It has the promises, and misses chosen entries.
    Behind {
        /// At this ballot.
        ballot: Ballot,
        /// It needs them up to here.
        chosen: u64,
        /// What is to be said again.
        accepted: BTreeMap<u64, (Standing, Entry)>,
    },
    /// It says what comes next.
    Leader {
        /// At this ballot.
        ballot: Ballot,
    },
}

/// What a ballot that is heard of means to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// No higher one is heard of by that.
    Nothing,
    /// It is higher than all before.
    Higher,
    /// It ends what this site leads or asks for.
    Outbid,
}

/// Whether a site leads a stream, and what it knows of those that do or may.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leadership {
    lead: Lead,
    /// The highest number of a ballot heard of.
    round: u64,
    /// The last epoch covered when this was last looked at, and for how many ticks it has been that.
    covered: Epoch,
    /// Likewise the last entry that is chosen, here or elsewhere.
    chosen: u64,
    silent: u64,
    /// For how many ends of epochs a higher ballot than that promised is known.
    unheard: u64,
    /// For how many ends of epochs a site has led that comes after this one in the order of the stream's sites.
    outranked: u64,
    /// The tick in which promises were asked for last, and how often since it last led, or nobody outbid it.
    asked: Option<u64>,
    tries: u32,
    /// The tick in which a higher ballot last ended what it had asked for.
    outbid: Option<u64>,
    alarms: FalseAlarms,
}

/// How often this site has lately passed over a region that was not gone: its entries only take longer, over another region because a link is
/// cut, or to slow disks. Each takeover makes the stream stand still for everybody, so every false alarm doubles the patience with that stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct FalseAlarms {
    doublings: u32,
    /// The tick in which this site asked for promises, if the region has not been heard to lead since.
    asked: Option<u64>,
    /// The tick of the last one, or of the last halving.
    since: u64,
}

impl FalseAlarms {
    /// A region speaks at tick `now`: it had not gone if it was passed over and that is soon.
    fn hear(&mut self, now: u64, tolerance: u64) {
        if self.asked.take().is_some_and(|asked| now - asked <= ALARM_SPAN * self.patience(tolerance)) {
            (self.doublings, self.since) = ((self.doublings + 1).min(DOUBLINGS_MAX), now);
        }
    }

    /// Halves the patience once there has been no false alarm for long.
    fn fade(&mut self, now: u64, tolerance: u64) {
        if self.doublings > 0 && now - self.since > FADES_AFTER * self.patience(tolerance) {
            (self.doublings, self.since) = (self.doublings - 1, now);
        }
    }

    /// Ticks of silence until the region is passed over.
    fn patience(&self, tolerance: u64) -> u64 {
        tolerance << self.doublings
    }
}

/// A region that speaks within this many times the patience after it was passed over was a false alarm.
const ALARM_SPAN: u64 = 4;
/// After this many times the patience without a false alarm, the patience is halved.
const FADES_AFTER: u64 = 64;

/// A coordinator that learns of a higher ballot on its stream waits this part of the delay tolerance for the ballot's leader to speak.
const HEARING_PART: u64 = 4;

/// A site that gets too few promises, or is outbid, doubles its wait, at most this often.
const DOUBLINGS_MAX: u32 = 5;

/// Likewise the coordinator whose stream it is: others give way to it.
const DOUBLINGS_OF_OWN_MAX: u32 = 3;

impl Leadership {
    /// A site that listens.
    pub(super) fn follower() -> Leadership {
        Leadership {
            lead: Lead::Follower,
            round: 0,
            covered: Epoch::NONE,
            chosen: 0,
            silent: 0,
            unheard: 0,
            outranked: 0,
            asked: None,
            tries: 0,
            outbid: None,
            alarms: FalseAlarms::default(),
        }
    }

    /// Entries that it holds of others, to be said again.
    pub(super) fn held(&self) -> usize {
        match &self.lead {
            Lead::Preparing { accepted, .. } | Lead::Behind { accepted, .. } => accepted.len(),
            Lead::Follower | Lead::Leader { .. } => 0,
        }
    }

    /// A site that leads at `ballot`.
    pub(super) fn leader(ballot: Ballot) -> Leadership {
        Leadership { lead: Lead::Leader { ballot }, ..Leadership::follower() }
    }

    /// The ballot at which this site leads.
    pub(super) fn leads_at(&self) -> Option<Ballot> {
        match self.lead {
            Lead::Leader { ballot } => Some(ballot),
            _ => None,
        }
    }

    /// True if it has the promises, and misses entries.
    pub(super) fn is_behind(&self) -> bool {
        matches!(self.lead, Lead::Behind { .. })
    }

    /// For how many ends of epochs no further epoch has been covered.
    pub(super) fn silent(&self) -> u64 {
        self.silent
    }

    /// Learns of a ballot: a leader at a lower one steps down.
    fn hear_ballot(&mut self, ballot: Ballot) -> Heard {
        let is_higher = ballot.number > self.round;
        self.round = self.round.max(ballot.number);
        let leads_at = match self.lead {
            Lead::Follower => None,
            Lead::Preparing { ballot, .. } | Lead::Behind { ballot, .. } | Lead::Leader { ballot } => Some(ballot),
        };
        if leads_at.is_some_and(|at| at < ballot) {
            self.lead = Lead::Follower;
            return Heard::Outbid;
        }
        if is_higher { Heard::Higher } else { Heard::Nothing }
    }

    /// True while this site and another may yet take the stream from each other.
    fn is_contested(&self, pause: u64, tick: u64) -> bool {
        self.outbid.is_some_and(|outbid| tick - outbid <= 2 * pause)
    }
}

impl Agreement {
    /// For how many ticks this site waits until it asks for promises again.
    fn pause(&self, cx: &Cx<'_>) -> u64 {
        let doublings = if self.id.rank(cx.me, cx.topology) == 0 { DOUBLINGS_OF_OWN_MAX } else { DOUBLINGS_MAX };
        cx.config.tolerance_epochs << self.leadership.tries.min(doublings)
    }

    /// A ballot is heard of, in whatever message: no secondary is asked for promises, so it may hear by a refusal alone that its
    /// coordinator is back.
    pub(super) fn hear_ballot(&mut self, ballot: Ballot, cx: &Cx<'_>) {
        match self.leadership.hear_ballot(ballot) {
            Heard::Nothing => return,
            Heard::Higher => {}
            Heard::Outbid => self.leadership.outbid = Some(cx.tick),
        }
        // Give the candidate time to succeed.
        self.leadership.silent = 0;
        let is_back = ballot.leader != cx.me && self.id.rank(ballot.leader, cx.topology) == 0;
        if is_back {
            self.leadership.alarms.hear(cx.tick, cx.config.tolerance_epochs);
        }
    }

    /// Decides at the end of an epoch whether this site is to lead.
    pub(super) fn on_end_of_epoch(&mut self, moment: Moment, sealed: Option<Sealed>, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let (covered, chosen) = (self.stream.covered(), self.stream.known_chosen());
        let takes_more = moment.takes_more;
        let takes_more = takes_more || cx.rules.breaks(Planted::SilentUnasked);
        let pause = self.pause(cx);
        let leadership = &mut self.leadership;
        // Others may still hear a region that a cut link keeps away from here: pull its entries from them instead of passing it over.
        let moves = covered > leadership.covered || chosen > leadership.chosen || covered >= moment.due;
        // A site that does not pull the entries that it misses, because nothing here waits for them, cannot tell whether the stream is silent.
        leadership.silent = if moves || !takes_more { 0 } else { leadership.silent + 1 };
        // Two sites that take a stream from each other have it move a little each time. Only who leads has won.
        if (moves || !takes_more) && (leadership.leads_at().is_some() || !leadership.is_contested(pause, cx.tick)) {
            leadership.tries = 0;
        }
        (leadership.covered, leadership.chosen) = (covered, chosen);
        let promised = self.stream.promised();
        leadership.unheard = if leadership.round > promised.number { leadership.unheard + 1 } else { 0 };
        let outranks = self.id.region() == cx.me.region && self.id.rank(cx.me, cx.topology) < self.id.rank(promised.leader, cx.topology);
        leadership.outranked = if outranks { leadership.outranked + 1 } else { 0 };
        leadership.alarms.fade(cx.tick, cx.config.tolerance_epochs);
        if leadership.leads_at().is_some() {
            self.keep_leading(moment, sealed, cx, out);
        } else if self.wants_to_lead(cx) {
            self.prepare(cx, out);
        }
    }

    /// A leader says what comes next, or repeats itself; one of another region's stream passes that over further.
    fn keep_leading(&mut self, moment: Moment, sealed: Option<Sealed>, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let (due, ahead) = (moment.due, cx.config.ahead_epochs);
        let is_short = self.stream.last_epoch() <= due.plus((cx.config.window_epochs + ahead) / 2);
        if let Some(sealed) = sealed {
            self.append(sealed, cx, out);
        } else if self.id.region() != cx.me.region && is_short && !moment.is_far_ahead {
            self.pass_over(due.plus(ahead), cx, out);
        } else if self.repeats(moment.is_quiet, cx.tick) {
            self.say(Vec::new(), Vec::new(), cx, out);
        }
    }

    /// True if it is time for a leader that has nothing new to say to repeat its last entry: the larger, the less often.
    fn repeats(&self, is_quiet: bool, tick: u64) -> bool {
        let ticks_apart = (self.stream.bytes_at(self.stream.end()) / REPEATED_BYTES_MAX) as u64 + 1;
        tick.is_multiple_of(if is_quiet { QUIET_REPEAT_TICKS.max(ticks_apart) } else { ticks_apart })
    }

    /// True if it is this site's turn to take the stream over, or to ask for promises again.
    fn wants_to_lead(&self, cx: &Cx<'_>) -> bool {
        let (leadership, stream, rank) = (&self.leadership, &self.stream, self.id.rank(cx.me, cx.topology));
        let tolerance = cx.config.tolerance_epochs;
        let has_waited = leadership.asked.is_none_or(|asked| cx.tick - asked > self.pause(cx));
        // A coordinator takes its own stream back only once it has all entries: while it asks for promises and catches up, the stream stands still
        // and everybody waits. The leader of a ballot that it has merely learnt of gets a moment to be heard.
        let may_hear_more = leadership.round > stream.promised().number && leadership.unheard <= tolerance / HEARING_PART;
        let has_heard_all = stream.gap().is_none() && !may_hear_more;
        let has_heard_all = has_heard_all || cx.rules.breaks(Planted::ReclaimedAtOnce);
        // Without the region itself nobody may take over if none may be lost. A site that is behind catches up first: otherwise it would depose one
        // leader after another and never lead itself.
        let is_behind = stream.is_behind();
        let is_behind = is_behind && !cx.rules.breaks(Planted::BehindLeads);
        let may_lead = rank == 0 || (cx.failures() > 0 && !is_behind);
        // The first to take back what a lower one has taken over is the coordinator, if it is up.
        let reclaims = has_heard_all && (rank == 0 || leadership.outranked > tolerance * rank);
        let is_due = may_lead && (reclaims || leadership.silent > leadership.alarms.patience(tolerance) * rank.max(1));
        is_due && has_waited && !leadership.is_behind()
    }

    fn prepare(&mut self, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let after = self.stream.chosen();
        let leadership = &mut self.leadership;
        leadership.round = leadership.round.max(self.stream.promised().number) + 1;
        let ballot = Ballot { number: leadership.round, leader: cx.me };
        (leadership.asked, leadership.alarms.asked) = (Some(cx.tick), Some(cx.tick));
        leadership.tries += 1;
        let asked: BTreeMap<SiteId, u64> = cx.topology.replicas(self.id.number()).map(|acceptor| (acceptor, after)).collect();
        out.push(Effect::Count("catenae.prepare"));
        for &to in asked.keys() {
            out.push(Effect::Send { to, note: Note::Prepare { stream: self.id, ballot, after } });
        }
        leadership.lead = Lead::Preparing { ballot, asked, promised: BTreeSet::new(), chosen: after, accepted: BTreeMap::new() };
    }

    /// Somebody wants to lead the stream.
    pub(super) fn on_prepare(&mut self, from: SiteId, ballot: Ballot, after: u64, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        if !cx.rules.breaks(Planted::PromiseForgotten)
            && let Err(promised) = self.stream.promise(ballot)
        {
            let note = Note::Refused { stream: self.id, promised };
            return out.push(Effect::Send { to: from, note });
        }
        let (accepted, more) = self.stream.accepted_page(after);
        let promise = Promise::Promised { stream: self.id, ballot, after, chosen: self.stream.chosen(), accepted, more };
        self.hear_ballot(ballot, cx);
        self.leadership.silent = 0;
        let mut batch = Batch::new();
        records::put_promise(&mut batch, self.id, ballot);
        out.push(Effect::Persist { batch, then: vec![(from, promise)], durable: None });
    }

    /// An acceptor promises, with a part of the entries that it has accepted. It counts once they are all here.
    ///
    /// The ballot alone does not show that this answers the present request. A ballot is on no disk until an entry is proposed at it, so a site that
    /// crashes while it asks for promises asks again at the same ballot, after another place; answers to its earlier incarnation leave out entries
    /// that it misses now. An answer to an equal request is as good, because nothing below the ballot was accepted since.
    pub(super) fn on_promised(&mut self, from: SiteId, ballot: Ballot, part: Part, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let needed = cx.topology.region_count() - cx.failures();
        let Lead::Preparing { ballot: at, asked, promised, chosen: highest, accepted: known } = &mut self.leadership.lead else { return };
        let answers = asked.get(&from) == Some(&part.after);
        let answers = answers || cx.rules.breaks(Planted::PromiseOfBefore);
        if *at != ballot || !answers {
            return;
        }
        let last = part.accepted.last().map(|(index, ..)| *index);
        *highest = part.chosen.max(*highest);
        self.stream.hear_chosen(from, part.chosen);
        stream::merge(known, part.accepted);
        if let Some(after) = last.filter(|_| part.more) {
            asked.insert(from, after);
            let note = Note::Prepare { stream: self.id, ballot, after };
            return out.push(Effect::Send { to: from, note });
        }
        promised.insert(from);
        if promised.len() >= needed {
            self.leadership.lead = Lead::Behind { ballot, chosen: *highest, accepted: std::mem::take(known) };
            self.advance(cx, out);
            out.push(Effect::Advanced);
        }
    }

    /// Leads, if it has the promises and knows all that is chosen: says again what others have accepted.
    pub(super) fn finish_takeover(&mut self, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let Lead::Behind { ballot, chosen, accepted } = &mut self.leadership.lead else { return };
        if self.stream.chosen() < *chosen {
            return;
        }
        let ballot = *ballot;
        let Ok(new) = self.stream.repropose(ballot, std::mem::take(accepted)) else {
            self.leadership.lead = Lead::Follower;
            return;
        };
        self.leadership.lead = Lead::Leader { ballot };
        let is_own = self.id.region() == cx.me.region;
        out.push(Effect::Count(if is_own { "catenae.led_own" } else { "catenae.took_over" }));
        self.say(new, Vec::new(), cx, out);
        if !is_own {
            out.push(Effect::TookOver);
        }
    }

    /// Says that a silent region has nothing up to `until`.
    pub(super) fn pass_over(&mut self, until: Epoch, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        let epoch = until.max(self.stream.last_epoch().plus(1));
        out.push(Effect::Count("catenae.passed_over"));
        let entry = Entry { author: cx.me, epoch, batch: Vec::new(), orders: Vec::new() };
        self.append(Sealed { entry, forwarded: Vec::new() }, cx, out);
    }
}

#[cfg(test)]
mod tests;
