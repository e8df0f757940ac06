//! Rows that a statement must have all of before it goes on: those that it writes, so that it never meets its own changes, and those
//! that it locks.
//!
//! Invariant: their bytes are charged to the memory of the site's queries for as long as they are held, so they are bounded like what is
//! sorted or joined; and rows to be written are no more than a transaction may write, which is noticed before all of them are there.

use super::RowStream;
use crate::engine::{Engine, from_datafusion};
use crate::error::{SqlError, SqlResult};
use crate::storage::Row;
use crate::types::Datum;
use datafusion::execution::memory_pool::MemoryReservation;
use futures::StreamExt;
use rhumb_commit::transaction::TxnError;

/// The rows that a transaction may write, whichever the protocol of its database.
pub(super) const WRITTEN_ROWS_MAX: usize = 100_000;

/// Error 54000: more rows than a transaction may write.
pub(super) fn too_many(rows_max: usize) -> SqlError {
    TxnError::TooLarge(format!("the transaction writes more than {rows_max} rows: split it into several").into()).into()
}

/// Rows held by a statement.
#[derive(Debug)]
pub struct Gathered {
    pages: Vec<Vec<Row>>,
    rows: usize,
    rows_max: usize,
    charge: MemoryReservation,
}

impl Gathered {
    /// None yet of the rows that a statement locks.
    pub fn to_lock(engine: &Engine) -> Gathered {
        Gathered::within(engine.query_memory("rows of a statement"), usize::MAX)
    }

    /// None yet of the rows that a statement writes.
    pub fn to_write(engine: &Engine) -> Gathered {
        Gathered::within(engine.query_memory("rows of a statement"), WRITTEN_ROWS_MAX)
    }

    fn within(charge: MemoryReservation, rows_max: usize) -> Gathered {
        Gathered { pages: Vec::new(), rows: 0, rows_max, charge }
    }

    /// Takes a page. Errors: 53200 if the queries of the site have no memory for it, 54000 if it is more than may be written.
    pub fn push(&mut self, page: Vec<Row>) -> SqlResult<()> {
        self.rows += page.len();
        if self.rows > self.rows_max {
            return Err(too_many(self.rows_max));
        }
        self.charge.try_grow(page.iter().flatten().map(Datum::size).sum()).map_err(|error| from_datafusion(&error))?;
        self.pages.push(page);
        Ok(())
    }

    /// All of them, and the charge, to be kept as long as they are.
    pub fn into_rows(self) -> (Vec<Row>, MemoryReservation) {
        (self.pages.into_iter().flatten().collect(), self.charge)
    }

    /// All of them, page by page.
    pub fn into_stream(self) -> RowStream {
        let Gathered { pages, charge, .. } = self;
        futures::stream::iter(pages)
            .map(move |page| {
                charge.shrink(page.iter().flatten().map(Datum::size).sum());
                Ok(page)
            })
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use std::sync::Arc;

    fn page(rows: usize) -> Vec<Row> {
        vec![vec![Datum::Utf8(Some("x".repeat(1_000)))]; rows]
    }

    #[tokio::test]
    async fn rows_are_bounded_in_number_and_in_bytes_and_give_back_what_they_took() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100_000));
        let charge = || MemoryConsumer::new("rows").register(&pool);
        let mut few = Gathered::within(charge(), 10);
        few.push(page(10)).expect("as many as may be written");
        let error = few.push(page(1)).expect_err("one more");
        assert_eq!((error.state().code(), error.message().contains("more than 10 rows")), ("54000", true));
        drop(few);
        let mut large = Gathered::within(charge(), usize::MAX);
        large.push(page(40)).expect("there is memory");
        large.push(page(40)).expect("there is memory");
        assert_eq!(large.push(page(40)).expect_err("there is none").state().code(), "53200");
        let taken = pool.reserved();
        let mut pages = large.into_stream();
        assert_eq!(pages.next().await.expect("a page").expect("rows").len(), 40);
        assert_eq!(pool.reserved(), taken / 2);
        drop(pages);
        assert_eq!(pool.reserved(), 0);
    }
}
