//! A protocol that nothing shared knows of fits as it is: clients, faults, checkers and report of the simulator, and the gateway that SQL
//! stands on.
//!
//! One site has all rows, in memory and on no disk, so that no site crashes here; links are cut, slow and lossy, and sites stand still. It runs
//! the transactions of all, one after the other: whoever begins has everything to itself until its end. The other sites pass on what their
//! clients ask.

use rhumb_commit::interactive::{Answer, Request};
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_core::actor::{Actor, Body, Input, RequestId};
use rhumb_core::{Effects, Inspect, Key, KeyRange, Row, SiteId, Span, Table, Time, Timestamp, TxnId, Value};
use rhumb_sim::{Config, FaultRates, World, kit};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fmt;

const OWNER: SiteId = SiteId::new(0, 0);
/// A transaction that has said nothing for so long is over.
const IDLE: Span = Span::from_secs(2);

/// What a site asks the owner for a client of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Ask {
    Begin,
    Get(TxnId, Vec<Key>),
    Scan(TxnId, KeyRange, u32, bool),
    Commit(TxnId, Vec<(Key, Option<Value>)>),
    Rollback(TxnId),
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Tell {
    Began(TxnId),
    /// Rows; of a scan the part of its range that they cover, and whether that is not all.
    Rows(Vec<Row>, Option<(KeyRange, bool)>),
    Committed(Timestamp),
    Done,
    /// The transaction is none that is open.
    Over,
    /// The same of one that was to commit: an earlier copy of the message may have committed it.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Note {
    Ask(RequestId, Ask),
    Tell(RequestId, Tell),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// One site.
struct Toy {
    me: SiteId,
    /// Of the owner: the rows, the transaction under way and when it was last heard of, and who waits to begin.
    rows: BTreeMap<Key, Row>,
    under_way: Option<(TxnId, Time)>,
    waiting: VecDeque<(SiteId, RequestId)>,
    last: Timestamp,
    /// What this site's clients wait for.
    asked: BTreeMap<RequestId, Time>,
    /// One rule broken: transactions run all at once.
    careless: bool,
}

impl Toy {
    fn new(me: SiteId, careless: bool) -> Toy {
        let (rows, waiting, asked) = (BTreeMap::new(), VecDeque::new(), BTreeMap::new());
        Toy { me, rows, under_way: None, waiting, last: Timestamp::ZERO, asked, careless }
    }

    fn serve(&mut self, now: Time, from: SiteId, id: RequestId, ask: Ask, fx: &mut Effects<Toy>) {
        let is_open = |txn: &TxnId| self.careless || self.under_way.is_some_and(|(open, _)| open == *txn);
        let told = match ask {
            Ask::Begin => {
                self.waiting.push_back((from, id));
                return self.begin_next(now, fx);
            }
            Ask::Get(txn, _) | Ask::Scan(txn, ..) | Ask::Rollback(txn) if !is_open(&txn) => Tell::Over,
            Ask::Commit(txn, _) if !is_open(&txn) => Tell::Unknown,
            Ask::Get(txn, keys) => {
                self.under_way = Some((txn, now));
                let missing = |key: &Key| Row { key: key.clone(), version: Timestamp::ZERO, value: None };
                Tell::Rows(keys.iter().map(|key| self.rows.get(key).cloned().unwrap_or_else(|| missing(key))).collect(), None)
            }
            Ask::Scan(txn, range, limit, reverse) => {
                self.under_way = Some((txn, now));
                let live = self.rows.range(range.start.clone()..range.end.clone()).map(|(_, row)| row.clone());
                let mut live: Vec<Row> = live.filter(|row| row.value.is_some()).collect();
                if reverse {
                    live.reverse();
                }
                let more = live.len() > limit as usize;
                live.truncate(limit as usize);
                let covered = match live.last().filter(|_| more).map(|last| last.key.clone()) {
                    Some(last) if reverse => KeyRange::new(last, range.end),
                    Some(last) => KeyRange::new(range.start, last.successor()),
                    None => range,
                };
                Tell::Rows(live, Some((covered, more)))
            }
            Ask::Commit(_, writes) => {
                self.under_way = None;
                let at = self.tick(now);
                self.rows.extend(writes.into_iter().map(|(key, value)| (key.clone(), Row { key, version: at, value })));
                Tell::Committed(at)
            }
            Ask::Rollback(_) => {
                self.under_way = None;
                Tell::Done
            }
        };
        self.tell(from, id, told, fx);
        self.begin_next(now, fx);
    }

    fn tick(&mut self, now: Time) -> Timestamp {
        self.last = Timestamp::from_time(now).max(self.last.next());
        self.last
    }

    fn begin_next(&mut self, now: Time, fx: &mut Effects<Toy>) {
        if self.under_way.is_none_or(|(_, heard)| self.careless || now.since(heard) > IDLE)
            && let Some((from, id)) = self.waiting.pop_front()
        {
            let txn = TxnId { began: self.tick(now), gateway: from };
            self.under_way = Some((txn, now));
            self.tell(from, id, Tell::Began(txn), fx);
        }
    }

    fn tell(&mut self, to: SiteId, id: RequestId, told: Tell, fx: &mut Effects<Toy>) {
        if to == self.me { self.answer(id, told, fx) } else { fx.send(to, Note::Tell(id, told)) }
    }

    fn answer(&mut self, id: RequestId, told: Tell, fx: &mut Effects<Toy>) {
        if self.asked.remove(&id).is_none() {
            return; // it was given up
        }
        fx.answer(
            id,
            match told {
                Tell::Began(txn) => Answer::Began { txn },
                Tell::Rows(rows, covered) => {
                    let more = covered.as_ref().is_some_and(|(_, more)| *more);
                    Answer::Rows { rows, covered: covered.map(|(covered, _)| covered), more, trips: 1, at: Timestamp::ZERO }
                }
                Tell::Committed(at) => Answer::Committed(Committed { at, trips: 1 }),
                Tell::Done => Answer::Done,
                Tell::Over => Answer::Failed(TxnError::Conflict("it took too long".into())),
                Tell::Unknown => Answer::Failed(TxnError::Unknown("it took too long".into())),
            },
        );
    }
}

impl Inspect for Toy {
    fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("asked", self.asked.len(), 64));
        visit(Table::new("waiting", self.waiting.len(), 64));
    }
}

impl Actor for Toy {
    type Note = Note;
    type Promise = Note;
    type Timer = ();
    type Request = Request;
    type Answer = Answer<Infallible>;

    fn step(&mut self, now: Time, input: Input<Toy>, fx: &mut Effects<Toy>) {
        match input {
            Input::Client { id, request } => {
                let ask = match request {
                    Request::Begin { .. } => Ask::Begin,
                    Request::Get { txn, keys, .. } => Ask::Get(txn, keys),
                    Request::Scan { txn, range, limit, reverse, .. } => Ask::Scan(txn, range, limit, reverse),
                    Request::Commit { txn, writes, .. } => Ask::Commit(txn, writes),
                    Request::Rollback { txn } => Ask::Rollback(txn),
                    Request::Admin(none) => match none {},
                };
                self.asked.insert(id, now);
                if self.me == OWNER { self.serve(now, OWNER, id, ask, fx) } else { fx.send(OWNER, Note::Ask(id, ask)) }
            }
            Input::Message { from, body: Body::Note(Note::Ask(id, ask)) } => self.serve(now, from, id, ask, fx),
            Input::Message { body: Body::Note(Note::Tell(id, told)), .. } => self.answer(id, told, fx),
            Input::Start | Input::Timer(()) => {
                fx.set_timer((), Span::from_millis(100));
                self.begin_next(now, fx);
                let lost: Vec<RequestId> = self.asked.iter().filter(|(_, at)| now.since(**at) > IDLE * 2).map(|(id, _)| *id).collect();
                for id in lost {
                    self.asked.remove(&id);
                    fx.answer(id, Answer::Failed(TxnError::Unknown("nobody answers".into())));
                }
            }
            Input::Message { .. } | Input::Loaded { .. } | Input::Persisted { .. } => unreachable!("it promises nothing and has no disk"),
        }
    }
}

/// What may happen to those who have no disk.
fn faults() -> FaultRates {
    let FaultRates { isolations, cuts, stalls, bad_links, span_max, links, .. } = FaultRates::stormy();
    FaultRates { isolations, cuts, stalls, bad_links, span_max, links, ..FaultRates::none() }
}

fn report(careless: bool, seed: u64) -> rhumb_sim::Report {
    let world = World::new(Config::of_regions(3, 1), seed, move |me, _| Toy::new(me, careless));
    kit::interactive(world, &faults(), seed)
}

#[test]
fn a_protocol_of_its_own_runs_under_the_simulator_as_it_is() {
    for seed in 0..10 {
        let report = report(false, seed);
        assert!(report.violation.is_none() && report.committed > 10, "{report}");
    }
}

#[test]
fn transactions_that_run_all_at_once_are_not_serializable() {
    let violations: Vec<String> = (0..10).filter_map(|seed| report(true, seed).violation).collect();
    assert_eq!(violations.len(), 10, "{violations:#?}");
    assert!(violations.iter().any(|violation| violation.starts_with("dirty write (G0): ")), "{violations:#?}");
    assert!(violations.iter().all(|violation| !violation.starts_with("no progress")), "{violations:#?}");
}
