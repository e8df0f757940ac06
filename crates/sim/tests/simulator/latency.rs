//! What a transaction costs when nothing goes wrong, exactly: round trips of the wide area plus the configured local
//! delays. The floor of a region is the round trip from it to the nearest regions that complete a majority.

use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::{Key, KeyRange, RegionId, RttMatrix, SiteId, Span, Time, Timestamp, TxnId, Value, wan};
use rhumb_replicated_commit::{Answer, Config as Protocol, Request, Site};
use rhumb_sim::{Config, LocalDelays, World};
use std::sync::Arc;

const SETTLED: Time = Time::from_micros(8_000_000);

struct Cluster {
    world: World<Site>,
    local: LocalDelays,
    rtt: RttMatrix,
}

impl Cluster {
    fn new(regions: &[&str], shards: u16) -> Cluster {
        let mut cluster = Cluster::that_begins(regions, shards);
        cluster.world.run_until(SETTLED).expect("nothing goes wrong");
        cluster
    }

    fn that_begins(regions: &[&str], shards: u16) -> Cluster {
        let paper = wan::profile("paper_replicated_commit_5").expect("shipped").matrix();
        let rtt = paper.restrict(regions).expect("regions of the paper");
        let config = Config::new(rtt.clone(), shards);
        let local = config.local;
        let topology = Arc::new(config.topology.clone());
        let world = World::new(config, 1, move |site, _| {
            Site::new(site, Arc::clone(&topology), Placement::everywhere(topology.region_count()), Protocol::default())
        });
        Cluster { world, local, rtt }
    }

    fn paper() -> Cluster {
        Cluster::new(&["california", "oregon", "virginia", "ireland", "singapore"], 1)
    }

    /// Asks the gateway of `region` and returns the answer and how long it took.
    fn ask(&mut self, region: u16, request: Request) -> (Answer, Span) {
        let asked = self.world.now();
        self.world.submit(SiteId::new(region, 0), request);
        loop {
            assert!(self.world.tick().expect("nothing goes wrong"), "the request is answered");
            if let Some(reply) = self.world.take_replies().pop() {
                return (reply.answer.expect("the gateway is up"), reply.at.since(asked));
            }
        }
    }

    fn begin(&mut self, region: u16, mode: ReadMode) -> TxnId {
        match self.ask(region, Request::Begin { mode }).0 {
            Answer::Began { txn } => txn,
            other => panic!("{other:?}"),
        }
    }

    fn commit(&mut self, region: u16, txn: TxnId, keys: &[&str]) -> (Timestamp, u32, Span) {
        let writes = keys.iter().map(|key| (Key::from(*key), Some(Value::from("v")))).collect();
        match self.ask(region, Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() }) {
            (Answer::Committed(committed), took) => (committed.at, committed.trips, took),
            (other, _) => panic!("{other:?}"),
        }
    }

    fn get(&mut self, region: u16, txn: TxnId, mode: ReadMode, key: &str) -> (Option<Value>, u32, Span) {
        match self.ask(region, Request::Get { txn, mode, keys: vec![key.into()], expect: vec![] }) {
            (Answer::Rows { mut rows, trips, .. }, took) => (rows.pop().expect("one row").value, trips, took),
            (other, _) => panic!("{other:?}"),
        }
    }

    fn rest(&mut self) {
        self.world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
    }

    fn floor(&self, region: u16) -> Span {
        self.rtt.floor(RegionId(region))
    }

    /// Gateway, replica, replica with the rows at hand, gateway: four steps, one look into the store, one sync.
    fn commit_delays(&self) -> Span {
        self.local.step * 4 + self.local.load + self.local.sync
    }

    /// The same without the sync.
    fn read_delays(&self) -> Span {
        self.local.step * 4 + self.local.load
    }
}

#[test]
fn a_commit_takes_the_floor_of_its_region_plus_the_local_delays() {
    let mut cluster = Cluster::paper();
    let milliseconds: Vec<u64> = (0..5).map(|region| cluster.floor(region).as_micros() / 1_000).collect();
    assert_eq!(milliseconds, [86, 101, 99, 159, 205]);
    for region in 0..5 {
        let txn = cluster.begin(region, ReadMode::Locking);
        let keys: Vec<String> = (0..5).map(|row| format!("row{region}.{row}")).collect();
        let (_, trips, took) = cluster.commit(region, txn, &keys.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((took, trips), (cluster.floor(region) + cluster.commit_delays(), 1), "region {region}");
        cluster.rest();
    }
}

#[test]
fn a_site_that_has_just_begun_serves_before_it_has_heard_of_the_others() {
    let mut cluster = Cluster::that_begins(&["california", "oregon", "virginia"], 1);
    cluster.world.run_for(Span::from_millis(10)).expect("nothing goes wrong");
    assert_eq!(cluster.world.actor(SiteId::new(0, 0)).expect("it is up").status().reachable, [RegionId(0)], "its own");
    let txn = cluster.begin(0, ReadMode::Locking);
    assert_eq!(cluster.get(0, txn, ReadMode::Locking, "row").0, None);
    cluster.commit(0, txn, &["row"]);
}

#[test]
fn two_regions_commit_in_their_round_trip() {
    let mut cluster = Cluster::new(&["california", "virginia"], 1);
    let txn = cluster.begin(0, ReadMode::Locking);
    let (_, _, took) = cluster.commit(0, txn, &["row"]);
    assert_eq!(took, Span::from_millis(86) + cluster.commit_delays());
}

#[test]
fn an_update_that_reads_its_own_region_takes_one_trip() {
    let mut cluster = Cluster::paper();
    let txn = cluster.begin(3, ReadMode::Optimistic);
    let (_, trips, read) = cluster.get(3, txn, ReadMode::Optimistic, "row");
    assert_eq!((trips, read), (0, cluster.local.step * 2 + cluster.local.load));
    let (_, trips, took) = cluster.commit(3, txn, &["row"]);
    assert_eq!((took, trips), (cluster.floor(3) + cluster.commit_delays(), 1));
}

#[test]
fn a_locking_read_takes_one_trip_and_the_commit_another() {
    let mut cluster = Cluster::paper();
    let txn = cluster.begin(2, ReadMode::Locking);
    let (_, trips, took) = cluster.get(2, txn, ReadMode::Locking, "row");
    assert_eq!((took, trips), (cluster.floor(2) + cluster.read_delays(), 1));
    let (_, trips, took) = cluster.commit(2, txn, &["row"]);
    assert_eq!((took, trips), (cluster.floor(2) + cluster.commit_delays(), 2));
}

#[test]
fn a_read_only_transaction_takes_one_trip_and_its_commit_none() {
    let mut cluster = Cluster::paper();
    let txn = cluster.begin(0, ReadMode::Locking);
    cluster.commit(0, txn, &["row"]);
    // At once, in the farthest region: what was acknowledged must be seen.
    let txn = cluster.begin(4, ReadMode::Snapshot);
    let (value, trips, _) = cluster.get(4, txn, ReadMode::Snapshot, "row");
    assert_eq!((value, trips), (Some("v".into()), 1));
    cluster.rest();
    let txn = cluster.begin(4, ReadMode::Snapshot);
    let (_, trips, took) = cluster.get(4, txn, ReadMode::Snapshot, "row");
    assert_eq!((took, trips), (cluster.floor(4) + cluster.read_delays(), 1));
    let (_, trips, took) = cluster.commit(4, txn, &[]);
    assert_eq!((took, trips), (cluster.local.step, 1));
}

#[test]
fn a_stale_read_takes_no_trip() {
    let mut cluster = Cluster::paper();
    let txn = cluster.begin(0, ReadMode::Locking);
    let (at, ..) = cluster.commit(0, txn, &["row"]);
    cluster.world.run_for(Span::from_secs(8)).expect("nothing goes wrong");
    let mode = ReadMode::Stale(at);
    let txn = cluster.begin(4, mode);
    let (value, trips, took) = cluster.get(4, txn, mode, "row");
    assert_eq!((value, trips, took), (Some("v".into()), 0, cluster.local.step * 2 + cluster.local.load));
}

#[test]
fn a_commit_over_two_shards_adds_messages_and_a_sync_within_regions_only() {
    let mut cluster = Cluster::new(&["california", "virginia", "ireland"], 2);
    let (first, second) = keys_of_both_shards(&cluster);
    let txn = cluster.begin(0, ReadMode::Locking);
    let (_, trips, took) = cluster.commit(0, txn, &[&first, &second]);
    assert_eq!(trips, 1);
    let local = cluster.local;
    // Prepare and Prepared inside the region, and the vote's own sync after the cohorts'.
    let two_phase = local.message * 2 + local.step * 2 + local.sync;
    assert_eq!(took, cluster.floor(0) + cluster.commit_delays() + two_phase);
}

fn keys_of_both_shards(cluster: &Cluster) -> (String, String) {
    let of = |shard| {
        let mut names = (0..100).map(|n| format!("key{n}"));
        names.find(|name| cluster.world.topology().shard_of(&Key::from(name.as_str())) == shard).expect("both shards have keys")
    };
    (of(0), of(1))
}

#[test]
fn a_scan_takes_one_trip_however_many_rows_it_returns() {
    let mut cluster = Cluster::paper();
    let txn = cluster.begin(1, ReadMode::Locking);
    let keys: Vec<String> = (0..300).map(|row| format!("k{row:03}")).collect();
    cluster.commit(1, txn, &keys.iter().map(String::as_str).collect::<Vec<_>>());
    cluster.rest();
    let txn = cluster.begin(1, ReadMode::Snapshot);
    let request =
        Request::Scan { txn, mode: ReadMode::Snapshot, range: KeyRange::prefix(b"k"), limit: 1_000, reverse: false, expect: vec![] };
    let (answer, took) = cluster.ask(1, request);
    let Answer::Rows { rows, trips, more, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((rows.len(), trips, more), (300, 1, false));
    assert_eq!(took, cluster.floor(1) + cluster.read_delays());
}
