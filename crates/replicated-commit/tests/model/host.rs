//! The driver of one site of the product: its disk, and what it says to others.

use crate::disk::{Disk, Write};
use crate::word::{Cast, End, TXNS, Word, Words};
use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::TxnError;
use rhumb_commit::votes::Decision;
use rhumb_core::actor::{Effect, Gated, Token};
use rhumb_core::{Actor, Batch, Body, Effects, Input, Load, RegionId, Rules, SiteId, Time, Timestamp, Topology, TxnId};
use rhumb_replicated_commit::message::{Attempt, Meta, Voted};
use rhumb_replicated_commit::planted::Planted;
use rhumb_replicated_commit::{Answer, Config, Note, Promise, Site};
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of regions that vote.
pub const REGIONS: usize = 3;

/// When the clocks of all sites stand still.
pub const NOW: Time = Time::from_micros(100_000_000);

/// How the cluster departs from the product.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    /// The rules of the sites.
    pub rules: Rules<Planted>,
    /// Drivers send what waits for a write before that is durable.
    pub sent_before_sync: bool,
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
    departure: Departure,
    /// The transaction that a client has begun here, and the first attempt to commit it.
    pub began: Option<TxnId>,
    pub made: Option<Meta>,
}

/// The site of that region.
pub const fn site(region: usize) -> SiteId {
    SiteId::new(region as u16, 0)
}

/// The gateway of that transaction. Each is in a region of its own, which does not vote.
pub const fn gateway(txn: usize) -> SiteId {
    site(REGIONS + txn)
}

/// The transaction that has this gateway.
fn txn_at(gateway: SiteId) -> usize {
    usize::from(gateway.region.0) - REGIONS
}

fn boot(me: SiteId, rules: Rules<Planted>) -> Site {
    let names = (0..REGIONS + TXNS).map(|region| format!("r{region}")).collect();
    Site::new(me, Arc::new(Topology::new(names, 1)), Placement::everywhere(REGIONS), Config::default()).with_rules(rules)
}

impl Host {
    /// A site that has just begun to serve.
    pub fn new(me: SiteId, departure: Departure) -> Host {
        let (site, disk, loads) = (boot(me, departure.rules), Disk::default(), Vec::new());
        let mut host = Host { me, site, disk, loads, now: NOW, departure, began: None, made: None };
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
        let me = self.me;
        for other in (0..REGIONS + TXNS).map(site).filter(|other| *other != me) {
            self.hear(other, Note::Heard { at: Timestamp::ZERO });
        }
    }

    /// It crashes, and starts again. Being down is the same as hearing nothing.
    pub fn crash(&mut self) {
        self.site = boot(self.me, self.departure.rules);
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

    /// A message arrives.
    pub fn hear(&mut self, from: SiteId, note: Note) -> Words {
        self.take(Input::Message { from, body: Body::Note(note) })
    }

    /// Votes of different regions arrive, the first that of region `first`.
    pub fn hear_votes(&mut self, first: usize, meta: &Meta, casts: &[Option<Cast>]) -> Words {
        let mut said = Words::NONE;
        for (region, cast) in (first..).zip(casts) {
            let Some(cast) = *cast else { continue };
            let voted = Voted { meta: meta.clone(), region: RegionId(region as u16), vote: cast.into(), high: Timestamp::ZERO };
            said = said.or(self.take(Input::Message { from: site(region), body: Body::Promise(Promise::Vote(voted)) }));
        }
        said
    }

    /// Somebody tells the outcome.
    pub fn hear_end(&mut self, from: SiteId, meta: &Meta, end: End) -> Words {
        let decision = if end == End::Committed { Decision::Committed { floor: meta.at } } else { Decision::Aborted };
        self.hear(from, Note::Decided { meta: meta.clone(), decision })
    }

    /// A load is answered.
    pub fn load(&mut self, place: usize, stale: bool) -> Words {
        let (token, load) = self.loads.remove(place);
        let loaded = self.disk.load(&load, stale);
        self.take(Input::Loaded { token, loaded })
    }

    /// The first write that waits becomes durable.
    pub fn sync(&mut self) -> Words {
        self.disk.sync().map_or(Words::NONE, |write| self.carry_out(write))
    }

    /// All writes that wait become durable.
    pub fn sync_all(&mut self) -> Words {
        let mut said = Words::NONE;
        while self.waiting() > 0 {
            said = said.or(self.sync());
        }
        said
    }

    fn carry_out(&mut self, write: Write) -> Words {
        let mut said = write.says;
        for promise in write.to_itself {
            said = said.or(self.take(Input::Message { from: self.me, body: Body::Promise(promise) }));
        }
        match write.token {
            Some(token) => said.or(self.take(Input::Persisted { token })),
            None => said,
        }
    }

    /// The site takes an input; returns what it says to others. What it sends to itself arrives at once: nothing else can tell it when.
    pub fn take(&mut self, input: Input<Site>) -> Words {
        let (mut said, mut inputs) = (Words::NONE, VecDeque::from([input]));
        while let Some(input) = inputs.pop_front() {
            let mut fx = Effects::new(false);
            self.site.step(self.now, input, &mut fx);
            for effect in fx.take() {
                match effect {
                    Effect::Send { to, note } if to == self.me => inputs.push_back(Input::Message { from: to, body: Body::Note(note) }),
                    Effect::Send { note, .. } => said = said.or(self.sent(note)),
                    Effect::Load { token, load } => self.loads.push((token, load)),
                    Effect::Persist { batch, token, then } => said = said.or(self.write(batch, token, then)),
                    Effect::Answer { answer, .. } => said = said.or(self.answered(answer)),
                    Effect::SetTimer { .. } | Effect::Collect(_) | Effect::Count(_) | Effect::Trace(_) => {}
                }
            }
        }
        said
    }

    fn write(&mut self, batch: Batch, token: Option<Token>, then: Vec<Gated<Site>>) -> Words {
        let mut write = Write { batch, token, says: Words::NONE, to_itself: Vec::new() };
        for gated in then {
            match gated {
                Gated::Send { to, promise } if to == self.me => write.to_itself.push(promise),
                Gated::Send { promise: Promise::Vote(Voted { meta, vote, .. }), .. } => {
                    write.says.add(Word::Vote(txn_at(meta.attempt.txn.gateway), Cast::from(&vote)));
                }
                Gated::Send { .. } => {}
                Gated::Answer { .. } => unreachable!("no client waits for a write"),
            }
        }
        if write.is_empty() && self.waiting() == 0 {
            return self.carry_out(write);
        }
        if self.departure.sent_before_sync {
            let early = Write { batch: Batch::new(), token: None, says: write.says, to_itself: std::mem::take(&mut write.to_itself) };
            self.disk.write(Write { says: Words::NONE, ..write });
            return self.carry_out(early);
        }
        self.disk.write(write);
        Words::NONE
    }

    /// A message to another site leaves. Of those that are not listed here the model has all from the beginning, or they tell what the listed
    /// ones tell.
    fn sent(&mut self, note: Note) -> Words {
        let txn = |attempt: &Attempt| txn_at(attempt.txn.gateway);
        let is_of_first = |made: &Option<Meta>, attempt: &Attempt| made.as_ref().is_none_or(|made| made.attempt == *attempt);
        match note {
            Note::Accept { meta, .. } => {
                self.made.get_or_insert(meta);
                Words::NONE
            }
            Note::Decided { meta, decision } if is_of_first(&self.made, &meta.attempt) => {
                Words::from_iter([Word::Decided(txn(&meta.attempt), End::from(decision))])
            }
            Note::Withdraw { meta } if is_of_first(&self.made, &meta.attempt) => Words::from_iter([Word::Withdraw(txn(&meta.attempt))]),
            _ => Words::NONE,
        }
    }

    /// The client is told something.
    fn answered(&mut self, answer: Answer) -> Words {
        let word = |end| Words::from_iter([Word::Answered(txn_at(self.me), end)]);
        match answer {
            Answer::Committed(_) => word(End::Committed),
            Answer::Failed(TxnError::Conflict(_)) => word(End::Aborted),
            Answer::Failed(TxnError::Unknown(_)) => Words::NONE,
            Answer::Began { txn } => {
                self.began = Some(txn);
                Words::NONE
            }
            other => unreachable!("no client is told {other:?}"),
        }
    }
}
