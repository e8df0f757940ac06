//! What EXPLAIN tells of trips between regions, held against what a demo over an emulated wide area does.

use crate::common::{Demo, until};
use tokio_postgres::{Client, SimpleQueryMessage};

async fn explained(client: &Client, statement: &str) -> Vec<String> {
    let messages = client.simple_query(statement).await.expect("explained");
    let line = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    messages.iter().filter_map(line).collect()
}

/// The row of the table of rounds that begins so: its cells.
fn round<'a>(lines: &'a [String], step: &str) -> Vec<&'a str> {
    let line = lines.iter().find(|line| line.trim_start().starts_with(step)).unwrap_or_else(|| panic!("no round {step} in {lines:#?}"));
    line.trim().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn trips_are_foreseen_as_they_are_taken() {
    let demo = Demo::start(&[]);
    let client = demo.connect(0).await;
    client
        .batch_execute("CREATE TABLE account (id int PRIMARY KEY, balance int); INSERT INTO account VALUES (1, 100)")
        .await
        .expect("created");
    let known = || tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(client.simple_query("SHOW REGIONS")));
    until("all distances are known", || {
        let messages = known().expect("shown");
        messages.iter().all(|message| if let SimpleQueryMessage::Row(row) = message { row.get("rtt_ms").is_some() } else { true })
    });
    let majority = "oregon, virginia";

    let rehearsed = explained(&client, "EXPLAIN (WAN) UPDATE account SET balance = 0 WHERE id = 1").await;
    assert!(rehearsed.contains(&"Trips between regions, from california, by replicated_commit:".to_owned()), "{rehearsed:#?}");
    let read = round(&rehearsed, "read 1 key");
    assert_eq!((read[3], read[4], read[5]), ("0", "0.0", "no other region"), "{rehearsed:#?}");
    let commit = round(&rehearsed, "commit");
    assert_eq!((commit[1], commit[3]), ("1", majority), "{rehearsed:#?}");
    let foreseen: f64 = commit[2].parse().expect("milliseconds");
    assert!((60.0..200.0).contains(&foreseen), "the floor of California, as it is measured: {rehearsed:#?}");
    let floor = rehearsed.iter().find_map(|line| line.strip_prefix("The floor of a commit here: ")?.strip_suffix(" ms")).expect("a floor");
    assert!(floor.parse::<f64>().is_ok_and(|floor| (foreseen - floor).abs() < 0.2 * floor), "{rehearsed:#?}");
    let balance = client.query_one("SELECT balance FROM account", &[]).await.expect("read");
    assert_eq!(balance.get::<_, i32>(0), 100, "a rehearsal changes nothing");

    let ran = explained(&client, "EXPLAIN (ANALYZE, WAN) UPDATE account SET balance = 0 WHERE id = 1").await;
    let (read, commit) = (round(&ran, "read 1 key"), round(&ran, "commit"));
    assert_eq!((read[3], commit[1], commit[4]), ("0", "1", majority), "{ran:#?}");
    assert!(commit[3].parse::<f64>().is_ok_and(|took| took >= 60.0), "{ran:#?}");

    let selected = explained(&client, "EXPLAIN (ANALYZE, WAN) SELECT * FROM account WHERE id = 1").await;
    let read = round(&selected, "read 1 key");
    assert_eq!((read[3], read[6]), ("1", majority), "{selected:#?}");
    assert!(selected.iter().any(|line| line.contains("AS OF SYSTEM TIME") && line.contains("1 trip and ")), "{selected:#?}");
    let mut past = Vec::new();
    // On a machine that is busy with other things this region may not know in time that it knows all commits up to then.
    for _ in 0..10 {
        past = explained(&client, "EXPLAIN (ANALYZE, WAN) SELECT * FROM account WHERE id = 1 AS OF SYSTEM TIME '-1ms'").await;
        if round(&past, "read 1 key")[3] == "0" {
            break;
        }
    }
    assert_eq!(round(&past, "read 1 key")[3], "0", "{past:#?}");

    client.batch_execute("BEGIN").await.expect("begun");
    let locked = explained(&client, "EXPLAIN (ANALYZE, WAN) UPDATE account SET balance = 1 WHERE id = 1").await;
    assert_eq!(round(&locked, "read 1 key")[3], "1", "{locked:#?}");
    assert!(locked.iter().any(|line| line.starts_with("The commit of its transaction: 1 trip, ")), "{locked:#?}");
    assert!(locked.iter().any(|line| line.contains("rhumb.read_mode = 'optimistic'")), "{locked:#?}");
    client.batch_execute("COMMIT").await.expect("committed");
}
