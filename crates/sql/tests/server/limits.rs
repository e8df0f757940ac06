//! How much a client may ask for: columns, parameters, memory.

use crate::support::{Server, Wire, code, field_of, state_of, strings};
use rhumb_sql::server::ServerOptions;

/// The number of columns that the first message of this type counts.
fn count_in(messages: &[(u8, Vec<u8>)], kind: u8) -> Option<i16> {
    let (_, body) = messages.iter().find(|(found, _)| *found == kind)?;
    Some(i16::from_be_bytes([body[0], body[1]]))
}

#[tokio::test]
async fn a_result_has_as_many_columns_as_its_client_can_be_told_of() {
    let server = Server::start().await;
    let mut wire = Wire::open(&server).await;
    let ones = |columns: usize| vec!["1"; columns].join(",");
    let most = wire.query(&format!("SELECT {}", ones(1_664))).await;
    assert_eq!((count_in(&most, b'T'), count_in(&most, b'D')), (Some(1_664), Some(1_664)));

    wire.query("CREATE TABLE t (id int PRIMARY KEY)").await;
    // 70,000 as 16 bits are 4,464.
    for columns in [1_665, 32_768, 70_000] {
        for sql in [
            format!("SELECT {}", ones(columns)),
            format!("SELECT {}, acquire('vm', 1)", ones(columns)),
            format!("INSERT INTO t VALUES (1) RETURNING {}", ones(columns)),
        ] {
            let shown = &sql[..40];
            let answer = wire.query(&sql).await;
            assert_eq!((state_of(&answer).as_deref(), count_in(&answer, b'T')), (Some("54011"), None), "{shown} with {columns}");
            wire.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat()).await;
            wire.send(b'S', b"").await;
            assert_eq!(state_of(&wire.until_ready().await).as_deref(), Some("54011"), "{shown} with {columns}, prepared");
        }
    }
    let client = server.connect().await;
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(server.quotas.operations(), 0);
}

#[tokio::test]
async fn a_table_has_at_most_1600_columns_and_a_join_of_two_such_cannot_be_shown_whole() {
    let server = Server::start().await;
    let client = server.connect().await;
    let table = |name: &str, columns: usize| {
        let columns: Vec<String> = (0..columns).map(|column| format!("{name}{column} int")).collect();
        format!("CREATE TABLE {name} ({})", columns.join(","))
    };
    assert_eq!(code(client.batch_execute(&table("a", 1_601)).await), "54011");
    client.batch_execute(&table("a", 1_600)).await.expect("created");
    client.batch_execute(&table("b", 65)).await.expect("created");
    assert_eq!(client.prepare("SELECT * FROM a").await.expect("prepared").columns().len(), 1_600);
    assert_eq!(code(client.batch_execute("SELECT * FROM a, b").await), "54011");
    assert_eq!(strings(&client, "SELECT count(*) FROM a, b").await, ["0"]);
    let named = vec!["b0"; 40_000].join(",");
    assert_eq!(code(client.batch_execute(&format!("COPY b ({named}) FROM STDIN")).await), "42701");
}

#[tokio::test]
async fn a_statement_has_as_many_parameters_as_the_wire_can_count() {
    let server = Server::start().await;
    let mut wire = Wire::open(&server).await;
    wire.send(b'P', b"\0SELECT $65535::int4\0\0\0").await;
    wire.send(b'D', b"S\0").await;
    let nulls = [&b"\0\0\0\0\xff\xff"[..], &b"\xff\xff\xff\xff".repeat(65_535 - 1), b"\0\0\0\x017\0\0"].concat();
    wire.send(b'B', &nulls).await;
    wire.send(b'E', b"\0\0\0\0\0").await;
    wire.send(b'S', b"").await;
    let answer = wire.until_ready().await;
    assert_eq!(state_of(&answer), None);
    assert_eq!(count_in(&answer, b't'), Some(-1), "65,535 in 16 bits");
    assert_eq!(answer.iter().find(|(kind, _)| *kind == b'D').expect("a row").1, b"\0\x01\0\0\0\x017");
    for (sql, state) in [("SELECT $65536::int4", "54023"), ("SELECT $0::int4", "42P02")] {
        assert_eq!(state_of(&wire.query(sql).await).as_deref(), Some(state), "{sql}");
    }
}

#[tokio::test]
async fn a_text_that_would_be_too_large_is_refused_before_it_is_made() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text)").await.expect("created");
    let rows: Vec<String> = (0..1_000).map(|id| format!("({id}, 'x')")).collect();
    client.batch_execute(&format!("INSERT INTO t VALUES {}", rows.join(","))).await.expect("inserted");
    let mut doubled = "(SELECT repeat('x', 1000000) AS x) AS t0".to_string();
    for level in 1..=8 {
        doubled = format!("(SELECT x || x AS x FROM {doubled}) AS t{level}");
    }
    let doubled = format!("SELECT length(x) FROM {doubled}");
    let mut otherwise = Vec::new();
    for sql in [
        "SELECT repeat('x', 67108865)",
        "SELECT repeat('abc', 9223372036854775807)",
        "SELECT lpad('x', 100000000)",
        "SELECT rpad('x', 2147483647, 'ab')",
        "SELECT length(repeat('x', 40000000) || repeat('y', 40000000))",
        "SELECT concat(repeat('x', 40000000), repeat('y', 40000000))",
        "SELECT concat_ws(repeat(',', 40000000), 'a', 'b', 'c')",
        "SELECT overlay(repeat('x', 40000000) placing repeat('x', 40000000) from 1 for 0)",
        "SELECT replace(repeat('a', 100000), 'a', repeat('b', 1000))",
        "SELECT regexp_replace(repeat('a', 100000), 'a', repeat('b', 1000), 'g')",
        "SELECT repeat(name, 100000000) FROM t",
        "SELECT sum(length(repeat(name, id * 1000))) FROM t",
        "SELECT name FROM t WHERE length(repeat(name, 1000000)) > id",
        "UPDATE t SET name = repeat('x', 100000000)",
        "INSERT INTO t VALUES (1000, repeat('x', 100000000))",
        "INSERT INTO t VALUES (1000, 'y') RETURNING repeat(name, 100000000)",
        &doubled,
    ] {
        let error =
            client.batch_execute(sql).await.err().and_then(|error| error.as_db_error().map(|error| error.code().code().to_string()));
        if error.as_deref() != Some("54000") {
            otherwise.push((sql, error));
        }
    }
    assert_eq!(otherwise, []);
    let statement = client.prepare("SELECT repeat($1, $2::bigint)").await.expect("prepared");
    assert_eq!(code(client.query(&statement, &[&"x", &1_000_000_000i64]).await), "54000");
    assert_eq!(strings(&client, "SELECT count(*), max(length(name)) FROM t").await, ["1000", "1"]);
}

#[tokio::test]
async fn a_text_within_the_bound_is_made_as_ever() {
    let server = Server::start().await;
    let client = server.connect().await;
    assert_eq!(strings(&client, "SELECT length(repeat('x', 67108864))").await, ["67108864"]);
    let sql = "SELECT lpad('7', 3, '0'), rpad('a', 3), repeat('ab', -1), 'a' || NULL, 'a' || 1, concat('a', NULL, 1), concat_ws('-', 'a', NULL, 'b')";
    assert_eq!(strings(&client, sql).await, ["007", "a  ", "", "NULL", "a1", "a1", "a-b"]);
    let sql = "SELECT replace('abc', '', 'x'), replace('aaa', 'a', 'bb'), regexp_replace('abc', '(b)', '<\\1>'), overlay('abc' placing 'X' from 2)";
    assert_eq!(strings(&client, sql).await, ["abc", "bbbbbb", "a<b>c", "aXc"]);
    let statement = client.prepare("SELECT $1 || 'x', repeat('a', $2::bigint)").await.expect("prepared");
    let row = client.query_one(&statement, &[&"w", &2i64]).await.expect("a row");
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("wx", "aa"));

    // A thousand rows of which each might become two megabytes, and does not.
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text)").await.expect("created");
    let rows: Vec<String> = (0..300).map(|id| format!("({id}, '{}{id}')", "x".repeat(1_000))).collect();
    client.batch_execute(&format!("INSERT INTO t VALUES {}", rows.join(","))).await.expect("inserted");
    let replaced = "SELECT count(*), count(DISTINCT r), min(length(r)) FROM (SELECT regexp_replace(name, 'y', repeat('z', 2000), 'g') AS r FROM t) AS s";
    assert_eq!(strings(&client, replaced).await, ["300", "300", "1001"]);
    let grouped = "SELECT name || '!', count(*) FROM t WHERE id < 2 GROUP BY name || '!' ORDER BY name || '!' LIMIT 1";
    assert_eq!(strings(&client, grouped).await[1], "1");
}

#[tokio::test]
async fn the_functions_of_one_statement_share_what_they_may_make() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text); INSERT INTO t VALUES (1, 'x')").await.expect("created");
    let made = |text: &str, calls: usize| vec![format!("length(repeat({text}, 60000000))"); calls].join(", ");
    for (text, from) in [("'x'", ""), ("name", " FROM t"), ("name", " FROM t GROUP BY id, name")] {
        let few = format!("SELECT {}{from}", made(text, 4));
        assert_eq!(strings(&client, &few).await, ["60000000"; 4], "{few}");
        let many = format!("SELECT {}{from}", made(text, 5));
        assert_eq!(code(client.batch_execute(&many).await), "54000", "{many}");
    }
    let update = format!("UPDATE t SET id = 1 WHERE 0 < {}", made("name", 5).replace(", length", " + length"));
    assert_eq!(code(client.batch_execute(&update).await), "54000");
}

#[tokio::test]
async fn a_result_that_shows_one_large_value_in_many_columns_is_refused() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text)").await.expect("created");
    client.batch_execute("INSERT INTO t VALUES (1, repeat('x', 1000000))").await.expect("inserted");
    let columns = |name: &str| vec![name; 70].join(", ");
    for sql in [
        format!("SELECT {} FROM t", columns("name")),
        format!("SELECT {} FROM (SELECT repeat('y', 1000000) AS name) AS made", columns("name")),
        format!("UPDATE t SET id = 2 RETURNING {}", columns("name")),
        format!("SELECT {} FROM t AS a, t AS b", columns("a.name")),
    ] {
        assert_eq!(code(client.batch_execute(&sql).await), "54000", "{sql}");
    }
    // Rows that fit by themselves are told in as many pages as it takes.
    let wide =
        "SELECT a.name, b.name FROM t AS a CROSS JOIN t AS b CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS n(i)";
    let wide = format!("{wide}, (VALUES (1), (2), (3), (4), (5)) AS m(i)");
    assert_eq!(strings(&client, &wide).await.len(), 90);
}

/// A server with `docs (id int primary key, body text)`, so many rows of a mebibyte.
async fn documents(count: usize) -> Server {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE docs (id int PRIMARY KEY, body text)").await.expect("created");
    for id in 0..count {
        client.batch_execute(&format!("INSERT INTO docs VALUES ({id}, repeat('x', 1048576))")).await.expect("inserted");
    }
    server
}

#[tokio::test]
async fn rows_that_are_read_at_once_are_shown_in_as_many_parts_as_it_takes() {
    let server = documents(100).await;
    let client = server.connect().await;
    let ids = (0..100).map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
    for (sql, rows) in [
        (format!("SELECT * FROM docs WHERE id IN ({ids})"), 100),
        ("SELECT body, body, body, body, body FROM docs".into(), 100),
        ("SELECT coalesce(body, ''), coalesce(body, 'none'), upper(body), lower(body), body || 'x' FROM docs WHERE id < 30".into(), 30),
        (format!("SELECT id, '{}' FROM docs", "y".repeat(1_000_000)), 100),
        ("SELECT repeat(body, 3) FROM docs OFFSET 3 LIMIT 40".into(), 40),
        // Only a single row may be too large.
        ("SELECT repeat(body, 40) FROM docs WHERE id < 3".into(), 3),
    ] {
        let mut wire = Wire::open(&server).await;
        let answer = wire.query(&sql).await;
        let shown = &sql[..sql.len().min(80)];
        assert_eq!((state_of(&answer), answer.iter().filter(|(kind, _)| *kind == b'D').count()), (None, rows), "{shown}");
    }
    let many = vec!["body"; 65].join(", ");
    assert_eq!(code(client.batch_execute(&format!("SELECT {many} FROM docs")).await), "54000");
}

#[tokio::test]
async fn what_a_suspended_portal_holds_is_charged() {
    let server = documents(6).await;
    for sql in ["SELECT id, body FROM docs", "SELECT id, body FROM (SELECT * FROM docs) AS d"] {
        let mut wire = Wire::open(&server).await;
        wire.query("BEGIN").await;
        wire.send(b'P', &[b"p\0", sql.as_bytes(), b"\0\0\0"].concat()).await;
        let mut suspended = 0;
        // Each holds three mebibytes at the least once one row was sent, of sixteen.
        let refused = loop {
            let name = format!("c{suspended}\0");
            wire.send(b'B', &[name.as_bytes(), b"p\0\0\0\0\0\0\0"].concat()).await;
            wire.send(b'E', &[name.as_bytes(), &1u32.to_be_bytes()].concat()).await;
            wire.send(b'S', b"").await;
            let answer = wire.until_ready().await;
            if let Some(state) = state_of(&answer) {
                break state;
            }
            assert!(answer.iter().any(|(kind, _)| *kind == b's'), "{sql}: suspended");
            suspended += 1;
        };
        assert_eq!((refused.as_str(), (1..=5).contains(&suspended)), ("53200", true), "{sql}: {suspended}");
    }
}

#[tokio::test]
async fn a_client_that_fetches_row_by_row_reads_any_number_of_large_rows() {
    let server = documents(40).await;
    let mut client = server.connect().await;
    let txn = client.transaction().await.expect("begun");
    for sql in
        ["SELECT id, body FROM docs", "SELECT id, body FROM docs ORDER BY body, id", "SELECT id, body FROM (SELECT * FROM docs) AS d"]
    {
        let portal = txn.bind(sql, &[]).await.expect("bound");
        for _ in 0..40 {
            let rows = txn.query_portal(&portal, 1).await.expect("what waits is within what a connection may hold");
            assert_eq!(rows.len(), 1, "{sql}");
        }
        assert!(txn.query_portal(&portal, 1).await.expect("the end").is_empty(), "{sql}");
    }
}

#[tokio::test]
async fn a_statement_that_writes_stops_reading_when_it_has_more_than_a_transaction_may_write() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text); CREATE TABLE u (id int PRIMARY KEY)").await.expect("created");
    let rows: Vec<String> = (0..1_000).map(|id| format!("({id})")).collect();
    client.batch_execute(&format!("INSERT INTO t VALUES {}", rows.join(","))).await.expect("inserted");
    client.batch_execute("INSERT INTO u SELECT id FROM t WHERE id < 400").await.expect("inserted");
    let error = client.batch_execute("INSERT INTO t SELECT a.id * 1000 + b.id FROM u AS a, u AS b").await;
    let error = error.expect_err("too many rows").as_db_error().expect("an error of the server").clone();
    assert_eq!(error.code().code(), "54000");
    assert!(error.message().contains("writes more than 100000 rows"), "{}", error.message());
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["1000"]);
}

/// Prepares a statement of `bytes` bytes; the SQLSTATE and the message of the error, if there is one.
async fn prepare(wire: &mut Wire, name: &str, bytes: usize) -> Option<(String, String)> {
    let sql = format!("SELECT '{}'", "x".repeat(bytes - 9));
    wire.send(b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"].concat()).await;
    wire.send(b'S', b"").await;
    let answer = wire.until_ready().await;
    let (_, body) = answer.iter().find(|(kind, _)| *kind == b'E')?;
    Some((field_of(body, b'C').expect("a state"), field_of(body, b'M').expect("a message")))
}

async fn close(wire: &mut Wire, name: &str) {
    wire.send(b'C', &[b"S", name.as_bytes(), b"\0"].concat()).await;
    wire.send(b'S', b"").await;
    assert_eq!(state_of(&wire.until_ready().await), None);
}

#[tokio::test]
async fn what_a_connection_prepares_and_binds_is_bounded_in_bytes() {
    let server = Server::start().await;
    let mut wire = Wire::open(&server).await;
    // Each counts a little more than a mebibyte, of 16.
    let mut kept = 0;
    let refused = loop {
        match prepare(&mut wire, &format!("s{kept}"), 32 << 10).await {
            Some(refused) => break refused,
            None => kept += 1,
        }
    };
    assert_eq!((kept, refused.0.as_str()), (15, "53200"));
    assert!(refused.1.contains("of a connection"), "{}", refused.1);
    // A long text may be run once, again and again, and what was closed makes room.
    for _ in 0..20 {
        assert_eq!(prepare(&mut wire, "", 1 << 20).await, None);
    }
    close(&mut wire, "s3").await;
    assert_eq!(prepare(&mut wire, "another", 32 << 10).await, None);
    assert_eq!(prepare(&mut wire, "one too many", 32 << 10).await.map(|(state, _)| state).as_deref(), Some("53200"));
    assert_eq!(state_of(&wire.query("DEALLOCATE ALL").await), None);
    assert_eq!(prepare(&mut wire, "s0", 32 << 10).await, None);

    // Portals: four of four mebibytes each and what they take besides are too many.
    wire.query("BEGIN").await;
    wire.send(b'P', b"p\0SELECT length($1::text)\0\0\0").await;
    let four = "x".repeat(4 << 20);
    for portal in 0..4 {
        let name = format!("p{portal}\0p\0\0\0\0\x01");
        let length = (four.len() as u32).to_be_bytes();
        wire.send(b'B', &[name.as_bytes(), &length, four.as_bytes(), b"\0\0"].concat()).await;
    }
    wire.send(b'S', b"").await;
    let answer = wire.until_ready().await;
    assert_eq!((answer.iter().filter(|(kind, _)| *kind == b'2').count(), state_of(&answer).as_deref()), (3, Some("53200")));
    wire.query("ROLLBACK").await;
    assert_eq!(prepare(&mut wire, "s1", 32 << 10).await, None, "the portals ended with their transaction");
}

#[tokio::test]
async fn what_all_connections_of_a_site_prepare_is_bounded_in_bytes() {
    let server = Server::start_with(ServerOptions { statement_bytes_max: 20 << 20, ..ServerOptions::default() }).await;
    let (mut one, mut two) = (Wire::open(&server).await, Wire::open(&server).await);
    for name in 0..12 {
        assert_eq!(prepare(&mut one, &format!("s{name}"), 32 << 10).await, None);
    }
    let mut kept = 0;
    let refused = loop {
        match prepare(&mut two, &format!("s{kept}"), 32 << 10).await {
            Some(refused) => break refused,
            None => kept += 1,
        }
    };
    assert_eq!((kept, refused.0.as_str()), (7, "53200"));
    assert!(refused.1.contains("of this site"), "{}", refused.1);
    drop(one);
    // The server notices by and by.
    while prepare(&mut two, "", 200 << 10).await.is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
