//! One site alone, over a disk that takes no time: the test speaks for all others, and is shown what the site says.

use super::machine::IN_MEMORY;
use rhumb_core::actor::{Effect, Gated, RequestId, Token};
use rhumb_core::{Actor, Batch, Body, Effects, Input, Load, SiteId, Time};
use rhumb_store::{MemoryEngine, Store};
use std::collections::VecDeque;

/// What a site says, in the order in which it says it.
#[derive(Clone, Debug, PartialEq)]
pub enum Said<N, P, R> {
    /// A note, and to whom.
    Note(SiteId, N),
    /// A promise, and to whom.
    Promise(SiteId, P),
    /// An answer to a client's request.
    Answer(RequestId, R),
}

/// What a site of that kind says.
pub type SaidBy<A> = Said<<A as Actor>::Note, <A as Actor>::Promise, <A as Actor>::Answer>;

/// A site, its clock and its disk.
pub struct Lone<A: Actor> {
    /// The site itself, to be looked at.
    pub site: A,
    /// What its clock shows.
    pub now: Time,
    /// What it has written, and the test for it.
    pub disk: Store<MemoryEngine>,
    /// Loads so far.
    pub loads: Vec<Load>,
    /// Rows and records written so far.
    pub writes: usize,
    /// Loads that wait until the test lets them go, if it holds them.
    held_loads: Option<VecDeque<(Token, Load)>>,
}

impl<A: Actor> Lone<A> {
    /// Starts `site` with what `disk` holds.
    pub fn new(site: A, disk: Store<MemoryEngine>, now: Time) -> Lone<A> {
        let mut lone = Lone { site, now, disk, loads: Vec::new(), writes: 0, held_loads: None };
        lone.step(Input::Start);
        lone
    }

    /// The site crashes, and `site` starts with its disk.
    pub fn restart(&mut self, site: A) {
        self.site = site;
        self.step(Input::Start);
    }

    /// A message comes.
    pub fn hear(&mut self, from: SiteId, body: Body<A::Note, A::Promise>) -> Vec<SaidBy<A>> {
        self.step(Input::Message { from, body })
    }

    /// A client asks.
    pub fn ask(&mut self, id: RequestId, request: A::Request) -> Vec<SaidBy<A>> {
        self.step(Input::Client { id, request })
    }

    /// Steps the site, and goes on with what its disk answers until that is all.
    pub fn step(&mut self, input: Input<A>) -> Vec<SaidBy<A>> {
        let mut inputs = VecDeque::from([input]);
        let mut said = Vec::new();
        while let Some(input) = inputs.pop_front() {
            let mut fx = Effects::new(false);
            self.site.step(self.now, input, &mut fx);
            for effect in fx.take() {
                match effect {
                    Effect::Send { to, note } => said.push(Said::Note(to, note)),
                    Effect::Answer { id, answer } => said.push(Said::Answer(id, answer)),
                    Effect::Load { token, load } => {
                        self.loads.push(load.clone());
                        match &mut self.held_loads {
                            Some(held) => held.push_back((token, load)),
                            None => inputs.push_back(Input::Loaded { token, loaded: self.disk.load(&load).expect(IN_MEMORY) }),
                        }
                    }
                    Effect::Persist { batch, token, then } => {
                        self.writes += batch.ops.len();
                        self.write(&batch);
                        said.extend(then.into_iter().map(|gated| match gated {
                            Gated::Send { to, promise } => Said::Promise(to, promise),
                            Gated::Answer { id, answer } => Said::Answer(id, answer),
                        }));
                        inputs.extend(token.map(|token| Input::Persisted { token }));
                    }
                    Effect::SetTimer { .. } | Effect::Collect(_) | Effect::Count(_) | Effect::Trace(_) => {}
                }
            }
        }
        said
    }

    /// Puts that on its disk.
    pub fn write(&self, batch: &Batch) {
        self.disk.apply(batch).expect(IN_MEMORY);
    }

    /// From now on loads wait.
    pub fn hold_loads(&mut self) {
        self.held_loads = Some(VecDeque::new());
    }

    /// How many loads wait.
    pub fn held_loads(&self) -> usize {
        self.held_loads.as_ref().map_or(0, VecDeque::len)
    }

    /// Carries out the first of the loads that wait.
    pub fn release_load(&mut self) -> Vec<SaidBy<A>> {
        let (token, load) = self.held_loads.as_mut().and_then(VecDeque::pop_front).expect("a load waits");
        let loaded = self.disk.load(&load).expect(IN_MEMORY);
        self.step(Input::Loaded { token, loaded })
    }
}
