//! SET, SHOW, RESET and what sessions say of themselves.

use crate::support::{Server, Wire, code, field_of, state_of, strings};
use rhumb_commit::transaction::CommitOptions;
use rhumb_sql::server::ServerOptions;
use rhumb_sqltestkit::LocalGateway;
use std::time::Duration;
use tokio_postgres::Client;

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
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["5s"]);
    client.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["0"]);
    client.batch_execute("BEGIN; SET statement_timeout = 7; ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["0"]);
}

#[tokio::test]
async fn what_was_set_beside_a_statement_that_failed_is_undone() {
    let server = Server::start().await;
    let client = server.connect().await;
    assert_eq!(code(client.batch_execute("SET statement_timeout = 7000; SELECT 1 / 0").await), "22012");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["0"]);
    client.batch_execute("SET statement_timeout = 7000; SELECT 1").await.expect("run");
    client.batch_execute("SET statement_timeout = 8000; BEGIN; ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["7s"]);
    client.batch_execute("SET statement_timeout = 8000; BEGIN; COMMIT").await.expect("committed");
    assert_eq!(strings(&client, "SHOW statement_timeout").await, ["8s"]);
}

#[tokio::test]
async fn a_text_that_asks_for_a_setting_is_told_what_it_is_by_then() {
    let server = Server::start().await;
    let client = server.connect().await;
    let asked = "SELECT current_setting('statement_timeout')";
    assert_eq!(strings(&client, asked).await, ["0"]);
    client.batch_execute("SET statement_timeout = 5000").await.expect("set");
    assert_eq!(strings(&client, asked).await, ["5s"]);
}

#[tokio::test]
async fn regions_are_shown() {
    let server = Server::start().await;
    let client = server.connect().await;
    let statement = client.prepare("SHOW REGIONS").await.expect("prepared");
    let names: Vec<_> = statement.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["name", "local", "sites", "reachable", "rtt_ms", "floor_ms", "role", "reads_at", "commits_at"]);
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

#[tokio::test]
async fn a_statement_that_is_canceled_while_it_begins_leaves_the_session_as_it_was() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    client.batch_execute("SET statement_timeout = '50ms'").await.expect("set");
    for sql in ["SELECT n FROM t", "UPDATE t SET n = 2", "BEGIN; SELECT n FROM t", "CREATE TABLE u (id int PRIMARY KEY)"] {
        server.gateway.begin_none(true);
        assert_eq!(code(client.batch_execute(sql).await), "57014", "{sql}");
        server.gateway.begin_none(false);
        client.batch_execute("ROLLBACK").await.expect("ended");
        assert_eq!(strings(&client, "SELECT n FROM t").await, ["1"]);
    }
}

#[tokio::test]
async fn a_statement_that_is_canceled_while_it_waits_for_rows_ends_its_transaction_alone() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    // One that reads rows as they are, and one by way of the query engine.
    for sql in ["SELECT n FROM t", "SELECT sum(n) FROM t"] {
        client.batch_execute("SET statement_timeout = '50ms'; BEGIN").await.expect("begun");
        server.gateway.stand_still(true);
        assert_eq!(code(client.batch_execute(sql).await), "57014", "{sql}");
        server.gateway.stand_still(false);
        assert_eq!(code(client.batch_execute(sql).await), "25P02", "{sql}");
        client.batch_execute("ROLLBACK; SET statement_timeout = 0").await.expect("ended");
        assert_eq!(strings(&client, sql).await, ["1"]);
    }
}

#[tokio::test]
async fn a_commit_is_done_as_the_session_says() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    assert_eq!(server.gateway.committed(), CommitOptions { two_rounds: false, handoff: true });
    client.batch_execute("SET rhumb.commit_rounds = 2; SET rhumb.commit_handoff = off").await.expect("set");
    assert_eq!(strings(&client, "SHOW rhumb.commit_rounds").await, ["2"]);
    let before = server.gateway.trips();
    client.execute("INSERT INTO t VALUES (1)", &[]).await.expect("inserted");
    assert_eq!((server.gateway.trips() - before, server.gateway.committed()), (2, CommitOptions { two_rounds: true, handoff: false }));
    client.batch_execute("BEGIN; SET LOCAL rhumb.commit_rounds = 1; INSERT INTO t VALUES (2); COMMIT").await.expect("committed");
    assert_eq!(server.gateway.committed(), CommitOptions { two_rounds: false, handoff: false });
    assert_eq!(strings(&client, "SHOW rhumb.commit_rounds").await, ["2"]);
    assert_eq!(code(client.batch_execute("SET rhumb.commit_rounds = 3").await), "22023");
    assert_eq!(code(client.batch_execute("SET rhumb.commit_handoff = perhaps").await), "22023");
    assert_eq!(code(client.batch_execute("SET rhumb.read_mode = passive").await), "22023");
}

/// The rounds and the handoff of commits, and how transactions read.
async fn all(client: &Client) -> Vec<String> {
    strings(client, "SHOW rhumb.commit_rounds; SHOW rhumb.commit_handoff; SHOW rhumb.read_mode").await
}

#[tokio::test]
async fn sessions_begin_with_the_settings_of_their_database() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE DATABASE shop").await.expect("created");
    client
        .batch_execute("ALTER DATABASE shop SET rhumb.commit_rounds = 2; ALTER DATABASE shop SET rhumb.read_mode TO 'active'")
        .await
        .expect("altered");
    client.batch_execute("ALTER DATABASE rhumb SET rhumb.commit_handoff = off").await.expect("the one that is always there too");
    assert_eq!(strings(&client, "SHOW rhumb.commit_handoff").await, ["on"], "a session that is there already keeps its settings");
    let shop = server.connect_to("shop").await.expect("connected");
    assert_eq!(all(&shop).await, ["2", "on", "active"]);
    shop.batch_execute("SET rhumb.commit_rounds = 1").await.expect("set");
    assert_eq!(all(&shop).await, ["1", "on", "active"]);
    for reset in ["RESET rhumb.commit_rounds", "RESET ALL", "SET rhumb.commit_rounds TO DEFAULT"] {
        shop.batch_execute(reset).await.expect("reset");
        assert_eq!(all(&shop).await, ["2", "on", "active"], "{reset}");
    }
    assert_eq!(all(&server.connect().await).await, ["1", "off", "default"]);
    let other = Server::over(server.gateway.clone(), ServerOptions::default()).await;
    assert_eq!(all(&other.connect_to("shop").await.expect("connected")).await, ["2", "on", "active"]);

    client.batch_execute("ALTER DATABASE shop RESET rhumb.read_mode").await.expect("altered");
    assert_eq!(all(&server.connect_to("shop").await.expect("connected")).await, ["2", "on", "default"]);
    client.batch_execute("ALTER DATABASE shop RESET ALL").await.expect("altered");
    assert_eq!(all(&server.connect_to("shop").await.expect("connected")).await, ["1", "on", "default"]);
    for (sql, expected) in [
        ("ALTER DATABASE shop SET rhumb.commit_rounds = 3", "22023"),
        ("ALTER DATABASE shop SET server_version = 16", "22023"),
        ("ALTER DATABASE shop SET no_such_setting = 1", "42704"),
        ("ALTER DATABASE shop RESET no_such_setting", "42704"),
        ("ALTER DATABASE nowhere SET rhumb.commit_rounds = 2", "3D000"),
        ("ALTER DATABASE shop SET LOCAL rhumb.commit_rounds = 2", "42601"),
        ("ALTER DATABASE shop SELECT 1", "42601"),
        ("ALTER DATABASE shop", "42601"),
    ] {
        assert_eq!(code(client.batch_execute(sql).await), expected, "{sql}");
    }
}

#[tokio::test]
async fn a_database_that_is_made_anew_has_no_settings_of_the_one_before() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE DATABASE shop; ALTER DATABASE shop SET rhumb.commit_rounds = 2").await.expect("made");
    client.batch_execute("BEGIN; ALTER DATABASE shop SET rhumb.read_mode = locking; ROLLBACK").await.expect("rolled back");
    let rounds = async || {
        let shop = server.connect_to("shop").await.expect("connected");
        [strings(&shop, "SHOW rhumb.commit_rounds").await, strings(&shop, "SHOW rhumb.read_mode").await].concat()
    };
    assert_eq!(rounds().await, ["2", "default"]);
    client.batch_execute("DROP DATABASE shop; CREATE DATABASE shop").await.expect("made anew");
    assert_eq!(rounds().await, ["1", "default"]);
}

#[tokio::test]
async fn a_transaction_that_is_left_open_for_too_long_ends_with_its_session() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let set = "SET idle_in_transaction_session_timeout = '50ms'";
    for begun in ["BEGIN; INSERT INTO t VALUES (1)", "BEGIN; SELECT 1/0"] {
        let mut wire = Wire::open(&server).await;
        wire.query(set).await;
        wire.query(begun).await;
        let (kind, body) = wire.next().await.expect("it is told why");
        assert_eq!(
            (kind, field_of(&body, b'S').as_deref(), field_of(&body, b'C').as_deref()),
            (b'E', Some("FATAL"), Some("25P03")),
            "{begun}"
        );
        assert_eq!(wire.next().await, None, "{begun}");
    }
    // A client may leave its transaction open without BEGIN too.
    let mut wire = Wire::open(&server).await;
    wire.query(set).await;
    for (kind, body) in [(b'P', &b"\0INSERT INTO t VALUES (2)\0\0\0"[..]), (b'B', b"\0\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0"), (b'H', b"")]
    {
        wire.send(kind, body).await;
    }
    assert_eq!(state_of(&wire.until_ready().await).as_deref(), Some("25P03"));
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);

    let patient = server.connect().await;
    patient.batch_execute(set).await.expect("set");
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(strings(&patient, "SELECT 1").await, ["1"], "outside a transaction nobody is in the way of others");
}

#[tokio::test]
async fn a_read_that_waits_for_longer_than_lock_timeout_ends_its_statement() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    client.batch_execute("SET lock_timeout = '40ms'").await.expect("set");
    for sql in ["SELECT n FROM t", "SELECT sum(n) FROM t", "UPDATE t SET n = 2", "SELECT n FROM t FOR UPDATE"] {
        for begun in [false, true] {
            if begun {
                client.batch_execute("BEGIN").await.expect("begun");
            }
            server.gateway.stand_still(true);
            assert_eq!(code(client.batch_execute(sql).await), "55P03", "{sql}, begun: {begun}");
            server.gateway.stand_still(false);
            if begun {
                assert_eq!(code(client.batch_execute(sql).await), "25P02", "{sql}");
                client.batch_execute("ROLLBACK").await.expect("ended");
            }
        }
    }
    // It may change within a transaction, from one statement to the next.
    client.batch_execute("SET lock_timeout = 0; BEGIN; SELECT n FROM t; SET LOCAL lock_timeout = 30").await.expect("begun");
    server.gateway.stand_still(true);
    assert_eq!(code(client.batch_execute("SELECT n FROM t").await), "55P03");
    server.gateway.stand_still(false);
    client.batch_execute("ROLLBACK").await.expect("ended");
    for refused in ["NOWAIT", "SKIP LOCKED"] {
        assert_eq!(code(client.batch_execute(&format!("SELECT n FROM t FOR UPDATE {refused}")).await), "0A000", "{refused}");
    }
    assert_eq!(strings(&client, "SELECT n FROM t").await, ["1"]);
}

#[tokio::test]
async fn the_time_between_two_messages_is_none_of_a_statement() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)").await.expect("created");
    client.batch_execute("SET statement_timeout = '60ms'").await.expect("set");
    let transaction = client.transaction().await.expect("begun");
    let pause = || tokio::time::sleep(Duration::from_millis(90));
    let portal = transaction.bind("SELECT id FROM t", &[]).await.expect("bound");
    pause().await;
    assert_eq!(transaction.query_portal(&portal, 1).await.expect("a row").len(), 1);
    pause().await;
    transaction.prepare("SELECT count(*) FROM t").await.expect("planned in its own time");
    pause().await;
    assert_eq!(transaction.query_portal(&portal, 0).await.expect("rows").len(), 2);
}

/// Sends Parse, Bind and Execute of a statement, for so many rows, and no Sync.
async fn ask_without_sync(wire: &mut Wire, sql: &str, rows_max: u32) {
    wire.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat()).await;
    wire.send(b'B', b"\0\0\0\0\0\0\0\0").await;
    wire.send(b'E', &[&b"\0"[..], &rows_max.to_be_bytes()].concat()).await;
}

#[tokio::test]
async fn a_client_that_falls_silent_in_the_midst_of_a_copy_or_before_sync_is_bounded_as_any_other() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let begun = async || {
        let mut wire = Wire::open(&server).await;
        wire.query("SET idle_in_transaction_session_timeout = '50ms'").await;
        wire.query("BEGIN; INSERT INTO t VALUES (1), (2)").await;
        wire
    };
    let mut copying = begun().await;
    copying.send(b'Q', b"COPY t FROM STDIN\0").await;
    copying.send(b'd', b"3\n").await;
    let mut before_execute = begun().await;
    ask_without_sync(&mut before_execute, "INSERT INTO t VALUES (4)", 0).await;
    let mut after_rows = begun().await;
    ask_without_sync(&mut after_rows, "SELECT id FROM t", 1).await;
    after_rows.send(b'E', b"\0\0\0\0\0").await;
    for (place, wire) in [("COPY", &mut copying), ("Execute", &mut before_execute), ("rows", &mut after_rows)] {
        let answer = wire.until_ready().await;
        let (_, error) = answer.iter().find(|(kind, _)| *kind == b'E').expect(place);
        assert_eq!((field_of(error, b'S').as_deref(), field_of(error, b'C').as_deref()), (Some("FATAL"), Some("25P03")), "{place}");
        assert_eq!(wire.next().await, None, "{place}");
    }
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn a_copy_ends_by_statement_timeout_and_by_a_cancel_request_while_it_waits_for_its_client() {
    for gateway in [LocalGateway::new(), LocalGateway::operating()] {
        let server = Server::over(gateway, ServerOptions::default()).await;
        let mut wire = Wire::open(&server).await;
        wire.query("CREATE TABLE t (id int PRIMARY KEY)").await;
        for timeout in ["40ms", "0"] {
            wire.query(&format!("SET statement_timeout = '{timeout}'")).await;
            wire.send(b'Q', b"COPY t FROM STDIN\0").await;
            assert_eq!(wire.next().await.expect("it begins").0, b'G');
            wire.send(b'd', b"1\n").await;
            if timeout == "0" {
                wire.cancel(&server).await;
            }
            assert_eq!(state_of(&wire.until_ready().await).as_deref(), Some("57014"), "timeout {timeout}");
            // What its client sends before it hears of it is part of no other statement.
            wire.send(b'd', b"2\n").await;
            wire.send(b'c', b"").await;
        }
        let client = server.connect().await;
        assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
    }
}

#[tokio::test]
async fn a_cancel_request_ends_the_wait_for_what_follows_the_rows_of_a_portal() {
    let server = Server::start().await;
    let mut wire = Wire::open(&server).await;
    wire.query("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)").await;
    ask_without_sync(&mut wire, "SELECT id FROM t", 1).await;
    wire.send(b'H', b"").await;
    while wire.next().await.expect("it goes on").0 != b's' {}
    wire.send(b'E', b"\0\0\0\0\0").await;
    wire.cancel(&server).await;
    while wire.next().await.expect("it goes on").0 != b'E' {}
    wire.send(b'S', b"").await;
    assert_eq!(state_of(&wire.until_ready().await), None);
}

#[tokio::test]
async fn what_pools_and_dumps_ask_for_is_taken() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL").await.expect("a pool resets its connection");
    client
        .batch_execute("SET check_function_bodies = false; SET xmloption = content; SET row_security = off; SET jit = off")
        .await
        .expect("set");
    client
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY); VACUUM ANALYZE t; VACUUM (FULL, VERBOSE off) t (id), t; VACUUM; ANALYZE t")
        .await
        .expect("nothing is to be done");
    assert_eq!(strings(&client, "SELECT pg_catalog.set_config('search_path', '', false)").await, [""]);
    assert_eq!(strings(&client, "SHOW search_path").await, [""]);
    client.batch_execute("BEGIN; SELECT set_config('application_name', 'here', true)").await.expect("set");
    assert_eq!(strings(&client, "SHOW application_name").await, ["here"]);
    client.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(strings(&client, "SHOW application_name").await, [""]);
    assert_eq!(code(client.batch_execute("SET synchronous_commit = off").await), "22023");
    assert_eq!(code(client.batch_execute("LISTEN news").await), "0A000");
    assert_eq!(code(client.query("SELECT set_config('jit', $1, false)", &[&"on"]).await), "0A000");
}

#[tokio::test]
async fn what_is_set_for_the_transaction_leaves_what_is_set_for_the_session() {
    let server = Server::start().await;
    let client = server.connect().await;
    let shown = async || strings(&client, "SHOW lock_timeout; SHOW statement_timeout").await;
    client.batch_execute("BEGIN; SET lock_timeout = 5; SAVEPOINT a; SET LOCAL statement_timeout = 6000; RELEASE a").await.expect("set");
    assert_eq!(shown().await, ["5ms", "6s"]);
    client.batch_execute("COMMIT").await.expect("committed");
    assert_eq!(shown().await, ["5ms", "0"]);
    client.batch_execute("BEGIN; SET LOCAL lock_timeout = 7; SET statement_timeout = 8000; ROLLBACK").await.expect("rolled back");
    assert_eq!(shown().await, ["5ms", "0"]);
    client.batch_execute("BEGIN; SET LOCAL lock_timeout = 7; RESET ALL; COMMIT").await.expect("committed");
    assert_eq!(shown().await, ["0", "0"]);
    client.batch_execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY").await.expect("set");
    assert_eq!(code(client.batch_execute("CREATE TABLE t (id int)").await), "25006");
    client.batch_execute("DISCARD ALL; CREATE TABLE t (id int)").await.expect("a pool hands the session on as it was");
}
