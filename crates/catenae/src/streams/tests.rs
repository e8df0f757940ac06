//! What is read when an incarnation begins, and what is written while it lasts.

use super::*;
use crate::bench::Bench;
use crate::message::Note;
use rhumb_core::{Body, Loaded};

const ME: SiteId = SiteId::new(0, 0);
const STREAM: StreamId = StreamId::first(RegionId(0));

fn records(records: Vec<(Vec<u8>, Vec<u8>)>) -> Loaded {
    let records = records.into_iter().map(|(key, bytes)| (key.into(), bytes.into())).collect();
    Loaded::Records { records, more: false }
}

#[test]
fn promises_progress_and_each_stream_are_read_one_after_the_other() {
    let mut bench = Bench::new(ME);
    let mut streams = bench.quietly(|cx| Streams::new(cx));
    assert_eq!(bench.effects(|cx| streams.recover(cx)), ["load promise records"]);
    let (recovered, effects) = bench.act(|cx| streams.on_recovered(records(vec![]), cx));
    assert_eq!((recovered, effects), (None, vec!["load progress records".into()]));
    let progress = Progress { settled: Epoch(7), entries: vec![(3, Epoch(7)); 6] };
    let written = rhumb_core::record::encode(&progress);
    let (recovered, effects) = bench.act(|cx| streams.on_recovered(records(vec![(vec![], written.to_vec())]), cx));
    assert_eq!(recovered, Some(Recovered::Settled(Epoch(7))));
    assert_eq!(effects.len(), 1, "the oldest entry of the first stream");
    // Of each stream the oldest entry on disk, and those that are not settled.
    for _ in 0..11 {
        let (recovered, effects) = bench.act(|cx| streams.on_recovered(records(vec![]), cx));
        assert_eq!((recovered, effects.len()), (None, 1));
        assert!(!streams.are_recovered());
    }
    assert_eq!(bench.quietly(|cx| streams.on_recovered(records(vec![]), cx)), Some(Recovered::All));
    assert_eq!((streams.view(STREAM).chosen(), streams.view(STREAM).covered()), (3, Epoch(7)));
}

#[test]
fn a_promise_waits_for_its_write_and_the_agreement_hears_of_it() {
    let mut bench = Bench::new(ME);
    let held = Promise::Held { stream: STREAM, ballot: STREAM.first_ballot(), upto: 4 };
    let persist = Effect::Persist { batch: Batch::new(), then: vec![(SiteId::new(1, 0), held)], durable: Some((STREAM.first_ballot(), 4)) };
    assert_eq!(bench.effects(|cx| carry_out(STREAM, persist, cx)), ["sync; then to r1.0: Held r0 0@r0.0 #4"]);
    assert!(matches!(bench.quietly(|cx| cx.jobs.end(1)), Job::Held { id: STREAM, upto: 4, .. }));
    let pull = Effect::Send { to: SiteId::new(1, 0), note: Note::Pull { stream: STREAM, after: 4 } };
    assert_eq!(bench.effects(|cx| carry_out(STREAM, pull, cx)), ["to r1.0: Pull r0 after #4"]);
}

#[test]
fn progress_is_written_and_told_now_and_then_and_less_often_where_it_is_quiet() {
    let mut bench = Bench::new(ME);
    let mut streams = bench.quietly(|cx| Streams::new(cx));
    let mut clean_up = |ticks, is_quiet| {
        bench.effects(|cx| {
            cx.ticks = ticks;
            streams.clean_up(Epoch(9), is_quiet, cx);
        })
    };
    assert_eq!(clean_up(PROGRESS_EVERY + 1, false), [""; 0]);
    assert_eq!(clean_up(PROGRESS_EVERY, true), [""; 0]);
    let others = ["r0.1", "r1.0", "r1.1", "r2.0", "r2.1"].map(|site| format!("; then to {site}: Settled e9"));
    assert_eq!(clean_up(PROGRESS_EVERY, false), [format!("sync +progress{}", others.concat())]);
    assert_eq!(clean_up(PROGRESS_EVERY_QUIET, true).len(), 2, "versions are collected as well");
}

#[test]
fn messages_of_a_site_with_another_number_of_streams_are_not_understood() {
    let mut bench = Bench::new(ME);
    let streams = bench.quietly(|cx| Streams::new(cx));
    let understands = |stream| {
        let held = Promise::Held { stream, ballot: STREAM.first_ballot(), upto: 4 };
        let bodies = [Body::Promise(held), Body::Note(Note::Pull { stream, after: 4 })];
        bodies.map(|body| streams.understands(&body))
    };
    assert_eq!(understands(StreamId::new(RegionId(2), 1)), [true; 2]);
    assert_eq!(understands(StreamId::new(RegionId(2), 2)), [false; 2]);
    assert_eq!(understands(StreamId::new(RegionId(3), 0)), [false; 2]);
    let settled = |count| {
        streams.understands(&Body::Promise(Promise::Settled {
            progress: Progress { entries: vec![(3, Epoch(7)); count], ..Progress::default() },
        }))
    };
    assert_eq!([settled(6), settled(3)], [true, false]);
}
