//! What a site does with requests, to the effect: one that stands alone, held against a model that is a few numbers.

use proptest::prelude::*;
use rhumb_core::actor::{Body, Effect};
use rhumb_core::{Actor, Effects, Input, SiteId, Time, Topology, work};
use rhumb_quota::catalog::{self, Definition, Definitions, Made, QuotaId};
use rhumb_quota::lost::Settled;
use rhumb_quota::message::Note;
use rhumb_quota::name::Name;
use rhumb_quota::operation::{AMOUNT_MAX, Done, OPERATIONS_MAX, Operation, RequestKey};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::site::Timer;
use rhumb_quota::spec::Spec;
use rhumb_quota::window::REMEMBERED_TICKS;
use rhumb_quota::{Config, Site};
use rhumb_testkit::empty_store;
use rhumb_testkit::lone::{Lone, Said};
use std::collections::BTreeMap;

const NOW: Time = Time::from_micros(1_000_000);
const ME: SiteId = SiteId::new(0, 0);

/// A site of a cluster, of which no other ever answers.
struct Alone {
    lone: Lone<Site>,
    topology: Topology,
    requests: u64,
    /// Records written by the last request.
    written: usize,
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

impl Alone {
    fn new(regions: u16, config: Config) -> Alone {
        let topology = Topology::new((0..regions).map(|region| format!("region{region}")).collect(), 1);
        let lone = Lone::new(Site::new(ME, &topology, config), empty_store(), NOW);
        Alone { lone, topology, requests: 0, written: 0 }
    }

    /// A cluster of one site with the quota `vm`.
    fn with_limit(limit: u64) -> Alone {
        let mut alone = Alone::new(1, Config::default());
        let created = alone.ask(Request::Create { name: name("vm"), spec: Spec::new(limit) });
        assert_eq!(created, Some(Answer::Changed(Ok(()))));
        alone
    }

    /// Dies, and starts again.
    fn crash(&mut self) {
        self.lone.restart(Site::new(ME, &self.topology, Config::default()));
    }

    /// The answer, if there is one at once.
    fn ask(&mut self, request: Request) -> Option<Answer> {
        self.requests += 1;
        let before = self.lone.writes;
        let said = self.lone.ask(self.requests, request);
        self.written = self.lone.writes - before;
        said.into_iter().find_map(|said| match said {
            Said::Answer(id, answer) if id == self.requests => Some(answer),
            _ => None,
        })
    }

    /// The outcome of one operation, if it has one at once.
    fn run(&mut self, operation: Operation) -> Option<Result<Done, Refusal>> {
        match self.ask(Request::Run(vec![operation]))? {
            Answer::Ran(results) => results.first().cloned(),
            other => panic!("no outcome but {other:?}"),
        }
    }

    /// Left and held.
    fn tokens(&self) -> (u64, u64) {
        let (_, account) = self.lone.site.accounts().next().expect("there is a quota");
        (account.tokens.left, account.tokens.held)
    }
}

fn key(text: &str) -> Option<RequestKey> {
    Some(RequestKey::new(text.to_owned()).expect("an id"))
}

fn acquire(amount: u64) -> Operation {
    Operation::acquire(name("vm"), amount, None).expect("an amount")
}

fn release(amount: u64) -> Operation {
    Operation::release(name("vm"), amount, None).expect("an amount")
}

#[test]
fn an_acquisition_is_one_write_and_its_answer() {
    let mut alone = Alone::with_limit(10);
    assert_eq!(alone.run(acquire(4)), Some(Ok(Done { left: 6 })));
    assert_eq!((alone.written, alone.tokens()), (1, (6, 4)));
    assert_eq!(alone.run(Operation { id: key("a"), ..acquire(1) }), Some(Ok(Done { left: 5 })));
    assert_eq!((alone.written, alone.tokens()), (2, (5, 5)), "the account, and the answer under its id");
}

#[test]
fn what_a_quota_does_not_allow_is_refused_and_writes_nothing() {
    let mut alone = Alone::with_limit(10);
    let operations = vec![
        Operation { quota: name("none"), ..acquire(1) },
        acquire(11),
        acquire(AMOUNT_MAX),
        release(1),
        Operation { quota: name("none"), ..release(1) },
    ];
    let refused = alone.ask(Request::Run(operations));
    let expected = vec![
        Err(Refusal::Unknown(name("none"))),
        Err(Refusal::Exceeded { quota: name("vm"), wanted: 11 }),
        Err(Refusal::Exceeded { quota: name("vm"), wanted: AMOUNT_MAX }),
        Err(Refusal::NotHeld { quota: name("vm"), amount: 1 }),
        Err(Refusal::Unknown(name("none"))),
    ];
    assert_eq!(refused, Some(Answer::Ran(expected)));
    assert_eq!((alone.written, alone.tokens()), (0, (10, 0)));
}

#[test]
fn each_operation_of_a_request_stands_for_itself() {
    let mut alone = Alone::with_limit(10);
    let results = alone.ask(Request::Run(vec![acquire(7), acquire(11), release(8), release(2)]));
    let expected = vec![
        Ok(Done { left: 3 }),
        Err(Refusal::Exceeded { quota: name("vm"), wanted: 11 }),
        Err(Refusal::NotHeld { quota: name("vm"), amount: 8 }),
        Ok(Done { left: 5 }),
    ];
    assert_eq!(results, Some(Answer::Ran(expected)));
    assert_eq!(alone.tokens(), (5, 5));
}

#[test]
fn an_id_is_answered_again_in_the_next_incarnation_and_serves_no_other_operation() {
    let mut alone = Alone::with_limit(10);
    let operation = Operation { id: key("a"), ..acquire(4) };
    assert_eq!(alone.run(operation.clone()), Some(Ok(Done { left: 6 })));
    alone.crash();
    assert_eq!(alone.run(operation), Some(Ok(Done { left: 6 })));
    let reused = Some(Err(Refusal::IdReused("a".into())));
    assert_eq!(alone.run(Operation { id: key("a"), ..acquire(5) }), reused);
    assert_eq!(alone.run(Operation { id: key("a"), ..release(4) }), reused);
    assert_eq!((alone.written, alone.tokens()), (0, (6, 4)));
}

#[test]
fn an_id_is_refused_when_there_is_no_memory_for_it_and_known_for_a_minute() {
    let mut alone = Alone::new(1, Config { window_bytes: 1_000, ..Config::default() });
    assert_eq!(alone.ask(Request::Create { name: name("vm"), spec: Spec::new(100) }), Some(Answer::Changed(Ok(()))));
    let operation = |n: u64| Operation { id: key(&n.to_string()), ..acquire(1) };
    let outcomes: Vec<_> = (0..9).map(|n| alone.run(operation(n)).expect("it is answered at once")).collect();
    let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!((done, alone.tokens()), (5, (95, 5)), "{outcomes:?}");
    let refusals: Vec<&Refusal> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert!(refusals.iter().all(|refusal| refusal.is_retryable()), "{refusals:?}");
    assert_eq!(alone.run(acquire(1)), Some(Ok(Done { left: 94 })), "without an id there is nothing to remember");
    let mut ticks = 0;
    while alone.run(operation(9)).is_some_and(|outcome| outcome.is_err()) {
        assert_eq!(alone.run(operation(0)), Some(Ok(Done { left: 99 })), "it is answered again");
        alone.lone.step(Input::Timer(Timer::Tick));
        ticks += 1;
    }
    assert_eq!((ticks, alone.tokens()), (REMEMBERED_TICKS, (93, 7)));
}

#[test]
fn a_refused_id_may_be_used_again() {
    let mut alone = Alone::with_limit(10);
    assert!(alone.run(Operation { id: key("a"), ..acquire(11) }).is_some_and(|outcome| outcome.is_err()));
    assert_eq!(alone.run(Operation { id: key("a"), ..acquire(10) }), Some(Ok(Done { left: 0 })));
}

#[test]
fn a_site_that_is_not_yet_serving_says_so() {
    let topology = Topology::new(vec!["north".into()], 1);
    let mut site = Site::new(ME, &topology, Config::default());
    let mut fx = Effects::new(false);
    site.step(NOW, Input::Client { id: 1, request: Request::Run(vec![acquire(1), release(1)]) }, &mut fx);
    let effects = fx.take();
    let Some(Effect::Answer { id: 1, answer: Answer::Ran(results) }) = effects.first() else { panic!("it was not answered at once") };
    assert_eq!((effects.len(), results.len()), (1, 2));
    assert!(results.iter().all(|result| matches!(result, Err(Refusal::Unavailable(_)))));
}

#[test]
fn bad_changes_are_refused() {
    let mut alone = Alone::with_limit(10);
    let mut change = |request| match alone.ask(request) {
        Some(Answer::Changed(Err(refusal))) => refusal,
        other => panic!("not refused but {other:?}"),
    };
    assert_eq!(change(Request::Create { name: name("vm"), spec: Spec::new(1) }), Refusal::Exists(name("vm")));
    assert!(matches!(change(Request::Create { name: name("x"), spec: Spec::new(AMOUNT_MAX + 1) }), Refusal::Invalid(_)));
    let orphan = Spec { parent: Some(name("none")), ..Spec::new(1) };
    assert_eq!(change(Request::Create { name: name("x"), spec: orphan }), Refusal::Unknown(name("none")));
    assert_eq!(change(Request::SetLimit { name: name("none"), limit: 1 }), Refusal::Unknown(name("none")));
    assert!(matches!(change(Request::SetLimit { name: name("vm"), limit: AMOUNT_MAX + 1 }), Refusal::Invalid(_)));
    assert_eq!(change(Request::Drop { name: name("none") }), Refusal::Unknown(name("none")));
    assert_eq!(alone.tokens(), (10, 0));
}

/// A site of three, with the quota `vm` and thousands below it.
fn with_thousands_below() -> Alone {
    const CHILDREN: u64 = 5_000;
    let mut alone = Alone::new(3, Config::default());
    let define = |id: u64, name: Name, limit, parent| {
        (QuotaId(id), Definition { name, spec: Spec::new(limit), parent, highest: limit, settled: Settled::default(), closing: false })
    };
    let children = (1..=CHILDREN).map(|n| define(n, name(&format!("vm{n}")), 30, Some(QuotaId(0))));
    let quotas = [define(0, name("vm"), 30_000, None)].into_iter().chain(children).collect();
    let definitions = Definitions::new(quotas, Made { created: CHILDREN + 1, ..Made::default() });
    let note = Note::Catalog(catalog::Note::State { slot: CHILDREN + 1, definitions });
    alone.lone.step(Input::Message { from: SiteId::new(1, 0), body: Body::Note(note) });
    alone
}

#[test]
fn the_work_of_operations_does_not_grow_with_the_number_of_quotas() {
    let below = |n: u64| Operation { quota: name(&format!("vm{n}")), ..acquire(1) };
    let mut alone = with_thousands_below();
    // What each quota of a chain of two is looked at for, a few times.
    let few = 16;
    let (waits, work) = work::measure(|| alone.run(Operation { amount: 11, ..below(1) }));
    assert_eq!(waits, None, "the site has ten of them");
    assert!((1..=few).contains(&work), "{work} units for an operation that waits");
    let all = OPERATIONS_MAX as u64;
    let (answer, work) = work::measure(|| alone.ask(Request::Run(vec![acquire(1); OPERATIONS_MAX])));
    assert!(matches!(answer, Some(Answer::Ran(results)) if results.iter().all(Result::is_ok)));
    assert!((all..=all * few).contains(&work), "{work} units for {all} acquisitions while one operation waits");
    let (answer, work) = work::measure(|| alone.ask(Request::Run(vec![release(1); OPERATIONS_MAX])));
    assert!(matches!(answer, Some(Answer::Ran(results)) if results.iter().all(Result::is_ok)));
    assert!((all..=all * few).contains(&work), "{work} units for {all} releases while one operation waits");
    // What cannot be let go by an operation is not looked at for it.
    for n in 2..=1_000 {
        assert_eq!(alone.run(Operation { amount: 11, ..below(n) }), None, "{n} wait");
    }
    let (answer, work) = work::measure(|| alone.ask(Request::Run(vec![acquire(1); OPERATIONS_MAX])));
    assert!(matches!(answer, Some(Answer::Ran(results)) if results.iter().all(Result::is_ok)));
    assert!((all..=all * few).contains(&work), "{work} units for {all} acquisitions while a thousand acquisitions wait");
}

/// A step of the random client.
#[derive(Clone, Debug)]
enum Step {
    Acquire(u64, Option<u8>),
    Release(u64, Option<u8>),
    Limit(u64),
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = || prop::option::weighted(0.5, 0..6_u8);
    let step = prop_oneof![
        5 => (1..12_u64, id()).prop_map(|(amount, id)| Step::Acquire(amount, id)),
        5 => (1..12_u64, id()).prop_map(|(amount, id)| Step::Release(amount, id)),
        1 => (0..25_u64).prop_map(Step::Limit),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 1..60)
}

/// What a quota of one site is, told in three numbers and what was done under which id.
#[derive(Debug)]
struct Simple {
    limit: u64,
    held: u64,
    done: BTreeMap<u8, (bool, u64, u64)>,
}

impl Simple {
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.held)
    }

    /// What the site must answer; none: that it refuses, for whatever reason, or lets the operation wait.
    fn run(&mut self, acquires: bool, amount: u64, id: Option<u8>) -> Option<u64> {
        if let Some((a, n, left)) = id.and_then(|id| self.done.get(&id)) {
            return (*a == acquires && *n == amount).then_some(*left);
        }
        let allowed = if acquires { self.left() >= amount } else { self.held >= amount };
        if !allowed {
            return None;
        }
        self.held = if acquires { self.held + amount } else { self.held - amount };
        if let Some(id) = id {
            self.done.insert(id, (acquires, amount, self.left()));
        }
        Some(self.left())
    }
}

proptest! {
    #[test]
    fn a_site_that_stands_alone_is_three_numbers(steps in steps()) {
        let mut alone = Alone::with_limit(20);
        let mut simple = Simple { limit: 20, held: 0, done: BTreeMap::new() };
        for step in steps {
            match step {
                Step::Acquire(amount, id) | Step::Release(amount, id) => {
                    let acquires = matches!(step, Step::Acquire(..));
                    let operation = if acquires { acquire(amount) } else { release(amount) };
                    let id_text = id.map(|id| id.to_string());
                    let outcome = alone.run(Operation { id: id_text.and_then(|id| key(&id)), ..operation });
                    let outcome = outcome.expect("a site that stands alone has nobody to wait for");
                    prop_assert_eq!(outcome.ok().map(|done| done.left), simple.run(acquires, amount, id));
                }
                Step::Limit(limit) => {
                    simple.limit = limit;
                    let changed = alone.ask(Request::SetLimit { name: name("vm"), limit });
                    prop_assert_eq!(changed, Some(Answer::Changed(Ok(()))));
                }
                Step::Crash => alone.crash(),
            }
            prop_assert_eq!(alone.tokens(), (simple.left(), simple.held));
        }
    }
}
