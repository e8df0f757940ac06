//! A demo with a database of protocol `quad`: real sites, real clients in all regions, and quorums that an operator changes.

use crate::common::{Demo, a_table_is_the_same_in_all_regions, code, done, refused, rows};
use serde_json::Value;
use std::time::Duration;
use tokio_postgres::Client;
use tokio_postgres::error::DbError;

const REGIONS: usize = 5;

/// A demo with an empty database of protocol `quad`, and a client of it in each region.
async fn start() -> (Demo, Vec<Client>) {
    let demo = Demo::start(&[]);
    demo.connect(0).await.batch_execute("CREATE DATABASE bank WITH (protocol = 'quad', cores = 3)").await.expect("created");
    let mut clients = Vec::new();
    for region in 0..REGIONS {
        clients.push(demo.connect_to(region, "bank").await.expect("every region has heard of it"));
    }
    (demo, clients)
}

/// The error with which the server refuses a statement.
async fn refusal(client: &Client, sql: &str) -> DbError {
    let error = client.batch_execute(sql).await.expect_err(sql);
    error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}")).clone()
}

/// Waits until a statement shows this.
async fn until_shown(client: &Client, sql: &str, expected: &str) {
    for _ in 0..1_200 {
        if rows(client, sql).await == [expected] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{sql}: never {expected}; {:?}", rows(client, "SELECT * FROM rhumb.quorums").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_and_transactions_of_all_regions_are_serializable() {
    let (demo, clients) = start().await;
    a_table_is_the_same_in_all_regions(&clients).await;
    an_older_transaction_goes_first(&clients).await;
    the_names_of_databases_are_elsewhere(&demo, &clients).await;
}

async fn an_older_transaction_goes_first(clients: &[Client]) {
    // What one has read another does not change before it is over.
    clients[0].batch_execute("BEGIN; SELECT n FROM item WHERE id = 1").await.expect("read");
    let waiting = clients[1].batch_execute("UPDATE item SET n = n + 1 WHERE id = 1");
    let older = async {
        assert_eq!(rows(&clients[0], "SELECT n FROM item WHERE id = 2").await, ["20"]);
        clients[0].batch_execute("UPDATE item SET n = n + 10 WHERE id = 1; COMMIT").await
    };
    let (waited, committed) = tokio::join!(waiting, older);
    committed.expect("nobody takes its locks");
    waited.expect("it runs after that");
    assert_eq!(rows(&clients[4], "SELECT n FROM item WHERE id = 1").await, ["12"]);
    // A younger one loses its locks to an older one, is told so, and may try again.
    clients[2].batch_execute("BEGIN; SELECT n FROM item WHERE id = 4").await.expect("read");
    clients[3].batch_execute("BEGIN; SELECT n FROM item WHERE id = 2").await.expect("read");
    clients[2].batch_execute("UPDATE item SET n = 5 WHERE id = 2; COMMIT").await.expect("it is older");
    assert_eq!(code(clients[3].batch_execute("UPDATE item SET n = n + 1 WHERE id = 2; COMMIT").await), "40001");
    clients[3].batch_execute("ROLLBACK; BEGIN; UPDATE item SET n = n + 1 WHERE id = 2; COMMIT").await.expect("again");
    assert_eq!(rows(&clients[0], "SELECT n FROM item WHERE id = 2").await, ["6"]);
    // There is no past to read, and nothing is written in a read-only transaction.
    let refused = refusal(&clients[0], "SELECT n FROM item AS OF SYSTEM TIME '-1s'").await;
    assert!(refused.code().code() == "0A000" && refused.message().starts_with("AS OF SYSTEM TIME cannot be used"), "{refused}");
    assert_eq!(code(clients[0].batch_execute("BEGIN READ ONLY; DELETE FROM item; COMMIT").await), "25006");
    clients[0].batch_execute("ROLLBACK").await.expect("over");
}

async fn the_names_of_databases_are_elsewhere(demo: &Demo, clients: &[Client]) {
    assert_eq!(rows(&clients[0], "SELECT datname FROM pg_database ORDER BY datname").await, ["bank", "rhumb"]);
    let refused = refusal(&clients[0], "BEGIN; CREATE DATABASE other").await;
    assert_eq!(refused.code().code(), "25001");
    assert!(refused.message().contains("protocol \"quad\""), "{refused}");
    clients[0].batch_execute("ROLLBACK; CREATE DATABASE other WITH (protocol = 'quad')").await.expect_err("not together");
    clients[0].batch_execute("ROLLBACK").await.expect("over");
    clients[0].batch_execute("CREATE DATABASE other WITH (protocol = 'quad')").await.expect("created");
    let other = demo.connect_to(3, "other").await.expect("it is there");
    other.batch_execute("CREATE TABLE item (id INT)").await.expect("another table of that name");
    assert_eq!(rows(&other, "SELECT count(*) FROM item").await, ["0"]);
    clients[1].batch_execute("DROP DATABASE other").await.expect("dropped");
    assert_eq!(code(demo.connect_to(4, "other").await), "3D000");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_the_quorums_and_says_how_many_cores_there_are() {
    let (demo, clients) = start().await;
    cores_that_cannot_be_are_refused(&demo.connect(2).await).await;
    let view = "SELECT site, region, role, up, caught_up, epoch, cores, cause FROM rhumb.quorums ORDER BY role, site";
    let shown = rows(&clients[4], view).await;
    assert_eq!(shown.len(), REGIONS, "{shown:?}");
    assert_eq!(shown.iter().filter(|row| row.contains("|core|t|")).count(), 3, "{shown:?}");
    assert!(shown.iter().any(|row| row.starts_with("singapore/0|singapore|slave|t|t|")), "the farthest: {shown:?}");
    // A core writes at all of them, a slave at itself and two of three.
    let quorum = async |role: &str, column: &str| {
        let sql = format!("SELECT site, {column} FROM rhumb.quorums WHERE role = '{role}'");
        rows(&clients[0], &sql).await.into_iter().map(|row| row.split(['|', ',']).count() - 1).collect::<Vec<_>>()
    };
    assert_eq!((quorum("core", "write_quorum").await, quorum("core", "read_quorum").await), (vec![3; 3], vec![2; 3]));
    assert_eq!((quorum("slave", "write_quorum").await, quorum("slave", "read_quorum").await), (vec![3; 2], vec![3; 2]));

    clients[3].batch_execute("CREATE TABLE item (id INT PRIMARY KEY, n INT); INSERT INTO item VALUES (1, 1)").await.expect("created");
    clients[3].batch_execute("BEGIN; SELECT n FROM item").await.expect("read");
    clients[1].batch_execute("ALTER DATABASE bank SET cores = 2").await.expect("altered");
    for region in [0, 1, 2, 4] {
        until_shown(&clients[region], "SELECT count(*), min(cores) FROM rhumb.quorums WHERE role = 'core'", "2|2").await;
    }
    // What had read under the old quorums is run again under the new ones.
    assert_eq!(code(clients[3].batch_execute("UPDATE item SET n = 2; COMMIT").await), "40001");
    clients[3].batch_execute("ROLLBACK; BEGIN; SELECT n FROM item; UPDATE item SET n = 3; COMMIT").await.expect("again");
    for client in &clients {
        assert_eq!(rows(client, "SELECT n FROM item").await, ["3"]);
    }
    let says = "SELECT DISTINCT cause, why, since IS NOT NULL, epoch > 1 FROM rhumb.quorums";
    assert_eq!(rows(&clients[1], says).await, ["cores|cores = 2 was asked for|t|t"]);
    clients[0].batch_execute("ALTER DATABASE bank SET cores = auto").await.expect("altered");
    until_shown(&clients[2], "SELECT min(cores) FROM rhumb.quorums", "auto").await;
    what_is_measured_is_shown_everywhere(&demo).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_has_a_site_leave_and_join_again() {
    let (demo, clients) = start().await;
    let at = format!("--demo={}", demo.state());
    let quorum = |arguments: &[&str]| tokio::task::block_in_place(|| done(&[&["quorum"], arguments, &[at.as_str()]].concat()));
    let not_done = |arguments: &[&str], why: &str| {
        tokio::task::block_in_place(|| refused(&[&["quorum"], arguments, &[at.as_str()]].concat(), 1, why));
    };
    clients[1].batch_execute("CREATE TABLE item (id INT PRIMARY KEY, n INT); INSERT INTO item VALUES (1, 1)").await.expect("created");
    not_done(
        &["leave", "atlantis"],
        "sites: there is no site `atlantis/0`; there are california/0, oregon/0, virginia/0, ireland/0, singapore/0",
    );
    not_done(&["leave", "oregon", "--site", "oregon"], "a site does not take itself out; name another one with --site");
    let said = quorum(&["leave", "california/0"]);
    assert!(said.contains("as oregon/0 sees it: ") && said.contains("an operator says") && !said.contains("\ncalifornia/0"), "{said}");
    let refused = refusal(&clients[0], "INSERT INTO item VALUES (2, 2)").await;
    let why = "site california/0 takes no part in the quorums; connect to another site, or have it join (rhumb quorum join)";
    assert_eq!((refused.code().code(), refused.message()), ("57P03", why));
    not_done(&["leave", "california", "--site", "oregon"], "site california/0 takes no part in the quorums already");
    clients[4].batch_execute("INSERT INTO item VALUES (2, 2)").await.expect("the others go on");
    let said = quorum(&["join", "california"]);
    assert!(said.contains("as california/0 sees it: california/0 joins"), "{said}");
    assert_eq!(rows(&clients[0], "SELECT count(*) FROM item").await, ["2"]);
    clients[0].batch_execute("INSERT INTO item VALUES (3, 3)").await.expect("it serves again");
}

async fn cores_that_cannot_be_are_refused(client: &Client) {
    for (sql, state, message, hint) in [
        (
            "CREATE DATABASE x WITH (protocol = 'quad', cores = 6)",
            "22023",
            "6 cores are asked for; 5 sites can have 1 to 5",
            "Write cores = 3, or cores = auto for as many as availability and load ask for.",
        ),
        (
            "CREATE DATABASE x WITH (protocol = 'quad', cores = 0)",
            "22023",
            "invalid number of cores: \"0\"",
            "Write cores = 3, or cores = auto.",
        ),
        (
            "CREATE DATABASE x WITH (protocol = 'quad', cores = 2)",
            "55006",
            "databases of protocol \"quad\" share their cores, and \"bank\" is there with cores = 3",
            "Leave cores out, or change them for all with ALTER DATABASE bank SET cores = 2.",
        ),
        (
            "CREATE DATABASE x WITH (cores = 2)",
            "22023",
            "cores is an option of protocol \"quad\" only",
            "Write WITH (protocol = 'quad', cores = 3).",
        ),
        ("ALTER DATABASE bank SET cores = 9", "22023", "9 cores are asked for; 5 sites can have 1 to 5", ""),
        ("ALTER DATABASE bank RESET cores", "22023", "cores has no default", "Write SET cores = 3, or SET cores = auto."),
    ] {
        let refused = refusal(client, sql).await;
        assert_eq!((refused.code().code(), refused.message()), (state, message), "{sql}");
        assert!(refused.hint().is_some_and(|said| hint.is_empty() || said == hint), "{sql}: {refused:?}");
    }
    assert_eq!(rows(client, "SELECT datname FROM pg_database ORDER BY 1").await, ["bank", "rhumb"], "none of them is there");
    client.batch_execute("CREATE DATABASE y WITH (protocol = 'quad', cores = 3)").await.expect("as many as there are");
    client.batch_execute("DROP DATABASE y").await.expect("dropped");
}

async fn what_is_measured_is_shown_everywhere(demo: &Demo) {
    let cores: f64 = (0..REGIONS).map(|region| demo.counted(region, "rhumb_quad_role{role=\"core\"}")).sum();
    assert!(cores >= 2.0, "{cores} cores");
    for region in 0..REGIONS {
        assert!(demo.counted(region, "rhumb_quad_epoch") >= 2.0);
        assert!(demo.counted(region, "rhumb_quad_changes_total{cause=\"cores\"}") >= 1.0);
        assert!(demo.counted(region, "rhumb_quad_seals_total") >= 1.0);
        assert!(demo.counted(region, "rhumb_quad_transactions_total{outcome=\"committed\"}") >= 1.0);
    }
    assert!(demo.counted(3, "rhumb_quad_transactions_total{outcome=\"conflict\"}") >= 1.0);
    let address = demo.of_region(2, "http");
    let explained = loop {
        let text = done(&["quorum", "explain", "--http", &address, "--json"]);
        let json: Value = serde_json::from_str(&text).expect("JSON");
        // Nothing is expected from the load of a period in which the quorums changed, so this takes a period more.
        if json["sites"][0]["alpha"].is_number() {
            break json;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!((explained["site"].as_str(), explained["cores"].as_str()), (Some("virginia/0"), Some("auto")));
    assert!(explained["plan"]["mean_score"].as_f64().is_some_and(|score| score > 0.0), "{explained}");
    assert!(explained["sites"][0]["load"].is_number() && explained["plan"]["kappa"].is_string(), "{explained}");
    let text = done(&["quorum", "explain", "--http", &address]);
    for said in ["as virginia/0 sees it", "cores = auto", "mean score of all quorums", "cost of having the promoted", "writes ask"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(done(&["status", "--http", &address]).contains("quorums of epoch "));
    refused(
        &["quorum", "explain", "--http", "http://127.0.0.1:1"],
        1,
        "http://127.0.0.1:1/quorums does not answer: Connection refused (os error 111)",
    );
}
