//! A majority of the regions dies: the others must say so, soon and plainly, and must not answer wrongly.

use super::cluster::Cluster;
use super::probe::{self, Probe};
use super::replicas;
use rhumb_bench::client::postgres::Failure;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, Error};

/// Gateways answer within eight seconds, one way or the other; the rest is for a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(20);
const BREATH: Duration = Duration::from_millis(50);

/// SQLSTATE of what certainly did not happen, and of what may have.
const UNAVAILABLE: &str = "57P03";
const UNKNOWN: &str = "40003";

/// How the answers begin of a gateway that does not know yet.
const UNANSWERED: &str = "the read was not answered within ";
const IN_DOUBT: &str = "the outcome of the commit is unknown: ";

const READ: &str = "SELECT * FROM late";
/// When rows were written, or were to be.
const BEFORE: &str = "before";
const AT_ONCE: &str = "at once";
const LATER: &str = "later";

/// Creates what the survivors will try to write.
pub async fn prepare(client: &Client) {
    client.batch_execute("CREATE TABLE late (region INT, said TEXT, PRIMARY KEY (region, said))").await.expect("created");
}

/// Kills them, expects the others to fail as they should, and has them return.
pub async fn dies(cluster: &Cluster, fates: &[usize]) {
    let dead = cluster.fated(fates);
    let alive = cluster.others(&dead);
    let moment = replicas::now(&cluster.endpoints()[alive[0]]).await;
    let (mut survivors, mut past) = (Vec::new(), Vec::new());
    for &region in &alive {
        survivors.push(Survivor::at(cluster, region, &dead).await);
        past.push(stale(cluster, region, &moment).await);
    }
    let killed = cluster.kill(&dead);
    println!("\nkill -9 of {}", cluster.names(&dead));
    futures::future::join_all(survivors.iter().map(Survivor::is_refused)).await;
    for (&region, past) in alive.iter().zip(past) {
        expect_no_raises(&cluster.probes()[region], cluster.name(region), killed).await;
        assert_eq!(stale(cluster, region, &moment).await, past, "the past does not change");
    }
    cluster.restart(&dead);
    replicas::recovered(cluster).await;
    // What was acknowledged is there, what was refused is not; what nobody knew may be.
    let counted = survivors[0].reader.query("SELECT said, COUNT(*) FROM late GROUP BY said", &[]).await.expect("a majority is there");
    let counted: BTreeMap<String, i64> = counted.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!((counted.get(BEFORE), counted.get(LATER)), (Some(&(alive.len() as i64)), None), "{counted:?}");
}

async fn stale(cluster: &Cluster, region: usize, moment: &str) -> Vec<i64> {
    let mut session = replicas::connect(&cluster.endpoints()[region]).await;
    probe::counters(&mut session, &format!("AS OF SYSTEM TIME '{moment}'")).await.expect("the past needs no majority")
}

/// A gateway that loses its majority, and its clients.
struct Survivor {
    region: usize,
    name: String,
    reader: Client,
    writer: Client,
    /// What it is to say once it knows.
    known: String,
}

impl Survivor {
    /// Connects while all live, and writes, so that the gateway knows the table.
    async fn at(cluster: &Cluster, region: usize, dead: &[usize]) -> Survivor {
        let alive = cluster.endpoints().len() - dead.len();
        let known = format!(
            "no majority of regions can be reached: {alive} of {} answer, {} are needed; not heard of: {}",
            cluster.endpoints().len(),
            cluster.endpoints().len() / 2 + 1,
            cluster.names(dead)
        );
        let name = cluster.name(region).to_owned();
        let survivor = Survivor { region, name, reader: cluster.connect(region).await, writer: cluster.connect(region).await, known };
        survivor.writer.batch_execute(&survivor.write(BEFORE)).await.expect("all live");
        survivor
    }

    fn write(&self, said: &str) -> String {
        format!("INSERT INTO late VALUES ({}, '{said}')", self.region)
    }

    /// Reads and writes: at once, when the gateway does not know yet, and once it does.
    async fn is_refused(&self) {
        let at_once = self.write(AT_ONCE);
        let (read, written) = tokio::join!(answer(&self.reader, READ), answer(&self.writer, &at_once));
        self.expect("read at once", read, &[UNANSWERED]);
        self.expect("write at once", written, &[UNANSWERED, IN_DOUBT]);
        self.expect("read later", answer(&self.reader, READ).await, &[]);
        self.expect("write later", answer(&self.writer, &self.write(LATER)).await, &[]);
    }

    /// The answer says what is the matter, in time: that no majority can be reached, or how one of `others` begins.
    fn expect(&self, what: &str, (error, took): (Error, Duration), others: &[&str]) {
        let error = error.as_db_error().expect("an answer of the server");
        let (name, state, said) = (&self.name, error.code().code(), error.message());
        println!("{name}, {what}: {state} after {:.1} s: {said}", took.as_secs_f64());
        assert!(took < ANSWER_MAX, "{took:?}");
        assert!(said == self.known || others.iter().any(|other| said.starts_with(other)), "{said}");
        assert_eq!(state, if said.starts_with(IN_DOUBT) { UNKNOWN } else { UNAVAILABLE }, "{said}");
    }
}

async fn answer(client: &Client, sql: &str) -> (Error, Duration) {
    let begun = Instant::now();
    let error = client.batch_execute(sql).await.expect_err("there is no majority");
    (error, begun.elapsed())
}

/// None of the probe's raises since then was acknowledged; the one under way failed in time, and those after it with
/// certainty.
async fn expect_no_raises(probe: &Probe, region: &str, killed: Instant) {
    let certain = |failure: &Failure| matches!(failure, Failure::Unavailable { cause } if cause.starts_with(UNAVAILABLE));
    while !probe.failed_from(killed).iter().any(|(_, failure)| certain(failure)) {
        assert!(killed.elapsed() < 2 * ANSWER_MAX, "{region} does not refuse: {:?}", probe.failed_from(killed));
        tokio::time::sleep(BREATH).await;
    }
    let longest = probe.failed_from(killed).iter().map(|(raise, _)| raise.ended - raise.begun).max().expect("there are some");
    assert!(longest < ANSWER_MAX, "{longest:?}");
    let acknowledged = probe.acknowledged_from(killed).into_iter().filter(|raise| raise.begun > killed).count();
    assert_eq!(acknowledged, 0, "{region} acknowledged what no majority can hold");
}
