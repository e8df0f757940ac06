//! A demo whose regions do not all vote: everybody serves clients, each at as many trips as its region's role costs.

mod common;

use common::{Demo, code, done, get};
use tokio_postgres::Client;

/// Three regions vote, Ireland holds a copy, Singapore nothing.
const PLACED: [&str; 4] = ["--active", "california,oregon,virginia", "--passive", "ireland"];
const REGIONS: [&str; 5] = ["california", "oregon", "virginia", "ireland", "singapore"];
/// How often a statement is run to see what it costs when nobody is in its way.
const TRIES: usize = 8;

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

/// What the site of a region counted under this name.
fn counted(demo: &Demo, region: usize, name: &str) -> u64 {
    let metrics = get(demo.ready()["regions"][region]["http"].as_str().expect("an address"), "/metrics");
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().expect("a count"))
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
