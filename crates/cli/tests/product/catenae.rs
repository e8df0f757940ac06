//! A demo with a database of protocol `catenae`: real sites, real clients in all regions, and one region lost and back.

use crate::common::{Demo, a_table_is_the_same_in_all_regions, code, rows};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio_postgres::{Client, Error};

const REGIONS: [&str; 5] = ["california", "oregon", "virginia", "ireland", "singapore"];
const ACCOUNTS: i64 = 12;
const BALANCE: i64 = 1_000;
/// Transfers of all clients together before a region is killed, and again while it is away, and once it is back.
const TRANSFERS: i64 = 40;

/// A demo with an empty database of protocol `catenae`, and a client of it in each region.
async fn start() -> (Demo, Vec<Client>) {
    let demo = Demo::start(&[]);
    demo.connect(0).await.batch_execute("CREATE DATABASE bank WITH (protocol = 'catenae')").await.expect("created");
    let mut clients = Vec::new();
    for region in 0..REGIONS.len() {
        clients.push(demo.connect_to(region, "bank").await.expect("every region has heard of it"));
    }
    (demo, clients)
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_and_transactions_of_all_regions_are_one_order() {
    let (demo, clients) = start().await;
    let system = demo.connect(2).await;
    let refused = system.batch_execute("CREATE DATABASE x WITH (protocol = 'carrier_pigeon')").await.expect_err("refused");
    let refused = refused.as_db_error().expect("an error of the server");
    assert_eq!((refused.code().code(), refused.hint()), ("22023", Some("The known protocols are: replicated_commit, catenae, quad.")));
    a_table_is_the_same_in_all_regions(&clients).await;
    a_transaction_sees_one_snapshot_and_its_own_writes(&clients).await;
    what_was_read_may_not_have_changed(&clients).await;
    the_names_of_databases_are_elsewhere(&demo, &clients).await;
}

/// How often each region raises the same row.
const RAISES: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn what_travels_never_fails_and_is_measured() {
    let (demo, clients) = start().await;
    clients[0]
        .batch_execute("CREATE TABLE item (id INT PRIMARY KEY, n INT NOT NULL); INSERT INTO item VALUES (1, 0)")
        .await
        .expect("created");
    clients[0].batch_execute("CREATE TABLE raise (region INT, number INT, PRIMARY KEY (region, number))").await.expect("created");
    let raises = clients.iter().enumerate().map(async |(region, client)| {
        // Who does not know the tables yet reads them, and a statement alone then runs again.
        for first in ["UPDATE item SET n = n + 0 WHERE id = 1", "DELETE FROM raise WHERE region = -1 AND number = 0"] {
            client.batch_execute(first).await.expect("done");
        }
        let before = demo.counted(region, CONFLICTS);
        for number in 0..RAISES {
            let text = format!("UPDATE item SET n = n + 1 WHERE id = 1; INSERT INTO raise VALUES ({region}, {number})");
            match number % 3 {
                0 => client.batch_execute("UPDATE item SET n = n + 1 WHERE id = 1").await.expect("it travels"),
                1 => client.batch_execute(&text).await.expect("it travels"),
                _ => client.batch_execute(&format!("BEGIN; {text}; COMMIT")).await.expect("it travels"),
            }
        }
        assert_eq!(demo.counted(region, CONFLICTS), before, "{}", REGIONS[region]);
    });
    futures::future::join_all(raises).await;
    let all = (REGIONS.len() * RAISES).to_string();
    for (region, client) in clients.iter().enumerate() {
        assert_eq!(rows(client, "SELECT n FROM item").await, std::slice::from_ref(&all));
        assert_eq!(rows(client, "SELECT sealed >= settled AND complete >= settled AND settled > 0 FROM rhumb.epochs").await, ["t"]);
        // It takes half of a wide-area round trip at the least, in either way of telling.
        assert_eq!(rows(client, "SELECT settle_ms > 10 AND passed_over IS NULL FROM rhumb.epochs").await, ["t"]);
        let (epochs, seconds) =
            (demo.counted(region, "rhumb_epochs_settled_total"), demo.counted(region, "rhumb_epoch_settle_seconds_total"));
        assert!(epochs >= 1.0 && seconds / epochs > 0.01, "{epochs} epochs took {seconds} s");
        assert!(demo.counted(region, "rhumb_epoch_transactions_total{outcome=\"committed\"}") >= RAISES as f64);
        assert!(demo.counted(region, "rhumb_epoch_commit_seconds_count") >= RAISES as f64);
        assert!(demo.metric(region, "rhumb_epoch_regions_passed_over") == Some(0.0));
        assert!(demo.metric(region, "rhumb_epochs_behind").is_some());
    }
    bad_input_is_refused_with_the_reason(&clients[1]).await;
}

/// How often each region calls a procedure.
const CALLS: i32 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_one_shot_in_every_region() {
    let (demo, clients) = start().await;
    clients[0]
        .batch_execute(
            "CREATE TABLE item (id INT PRIMARY KEY, stock INT NOT NULL);
             CREATE TABLE sale (region INT, number INT, item INT, PRIMARY KEY (region, number));
             INSERT INTO item VALUES (1, 1000), (2, 1000)",
        )
        .await
        .expect("created");
    clients[2]
        .batch_execute(
            "CREATE PROCEDURE sell(item_id INT, count INT, region INT, number INT) LANGUAGE SQL AS $$
                 UPDATE item SET stock = stock - count WHERE id = item_id;
                 INSERT INTO sale VALUES (sell.region, sell.number, item_id)
             $$",
        )
        .await
        .expect("made");
    let conditional = "CREATE PROCEDURE take(n INT) LANGUAGE SQL AS 'UPDATE item SET stock = 0 WHERE stock < n'";
    let refused = clients[4].batch_execute(conditional).await.expect_err("it must read first");
    let refused = refused.as_db_error().expect("an error of the server");
    assert_eq!(refused.code().code(), "0A000");
    assert!(refused.message().contains("statement 1 (UPDATE) of procedure \"take\""), "{}", refused.message());
    let calls = clients.iter().zip(0..).map(async |(client, region): (&Client, i32)| {
        let sell = client.prepare("CALL sell($1, $2, $3, $4)").await.expect("every region has heard of it");
        // Who does not know the procedure and the tables yet learns of them, and the call then runs again.
        client.execute(&sell, &[&2i32, &0i32, &region, &-1i32]).await.expect("called");
        let before = demo.counted(region as usize, CONFLICTS);
        for number in 0..CALLS {
            client.execute(&sell, &[&1i32, &3i32, &region, &number]).await.expect("it travels");
        }
        assert_eq!(code(client.execute(&sell, &[&1i32, &3i32, &region, &0i32]).await), "23505");
        assert_eq!(demo.counted(region as usize, CONFLICTS), before, "{}", REGIONS[region as usize]);
    });
    futures::future::join_all(calls).await;
    let left = (1_000 - 3 * CALLS * REGIONS.len() as i32).to_string();
    for client in &clients {
        assert_eq!(rows(client, "SELECT stock FROM item ORDER BY id").await, [left.as_str(), "1000"]);
    }
    // Another in its place, made elsewhere, is what the next call runs.
    clients[4]
        .batch_execute("CREATE OR REPLACE PROCEDURE sell(item_id INT) LANGUAGE SQL AS 'UPDATE item SET stock = 0 WHERE id = item_id'")
        .await
        .expect("replaced");
    clients[1].batch_execute("CALL sell(2)").await.expect("the new one");
    assert_eq!(rows(&clients[3], "SELECT stock FROM item ORDER BY id").await, [left.as_str(), "0"]);
    clients[3].batch_execute("DROP PROCEDURE sell").await.expect("dropped");
    assert_eq!(code(clients[0].batch_execute("CALL sell(2)").await), "42883");
}

const CONFLICTS: &str = "rhumb_epoch_transactions_total{outcome=\"conflict\"}";

async fn bad_input_is_refused_with_the_reason(client: &Client) {
    let refused = async |text: &str| {
        let error = client.batch_execute(text).await.expect_err("refused");
        let error = error.as_db_error().expect("an error of the server");
        (error.code().code().to_owned(), error.message().to_owned())
    };
    let values: Vec<String> = (0..4_200).map(|number| format!("(9, {number})")).collect();
    let (state, message) = refused(&format!("INSERT INTO raise VALUES {}", values.join(", "))).await;
    assert_eq!((state.as_str(), message.contains("at most 4096 operations")), ("54000", true), "{message}");
    let text: Vec<String> = values[..900].iter().map(|row| format!("INSERT INTO raise VALUES {row}")).collect();
    client.batch_execute(&text.join("; ")).await.expect("so many fit");
    assert_eq!(refused("UPDATE item SET n = n + 2147483647 WHERE id = 1").await.0, "22003");
    // Which key is written depends on what is read: that is validated instead, and done.
    client.batch_execute("INSERT INTO raise SELECT n, -1 FROM item; UPDATE item SET n = n + 1 WHERE id = 1").await.expect("validated");
    assert_eq!(rows(client, "SELECT count(*) FROM raise WHERE number = -1").await, ["1"]);
}

async fn a_transaction_sees_one_snapshot_and_its_own_writes(clients: &[Client]) {
    clients[0].batch_execute("BEGIN; SELECT n FROM item WHERE id = 1").await.expect("read");
    clients[1].batch_execute("UPDATE item SET n = 100 WHERE id = 2").await.expect("updated");
    assert_eq!(rows(&clients[0], "SELECT n FROM item WHERE id = 2").await, ["20"]);
    clients[0].batch_execute("UPDATE item SET n = 2 WHERE id = 1; INSERT INTO item VALUES (9, 'nine', 9)").await.expect("buffered");
    assert_eq!(rows(&clients[0], "SELECT n FROM item ORDER BY id").await, ["2", "20", "0", "9"]);
    assert_eq!(code(clients[0].batch_execute("COMMIT").await), "40001");
    assert_eq!(rows(&clients[0], "SELECT n FROM item ORDER BY id").await, ["1", "100", "0"]);
    // One that writes nothing has seen one moment, and that is all it asked for.
    clients[0].batch_execute("BEGIN; SELECT n FROM item WHERE id = 1").await.expect("read");
    clients[1].batch_execute("UPDATE item SET n = n + 1").await.expect("updated");
    assert_eq!(rows(&clients[0], "SELECT sum(n) FROM item").await, ["101"]);
    clients[0].batch_execute("COMMIT").await.expect("nothing to validate");
}

async fn what_was_read_may_not_have_changed(clients: &[Client]) {
    for (read, other) in [
        ("SELECT n FROM item WHERE id = 1", "UPDATE item SET n = n + 1 WHERE id = 1"),
        ("SELECT count(*) FROM item", "INSERT INTO item VALUES (5, 'five', 5)"),
        ("SELECT count(*) FROM item WHERE id > 3", "DELETE FROM item WHERE id = 5"),
        ("SELECT n FROM item WHERE id = 77", "INSERT INTO item VALUES (77, 'late', 0)"),
    ] {
        for mode in ["default", "optimistic"] {
            clients[2].batch_execute(&format!("SET rhumb.read_mode = '{mode}'; BEGIN; {read}")).await.expect("read");
            if mode == "default" {
                clients[3].batch_execute(other).await.unwrap_or_else(|error| panic!("{other}: {error:?}"));
                assert_eq!(code(clients[2].batch_execute("UPDATE item SET n = 0 WHERE id = 4; COMMIT").await), "40001", "{read}; {other}");
                clients[2].batch_execute("ROLLBACK").await.expect("over");
            } else {
                clients[2].batch_execute("UPDATE item SET n = n + 1 WHERE id = 4; COMMIT").await.expect("nothing has changed");
            }
        }
        clients[2].batch_execute("RESET rhumb.read_mode").await.expect("set");
    }
    // A session sees what it did, wherever it reads.
    clients[4].batch_execute("SET rhumb.read_mode = 'optimistic'").await.expect("set");
    for n in 1..=3 {
        clients[4].batch_execute(&format!("UPDATE item SET n = {n} WHERE id = 1")).await.expect("updated");
        assert_eq!(rows(&clients[4], "SELECT n FROM item WHERE id = 1").await, [n.to_string()]);
    }
    clients[4].batch_execute("RESET rhumb.read_mode").await.expect("set");
    let many: Vec<String> = (1_000..3_000).map(|id| format!("({id}, 'number {id}', 0)")).collect();
    assert_eq!(code(clients[4].batch_execute(&format!("INSERT INTO item VALUES {}", many.join(", "))).await), "54000");
    let fewer = many[..500].join(", ");
    clients[4].batch_execute(&format!("INSERT INTO item VALUES {fewer}")).await.expect("so many fit");
}

async fn the_names_of_databases_are_elsewhere(demo: &Demo, clients: &[Client]) {
    assert_eq!(rows(&clients[0], "SELECT datname FROM pg_database ORDER BY datname").await, ["bank", "rhumb"]);
    assert_eq!(code(clients[0].batch_execute("BEGIN; CREATE DATABASE other").await), "25001");
    clients[0].batch_execute("ROLLBACK").await.expect("over");
    clients[0].batch_execute("CREATE DATABASE other WITH (protocol = 'catenae')").await.expect("created");
    clients[3].batch_execute("ALTER DATABASE other SET rhumb.read_mode = 'optimistic'").await.expect("altered");
    let other = demo.connect_to(3, "other").await.expect("it is there");
    assert_eq!(rows(&other, "SHOW rhumb.read_mode").await, ["optimistic"]);
    other.batch_execute("CREATE TABLE item (id INT)").await.expect("another table of that name");
    assert_eq!(rows(&other, "SELECT count(*) FROM item").await, ["0"]);
    clients[1].batch_execute("DROP DATABASE other").await.expect("dropped");
    assert_eq!(code(demo.connect_to(4, "other").await), "3D000");
}

/// What the clients of a bank were told.
#[derive(Default)]
struct Told {
    /// Transfers that were done.
    done: BTreeSet<i64>,
    /// Those that may have been.
    unknown: BTreeSet<i64>,
}

/// Moves money until told to stop, or until its site is gone.
async fn transfer(client: Client, region: i64, stop: Arc<AtomicBool>, count: Arc<AtomicI64>) -> Told {
    let mut told = Told::default();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = number * 100 + region;
        let (from, to, amount) = ((number + region) % ACCOUNTS, (number * 7 + region * 3 + 1) % ACCOUNTS, number % 9 + 1);
        let statements = format!(
            "UPDATE account SET balance = balance - {amount} WHERE id = {from};
             UPDATE account SET balance = balance + {amount} WHERE id = {to};
             INSERT INTO transfer VALUES ({id}, {amount})"
        );
        // Together in one text, or between BEGIN and COMMIT: a transaction both ways.
        let text = if number % 2 == 0 { statements } else { format!("BEGIN; {statements}; COMMIT") };
        match client.batch_execute(&text).await {
            Ok(()) => {
                told.done.insert(id);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if !retry(&error) => {
                told.unknown.insert(id);
                if error.is_closed() || error.as_db_error().is_none() {
                    break;
                }
            }
            Err(_) => {}
        }
        if client.batch_execute("ROLLBACK").await.is_err() {
            break;
        }
    }
    told
}

/// True if nothing was done, for certain.
fn retry(error: &Error) -> bool {
    matches!(error.code().map(|code| code.code()), Some("40001" | "57P03"))
}

/// Waits until so many more transfers were done.
async fn more(count: &AtomicI64) {
    let before = count.load(Ordering::Relaxed);
    let mut patience = 1_200;
    while count.load(Ordering::Relaxed) < before + TRANSFERS {
        patience -= 1;
        assert!(patience > 0, "no transfers are done any more: {} before, {} now", before, count.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_lost_and_back_while_money_moves() {
    let (demo, mut clients) = start().await;
    let tables = "CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL); CREATE TABLE transfer (id INT PRIMARY KEY, amount INT)";
    clients[0].batch_execute(tables).await.expect("created");
    let values: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    clients[3].batch_execute(&format!("INSERT INTO account VALUES {}", values.join(", "))).await.expect("inserted");
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
    let spawn = |client, region: usize| tokio::spawn(transfer(client, region as i64, Arc::clone(&stop), Arc::clone(&count)));
    let mut running: Vec<_> = clients.drain(..).enumerate().map(|(region, client)| spawn(client, region)).collect();
    let lost = 2;
    let observer = demo.connect_to(4, "bank").await.expect("it serves");
    let total = (ACCOUNTS * BALANCE).to_string();
    let sum = async |client: &Client| rows(client, "SELECT sum(balance) FROM account").await;
    more(&count).await;
    assert_eq!(sum(&observer).await, std::slice::from_ref(&total));
    tokio::task::block_in_place(|| demo.chaos(&["kill", REGIONS[lost]]));
    more(&count).await;
    assert_eq!(sum(&observer).await, std::slice::from_ref(&total), "without {}", REGIONS[lost]);
    tokio::task::block_in_place(|| demo.chaos(&["restart", REGIONS[lost]]));
    let back = demo.connect_to(lost, "bank").await.expect("it is back");
    back.batch_execute("INSERT INTO transfer VALUES (-1, 0)").await.expect("and has its say");
    // Numbers that its incarnation before has not used.
    running.push(spawn(back, lost + 50));
    more(&count).await;
    stop.store(true, Ordering::Relaxed);
    let mut told = Told::default();
    told.done.insert(-1);
    for running in running {
        let of_one = running.await.expect("no panic");
        told.done.extend(of_one.done);
        told.unknown.extend(of_one.unknown);
    }
    for (region, name) in REGIONS.iter().enumerate() {
        let client = demo.connect_to(region, "bank").await.expect("it serves");
        assert_eq!(sum(&client).await, std::slice::from_ref(&total), "{name}");
        let found: BTreeSet<i64> = rows(&client, "SELECT id FROM transfer").await.iter().map(|id| id.parse().expect("a number")).collect();
        let lost: Vec<&i64> = told.done.difference(&found).collect();
        assert!(lost.is_empty(), "{name} has lost {lost:?}");
        let made_up: Vec<i64> = found.iter().filter(|id| !told.done.contains(id) && !told.unknown.contains(id)).copied().collect();
        assert!(made_up.is_empty(), "{name} has made up {made_up:?}");
    }
}
