//! COPY … FROM STDIN.

use crate::support::{Server, code, strings};
use bytes::Bytes;
use futures::SinkExt;
use rhumb_sql::server::ServerOptions;
use rhumb_sqltestkit::LocalGateway;
use std::pin::pin;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

async fn copy(client: &Client, sql: &str, pieces: &[&'static str]) -> Result<u64, Error> {
    let mut sink = pin!(client.copy_in(sql).await?);
    for piece in pieces {
        sink.send(Bytes::from_static(piece.as_bytes())).await?;
    }
    sink.finish().await
}

#[tokio::test]
async fn rows_arrive_as_text_and_as_csv() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text, n int DEFAULT 7)").await.expect("created");
    assert_eq!(copy(&client, "COPY t FROM STDIN", &["1\ta\\tb\t\\N\n2", "\tc\t3\n"]).await.expect("copied"), 2);
    let csv = "COPY t (name, id) FROM STDIN WITH (FORMAT csv, HEADER)";
    assert_eq!(copy(&client, csv, &["name,id\n\"x\n\"\"y\"\"\",3\n", ",4"]).await.expect("copied"), 2);
    let rows = client.query("SELECT id, name, n FROM t", &[]).await.expect("rows");
    let rows: Vec<(i32, Option<String>, Option<i32>)> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let expected = [(1, Some("a\tb"), None), (2, Some("c"), Some(3)), (3, Some("x\n\"y\""), Some(7)), (4, None, Some(7))];
    assert_eq!(rows, expected.map(|(id, name, n)| (id, name.map(str::to_string), n)));
}

#[tokio::test]
async fn rows_arrive_in_binary() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text)").await.expect("created");
    let sink = client.copy_in("COPY t FROM STDIN BINARY").await.expect("started");
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT4, Type::TEXT]));
    writer.as_mut().write(&[&1i32, &"a"]).await.expect("sent");
    writer.as_mut().write(&[&2i32, &None::<&str>]).await.expect("sent");
    assert_eq!(writer.finish().await.expect("copied"), 2);
    assert_eq!(strings(&client, "SELECT * FROM t").await, ["1", "a", "2", "NULL"]);
    assert_eq!(code(copy(&client, "COPY t FROM STDIN BINARY", &["3\ta\n"]).await), "22P04");
}

#[tokio::test]
async fn a_copy_that_fails_leaves_nothing() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text)").await.expect("created");
    let cases = [("1\ta\nx\tb\n", "22P02"), ("1\ta\n2\n", "22P04"), ("1\ta\n2\tb\tc\n", "22P04"), ("1\ta\n1\tb\n", "23505")];
    for (data, expected) in cases {
        assert_eq!(code(copy(&client, "COPY t FROM STDIN", &[data]).await), expected, "{data}");
        assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"], "{data}");
    }
    assert_eq!(code(copy(&client, "COPY nowhere FROM STDIN", &[]).await), "42P01");
}

#[tokio::test]
async fn where_commits_carry_out_operations_no_key_is_read() {
    let server = Server::over(LocalGateway::operating(), ServerOptions::default()).await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text UNIQUE, n int DEFAULT 7)").await.expect("created");
    assert_eq!(copy(&client, "COPY t (id, name) FROM STDIN", &["1\ta\n2\tb\n"]).await.expect("copied"), 2);
    let before = server.gateway.rounds();
    assert_eq!(copy(&client, "COPY t (id, name) FROM STDIN", &["3\tc\n4", "\t\\N\n"]).await.expect("copied"), 2);
    assert_eq!(copy(&client, "COPY t FROM STDIN", &[]).await.expect("nothing"), 0);
    for (data, key) in [("5\tx\n3\ty\n", "t_pkey"), ("5\tx\n6\ty\n5\tz\n", "t_pkey"), ("5\ta\n", "t_name_key")] {
        let error = copy(&client, "COPY t (id, name) FROM STDIN", &[data]).await.expect_err("a key is taken");
        let error = error.as_db_error().expect("an error of the server");
        assert_eq!((error.code().code(), error.constraint()), ("23505", Some(key)), "{data}");
    }
    assert_eq!(server.gateway.rounds(), before);
    assert_eq!(strings(&client, "SELECT id || coalesce(name, '-') || n FROM t ORDER BY id").await, ["1a7", "2b7", "3c7", "4-7"]);
    let rows: &'static str = (10..2_059).map(|id| format!("{id}\t{id}\n")).collect::<String>().leak();
    assert_eq!(code(copy(&client, "COPY t (id, name) FROM STDIN", &[rows]).await), "54000");
    client.batch_execute("BEGIN").await.expect("begun");
    assert_eq!(copy(&client, "COPY t (id, name) FROM STDIN", &["5\tx\n"]).await.expect("copied"), 1);
    client.batch_execute("ROLLBACK").await.expect("undone");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["4"]);
}

#[tokio::test]
async fn few_long_lines_fill_a_batch_as_many_short_ones_do() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text)").await.expect("created");
    let mut rounds = Vec::new();
    for (first, bytes) in [(0, 1), (8, 1_500_000)] {
        let lines = (first..first + 8).map(|id| format!("{id}\t{}\n", "x".repeat(bytes)));
        let before = server.gateway.rounds();
        assert_eq!(copy(&client, "COPY t FROM STDIN", &[lines.collect::<String>().leak()]).await.expect("copied"), 8);
        rounds.push(server.gateway.rounds() - before);
    }
    assert_eq!(rounds[1] - rounds[0], 2, "three of the long lines are more than four mebibytes");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["16"]);
}
