//! What the client is told of a statement.

use super::copy_in::CopyIn;
use crate::executor::{Effect, Plan, ResultColumn, RowStream};
use crate::parser::StatementKind;
use crate::storage::Row;
use crate::types::SqlType;
use futures::StreamExt;
use std::sync::Arc;

/// What a statement did.
pub enum Outcome {
    /// It is done.
    Done(String),
    /// It returns rows; the client is told the tag after the last of them.
    Rows { columns: Arc<[ResultColumn]>, rows: RowStream, tag: Tag },
    /// It awaits the rows of a COPY.
    Copy(Box<CopyIn>),
}

/// The command tag of a statement that returns rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    /// This text.
    Fixed(String),
    /// This word and the number of rows.
    Counted(&'static str),
}

impl Tag {
    /// The text, given the number of rows.
    pub fn text(&self, rows: usize) -> String {
        match self {
            Tag::Fixed(text) => text.clone(),
            Tag::Counted(word) => format!("{word} {rows}"),
        }
    }
}

/// What is known of a statement before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Described {
    /// The types of its parameters.
    pub parameters: Vec<SqlType>,
    /// The columns of its rows; `None` if it returns none.
    pub columns: Option<Arc<[ResultColumn]>>,
}

/// Rows that are all there.
pub fn buffered(rows: Vec<Row>) -> RowStream {
    futures::stream::once(std::future::ready(Ok(rows))).boxed()
}

/// What the client is told of an effect.
pub fn outcome(kind: &StatementKind, plan: &Plan, effect: Effect) -> Outcome {
    let columns = plan.columns.clone();
    match (effect, columns) {
        (Effect::Rows(rows), columns) => Outcome::Rows { columns: columns.unwrap_or_default(), rows, tag: Tag::Counted("SELECT") },
        (Effect::Written { count, returning }, columns) => {
            let tag = match kind {
                StatementKind::Insert(_) => format!("INSERT 0 {count}"),
                StatementKind::Call { .. } => "CALL".into(),
                kind => format!("{} {count}", kind.name()),
            };
            match columns {
                Some(columns) => Outcome::Rows { columns, rows: buffered(returning), tag: Tag::Fixed(tag) },
                None => Outcome::Done(tag),
            }
        }
    }
}
