//! What the sites of Catenae say and keep.

use crate::{every, range, timestamp};
use rhumb_catenae::epoch::Epoch;
use rhumb_catenae::message::{Crossing, Entry, Forward, Forwarded, Identifier, Order, Progress, Standing, Visit};
use rhumb_catenae::stream_id::StreamId;
use rhumb_catenae::{Note, Promise, records};
use rhumb_commit::one_shot::operation::{Expected, Operation, Transaction};
use rhumb_core::fields::{By, Change};
use rhumb_core::record::encode;
use rhumb_core::{Ballot, Key, RegionId, SiteId, Time, Value};

const STREAM: StreamId = StreamId::first(RegionId(1));
const BALLOT: Ballot = Ballot { number: 300, leader: SiteId::new(0, 1) };
const NAME: Forwarded = Forwarded { incarnation: Epoch(7), number: 300 };

/// Every message that promises nothing.
pub fn notes() -> Vec<Note> {
    let (stream, ballot, name, transaction) = (STREAM, BALLOT, NAME, identifier(2));
    let visit = Visit { transaction, server: 3 };
    let crossing = Crossing { coordinator: SiteId::new(1, 0), began: Time::from_micros(77) };
    every(vec![
        Note::Visit(visit),
        Note::Pull { stream, after: 300 },
        Note::Chosen { stream, first: 1, entries: vec![entry()], more: true },
        Note::Prepare { stream, ballot, after: 3 },
        Note::Refused { stream, promised: ballot },
        Note::Cross { crossing, visit },
        Note::Claim { crossing, visit, open: vec![identifier(0)] },
        Note::Granted { crossing, visit },
        Note::Through { crossing, transaction },
        Note::Forward(Forward { stream, name, until: Epoch(202), transaction: entry().batch.remove(0) }),
    ])
}

/// Every message that promises something.
pub fn promises() -> Vec<Promise> {
    let (stream, ballot, name) = (STREAM, BALLOT, NAME);
    let accepted = (7..).zip(standings()).map(|(index, standing)| (index, standing, entry())).collect();
    every(vec![
        Promise::Epoch { stream, ballot, first: 7, entries: vec![entry()] },
        Promise::Held { stream, ballot, upto: 8 },
        Promise::Promised { stream, ballot, after: 6, chosen: 6, accepted, more: true },
        Promise::Settled { progress: progress() },
        Promise::Sealed { name, index: 300, place: 1 },
    ])
}

/// A record of every kind.
pub fn records() -> Vec<(&'static str, Vec<u8>)> {
    let names = ["accepted", "chosen"];
    let mut all: Vec<_> =
        names.into_iter().zip(standings()).map(|(name, standing)| (name, encode(&(standing, entry())).to_vec())).collect();
    all.extend([
        ("progress", encode(&progress()).to_vec()),
        ("promise", [&STREAM.to_be_bytes()[..], &encode(&BALLOT)].concat()),
        ("entry-key", records::entry_key(STREAM, 300)),
    ]);
    all
}

fn identifier(place: u16) -> Identifier {
    Identifier { epoch: Epoch(170), stream: StreamId::new(RegionId(1), 1), place }
}

fn standings() -> Vec<Standing> {
    every(vec![Standing::Accepted(BALLOT), Standing::Chosen])
}

/// An entry with every kind of operation, and a vote.
fn entry() -> Entry {
    let (key, value) = (Key::from("key"), Value::from("value"));
    let expected = every(vec![Expected::Version(timestamp()), Expected::Value(Some(value.clone()))]);
    let changes = every(vec![By::Setting(Some(value.0.clone())), By::Adding { amount: -7, least: -300, most: 300 }]);
    let changes = (1..).zip(changes).map(|(field, by)| Change { field, by }).collect();
    let mut operations = vec![
        Operation::Read { key: key.clone() },
        Operation::Scan { range: range(), limit: 9 },
        Operation::Write { key: key.clone(), value: value.clone() },
        Operation::Add { key: key.clone(), amount: -7 },
        Operation::Unchanged { range: range(), rows: 2, since: timestamp() },
        Operation::Insert { key: key.clone(), value },
        Operation::Delete { key: key.clone() },
        Operation::Amend { key: key.clone(), changes },
    ];
    operations.extend(expected.into_iter().map(|expected| Operation::Compare { key: key.clone(), expected }));
    let orders = vec![Order { epoch: Epoch(170), sequence: vec![identifier(1), identifier(0)] }];
    Entry { author: SiteId::new(1, 0), epoch: Epoch(171), batch: vec![Transaction::new(every(operations))], orders }
}

fn progress() -> Progress {
    Progress { settled: Epoch(160), entries: vec![(12, Epoch(160)), (300, Epoch(159))] }
}
