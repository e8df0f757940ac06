//! A small cluster whose every step is written down: what is sent and asked, what runs, what clients are told.
//!
//! Each line stands once: sites repeat themselves. What of the trace is worth a line, each protocol says itself.

use rhumb_core::actor::{Actor, RequestId};
use rhumb_core::{SiteId, Span};
use rhumb_sim::{Fault, Reply, World};
use rhumb_testkit::golden;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// An actor whose scenarios are written down.
pub trait Staged: Actor<Answer: Clone> {
    /// An answer, for people.
    fn told(answer: &Self::Answer) -> String;

    /// What a line of the trace must differ in from all before it to be shown; `None` if it is not shown.
    fn of_interest(line: &str) -> Option<&str>;
}

pub struct Stage<A: Staged> {
    pub world: World<A>,
    text: String,
    /// Bytes of the trace that are written down.
    written: usize,
    shown: BTreeSet<String>,
    replies: BTreeMap<RequestId, Reply<A::Answer>>,
}

impl<A: Staged> Stage<A> {
    /// What is shown from now on of `world`, which traces; `goal` says why.
    pub fn of(world: World<A>, goal: &str) -> Stage<A> {
        let written = world.trace().len();
        let text = goal.lines().map(|line| format!("# {}\n", line.trim())).collect();
        Stage { world, text, written, shown: BTreeSet::new(), replies: BTreeMap::new() }
    }

    pub fn narrate(&mut self, what: &str) {
        writeln!(self.text, "\n-- {what}").expect("a string takes all");
    }

    pub fn strike(&mut self, fault: Fault) {
        self.world.strike_at(self.world.now(), fault);
        self.world.tick().expect("nothing goes wrong");
        self.write_down();
    }

    /// A client of `site` asks for something, which is called `what`.
    pub fn submit(&mut self, site: SiteId, request: A::Request, what: &str) -> RequestId {
        let id = self.world.submit(site, request);
        writeln!(self.text, "{} client → {site} request {id}: {what}", self.world.now()).expect("a string takes all");
        id
    }

    pub fn run(&mut self, span: Span) {
        let end = self.world.now() + span;
        while self.world.run_until_reply(end).expect("nothing goes wrong") {
            self.write_down();
            for reply in self.world.take_replies() {
                let told = reply.answer.as_ref().map_or("lost its site".into(), A::told);
                writeln!(self.text, "{} {} → client request {}: {told}", reply.at, reply.site, reply.id).expect("a string takes all");
                self.replies.insert(reply.id, reply);
            }
        }
        self.write_down();
    }

    fn write_down(&mut self) {
        let trace = self.world.trace();
        for line in trace[self.written..].lines() {
            let Some((_, what)) = line.split_once(' ') else { continue };
            if let Some(key) = A::of_interest(what)
                && self.shown.insert(key.to_owned())
            {
                self.text.push_str(line);
                self.text.push('\n');
            }
        }
        self.written = trace.len();
    }

    pub fn try_answer(&self, id: RequestId) -> Option<A::Answer> {
        self.replies.get(&id)?.answer.clone()
    }

    pub fn answer(&self, id: RequestId) -> A::Answer {
        self.try_answer(id).unwrap_or_else(|| panic!("request {id} is not answered:\n{}", self.text))
    }

    pub fn is_lost(&self, id: RequestId) -> bool {
        self.replies.get(&id).is_some_and(|reply| reply.answer.is_none())
    }

    pub fn text(&self, id: RequestId) -> String {
        A::told(&self.answer(id))
    }

    pub fn probe(&self, event: &str) -> u64 {
        self.world.probe(event)
    }

    /// Panics unless this is what is recorded under `name`.
    pub fn check(self, name: &str) {
        golden::check(name, &self.text);
    }
}
