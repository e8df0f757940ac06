//! A client's transaction, step by step: reads of a majority, one round of votes (the paper's sections 3.2.1 and 3.2.2).

use super::*;
use crate::message::{Meta, Rows, Voted};
use crate::testing::{ME, R1, R2, Stage, ms};
use rhumb_commit::transaction::CommitOptions;
use rhumb_commit::votes::{Refusal, Vote};
use rhumb_core::Row;

/// A stage on which a client has begun a transaction.
fn begun() -> (Stage, TxnId) {
    let mut stage = Stage::new(1);
    let said = stage.serve(|gateway, cx| gateway.on_begin(1, ReadMode::Locking, cx));
    assert!(said.len() == 1 && said[0].starts_with("answer 1: began"), "{said:?}");
    let txn = *stage.roles.gateway.txns.keys().next().expect("it began");
    (stage, txn)
}

/// A client commits a write of `w`; the attempt that is made.
fn committing() -> (Stage, Meta) {
    let (mut stage, txn) = begun();
    let writes = vec![("w".into(), Some("new".into()))];
    let said = stage.serve(|gateway, cx| gateway.on_commit(2, txn, writes, Vec::new(), CommitOptions::default(), cx));
    let meta = stage.roles.gateway.txns[&txn].committing.as_ref().expect("it commits").meta.clone();
    let accept = format!("Accept {} at {} 0:r{{}} w{{w}}", meta.attempt, meta.at);
    let mut wanted = [R1, R2, ME].map(|site| format!("to {site}: {accept}"));
    wanted.sort();
    let mut said = said;
    said.sort();
    assert_eq!(said, wanted, "one message to each region");
    (stage, meta)
}

fn vote(stage: &mut Stage, meta: &Meta, site: SiteId, vote: Vote) -> Vec<String> {
    let voted = Voted { meta: meta.clone(), region: site.region, vote, high: Timestamp::ZERO };
    stage.serve(|gateway, cx| gateway.on_vote(&voted, cx))
}

#[test]
fn a_commit_that_only_expects_a_version_asks_whether_it_is_current() {
    let (mut stage, txn) = begun();
    let expect = vec![("d".into(), ms(50))];
    let said = stage.serve(|gateway, cx| gateway.on_commit(2, txn, Vec::new(), expect, CommitOptions::default(), cx));
    let accepts = said.iter().filter(|said| said.contains("Accept") && said.contains("r{d"));
    assert!(said.len() == 3 && accepts.count() == 3, "one message to each region, and no answer: {said:?}");
}

#[test]
fn a_commit_of_nothing_is_answered_at_once() {
    let (mut stage, txn) = begun();
    let said = stage.serve(|gateway, cx| gateway.on_commit(2, txn, Vec::new(), Vec::new(), CommitOptions::default(), cx));
    assert!(said.iter().any(|said| said.starts_with("answer 2: committed")), "{said:?}");
}

#[test]
fn a_client_is_answered_by_the_second_of_three_yes_votes() {
    let (mut stage, meta) = committing();
    assert!(vote(&mut stage, &meta, ME, Vote::Yes).is_empty(), "one of three");
    let said = vote(&mut stage, &meta, R2, Vote::Yes);
    assert!(said.iter().any(|said| said.starts_with("answer 2: committed")), "{said:?}");
    let decided = Decision::Committed { floor: meta.at };
    for site in [ME, R1, R2] {
        assert!(said.contains(&format!("to {site}: Decided {} {decided}", meta.attempt)), "{site}: {said:?}");
    }
}

#[test]
fn a_client_is_told_of_an_abort_once_that_is_on_record_in_its_region() {
    let (mut stage, meta) = committing();
    vote(&mut stage, &meta, R1, Vote::No(Refusal::Stale));
    let said = vote(&mut stage, &meta, R2, Vote::No(Refusal::Stale));
    assert!(!said.iter().any(|said| said.starts_with("answer")), "{said:?}");
    let said = stage.serve(|gateway, cx| gateway.on_abort_on_record(ME, &meta, cx));
    assert!(said.iter().any(|said| said.starts_with("answer 2: failed")), "{said:?}");
}

#[test]
fn a_locking_read_asks_all_regions_and_takes_the_newest_version_among_two() {
    let (mut stage, txn) = begun();
    let reader = Reader { id: 3, txn, mode: ReadMode::Locking };
    let said = stage.serve(|gateway, cx| gateway.on_get(reader, vec!["r".into()], Vec::new(), cx));
    assert_eq!(said.len(), 3, "{said:?}");
    let read = *stage.roles.gateway.reads.keys().next().expect("it reads");
    let mut answer = |site: SiteId, version: u64| {
        let rows = vec![Row { key: "r".into(), version: ms(version), value: Some("old".into()) }];
        let zero = Timestamp::ZERO;
        let rows = Rows { read, rows, upto: None, above: zero, high: zero, floor: zero, collected: zero };
        stage.serve(|gateway, cx| gateway.on_rows(site, rows, cx))
    };
    assert!(answer(R1, 60).is_empty(), "one of three");
    let said = answer(R2, 70);
    assert!(said.len() == 1 && said[0].contains(&ms(70).bits().to_string()), "{said:?}");
}

#[test]
fn a_transaction_that_is_given_up_frees_its_read_locks() {
    let (mut stage, txn) = begun();
    let reader = Reader { id: 3, txn, mode: ReadMode::Locking };
    stage.serve(|gateway, cx| gateway.on_get(reader, vec!["r".into()], Vec::new(), cx));
    let said = stage.serve(|gateway, cx| gateway.on_rollback(4, txn, cx));
    let mut released: Vec<String> = [ME, R1, R2].map(|site| format!("to {site}: Release {txn}")).to_vec();
    released.push("answer 4: Done".into());
    let (mut said, mut wanted) = (said, released);
    said.sort();
    wanted.sort();
    assert_eq!(said, wanted);
}
