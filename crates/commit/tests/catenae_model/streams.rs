//! One region's stream as a state space: three regions, the product's own [`Stream`] at each, and one that takes the lead over.
//!
//! ```text
//!   Say      ─▶ the leader says its next entry            Deliver ─▶ a region takes a message
//!   Prepare  ─▶ a region wants to lead                    Learn   ─▶ a region finds out that its next entry is chosen
//!   Lead     ─▶ a region with enough promises leads       Crash   ─▶ a region keeps what is on its disk
//! ```
//!
//! Region 0, whose stream it is, says one entry; region 1 may take over and pass it over. What a region holds it says once and for
//! all; who hears of it when makes no difference to what is chosen. So an entry counts as soon as enough have said that they hold it
//! at its ballot, and a region learns that at any time, or never. The network is a set that only grows: that covers delay,
//! reordering, duplication and loss. What is accepted or promised is on disk as soon as it is; what a crash destroyed before
//! anybody heard of it is what never happened.

use rhumb_commit::catenae::epoch::Epoch;
use rhumb_commit::catenae::message::{Ballot, Entry};
use rhumb_commit::catenae::stream::{Stream, merge};
use rhumb_commit::catenae::stream_id::StreamId;
use rhumb_core::{RegionId, SiteId};
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet};

/// The number of regions.
const REGIONS: usize = 3;
/// Regions that must hold an entry, and that must promise.
const QUORUM: usize = 2;
/// The stream: region 0 leads it from the beginning.
const STREAM: StreamId = StreamId::first(RegionId(0));

/// All regions find the same entries chosen.
pub const AGREEMENT: &str = "what is chosen is the same everywhere and for ever";

/// The protocol, or the same with one rule broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    AsIs,
    /// An acceptor does not keep what it promises.
    PromiseForgotten,
    /// The region itself does not wait for others to hold its entry.
    AnsweredAtHome,
    /// A region that waits for an entry may go on without it, asking nobody.
    AbandonedByTimer,
}

#[derive(Clone, Copy, Debug)]
pub struct Streams {
    pub rule: Rule,
    /// Region 1 crashes once.
    pub crashes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    Epoch { ballot: Ballot, first: u64, entries: Vec<Said> },
    Prepare { ballot: Ballot, after: u64 },
    Promised { from: usize, ballot: Ballot, chosen: u64, accepted: Vec<(u64, Ballot, Said)> },
}

/// An entry: who said it, of which epoch.
pub type Said = (SiteId, u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Lead {
    No,
    Preparing { ballot: Ballot, promised: BTreeSet<usize>, chosen: u64, accepted: BTreeMap<u64, (Ballot, Said)> },
    Yes { ballot: Ballot },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    stream: Stream,
    lead: Lead,
    /// Epochs that it may still say.
    to_say: Vec<u64>,
    prepared: bool,
    crashed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    regions: Vec<Region>,
    network: BTreeSet<Message>,
    /// Who holds what: the region, the ballot, up to which place.
    held: BTreeSet<(usize, Ballot, u64)>,
    /// What was found to be chosen, by place.
    chosen: BTreeMap<u64, Said>,
    disagrees: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Say {
        region: usize,
    },
    Prepare {
        region: usize,
    },
    Lead {
        region: usize,
    },
    Deliver {
        to: usize,
        message: Message,
    },
    Learn {
        region: usize,
    },
    Crash {
        region: usize,
    },
    /// Only planted.
    Abandon {
        region: usize,
    },
}

fn site(region: usize) -> SiteId {
    SiteId::new(region as u16, 0)
}

fn entry((author, epoch): Said) -> Entry {
    Entry { author, epoch: Epoch(epoch), batch: vec![], orders: vec![] }
}

fn said(entry: &Entry) -> Said {
    (entry.author, entry.epoch.0)
}

impl Model for Streams {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let region = |region: usize| Region {
            stream: Stream::new(STREAM, QUORUM),
            lead: if region == 0 { Lead::Yes { ballot: Ballot::first(STREAM) } } else { Lead::No },
            to_say: [vec![1], vec![5], vec![]][region].clone(),
            prepared: false,
            crashed: false,
        };
        vec![State {
            regions: (0..REGIONS).map(region).collect(),
            network: BTreeSet::new(),
            held: BTreeSet::new(),
            chosen: BTreeMap::new(),
            disagrees: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, region) in state.regions.iter().enumerate() {
            if matches!(region.lead, Lead::Yes { .. }) && !region.to_say.is_empty() {
                actions.push(Action::Say { region: index });
            }
            if index == 1 && !region.prepared && !matches!(region.lead, Lead::Yes { .. }) {
                actions.push(Action::Prepare { region: index });
            }
            if let Lead::Preparing { promised, chosen, .. } = &region.lead
                && promised.len() >= QUORUM
                && region.stream.chosen() >= *chosen
            {
                actions.push(Action::Lead { region: index });
            }
            if index == 1 && self.crashes && !region.crashed {
                actions.push(Action::Crash { region: index });
            }
            if self.rule == Rule::AbandonedByTimer && region.stream.chosen() == 0 && index == 2 {
                actions.push(Action::Abandon { region: index });
            }
            if state.chosen.contains_key(&(region.stream.chosen() + 1)) {
                actions.push(Action::Learn { region: index });
            }
            actions.extend(state.network.iter().map(|message| Action::Deliver { to: index, message: message.clone() }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Say { region } => state.say(region),
            Action::Prepare { region } => state.prepare(region),
            Action::Lead { region } => state.lead(region),
            Action::Deliver { to, message } => state.deliver(to, message, self.rule),
            Action::Learn { region } => {
                let stream = &mut state.regions[region].stream;
                let place = stream.chosen() + 1;
                stream.learn(place, entry(state.chosen[&place]));
                stream.advance().expect("what is learnt is chosen");
            }
            Action::Crash { region } => state.crash(region),
            Action::Abandon { region } => {
                let stream = &mut state.regions[region].stream;
                stream.learn(1, entry((site(region), 1)));
                stream.advance().expect("what is learnt is chosen");
                state.find(1, (site(region), 1));
            }
        }
        state.count(self.rule);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(AGREEMENT, |_, state: &State| !state.disagrees),
            Property::sometimes("the first entry is chosen and the region passed over after it", |_, state: &State| {
                state.chosen.get(&1) == Some(&(site(0), 1)) && state.chosen.get(&2) == Some(&(site(1), 5))
            }),
            Property::sometimes("the region is passed over at once", |_, state: &State| state.chosen.get(&1) == Some(&(site(1), 5))),
        ]
    }
}

impl State {
    /// The leader's new entries are durable with it, and on their way.
    fn tell(&mut self, region: usize, new: &[u64], ballot: Ballot) {
        let stream = &self.regions[region].stream;
        self.held.insert((region, ballot, stream.agrees(ballot)));
        if let Some(&first) = new.first() {
            let entries = new.iter().map(|index| said(&stream.entry(*index).expect("it is new").1)).collect();
            self.network.insert(Message::Epoch { ballot, first, entries });
        }
    }

    fn say(&mut self, region: usize) {
        let of = &mut self.regions[region];
        let Lead::Yes { ballot } = of.lead else { unreachable!("only leaders say something") };
        let epoch = of.to_say.remove(0);
        let first = of.stream.end() + 1;
        let new = of.stream.accept(ballot, first, [entry((site(region), epoch))]).expect("a leader's ballot is promised");
        self.tell(region, &new, ballot);
    }

    fn prepare(&mut self, region: usize) {
        let of = &mut self.regions[region];
        of.prepared = true;
        let ballot = Ballot { round: 1, site: site(region) };
        let after = of.stream.chosen();
        of.lead = Lead::Preparing { ballot, promised: BTreeSet::new(), chosen: after, accepted: BTreeMap::new() };
        self.network.insert(Message::Prepare { ballot, after });
    }

    fn lead(&mut self, region: usize) {
        let of = &mut self.regions[region];
        let Lead::Preparing { ballot, accepted, .. } = of.lead.clone() else { unreachable!("it was asking for promises") };
        let accepted = accepted.into_iter().map(|(index, (ballot, said))| (index, (ballot, entry(said)))).collect();
        let Ok(new) = of.stream.say_again(ballot, accepted) else {
            of.lead = Lead::No;
            return;
        };
        of.lead = Lead::Yes { ballot };
        self.tell(region, &new, ballot);
    }

    fn deliver(&mut self, to: usize, message: Message, rule: Rule) {
        let of = &mut self.regions[to];
        match message {
            Message::Epoch { ballot, first, entries } if ballot.site != site(to) => {
                if of.stream.accept(ballot, first, entries.into_iter().map(entry)).is_ok() {
                    of.step_down(ballot);
                    self.held.insert((to, ballot, of.stream.agrees(ballot)));
                }
            }
            Message::Prepare { ballot, after } => {
                let promises = ballot > of.stream.promised() && (rule == Rule::PromiseForgotten || of.stream.promise(ballot).is_ok());
                if promises {
                    let accepted = of.stream.accepted(after).into_iter().map(|(index, at, entry)| (index, at, said(&entry))).collect();
                    let chosen = of.stream.chosen();
                    of.step_down(ballot);
                    self.network.insert(Message::Promised { from: to, ballot, chosen, accepted });
                }
            }
            Message::Promised { from, ballot, chosen, accepted } => {
                if let Lead::Preparing { ballot: asked, promised, chosen: highest, accepted: known } = &mut of.lead
                    && *asked == ballot
                {
                    promised.insert(from);
                    *highest = chosen.max(*highest);
                    let mut all = known.iter().map(|(index, (ballot, said))| (*index, (*ballot, entry(*said)))).collect();
                    merge(&mut all, accepted.into_iter().map(|(index, ballot, said)| (index, ballot, entry(said))).collect());
                    *known = all.into_iter().map(|(index, (ballot, entry))| (index, (ballot, said(&entry)))).collect();
                }
            }
            Message::Epoch { .. } => {}
        }
    }

    fn crash(&mut self, region: usize) {
        let of = &mut self.regions[region];
        let mut stream = Stream::new(STREAM, QUORUM);
        stream.resume_promise(of.stream.promised());
        for index in 1..=of.stream.end() {
            let (ballot, entry) = of.stream.entry(index).expect("nothing is forgotten").clone();
            stream.resume_entry(index, ballot, entry);
        }
        *of = Region { stream, lead: Lead::No, crashed: true, ..of.clone() };
    }

    /// Finds what is chosen by what is held.
    fn count(&mut self, rule: Rule) {
        let mut found = Vec::new();
        for (index, region) in self.regions.iter().enumerate() {
            let quorum = if rule == Rule::AnsweredAtHome && index == 0 { 1 } else { QUORUM };
            for (place, ballot, entry) in region.stream.accepted(0) {
                let holders: BTreeSet<usize> =
                    self.held.iter().filter(|(_, at, upto)| *at == ballot && *upto >= place).map(|(holder, ..)| *holder).collect();
                if holders.len() >= quorum {
                    found.push((place, said(&entry)));
                }
            }
        }
        found.into_iter().for_each(|(place, said)| self.find(place, said));
    }

    fn find(&mut self, place: u64, said: Said) {
        self.disagrees |= *self.chosen.entry(place).or_insert(said) != said;
    }
}

impl Region {
    fn step_down(&mut self, heard: Ballot) {
        let leads_at = match &self.lead {
            Lead::No => return,
            Lead::Preparing { ballot, .. } | Lead::Yes { ballot } => *ballot,
        };
        if leads_at < heard {
            self.lead = Lead::No;
        }
    }
}
