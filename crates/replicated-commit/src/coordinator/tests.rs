//! A region's vote and its two-phase commit, step by step (the paper's section 3.2.2).

use super::*;
use crate::message::Voted;
use crate::testing::{ME, OTHER, R1, R2, Stage, ms, part};
use rhumb_commit::votes::Refusal;

/// A stage on which this region, of two shards, was asked to vote on an attempt of `r1.0`'s.
fn accepted() -> (Stage, Meta) {
    let mut stage = Stage::new(2);
    let meta = stage.meta(R1, 100, &[0, 1]);
    let parts = vec![(0, part(None, "a")), (1, part(None, "b"))];
    let asked = meta.clone();
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_accept(near, asked, parts, cx));
    let prepare = format!("Prepare {} at {}", meta.attempt, meta.at);
    assert_eq!(said, [format!("to {OTHER}: {prepare} r{{}} w{{b}}"), format!("to {ME}: {prepare} r{{}} w{{a}}")]);
    (stage, meta)
}

/// The vote of a region, as it is told.
fn voted(meta: &Meta, site: SiteId, vote: Vote) -> Voted {
    Voted { meta: meta.clone(), region: site.region, vote, high: Timestamp::ZERO }
}

#[test]
fn a_region_votes_yes_once_all_its_shards_are_prepared_and_that_is_on_disk() {
    let (mut stage, meta) = accepted();
    let attempt = meta.attempt;
    assert!(stage.coordinate(|coordinator, near, cx| coordinator.on_prepared(near, attempt, 1, cx)).is_empty(), "one of two");
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_prepared(near, attempt, 0, cx));
    assert_eq!(said, [format!("sync +vote; then to {ME}: Vote {attempt} r0 yes; then to {R1}: Vote {attempt} r0 yes")]);
    assert!(stage.coordinate(|coordinator, near, cx| coordinator.on_prepared(near, attempt, 0, cx)).is_empty(), "told twice");
}

#[test]
fn a_region_votes_no_as_soon_as_one_shard_cannot_prepare() {
    let (mut stage, meta) = accepted();
    let attempt = meta.attempt;
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_cannot_prepare(near, attempt, Refusal::Locked, cx));
    let vote = Vote::No(Refusal::Locked);
    assert_eq!(said, [format!("sync +vote; then to {ME}: Vote {attempt} r0 {vote}; then to {R1}: Vote {attempt} r0 {vote}")]);
    // Its cohorts let go only now that the refusal is on disk.
    let heard = voted(&meta, ME, vote);
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_vote_as_coordinator(near, &heard, cx));
    assert_eq!(said, [format!("to {OTHER}: Unprepare {attempt}"), format!("to {ME}: Unprepare {attempt}")]);
}

#[test]
fn a_region_that_never_heard_of_an_attempt_refuses_it_for_ever() {
    let mut stage = Stage::new(1);
    let meta = stage.meta(R1, 100, &[0]);
    let (attempt, asked) = (meta.attempt, meta.clone());
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_ask_vote(near, R2, asked, cx));
    let vote = Vote::No(Refusal::UnknownTransaction);
    let told = format!("Vote {attempt} r0 {vote}");
    assert_eq!(said[0], format!("sync +vote; then to {ME}: {told}; then to {R1}: {told}"));
    assert!(said[1..].contains(&format!("sync; then to {R2}: {told}")), "{said:?}");
    let late = stage.coordinate(|coordinator, near, cx| coordinator.on_accept(near, meta, vec![(0, part(None, "a"))], cx));
    assert_eq!(late, [format!("sync; then to {R1}: {told}")], "an Accept that comes later finds the vote");
}

#[test]
fn a_yes_that_somebody_in_doubt_asks_for_is_made_firm_and_can_no_longer_be_withdrawn() {
    let (mut stage, meta) = accepted();
    let attempt = meta.attempt;
    for shard in [0, 1] {
        stage.coordinate(|coordinator, near, cx| coordinator.on_prepared(near, attempt, shard, cx));
    }
    let asked = meta.clone();
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_ask_vote(near, R2, asked, cx));
    assert!(said[0].starts_with(&format!("sync +vote; then to {ME}: Vote {attempt} r0 {}", Vote::Firm)), "{said:?}");
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_withdraw(near, R1, meta, cx));
    assert_eq!(said, [format!("sync; then to {R1}: Vote {attempt} r0 {}", Vote::Firm)]);
}

#[test]
fn votes_of_a_majority_decide_and_the_commit_is_on_record_before_other_sites_apply_it() {
    let (mut stage, meta) = accepted();
    let attempt = meta.attempt;
    for shard in [0, 1] {
        stage.coordinate(|coordinator, near, cx| coordinator.on_prepared(near, attempt, shard, cx));
    }
    let votes = [voted(&meta, ME, Vote::Firm), voted(&meta, R1, Vote::Firm)];
    let mut heard = votes.iter().map(|vote| stage.coordinate(|coordinator, near, cx| coordinator.on_vote_as_coordinator(near, vote, cx)));
    assert_eq!(heard.next(), Some(Vec::new()), "one of three");
    assert_eq!(heard.next(), Some(Vec::new()), "of the other shard it is not known how high it has prepared");
    let mut high = |from| stage.coordinate(|coordinator, near, cx| coordinator.on_high_as_coordinator(near, from, attempt, ms(120), cx));
    assert!(high(OTHER).is_empty(), "in one region of two");
    let said = high(SiteId::new(1, 1));
    let decided = format!("Decided {attempt} committed");
    let apply = format!("Apply {attempt}");
    assert_eq!(
        said,
        [
            format!("to {R1}: {decided}"),
            format!("to {R2}: {decided}"),
            format!("sync +vote; then to {OTHER}: {apply}"),
            format!("to {ME}: {apply}"),
            format!("agree on attempt {attempt}"),
        ]
    );
}

#[test]
fn a_region_confirms_only_what_its_cohorts_had_to_apply() {
    let mut stage = Stage::new(2);
    let meta = Meta { two_rounds: true, ..stage.meta(ME, 100, &[0, 1]) };
    let (attempt, decision) = (meta.attempt, Decision::Committed { floor: meta.at });
    // Its gateway tells it of a commit that it was not asked to vote on: the rows will come by the log.
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_decided_as_coordinator(near, ME, &meta, decision, cx));
    assert!(said.iter().any(|line| line.contains(&format!("to {OTHER}: Apply {attempt}"))), "{said:?}");
    for shard in [0, 1] {
        let said = stage.coordinate(|coordinator, _, cx| coordinator.on_applied(attempt, shard, cx));
        assert!(said.is_empty(), "a cohort without its part has applied nothing: {said:?}");
    }
}

#[test]
fn a_commit_that_is_told_is_on_record_before_other_sites_apply_it() {
    let (mut stage, meta) = accepted();
    let attempt = meta.attempt;
    for shard in [0, 1] {
        stage.coordinate(|coordinator, near, cx| coordinator.on_prepared(near, attempt, shard, cx));
    }
    let own = voted(&meta, ME, Vote::Firm);
    assert!(stage.coordinate(|coordinator, near, cx| coordinator.on_vote_as_coordinator(near, &own, cx)).is_empty(), "one of three");
    let decision = Decision::Committed { floor: meta.at };
    let from = meta.clone();
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_decided_as_coordinator(near, R1, &from, decision, cx));
    let apply = format!("Apply {attempt}");
    let agreed = format!("agree on attempt {attempt}");
    assert_eq!(said, [format!("sync +vote; then to {OTHER}: {apply}"), format!("to {ME}: {apply}"), agreed], "on record first");
    assert!(stage.coordinate(|coordinator, _, cx| coordinator.on_applied(attempt, 1, cx)).is_empty());
    assert_eq!(stage.coordinate(|coordinator, _, cx| coordinator.on_applied(attempt, 0, cx)), ["sync +vote"], "resolved");
}

#[test]
fn nobody_acts_on_an_abort_before_it_is_on_disk() {
    let (mut stage, meta) = accepted();
    let attempt = meta.attempt;
    stage.coordinate(|coordinator, near, cx| coordinator.on_cannot_prepare(near, attempt, Refusal::Locked, cx));
    let said = stage.coordinate(|coordinator, near, cx| coordinator.on_decided_as_coordinator(near, R1, &meta, Decision::Aborted, cx));
    assert_eq!(said, [format!("sync +vote; then to {ME}: Aborted {attempt}; then to {OTHER}: Aborted {attempt}")]);
}
