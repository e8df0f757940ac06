//! Clients of quotas. Each asks again, under the same request id, until it knows what became of an operation.

use super::ledger::Ledger;
use crate::client::{ClientEvent, ClientProgram, Next};
use rhumb_core::{Rng, SiteId, Span, Time};
use rhumb_quota::Site;
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, Operation, RequestKey};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::Spec;
use std::cell::RefCell;
use std::rc::Rc;

/// The longest pause between two operations.
const PAUSE_MAX: Span = Span::from_millis(200);
/// The pause before asking again.
const AGAIN_AFTER: Span = Span::from_millis(300);
/// Tokens of one operation at the most.
const AMOUNT_MAX: u64 = 12;
/// Tokens that a churner acquires.
const CHURNED: u64 = 2;

/// Acquires, releases, looks.
pub struct Client {
    number: u32,
    site: SiteId,
    names: Vec<Name>,
    until: Time,
    rng: Rng,
    ledger: Rc<RefCell<Ledger>>,
    operations: u64,
    doing: Doing,
}

#[derive(Clone)]
enum Doing {
    Nothing,
    Operation(Operation),
    /// An exact read, or another.
    Reading(Name, Read),
}

impl Client {
    /// The client of that number, of that site.
    pub fn new(number: u32, site: SiteId, names: Vec<Name>, until: Time, rng: Rng, ledger: Rc<RefCell<Ledger>>) -> Client {
        Client { number, site, names, until, rng, ledger, operations: 0, doing: Doing::Nothing }
    }

    fn begin(&mut self, now: Time) -> Next<Request> {
        if now >= self.until {
            return Next::Done;
        }
        let name = self.rng.pick(&self.names).expect("there are quotas").clone();
        if self.rng.chance(0.1) {
            let read = *self.rng.pick(&[Read::Local, Read::Global, Read::Exact]).expect("three of them");
            self.doing = Doing::Reading(name.clone(), read);
            self.ledger.borrow_mut().watch(self.number);
            return Next::Request(Request::Get { name, read });
        }
        let amount = self.rng.between(1, AMOUNT_MAX);
        let mut ledger = self.ledger.borrow_mut();
        // Mostly all tokens are out, so that every further one has to be found.
        let back = if self.rng.chance(0.45) { ledger.take(&name, amount) } else { 0 };
        self.operations += 1;
        let id = RequestKey::new(format!("{}-{}", self.number, self.operations)).expect("a short id");
        let operation = match back {
            0 => Operation::acquire(name, amount, Some(id)),
            back => Operation::release(name, back, Some(id)),
        };
        let operation = operation.expect("amounts are small");
        ledger.set_pending(&operation.quota, operation.amount, true);
        ledger.watch(self.number);
        drop(ledger);
        self.doing = Doing::Operation(operation.clone());
        self.ask(operation)
    }

    /// Asks once, or twice in one request: that makes no difference.
    fn ask(&mut self, operation: Operation) -> Next<Request> {
        let times = if self.rng.chance(0.2) { 2 } else { 1 };
        Next::Request(Request::Run(vec![operation; times]))
    }

    fn pause(&mut self) -> Next<Request> {
        self.doing = Doing::Nothing;
        Next::Wait(Span::from_micros(self.rng.below(PAUSE_MAX.as_micros())))
    }

    /// Nobody will ever tell what became of its operation, if it asked for one.
    fn give_up(&mut self) -> Next<Request> {
        if let Doing::Operation(operation) = &self.doing {
            self.ledger.borrow_mut().give_up(&operation.quota, operation.amount);
        }
        Next::Done
    }

    fn settle(&mut self, operation: &Operation, outcome: Result<(), Refusal>, now: Time) -> Next<Request> {
        let mut ledger = self.ledger.borrow_mut();
        ledger.set_pending(&operation.quota, operation.amount, false);
        match (operation.action, outcome) {
            (Action::Acquire, Ok(())) => ledger.acquired(&operation.quota, operation.amount, now),
            (Action::Release | Action::Free, Ok(())) => ledger.done += 1,
            (Action::Acquire, Err(refusal)) => {
                ledger.refused += 1;
                let wrong = match &refusal {
                    Refusal::Exceeded { quota, wanted } => {
                        let most = ledger.watched(self.number, quota).1.saturating_sub(operation.amount);
                        ledger.asks_anew && !ledger.declares && !ledger.is_churned(quota) && most + wanted <= ledger.lowest(quota)
                    }
                    Refusal::Unreachable { .. } | Refusal::Unavailable(_) => false,
                    _ => true,
                };
                if wrong {
                    ledger.find_wrong(format!("{now}: an acquisition was refused with: {refusal}"));
                }
            }
            (Action::Release | Action::Free, Err(refusal)) => {
                ledger.refused += 1;
                ledger.put_back(&operation.quota, operation.amount);
                if !matches!(refusal, Refusal::Unreachable { .. } | Refusal::Unavailable(_)) {
                    ledger.find_wrong(format!("{now}: a release of {} tokens that are held was refused with: {refusal}", operation.amount));
                }
            }
        }
        drop(ledger);
        self.pause()
    }
}

impl ClientProgram<Site> for Client {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match (event, self.doing.clone()) {
            (ClientEvent::Started, _) => self.pause(),
            (ClientEvent::Woken, Doing::Operation(operation)) => self.ask(operation),
            (ClientEvent::Woken, _) => self.begin(now),
            (ClientEvent::GatewayLost, _) if now >= self.until && self.ledger.borrow().declared.contains(&self.site) => self.give_up(),
            (ClientEvent::GatewayLost, Doing::Operation(_)) => {
                self.ledger.borrow_mut().lost += 1;
                Next::Wait(AGAIN_AFTER)
            }
            (ClientEvent::Answered(Answer::Ran(mut results)), Doing::Operation(operation)) => {
                let outcome = results.pop().expect("one operation, one outcome");
                if results.pop().is_some_and(|other| other != outcome) {
                    self.ledger.borrow_mut().find_wrong(format!("{now}: two answers for one request id, one of them {outcome:?}"));
                }
                let outcome = outcome.map(|_| ());
                if let Err(Refusal::DeclaredLost) = &outcome {
                    self.doing = Doing::Operation(operation);
                    return self.give_up();
                }
                // A site that recovers says nothing of what it did before.
                if let Err(Refusal::Unavailable(_)) = &outcome {
                    return Next::Wait(AGAIN_AFTER);
                }
                self.settle(&operation, outcome, now)
            }
            (ClientEvent::Answered(Answer::Got(Ok(info))), Doing::Reading(name, Read::Exact)) => {
                let mut ledger = self.ledger.borrow_mut();
                let (least, most) = ledger.watched(self.number, &name);
                // Of what is booked for lost sites nobody knows how much clients hold, and what churners do is in no books.
                let most = if ledger.declares || ledger.is_churned(&name) { u64::MAX } else { most };
                if !(least..=most).contains(&info.held()) {
                    ledger.find_wrong(format!("{now}: an exact read of {name} says {} held; it was {least} to {most}", info.held()));
                }
                drop(ledger);
                self.pause()
            }
            (ClientEvent::Answered(Answer::Got(Err(Refusal::DeclaredLost))), _) => Next::Done,
            _ => self.pause(),
        }
    }
}

/// Raises and lowers a limit.
pub struct Operator {
    name: Name,
    until: Time,
    rng: Rng,
    ledger: Rc<RefCell<Ledger>>,
    change: Option<u64>,
}

impl Operator {
    /// One that does so until then.
    pub fn new(name: Name, until: Time, rng: Rng, ledger: Rc<RefCell<Ledger>>) -> Operator {
        Operator { name, until, rng, ledger, change: None }
    }
}

impl ClientProgram<Site> for Operator {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match (event, self.change) {
            (ClientEvent::Answered(Answer::Changed(Ok(()))), Some(limit)) => {
                self.ledger.borrow_mut().limit_set(&self.name, limit);
                self.change = None;
                Next::Wait(Span::from_micros(self.rng.below(3_000_000)))
            }
            // To set the same limit again is harmless, and the only way to know it.
            (ClientEvent::Woken, Some(limit)) => Next::Request(Request::SetLimit { name: self.name.clone(), limit }),
            (_, Some(_)) => Next::Wait(AGAIN_AFTER),
            (ClientEvent::Woken, None) if now >= self.until => Next::Done,
            (ClientEvent::Woken, None) => {
                let limit = self.rng.between(20, 150);
                self.ledger.borrow_mut().limit_asked(&self.name, limit);
                self.change = Some(limit);
                Next::Request(Request::SetLimit { name: self.name.clone(), limit })
            }
            (_, None) => Next::Wait(Span::from_micros(self.rng.below(3_000_000))),
        }
    }
}

/// Makes a quota, acquires tokens of it and drops it, against others that do the same: what it is told is not what counts, but that all sites
/// agree, and that a quota above it has its tokens back in the end.
pub struct Churner {
    spec: Spec,
    until: Time,
    step: Churning,
}

/// What a churner does next.
#[derive(Clone, Copy)]
enum Churning {
    Create,
    Acquire,
    Drop,
}

impl Churner {
    /// The name of the quota.
    pub fn name() -> Name {
        Name::new("ephemeral").expect("a name")
    }

    /// One that does so until then; the quota stands below another one, or alone.
    pub fn new(until: Time, parent: Option<Name>) -> Churner {
        Churner { spec: Spec { parent, ..Spec::new(10) }, until, step: Churning::Create }
    }
}

impl ClientProgram<Site> for Churner {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match event {
            ClientEvent::Woken if now >= self.until => Next::Done,
            ClientEvent::Woken => {
                let name = Churner::name();
                let (request, then) = match self.step {
                    Churning::Create => (Request::Create { name, spec: self.spec.clone() }, Churning::Acquire),
                    Churning::Acquire => {
                        let acquire = Operation::acquire(name, CHURNED, None).expect("a small amount");
                        (Request::Run(vec![acquire]), Churning::Drop)
                    }
                    Churning::Drop => (Request::Drop { name }, Churning::Create),
                };
                self.step = then;
                Next::Request(request)
            }
            _ => Next::Wait(AGAIN_AFTER),
        }
    }
}
