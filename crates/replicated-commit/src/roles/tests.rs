//! What the roles of one site do together goes to disk together.

use super::*;
use crate::message::Meta;
use crate::testing::{ME, R1, Stage, ms, part, rows};
use rhumb_commit::votes::Decision;

/// A region of one site is asked to vote on an attempt of `r1.0`'s, and finds that what it has read is current.
fn prepared() -> (Stage, Meta, Vec<String>) {
    let mut stage = Stage::new(1);
    let meta = stage.meta(R1, 100, &[0]);
    let (accept, prepare) = (meta.clone(), meta.clone());
    let parts = vec![(0, part(Some(("r", ms(50))), "w"))];
    let said = stage.act(|roles, cx| roles.on_note(R1, Note::Accept { meta: accept, parts }, cx));
    assert!(matches!(&said[..], [one] if one.starts_with(&format!("to {ME}: "))), "{said:?}");
    let part = part(Some(("r", ms(50))), "w");
    assert_eq!(stage.act(|roles, cx| roles.on_note(ME, Note::Prepare { meta: prepare, part }, cx)), ["load versions w r"]);
    let token = stage.token;
    let said = stage.act(|roles, cx| roles.on_loaded(token, rows(&[("w", ms(60)), ("r", ms(50))]), cx));
    (stage, meta, said)
}

#[test]
fn a_cohort_that_coordinates_itself_prepares_and_votes_in_one_write() {
    let (_, meta, said) = prepared();
    let vote = format!("Vote {} r0 yes", meta.attempt);
    assert_eq!(said, [format!("sync +prepared +vote; then to {ME}: {vote}; then to {R1}: {vote}")]);
}

#[test]
fn it_applies_a_commit_and_resolves_it_in_one_write() {
    let (mut stage, meta, _) = prepared();
    let decided = Note::Decided { meta: meta.clone(), decision: Decision::Committed { floor: meta.at } };
    let said = stage.act(|roles, cx| roles.on_note(R1, decided, cx));
    let apply = Note::Apply { meta: meta.clone(), part: None, floor: meta.at };
    assert_eq!(said, [format!("to {ME}: {apply}"), format!("agree on attempt {}", meta.attempt)], "nothing is on disk before its rows are");
    let said = stage.act(|roles, cx| roles.on_note(ME, apply, cx));
    assert_eq!(said, ["sync +w +log +number -prepared +number +vote".to_owned(), format!("agree on attempt {}", meta.attempt)]);
}
