//! What the client is told of a statement.

use super::copy::CopyIn;
use crate::executor::{ResultColumn, RowStream};
use crate::types::SqlType;
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
