//! Clients of quotas by the Redis protocol: they acquire and release under ids, and ask again under the same id when an answer is lost.
//!
//! Of each quota a journal says how many tokens clients hold at the least and at the most. At the least they never hold more than the limit.

use crate::cluster::Cluster;
use crate::soak::Soak;
use rhumb_core::Rng;
use serde_json::Value;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The quotas, each by the protocol that it is named after.
pub const QUOTAS: [&str; 2] = ["majority", "any"];
/// Tokens of each.
pub const LIMIT: i64 = 60;
/// A client holds at most so many tokens of a quota.
const HELD_MAX: i64 = 16;
const AMOUNT_MAX: u64 = 4;
const THINKS_MS: (u64, u64) = (200, 800);
/// A site knows an id for 60 s; a retry that is answered comes well before.
const RETRY_WITHIN: Duration = Duration::from_secs(45);
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
const BREATH: Duration = Duration::from_millis(500);
/// How long tokens may take to come together once all is healed.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// What clients were told of a quota.
#[derive(Debug, Default)]
pub struct Journal {
    pub name: &'static str,
    moved: Mutex<Moved>,
    /// Operations answered with success.
    pub done: AtomicU64,
}

/// Tokens acquired and released, as acknowledged and as asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    acquired: i64,
    acquired_at_most: i64,
    released: i64,
    released_at_most: i64,
}

impl Journal {
    /// That of a new quota.
    pub fn new(name: &'static str) -> Journal {
        Journal { name, ..Journal::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Moved> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What clients may hold.
    fn held(&self) -> RangeInclusive<i64> {
        let moved = *self.lock();
        moved.acquired - moved.released_at_most..=moved.acquired_at_most - moved.released
    }

    fn asks(&self, operation: Operation) {
        let mut moved = self.lock();
        match operation {
            Operation::Acquire(amount) => moved.acquired_at_most += amount,
            Operation::Release(amount) => moved.released_at_most += amount,
        }
    }

    fn answered(&self, operation: Operation, answer: &Answer) {
        let mut moved = self.lock();
        match (operation, answer) {
            (Operation::Acquire(amount), Answer::Done) => moved.acquired += amount,
            (Operation::Release(amount), Answer::Done) => moved.released += amount,
            (Operation::Acquire(amount), Answer::Refused(_)) => moved.acquired_at_most -= amount,
            (Operation::Release(amount), Answer::Refused(_)) => moved.released_at_most -= amount,
            (_, Answer::Unknown) => {}
        }
        self.done.fetch_add(u64::from(*answer == Answer::Done), Ordering::Relaxed);
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Acquire(i64),
    Release(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Done,
    /// Nothing was done, for this reason.
    Refused(String),
    Unknown,
}

/// Makes the quotas.
pub fn create(cluster: &Cluster) {
    for name in QUOTAS {
        cluster.done(&["quota", "create", name, &LIMIT.to_string(), "--protocol", name]);
    }
}

/// A client in one region.
pub struct Client {
    pub region: usize,
    pub address: SocketAddr,
    pub rng: Rng,
    pub journals: Vec<Arc<Journal>>,
}

impl Client {
    /// Works until the soak is over; what is under way then is finished.
    pub async fn work(mut self, soak: Arc<Soak>) {
        let mut connection = None;
        let mut held = vec![0; self.journals.len()];
        for number in 0u64.. {
            tokio::time::sleep(Duration::from_millis(self.rng.between(THINKS_MS.0, THINKS_MS.1))).await;
            if soak.is_over() {
                return;
            }
            let quota = self.rng.below(self.journals.len() as u64) as usize;
            let amount = self.rng.between(1, AMOUNT_MAX) as i64;
            let acquires = held[quota] < amount || (held[quota] + amount <= HELD_MAX && self.rng.chance(0.55));
            let operation = if acquires { Operation::Acquire(amount) } else { Operation::Release(amount) };
            let answer = self.operate(&mut connection, quota, operation, number).await;
            match (&answer, operation) {
                (Answer::Done, Operation::Acquire(amount)) => held[quota] += amount,
                // What may have been released is not released again.
                (Answer::Done | Answer::Unknown, Operation::Release(amount)) => held[quota] -= amount,
                _ => {}
            }
            let journal = &self.journals[quota];
            let refused = ["NOTHELD", "NOQUOTA", "IDREUSED", "INVALID", "ERR"];
            if let Answer::Refused(reason) = &answer
                && refused.iter().any(|code| reason.starts_with(code))
            {
                soak.found(format!("quota {} in region {}: {operation:?} was refused: {reason}", journal.name, self.region));
            }
            let least = *journal.held().start();
            if least > LIMIT {
                soak.found(format!("quota {}: clients hold {least} tokens at the least; the limit is {LIMIT}", journal.name));
            }
        }
    }

    /// Asks, again and again if need be.
    async fn operate(&self, connection: &mut Option<BufReader<TcpStream>>, quota: usize, operation: Operation, number: u64) -> Answer {
        let journal = &self.journals[quota];
        let (word, amount) = match operation {
            Operation::Acquire(amount) => ("ACQUIRE", amount),
            Operation::Release(amount) => ("RELEASE", amount),
        };
        let command = format!("{word} {} {amount} ID {}-{number}\r\n", journal.name, self.region);
        journal.asks(operation);
        let (begun, mut retried) = (Instant::now(), false);
        let answer = loop {
            match say(connection, self.address, &command).await {
                Some(line) if line.starts_with(':') => break Answer::Done,
                // A first answer of that kind says that nothing was done; a later one only that the retry did nothing.
                Some(line) if !line.starts_with("-UNKNOWN") && !retried => break Answer::Refused(line[1..].to_owned()),
                Some(_) | None if begun.elapsed() > RETRY_WITHIN => break Answer::Unknown,
                Some(_) => tokio::time::sleep(BREATH).await,
                None => {
                    *connection = None;
                    tokio::time::sleep(BREATH).await;
                }
            }
            retried = true;
        };
        journal.answered(operation, &answer);
        answer
    }
}

/// Says one thing, and returns the line that answers it. `None` if there is none, or nobody to say it to.
async fn say(connection: &mut Option<BufReader<TcpStream>>, address: SocketAddr, command: &str) -> Option<String> {
    let said = async {
        let stream = match connection {
            Some(stream) => stream,
            None => connection.insert(BufReader::new(TcpStream::connect(address).await.ok()?)),
        };
        stream.get_mut().write_all(command.as_bytes()).await.ok()?;
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|bytes| *bytes > 0)?;
        Some(line.trim_end().to_owned())
    };
    timeout(ANSWER_WITHIN, said).await.ok().flatten()
}

/// Counts all tokens of a quota at one moment, as a site tells them; `None` if it cannot now. An error, if they are not the limit.
pub fn count(cluster: &Cluster, region: usize, name: &str) -> Option<Result<i64, String>> {
    let (status, body) = cluster.post(region, &format!("/quotas/{name}/read"), "{}").ok()?;
    if status != 200 {
        return None;
    }
    let tokens: Value = serde_json::from_str(&body).ok()?;
    let number = |field: &str| tokens[field].as_i64().unwrap_or_default();
    let sum = number("left") + number("held") + number("offered") - number("owed");
    Some(if sum == LIMIT { Ok(number("held")) } else { Err(format!("{sum} tokens of quota {name}, not {LIMIT}: {body}")) })
}

/// Looks at the quotas once all is healed and nobody uses them. Returns what is not as it must be.
pub fn check(cluster: &Cluster, journals: &[Arc<Journal>]) -> Vec<String> {
    let mut found = Vec::new();
    for journal in journals {
        let name = journal.name;
        let begun = Instant::now();
        let counted = loop {
            match count(cluster, 1, name) {
                None if begun.elapsed() < SETTLED_WITHIN => std::thread::sleep(BREATH),
                counted => break counted,
            }
        };
        let held = match counted {
            Some(Ok(held)) => held,
            Some(Err(wrong)) => {
                found.push(wrong);
                continue;
            }
            None => {
                found.push(format!("quota {name} cannot be read exactly once all is healed"));
                continue;
            }
        };
        if !journal.held().contains(&held) {
            found.push(format!("clients hold {held} tokens of quota {name}; {:?} is possible", journal.held()));
        }
        found.extend(drain(cluster, name, LIMIT - held));
    }
    found
}

/// Acquires one by one in every region until refused: all that is left is to be had so, and no more.
fn drain(cluster: &Cluster, name: &str, left: i64) -> Option<String> {
    let path = format!("/quotas/{name}/acquire");
    let takes_one = |region: usize| matches!(cluster.post(region, &path, "{\"amount\":1}"), Ok((200, _)));
    let taken: usize = (0..cluster.len()).map(|region| (0..=LIMIT).take_while(|_| takes_one(region)).count()).sum();
    (taken as i64 != left).then(|| format!("{taken} tokens of quota {name} were to be had, not the {left} that were left"))
}
