//! One site seals an epoch: what it says first, and what its clients are told.

use super::*;
use crate::asked::{Agreed, Asked, Asker};
use crate::bench::Bench;
use crate::config::{BACKLOG_MAX, BATCH_MAX};
use crate::lone::{Lone, Said, answer};
use crate::message::{Answer, Entry, Forwarded, Identifier, Note, Order, Promise, Request};
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::actor::RequestId;
use rhumb_core::{RegionId, SiteId};

const ME: SiteId = SiteId::new(0, 0);
/// Another region, and one that stands still.
const TALKS: StreamId = StreamId::first(RegionId(1));
const SILENT: StreamId = StreamId::first(RegionId(2));

fn read(key: usize) -> Transaction {
    Operation::Read { key: format!("k{key}").as_str().into() }.into()
}

fn unavailable(said: &[Said], id: RequestId) -> Option<String> {
    match answer(said, id) {
        Some(Answer::Failed(TxnError::Unavailable(why))) => Some(why.to_string()),
        _ => None,
    }
}

#[test]
fn while_a_stream_stands_still_a_bounded_number_of_transactions_waits() {
    let mut site = Lone::new(ME);
    let begin = site.sealed();
    let end = begin.plus((BACKLOG_MAX / BATCH_MAX) as u64);
    for epoch in begin.plus(1).0..end.0 {
        site.hear_entry(TALKS, Epoch(epoch), (0..BATCH_MAX).map(read).collect());
    }
    assert_eq!(unavailable(&site.run(1, read(0)), 1), None, "there is room");
    site.hear_entry(TALKS, end, (0..BATCH_MAX).map(read).collect());
    let why =
        format!("{BACKLOG_MAX} transactions are agreed on and wait to be run; the epochs of c are known up to e0 only. Try again later");
    assert_eq!(unavailable(&site.run(2, read(0)), 2), Some(why));
    // The stream goes on: all is run, and clients are served again.
    site.hear_nothing_of_others(end, &[TALKS]);
    site.end_epoch();
    assert_eq!(site.site.status().settled, end);
    assert_eq!(unavailable(&site.run(3, read(0)), 3), None);
}

#[test]
fn while_too_much_waits_a_site_asks_only_for_more_of_what_all_wait_for() {
    let mut site = Lone::new(ME);
    let begin = site.sealed();
    site.hear_entry(TALKS, begin, Vec::new());
    site.site.backlog_mut().add(&vec![read(0); BACKLOG_MAX]);
    // Of both streams it has missed entries.
    for (stream, index) in [(TALKS, 3), (SILENT, 2)] {
        let entries = vec![Entry { author: stream.head(), epoch: begin.plus(index), batch: Vec::new(), orders: Vec::new() }];
        site.hear(stream.head(), Promise::Epoch { stream, ballot: stream.first_ballot(), first: index, entries });
    }
    let pulled = |said: Vec<Said>| -> Vec<StreamId> {
        let pulled = said.into_iter().filter_map(|said| match said {
            Said::Note(_, Note::Pull { stream, .. }) => Some(stream),
            _ => None,
        });
        let mut pulled: Vec<StreamId> = pulled.collect();
        pulled.dedup();
        pulled
    };
    assert_eq!(pulled(site.end_epoch()), [SILENT]);
    (0..BACKLOG_MAX).for_each(|_| site.site.backlog_mut().remove(&read(0)));
    assert_eq!(pulled(site.end_epoch()), [TALKS], "what it did not ask for it asks for then");
}

#[test]
fn while_a_stream_stands_still_the_way_of_a_bounded_number_of_epochs_is_measured() {
    let mut site = Lone::new(ME);
    for id in 0..MEASURED_MAX as u64 + 10 {
        site.ask(id, Request::Read { keys: vec!["k".into()], ranges: vec![], reverse: false, freshness: Freshness::Strict });
        site.end_epoch();
    }
    assert_eq!(site.table("coordinator.ended"), MEASURED_MAX);
}

#[test]
fn the_way_of_an_epoch_that_nobody_waits_for_any_more_is_not_measured() {
    let config = crate::config::Config::default();
    let deadline = config.deadline_epochs;
    // Nobody else says anything.
    let mut site = Lone::with(ME, config);
    site.run(1, read(0));
    site.end_epoch();
    assert_eq!(site.table("coordinator.ended"), 1);
    let said = site.end_epochs(deadline + 1);
    assert!(matches!(answer(&said, 1), Some(Answer::Failed(TxnError::Unknown(_)))));
    assert_eq!(site.table("coordinator.ended"), 0);
}

/// This site's stream, and a moment in which epoch 7 ends.
const OWN: StreamId = StreamId::first(RegionId(0));
const MOMENT: Moment = Moment { due: Epoch(7), takes_more: true, is_far_ahead: false, is_quiet: false };

/// A coordinator with a client's transaction in its queue, one that another site has forwarded, and a strict read.
fn coordinator_with_requests(bench: &mut Bench) -> Coordinator {
    let mut coordinator = Coordinator::new(2);
    let name = Forwarded { incarnation: Epoch(1), number: 1 };
    let site = Asker::Site { site: SiteId::new(0, 1), name, until: Epoch(9) };
    for by in [Asker::Client(1), site] {
        coordinator.stream_mut(OWN).queue(Asked { by, transaction: read(0), since: 0, stays: false });
    }
    let wanted = crate::reads::Wanted { keys: vec![], ranges: vec![], reverse: false };
    let log = bench.log();
    let read = bench.quietly(|cx| crate::reads::Reads::default().on_read(2, wanted, Freshness::Strict, &log.epochs, cx));
    coordinator.stream_mut(OWN).read_strictly(read.expect("an epoch is to be sealed for it"));
    coordinator
}

#[test]
fn what_waits_is_sealed_and_agreed_on_by_its_place_in_the_batch() {
    let mut bench = Bench::new(ME);
    let log = bench.log();
    let mut coordinator = coordinator_with_requests(&mut bench);
    coordinator.stream_mut(OWN).vote([Order { epoch: Epoch(5), sequence: vec![] }]);
    let sealed = bench.quietly(|cx| coordinator.seal(OWN, &MOMENT, &log, cx)).expect("there is a new epoch");
    assert_eq!((sealed.entry.author, sealed.entry.epoch, sealed.entry.batch.len(), sealed.entry.orders.len()), (ME, Epoch(7), 2, 1));
    assert_eq!(sealed.forwarded.iter().map(|sealing| (sealing.site, sealing.place)).collect::<Vec<_>>(), [(SiteId::new(0, 1), 1)]);
    assert_eq!((coordinator.epoch(), coordinator.reads(), coordinator.is_idle()), (Epoch(7), 1, false));
    assert_eq!(bench.quietly(|cx| coordinator.seal(OWN, &MOMENT, &log, cx)), None, "an epoch is sealed once");
    let Confirmed { agreed, reads } =
        bench.quietly(|cx| coordinator.stream_mut(OWN).confirm(OWN, &sealed.entry, cx)).expect("this site has sealed it");
    let identifier = Identifier { epoch: Epoch(7), stream: OWN, place: 0 };
    assert_eq!((agreed, reads.len()), (vec![Agreed { identifier, client: 1, since: 0 }], 1));
    bench.quietly(|cx| coordinator.take_back_lost(OWN, Epoch(7), cx));
    assert!(coordinator.is_idle());
    coordinator.measure_settling(Epoch(7), Time::from_micros(5));
    assert_eq!(coordinator.settling().epochs, 1);
}

#[test]
fn what_is_sealed_in_vain_is_sealed_again_before_all_that_came_later() {
    let mut bench = Bench::new(ME);
    let log = bench.log();
    let mut coordinator = coordinator_with_requests(&mut bench);
    bench.quietly(|cx| coordinator.seal(OWN, &MOMENT, &log, cx)).expect("there is a new epoch");
    coordinator.stream_mut(OWN).queue(Asked { by: Asker::Client(3), transaction: read(3), since: 0, stays: false });
    assert_eq!(bench.effects(|cx| coordinator.take_back_lost(OWN, Epoch(7), cx)), ["count catenae.lost_batch"]);
    let moment = Moment { due: Epoch(8), ..MOMENT };
    let sealed = bench.quietly(|cx| coordinator.seal(OWN, &moment, &log, cx)).expect("there is a new epoch");
    assert_eq!(sealed.entry.batch, [read(0), read(0), read(3)]);
}

#[test]
fn clients_are_told_what_is_known_when_they_have_waited_too_long() {
    let mut bench = Bench::new(ME);
    let log = bench.log();
    let mut coordinator = coordinator_with_requests(&mut bench);
    bench.quietly(|cx| coordinator.seal(OWN, &MOMENT, &log, cx)).expect("there is a new epoch");
    coordinator.stream_mut(OWN).queue(Asked { by: Asker::Client(3), transaction: read(3), since: 0, stays: false });
    let told = bench.effects(|cx| coordinator.expire(0, false, cx));
    let in_doubt = TxnError::Unknown("the other regions have not confirmed it in time".into());
    assert_eq!(
        (told.len(), told[1].as_str()),
        (3, format!("answer 1: failed: {in_doubt}").as_str()),
        "what was not sealed first: {told:?}"
    );
    assert!(told[0].starts_with("answer 3: ") && told[2].starts_with("answer 2: "));
    assert!(coordinator.is_idle());
}
