//! Who leads a stream: its own region, a secondary coordinator, or another region that passes over a silent one.
//!
//! ```text
//!   Follower ── silent for long ──▶ Preparing ── promises of n - f regions ──▶ Behind ── caught up ──▶ Leader
//!       ▲                                                                                              │
//!       └───────────────────────────── a higher ballot is heard of ────────────────────────────────────┘
//! ```
//!
//! A region is silent if its stream covers no further epoch for as long as the *delay tolerance*, twice as long after each false alarm. Time alone abandons nothing:
//! whoever takes over asks by ballot what the others hold, says that again, and only then passes the region over. It does so
//! for many epochs ahead, so that a lost region costs the wait once. The region, back, takes its stream over again, and
//! seals what comes after. A *secondary coordinator*, the second site of a region, takes over before others do, and seals
//! epochs for its own clients; it holds no vote on entries. Where a region has several coordinators, each is the secondary of the
//! one before it, and goes on with its own stream beside the one that it took over.

use super::config::{QUIET_REPEAT_TICKS, REPEATED_BYTES_MAX};
use super::epoch::Epoch;
use super::message::{Ballot, Entry, Note, Promise};
use super::records;
use super::site::Site;
use super::stream;
use super::stream_id::StreamId;
use rhumb_core::{Batch, Effects, SiteId};
use std::collections::{BTreeMap, BTreeSet};

/// What a site is to a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// It listens.
    Follower,
    /// It asks for promises.
    Preparing {
        /// At this ballot.
        ballot: Ballot,
        /// Who has promised, and said all that it has accepted.
        promised: BTreeSet<SiteId>,
        /// The highest place that one of them knows to be chosen.
        chosen: u64,
        /// What they have accepted after that, each at its highest ballot.
        accepted: BTreeMap<u64, (Ballot, Entry)>,
    },
    /// It has the promises, and misses chosen entries.
    Behind {
        /// At this ballot.
        ballot: Ballot,
        /// It needs them up to here.
        chosen: u64,
        /// What is to be said again.
        accepted: BTreeMap<u64, (Ballot, Entry)>,
    },
    /// It says what comes next.
    Leader {
        /// At this ballot.
        ballot: Ballot,
    },
}

/// A site's seat at a stream.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) lead: Lead,
    /// The highest round heard of.
    round: u64,
    /// The last epoch covered when this was last looked at, and for how many ticks it has been that.
    covered: Epoch,
    /// Likewise the last entry that is chosen, here or elsewhere.
    chosen: u64,
    pub(super) silent: u64,
    /// The tick in which promises were asked for last, and how often without success.
    asked: Option<u64>,
    tries: u32,
    alarms: FalseAlarms,
}

/// How often this site has lately passed over a region that was not gone: its entries only take longer, over another region because a link is
/// cut, or to slow disks. Each takeover makes the stream stand still for everybody, so every false alarm doubles the patience with that stream.
#[derive(Debug, Default)]
struct FalseAlarms {
    doublings: u32,
    /// The tick of the last one, or of the last halving.
    since: u64,
}

impl FalseAlarms {
    /// A region that was passed over at tick `asked` speaks at tick `now`: it had not gone if that is soon.
    fn hear(&mut self, asked: u64, now: u64, tolerance: u64) {
        if now - asked <= ALARM_SPAN * self.patience(tolerance) {
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

/// A region that speaks within so many times the patience after it was passed over had not gone.
const ALARM_SPAN: u64 = 4;
/// Without a false alarm for so many times the patience, that is halved.
const FADES_AFTER: u64 = 64;

/// A coordinator that is told of a higher ballot on its stream waits for its leader to speak for this part of the delay tolerance.
const HEARING_PART: u64 = 4;

/// A part of what an acceptor has accepted.
#[derive(Debug)]
pub(super) struct Part {
    /// The last place that it knows to be chosen.
    pub(super) chosen: u64,
    /// Places after that, each with the ballot and the entry.
    pub(super) accepted: Vec<(u64, Ballot, Entry)>,
    /// It has more.
    pub(super) more: bool,
}

/// A site that asks for promises in vain waits twice as long each time, up to so many times.
const DOUBLINGS_MAX: u32 = 5;

impl Seat {
    pub(super) fn new(lead: Lead) -> Seat {
        Seat { lead, round: 0, covered: Epoch::NONE, chosen: 0, silent: 0, asked: None, tries: 0, alarms: FalseAlarms::default() }
    }

    /// Entries that it holds of others, to be said again.
    pub(super) fn held(&self) -> usize {
        match &self.lead {
            Lead::Preparing { accepted, .. } | Lead::Behind { accepted, .. } => accepted.len(),
            Lead::Follower | Lead::Leader { .. } => 0,
        }
    }

    /// The ballot at which this site leads.
    pub(super) fn leads_at(&self) -> Option<Ballot> {
        match self.lead {
            Lead::Leader { ballot } => Some(ballot),
            _ => None,
        }
    }
}

impl Site {
    /// Looks after the seats of this site, at the end of an epoch.
    pub(super) fn look_after_seats(&mut self, fx: &mut Effects<Site>) {
        for id in self.stream_ids() {
            let due = self.due(id);
            let (covered, chosen) = (self.streams[id].covered(), self.streams[id].known_chosen());
            let takes_more = self.takes_more(id);
            #[cfg(feature = "planted")]
            let takes_more = takes_more || self.has_planted(super::planted::Planted::SilentUnasked);
            let seat = &mut self.seats[id];
            // Of a region that a cut link keeps away from here, others still hear: it is not to be passed over, but pulled from them.
            let moves = covered > seat.covered || chosen > seat.chosen || covered >= due;
            // Who does not ask for what it misses of a stream, as nobody here waits for that, cannot tell that it is silent.
            if moves || !takes_more {
                (seat.silent, seat.tries) = (0, 0);
            } else {
                seat.silent += 1;
            }
            (seat.covered, seat.chosen) = (covered, chosen);
            seat.alarms.fade(self.ticks, self.config.tolerance_epochs);
            if seat.leads_at().is_some() {
                self.keep_leading(id, due, fx);
            } else if self.wants_to_lead(id) {
                self.prepare(id, fx);
            }
        }
    }

    /// A leader repeats itself; one of another region's stream passes that over further.
    fn keep_leading(&mut self, id: StreamId, due: Epoch, fx: &mut Effects<Site>) {
        let stream = &self.streams[id];
        let last = stream.last_epoch();
        let ahead = self.config.ahead_epochs;
        if id.region() == self.me.region {
            let before = stream.end();
            self.seal(id, fx);
            if self.streams[id].end() == before && self.repeats(id) {
                self.say(id, Vec::new(), Vec::new(), fx);
            }
        } else if last <= due.plus((self.config.window_epochs + ahead) / 2) && !self.is_far_ahead(id) {
            self.pass_over(id, due.plus(ahead), fx);
        } else if self.repeats(id) {
            self.say(id, Vec::new(), Vec::new(), fx);
        }
    }

    /// True if it is time for a leader that has nothing new to say to repeat its last entry: the larger, the less often.
    fn repeats(&self, id: StreamId) -> bool {
        let stream = &self.streams[id];
        let ticks_apart = (stream.bytes_at(stream.end()) / REPEATED_BYTES_MAX) as u64 + 1;
        self.ticks.is_multiple_of(if self.is_quiet() { QUIET_REPEAT_TICKS.max(ticks_apart) } else { ticks_apart })
    }

    /// True if it is this site's turn to take a stream over, or to ask for promises again.
    fn wants_to_lead(&self, id: StreamId) -> bool {
        let (seat, stream, rank) = (&self.seats[id], &self.streams[id], id.rank(self.me, &self.topology));
        let tolerance = self.config.tolerance_epochs;
        let has_waited = seat.asked.is_none_or(|asked| self.ticks - asked > tolerance << seat.tries.min(DOUBLINGS_MAX));
        // What belongs to it a coordinator wants back as soon as it has all that was said: while it asks for promises and catches up, the
        // stream stands still, and everybody waits. Who leads at a ballot that it has only been told of has a moment to be heard.
        let may_hear_more = seat.round > stream.promised().round && seat.silent <= tolerance / HEARING_PART;
        let has_heard_all = stream.gap().is_none() && !may_hear_more;
        #[cfg(feature = "planted")]
        let has_heard_all = has_heard_all || self.has_planted(super::planted::Planted::ReclaimedAtOnce);
        // Without the region itself nobody may take over if none may be lost. Who is behind catches up first: it would depose a leader again and
        // again, and never come to lead.
        let is_behind = stream.is_behind();
        #[cfg(feature = "planted")]
        let is_behind = is_behind && !self.has_planted(super::planted::Planted::BehindLeads);
        let may_lead = rank == 0 || (self.failures > 0 && !is_behind);
        let is_due = (rank == 0 && has_heard_all) || (may_lead && seat.silent > seat.alarms.patience(tolerance) * rank.max(1));
        is_due && has_waited && !matches!(seat.lead, Lead::Behind { .. })
    }

    fn prepare(&mut self, id: StreamId, fx: &mut Effects<Site>) {
        let stream = &self.streams[id];
        let after = stream.chosen();
        let seat = &mut self.seats[id];
        seat.round = seat.round.max(stream.promised().round) + 1;
        let ballot = Ballot { round: seat.round, site: self.me };
        seat.asked = Some(self.ticks);
        seat.tries += 1;
        seat.lead = Lead::Preparing { ballot, promised: BTreeSet::new(), chosen: after, accepted: BTreeMap::new() };
        fx.count("catenae.prepare");
        for to in self.topology.replicas(id.number()) {
            fx.send(to, Note::Prepare { stream: id, ballot, after });
        }
    }

    /// Somebody wants to lead a stream.
    pub(super) fn on_prepare(&mut self, from: SiteId, id: StreamId, ballot: Ballot, after: u64, fx: &mut Effects<Site>) {
        let stream = &mut self.streams[id];
        #[cfg(feature = "planted")]
        let forgets = self.planted == Some(super::planted::Planted::PromiseForgotten);
        #[cfg(not(feature = "planted"))]
        let forgets = false;
        if !forgets && let Err(promised) = stream.promise(ballot) {
            return fx.send(from, Note::Refused { stream: id, promised });
        }
        let is_back = from != self.me && id.rank(from, &self.topology) == 0;
        let (accepted, more) = stream.accepted_page(after);
        let promise = Promise::Promised { stream: id, ballot, chosen: stream.chosen(), accepted, more };
        self.step_down_below(id, ballot);
        // Whoever asks is given the time to succeed.
        let seat = &mut self.seats[id];
        seat.silent = 0;
        if is_back && let Some(asked) = seat.asked.take() {
            seat.alarms.hear(asked, self.ticks, self.config.tolerance_epochs);
        }
        let mut batch = Batch::new();
        records::put_promise(&mut batch, id, ballot);
        fx.persist(batch).send(from, promise);
    }

    /// A ballot is heard of: who leads at a lower one does no more.
    pub(super) fn step_down_below(&mut self, id: StreamId, ballot: Ballot) {
        let seat = &mut self.seats[id];
        seat.round = seat.round.max(ballot.round);
        let leads_at = match seat.lead {
            Lead::Follower => return,
            Lead::Preparing { ballot, .. } | Lead::Behind { ballot, .. } | Lead::Leader { ballot } => ballot,
        };
        if leads_at < ballot {
            seat.lead = Lead::Follower;
        }
    }

    /// An acceptor promises, and says a part of what it has accepted. It counts once it has said all.
    pub(super) fn on_promised(&mut self, from: SiteId, id: StreamId, ballot: Ballot, part: Part, fx: &mut Effects<Site>) {
        let needed = self.topology.region_count() - self.failures;
        let seat = &mut self.seats[id];
        let Lead::Preparing { ballot: asked, promised, chosen: highest, accepted: known } = &mut seat.lead else { return };
        if *asked != ballot {
            return;
        }
        let last = part.accepted.last().map(|(index, ..)| *index);
        *highest = part.chosen.max(*highest);
        self.streams[id].hear_chosen(from, part.chosen);
        stream::merge(known, part.accepted);
        if let Some(after) = last.filter(|_| part.more) {
            return fx.send(from, Note::Prepare { stream: id, ballot, after });
        }
        promised.insert(from);
        if promised.len() >= needed {
            seat.lead = Lead::Behind { ballot, chosen: *highest, accepted: std::mem::take(known) };
            self.advance(fx);
        }
    }

    /// Leads, if it has the promises and knows all that is chosen: says again what others have accepted.
    pub(super) fn finish_takeover(&mut self, id: StreamId, fx: &mut Effects<Site>) {
        let stream = &mut self.streams[id];
        let seat = &mut self.seats[id];
        let Lead::Behind { ballot, chosen, accepted } = &mut seat.lead else { return };
        if stream.chosen() < *chosen {
            return;
        }
        let ballot = *ballot;
        let Ok(new) = stream.say_again(ballot, std::mem::take(accepted)) else {
            seat.lead = Lead::Follower;
            return;
        };
        seat.lead = Lead::Leader { ballot };
        fx.count(if id.region() == self.me.region { "catenae.led_own" } else { "catenae.took_over" });
        self.say(id, new, Vec::new(), fx);
        if id.region() != self.me.region {
            let until = self.due(id).plus(self.config.ahead_epochs);
            self.pass_over(id, until, fx);
        }
    }

    /// Says that a silent region has nothing up to `until`.
    fn pass_over(&mut self, id: StreamId, until: Epoch, fx: &mut Effects<Site>) {
        let epoch = until.max(self.streams[id].last_epoch().plus(1));
        fx.count("catenae.passed_over");
        self.append(id, Entry { author: self.me, epoch, batch: Vec::new(), orders: Vec::new() }, Vec::new(), fx);
    }
}

#[cfg(test)]
mod tests;
