//! A demo whose regions do not all vote: everybody serves clients, each at as many trips as its region's role costs.

use crate::common::{self, Demo, code, done, placement, post, until};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_postgres::Client;

/// Three regions vote, Ireland holds a copy, Singapore nothing.
const PLACED: [&str; 4] = ["--active", "california,oregon,virginia", "--passive", "ireland"];
const REGIONS: [&str; 5] = ["california", "oregon", "virginia", "ireland", "singapore"];
/// How often a statement is run to see what it costs when nobody is in its way.
const TRIES: usize = 8;
/// The second row of a region comes so far after the first.
const TWINS: usize = 50;
/// The row that all share.
const SHARED: usize = 99;

/// Such a demo with a table, and a client in each region.
async fn start() -> (Demo, Vec<Client>) {
    let demo = Demo::start(&PLACED);
    let mut clients = Vec::new();
    for region in 0..REGIONS.len() {
        clients.push(demo.connect(region).await);
    }
    clients[0].batch_execute("CREATE TABLE counter (id INT PRIMARY KEY, n INT)").await.expect("created");
    (demo, clients)
}

/// What the site of a region has counted under this name; a cause of aborts is shown once there was one.
fn counted(demo: &Demo, region: usize, name: &str) -> u64 {
    demo.metric(region, name).unwrap_or(0.0) as u64
}

/// The fewest wide-area trips that raising the region's own row took.
async fn trips(demo: &Demo, region: usize, client: &Client) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..TRIES {
        let before = counted(demo, region, "rhumb_commit_trips_total");
        client.execute(&format!("UPDATE counter SET n = n + 1 WHERE id = {region}"), &[]).await.expect("a majority is there");
        fewest = fewest.min(counted(demo, region, "rhumb_commit_trips_total") - before);
    }
    fewest
}

async fn insert(client: &Client, id: i32) {
    let insert = format!("INSERT INTO counter VALUES ({id}, 0)");
    client.execute(&insert, &[]).await.unwrap_or_else(|error| panic!("{id}: {error:?}"));
}

async fn count(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM counter", &[]).await.expect("a majority is there").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_region_serves_its_clients_whatever_it_holds() {
    let (demo, clients) = start().await;
    for (region, client) in clients.iter().enumerate() {
        insert(client, region as i32).await;
    }
    for (region, expected) in [1, 1, 1, 1, 2].into_iter().enumerate() {
        assert_eq!(trips(&demo, region, &clients[region]).await, expected, "{}", REGIONS[region]);
    }
    clients[3].batch_execute("SET rhumb.read_mode = 'active'").await.expect("set");
    assert_eq!(trips(&demo, 3, &clients[3]).await, 2, "one to where a vote lies, one to commit");
    clients[3].batch_execute("SET rhumb.commit_rounds = 2; RESET rhumb.read_mode").await.expect("set");
    assert_eq!(trips(&demo, 3, &clients[3]).await, 2, "read at home, two rounds");
    assert_eq!(counted(&demo, 3, "rhumb_commits_total{rounds=\"2\"}"), TRIES as u64);
    shows_roles(&demo, &clients[4]).await;
    counts_what_is_refused(&demo, &clients).await;
    keeps_settings_of_a_database(&demo, &clients[4]).await;
}

async fn shows_roles(demo: &Demo, client: &Client) {
    let rows = client.query("SHOW REGIONS", &[]).await.expect("regions");
    let shown: Vec<(String, String, f64)> = rows.iter().map(|row| (row.get("name"), row.get("role"), row.get("floor_ms"))).collect();
    // To two of the three that vote.
    let floors = [("active", 21.0), ("active", 21.0), ("active", 86.0), ("passive", 159.0), ("none", 205.0)];
    let expected = REGIONS.iter().zip(floors).map(|(name, (role, floor))| (String::from(*name), String::from(role), floor));
    assert_eq!(shown, expected.collect::<Vec<_>>());
    let status = done(&["status", &format!("--demo={}", demo.state())]);
    let words =
        |name: &str| status.lines().find(|line| line.starts_with(name)).map(|line| line.split_whitespace().nth(1).map(str::to_owned));
    assert_eq!((words("ireland/0"), words("singapore/0")), (Some(Some("passive".to_owned())), Some(Some("none".to_owned()))), "{status}");
    let said = demo.said();
    assert!(said.contains("active california, oregon, virginia; passive ireland; the others hold no copy"), "{said}");
}

async fn counts_what_is_refused(demo: &Demo, clients: &[Client]) {
    clients[0].batch_execute("SET rhumb.read_mode = 'optimistic'; BEGIN; SELECT n FROM counter WHERE id = 0").await.expect("read");
    clients[1].execute("UPDATE counter SET n = n + 1 WHERE id = 0", &[]).await.expect("updated");
    let before = counted(demo, 0, "rhumb_aborts_total{cause=\"stale\"}");
    assert_eq!(code(clients[0].batch_execute("UPDATE counter SET n = 0 WHERE id = 1; COMMIT").await), "40001");
    assert_eq!(counted(demo, 0, "rhumb_aborts_total{cause=\"stale\"}") - before, 1);
}

async fn keeps_settings_of_a_database(demo: &Demo, client: &Client) {
    client.batch_execute("ALTER DATABASE rhumb SET rhumb.commit_rounds = 2").await.expect("altered");
    let rounds = async |region| -> String {
        let row = demo.connect(region).await.query_one("SHOW rhumb.commit_rounds", &[]).await.expect("a setting");
        row.get(0)
    };
    assert_eq!(rounds(4).await, "2", "who made it knows it");
    for (region, name) in REGIONS.iter().enumerate() {
        let mut patience = 1_000;
        while rounds(region).await != "2" {
            patience -= 1;
            assert!(patience > 0, "{name} never hears of it");
        }
    }
    client.batch_execute("ALTER DATABASE rhumb RESET ALL").await.expect("altered");
    assert_eq!(rounds(4).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_votes_may_die_and_one_that_does_not_is_not_missed() {
    let (demo, mut clients) = start().await;
    for (turn, dead) in [2, 3].into_iter().enumerate() {
        demo.chaos(&["kill", REGIONS[dead]]);
        let alive: Vec<usize> = (0..REGIONS.len()).filter(|region| *region != dead).collect();
        for &region in &alive {
            insert(&clients[region], (10 * turn + region) as i32).await;
        }
        for &region in &alive {
            assert_eq!(count(&clients[region]).await, 4 * (turn as i64 + 1), "{} sees them all", REGIONS[region]);
        }
        demo.chaos(&["restart", REGIONS[dead]]);
        clients[dead] = demo.connect(dead).await;
        assert_eq!(count(&clients[dead]).await, 4 * (turn as i64 + 1), "{} is back", REGIONS[dead]);
    }
}

/// Has the placement `body` come next, as soon as every region that is to vote has a copy.
fn place(demo: &Demo, body: &serde_json::Value) {
    let http = demo.of_region(0, "http");
    until("the placement is changed", || {
        let (status, answer) = post(&http, "/placement", &body.to_string());
        assert!(status == 200 || answer.contains("has not copied all rows yet"), "{status}: {answer}");
        status == 200
    });
}

/// How often a client was told that it succeeded, and how often that it may have.
#[derive(Clone, Copy, Debug, Default)]
struct Raised {
    times: i64,
    unknown: i64,
}

impl Raised {
    async fn by(&mut self, client: &Client, statement: &str) {
        let Err(error) = client.batch_execute(statement).await else { return self.times += 1 };
        match error.code().map(|code| code.code()) {
            Some("40001") => {}
            Some("40003") => self.unknown += 1,
            _ => panic!("{statement}: {error:?}"),
        }
        // A transaction that failed is still open.
        let _ = client.batch_execute("ROLLBACK").await;
    }

    fn allows(&self, found: i64) -> bool {
        (self.times..=self.times + self.unknown).contains(&found)
    }
}

/// Raises two rows of the region in one transaction, and then the row that all share, until told to stop.
async fn raise(client: Client, region: usize, stop: Arc<AtomicBool>) -> (Raised, Raised) {
    let (mut own, mut shared) = (Raised::default(), Raised::default());
    let twice = format!(
        "BEGIN; UPDATE counter SET n = n + 1 WHERE id = {region}; UPDATE counter SET n = n + 1 WHERE id = {}; COMMIT",
        TWINS + region
    );
    while !stop.load(Ordering::Relaxed) {
        own.by(&client, &twice).await;
        shared.by(&client, &format!("UPDATE counter SET n = n + 1 WHERE id = {SHARED}")).await;
    }
    (own, shared)
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_move_while_clients_run() {
    let (demo, clients) = start().await;
    insert(&clients[0], SHARED as i32).await;
    for region in 0..REGIONS.len() {
        insert(&clients[0], region as i32).await;
        insert(&clients[0], (TWINS + region) as i32).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let raising: Vec<_> =
        clients.into_iter().enumerate().map(|(region, client)| tokio::spawn(raise(client, region, Arc::clone(&stop)))).collect();
    let moves = [
        json!({"epoch": 1, "active": ["california", "oregon", "virginia"], "passive": ["ireland", "singapore"]}),
        json!({"epoch": 2, "active": ["california", "oregon", "ireland", "singapore"], "passive": ["virginia"]}),
        json!({"epoch": 3, "active": ["virginia", "ireland", "singapore"],
               "coordinators": {"california": {"read": "virginia", "commit": "virginia"}}}),
        json!({"epoch": 4, "active": ["virginia", "ireland", "singapore"], "passive": ["oregon"]}),
    ];
    for body in &moves {
        tokio::task::block_in_place(|| place(&demo, body));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let (mut own, mut shared) = (Vec::new(), Raised::default());
    for raising in raising {
        let (of_region, of_all) = raising.await.expect("no panic");
        own.push(of_region);
        shared = Raised { times: shared.times + of_all.times, unknown: shared.unknown + of_all.unknown };
    }
    assert!(own.iter().all(|raised| raised.times > 0) && shared.times > 0, "everybody got on: {own:?} {shared:?}");
    for (region, name) in REGIONS.iter().enumerate() {
        let client = demo.connect(region).await;
        let n = async |id: usize| -> i64 {
            let row = client.query_one(&format!("SELECT n FROM counter WHERE id = {id}"), &[]).await.expect("a majority is there");
            i64::from(row.get::<_, i32>(0))
        };
        for (of, raised) in own.iter().enumerate() {
            let found = n(of).await;
            assert!(raised.allows(found), "{name}: {found} at {of}, {raised:?}");
            assert_eq!(n(TWINS + of).await, found, "{name}: each transaction is there whole");
        }
        assert!(shared.allows(n(SHARED).await), "{name}: {shared:?}");
        let roles = async || -> Vec<String> {
            client.query("SHOW REGIONS", &[]).await.expect("regions").iter().map(|row| row.get("role")).collect()
        };
        let mut patience = 100;
        while roles().await != ["none", "passive", "active", "active", "active"] {
            patience -= 1;
            assert!(patience > 0, "{name} shows {:?}", roles().await);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let http = demo.of_region(4, "http");
    let shown = placement(&http);
    assert_eq!((&shown["epoch"], &shown["settled"]), (&json!(5), &json!(true)));
    assert!(shown["rtt_ms"][0][4].as_f64().is_some_and(|rtt| (173.0..200.0).contains(&rtt)), "{shown}");
}

/// Raises the row of a region that dies meanwhile: what its client was not told may have been done or not.
async fn raise_until_death(client: Client, region: usize) -> Raised {
    let mut own = Raised::default();
    let statement = format!("UPDATE counter SET n = n + 1 WHERE id = {region}");
    while !client.is_closed() {
        match client.batch_execute(&statement).await {
            Ok(()) => own.times += 1,
            Err(error) if error.code().is_some_and(|code| code.code() == "40001") => {}
            Err(_) => own.unknown += 1,
        }
    }
    own
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_lost_in_the_midst_of_attempts_is_declared_so() {
    const LOST: usize = 2;
    let (demo, mut clients) = start().await;
    insert(&clients[0], SHARED as i32).await;
    for region in 0..REGIONS.len() {
        insert(&clients[0], region as i32).await;
        insert(&clients[0], (TWINS + region) as i32).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let lost = tokio::spawn(raise_until_death(clients.remove(LOST), LOST));
    let others = [0, 1, 3, 4];
    let raising: Vec<_> =
        clients.into_iter().zip(others).map(|(client, region)| tokio::spawn(raise(client, region, Arc::clone(&stop)))).collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    demo.chaos(&["kill", REGIONS[LOST]]);
    let of_lost = lost.await.expect("no panic");
    tokio::time::sleep(Duration::from_secs(2)).await;

    let state = format!("--demo={}", demo.state());
    let http = demo.of_region(0, "http");
    let asked = tokio::task::block_in_place(|| common::rhumb(&["region", "lost", "virginia", &state]));
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!((asked.status.code(), said.contains("count as committed"), said.contains("add --yes")), (Some(2), true, true), "{said}");
    assert_eq!(placement(&http)["epoch"], json!(1), "nothing was changed");
    let told = tokio::task::block_in_place(|| done(&["region", "lost", "virginia", "--yes", &state]));
    assert_eq!(told, "placement 2 is decided. Active: california, oregon, passive: ireland, lost: virginia\n");
    tokio::time::sleep(Duration::from_secs(3)).await;
    stop.store(true, Ordering::Relaxed);
    let mut shared = Raised::default();
    for raising in raising {
        let (of_region, of_all) = raising.await.expect("no panic");
        assert!(of_region.times > 0, "{of_region:?}");
        shared = Raised { times: shared.times + of_all.times, unknown: shared.unknown + of_all.unknown };
    }
    assert!(of_lost.times > 0 && shared.times > 0, "{of_lost:?} {shared:?}");

    until("nobody is in doubt, and all have moved", || {
        let in_doubt = |region: usize| counted(&demo, region, "rhumb_attempts_in_doubt") > 0;
        let shown = placement(&http);
        !others.into_iter().any(in_doubt) && shown["settled"] == json!(true) && shown["lost"] == json!(["virginia"])
    });
    for region in others {
        let client = demo.connect(region).await;
        let n = async |id: usize| -> i64 {
            let row = client.query_one(&format!("SELECT n FROM counter WHERE id = {id}"), &[]).await.expect("no row is locked");
            i64::from(row.get::<_, i32>(0))
        };
        let (of_all, of_region) = (n(SHARED).await, n(LOST).await);
        assert!(shared.allows(of_all), "{}: {of_all}, {shared:?}", REGIONS[region]);
        assert!(of_lost.allows(of_region), "{}: {of_region}, {of_lost:?}", REGIONS[region]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placement_that_cannot_come_next_is_refused() {
    let demo = Demo::start(&PLACED);
    let http = demo.of_region(0, "http");
    let cases = [
        ("{", 400, "the body: EOF while parsing"),
        (r#"{"epoch": 1, "active": []}"#, 400, "at least one active region"),
        (r#"{"epoch": 1, "active": ["mars"]}"#, 400, "there is no region `mars`; there are california, oregon"),
        (r#"{"epoch": 1, "active": ["oregon"], "passive": ["oregon"]}"#, 400, "oregon cannot be active and passive at once"),
        (r#"{"epoch": 1, "active": ["oregon", "singapore"]}"#, 400, "singapore cannot become active before it is passive"),
        (r#"{"epoch": 7, "active": ["oregon"]}"#, 409, "epoch 1 is in force, not 7"),
    ];
    for (body, status, text) in cases {
        let (answered, answer) = tokio::task::block_in_place(|| post(&http, "/placement", body));
        assert_eq!(answered, status, "{body}: {answer}");
        assert!(answer.contains(text), "{body}: {answer}");
    }
    let shown = placement(&http);
    assert_eq!(shown["epoch"], json!(1));
}
