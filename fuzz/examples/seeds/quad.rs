//! What the sites of QuAD say and keep.

use crate::{every, range, row, timestamp, txn, writes};
use rhumb_core::record::encode;
use rhumb_core::{Acceptor, Ballot, Key, SiteId, Time};
use rhumb_quad::message::{Cursor, Difference, Differences, Measured, Pull, Query, Report, Rows};
use rhumb_quad::quorums::{Choice, Quorums};
use rhumb_quad::records::{AcceptorRecord, Base, CommitRecord, DecisionRecord, PreparedRecord, difference_key};
use rhumb_quad::{Carried, Configuration, Cores, Epoch, Goal, Note, Promise};

const BALLOT: Ballot = Ballot { number: 3, leader: SiteId::new(2, 0) };
const FIRST: SiteId = SiteId::new(0, 0);
/// In which messages are said.
pub const EPOCH: Epoch = Epoch(7);

/// Every message that promises nothing.
pub fn notes() -> Vec<Note> {
    let (ballot, txn, session, sent, number) = (BALLOT, txn(), timestamp(), Time::from_micros(77), 300);
    let queries = every(vec![Query::Keys(vec![Key::from("a")]), Query::Range { range: range(), limit: 9, reverse: true }]);
    let mut notes: Vec<Note> = queries.into_iter().map(|query| Note::Read { txn, number: 1, query }).collect();
    notes.extend(cursors().into_iter().map(|after| Note::Pull(Pull { number, since: Epoch(3), before: Epoch(8), after })));
    notes.extend(quorums().into_iter().map(|quorums| Note::Seal { ballot, goal: goal(quorums) }));
    notes.extend([
        Note::Ping { sent },
        Note::Pong { sent, hears: vec![FIRST] },
        Note::Measured { measured: Measured { load_ppm: 250_000, rtt_micros: [(FIRST, 86_000)].into(), ..Measured::default() } },
        Note::Join,
        Note::Rows(Rows { txn, number: 1, session, rows: vec![row()], more: true }),
        Note::Confirm { txn, session },
        Note::Confirmed { txn },
        Note::Prepare { txn, session: Some(session), writes: writes() },
        Note::Refused { txn, session: None },
        Note::Abort { txn },
        Note::Inquire { txn, committed: true },
        Note::Settled { txn },
        Note::Behind,
        Note::Decided { configuration: configuration() },
        Note::Outbid { ballot },
        Note::Reconcile { ballot, anchor: FIRST, sources: [FIRST].into() },
        Note::Advances { ballot, pages: 2 },
        Note::Fetch { number, keys: vec![Key::from("a")] },
        Note::Accept { ballot, configuration: configuration() },
    ]);
    every(notes)
}

/// Every message that promises something.
pub fn promises() -> Vec<Promise> {
    let (ballot, txn, at, number) = (BALLOT, txn(), timestamp(), 300);
    let report = Report { accepted: Some((ballot, configuration())), holds: Epoch(8), clock: at, unsettled: vec![carried()] };
    let entries = vec![Difference { key: Key::from("a"), version: at, epoch: Epoch(8) }];
    every(vec![
        Promise::Prepared { txn, clock: at },
        Promise::Commit { txn, at, participants: [FIRST].into() },
        Promise::Committed { txn },
        Promise::Sealed { ballot, report },
        Promise::Reconciled { ballot, copied: 7 },
        Promise::Accepted { ballot },
        Promise::Differences(Differences { number, entries, next: Some(Cursor::Commit(None)), whole: true }),
        Promise::Commits { number, commits: vec![commit()], next: None },
        Promise::Copies { number, rows: vec![row()] },
    ])
}

/// A record of every kind.
pub fn records() -> [(&'static str, Vec<u8>); 7] {
    let mut acceptor = Acceptor::default();
    acceptor.accept(BALLOT, configuration()).expect("its first ballot");
    let prepared = PreparedRecord { txn: txn(), reads: vec![range()], writes: writes(), committed: Some(timestamp()) };
    let decision = DecisionRecord { txn: txn(), at: timestamp(), participants: vec![SiteId::new(0, 1)] };
    [
        ("prepared", encode(&prepared).to_vec()),
        ("decision", encode(&decision).to_vec()),
        ("configuration", encode(&configuration()).to_vec()),
        ("acceptor", encode(&AcceptorRecord { acceptor, goal: goal(configuration().quorums) }).to_vec()),
        ("base", encode(&Base { holds: Epoch(8), kept: Epoch(3) }).to_vec()),
        ("aside", encode(&commit()).to_vec()),
        ("difference", difference_key(EPOCH, &Key::from("key"))),
    ]
}

fn cursors() -> Vec<Cursor> {
    every(vec![Cursor::Start, Cursor::Difference(vec![0, 1]), Cursor::Row(Key::from("a")), Cursor::Commit(Some(txn()))])
}

fn quorums() -> Vec<Quorums> {
    let sites: Vec<SiteId> = (0..3).map(|region| SiteId::new(region, 0)).collect();
    let (cores, preference) = (sites.clone(), (0..4).map(|region| (SiteId::new(region, 0), sites.clone())).collect());
    every(vec![
        Quorums::Cores { cores, preference },
        Quorums::Majority { sites: sites.clone(), choice: Choice::RoundRobin },
        Quorums::WriteAll { sites: sites.clone() },
        Quorums::Tree { sites: sites.clone() },
        Quorums::Grid { sites },
    ])
}

fn goal(quorums: Quorums) -> Goal {
    Goal { cores: Some(Cores::Auto), lost: [SiteId::new(4, 0)].into(), ..Goal::of(quorums, "why") }
}

fn carried() -> Carried {
    Carried { txn: txn(), at: timestamp() }
}

fn commit() -> CommitRecord {
    CommitRecord { txn: txn(), at: timestamp(), writes: writes() }
}

fn configuration() -> Box<Configuration> {
    let first = Configuration::first(quorums().swap_remove(0));
    Box::new(Configuration { carried: vec![carried()], ..first })
}
