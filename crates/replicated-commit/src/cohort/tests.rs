//! One shard replica, step by step: what it checks before it prepares, and what it does with the outcome.

use super::*;
use crate::message::{How, PreparedRecord, Query};
use crate::planted::Planted;
use crate::testing::{OTHER, R1, Stage, ms, part, rows};
use rhumb_core::{KeyRange, Rules};

/// A stage on which an attempt that has read `r` at 50 ms, writes `w`, and commits at 100 ms is being looked at; its coordinator is `r0.1`.
fn validating() -> (Stage, Meta) {
    validating_by(Rules::HOLD)
}

fn validating_by(rules: Rules<Planted>) -> (Stage, Meta) {
    let mut stage = Stage::new(2);
    stage.shared.rules = rules;
    let meta = Meta { coordinator: 1, ..stage.meta(R1, 100, &[0, 1]) };
    let asked = meta.clone();
    let (here, said) = stage.replicate(|cohort, near, cx| cohort.on_prepare(near, asked, part(Some(("r", ms(50))), "w"), cx));
    assert!(here.is_none() && said == ["load versions w r"], "{said:?}");
    (stage, meta)
}

fn found(stage: &mut Stage, meta: &Meta, versions: &[(&str, Timestamp)]) -> Vec<String> {
    let (attempt, token) = (meta.attempt, stage.token);
    stage.shared.jobs.end(token);
    stage.replicate(|cohort, _, cx| cohort.on_validation(attempt, token, rows(versions), cx)).1
}

/// Another transaction writes `key`; what becomes of that.
fn other_writes(stage: &mut Stage, key: &str, at: u64) -> Vec<String> {
    let meta = Meta { coordinator: 1, ..stage.meta(R1, at, &[0, 1]) };
    stage.replicate(|cohort, near, cx| cohort.on_prepare(near, meta, part(None, key), cx)).1
}

fn assert_locked(stage: &mut Stage, keys: &[&str]) {
    for key in keys {
        let refused = other_writes(stage, key, 200);
        let [refused] = refused.as_slice() else { panic!("{key}: {refused:?}") };
        assert!(
            refused.starts_with(&format!("to {OTHER}: CannotPrepare")) && refused.contains(&Refusal::Locked.to_string()),
            "{key}: {refused}"
        );
    }
}

#[test]
fn what_was_read_and_is_current_is_prepared_on_disk_before_that_is_told() {
    let (mut stage, meta) = validating();
    let said = found(&mut stage, &meta, &[("w", ms(60)), ("r", ms(50))]);
    assert_eq!(said, [format!("sync +prepared; then to {OTHER}: Prepared {} shard 0", meta.attempt)]);
    assert_locked(&mut stage, &["r", "w"]);
}

#[test]
fn a_writer_that_takes_over_what_a_prepared_reader_holds_is_caught() {
    let (mut stage, meta) = validating_by(Rules::breaking(Planted::PreparedTakenOver));
    found(&mut stage, &meta, &[("w", ms(60)), ("r", ms(50))]);
    assert_eq!(other_writes(&mut stage, "r", 200), ["load versions r"]);
}

#[test]
fn what_a_prepared_attempt_has_read_and_written_is_locked_after_a_restart_too() {
    let mut stage = Stage::new(2);
    let meta = Meta { coordinator: 1, ..stage.meta(R1, 100, &[0, 1]) };
    let record = PreparedRecord { meta, part: part(Some(("r", ms(50))), "w") };
    stage.replicate(|cohort, _, cx| cohort.recover_prepared(cx, record));
    assert_locked(&mut stage, &["r", "w"]);
    assert_eq!(other_writes(&mut stage, "o", 200), ["load versions o"]);
}

#[test]
fn a_newer_version_of_what_was_read_refuses_the_attempt_and_frees_its_locks() {
    let (mut stage, meta) = validating();
    let said = found(&mut stage, &meta, &[("w", ms(60)), ("r", ms(70))]);
    assert_eq!(said, [format!("to {OTHER}: CannotPrepare {} {}", meta.attempt, Refusal::Stale)]);
    assert_eq!(other_writes(&mut stage, "w", 200), ["load versions w"]);
}

#[test]
fn a_version_at_or_above_the_timestamp_refuses_the_attempt() {
    let (mut stage, meta) = validating();
    let said = found(&mut stage, &meta, &[("w", ms(100)), ("r", ms(50))]);
    assert_eq!(said, [format!("to {OTHER}: CannotPrepare {} {}", meta.attempt, Refusal::TimestampTooLow(ms(100)))]);
}

#[test]
fn a_row_that_was_read_above_the_timestamp_is_not_written_below_it() {
    let mut stage = Stage::new(2);
    stage.replicate(|cohort, _, _| cohort.refuse_below(ms(150)));
    let refused = other_writes(&mut stage, "w", 100);
    assert!(refused[0].contains(&Refusal::TimestampTooLow(ms(150)).to_string()), "{refused:?}");
    assert_eq!(other_writes(&mut stage, "w", 151), ["load versions w"]);
}

#[test]
fn the_only_cohort_of_an_attempt_leaves_its_batch_to_the_coordinator_of_the_same_site() {
    let mut stage = Stage::new(1);
    let meta = stage.meta(R1, 100, &[0]);
    let attempt = meta.attempt;
    stage.replicate(|cohort, near, cx| cohort.on_prepare(near, meta, part(None, "w"), cx));
    let token = stage.token;
    stage.shared.jobs.end(token);
    let (here, said) = stage.replicate(|cohort, _, cx| cohort.on_validation(attempt, token, rows(&[("w", ms(60))]), cx));
    let here = here.expect("prepared here");
    assert!(said.is_empty() && here.attempt == attempt && !here.batch.ops.is_empty(), "{said:?}");
}

#[test]
fn a_commit_is_applied_once() {
    let (mut stage, meta) = validating();
    found(&mut stage, &meta, &[("w", ms(60)), ("r", ms(50))]);
    let (applied, _) = stage.replicate(|cohort, _, cx| cohort.apply(&meta, None, meta.at, cx));
    let applied = applied.expect("it was prepared");
    assert!(matches!(&applied.batch.ops[0], rhumb_core::actor::Op::PutVersion { key, at, .. } if *key == "w".into() && *at == meta.at));
    assert!(
        stage.roles.cohort.log_end() == 1 && stage.roles.cohort.has_applied(&meta.attempt) && !stage.roles.cohort.has_entry(&meta.attempt)
    );
    let again = stage.replicate(|cohort, _, cx| cohort.apply(&meta, Some(part(None, "w")), meta.at, cx)).0;
    assert!(again.is_none() && stage.roles.cohort.log_end() == 1, "told twice, it changes nothing");
}

#[test]
fn what_aborts_leaves_no_lock_and_no_record() {
    let (mut stage, meta) = validating();
    found(&mut stage, &meta, &[("w", ms(60)), ("r", ms(50))]);
    let said = stage.replicate(|cohort, _, cx| cohort.unprepare(meta.attempt, cx)).1;
    assert_eq!(said, ["sync -prepared"]);
    assert_eq!(other_writes(&mut stage, "w", 200), ["load versions w"]);
}

#[test]
fn a_locking_read_is_denied_where_a_writer_is_prepared() {
    let (mut stage, meta) = validating();
    found(&mut stage, &meta, &[("w", ms(60)), ("r", ms(50))]);
    let name = crate::message::ReadId { incarnation: ms(0), made: ms(300), of_expected: false };
    let txn = TxnId { began: ms(300), gateway: R1 };
    let mut read = |how, key: &str| {
        let query = Query::Keys(vec![key.into()]);
        let asked = crate::message::Read { read: name, epoch: meta.epoch, txn, query, how };
        stage.replicate(|cohort, near, cx| cohort.on_read(near, R1, asked, cx)).1
    };
    assert_eq!(read(How::Lock, "w"), [format!("to {R1}: Denied locked")]);
    assert_eq!(read(How::Lock, "r"), ["load rows r"], "readers share");
    assert!(read(How::Newest, "w").is_empty(), "it waits for the outcome");
}

/// A read has found no lock, and while its rows are loaded somebody begins to commit at the only site of a cluster: what is said then, and once
/// that is on disk.
fn read_while_committing(query: Query, how: How, version: Timestamp, rules: Rules<Planted>) -> [Vec<String>; 2] {
    let mut stage = Stage::new(1);
    stage.shared.rules = rules;
    let txn = TxnId { began: ms(90), gateway: R1 };
    let read = crate::message::ReadId { incarnation: ms(0), made: ms(90), of_expected: false };
    let asked = crate::message::Read { read, epoch: stage.shared.placement.epoch, txn, query, how };
    stage.replicate(|cohort, near, cx| cohort.on_read(near, R1, asked, cx));
    let read = stage.token;
    let meta = stage.meta(R1, 100, &[0]);
    let attempt = meta.attempt;
    stage.replicate(|cohort, near, cx| cohort.on_prepare(near, meta.clone(), part(None, "w"), cx));
    let looked_up = stage.token;
    stage.shared.jobs.end(looked_up);
    stage.replicate(|cohort, _, cx| cohort.on_validation(attempt, looked_up, rows(&[("w", ms(60))]), cx));
    stage.replicate(|cohort, _, _| cohort.commit_in_one_phase(attempt, &mut Batch::new()));
    let crate::job::Job::Read(job) = stage.shared.jobs.end(read) else { unreachable!("a read was asked for") };
    let loaded = stage.replicate(|cohort, _, cx| cohort.on_read_loaded(job, rows(&[("w", version)]), cx)).1;
    stage.replicate(|cohort, _, cx| cohort.apply(&meta, None, meta.at, cx));
    [loaded, stage.replicate(|cohort, near, cx| while cohort.serve_ready(near, cx) {}).1]
}

/// Queries that find the row `w`.
fn queries() -> [Query; 3] {
    let range = |reverse| Query::Range { range: KeyRange::new("a".into(), "z".into()), limit: 10, reverse };
    [Query::Keys(vec!["w".into()]), range(false), range(true)]
}

#[test]
fn rows_that_are_not_known_to_be_on_disk_are_not_shown() {
    for query in queries() {
        for how in [How::Newest, How::Lock] {
            let [loaded, on_disk] = read_while_committing(query.clone(), how, ms(100), Rules::HOLD);
            assert!(
                loaded.is_empty() && on_disk.len() == 1 && on_disk[0].starts_with("load"),
                "{query:?}, {how:?}: {loaded:?}, {on_disk:?}"
            );
            let [loaded, on_disk] = read_while_committing(query.clone(), how, ms(60), Rules::HOLD);
            assert!(
                loaded.len() == 1 && on_disk.is_empty(),
                "what it found was on disk before: {query:?}, {how:?}: {loaded:?}, {on_disk:?}"
            );
        }
    }
}

#[test]
fn rows_that_are_shown_before_they_are_known_to_be_on_disk_are_caught() {
    for query in queries() {
        let [loaded, _] = read_while_committing(query, How::Newest, ms(100), Rules::breaking(Planted::CommittingShown));
        assert_eq!(loaded.len(), 1, "{loaded:?}");
    }
}
