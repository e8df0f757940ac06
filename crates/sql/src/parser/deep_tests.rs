//! Tests of statements that are as deep as can be.

use super::*;
use crate::error::SqlState;
use crate::stack::STACK_BYTES;
use rhumb_sqltestkit::deep::DEEP;

/// What comes of a text on a thread with so much stack.
fn parsed(sql: String, stack_bytes: usize) -> Result<usize, SqlState> {
    let parse = move || parse_here(&sql).map(|statements| statements.len()).map_err(|error| error.state());
    std::thread::Builder::new().stack_size(stack_bytes).spawn(parse).expect("a thread").join().expect("it neither panics nor overflows")
}

fn check(sql: &str) -> SqlResult<()> {
    nesting::check(&Tokenizer::new(&Postgres, sql).tokenize_with_location().expect("tokens"))
}

#[test]
fn a_text_that_is_too_deep_is_refused_whatever_makes_it_so() {
    for deep in DEEP {
        assert_eq!(parsed(deep.text(20_000), 1 << 20), Err(SqlState::StatementTooComplex), "{}", deep.name);
    }
}

#[test]
fn the_deepest_texts_that_are_let_through_leave_half_of_the_stack() {
    for deep in DEEP {
        let deepest = deep.deepest(|sql| check(sql).is_ok());
        assert!(deepest >= 10, "{}: {deepest}", deep.name);
        match parsed(deep.text(deepest), STACK_BYTES / 2) {
            // Some of it is not what the parser knows, or deeper than the parser allows by its own count.
            Ok(1) | Err(SqlState::SyntaxError | SqlState::StatementTooComplex | SqlState::FeatureNotSupported) => {}
            other => panic!("{}: {other:?}", deep.name),
        }
    }
}

#[test]
fn depth_is_counted_between_commas_within_brackets() {
    let message = |sql: &str| check(sql).expect_err("too deep").message().to_owned();
    let chain = |count: usize| vec!["1"; count + 1].join(" + ");
    let expected = "more than 1500 keywords and operators without a comma or a closing bracket between them";
    let most = nesting::DEPTH_MAX - 1;
    assert!(check(&format!("select {}", chain(most))).is_ok(), "SELECT is the first");
    assert_eq!(message(&format!("select {}", chain(most + 1))), expected);
    let level = nesting::DEPTH_MAX - 2;
    assert!(check(&format!("select ({0}), ({0}), {0}", chain(level))).is_ok(), "SELECT, its bracket, and what is in it");
    assert_eq!(message(&format!("select 1 + ({})", chain(level))), expected, "what is around a bracket counts within it");
    assert!(check(&format!("select 1, 1 in ({0}, {0})", chain(level))).is_ok());
    assert_eq!(message(&format!("select 1, not 1 in ({0}, {0})", chain(level))), expected);
    assert!(check(&format!("select {}", vec![format!("({})", chain(level)); 10].join(", "))).is_ok());
    assert!(check(&format!("select {}", vec![chain(700); 3].join(" union select "))).is_ok(), "each side of UNION for itself");
    assert_eq!(message(&format!("select 1{}", " union select 1".repeat(1_500))), expected);
    assert!(check(&format!("insert into t values {}", vec!["(1, 'a', -1)"; 10_000].join(", "))).is_ok());
    assert!(check(&format!("select 1 in ({})", vec!["1 + 1"; 5_000].join(", "))).is_ok());
    assert!(check(&format!("select {}1{}", "(".repeat(200), ")".repeat(200))).is_ok());
    assert_eq!(message(&format!("select {}1{}", "(".repeat(201), ")".repeat(201))), "more than 200 brackets are open at once");
    assert!(check("select 1)))) , (2").is_ok(), "the parser says what is wrong with it");
}

#[test]
fn what_rows_come_from_is_bounded_with_all_that_names_stand_for() {
    let state = |sql: &str| parse(sql).err().map(|error| error.state());
    let from = |count: usize| format!("select 1 from {}", vec!["t"; count].join(", "));
    assert_eq!(
        [state(&from(relations::RELATIONS_MAX)), state(&from(relations::RELATIONS_MAX + 1))],
        [None, Some(SqlState::StatementTooComplex)]
    );
    let joined = |count: usize| format!("select 1 from t{}", " join t on true".repeat(count));
    assert_eq!([state(&joined(199)), state(&joined(200))], [None, Some(SqlState::StatementTooComplex)]);
    let doubled = |times: usize| {
        let tables = (1..=times).map(|n| format!("a{n} as (select 1 from a{0} x, a{0} y)", n - 1));
        let tables: Vec<String> = std::iter::once("a0 as (select 1)".to_owned()).chain(tables).collect();
        format!("with {} select 1 from a{times}", tables.join(", "))
    };
    assert_eq!([state(&doubled(4)), state(&doubled(30))], [None, Some(SqlState::StatementTooComplex)]);
    let error = parse(&doubled(30)).expect_err("a thousand million");
    assert_eq!(error.message(), "more than 200 tables and subqueries, those behind names of WITH counted each time");
    let chained: Vec<String> = (1..=500).map(|n| format!("a{n} as (select 1 from a{})", n - 1)).collect();
    assert_eq!(state(&format!("with a0 as (select 1), {} select 1", chained.join(", "))), Some(SqlState::StatementTooComplex));
    let unions = format!("select 1{}", " union all select 1".repeat(400));
    assert_eq!(state(&unions), None);
}
