//! Random histories of batches, collections and restarts: the store answers every load as a naive model does.

mod common;

use common::{Model, Step, collect_all, pass_over_all, steps, versions};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rhumb_core::Batch;
use rhumb_core::actor::Space;
use rhumb_store::{DiskEngine, DiskOptions, Engine, MemoryEngine, Newest, Store};

/// Writes of one batch to one place: the last counts.
fn the_last_write_of_a_batch_counts<E: Engine>(store: &Store<E>) {
    let mut batch = Batch::new();
    let mut model = Model::default();
    for (space, writes) in [(0, 5), (7, 6), (255, 7)] {
        for n in 0..writes {
            if n % 2 == 0 {
                batch.put_record(Space(space), "a", vec![n]);
            } else {
                batch.delete_record(Space(space), "a");
            }
        }
    }
    store.apply(&batch).expect("the store can be written");
    model.apply(&batch);
    model.check(store);
}

#[test]
fn the_last_write_of_a_batch_counts_in_both_engines() {
    the_last_write_of_a_batch_counts(&Store::open(MemoryEngine::new()).expect("empty"));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let open = || Store::open(DiskEngine::open(folder.path(), DiskOptions::DEFAULT).expect("free")).expect("known");
    the_last_write_of_a_batch_counts(&open());
    the_last_write_of_a_batch_counts(&open());
}

/// Carries out a step that both engines have.
fn carry_out<E: Engine>(store: &Store<E>, model: &mut Model, step: Step) {
    match step {
        Step::Apply(batch) => {
            store.apply(&batch).expect("the store can be written");
            model.apply(&batch);
        }
        Step::Sync => store.sync().expect("the store can be synced"),
        Step::Collect { collect, limit } => {
            let collect = model.risen(collect);
            collect_all(store, collect, limit);
            model.collect(collect);
            model.check(store);
            assert_eq!(collect_all(store, collect, limit), 0, "nothing is left to collect");
            pass_over_all(store, collect.horizon, limit);
            model.check(store);
            assert_eq!(versions(store), model.versions(), "the rest is gone");
        }
        Step::Reopen { .. } => unreachable!("each engine has its own way"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// A crash keeps a prefix of the batches, whole, with all that was synced among them.
    #[test]
    fn the_memory_engine_answers_as_the_model_and_crashes_to_a_prefix(steps in steps(40)) {
        let mut store = Store::open(MemoryEngine::new()).expect("empty");
        // The states that a crash may leave: after the last sync, and after each write since.
        let mut states = vec![Model::default()];
        for step in steps {
            let mut model = states.last().expect("there is always one").clone();
            match step {
                Step::Reopen { torn } => {
                    let mut engine = store.into_engine();
                    engine.crash(torn);
                    prop_assert_eq!(engine.unsynced_bytes(), 0);
                    store = Store::open(engine).expect("a crash leaves a store");
                    let survivor = states.iter().rposition(|state| state.difference(&store).is_none());
                    prop_assert!(survivor.is_some(), "what a crash leaves is none of the states since the sync");
                    states = vec![states.swap_remove(survivor.expect("just checked"))];
                    continue;
                }
                Step::Collect { .. } => {
                    carry_out(&store, &mut model, step);
                    // A collection takes several writes; a sync behind it spares the test the states between.
                    store.sync().expect("the store can be synced");
                    states.clear();
                }
                Step::Sync => {
                    carry_out(&store, &mut model, step);
                    states.clear();
                }
                Step::Apply(_) => carry_out(&store, &mut model, step),
            }
            states.push(model);
        }
        states.last().expect("there is always one").check(&store);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is held of the newest versions: nothing, a few of them, or all.
    #[test]
    fn what_is_held_of_the_newest_versions_changes_no_answer(steps in steps(40), bytes in prop::sample::select(vec![0, 300, 700, 1 << 20])) {
        let store = Store::open(MemoryEngine::new()).expect("empty");
        let (mut newest, mut model) = (Newest::new(bytes), Model::default());
        for step in steps.into_iter().filter(|step| !matches!(step, Step::Reopen { .. })) {
            if let Step::Apply(batch) = &step {
                newest.note(batch);
            }
            carry_out(&store, &mut model, step);
            model.check_through(&store, &mut newest);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default() })]

    /// Write buffers so small that table files are written and merged all the time.
    #[test]
    fn the_disk_engine_answers_as_the_model_and_keeps_all_over_a_restart(steps in steps(60)) {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = DiskOptions { write_buffer_bytes: 1 << 10, unmerged_files: 1, ..DiskOptions::DEFAULT };
        let open = || Store::open(DiskEngine::open(folder.path(), options).expect("the folder is free")).expect("the format is known");
        let mut store = open();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Reopen { .. } => {
                    drop(store);
                    store = open();
                    model.check(&store);
                }
                step => carry_out(&store, &mut model, step),
            }
        }
        model.check(&store);
    }
}
