//! A client's connection: a session of one incarnation of a site. It is lost with that.

use crate::shared::Shared;
use crate::sites::Sites;
use crate::time::VirtualTime;
use futures::future::{Either, select};
use rhumb_core::{SiteId, Timestamp};
use rhumb_sim::history::Mode;
use rhumb_sql::embedded::{Client, Reply};
use rhumb_sql::error::SqlError;
use std::pin::pin;

/// SQLSTATEs that statements of this workload may end in. Anything else is a violation.
const EXPECTED: [&str; 11] = [
    "23503", // a row is referenced, or what is referenced is not there
    "23505", // a key is taken
    "25P02", // a transaction that failed before
    "40001", // another transaction was in the way
    "40003", // the outcome is unknown
    "42704", // no such index
    "42883", // no such procedure
    "42P01", // no such table
    "54000", // too large
    "55P03", // lock_timeout
    "57014", // statement_timeout
];
/// The site cannot serve now.
const UNAVAILABLE: &str = "57P03";
/// Characters of a statement or an answer that the trace shows.
const LOGGED_MAX: usize = 300;

/// Why a statement did not succeed.
#[derive(Clone, Debug)]
pub enum Failed {
    /// The connection is lost, and so is the answer.
    Lost,
    /// The site says so.
    Refused(&'static str),
}

impl Failed {
    /// True if what was to be committed may have been committed.
    pub fn may_have(&self) -> bool {
        matches!(self, Failed::Lost | Failed::Refused("40003"))
    }
}

/// A connection.
pub struct Link {
    client: Client,
    name: String,
    site: SiteId,
    incarnation: u64,
    sites: Sites,
    time: VirtualTime,
    shared: Shared,
    lost: bool,
}

/// What a client connects by.
#[derive(Clone)]
pub struct Dialer {
    /// The sites.
    pub sites: Sites,
    /// The time.
    pub time: VirtualTime,
    /// Where it is recorded.
    pub shared: Shared,
    /// In which database.
    pub database: String,
    /// How a statement that only reads stands in the history.
    pub reads: Mode,
}

impl Dialer {
    /// A session at `site` for the client `name`, unless it cannot be had now.
    pub async fn connect(&self, name: &str, site: SiteId) -> Option<Link> {
        let (incarnation, embedded) = self.sites.serving(site)?;
        let crashed = self.sites.crashed(site, incarnation);
        let client = match select(pin!(embedded.connect(&self.database)), pin!(crashed)).await {
            Either::Left((Ok(client), _)) => client,
            Either::Left((Err(error), _)) => {
                judge(&self.shared, "CONNECT", &error);
                return None;
            }
            Either::Right(_) => return None,
        };
        let (sites, time, shared) = (self.sites.clone(), self.time.clone(), self.shared.clone());
        Some(Link { client, name: name.to_owned(), site, incarnation, sites, time, shared, lost: false })
    }
}

impl Link {
    /// Runs a text; what each of its statements did.
    pub async fn query(&mut self, sql: &str) -> Result<Vec<Reply>, Failed> {
        let Link { client, name, site, incarnation, sites, time, shared, lost } = self;
        shared.log(time.now(), format_args!("{name}@{site} {}", shortened(sql)));
        let crashed = sites.crashed(*site, *incarnation);
        let result = match select(pin!(client.query(sql)), pin!(crashed)).await {
            Either::Left((result, _)) => result.map_err(|error| {
                shared.log(time.now(), format_args!("{name}@{site} fails: {error}"));
                judge(shared, sql, &error);
                Failed::Refused(error.state().code())
            }),
            Either::Right(_) => {
                *lost = true;
                Err(Failed::Lost)
            }
        };
        shared.log(time.now(), format_args!("{name}@{site} ← {}", shortened(&format!("{result:?}"))));
        result
    }

    /// The same of a text of one statement.
    pub async fn statement(&mut self, sql: &str) -> Result<Reply, Failed> {
        Ok(self.query(sql).await?.pop().unwrap_or_default())
    }

    /// Leaves the transaction that it may be in.
    pub async fn leave(&mut self) {
        if !self.lost && self.client.is_in_transaction() {
            // It is lost, or there is no transaction any more.
            let _ = self.query("ROLLBACK").await;
        }
    }

    /// True once nothing can be asked any more.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// The timestamp of the last transaction that it knows to be committed.
    pub fn last_commit(&self) -> Timestamp {
        self.client.last_commit()
    }
}

/// Counts an error; one that must not be ends the run.
fn judge(shared: &Shared, sql: &str, error: &SqlError) {
    let code = error.state().code();
    shared.count(code);
    if code != UNAVAILABLE && !EXPECTED.contains(&code) {
        let detail = error.detail().unwrap_or_default();
        shared.wrong(|| format!("{} failed with {code}: {error} {detail}", shortened(sql)));
    }
}

fn shortened(text: &str) -> String {
    let text = text.replace('\n', " ");
    match text.char_indices().nth(LOGGED_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
