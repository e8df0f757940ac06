//! The driver of one site of the product: its disk, and what it lets others know.

use crate::disk::{Disk, Write};
use rhumb_commit::placement::Placement;
use rhumb_commit::votes::Outcome;
use rhumb_core::actor::{Effect, Gated, Token};
use rhumb_core::{Actor, Batch, Body, Effects, Input, Load, Rules, SiteId, Time, Timestamp, Topology, record};
use rhumb_replicated_commit::message::ATTEMPT;
use rhumb_replicated_commit::planted::Planted;
use rhumb_replicated_commit::{Answer, Config, Note, Promise, Site};
use std::collections::VecDeque;
use std::sync::Arc;

/// When the clocks of all sites stand still, unless a model moves them.
pub const NOW: Time = Time::from_micros(100_000_000);

/// How the cluster departs from the product.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    /// The rules of the sites.
    pub rules: Rules<Planted>,
    /// Drivers send what waits for a write before that is durable.
    pub sent_before_sync: bool,
}

impl Departure {
    /// Sites break this rule.
    pub fn breaking(rule: Planted) -> Departure {
        Departure { rules: Rules::breaking(rule), ..Departure::default() }
    }
}

/// What all sites begin with.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The number of regions, one site each.
    pub regions: usize,
    pub placement: Placement,
    pub departure: Departure,
}

/// What a site lets others know.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    Message {
        to: SiteId,
        body: Body<Note, Promise>,
    },
    Answer(Answer),
    /// The site is certain how the attempt of a model ended.
    Certain(Outcome),
}

/// A site on its disk.
#[derive(Clone, Debug)]
pub struct Host {
    me: SiteId,
    site: Site,
    disk: Disk,
    /// What it has asked its disk for.
    loads: Vec<(Token, Load)>,
    pub now: Time,
    cluster: Arc<Cluster>,
}

/// The site of that region.
pub const fn site(region: usize) -> SiteId {
    SiteId::new(region as u16, 0)
}

fn boot(me: SiteId, cluster: &Cluster) -> Site {
    let names = (0..cluster.regions).map(|region| format!("r{region}")).collect();
    let topology = Arc::new(Topology::new(names, 1));
    Site::new(me, topology, cluster.placement.clone(), Config::default()).with_rules(cluster.departure.rules)
}

impl Host {
    /// A site that has just begun to serve.
    pub fn new(me: SiteId, cluster: Arc<Cluster>) -> Host {
        let mut host = Host { me, site: boot(me, &cluster), disk: Disk::default(), loads: Vec::new(), now: NOW, cluster };
        host.start();
        host
    }

    /// The site starts on its disk, which serves it at once, and is in touch with all others: nobody hears what happens before that.
    fn start(&mut self) {
        self.take(Input::Start);
        while self.loads() > 0 {
            self.load(0, false);
        }
        self.sync_all();
        self.hear_from_all();
    }

    /// All others are heard: they are alive.
    pub fn hear_from_all(&mut self) {
        let me = self.me;
        for other in (0..self.cluster.regions).map(site).filter(|other| *other != me) {
            self.hear(other, Note::Heard { at: Timestamp::ZERO });
        }
    }

    /// It crashes, and starts again. Being down is the same as hearing nothing.
    pub fn crash(&mut self) {
        self.site = boot(self.me, &self.cluster);
        self.disk = self.disk.after_crash();
        self.loads.clear();
        self.start();
    }

    /// How many loads await an answer.
    pub fn loads(&self) -> usize {
        self.loads.len()
    }

    /// How many writes wait to be durable.
    pub fn waiting(&self) -> usize {
        self.disk.waiting()
    }

    /// A message that promises nothing arrives.
    pub fn hear(&mut self, from: SiteId, note: Note) -> Vec<Sent> {
        self.take(Input::Message { from, body: Body::Note(note) })
    }

    /// A message arrives of what is durable at its sender.
    pub fn hear_promise(&mut self, from: SiteId, promise: Promise) -> Vec<Sent> {
        self.take(Input::Message { from, body: Body::Promise(promise) })
    }

    /// A load is answered.
    pub fn load(&mut self, place: usize, stale: bool) -> Vec<Sent> {
        let (token, load) = self.loads.remove(place);
        let loaded = self.disk.load(&load, stale);
        self.take(Input::Loaded { token, loaded })
    }

    /// The first write that waits becomes durable.
    pub fn sync(&mut self) -> Vec<Sent> {
        self.disk.sync().map_or(Vec::new(), |write| self.carry_out(write))
    }

    /// All writes that wait become durable.
    pub fn sync_all(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while self.waiting() > 0 {
            sent.extend(self.sync());
        }
        sent
    }

    fn carry_out(&mut self, write: Write) -> Vec<Sent> {
        let mut sent = write.sends;
        for promise in write.to_itself {
            sent.extend(self.hear_promise(self.me, promise));
        }
        if let Some(token) = write.token {
            sent.extend(self.take(Input::Persisted { token }));
        }
        sent
    }

    /// The site takes an input; returns what it lets others know. What it sends to itself arrives at once: nothing else can tell it when.
    pub fn take(&mut self, input: Input<Site>) -> Vec<Sent> {
        let (mut sent, mut inputs) = (Vec::new(), VecDeque::from([input]));
        while let Some(input) = inputs.pop_front() {
            let mut fx = Effects::new(false).recording();
            self.site.step(self.now, input, &mut fx);
            for agreed in fx.take_agreed().into_iter().filter(|agreed| agreed.topic == ATTEMPT) {
                let committed: Option<Timestamp> = record::decode(&agreed.value).expect("when an attempt committed, or that it aborted");
                sent.push(Sent::Certain(if committed.is_some() { Outcome::Committed } else { Outcome::Aborted }));
            }
            for effect in fx.take() {
                match effect {
                    Effect::Send { to, note } if to == self.me => inputs.push_back(Input::Message { from: to, body: Body::Note(note) }),
                    Effect::Send { to, note } => sent.push(Sent::Message { to, body: Body::Note(note) }),
                    Effect::Load { token, load } => self.loads.push((token, load)),
                    Effect::Persist { batch, token, then } => sent.extend(self.write(batch, token, then)),
                    Effect::Answer { answer, .. } => sent.push(Sent::Answer(answer)),
                    Effect::SetTimer { .. } | Effect::Collect(_) | Effect::Count(_) | Effect::Trace(_) => {}
                }
            }
        }
        sent
    }

    fn write(&mut self, batch: Batch, token: Option<Token>, then: Vec<Gated<Site>>) -> Vec<Sent> {
        let mut write = Write { batch, token, sends: Vec::new(), to_itself: Vec::new() };
        for gated in then {
            match gated {
                Gated::Send { to, promise } if to == self.me => write.to_itself.push(promise),
                Gated::Send { to, promise } => write.sends.push(Sent::Message { to, body: Body::Promise(promise) }),
                Gated::Answer { .. } => unreachable!("no client waits for a write"),
            }
        }
        if write.is_empty() && self.waiting() == 0 {
            return self.carry_out(write);
        }
        if self.cluster.departure.sent_before_sync {
            let (sends, to_itself) = (std::mem::take(&mut write.sends), std::mem::take(&mut write.to_itself));
            self.disk.write(write);
            return self.carry_out(Write { batch: Batch::new(), token: None, sends, to_itself });
        }
        self.disk.write(write);
        Vec::new()
    }
}
