//! Puts the clients' load on a world of any system, and measures.
//!
//! The world stands still whenever a client is due or an answer has come; then the clients act, and it goes on. After
//! every answer the tokens that clients certainly hold are held against the limit: a run that exceeds it ends in an error.

use super::client::{Ask, Client, Next};
use super::meter::Meter;
use super::parameters::{CREATION_MAX, DRAINING, SETTLING};
use super::setup::Setup;
use crate::experiment::Progress;
use rhumb_bench::workloads::quota::trace::Demand;
use rhumb_core::actor::{Actor, RequestId};
use rhumb_core::{Rng, SiteId, Span, Time};
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::operation::Operation;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::Spec;
use rhumb_sim::{Fault, Reply, SimError, World};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a run has no result. Each is a finding about the system measured.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LoadError {
    #[error(transparent)]
    Sim(#[from] SimError),
    #[error("the quota was not made within a minute: {0}")]
    NotCreated(String),
    #[error("at {at}: clients hold {held} tokens of a limit of {limit}")]
    Overrun { at: Time, held: u64, limit: u64 },
    #[error("{site} answers something else than it was asked: {answer}")]
    Nonsense { site: SiteId, answer: String },
}

/// A site with a client, and what the client shares its fate with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The site that the client asks.
    pub site: SiteId,
    /// The region whose demand the client replays.
    pub region: usize,
}

/// A fault, and the clients that end with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Blow {
    /// How long after the start.
    pub at: Span,
    /// What strikes.
    pub faults: Vec<Fault>,
    /// Which clients end, by their place in the list.
    pub clients: Vec<usize>,
}

/// What a run is about, for one system.
pub struct Load<'a> {
    /// The run.
    pub setup: &'a Setup,
    /// What the quota is to be.
    pub spec: Spec,
    /// Where the clients are.
    pub places: &'a [Place],
    /// What goes wrong, in order of time.
    pub blows: &'a [Blow],
    /// False for the system without a limit.
    pub limited: bool,
}

/// A request under way.
struct Sent {
    client: usize,
    ask: Ask,
    at: Time,
}

struct Run<'a, A: Actor> {
    world: &'a mut World<A>,
    load: &'a Load<'a>,
    quota: Name,
    start: Time,
    clients: Vec<Client>,
    under_way: BTreeMap<RequestId, Sent>,
    meter: Meter,
}

/// Runs `load` on `world`.
pub fn run<A>(world: &mut World<A>, load: &Load<'_>, progress: &mut dyn Progress) -> Result<Meter, LoadError>
where
    A: Actor<Request = Request, Answer = Answer>,
{
    let quota = Name::new("vm").expect("a fine name");
    create(world, load, &quota)?;
    let start = world.now();
    let setup = load.setup;
    let clients = load.places.iter().enumerate().map(|(index, place)| {
        let (moments, reads) = client_rngs(setup, index);
        let demand = Demand::new(place.region, setup.points, setup.interval, moments);
        Client::new(place.site, (demand, start), setup.connections, f64::from(setup.read_percent) / 100.0, reads)
    });
    let clients = clients.collect();
    let meter = Meter::new(setup.length(), client_rngs(setup, load.places.len()).0);
    let mut run = Run { world, load, quota, start, clients, under_way: BTreeMap::new(), meter };
    run.whole(progress)?;
    Ok(run.meter)
}

/// What decides the moments of client number `index`, and which of its transactions are reads.
pub(super) fn client_rngs(setup: &Setup, index: usize) -> (Rng, Rng) {
    let mut rng = Rng::seeded(setup.seed);
    (0..index).for_each(|_| drop(rng.fork()));
    let mut own = rng.fork();
    (own.fork(), own.fork())
}

/// Makes the quota and lets every site learn of it. Asked again as long as nobody is there to make it.
fn create<A>(world: &mut World<A>, load: &Load<'_>, name: &Name) -> Result<(), LoadError>
where
    A: Actor<Request = Request, Answer = Answer>,
{
    let deadline = world.now() + CREATION_MAX;
    let mut why = String::from("nobody answers");
    while world.now() < deadline {
        world.submit(load.places[0].site, Request::Create { name: name.clone(), spec: load.spec.clone() });
        world.run_until_reply(deadline)?;
        match world.take_replies().pop().and_then(|reply| reply.answer) {
            Some(Answer::Changed(Ok(()) | Err(Refusal::Exists(_)))) => {
                world.run_for(SETTLING)?;
                return Ok(());
            }
            Some(Answer::Changed(Err(refusal))) => why = refusal.to_string(),
            _ => {}
        }
        world.run_for(Span::from_secs(1))?;
    }
    Err(LoadError::NotCreated(why))
}

impl<A> Run<'_, A>
where
    A: Actor<Request = Request, Answer = Answer>,
{
    fn whole(&mut self, progress: &mut dyn Progress) -> Result<(), LoadError> {
        let end = self.start + self.load.setup.length();
        let mut blows = self.load.blows.iter().peekable();
        let mut seconds = 0;
        while let Some((due, client)) = self.next_due() {
            let until = blows.peek().map_or(due, |blow| due.min(self.start + blow.at));
            self.pass_to(until)?;
            if let Some(blow) = blows.next_if(|blow| self.start + blow.at <= until) {
                self.strike(blow);
                continue;
            }
            self.clients[client].take_due();
            self.send_what_can_be_sent(client);
            let passed = self.world.now().since(self.start).as_micros() / 1_000_000;
            if passed > seconds {
                seconds = passed;
                progress.passed(seconds, self.load.setup.length().as_micros() / 1_000_000);
            }
        }
        self.pass_to(end)?;
        self.pass_to(end + DRAINING)?;
        self.meter.unanswered = self.under_way.len() as u64;
        Ok(())
    }

    /// The client that is due first, and when.
    fn next_due(&mut self) -> Option<(Time, usize)> {
        self.clients.iter_mut().enumerate().filter_map(|(index, client)| client.next_due().map(|due| (due, index))).min()
    }

    /// Lets the world run up to `until`, and the clients act on every answer.
    fn pass_to(&mut self, until: Time) -> Result<(), LoadError> {
        while self.world.run_until_reply(until)? {
            for reply in self.world.take_replies() {
                let client = self.take(reply)?;
                self.send_what_can_be_sent(client);
            }
            self.check_limit()?;
        }
        Ok(())
    }

    fn strike(&mut self, blow: &Blow) {
        for client in &blow.clients {
            self.clients[*client].crash(self.load.setup.length());
        }
        for fault in &blow.faults {
            self.world.strike(fault);
        }
    }

    fn send_what_can_be_sent(&mut self, index: usize) {
        let now = self.world.now();
        while let Some(next) = self.clients[index].next(now) {
            match next {
                Next::Void => self.meter.void += 1,
                Next::GiveUp => {
                    self.meter.offered += 1;
                    self.meter.given_up += 1;
                }
                Next::Send(ask) => {
                    self.meter.offered += 1;
                    let id = self.world.submit(self.clients[index].site, self.request(ask));
                    self.under_way.insert(id, Sent { client: index, ask, at: now });
                }
            }
        }
    }

    fn request(&self, ask: Ask) -> Request {
        let quota = self.quota.clone();
        let operation = |made: Result<Operation, Refusal>| Request::Run(vec![made.expect("one token is a fine amount")]);
        match ask {
            Ask::Acquire => operation(Operation::acquire(quota, 1, None)),
            Ask::Release => operation(Operation::release(quota, 1, None)),
            Ask::Read => Request::Get { name: quota, read: Read::Global },
        }
    }

    /// Counts a reply. Returns whose it was.
    fn take(&mut self, reply: Reply<Answer>) -> Result<usize, LoadError> {
        let Sent { client, ask, at } = self.under_way.remove(&reply.id).expect("the world replies to what it was asked");
        let outcome = match reply.answer {
            None => {
                self.meter.lost += 1;
                self.clients[client].finish(false);
                return Ok(client);
            }
            Some(answer) => outcome(ask, answer).map_err(|answer| LoadError::Nonsense { site: reply.site, answer })?,
        };
        match &outcome {
            Ok(()) => {
                let count = match ask {
                    Ask::Acquire => &mut self.meter.acquired,
                    Ask::Release => &mut self.meter.released,
                    Ask::Read => &mut self.meter.read,
                };
                *count += 1;
                self.meter.commit(reply.at.since(self.start), reply.at.since(at));
            }
            Err(refusal) => self.meter.refuse(refusal.code(), reply.at.since(at)),
        }
        // A release that was certainly not done leaves the token with its client.
        let kept = ask == Ask::Release && outcome.as_ref().is_err_and(Refusal::is_retryable);
        self.clients[client].finish(kept || (ask == Ask::Acquire && outcome.is_ok()));
        Ok(client)
    }

    fn check_limit(&self) -> Result<(), LoadError> {
        let held = self.clients.iter().map(Client::held).sum();
        let limit = self.load.setup.limit;
        if self.load.limited && held > limit {
            return Err(LoadError::Overrun { at: self.world.now(), held, limit });
        }
        Ok(())
    }
}

/// What became of the one thing that was asked; the answer as text if it is none to it.
fn outcome(ask: Ask, answer: Answer) -> Result<Result<(), Refusal>, String> {
    match (ask, answer) {
        (Ask::Acquire | Ask::Release, Answer::Ran(mut outcomes)) if outcomes.len() == 1 => Ok(outcomes.remove(0).map(|_| ())),
        (Ask::Read, Answer::Got(got)) => Ok(got.map(|_| ())),
        (_, answer) => Err(format!("{answer:?}")),
    }
}
