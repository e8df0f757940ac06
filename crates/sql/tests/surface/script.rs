//! A script: statements of one subject with their results, as a file holds them.
//!
//! ```text
//! # Text functions                              the title, and what is supported in prose
//!
//! query SELECT 1 (upper text)                   the tag, and names and types of the columns
//! SELECT upper('a')
//! ----
//! A
//!
//! ok CREATE TABLE                               a statement without rows
//! CREATE TABLE t (a int)
//!
//! error 42P01                                   the SQLSTATE
//! SELECT * FROM nowhere
//!
//! error 22003
//! SELECT 1 + 1
//! differs: the reason why Rhumb gives another result, which follows
//! query SELECT 1 (?column? int4)
//! ----
//! 2
//!
//! session b                                     what follows is of another session
//! ```
//!
//! Paragraphs are apart by an empty line. One without a result is a statement that has not been recorded. Rows of a statement without ORDER BY are
//! sorted.

use std::fmt;

/// The reason of a difference that nobody has explained.
pub const NO_REASON: &str = "?";

const DIFFERS: &str = "differs: ";
const ROWS: &str = "----";
const SESSION: &str = "session ";

/// What a statement is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `ok` and the tag, `query`, the tag and the columns, or `error` and the SQLSTATE.
    pub head: String,
    /// The values of each row.
    pub rows: Vec<String>,
}

/// That Rhumb answers something else than PostgreSQL.
#[derive(Clone, Debug)]
pub struct Difference {
    pub reason: String,
    pub outcome: Outcome,
}

/// A statement with its result.
#[derive(Clone, Debug)]
pub struct Record {
    /// Lines before it that begin with `#`.
    pub comments: Vec<String>,
    pub sql: String,
    /// PostgreSQL's answer, once it is recorded.
    pub expected: Option<Outcome>,
    pub difference: Option<Difference>,
}

/// A paragraph of a script.
#[derive(Clone, Debug)]
pub enum Item {
    Comment(Vec<String>),
    /// The session of the statements that follow.
    Session(String),
    Record(Record),
}

/// The paragraphs of a file.
#[derive(Clone, Debug)]
pub struct Script {
    pub items: Vec<Item>,
}

impl Script {
    pub fn parse(text: &str) -> Script {
        let paragraphs = text.split("\n\n").map(|paragraph| paragraph.trim_matches('\n')).filter(|paragraph| !paragraph.is_empty());
        Script { items: paragraphs.map(item).collect() }
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.items.iter().filter_map(|item| match item {
            Item::Record(record) => Some(record),
            _ => None,
        })
    }

    pub fn differences(&self) -> impl Iterator<Item = (&Record, &Difference)> {
        self.records().filter_map(|record| Some((record, record.difference.as_ref()?)))
    }

    /// The lines of the first comment, without their marks: the title, and prose.
    pub fn title_and_prose(&self) -> (String, String) {
        let Some(Item::Comment(lines)) = self.items.first() else { return Default::default() };
        let mut lines = lines.iter().map(|line| line.trim_start_matches('#').trim());
        let title = lines.next().unwrap_or_default().to_owned();
        (title, lines.collect::<Vec<_>>().join("\n").trim().to_owned())
    }
}

fn item(paragraph: &str) -> Item {
    let mut lines = paragraph.lines().peekable();
    let mut comments = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with('#')) {
        comments.push(line.to_owned());
    }
    let Some(first) = lines.peek() else { return Item::Comment(comments) };
    if let Some(name) = first.strip_prefix(SESSION) {
        return Item::Session(name.to_owned());
    }
    let head = lines.next_if(|line| is_head(line)).map(str::to_owned);
    let mut sql = Vec::new();
    while let Some(line) = lines.next_if(|line| *line != ROWS && !line.starts_with(DIFFERS)) {
        sql.push(line);
    }
    let mut rows = || {
        let mut rows = Vec::new();
        lines.next_if(|line| *line == ROWS);
        while let Some(row) = lines.next_if(|line| !line.starts_with(DIFFERS)) {
            rows.push(row.to_owned());
        }
        let reason = lines.next().and_then(|line| line.strip_prefix(DIFFERS));
        let next_head = reason.and_then(|reason| Some((reason.to_owned(), lines.next()?.to_owned())));
        (rows, next_head)
    };
    let (expected_rows, next) = rows();
    let expected = head.map(|head| Outcome { head, rows: expected_rows });
    let difference = next.map(|(reason, head)| Difference { reason, outcome: Outcome { head, rows: rows().0 } });
    Item::Record(Record { comments, sql: sql.join("\n"), expected, difference })
}

fn is_head(line: &str) -> bool {
    line.starts_with("ok ") || line.starts_with("query ") || line.starts_with("error ")
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, item) in self.items.iter().enumerate() {
            if place > 0 {
                writeln!(f)?;
            }
            match item {
                Item::Comment(lines) => lines.iter().try_for_each(|line| writeln!(f, "{line}"))?,
                Item::Session(name) => writeln!(f, "{SESSION}{name}")?,
                Item::Record(record) => write!(f, "{record}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.comments.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        if let Some(expected) = &self.expected {
            writeln!(f, "{}", expected.head)?;
        }
        writeln!(f, "{}", self.sql)?;
        if let Some(expected) = &self.expected {
            expected.write_rows(f)?;
        }
        if let Some(Difference { reason, outcome }) = &self.difference {
            writeln!(f, "{DIFFERS}{reason}\n{}", outcome.head)?;
            outcome.write_rows(f)?;
        }
        Ok(())
    }
}

impl Outcome {
    fn write_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.head.starts_with("query ") && self.rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "{ROWS}")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }

    /// On one line, for people: the head, and the first rows.
    pub fn brief(&self) -> String {
        const ROWS_SHOWN: usize = 3;
        if !self.head.starts_with("query ") {
            return self.head.clone();
        }
        let rows: Vec<&str> = self.rows.iter().take(ROWS_SHOWN).map(String::as_str).collect();
        let more = if self.rows.len() > ROWS_SHOWN { ", …" } else { "" };
        format!("{}: {}{more}", self.head, rows.join(", "))
    }
}
