//! A probe per region: one connection that raises a counter of its own, over and over, each time by one statement.
//!
//! Nobody else writes the counter, so whatever delays the probe is the commit itself, and what the counter may be is
//! known at all times: every acknowledged raise counts, none that failed does, one whose outcome is unknown may.

use rhumb_bench::client::postgres::{Access, Endpoint, Failure, Session, get};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const RAISE: &str = "UPDATE probe SET raised = raised + 1 WHERE region = $1 RETURNING raised";
const READ_ONE: &str = "SELECT raised FROM probe WHERE region = $1";
const READ: &str = "SELECT region, raised FROM probe";

/// How long a probe waits after a failure, so as not to drown a gateway that refuses at once.
const BREATH: Duration = Duration::from_millis(20);

/// A probe and all that it saw.
pub struct Probe {
    region: i32,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The counter is at least this, and at most that.
    least: i64,
    most: i64,
    acknowledged: Vec<Raise>,
    failed: Vec<(Raise, Failure)>,
}

/// An attempt to raise the counter.
#[derive(Clone, Copy, Debug)]
pub struct Raise {
    /// When it was sent.
    pub begun: Instant,
    /// When the answer was there.
    pub ended: Instant,
}

/// Creates the counters and starts a probe at every one of `endpoints`.
pub async fn start(endpoints: &[Endpoint]) -> Vec<Arc<Probe>> {
    let session = Session::connect(&endpoints[0], &BTreeMap::new()).await.expect("connected");
    session.batch("CREATE TABLE probe (region INT PRIMARY KEY, raised BIGINT)").await.expect("created");
    let mut probes = Vec::new();
    for (region, endpoint) in (0..).zip(endpoints) {
        session.batch(&format!("INSERT INTO probe VALUES ({region}, 0)")).await.expect("inserted");
        let probe = Arc::new(Probe { region, seen: Mutex::default() });
        let session = Session::connect(endpoint, &BTreeMap::new()).await.expect("connected");
        tokio::spawn(probe.clone().work(session));
        probes.push(probe);
    }
    probes
}

/// Reads all counters at the gateway of `session`, with `suffix` after the statement, by region.
pub async fn counters(session: &mut Session, suffix: &str) -> Result<Vec<i64>, Failure> {
    session.begin_autocommit(Access::ReadOnly).await?;
    let rows = session.query_text(&format!("{READ} {suffix} ORDER BY region")).await?;
    let raised = |row: &Vec<(String, Option<String>)>| row[1].1.as_ref().expect("no null").parse().expect("a number");
    Ok(rows.iter().map(raised).collect())
}

/// Reads the counter of one region at the gateway of `session`.
pub async fn counter(session: &mut Session, region: usize) -> Result<i64, Failure> {
    session.begin_autocommit(Access::ReadOnly).await?;
    let row = session.query_one(READ_ONE, &[(region as i32).into()]).await?;
    get(&row, 0)
}

impl Probe {
    async fn work(self: Arc<Probe>, mut session: Session) {
        loop {
            self.seen.lock().expect("whole").most += 1;
            let begun = Instant::now();
            let outcome = raise(&mut session, self.region).await;
            let failed = outcome.is_err();
            if let Err(failure) = &outcome {
                session.settle(failure).await;
            }
            self.note(begun, outcome);
            if failed {
                tokio::time::sleep(BREATH).await;
            }
        }
    }

    fn note(&self, begun: Instant, outcome: Result<i64, Failure>) {
        let mut seen = self.seen.lock().expect("whole");
        let ended = Instant::now();
        match outcome {
            Ok(to) => {
                assert!((seen.least + 1..=seen.most).contains(&to), "{} was raised to {to}, from {} at least", self.region, seen.least);
                // A raise before this one whose outcome was unknown is in it, or never will be.
                (seen.least, seen.most) = (to, to);
                seen.acknowledged.push(Raise { begun, ended });
            }
            Err(failure) => {
                assert!(!matches!(failure, Failure::Refused { .. }), "{failure:?}");
                if !matches!(failure, Failure::Unknown { .. }) {
                    seen.most -= 1;
                }
                seen.failed.push((Raise { begun, ended }, failure));
            }
        }
    }

    /// What the counter may be.
    pub fn range(&self) -> RangeInclusive<i64> {
        let seen = self.seen.lock().expect("whole");
        seen.least..=seen.most
    }

    /// The raises acknowledged from `from` on.
    pub fn acknowledged_from(&self, from: Instant) -> Vec<Raise> {
        self.seen.lock().expect("whole").acknowledged.iter().filter(|raise| raise.ended >= from).copied().collect()
    }

    /// The raises that ended in a failure from `from` on.
    pub fn failed_from(&self, from: Instant) -> Vec<(Raise, Failure)> {
        self.seen.lock().expect("whole").failed.iter().filter(|(raise, _)| raise.ended >= from).cloned().collect()
    }

    /// How many raises were acknowledged between two moments, and for how long at a time none was.
    pub fn between(&self, from: Instant, to: Instant) -> (usize, Duration) {
        let mut last = from;
        let (mut count, mut longest) = (0, Duration::ZERO);
        for ended in self.acknowledged_from(from).iter().map(|raise| raise.ended).filter(|ended| *ended < to) {
            longest = longest.max(ended - last);
            (count, last) = (count + 1, ended);
        }
        (count, longest.max(to - last))
    }
}

async fn raise(session: &mut Session, region: i32) -> Result<i64, Failure> {
    session.begin_autocommit(Access::ReadWrite).await?;
    let row = session.query_one(RAISE, &[region.into()]).await?;
    session.end_autocommit();
    get(&row, 0)
}
