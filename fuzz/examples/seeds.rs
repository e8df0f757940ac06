//! Writes `seeds/`: inputs that the decoders take, made by the encoders, for the fuzzer to begin with. Run it after a
//! change of format: `cargo run --example seeds` in this folder.

use rhumb_commit::catenae::epoch::Epoch;
use rhumb_commit::catenae::message as catenae;
use rhumb_commit::catenae::operation::{Expected, Operation, Transaction};
use rhumb_commit::catenae::stream_id::StreamId;
use rhumb_commit::placement::{Coordinators, Placement, Regions};
use rhumb_commit::quad::quorums::Quorums;
use rhumb_commit::quad::{Ballot, Carried, Configuration, Epoch as QuadEpoch, Goal, Stamped};
use rhumb_commit::quad::{message as quad, records as quad_records};
use rhumb_commit::replicated_commit::message::{Attempt, Denial, How, LogEntry, LogHead, Meta, Part, Query, RangeCheck, ReadCheck};
use rhumb_commit::replicated_commit::records::{self, LogRecord, PlacementRecord, PreparedRecord, VoteRecord};
use rhumb_commit::replicated_commit::{Measured, Note, Promise};
use rhumb_commit::transaction::Committed;
use rhumb_commit::votes::{Outcome, Refusal, Vote};
use rhumb_core::{Batch, Body, Key, KeyRange, RegionId, Row, SiteId, Span, Time, Timestamp, TxnId, Value, record};
use rhumb_forecast::{LstmConfig, Order, Spec};
use rhumb_node::config::{Catenae, Clock, Config, Limits, Listen, OwnSite, Quad, Quotas, Region, Storage, Wan};
use rhumb_node::frame::{Greeting, Greetings, Hello, Kind, NONCE_BYTES, Service, Side, encode};
use rhumb_node::lives::Progress;
use rhumb_node::http::Chaos;
use rhumb_node::secret::Secret;
use rhumb_node::transport::Direction;
use rhumb_store::{FjallEngine, FjallOptions, Store};
use std::convert::Infallible;
use std::fs;
use std::path::Path;

fn main() {
    let heard = Progress { life: 8, counts: [1, 2, 3, 4] };
    let hello = Hello { cluster: 7, site: SiteId::new(3, 1), to: SiteId::new(0, 0), life: 9, heard };
    let greetings = Greetings { connecting: Greeting { nonce: [1; NONCE_BYTES] }, accepting: Greeting { nonce: [0; NONCE_BYTES] } };
    let hello = hello.seal(&Secret::of([0; 32]), &greetings, Side::Connecting);
    write("hello", "hello", &[&greetings.connecting.encode()[..], &hello].concat());
    let messages =
        [Service::Commit, Service::Quotas, Service::Catenae, Service::Quad].map(|service| frame(Kind::Message(service), b"data")).concat();
    write("frame", "stream", &[frame(Kind::Ping, &[1; 8]), messages, frame(Kind::Pong, &[1; 8])].concat());
    for (number, message) in notes().map(Body::<Note, Promise>::Note).into_iter().chain(promises().map(Body::Promise)).enumerate() {
        write("message", &format!("{number:02}"), &postcard::to_stdvec(&message).expect("plain data"));
    }
    for (number, message) in catenae_messages().into_iter().enumerate() {
        write("message", &format!("catenae-{number:02}"), &postcard::to_stdvec(&message).expect("plain data"));
    }
    for (number, message) in quad_messages().into_iter().enumerate() {
        write("message", &format!("quad-{number:02}"), &postcard::to_stdvec(&message).expect("plain data"));
    }
    let log = LogRecord { attempt: attempt(), at: timestamp(), keys: vec![Key::from("key")] };
    write("record", "vote", &record::encode(&VoteRecord { meta: meta(), vote: Vote::Yes, outcome: Some(Outcome::Committed) }));
    write("record", "prepared", &record::encode(&PreparedRecord { meta: meta(), part: part() }));
    write("record", "log", &record::encode(&log));
    let placed = PlacementRecord { placement: placement(), settled: 1, copied: true, enter: Regions::NONE };
    write("record", "placement", &record::encode(&placed));
    write("record", "catenae-entry", &record::encode(&(catenae::Ballot::first(StreamId::first(RegionId(1))), entry())));
    write("record", "catenae-progress", &record::encode(&progress()));
    write("record", "catenae-promise", &[&[0, 1], &record::encode(&catenae::Ballot::first(StreamId::first(RegionId(1))))[..]].concat());
    let prepared = quad_records::PreparedRecord { txn: txn(), reads: vec![range()], writes: part().writes, committed: Some(timestamp()) };
    write("record", "quad-prepared", &record::encode(&prepared));
    let decision = quad_records::DecisionRecord { txn: txn(), at: timestamp(), participants: vec![SiteId::new(0, 1)] };
    write("record", "quad-decision", &record::encode(&decision));
    write("record", "quad-configuration", &record::encode(&configuration()));
    let goal = Goal::of(configuration().quorums, "why");
    let acceptor = quad_records::AcceptorRecord { promised: Ballot { round: 3, mover: None }, goal, accepted: None };
    write("record", "quad-acceptor", &record::encode(&acceptor));
    let base = quad_records::Base { holds: QuadEpoch(8), kept: QuadEpoch(3) };
    write("record", "quad-base", &record::encode(&base));
    write("record", "quad-difference", &quad_records::difference_key(QuadEpoch(7), &Key::from("key")));
    for (name, bytes) in quota_records() {
        write("quota_record", name, &bytes);
    }
    write("config", "two-regions.toml", config().to_toml().as_bytes());
    write("matrix", "three-regions.csv", b"# ms\nregion,a,b,c\na,0.5,10,20\nb,11,0.5,30\nc,20,30,0.5\n");
    write("resp", "array", b"*5\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n$1\r\n1\r\n$2\r\nID\r\n$3\r\na\0b\r\n");
    write("resp", "lines", b"ACQUIRE vm 1\r\n\nrelease 'v\\'m' \"\\x31\\n\"\n*0\r\n");
    for (name, chaos) in chaos() {
        write("chaos", name, serde_json::to_string(&chaos).expect("plain data").as_bytes());
    }
    for (name, spec) in models() {
        write("model", name, &saved(&spec));
    }
    write("tables", "workload.csv", b"# clients\nregion,clients,reads_per_txn\na,10,2.5\nc,1,0\n");
    write("tables", "prices.csv", b"region,replica_month,gigabyte_sent\na,100,0.09\nb,80.5,0.02\nc,90,0.1\n");
    write("tables", "groups.csv", b"region,provider\na,x\nb,y\nc,x\n");
    write("series", "two-columns.csv", b"# VMs\ntime,vms\n0,91\n5,61.5\n10,-2e3\n");
    let (journal, manifest) = engine_files();
    write("store_journal", "three-batches", &journal);
    write("store_manifest", "of-rows", &manifest);
}

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&folder).expect("a folder can be made");
    fs::write(folder.join(name), bytes).expect("writable");
}

fn frame(kind: Kind, data: &[u8]) -> Vec<u8> {
    let Ok(bytes) = encode(kind, Time::from_micros(1_700_000_000_000_000), |header| Ok::<_, Infallible>([&header, data].concat()));
    bytes
}

fn timestamp() -> Timestamp {
    Timestamp::from_time(Time::from_micros(1_700_000_000_000_000))
}

fn txn() -> TxnId {
    TxnId { began: timestamp(), gateway: SiteId::new(1, 0) }
}

fn attempt() -> Attempt {
    Attempt { txn: txn(), made: timestamp().next() }
}

fn meta() -> Meta {
    let electorate = Regions::first(3);
    Meta { attempt: attempt(), at: timestamp().next(), epoch: 1, electorate, two_rounds: false, coordinator: 0, participants: vec![0, 1] }
}

fn range() -> KeyRange {
    KeyRange::new(Key::from("a"), Key::from("c"))
}

fn part() -> Part {
    Part {
        reads: vec![ReadCheck { key: Key::from("a"), version: timestamp() }],
        ranges: vec![RangeCheck { range: range(), rows: vec![(Key::from("b"), timestamp())] }],
        writes: vec![(Key::from("a"), Some(Value::from("value"))), (Key::from("b"), None)],
    }
}

fn placement() -> Placement {
    let coordinators = [(RegionId(2), Coordinators { read: RegionId(1), commit: RegionId(0) })].into();
    Placement { coordinators, passives: RegionId(3).into(), former: vec![Regions::first(2)], ..Placement::everywhere(3) }
}

fn notes() -> [Note; 23] {
    let read = |query, how| Note::Read { read: 5, epoch: 1, txn: txn(), query, how };
    let row = Row { key: Key::from("a"), version: timestamp(), value: Some(Value::from("value")) };
    [
        read(Query::Keys(vec![Key::from("a")]), How::Lock),
        read(Query::Range { range: range(), limit: 10, reverse: true }, How::At(timestamp())),
        Note::Rows { read: 5, rows: vec![row], upto: Some(Key::from("b")), above: timestamp(), high: timestamp() },
        Note::Denied { read: 5, denial: Denial::Locked },
        Note::Denied { read: 5, denial: Denial::Collected(timestamp()) },
        Note::Release { txn: txn() },
        Note::Accept { meta: meta(), parts: vec![(0, part()), (1, Part::default())] },
        Note::Prepare { meta: meta(), part: part() },
        Note::CannotPrepare { attempt: attempt(), refusal: Refusal::TooOld(timestamp()) },
        Note::Unprepare { attempt: attempt() },
        Note::Apply { meta: meta(), part: Some(part()) },
        Note::AskVote { meta: meta() },
        Note::Fetch { seqs: vec![1, 300] },
        Note::Ping { sent: Time::from_micros(77), oldest: timestamp(), life: timestamp(), epoch: 1 },
        Note::Pong { sent: Time::from_micros(77) },
        Note::Handoff { origin: txn(), life: timestamp(), parts: vec![(0, part())], two_rounds: true },
        Note::HandedBack { origin: txn(), result: Ok(Committed { at: timestamp(), trips: 2 }) },
        Note::Heard { at: timestamp() },
        Note::Copy { attempt: attempt(), at: timestamp(), writes: part().writes },
        Note::AskPlacement,
        Note::AskStopped { placement: placement() },
        Note::CopyRows { from: Key::from("a"), epoch: 2 },
        Note::Measured(Measured { rtts: vec![(RegionId(1), Span::from_millis(21))], commits_milli: 12_500, reads_milli: 0 }),
    ]
}

fn promises() -> [Promise; 11] {
    let (after, end, seq, at) = (1, 9, 2, timestamp());
    [
        Promise::Prepared { attempt: attempt(), shard: 1 },
        Promise::Vote { meta: meta(), region: RegionId(2), vote: Vote::No(Refusal::Stale) },
        Promise::Forgotten { attempt: attempt(), region: RegionId(2), log_end: 9 },
        Promise::Applied { attempt: attempt(), shard: 1 },
        Promise::Confirmed { attempt: attempt(), region: RegionId(1) },
        Promise::Pull { after, safe: at, epoch: 2, settled: 1 },
        Promise::Log {
            after,
            heads: vec![LogHead { seq, attempt: attempt(), at }],
            end,
            more: true,
            closed: at,
            begins: 0,
            collected: at,
            epoch: 2,
        },
        Promise::Placed { placement: placement() },
        Promise::Stopped { epoch: 2, log_end: 9, read_upto: at },
        Promise::CopiedRows { from: Key::from("a"), rows: Vec::new(), next: Some(Key::from("b")), collected: at, epoch: 2 },
        Promise::Entries { entries: vec![LogEntry { seq, attempt: attempt(), at, writes: part().writes, partial: false }] },
    ]
}

fn identifier(place: u16) -> catenae::Identifier {
    catenae::Identifier { epoch: Epoch(170), stream: StreamId::new(RegionId(1), 1), place }
}

/// An entry with every kind of operation, and a vote.
fn entry() -> catenae::Entry {
    let (key, value) = (Key::from("key"), Value::from("value"));
    let expects = |expected| Operation::Compare { key: key.clone(), expected };
    let operations = vec![
        Operation::Scan { range: range(), limit: 9 },
        Operation::Unchanged { range: range(), rows: 2, since: timestamp() },
        expects(Expected::Version(timestamp())),
        expects(Expected::Value(Some(value.clone()))),
        Operation::Read { key: key.clone() },
        Operation::Write { key: key.clone(), value: value.clone() },
        Operation::Add { key: key.clone(), amount: -7 },
        Operation::Insert { key: key.clone(), value },
        Operation::Delete { key },
    ];
    let orders = vec![catenae::Order { epoch: Epoch(170), sequence: vec![identifier(1), identifier(0)] }];
    catenae::Entry { author: SiteId::new(1, 0), epoch: Epoch(171), batch: vec![Transaction::new(operations)], orders }
}

fn progress() -> catenae::Progress {
    catenae::Progress { settled: Epoch(160), entries: vec![(12, Epoch(160)), (300, Epoch(159))] }
}

fn catenae_messages() -> [Body<catenae::Note, catenae::Promise>; 16] {
    use catenae::{Note, Promise};
    let (stream, ballot) = (StreamId::first(RegionId(1)), catenae::Ballot { round: 300, site: SiteId::new(0, 1) });
    let crossing = catenae::Crossing { coordinator: SiteId::new(1, 0), began: Time::from_micros(77) };
    let (transaction, server) = (identifier(2), 3);
    let name = catenae::Forwarded { life: Epoch(7), number: 300 };
    let entries = vec![entry()];
    [
        Body::Note(Note::Visit { transaction, server }),
        Body::Note(Note::Pull { stream, after: 300 }),
        Body::Note(Note::Chosen { stream, first: 1, entries: entries.clone(), more: true }),
        Body::Note(Note::Prepare { stream, ballot, after: 3 }),
        Body::Note(Note::Refused { stream, promised: ballot }),
        Body::Note(Note::Cross { crossing, transaction, server }),
        Body::Note(Note::Claim { crossing, transaction, server, open: vec![identifier(0)] }),
        Body::Note(Note::Granted { crossing, transaction, server }),
        Body::Note(Note::Through { crossing, transaction }),
        Body::Note(Note::Forward { stream, name, until: Epoch(202), transaction: entry().batch.remove(0) }),
        Body::Promise(Promise::Epoch { stream, ballot, first: 7, entries }),
        Body::Promise(Promise::Held { stream, ballot, upto: 8 }),
        Body::Promise(Promise::Promised { stream, ballot, chosen: 6, accepted: vec![(7, ballot, entry())], more: true }),
        Body::Promise(Promise::Promised { stream, ballot: catenae::Ballot::CHOSEN, chosen: 0, accepted: vec![], more: false }),
        Body::Promise(Promise::Settled { progress: progress() }),
        Body::Promise(Promise::Sealed { name, index: 300, place: 1 }),
    ]
}

fn configuration() -> Configuration {
    let cores: Vec<SiteId> = (0..3).map(|region| SiteId::new(region, 0)).collect();
    let preference = (0..4).map(|region| (SiteId::new(region, 0), cores.clone())).collect();
    let first = Configuration::first(Quorums::Cores { cores, preference });
    Configuration { carried: vec![Carried { txn: txn(), at: timestamp() }], ..first }
}

fn quad_messages() -> Vec<Body<Stamped<quad::Note>, Stamped<quad::Promise>>> {
    use quad::{Cursor, Note, Promise, Query};
    let (txn, session, at, sent, number) = (txn(), timestamp(), timestamp(), Time::from_micros(77), 300);
    let ballot = Ballot { round: 3, mover: Some(SiteId::new(2, 0)) };
    let (before, configuration) = (QuadEpoch(8), Box::new(configuration()));
    let (first, row) = (SiteId::new(0, 0), Row { key: Key::from("a"), version: at, value: Some(Value::from("value")) });
    let commit = quad_records::CommitRecord { txn, at, writes: part().writes };
    let measured = quad::Measured { load_ppm: 250_000, rtt_micros: [(first, 86_000)].into(), ..quad::Measured::default() };
    let report =
        quad::Report { accepted: Some((ballot, configuration.clone())), holds: before, clock: at, unsettled: vec![Carried { txn, at }] };
    let read = |query| Note::Read { txn, number: 1, query };
    let pull = |after| Note::Pull { number, since: QuadEpoch(3), before, after };
    let notes = vec![
        Note::Ping { sent },
        Note::Pong { sent },
        Note::Measured { measured },
        Note::Join,
        read(Query::Keys(vec![Key::from("a")])),
        read(Query::Range { range: range(), limit: 9, reverse: true }),
        Note::Rows { txn, number: 1, session, rows: vec![row.clone()], more: true },
        Note::Confirm { txn, session },
        Note::Confirmed { txn },
        Note::Prepare { txn, session: Some(session), writes: part().writes },
        Note::Refused { txn, session: None },
        Note::Abort { txn },
        Note::Inquire { txn, committed: true },
        Note::Settled { txn },
        Note::Behind,
        Note::Decided { configuration: configuration.clone() },
        Note::Seal { ballot, goal: Goal::of(configuration.quorums.clone(), "why") },
        Note::Outbid { ballot },
        Note::Reconcile { ballot, anchor: first, sources: [first].into() },
        Note::Advances { ballot, pages: 2 },
        pull(Cursor::Start),
        pull(Cursor::Difference(vec![0, 1])),
        pull(Cursor::Row(Key::from("a"))),
        pull(Cursor::Commit(Some(txn))),
        Note::Differences { number, entries: vec![(Key::from("a"), at, before)], next: Some(Cursor::Commit(None)), whole: true },
        Note::Commits { number, commits: vec![commit], next: None },
        Note::Fetch { number, keys: vec![Key::from("a")] },
        Note::Copies { number, rows: vec![row] },
        Note::Accept { ballot, configuration },
    ];
    let promises = vec![
        Promise::Prepared { txn, clock: at },
        Promise::Commit { txn, at, participants: [SiteId::new(0, 0)].into() },
        Promise::Committed { txn },
        Promise::Sealed { ballot, report },
        Promise::Reconciled { ballot, copied: 7 },
        Promise::Accepted { ballot },
    ];
    let epoch = QuadEpoch(7);
    let notes = notes.into_iter().map(|note| Body::Note(epoch.says(note)));
    notes.chain(promises.into_iter().map(|promise| Body::Promise(epoch.says(promise)))).collect()
}

/// A record of every kind that a quota site keeps.
fn quota_records() -> [(&'static str, Vec<u8>); 6] {
    use rhumb_core::record::encode;
    use rhumb_quota::account::Account;
    use rhumb_quota::avantan::{Recent, any, majority};
    use rhumb_quota::catalog::{Definition, State};
    use rhumb_quota::list::{Entry, List};
    use rhumb_quota::name::Name;
    use rhumb_quota::spec::{Reallocation, Spec};
    use rhumb_quota::tokens::Tokens;
    let tokens = Tokens { left: 300, held: 7 };
    let site = SiteId::new(1, 0);
    let entry = Entry { site, version: 3, offered: tokens, kept: Tokens::default(), wanted: tokens, owed: 0 };
    let list = List { reallocation: Reallocation::default(), count: false, gathered: Some(2), entries: vec![entry.clone()] };
    let instance = any::Instance { leader: site, number: 4 };
    let current = any::Current { instance, entry: entry.clone(), accepted: Some(list.clone()) };
    let mut recent = Recent::default();
    recent.remember(instance, &list);
    let majority = majority::State { slot: 9, offer: Some(entry), offered_to: [(site, 2)].into(), ..majority::State::default() };
    let name = Name::new("vm").expect("a name");
    [
        ("catalog", encode(&State::default()).to_vec()),
        ("definition", encode(&Definition { name, spec: Spec::new(5_000), parent: None }).to_vec()),
        ("account", encode(&Account { tokens, version: 3, ..Account::default() }).to_vec()),
        ("majority", encode(&majority).to_vec()),
        ("any", encode(&any::State { number: 4, over: [(site, 3)].into(), current: Some(current) }).to_vec()),
        ("lists", encode(&recent).to_vec()),
    ]
}

fn config() -> Config {
    let address = |port: u16| format!("127.0.0.1:{port}").parse().expect("an address");
    Config {
        data_dir: "data".into(),
        cluster: "seed".into(),
        secret_file: "cluster.secret".into(),
        chaos: true,
        site: OwnSite { region: "california".into(), shard: 0 },
        listen: Listen { sql: address(5432), resp: Some(address(6379)), http: address(8080), peer: address(9001) },
        regions: ["california", "virginia"]
            .into_iter()
            .zip([9001, 9002])
            .map(|(name, port)| Region { name: name.into(), sites: vec![address(port)] })
            .collect(),
        wan: Some(Wan { profile: Some("paper_replicated_commit_5".into()), jitter_ms: 1.5, loss: 0.01, ..Wan::default() }),
        placement: None,
        clock: Clock::default(),
        storage: Storage::default(),
        quotas: Quotas::default(),
        catenae: Catenae::default(),
        quad: Quad::default(),
        limits: Limits::default(),
    }
}

fn chaos() -> [(&'static str, Chaos); 4] {
    let region = || Some("virginia".to_owned());
    [
        ("cut.json", Chaos::Cut { region: region(), shard: Some(0), direction: Direction::In }),
        ("slow.json", Chaos::Slow { region: region(), shard: None, extra_ms: 12.5 }),
        ("load.json", Chaos::Load { percent: 300, for_s: Some(60.5) }),
        ("heal.json", Chaos::Heal { region: None, shard: None }),
    ]
}

/// Every kind of model, small.
fn models() -> [(&'static str, Spec); 7] {
    let arima = |season| Spec::Arima(Order { p: 2, d: 1, q: 1, season });
    let lstm = LstmConfig { hidden: 2, window: 4, passes: 1, ..LstmConfig::with_periods(&[6], 1) };
    [
        ("random-walk", Spec::RandomWalk),
        ("moving-average", Spec::MovingAverage(3)),
        ("exponential", Spec::Exponential),
        ("seasonal-naive", Spec::SeasonalNaive(6)),
        ("arima", arima(None)),
        ("seasonal-arima", arima(Some(6))),
        ("lstm", Spec::Lstm(lstm)),
    ]
}

/// Such a model, trained.
fn saved(spec: &Spec) -> Vec<u8> {
    let series: Vec<f64> = (0..120).map(|epoch| f64::from(epoch * 37 % 101)).collect();
    let mut model = spec.build();
    model.train(&series, &mut |_| ()).expect("the series is long enough");
    model.save()
}

/// A journal of the engine, without the zeroes that it ends with; and the manifest of its rows behind what points to it.
fn engine_files() -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let store = Store::open(FjallEngine::open(folder.path(), FjallOptions::DEFAULT).expect("a new folder")).expect("a new store");
    for key in ["a", "b", "c"] {
        let mut batch = Batch::new();
        batch.put_version(Key::from(key), timestamp(), Some(Value::from("value")));
        store.apply(&batch).expect("writable");
        store.sync().expect("syncs");
    }
    drop(store);
    let engine = folder.path().join("engine");
    let mut journal = fs::read(engine.join("0.jnl")).expect("a journal");
    journal.truncate(journal.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
    let current = fs::read(engine.join("keyspaces/1/current")).expect("it points to a manifest");
    let number = u64::from_le_bytes(*current.first_chunk().expect("it begins with the number of a manifest"));
    let manifest = fs::read(engine.join(format!("keyspaces/1/v{number}"))).expect("a manifest");
    (journal, [current, manifest].concat())
}
