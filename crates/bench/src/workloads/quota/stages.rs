//! Before a run and after it: the quota is made, and its tokens are counted.

use crate::client::redis::{Connection, Endpoint, Reply};
use crate::error::BenchError;
use crate::tables::{CheckReport, Condition};
use std::io;
use std::time::{Duration, Instant};

/// How long a quota may take until a site knows of it that was made at another.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);
/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The quota to make.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// Its name.
    pub quota: String,
    /// Its limit.
    pub limit: u64,
    /// Further words of `QUOTA.CREATE`, such as `PROTOCOL any`.
    pub words: Vec<String>,
    /// Drop one of that name first.
    pub replace: bool,
}

/// Makes the quota.
pub async fn init(endpoints: &[Endpoint], options: &InitOptions) -> Result<(), BenchError> {
    let mut site = Site::open(first(endpoints)?).await?;
    let InitOptions { quota, limit, words, replace } = options;
    if *replace {
        match site.ask(&["QUOTA.DROP", quota]).await? {
            reply if reply.code().is_none_or(|code| code == "NOQUOTA") => {}
            reply => return Err(site.refused("dropping the quota", &reply)),
        }
    }
    let limit = limit.to_string();
    let command: Vec<&str> = ["QUOTA.CREATE", quota, &limit].into_iter().chain(words.iter().map(String::as_str)).collect();
    match site.ask(&command).await? {
        reply if reply.code().is_none() => Ok(()),
        reply if reply.code() == Some("EXISTS") => Err(BenchError::QuotaExists { quota: quota.clone() }),
        reply => Err(site.refused("making the quota", &reply)),
    }
}

/// Counts the tokens of the quota at one moment, over all sites.
pub async fn check(endpoints: &[Endpoint], quota: &str) -> Result<CheckReport, BenchError> {
    let mut site = Site::open(first(endpoints)?).await?;
    let info = match site.ask(&["QUOTA.GET", quota, "EXACT"]).await? {
        reply if reply.code() == Some("NOQUOTA") => return Err(BenchError::NoQuota { quota: quota.to_owned() }),
        reply if reply.code().is_some() => return Err(site.refused("counting the tokens", &reply)),
        info => info,
    };
    let [limit, left, held, offered, owed] =
        ["limit", "left", "held", "offered", "owed"].map(|key| info.field(key).and_then(Reply::integer).unwrap_or_default());
    let condition = |number, title: &str, passed, row: String| Condition {
        number,
        title: title.to_owned(),
        passed,
        offenders: usize::from(!passed),
        rows: if passed { Vec::new() } else { vec![row] },
    };
    let counted = format!("left={left} held={held} offered={offered} owed={owed} limit={limit}");
    let whole = left + held + offered - owed == limit;
    let conditions = vec![
        condition(1, "tokens left, held and on offer, less those owed, are as many as the limit", whole, counted.clone()),
        condition(2, "clients hold no more than the limit", held <= limit, counted),
    ];
    Ok(CheckReport { workload: "quota".to_owned(), conditions })
}

/// Waits until the site at `address` knows the quota, and returns its limit.
pub(super) async fn known(endpoint: &Endpoint, quota: &str) -> Result<u64, BenchError> {
    let mut site = Site::open(endpoint).await?;
    let begun = Instant::now();
    loop {
        match site.ask(&["QUOTA.GET", quota]).await? {
            reply if reply.code() == Some("NOQUOTA") && begun.elapsed() < KNOWN_WITHIN => tokio::time::sleep(ASK_EVERY).await,
            reply if reply.code() == Some("NOQUOTA") => return Err(BenchError::NoQuota { quota: quota.to_owned() }),
            reply if reply.code().is_some() => return Err(site.refused("looking for the quota", &reply)),
            info => return Ok(info.field("limit").and_then(Reply::integer).unwrap_or_default().unsigned_abs()),
        }
    }
}

fn first(endpoints: &[Endpoint]) -> Result<&Endpoint, BenchError> {
    endpoints.first().ok_or_else(|| BenchError::Options("no address was given: pass --url HOST:PORT".to_owned()))
}

/// A site that is asked a few things.
struct Site<'a> {
    endpoint: &'a Endpoint,
    connection: Connection,
}

impl Site<'_> {
    async fn open(endpoint: &Endpoint) -> Result<Site<'_>, BenchError> {
        let connection = Connection::open(&endpoint.address).await.map_err(|error| unreachable_at(&endpoint.address, &error))?;
        Ok(Site { endpoint, connection })
    }

    async fn ask(&mut self, words: &[&str]) -> Result<Reply, BenchError> {
        self.connection.ask(words).await.map_err(|error| unreachable_at(&self.endpoint.address, &error))
    }

    fn refused(&self, doing: &str, reply: &Reply) -> BenchError {
        BenchError::Statement { doing: format!("{doing} at {}", self.endpoint.address), reason: reply.to_string() }
    }
}

/// The error of a site that does not answer.
pub(super) fn unreachable_at(address: &str, error: &io::Error) -> BenchError {
    BenchError::Connect { url: format!("redis://{address}"), reason: error.to_string() }
}
