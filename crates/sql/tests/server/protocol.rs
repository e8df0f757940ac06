//! The protocol where it is not followed, and where it is followed to the letter.

use crate::support::{Server, Wire, code, state_of, strings};
use futures::TryStreamExt;
use rhumb_commit::transaction::TxnError;
use rhumb_sql::server::ServerOptions;
use std::pin::pin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::types::ToSql;

const STARTUP: &[u8] = b"\0\0\0\x24\0\x03\0\0user\0tester\0database\0rhumb\0\0";

/// Sends bytes and reads until the server closes the connection.
async fn exchange(server: &Server, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    for piece in pieces {
        stream.write_all(piece).await.expect("sent");
    }
    let mut answer = Vec::new();
    // The server may close while there are bytes it has not read, which some systems report as a reset.
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

fn holds(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn garbage_ends_its_connection_only() {
    let server = Server::start().await;
    let client = server.connect().await;
    let openings: [&[u8]; 4] = [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\x04", b"\0\0\0\x08\0\x02\0\0"];
    for opening in openings {
        assert!(holds(&exchange(&server, &[opening]).await, "08P01"), "{opening:?}");
    }
    let messages: [&[u8]; 6] =
        [b"?\0\0\0\x04", b"Q\x7f\xff\xff\xff", b"Q\0\0\0\x03", b"Q\0\0\0\x09select", b"B\0\0\0\x08\0\0\0\x01", b"P\0\0\0\x06\0\xff"];
    for message in messages {
        assert!(holds(&exchange(&server, &[STARTUP, message]).await, "08P01"), "{message:?}");
    }
    assert_eq!(strings(&client, "SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn connections_are_bounded() {
    let server = Server::start_with(ServerOptions { connections_max: 2, ..ServerOptions::default() }).await;
    let (one, _two) = (server.connect().await, server.connect().await);
    assert_eq!(code(server.connect_to("rhumb").await), "53300");
    assert_eq!(strings(&one, "SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn a_portal_gives_its_rows_in_portions() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4), (5)").await.expect("created");
    let transaction = client.transaction().await.expect("begun");
    let portal = transaction.bind("SELECT id FROM t WHERE id > $1", &[&1i32]).await.expect("bound");
    let mut sizes = Vec::new();
    loop {
        let rows = transaction.query_portal(&portal, 3).await.expect("rows");
        sizes.push(rows.len());
        if rows.len() < 3 {
            break;
        }
    }
    assert_eq!(sizes, [3, 1]);
}

#[tokio::test]
async fn statements_sent_together_are_answered_in_order() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let statement = client.prepare("INSERT INTO t VALUES ($1) RETURNING id").await.expect("prepared");
    let parameters: [&(dyn ToSql + Sync); 3] = [&1i32, &2i32, &3i32];
    let queries = parameters.iter().map(|parameter| client.query_one(&statement, std::slice::from_ref(parameter)));
    let rows = futures::future::try_join_all(queries).await.expect("rows");
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [1, 2, 3]);
}

#[tokio::test]
async fn a_large_result_is_streamed() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, filler text)").await.expect("created");
    for batch in 0..5 {
        let rows: Vec<String> = (0..1_000).map(|row| format!("({}, repeat('x', 100))", batch * 1_000 + row)).collect();
        client.batch_execute(&format!("INSERT INTO t VALUES {}", rows.join(","))).await.expect("inserted");
    }
    let none: [&(dyn ToSql + Sync); 0] = [];
    let rows = pin!(client.query_raw("SELECT id, filler FROM t", none).await.expect("rows"));
    let ids: Vec<i32> = rows.map_ok(|row| row.get::<_, i32>(0)).try_collect().await.expect("rows");
    assert_eq!(ids, (0..5_000).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_too_long_or_too_deep_is_refused() {
    let server = Server::start().await;
    let client = server.connect().await;
    let long = format!("SELECT '{}'", "x".repeat(5 << 20));
    assert_eq!(code(client.batch_execute(&long).await), "54000");
    let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(code(client.batch_execute(&deep).await), "54001");
    assert_eq!(strings(&client, "SELECT 1").await, ["1"]);
}

#[tokio::test]
async fn a_text_sent_again_shows_the_table_as_it_is_by_then() {
    let server = Server::start().await;
    let client = server.connect().await;
    for (columns, row) in [("id int, n int", "(1, 2)"), ("id int, name text, n bigint", "(1, 'x', 3)"), ("name text", "('y')")] {
        client.batch_execute(&format!("CREATE TABLE t ({columns}); INSERT INTO t VALUES {row}")).await.expect("made");
        let shown = strings(&client, "SELECT * FROM t").await;
        assert_eq!(format!("({})", shown.join(", ")), row.replace('\'', ""));
        client.batch_execute("DROP TABLE t").await.expect("dropped");
    }
}

#[tokio::test]
async fn a_prepared_statement_is_for_what_it_was_prepared_for_and_nothing_else() {
    let server = Server::start().await;
    let client = server.connect().await;
    let made = "DROP TABLE t; CREATE TABLE t (id text PRIMARY KEY, n int); INSERT INTO t VALUES ('1', 5)";
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 4)").await.expect("made");
    let (all, one) = ("SELECT * FROM t", "SELECT n FROM t WHERE id = $1");
    let (before, by_id) = (client.prepare(all).await.expect("prepared"), client.prepare(one).await.expect("prepared"));
    assert_eq!(client.query_one(&before, &[]).await.expect("a row").get::<_, i32>(0), 1);
    assert_eq!(client.query_one(&by_id, &[&1i32]).await.expect("a row").get::<_, i32>(0), 4);
    client.batch_execute(made).await.expect("another");
    // The same text by itself is another matter, and changes nothing for those prepared before.
    assert_eq!(strings(&client, all).await, ["1", "5"]);
    for _ in 0..2 {
        assert_eq!(code(client.query(&before, &[]).await), "0A000");
        assert_eq!(code(client.query(&by_id, &[&1i32]).await), "0A000");
    }
    let after = client.prepare(all).await.expect("prepared again");
    assert_eq!(client.query_one(&after, &[]).await.expect("a row").get::<_, &str>(0), "1");
    let by_id = client.prepare(one).await.expect("prepared again");
    assert_eq!(client.query_one(&by_id, &[&"1"]).await.expect("a row").get::<_, i32>(0), 5);
}

#[tokio::test]
async fn a_statement_whose_portal_is_closed_before_the_sync_stands_alone() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let mut wire = Wire::open(&server).await;
    let mut run = async |statement: &str, after: &[(u8, &[u8])]| {
        server.gateway.fail_commits([TxnError::Conflict("another transaction was in the way".into())]);
        wire.send(b'P', &[b"\0", statement.as_bytes(), b"\0\0\0"].concat()).await;
        wire.send(b'B', b"\0\0\0\0\0\0\0\0").await;
        wire.send(b'E', b"\0\0\0\0\0").await;
        for (kind, body) in after {
            wire.send(*kind, body).await;
        }
        wire.send(b'S', b"").await;
        state_of(&wire.until_ready().await)
    };
    // Alone, a statement is run again after a conflict.
    assert_eq!(run("INSERT INTO t VALUES (1)", &[]).await, None);
    assert_eq!(run("INSERT INTO t VALUES (2)", &[(b'C', b"P\0")]).await, None);
    let flushed = run("INSERT INTO t VALUES (3)", &[(b'H', b"")]).await;
    assert_eq!(flushed.as_deref(), Some("40001"), "what comes after a Flush is not known");
    assert_eq!(strings(&client, "SELECT id FROM t ORDER BY id").await, ["1", "2"]);
}

#[tokio::test]
async fn execute_is_described_and_refused_as_the_statement_that_it_names() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, words text); INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        .await
        .expect("made");
    client.batch_execute("PREPARE p (int) AS SELECT words FROM t WHERE id = $1").await.expect("prepared");
    let execute = client.prepare("EXECUTE p (1 + 1)").await.expect("described");
    let columns: Vec<_> = execute.columns().iter().map(|column| (column.name(), column.type_().name())).collect();
    assert_eq!((columns, execute.params().len()), (vec![("words", "text")], 0));
    let rows = client.query(&execute, &[]).await.expect("run");
    assert_eq!(rows.iter().map(|row| row.get::<_, &str>(0)).collect::<Vec<_>>(), ["two"]);
    assert_eq!(code(client.batch_execute("PREPARE p AS SELECT 1").await), "42P05");
    assert_eq!(code(client.batch_execute("PREPARE q AS PREPARE r AS SELECT 1").await), "42601");
    assert_eq!(code(client.batch_execute("EXECUTE p").await), "42601");
    // What has failed stays so, whatever it names.
    for sql in ["EXECUTE p (1)", "EXECUTE nosuch", "PREPARE p AS SELECT 1", "PREPARE q AS SELECT 1"] {
        assert_eq!(code(client.batch_execute("BEGIN; SELECT 1 / 0").await), "22012");
        assert_eq!(code(client.batch_execute(sql).await), "25P02", "{sql}");
        client.batch_execute("ROLLBACK").await.expect("ended");
    }
    client.batch_execute("BEGIN; PREPARE w AS INSERT INTO t VALUES ($1, 'three'); EXECUTE w (3); ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["2"]);
    client.batch_execute("EXECUTE w (3); DEALLOCATE w").await.expect("the statement outlives the transaction");
    assert_eq!(
        (strings(&client, "EXECUTE p (3)").await, code(client.batch_execute("EXECUTE w (4)").await)),
        (vec!["three".into()], "26000".into())
    );
}
