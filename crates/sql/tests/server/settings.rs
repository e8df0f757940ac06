//! SET, SHOW, RESET and what sessions say of themselves.

use crate::support::{Server, code, strings};

#[tokio::test]
async fn settings_are_set_shown_and_reset() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("SET rhumb.read_mode = 'locking'; SET application_name TO 'me'").await.expect("set");
    assert_eq!(strings(&client, "SHOW rhumb.read_mode").await, ["locking"]);
    client.batch_execute("RESET ALL").await.expect("reset");
    assert_eq!(strings(&client, "SHOW rhumb.read_mode").await, ["default"]);
    assert_eq!(code(client.batch_execute("SET no_such_setting = 1").await), "42704");
    assert_eq!(code(client.batch_execute("SET TIME ZONE 'Mars/Phobos'").await), "22023");
    assert_eq!(strings(&client, "SHOW server_version").await, ["15.0"]);
}

#[tokio::test]
async fn settings_of_a_transaction_end_with_it() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("BEGIN; SET LOCAL statement_timeout = '5s'").await.expect("set");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["5000"]);
    client.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["0"]);
    client.batch_execute("BEGIN; SET statement_timeout = 7; ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["0"]);
}

#[tokio::test]
async fn regions_are_shown() {
    let server = Server::start().await;
    let client = server.connect().await;
    let statement = client.prepare("SHOW REGIONS").await.expect("prepared");
    let names: Vec<_> = statement.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["name", "local", "sites", "reachable", "rtt_ms", "floor_ms"]);
    assert_eq!(client.query(&statement, &[]).await.expect("rows").len(), 1);
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_canceled() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("SET statement_timeout = '50ms'").await.expect("set");
    let endless = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT count(*) FROM n";
    assert_eq!(code(client.batch_execute(endless).await), "57014");
    client.batch_execute("SET statement_timeout = 0").await.expect("set");
    let token = client.cancel_token();
    let canceling = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        token.cancel_query(tokio_postgres::NoTls).await.expect("asked to cancel");
    };
    let (result, ()) = tokio::join!(client.batch_execute(endless), canceling);
    assert_eq!(code(result), "57014");
    assert_eq!(strings(&client, "SELECT 1").await, ["1"]);
}
