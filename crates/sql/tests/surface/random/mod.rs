//! Random queries, by two judges. A condition parts the rows of any query into those for which it is true, false and NULL: together they are all of them
//! (ternary logic partitioning, after SQLancer). And PostgreSQL answers the same queries over the same rows: `make random`.

mod expressions;
mod queries;
mod schema;

use crate::client::{Client, Target};
use crate::script::Outcome;
use crate::{RECORD, rhumb, runtime};
use queries::Queries;
use rhumb_core::Rng;
use std::collections::BTreeMap;

/// Queries that a test parts by conditions.
const PARTED: u64 = 150;
/// Queries over the same rows. After that, tables are made anew.
const QUERIES_PER_DATABASE: u64 = 500;
/// How many queries are compared with PostgreSQL's results, and the seed of the first database.
const QUERIES: &str = "RANDOM_QUERIES";
const SEED: &str = "RANDOM_SEED";
const QUERIES_DEFAULT: u64 = 5_000;
/// Differences that are printed.
const SHOWN_MAX: usize = 40;
/// Conditions that depend on what is evaluated first, or at all: both servers are free in that.
const OF_EVALUATION: [&str; 3] = ["error 22003", "error 22008", "error 22012"];
/// Decimal places of a number that are compared: quotients have more of them in PostgreSQL.
const PLACES: usize = 12;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn connect(target: &Target) -> Client {
    Client::connect(target).expect("connected")
}

fn run(client: &mut Client, sql: &str) -> Outcome {
    client.run(sql).unwrap_or_else(|error| panic!("{error} by {sql}"))
}

/// Makes the tables and their rows.
fn make(client: &mut Client, seed: u64) {
    for sql in schema::statements(&mut Rng::seeded(seed)) {
        let outcome = run(client, &sql);
        assert!(!outcome.head.starts_with("error"), "{} by {sql}", outcome.head);
    }
}

#[test]
fn a_condition_parts_the_rows_of_a_query() {
    let runtime = runtime();
    let target = rhumb(&runtime);
    let mut client = connect(&target);
    let mut rng = Rng::seeded(1);
    make(&mut client, 1);
    let (mut compared, mut wrong) = (0, Vec::new());
    for _ in 0..PARTED {
        let parts = Queries::new(&mut rng).parted();
        let [whole, of_parts @ ..] = parts.each_ref().map(|sql| run(&mut client, sql));
        if [&whole].into_iter().chain(&of_parts).any(|outcome| outcome.head.starts_with("error")) {
            continue;
        }
        compared += 1;
        let mut rows: Vec<String> = of_parts.into_iter().flat_map(|outcome| outcome.rows).collect();
        rows.sort();
        if rows != whole.rows {
            wrong.push(format!("{}\n{} rows, {} in its parts", parts.join("\n"), whole.rows.len(), rows.len()));
        }
    }
    assert!(wrong.is_empty(), "{} of:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(compared * 10 > PARTED * 9, "only {compared} of {PARTED} queries are answered");
}

#[test]
#[ignore = "takes PostgreSQL 15: make random"]
fn random_queries_have_the_results_of_postgresql() {
    let port = std::env::var(RECORD).unwrap_or_else(|_| panic!("no port of a PostgreSQL in {RECORD}: run `make random`"));
    let postgres = Target { port: port.parse().expect("a port"), database: "postgres".to_owned() };
    let (queries, seed) = (number(QUERIES, QUERIES_DEFAULT), number(SEED, 1));
    let (mut judged, mut shown) = (BTreeMap::<Verdict, u64>::new(), 0);
    for (database, first) in (0..queries).step_by(QUERIES_PER_DATABASE as usize).enumerate() {
        let seed = seed + database as u64;
        let runtime = runtime();
        let (mut ours, mut theirs) = (connect(&rhumb(&runtime)), connect(&postgres));
        make(&mut ours, seed);
        make(&mut theirs, seed);
        let mut rng = Rng::seeded(seed);
        for _ in first..queries.min(first + QUERIES_PER_DATABASE) {
            let (sql, is_ordered) = Queries::new(&mut rng).any();
            let (own, other) = (run(&mut ours, &sql), run(&mut theirs, &sql));
            let verdict = judge(&own, &other, is_ordered);
            *judged.entry(verdict).or_default() += 1;
            if verdict == Verdict::Differs && shown < SHOWN_MAX {
                shown += 1;
                println!("seed {seed}: {sql};\n  -- PostgreSQL: {}\n  -- Rhumb: {}", other.brief(), own.brief());
                let (own, other) = (rows(&own, is_ordered), rows(&other, is_ordered));
                let mut pairs = other.iter().zip(&own);
                if let Some((other, own)) = pairs.find(|(other, own)| other != own) {
                    println!("  -- {other}, not {own}");
                }
            }
        }
        println!("{} of {queries} queries: {judged:?}", queries.min(first + QUERIES_PER_DATABASE));
    }
    assert_eq!(judged.get(&Verdict::Differs), None, "queries differ");
}

/// What two results of a query are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Same,
    /// One fails by a value that the other has not looked at.
    ByOrderOfEvaluation,
    /// Rhumb says that it has no such thing.
    Unsupported,
    Differs,
}

fn judge(own: &Outcome, other: &Outcome, is_ordered: bool) -> Verdict {
    let by_evaluation = |outcome: &Outcome| OF_EVALUATION.contains(&outcome.head.as_str());
    if own.head == other.head && rows(own, is_ordered) == rows(other, is_ordered) {
        Verdict::Same
    } else if by_evaluation(own) || by_evaluation(other) {
        Verdict::ByOrderOfEvaluation
    } else if own.head == "error 0A000" {
        Verdict::Unsupported
    } else {
        Verdict::Differs
    }
}

/// Rows with their numbers cut to [`PLACES`] and without zeros at the end.
fn rows(outcome: &Outcome, is_ordered: bool) -> Vec<String> {
    let number = |value: &str| match value.split_once('.') {
        Some((whole, places)) if value.bytes().all(|byte| b"-.0123456789".contains(&byte)) => {
            let places = places[..places.len().min(PLACES)].trim_end_matches('0');
            if places.is_empty() { whole.to_owned() } else { format!("{whole}.{places}") }
        }
        _ => value.to_owned(),
    };
    let mut rows: Vec<String> = outcome.rows.iter().map(|row| row.split(" | ").map(number).collect::<Vec<_>>().join(" | ")).collect();
    if !is_ordered {
        rows.sort();
    }
    rows
}

#[test]
fn results_are_told_apart_by_more_than_the_places_of_numbers() {
    let outcome = |head: &str, row: &str| Outcome { head: head.to_owned(), rows: vec![row.to_owned()] };
    let judge = |own: &Outcome, other: &Outcome| judge(own, other, true);
    let numeric = |row| outcome("query SELECT 1 (c1 numeric, c2 text)", row);
    assert_eq!(judge(&numeric("0.50 | a"), &numeric("0.5 | a")), Verdict::Same);
    assert_eq!(judge(&numeric("0.3333333333333333 | a"), &numeric("0.33333333333333333333 | a")), Verdict::Same);
    assert_eq!(judge(&numeric("0.51 | a"), &numeric("0.5 | a")), Verdict::Differs);
    assert_eq!(judge(&numeric("NULL | a"), &numeric("0.5 | a")), Verdict::Differs);
    assert_eq!(judge(&outcome("query SELECT 1 (c1 int4)", "1"), &outcome("query SELECT 1 (c1 int8)", "1")), Verdict::Differs);
    assert_eq!(judge(&outcome("error 22012", ""), &numeric("1 | a")), Verdict::ByOrderOfEvaluation);
    assert_eq!(judge(&outcome("error 0A000", ""), &numeric("1 | a")), Verdict::Unsupported);
    assert_eq!(judge(&outcome("error 42883", ""), &numeric("1 | a")), Verdict::Differs);
}
