//! SAVEPOINT, ROLLBACK TO and RELEASE.

use crate::support::{Server, code, strings};
use tokio_postgres::Client;

async fn begun(server: &Server) -> Client {
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int)").await.expect("created");
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1, 0)").await.expect("begun");
    client
}

async fn ids(client: &Client) -> Vec<String> {
    strings(client, "SELECT id FROM t ORDER BY id").await
}

#[tokio::test]
async fn what_was_written_since_a_savepoint_is_undone() {
    let server = Server::start().await;
    let client = begun(&server).await;
    client
        .batch_execute("SAVEPOINT a; INSERT INTO t VALUES (2, 0); UPDATE t SET n = 7; DELETE FROM t WHERE id = 1")
        .await
        .expect("written");
    client.batch_execute("SAVEPOINT b; INSERT INTO t VALUES (3, 0)").await.expect("written");
    assert_eq!(ids(&client).await, ["2", "3"]);
    client.batch_execute("ROLLBACK TO b").await.expect("rolled back");
    assert_eq!(ids(&client).await, ["2"]);
    for _ in 0..2 {
        client.batch_execute("ROLLBACK TO SAVEPOINT a").await.expect("rolled back, and again");
        assert_eq!(strings(&client, "SELECT id, n FROM t").await, ["1", "0"]);
        client.batch_execute("INSERT INTO t VALUES (4, 4)").await.expect("written");
    }
    client.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(ids(&client).await, ["1", "4"]);
}

#[tokio::test]
async fn a_failed_transaction_goes_on_from_a_savepoint() {
    let server = Server::start().await;
    let client = begun(&server).await;
    client.batch_execute("SAVEPOINT a; INSERT INTO t VALUES (2, 0)").await.expect("written");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (3, 0), (1, 0)").await), "23505");
    assert_eq!(code(client.batch_execute("SELECT 1").await), "25P02");
    assert_eq!(code(client.batch_execute("SAVEPOINT b").await), "25P02");
    assert_eq!(code(client.batch_execute("RELEASE a").await), "25P02");
    client.batch_execute("ROLLBACK TO a").await.expect("rolled back");
    assert_eq!(ids(&client).await, ["1"]);
    assert_eq!(code(client.batch_execute("SELECT * FROM nowhere").await), "42P01");
    client.batch_execute("ROLLBACK TO a; INSERT INTO t VALUES (5, 0); COMMIT").await.expect("committed");
    assert_eq!(ids(&client).await, ["1", "5"]);

    client.batch_execute("BEGIN; INSERT INTO t VALUES (6, 0); SAVEPOINT a").await.expect("begun");
    assert_eq!(code(client.batch_execute("SELECT 1 / 0").await), "22012");
    client.batch_execute("COMMIT").await.expect("rolled back, as after any error");
    assert_eq!(ids(&client).await, ["1", "5"]);
}

#[tokio::test]
async fn savepoints_have_names_and_an_end() {
    let server = Server::start().await;
    let client = begun(&server).await;
    client.batch_execute("SAVEPOINT a; INSERT INTO t VALUES (2, 0); SAVEPOINT a; INSERT INTO t VALUES (3, 0)").await.expect("written");
    client.batch_execute("ROLLBACK TO a").await.expect("the newer of that name");
    assert_eq!(ids(&client).await, ["1", "2"]);
    client.batch_execute("RELEASE a; ROLLBACK TO a").await.expect("the older one");
    assert_eq!(ids(&client).await, ["1"]);
    client.batch_execute("SAVEPOINT \"B\"; RELEASE SAVEPOINT a").await.expect("released, and those after it");
    assert_eq!(code(client.batch_execute("ROLLBACK TO \"B\"").await), "3B001");
    assert_eq!(code(client.batch_execute("ROLLBACK TO a").await), "25P02", "there is none");
    client.batch_execute("ROLLBACK").await.expect("rolled back");
    for outside in ["SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "SELECT 1; SAVEPOINT a"] {
        assert_eq!(code(client.batch_execute(outside).await), "25P01", "{outside}");
    }
    assert_eq!(ids(&client).await, [""; 0]);
}

#[tokio::test]
async fn settings_and_tables_go_back_too() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute("SET lock_timeout = 1000; BEGIN; SET lock_timeout = 2000; CREATE TABLE t (id int PRIMARY KEY)")
        .await
        .expect("begun");
    client.batch_execute("SAVEPOINT a; SET LOCAL lock_timeout = 3000; CREATE TABLE u (id int PRIMARY KEY)").await.expect("changed");
    client.batch_execute("INSERT INTO u VALUES (1); INSERT INTO t VALUES (1); DROP TABLE t").await.expect("changed");
    assert_eq!(code(client.batch_execute("SELECT * FROM t").await), "42P01");
    client.batch_execute("ROLLBACK TO a").await.expect("rolled back");
    assert_eq!(strings(&client, "SHOW lock_timeout").await, ["2s"]);
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(code(client.batch_execute("SELECT * FROM u").await), "42P01");
    client.batch_execute("ROLLBACK TO a; CREATE TABLE u (name text); INSERT INTO u VALUES ('x'); COMMIT").await.expect("committed");
    assert_eq!(strings(&client, "SELECT name FROM u").await, ["x"]);
    assert_eq!(strings(&client, "SHOW lock_timeout").await, ["2s"]);
    assert_eq!(strings(&server.connect().await, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn what_was_read_before_a_rollback_is_validated() {
    let server = Server::start().await;
    let (one, two) = (begun(&server).await, server.connect().await);
    one.batch_execute("COMMIT; BEGIN; SAVEPOINT a").await.expect("begun");
    assert_eq!(strings(&one, "SELECT n FROM t WHERE id = 1").await, ["0"]);
    one.batch_execute("ROLLBACK TO a; INSERT INTO t VALUES (2, 0)").await.expect("written");
    two.batch_execute("UPDATE t SET n = 1 WHERE id = 1").await.expect("updated");
    assert_eq!(code(one.batch_execute("COMMIT").await), "40001");
}

#[tokio::test]
async fn no_savepoint_brings_back_what_ended_in_a_conflict() {
    let server = Server::start().await;
    let (one, two) = (begun(&server).await, server.connect().await);
    one.batch_execute("COMMIT; BEGIN; SAVEPOINT a; SELECT n FROM t WHERE id = 1").await.expect("read");
    two.batch_execute("UPDATE t SET n = 1 WHERE id = 1").await.expect("updated");
    // The database in memory notices when the row is read again.
    assert_eq!(code(one.batch_execute("SELECT n FROM t WHERE id = 1").await), "40001");
    assert_eq!(code(one.batch_execute("ROLLBACK TO a").await), "40001");
    assert_eq!(code(one.batch_execute("SELECT 1").await), "25P02");
    one.batch_execute("ROLLBACK").await.expect("rolled back");
}

#[tokio::test]
async fn errors_that_an_application_expects_leave_the_transaction() {
    let server = Server::start().await;
    let client = begun(&server).await;
    client.batch_execute("COMMIT; CREATE QUOTA vm LIMIT 1; BEGIN; SAVEPOINT a").await.expect("begun");
    assert_eq!(code(client.batch_execute("SELECT acquire('vm', 2)").await), "53400");
    client.batch_execute("ROLLBACK TO a; INSERT INTO t VALUES (2, 0); COMMIT").await.expect("it goes on");
    assert_eq!(ids(&client).await, ["1", "2"]);
    client.batch_execute("BEGIN").await.expect("begun");
    assert_eq!(code(client.batch_execute(&format!("SAVEPOINT {}", "a".repeat(64))).await), "42622");
    client.batch_execute("ROLLBACK; BEGIN").await.expect("begun");
    for _ in 0..2_000 {
        client.batch_execute("SAVEPOINT autosave").await.expect("as some drivers do before each statement");
    }
    client.batch_execute("COMMIT").await.expect("committed");
}

#[tokio::test]
async fn a_portal_gives_nothing_while_its_transaction_has_failed() {
    let server = Server::start().await;
    let mut client = begun(&server).await;
    client.batch_execute("COMMIT; INSERT INTO t VALUES (2, 0), (3, 0)").await.expect("filled");
    let transaction = client.transaction().await.expect("begun");
    transaction.batch_execute("SAVEPOINT a").await.expect("made");
    let portal = transaction.bind("SELECT id FROM t", &[]).await.expect("bound");
    assert_eq!(transaction.query_portal(&portal, 1).await.expect("a row").len(), 1);
    assert_eq!(code(transaction.batch_execute("SELECT 1 / 0").await), "22012");
    assert_eq!(code(transaction.query_portal(&portal, 1).await), "25P02");
    transaction.batch_execute("ROLLBACK TO a").await.expect("rolled back");
}
