//! How many bytes prepared statements and portals hold: each connection has a budget, and all of a site share one.
//!
//! A statement is charged when it is prepared and a portal when it is bound, before either is kept; both are given back when they are
//! closed, replaced or their connection ends. The unnamed statement, which each connection has one of at the most, is charged to the
//! site alone: a long text that is run once need not fit into what the connection may keep.

use crate::error::{SqlError, SqlResult, SqlState};
use crate::storage::Row;
use crate::types::Datum;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that prepared statements and portals of one connection may hold.
pub const CONNECTION_BYTES_MAX: usize = 16 << 20;
/// The bytes that a statement or a portal holds at the least: its name, its place, the smallest plan.
const LEAST_BYTES: usize = 2 << 10;
/// What a byte of a statement's text is taken to become in its tree and its plan, and what is remembered of a parameter, in bytes.
const TREE_BYTES_PER_BYTE: usize = 32;

/// Bytes to be had, and how many are taken.
#[derive(Debug)]
pub struct Pool {
    bytes_max: usize,
    taken: AtomicUsize,
}

impl Pool {
    /// A pool of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Pool {
        Pool { bytes_max, taken: AtomicUsize::new(0) }
    }

    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What one connection may take.
#[derive(Debug)]
pub struct Budget {
    connection: Arc<Pool>,
    site: Arc<Pool>,
}

/// Bytes taken, until it is dropped.
#[derive(Debug)]
pub struct Charge {
    bytes: usize,
    pools: Vec<Arc<Pool>>,
}

impl Budget {
    /// The budget of a connection of a site with this pool.
    pub fn new(site: Arc<Pool>) -> Budget {
        Budget { connection: Arc::new(Pool::new(CONNECTION_BYTES_MAX)), site }
    }

    /// Takes what the statement `name` holds, whose text has so many bytes and which has so many parameters. Error 53200.
    pub fn statement(&self, name: &str, text_bytes: usize, parameters: usize) -> SqlResult<Charge> {
        let bytes = LEAST_BYTES + name.len() + (text_bytes + parameters).saturating_mul(TREE_BYTES_PER_BYTE);
        if name.is_empty() { self.take_from_site(bytes) } else { self.take(bytes) }
    }

    /// Takes what a portal holds. Error 53200.
    pub fn portal(&self, name: &str, parameters: &[Datum]) -> SqlResult<Charge> {
        self.take(LEAST_BYTES + name.len() + parameters.iter().map(Datum::size).sum::<usize>())
    }

    /// Takes what rows hold that wait for their client. Error 53200.
    pub fn rows(&self, rows: &[Row]) -> SqlResult<Charge> {
        self.take(rows.iter().flatten().map(Datum::size).sum())
    }

    fn take(&self, bytes: usize) -> SqlResult<Charge> {
        let mut charge = self.take_from_site(bytes)?;
        if !self.connection.take(bytes) {
            let message = format!("prepared statements and portals of a connection hold at most {} MiB", CONNECTION_BYTES_MAX >> 20);
            return Err(exhausted(message, "Close those that are no longer needed."));
        }
        charge.pools.push(self.connection.clone());
        Ok(charge)
    }

    fn take_from_site(&self, bytes: usize) -> SqlResult<Charge> {
        if self.site.take(bytes) {
            return Ok(Charge { bytes, pools: vec![self.site.clone()] });
        }
        let message =
            format!("prepared statements and portals of all connections of this site hold at most {} MiB", self.site.bytes_max >> 20);
        Err(exhausted(message, "Close those that are no longer needed, connect to another site, or raise limits.statements_mib."))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.pools.iter().for_each(|pool| pool.give_back(self.bytes));
    }
}

fn exhausted(message: String, hint: &str) -> SqlError {
    SqlError::new(SqlState::OutOfMemory, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_comes_back_whoever_refused_the_rest() {
        let site = Arc::new(Pool::new(CONNECTION_BYTES_MAX * 2));
        let (one, two, three) = (Budget::new(site.clone()), Budget::new(site.clone()), Budget::new(site.clone()));
        let all = |budget: &Budget| budget.take(CONNECTION_BYTES_MAX);
        let first = all(&one).expect("there is as much");
        let refused = one.take(1).expect_err("the connection has no more");
        assert_eq!((refused.state().code(), refused.message().contains("a connection")), ("53200", true));
        let second = all(&two).expect("there is as much");
        let refused = three.take(1).expect_err("the site has no more");
        assert_eq!((refused.state().code(), refused.message().contains("of this site")), ("53200", true));
        assert!(three.take(usize::MAX).is_err());
        drop((first, second));
        assert_eq!(site.taken.load(Ordering::Relaxed), 0);
        assert!(all(&one).is_ok() && all(&three).is_ok());
        assert_eq!((site.taken.load(Ordering::Relaxed), one.connection.taken.load(Ordering::Relaxed)), (0, 0));
    }
}
