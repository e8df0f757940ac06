//! Statements that become operations, and what clients are told of them.

use crate::support::{Server, code, strings};
use rhumb_commit::transaction::TxnError;
use rhumb_sql::server::ServerOptions;
use rhumb_sqltestkit::LocalGateway;
use tokio_postgres::{Client, SimpleQueryMessage};

async fn server() -> (Server, Client) {
    let server = Server::over(LocalGateway::operating(), ServerOptions::default()).await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (id int PRIMARY KEY, n int, b bigint NOT NULL DEFAULT 0, price numeric(6,2), name text, tag text UNIQUE);
             CREATE TABLE log (id int, line int, what text, PRIMARY KEY (id, line))",
        )
        .await
        .expect("created");
    client.batch_execute("INSERT INTO t VALUES (1, 10, 0, 1.50, 'one', 'a'), (2, NULL, 0, NULL, 'two', NULL)").await.expect("inserted");
    (server, client)
}

/// Reads that a text makes before its commit, and what became of it.
async fn reads(server: &Server, client: &Client, sql: &str) -> (u64, Result<Vec<String>, String>) {
    let before = server.gateway.rounds();
    let result = client.simple_query(sql).await;
    let reads = server.gateway.rounds() - before;
    let shown = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|column| row.get(column).unwrap_or("NULL")).collect::<Vec<_>>().join(" ")),
        SimpleQueryMessage::CommandComplete(count) => Some(format!("#{count}")),
        _ => None,
    };
    let code = |error: tokio_postgres::Error| error.code().expect("an error of the server").code().to_owned();
    (reads, result.map(|messages| messages.iter().filter_map(shown).collect()).map_err(code))
}

/// What a text that reads nothing before its commit tells its client.
async fn at_once(server: &Server, client: &Client, sql: &str) -> Result<Vec<String>, String> {
    let (reads, told) = reads(server, client, sql).await;
    assert_eq!(reads, 0, "{sql}");
    told
}

fn told(words: &[&str]) -> Result<Vec<String>, String> {
    Ok(words.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn what_is_added_to_a_column_is_added_at_the_commit() {
    let (server, client) = server().await;
    for (sql, count) in [
        ("UPDATE t SET n = n + 1 WHERE id = 1", 1),
        ("UPDATE t SET n = 2 + n WHERE id = 1", 1),
        ("UPDATE t SET n = n - 4, b = b + 5000000000, name = 'uno', price = price - 0.25 WHERE id = 1", 1),
        ("UPDATE t SET n = n + 1, price = price + 1 WHERE id = 2", 1),
        ("UPDATE t SET n = n + 1 WHERE id = 3", 0),
        ("UPDATE t SET b = b + 7 WHERE id IN (1, 2, 3)", 2),
    ] {
        assert_eq!(at_once(&server, &client, sql).await, told(&[&format!("#{count}")]), "{sql}");
    }
    let rows = strings(&client, "SELECT n, b, price, name FROM t ORDER BY id").await;
    assert_eq!(rows, ["9", "5000000007", "1.25", "uno", "NULL", "7", "NULL", "two"]);
}

#[tokio::test]
async fn parameters_are_added_too() {
    let (server, client) = server().await;
    let add = client.prepare("UPDATE t SET n = n + $1, b = b - $2 WHERE id = $3").await.expect("prepared");
    client.execute(&add, &[&0i32, &0i64, &1i32]).await.expect("updated");
    let before = server.gateway.rounds();
    assert_eq!(client.execute(&add, &[&5i32, &6i64, &1i32]).await.expect("updated"), 1);
    assert_eq!(server.gateway.rounds(), before);
    assert_eq!(strings(&client, "SELECT n, b FROM t WHERE id = 1").await, ["15", "-6"]);
    // NULL is no amount: that takes a look at the row.
    assert_eq!(client.execute(&add, &[&None::<i32>, &1i64, &1i32]).await.expect("updated"), 1);
    assert_eq!(strings(&client, "SELECT n, b FROM t WHERE id = 1").await, ["NULL", "-7"]);
}

#[tokio::test]
async fn sums_out_of_range_change_nothing() {
    let (server, client) = server().await;
    for sql in [
        "UPDATE t SET n = n + 2147483647 WHERE id = 1",
        "UPDATE t SET price = price + 9999 WHERE id = 1",
        "UPDATE t SET b = b - 1, n = n + 2147483647 WHERE id IN (1, 2)",
        "INSERT INTO log VALUES (9, 9, 'x'); UPDATE t SET n = n + 2147483647 WHERE id = 1",
    ] {
        assert_eq!(at_once(&server, &client, sql).await, Err("22003".into()), "{sql}");
    }
    assert_eq!(strings(&client, "SELECT n, b, price FROM t WHERE id = 1").await, ["10", "0", "1.50"]);
    assert_eq!(strings(&client, "SELECT count(*) FROM log").await, ["0"]);
}

#[tokio::test]
async fn what_depends_on_the_row_is_read() {
    let (server, client) = server().await;
    for (sql, result) in [
        ("UPDATE t SET n = n * 2 WHERE id = 1", told(&["#1"])),
        ("UPDATE t SET n = n + b WHERE id = 1", told(&["#1"])),
        ("UPDATE t SET n = n + 1 WHERE id = 1 AND n = 20", told(&["#1"])),
        ("UPDATE t SET n = n + 1 WHERE name = 'one'", told(&["#1"])),
        ("UPDATE t SET n = n + 1 WHERE id > 0", told(&["#2"])),
        ("UPDATE t SET id = id + 10 WHERE id = 2", told(&["#1"])),
        ("UPDATE t SET tag = 'b' WHERE id = 1", told(&["#1"])),
        ("UPDATE t SET price = price + 0.005 WHERE id = 1", told(&["#1"])),
        ("UPDATE t SET b = NULL WHERE id = 99", told(&["#0"])),
        ("DELETE FROM t WHERE id = 12", told(&["#1"])),
        ("INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING", told(&["#0"])),
    ] {
        let (reads, done) = reads(&server, &client, sql).await;
        assert_eq!((reads > 0, done), (true, result), "{sql}");
    }
    assert_eq!(strings(&client, "SELECT id, n, price, tag FROM t").await, ["1", "23", "1.51", "b"]);
}

#[tokio::test]
async fn rows_are_inserted_and_deleted_unread() {
    let (server, client) = server().await;
    let insert = "INSERT INTO t (id, n, tag) VALUES (3, 30, 'c'), (4, 40, NULL) RETURNING id, n";
    assert_eq!(at_once(&server, &client, insert).await, told(&["3 30", "4 40", "#2"]));
    let duplicate = client.batch_execute("INSERT INTO t (id) VALUES (5), (3)").await.expect_err("3 is taken");
    let duplicate = duplicate.as_db_error().expect("an error of the server");
    assert_eq!((duplicate.code().code(), duplicate.constraint()), ("23505", Some("t_pkey")));
    let duplicate = client.batch_execute("INSERT INTO t (id, tag) VALUES (5, 'c')").await.expect_err("c is taken");
    let duplicate = duplicate.as_db_error().expect("an error of the server");
    assert_eq!((duplicate.constraint(), duplicate.detail()), (Some("t_tag_key"), Some("Key (tag)=(c) already exists.")));
    assert_eq!(at_once(&server, &client, "INSERT INTO t (id, n) VALUES (1, 1)").await, Err("23505".into()));
    assert_eq!(code(client.batch_execute("INSERT INTO t (id, b) VALUES (6, NULL)").await), "23502");
    at_once(&server, &client, "INSERT INTO log VALUES (1, 1, 'x'), (1, 2, 'y')").await.expect("inserted");
    assert_eq!(at_once(&server, &client, "DELETE FROM log WHERE id = 1 AND line IN (2, 3) RETURNING what").await, told(&["y", "#1"]));
    assert_eq!(strings(&client, "SELECT id FROM t WHERE tag = 'c'").await, ["3"]);
    assert_eq!(strings(&client, "SELECT count(*) FROM log").await, ["1"]);
}

#[tokio::test]
async fn a_text_is_one_transaction_of_operations() {
    let (server, client) = server().await;
    let body = "UPDATE t SET n = n - 3 WHERE id = 1; INSERT INTO log VALUES (1, 1, 'taken'), (1, 2, 'told');
                SELECT what FROM log WHERE id = 0 ORDER BY line LIMIT 5; UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n;
                SELECT n, name FROM t WHERE id = 1; DELETE FROM log WHERE id = 1 AND line = 2";
    let (_, done) = reads(&server, &client, body).await;
    assert_eq!(done, told(&["#1", "#2", "#0", "8", "#1", "8 one", "#1", "#1"]));
    client.batch_execute("DELETE FROM log WHERE id = 1 AND line = 1").await.expect("deleted");
    let block = format!("BEGIN; {body}; COMMIT");
    assert_eq!(at_once(&server, &client, &block).await, told(&["#0", "#1", "#2", "#0", "6", "#1", "6 one", "#1", "#1", "#0"]));
    assert_eq!(strings(&client, "SELECT what FROM log").await, ["taken"]);
    // The second time its key is taken, and COMMIT is not reached.
    assert_eq!(at_once(&server, &client, &block).await, Err("23505".into()));
    assert_eq!(code(client.batch_execute("SELECT 1").await), "25P02");
    client.batch_execute("ROLLBACK").await.expect("over");
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 1").await, ["6"]);
}

#[tokio::test]
async fn an_error_in_what_is_shown_comes_before_the_commit() {
    let (_server, client) = server().await;
    for sql in [
        "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING 10 / (n - 11)",
        "INSERT INTO t (id, n) VALUES (3, 0) RETURNING 1 / n",
        "INSERT INTO t (id, n) VALUES (3, 0); SELECT 1 / (n - 10) FROM t WHERE id = 1",
        "INSERT INTO t (id, n) VALUES (3, 0); SELECT name FROM t WHERE id = 1 AND 1 / (n - 10) > 0",
        "BEGIN; UPDATE t SET n = n + 1 WHERE id = 1 RETURNING 10 / (n - 11); COMMIT",
    ] {
        assert_eq!(code(client.batch_execute(sql).await), "22012", "{sql}");
        let _ = client.batch_execute("ROLLBACK").await;
    }
    assert_eq!(strings(&client, "SELECT string_agg(id || ' ' || coalesce(n, 0), ', ' ORDER BY id) FROM t").await, ["1 10, 2 0"]);
}

#[tokio::test]
async fn what_is_too_large_to_be_shown_is_refused_before_the_commit() {
    let (_server, client) = server().await;
    client.batch_execute("UPDATE t SET name = repeat('x', 4000000) WHERE id = 1").await.expect("updated");
    let names = vec!["name"; 17].join(", ");
    let inserted = vec!["what"; 17].join(", ");
    for sql in [
        format!("UPDATE t SET n = n + 1 WHERE id = 1 RETURNING {names}"),
        format!("INSERT INTO log VALUES (1, 1, repeat('x', 4000000)) RETURNING {inserted}"),
        format!("INSERT INTO log VALUES (1, 1, 'x'); SELECT {names} FROM t WHERE id = 1"),
        format!("BEGIN; UPDATE t SET n = n + 1 WHERE id = 1; SELECT {names} FROM t WHERE id = 1; COMMIT"),
    ] {
        assert_eq!(code(client.batch_execute(&sql).await), "54000", "{sql}");
        let _ = client.batch_execute("ROLLBACK").await;
    }
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 1").await, ["10"]);
    assert_eq!(strings(&client, "SELECT count(*) FROM log").await, ["0"]);
}

#[tokio::test]
async fn what_differs_from_row_to_row_is_not_sent_once_for_all() {
    let (_server, client) = server().await;
    client.batch_execute("UPDATE t SET name = uuid() WHERE id IN (1, 2)").await.expect("updated");
    assert_eq!(strings(&client, "SELECT count(DISTINCT name) FROM t").await, ["2"]);
}

#[tokio::test]
async fn a_text_that_must_read_first_is_validated_instead() {
    let (server, client) = server().await;
    for text in [
        "UPDATE t SET n = n + 1 WHERE id = 1; UPDATE t SET n = n * 2 WHERE id = 1",
        "BEGIN; INSERT INTO log SELECT id, 1, name FROM t; UPDATE t SET n = n + 1 WHERE id = 1; COMMIT",
        "INSERT INTO log VALUES (5, 5, 'x'); SELECT what FROM log WHERE id = 5 LIMIT 3",
        "INSERT INTO log VALUES (5, 6, 'x'); SELECT count(*) FROM log",
    ] {
        let (reads, done) = reads(&server, &client, text).await;
        assert!(reads > 0 && done.is_ok(), "{text}: {reads} {done:?}");
    }
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 1").await, ["23"]);
    assert_eq!(code(client.batch_execute("INSERT INTO log VALUES (7, 7, 'x'); SELECT nonsense FROM log").await), "42703");
    assert_eq!(strings(&client, "SELECT count(*) FROM log WHERE id = 7").await, ["0"]);
    assert_eq!(code(client.batch_execute("BEGIN READ ONLY; INSERT INTO log VALUES (7, 7, 'x'); COMMIT").await), "25006");
}

#[tokio::test]
async fn a_table_that_became_another_is_noticed() {
    let (server, client) = server().await;
    let other = Server::over(server.gateway.clone(), ServerOptions::default()).await.connect().await;
    other.batch_execute("UPDATE t SET n = n + 1 WHERE id = 1").await.expect("updated");
    client.batch_execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, name text, n int)").await.expect("created");
    other.batch_execute("INSERT INTO t (id, name, n) VALUES (7, 'x', 5)").await.expect("into the new one");
    other.batch_execute("UPDATE t SET n = n + 1 WHERE id = 7").await.expect("updated");
    assert_eq!(strings(&client, "SELECT name, n FROM t").await, ["x", "6"]);
}

#[tokio::test]
async fn a_text_over_tables_that_are_not_known_as_they_are_is_planned_again() {
    let (server, client) = server().await;
    let other = Server::over(server.gateway.clone(), ServerOptions::default()).await.connect().await;
    other.batch_execute("UPDATE t SET n = n + 1 WHERE id = 1").await.expect("it knows t");
    for text in [
        "INSERT INTO t (id, name) VALUES (7, 'x'); INSERT INTO unknown VALUES (1)",
        "BEGIN; INSERT INTO t (id, name) VALUES (8, 'y'); INSERT INTO other VALUES (1); COMMIT",
    ] {
        client.batch_execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, name text)").await.expect("another t");
        client
            .batch_execute("CREATE TABLE IF NOT EXISTS unknown (id int PRIMARY KEY); CREATE TABLE IF NOT EXISTS other (id int PRIMARY KEY)")
            .await
            .expect("and more");
        other.batch_execute(text).await.expect(text);
    }
    assert_eq!(strings(&client, "SELECT id, name FROM t").await, ["8", "y"]);
    assert_eq!(strings(&client, "SELECT (SELECT count(*) FROM unknown) + (SELECT count(*) FROM other)").await, ["2"]);
}

#[tokio::test]
async fn an_unknown_outcome_is_told_and_a_conflict_run_again() {
    let (server, client) = server().await;
    server.gateway.fail_commits([TxnError::Conflict("the table has changed".into())]);
    assert_eq!(client.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await.expect("run again"), 1);
    server.gateway.fail_commits([TxnError::Unknown("nobody knows".into())]);
    assert_eq!(code(client.batch_execute("BEGIN; UPDATE t SET n = n + 1 WHERE id = 1; COMMIT").await), "40003");
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 1").await, ["11"]);
}

#[tokio::test]
async fn what_refuses_a_procedure_is_what_it_is_by_then() {
    let (server, client) = server().await;
    let other = Server::over(server.gateway.clone(), ServerOptions::default()).await.connect().await;
    let define =
        |line: &str| format!("CREATE OR REPLACE PROCEDURE add(id int) LANGUAGE SQL AS $$ INSERT INTO log VALUES (id, {line}, 'x') $$");
    client.batch_execute(&define("1 / (id - 2)")).await.expect("defined");
    assert_eq!(code(other.batch_execute("CALL add(2)").await), "22012");
    client.batch_execute(&define("7")).await.expect("replaced");
    other.batch_execute("CALL add(2)").await.expect("by the new one");
    assert_eq!(strings(&client, "SELECT id, line FROM log").await, ["2", "7"]);
}
