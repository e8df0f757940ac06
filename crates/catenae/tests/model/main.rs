//! Catenae, checked exhaustively in small configurations, and the checks held against protocols with one rule broken: what regions say
//! (`streams`), and what follows from it (`epochs`).

mod epochs;
mod streams;

use epochs::{Broken, Epochs};
use rhumb_testkit::departures::Bounds;
use rhumb_testkit::model::{check, refute, report};
use stateright::{Checker, HasDiscoveries, Model};
use streams::{Budget, Streams, search_all};

/// Explores all that can become of a stream.
fn check_stream(model: Streams) {
    println!("{}", check(model).model().counts());
}

/// Runs a stream on all schedules within those bounds.
fn check_schedules(bounds: Bounds) {
    let searched = search_all(&Streams::new(0, ON_DISK), bounds).unwrap_or_else(|violation| panic!("{violation}"));
    println!("{searched:?}");
}

/// Nothing but what the messages in the network bring about.
const QUIET: Budget = Budget { ticks: [0; 3], crashes: [0; 3], settles: [0; 3] };
/// Two epochs end in a region that leads, and in one that takes over and from which the stream is taken back.
const TURNS: Budget = Budget { ticks: [2, 2, 0], ..QUIET };
/// How far crashes are explored.
const DEPTH: usize = 11;
/// Every site may crash: what they write is durable once it is synced.
const ON_DISK: Budget = Budget { crashes: [1; 3], ..QUIET };

#[test]
fn what_a_region_says_is_agreed_on_whoever_leads() {
    check_stream(Streams::new(2, TURNS).without(2));
}

/// Up to so many steps: what is not durable makes a state of almost every order in which things happen.
#[test]
fn what_a_region_says_is_agreed_on_though_a_region_crashes() {
    for crashes in [[1, 0, 0], [0, 1, 0]] {
        let model = Streams::new(1, Budget { ticks: [1, 2, 0], crashes, ..QUIET }).without(2);
        let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).target_max_depth(DEPTH).spawn_bfs().join();
        report(&checker);
        checker.assert_properties();
    }
}

#[test]
fn a_stream_goes_on_from_every_state() {
    check_stream(Streams::new(1, Budget { ticks: [1, 2, 0], ..QUIET }).without(2).with_progress());
}

#[test]
fn what_is_said_to_three_regions_is_agreed_on() {
    check_stream(Streams::new(1, Budget { ticks: [1, 1, 0], ..QUIET }));
}

#[test]
fn a_stream_outlives_all_schedules_with_two_failures() {
    check_schedules(Bounds { departures: 1, apart: 0 });
    check_schedules(Bounds { departures: 2, apart: 4 });
}

#[test]
#[ignore = "minutes: `make soak` runs it"]
fn a_stream_outlives_all_schedules_with_three_failures() {
    check_schedules(Bounds { departures: 2, apart: 60 });
    check_schedules(Bounds { departures: 3, apart: 4 });
}

/// Agreements with one rule broken.
mod planted {
    use super::*;
    use rhumb_catenae::planted::Planted;
    use streams::{COUNTED, DURABLE, PATIENT, PROGRESS};

    /// The first region crashes once.
    const CRASHES: Budget = Budget { crashes: [1, 0, 0], ..TURNS };

    #[test]
    fn a_forgotten_promise_is_caught() {
        let budget = Budget { ticks: [1, 2, 0], ..QUIET };
        refute(Streams::new(1, budget).breaking(Planted::PromiseForgotten), DURABLE);
    }

    #[test]
    fn an_entry_answered_at_home_is_caught() {
        refute(Streams::new(2, TURNS).without(2).breaking(Planted::AnsweredAtHome), DURABLE);
    }

    #[test]
    fn a_site_that_counts_what_it_learnt_above_all_ballots_is_caught() {
        refute(Streams::new(2, CRASHES).without(2).breaking(Planted::LearntIsHeld), COUNTED);
    }

    #[test]
    fn a_stream_reclaimed_at_once_is_caught() {
        refute(Streams::new(2, CRASHES).without(2).breaking(Planted::ReclaimedAtOnce), PATIENT);
    }

    #[test]
    fn a_stream_found_silent_unasked_is_caught() {
        refute(Streams::new(2, TURNS).without(2).with_full(1).breaking(Planted::SilentUnasked), PATIENT);
    }

    #[test]
    fn a_gap_that_nobody_asks_for_is_caught() {
        refute(Streams::new(1, TURNS).without(2).with_progress().breaking(Planted::GapUnasked), PROGRESS);
    }
}

#[test]
fn three_conflicting_transactions_of_one_epoch_settle_alike_everywhere() {
    check(Epochs::new([1, 1, 1], Broken::Nothing));
}

#[test]
fn transactions_of_two_epochs_settle_alike_everywhere() {
    check(Epochs::new([1, 1, 2], Broken::Nothing));
    check(Epochs::new([1, 2, 2], Broken::Nothing));
}

#[test]
fn non_conflict_judged_by_timing_is_refuted() {
    refute(Epochs::new([1, 1, 1], Broken::ConflictByTiming), epochs::AGREEMENT);
}

#[test]
fn a_vote_that_counts_however_late_is_refuted() {
    refute(Epochs::new([1, 1, 1], Broken::LateVoteCounts), epochs::AGREEMENT);
}

#[test]
fn votes_on_direct_dependencies_are_refuted() {
    refute(Epochs::new([1, 1, 1], Broken::DirectDependencies), epochs::PROGRESS);
}
