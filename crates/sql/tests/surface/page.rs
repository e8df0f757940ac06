//! The page `docs/surface.md`, made of the scripts: what is supported, by subject, and every difference with its reason.

use crate::script::{Difference, Record, Script};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

const HEAD: &str = "\
# SQL beside PostgreSQL's

Which parts of PostgreSQL's SQL Rhumb supports, and where its answers differ. Every statement counted here runs on both, PostgreSQL 15 and Rhumb, and their
results are compared: rows, names and types of columns, tags and SQLSTATEs. Statements and results stand in `crates/sql/tests/surface/scripts`, a file
for each subject; `cargo test -p rhumb-sql --test surface` compares Rhumb with them, and `make surface` records them and writes this page. PostgreSQL runs
with `default_transaction_isolation = serializable`, the locale `C` and the time zone UTC. What Rhumb adds is told in [sql.md](sql.md).

";

/// The page of these scripts.
pub fn page(scripts: &[(PathBuf, Script)]) -> String {
    let mut page = HEAD.to_owned();
    let statements: usize = scripts.iter().map(|(_, script)| script.records().count()).sum();
    let differ: usize = scripts.iter().map(|(_, script)| script.differences().count()).sum();
    put(
        &mut page,
        &format!("{statements} statements; {} have PostgreSQL's results, {differ} [differ](#differences).\n", statements - differ),
    );
    put(&mut page, "\n| subject | statements | as in PostgreSQL | differ |\n|---|---|---|---|\n");
    for (_, script) in scripts {
        let (title, _) = script.title_and_prose();
        let (all, differ) = (script.records().count(), script.differences().count());
        put(&mut page, &format!("| [{title}](#{}) | {all} | {} | {differ} |\n", anchor(&title), all - differ));
    }
    put(&mut page, "\n## Subjects\n");
    for (_, script) in scripts {
        let (title, prose) = script.title_and_prose();
        put(&mut page, &format!("\n### {title}\n\n{prose}\n"));
    }
    put(&mut page, "\n## Differences\n\nThe most frequent reasons first. A statement may depend on those before it in its script.\n");
    for (reason, found) in by_reason(scripts) {
        let count = if found.len() == 1 { "one statement".to_owned() } else { format!("{} statements", found.len()) };
        put(&mut page, &format!("\n**{}** ({count})\n\n```sql\n", capitalized(&reason)));
        for (file, record, difference) in found {
            put(&mut page, &shown(&file, record, difference));
        }
        put(&mut page, "```\n");
    }
    page
}

type Found<'a> = (String, &'a Record, &'a Difference);

fn by_reason(scripts: &[(PathBuf, Script)]) -> Vec<(String, Vec<Found<'_>>)> {
    let mut reasons: BTreeMap<String, Vec<Found<'_>>> = BTreeMap::new();
    for (file, script) in scripts {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        for (record, difference) in script.differences() {
            reasons.entry(difference.reason.clone()).or_default().push((name.clone(), record, difference));
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
    reasons
}

/// A statement with both results, briefly.
fn shown(file: &str, record: &Record, difference: &Difference) -> String {
    let expected = record.expected.as_ref().map(|expected| expected.brief()).unwrap_or_default();
    format!("{}; -- {file}\n  -- PostgreSQL: {expected}\n  -- Rhumb: {}\n", record.sql, difference.outcome.brief())
}

fn put(page: &mut String, text: &str) {
    page.write_str(text).expect("a String takes all");
}

fn anchor(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    title.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn capitalized(reason: &str) -> String {
    let mut chars = reason.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
