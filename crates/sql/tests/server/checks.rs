//! `CHECK` constraints: whatever writes a row.

use crate::support::{Server, code, strings};
use futures::SinkExt;
use rhumb_sqltestkit::LocalGateway;
use std::sync::Arc;
use tokio_postgres::Client;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, n int CHECK (n > 0), m int DEFAULT 1, CONSTRAINT ordered CHECK (n <= m), \
                     CHECK (n + m < 1000), CHECK (lower('A') = 'a'))";

async fn created(client: &Client) {
    client.batch_execute(TABLE).await.expect("created");
    client.batch_execute("INSERT INTO t VALUES (1, 1, 10), (2, NULL, NULL)").await.expect("what is NULL breaks no condition");
}

/// The constraint that a statement must break, and what it says of the row.
async fn broken(client: &Client, sql: &str) -> (String, String) {
    let error = client.batch_execute(sql).await.expect_err(sql);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}"));
    assert_eq!(error.code().code(), "23514", "{sql}: {error}");
    let constraint = error.constraint().unwrap_or_default();
    assert_eq!(error.message(), format!("new row for relation \"t\" violates check constraint \"{constraint}\""), "{sql}");
    (constraint.to_string(), error.detail().unwrap_or_default().to_string())
}

#[tokio::test]
async fn no_statement_leaves_a_row_that_breaks_a_condition() {
    let server = Server::start().await;
    let client = server.connect().await;
    created(&client).await;
    let row = |text: &str| format!("Failing row contains ({text}).");
    assert_eq!(broken(&client, "INSERT INTO t VALUES (3, 5, 9), (4, 0, 1)").await, ("t_n_check".into(), row("4, 0, 1")));
    for (sql, constraint) in [
        ("INSERT INTO t VALUES (3, 2)", "ordered"),
        ("INSERT INTO t SELECT 3, 500, 500", "t_check"),
        ("UPDATE t SET n = 11 WHERE id = 1", "ordered"),
        ("UPDATE t SET n = n + 10", "ordered"),
        ("UPDATE t SET n = -1 FROM (VALUES (1)) AS v (id) WHERE t.id = v.id", "t_n_check"),
        ("INSERT INTO t VALUES (1, 1, 1) ON CONFLICT (id) DO UPDATE SET n = 0", "t_n_check"),
        ("INSERT INTO t VALUES (1, 0, 1) ON CONFLICT DO NOTHING", "t_n_check"),
    ] {
        assert_eq!(broken(&client, sql).await.0, constraint, "{sql}");
    }
    let sink = client.copy_in("COPY t (id, n) FROM STDIN").await.expect("begun");
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from_static(b"7\t1\n8\t-8\n")).await.expect("sent");
    assert_eq!(code(sink.as_mut().finish().await), "23514");
    assert_eq!(strings(&client, "SELECT * FROM t ORDER BY id").await, ["1", "1", "10", "2", "NULL", "NULL"]);
    client.batch_execute("CREATE TABLE u (n int NOT NULL CHECK (n > 0))").await.expect("created");
    let mut sink = std::pin::pin!(client.copy_in("COPY u FROM STDIN").await.expect("begun"));
    sink.send(bytes::Bytes::from_static(b"\\N\n")).await.expect("sent");
    assert_eq!(code(sink.as_mut().finish().await), "23502", "before any condition");
}

#[tokio::test]
async fn operations_that_a_commit_carries_out_break_none_either() {
    let gateway = LocalGateway::operating();
    let server = Server::over(gateway, Default::default()).await;
    let client = server.connect().await;
    created(&client).await;
    client.batch_execute("CREATE PROCEDURE put(a int, b int) AS $$ INSERT INTO t VALUES ($1, $2, 5) $$").await.expect("created");
    for sql in
        ["INSERT INTO t VALUES (3, 0, 1)", "CALL put(3, 0)", "UPDATE t SET n = n - 1 WHERE id = 1", "UPDATE t SET n = 0 WHERE id = 1"]
    {
        assert_eq!(broken(&client, sql).await.0, "t_n_check", "{sql}");
    }
    client.batch_execute("CALL put(3, 4); UPDATE t SET m = m + 1 WHERE id = 1").await.expect("within the conditions");
    assert_eq!(strings(&client, "SELECT id, n, m FROM t WHERE id <> 2 ORDER BY id").await, ["1", "1", "11", "3", "4", "5"]);
}

#[tokio::test]
async fn a_condition_that_makes_no_sense_is_refused_with_its_table() {
    let server = Server::start().await;
    let client = server.connect().await;
    for (condition, state) in
        [("nothing > 0", "42703"), ("n > (SELECT 1)", "0A000"), ("count(n) > 0", "42803"), ("n > $1", "42P02"), ("nosuch(n)", "42883")]
    {
        let sql = format!("CREATE TABLE t (n int CHECK ({condition}))");
        assert_eq!(code(client.simple_query(&sql).await), state, "{condition}");
    }
    assert_eq!(code(client.batch_execute("CREATE TABLE t (n int, CONSTRAINT c CHECK (n > 0), CONSTRAINT c CHECK (n < 9))").await), "42710");
    assert_eq!(code(client.batch_execute("SELECT * FROM t").await), "42P01");
}

#[tokio::test]
async fn a_plan_that_was_made_before_a_constraint_is_not_used_after_it() {
    let gateway = LocalGateway::new();
    let (here, there) = (Server::over(gateway.clone(), Default::default()).await, Server::over(gateway, Default::default()).await);
    let (one, two) = (here.connect().await, there.connect().await);
    one.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int)").await.expect("created");
    let insert = Arc::new(two.prepare("INSERT INTO t VALUES ($1, $2)").await.expect("prepared"));
    two.execute(&*insert, &[&1, &-1]).await.expect("nothing forbids it");
    one.batch_execute("DELETE FROM t; ALTER TABLE t ADD CHECK (n > 0)").await.expect("altered");
    assert_eq!(code(two.execute(&*insert, &[&1, &-1]).await), "23514");
    two.execute(&*insert, &[&1, &1]).await.expect("within the condition");
}
