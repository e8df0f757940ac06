//! The agreement on one stream at one site: a machine that takes events and returns effects.
//!
//! It holds the site's view of the [stream](super::stream), its part in who leads it (`takeover.rs`), and what it has asked others
//! for (`pulling.rs`). All of that is private, and [`Agreement::on`] is the only way in once the site has recovered. It knows no clock, no
//! disk and no network, and nothing of what its entries say. So the model checker runs it as it is (`tests/model`).
//!
//! ```text
//!   messages, end of an epoch, a write is durable, records are loaded ──▶ on(event) ──▶ send, persist (and what waits for it), load,
//!                                                                                      an entry is chosen, the stream is taken over
//! ```
//!
//! Effects are carried out in their order. What a site promises others waits for its write by type, as it does for every actor: a
//! [`Promise`] leaves only by [`Effect::Persist`].

mod pulling;
mod replication;
mod takeover;

use super::config::Config;
use super::epoch::Epoch;
use super::message::{Entry, Forwarded, Note, Promise, Standing};
use super::planted::Planted;
use super::records;
use super::stream::{Found, Stream};
use super::stream_id::StreamId;
use pulling::Pulling;
use rhumb_core::{Ballot, Batch, Loaded, Rules, SiteId, Topology};
use takeover::Leadership;

/// No stream comes near this place, nor any ballot near this number: a message that names a higher one is not believed, and a few more than
/// these never overflow.
const PLACES_MAX: u64 = 1 << 62;

/// One stream at one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agreement {
    id: StreamId,
    stream: Stream,
    leadership: Leadership,
    pulling: Pulling,
    /// Entries up to here are removed from disk.
    truncated: u64,
}

/// What an agreement may look at besides its own state.
#[derive(Clone, Copy, Debug)]
pub struct Cx<'a> {
    /// This site.
    pub me: SiteId,
    /// The cluster.
    pub topology: &'a Topology,
    /// The settings.
    pub config: &'a Config,
    /// Ends of epochs in this incarnation of the site.
    pub tick: u64,
    /// The rules that it goes by.
    pub rules: Rules<Planted>,
}

/// How the site fares at the end of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The epoch up to which the stream should have spoken.
    pub due: Epoch,
    /// The site asks for what it misses of the stream.
    pub takes_more: bool,
    /// Too many entries of the stream wait for other streams: no more are to be added to it.
    pub is_far_ahead: bool,
    /// Nothing has been asked or told for a while.
    pub is_quiet: bool,
}

/// The next entry of a leader, and what others are to hear before it, which they may run as soon as they have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The entry.
    pub entry: Entry,
    /// Other sites' transactions in it.
    pub forwarded: Vec<Sealing>,
}

/// A transaction of another site in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealing {
    /// Who has forwarded it.
    pub site: SiteId,
    /// By that name.
    pub name: Forwarded,
    /// Its place in the batch.
    pub place: u16,
}

/// What an acceptor that promises says of what it has accepted: all of it, or a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The place after which it was asked for that.
    pub after: u64,
    /// The last place that it knows to be chosen.
    pub chosen: u64,
    /// Places after both, each with the ballot and the entry.
    pub accepted: Vec<(u64, Standing, Entry)>,
    /// It has more.
    pub more: bool,
}

/// What happens to an agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the variants are documented; their fields are those of the messages
pub enum Event {
    /// All that earlier incarnations left is read.
    Start,
    /// An epoch ends; `sealed` is what the region says then, if the site leads the stream of its own region and has anything to say.
    EndOfEpoch { moment: Moment, sealed: Option<Sealed> },
    /// After every end of an epoch: it is time to ask for what is missing, if the site `takes_more`.
    LookForGaps { takes_more: bool },
    /// This site, which has taken over, says that the region has nothing up to that epoch.
    PassOver(Epoch),
    /// The site wants to know of that one what comes next.
    Ask(SiteId),
    /// What was written down with [`Effect::Persist`] is durable.
    Durable { ballot: Ballot, upto: u64 },
    /// [`Promise::Epoch`] arrives. If the site `is_flooded`, there is no room for it.
    Epoch { from: SiteId, ballot: Ballot, first: u64, entries: Vec<Entry>, is_flooded: bool },
    /// [`Promise::Held`] arrives.
    Held { from: SiteId, ballot: Ballot, upto: u64 },
    /// [`Note::Prepare`] arrives.
    Prepare { from: SiteId, ballot: Ballot, after: u64 },
    /// [`Note::Refused`] arrives: that ballot is promised.
    Refused(Ballot),
    /// [`Promise::Promised`] arrives.
    Promised { from: SiteId, ballot: Ballot, part: Part },
    /// [`Note::Pull`] arrives.
    Pull { from: SiteId, after: u64 },
    /// The records of [`Effect::Load`] are read.
    Loaded { pulled: Pulled, loaded: Loaded },
    /// [`Note::Chosen`] arrives.
    Chosen { from: SiteId, first: u64, entries: Vec<Entry>, more: bool },
}

impl Event {
    /// The highest place, or number of a ballot, that a peer names in it.
    fn highest(&self) -> u64 {
        match self {
            Event::Epoch { ballot, first, .. } => ballot.number.max(*first),
            Event::Held { ballot, upto, .. } => ballot.number.max(*upto),
            Event::Prepare { ballot, after, .. } => ballot.number.max(*after),
            Event::Refused(promised) => promised.number,
            Event::Promised { ballot, part, .. } => {
                let places = part.accepted.iter().map(|(index, ..)| *index);
                places.fold(ballot.number.max(part.after).max(part.chosen), u64::max)
            }
            Event::Pull { after, .. } => *after,
            Event::Chosen { first, .. } => *first,
            Event::Start
            | Event::EndOfEpoch { .. }
            | Event::LookForGaps { .. }
            | Event::PassOver(_)
            | Event::Ask(_)
            | Event::Durable { .. }
            | Event::Loaded { .. } => 0,
        }
    }

    /// The entries that a peer sends with it.
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let (entries, accepted): (&[Entry], &[(u64, Standing, Entry)]) = match self {
            Event::Epoch { entries, .. } | Event::Chosen { entries, .. } => (entries, &[]),
            Event::Promised { part, .. } => (&[], &part.accepted),
            _ => (&[], &[]),
        };
        entries.iter().chain(accepted.iter().map(|(.., entry)| entry))
    }
}

/// Entries that a site misses, and that are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Who misses them.
    pub to: SiteId,
    /// After which place.
    pub after: u64,
    /// The last place that is chosen as they are asked for. What lies on disk beyond it when it is read may never be.
    pub upto: u64,
}

/// What an agreement wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // likewise
pub enum Effect {
    /// Send a message that promises nothing.
    Send { to: SiteId, note: Note },
    /// Write `batch`, and once that is durable send `then` what waits for it, and tell the agreement by [`Event::Durable`] what is `durable`. An
    /// empty batch: the messages wait for what was written before.
    Persist { batch: Batch, then: Vec<(SiteId, Promise)>, durable: Option<(Ballot, u64)> },
    /// Load a page of entries; [`Event::Loaded`] follows.
    Load(Pulled),
    /// The coordinator of the stream's region has sealed that epoch.
    Heard(Epoch),
    /// An entry is chosen.
    Chosen(Found),
    /// This site leads the stream of another region: it is to pass over what is missing, by [`Event::PassOver`].
    TookOver,
    /// What is chosen so far may be run.
    Advanced,
    /// That site has more entries that are missing here: it is to be asked, by [`Event::Ask`], if there is room for them.
    HasMore(SiteId),
    /// Something worth counting happened.
    Count(&'static str),
}

impl Agreement {
    /// The agreement on stream `id`, of which nothing is known; `quorum` regions must hold an entry.
    pub fn new(id: StreamId, quorum: usize) -> Agreement {
        let (stream, leadership) = (Stream::new(id, quorum), Leadership::follower());
        Agreement { id, stream, leadership, pulling: Pulling::default(), truncated: 0 }
    }

    /// What is agreed on, as far as this site knows.
    pub fn view(&self) -> &Stream {
        &self.stream
    }

    /// True if this site says what comes next.
    pub fn leads(&self) -> bool {
        self.leadership.leads_at().is_some()
    }

    /// Entries of others that this site holds, to say them again once it leads.
    pub fn held(&self) -> usize {
        self.leadership.held()
    }

    /// For how many ends of epochs the stream has not come further.
    pub fn silent(&self) -> u64 {
        self.leadership.silent()
    }

    /// Takes over what an earlier incarnation had settled: the entries up to `chosen`, which cover `covered`.
    pub fn resume(&mut self, chosen: u64, covered: Epoch) {
        self.stream.resume(chosen, covered);
    }

    /// Takes over a promise of an earlier incarnation.
    pub fn resume_promise(&mut self, ballot: Ballot) {
        self.stream.resume_promise(ballot);
    }

    /// Takes over an entry that an earlier incarnation accepted.
    pub fn resume_entry(&mut self, index: u64, standing: Standing, entry: Entry) {
        self.stream.resume_entry(index, standing, entry);
    }

    /// The first entry on disk is that at place `oldest`; none is there that follows on what is settled.
    pub fn resume_oldest(&mut self, oldest: Option<u64>) {
        self.truncated = oldest.map_or(self.stream.chosen(), |index| index - 1);
    }

    /// Forgets what says nothing beyond the epoch `settled`, see [`Stream::settle`].
    pub fn settle(&mut self, settled: Epoch) -> (u64, Epoch) {
        self.stream.settle(settled)
    }

    /// Removes entries from disk of which every site has settled those up to place `upto`, at most so many at once.
    pub fn truncate(&mut self, upto: u64, count_max: u64, batch: &mut Batch) {
        let upto = upto.min(self.truncated + count_max);
        (self.truncated + 1..=upto).for_each(|index| batch.delete_record(records::ENTRIES, records::entry_key(self.id, index)));
        self.truncated = upto;
    }

    /// Takes an event. One that names what no site comes to is dropped.
    pub fn on(&mut self, event: Event, cx: &Cx<'_>) -> Vec<Effect> {
        if event.highest() > PLACES_MAX || event.entries().any(|entry| entry.epoch > Epoch::last(cx.config.epoch)) {
            return vec![Effect::Count("catenae.out_of_bounds")];
        }
        let mut out = Vec::new();
        match event {
            Event::Start => self.start(cx, &mut out),
            Event::EndOfEpoch { moment, sealed } => self.on_end_of_epoch(moment, sealed, cx, &mut out),
            Event::LookForGaps { takes_more } => self.look_for_gaps(takes_more, cx, &mut out),
            Event::PassOver(until) => self.pass_over(until, cx, &mut out),
            Event::Ask(whom) => self.pull(whom, cx, &mut out),
            Event::Durable { ballot, upto } => self.on_durable(ballot, upto, cx, &mut out),
            Event::Epoch { from, ballot, first, entries, is_flooded } if !entries.is_empty() && from == ballot.leader => {
                if is_flooded {
                    self.pass_by(ballot, first + entries.len() as u64 - 1, &mut out);
                } else {
                    self.on_epoch(ballot, first, entries, cx, &mut out);
                }
            }
            Event::Epoch { .. } => {}
            Event::Held { from, ballot, upto } => self.on_held(from, ballot, upto, cx, &mut out),
            Event::Prepare { from, ballot, after } => self.on_prepare(from, ballot, after, cx, &mut out),
            Event::Refused(promised) => self.hear_ballot(promised, cx),
            Event::Promised { from, ballot, part } => self.on_promised(from, ballot, part, cx, &mut out),
            Event::Pull { from, after } => self.on_pull(from, after, &mut out),
            Event::Loaded { pulled, loaded } => self.on_loaded(pulled, loaded, &mut out),
            Event::Chosen { from, first, entries, more } => {
                self.take_answer(from);
                let learnt = self.on_chosen(first, entries, cx, &mut out);
                out.extend((more && learnt > 0).then_some(Effect::HasMore(from)));
            }
        }
        out
    }

    /// Begins to serve.
    fn start(&mut self, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        if self.id.is_accepted_by(cx.me) {
            self.stream.resume_held(cx.me);
            if cx.rules.breaks(Planted::LearntIsHeld) {
                let above_all = Ballot { number: u64::MAX, leader: cx.me };
                self.stream.holds(cx.me, above_all, self.stream.agrees(above_all));
            }
        }
        // A coordinator keeps its own first ballot over all incarnations: every entry that it proposed at that ballot is on its disk.
        let first = self.id.first_ballot();
        self.leadership =
            if self.stream.promised() == first && first.leader == cx.me { Leadership::leader(first) } else { Leadership::follower() };
        self.advance(cx, out);
    }

    /// Takes in all that can now be told to be chosen.
    fn advance(&mut self, cx: &Cx<'_>, out: &mut Vec<Effect>) {
        while let Some(found) = self.stream.advance() {
            out.push(Effect::Chosen(found));
        }
        self.finish_takeover(cx, out);
    }
}

impl Cx<'_> {
    /// Regions that may be lost.
    fn failures(&self) -> usize {
        self.config.durability.failures(self.topology.region_count())
    }

    /// All sites but this one.
    fn others(&self) -> Vec<SiteId> {
        self.topology.others(self.me).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_core::RegionId;

    #[test]
    fn what_no_stream_comes_to_is_dropped_whoever_says_so() {
        let (topology, config) = (Topology::new(["a", "b", "c"].map(String::from).to_vec(), 1), Config::default());
        let cx = Cx { me: SiteId::new(0, 0), topology: &topology, config: &config, tick: 7, rules: Rules::HOLD };
        let (from, id) = (SiteId::new(1, 0), StreamId::first(RegionId(1)));
        let ballot = id.first_ballot();
        let far = Ballot { number: u64::MAX, leader: from };
        let entry = |epoch| Entry { author: from, epoch: Epoch(epoch), batch: Vec::new(), orders: Vec::new() };
        let epoch = |ballot, first, of| Event::Epoch { from, ballot, first, entries: vec![entry(of)], is_flooded: false };
        let chosen = |first, entries| Event::Chosen { from, first, entries, more: false };
        let promised =
            |ballot, after, chosen, accepted| Event::Promised { from, ballot, part: Part { after, chosen, accepted, more: false } };
        let at = |index, of| vec![(index, Standing::Accepted(ballot), entry(of))];
        let out_of_bounds = [
            epoch(far, 1, 1),
            epoch(ballot, u64::MAX, 1),
            epoch(ballot, 1, u64::MAX),
            Event::Held { from, ballot: far, upto: 1 },
            Event::Held { from, ballot, upto: u64::MAX },
            Event::Prepare { from, ballot: far, after: 1 },
            Event::Prepare { from, ballot, after: u64::MAX },
            Event::Refused(far),
            promised(far, 0, 0, Vec::new()),
            promised(ballot, u64::MAX, 0, Vec::new()),
            promised(ballot, 0, u64::MAX, Vec::new()),
            promised(ballot, 0, 0, at(u64::MAX, 1)),
            promised(ballot, 0, 0, at(1, u64::MAX)),
            Event::Pull { from, after: u64::MAX },
            chosen(u64::MAX, Vec::new()),
            chosen(1, vec![entry(u64::MAX)]),
        ];
        let fresh = Agreement::new(id, 2);
        for event in out_of_bounds {
            let mut agreement = fresh.clone();
            assert_eq!(agreement.on(event.clone(), &cx), [Effect::Count("catenae.out_of_bounds")], "{event:?}");
            assert_eq!(agreement, fresh, "{event:?}");
        }
        for event in [epoch(ballot, PLACES_MAX, 1), chosen(PLACES_MAX, vec![entry(1)]), Event::Pull { from, after: PLACES_MAX }] {
            assert_ne!(fresh.clone().on(event.clone(), &cx), [Effect::Count("catenae.out_of_bounds")], "{event:?}");
        }
    }
}
