//! Quotas: statements about them, acquire() and release(), `rhumb.quotas`.

use crate::support::{Server, code, strings};
use rhumb_commit::transaction::TxnError;
use rhumb_quota::refusal::Refusal;
use rhumb_sql::server::{ServerOptions, serve};
use rhumb_sqltestkit::LocalGateway;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// A server with the quota `vm` of 10 tokens, and a client of it.
async fn with_vm() -> (Server, Client) {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE QUOTA vm LIMIT 10").await.expect("created");
    (server, client)
}

/// The SQLSTATE and the message of a statement that must fail.
async fn refused(client: &Client, sql: &str) -> (String, String) {
    let error = client.batch_execute(sql).await.err().unwrap_or_else(|| panic!("{sql} must fail"));
    let error = error.as_db_error().unwrap_or_else(|| panic!("an error of the server, not {error:?}"));
    (error.code().code().to_string(), error.message().to_string())
}

#[tokio::test]
async fn quotas_are_created_altered_dropped_and_shown() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE QUOTA Org LIMIT 100; CREATE QUOTA IF NOT EXISTS org LIMIT 7").await.expect("created");
    let full = "create quota \"Team/a\" protocol any parent ORG limit 5 offer all reallocation most_satisfied";
    client.batch_execute(full).await.expect("created");
    let rows = ["Team/a", "5", "org", "any", "all", "most-satisfied", "5", "0", "0", "0"];
    assert_eq!(strings(&client, "SHOW QUOTAS").await[..10], rows);
    client.batch_execute("ALTER QUOTA org LIMIT 200; ALTER QUOTA \"Team/a\" SET LIMIT 6").await.expect("altered");
    assert_eq!(strings(&client, "SELECT name, token_limit FROM rhumb.quotas ORDER BY 1 DESC").await, ["org", "200", "Team/a", "6"]);
    assert_eq!(refused(&client, "DROP QUOTA org").await.0, "2BP01");
    client.execute("ALTER QUOTA org LIMIT 0", &[]).await.expect("altered");
    let rows = client.query("SHOW QUOTAS", &[]).await.expect("rows");
    let limits: Vec<(&str, i64)> = rows.iter().map(|row| (row.get("name"), row.get("token_limit"))).collect();
    assert_eq!(limits, [("Team/a", 6), ("org", 0)]);
    client.batch_execute("DROP QUOTA \"Team/a\"; DROP QUOTA org; DROP QUOTA IF EXISTS org").await.expect("dropped");
    assert_eq!(strings(&client, "SHOW QUOTAS").await, Vec::<String>::new());
}

#[tokio::test]
async fn what_cannot_be_a_quota_is_refused() {
    let (_server, client) = with_vm().await;
    let long = "x".repeat(10_000);
    for (sql, state) in [
        ("CREATE QUOTA vm LIMIT 1", "42710"),
        ("CREATE QUOTA a LIMIT 1 PARENT nowhere", "42704"),
        ("CREATE QUOTA a LIMIT -1", "22023"),
        ("CREATE QUOTA a LIMIT 1.5", "22023"),
        ("CREATE QUOTA a LIMIT 9007199254740992", "22023"),
        ("CREATE QUOTA a LIMIT 99999999999999999999999", "22023"),
        ("CREATE QUOTA \"\" LIMIT 1", "22023"),
        ("CREATE QUOTA \"a b\" LIMIT 1", "22023"),
        (&format!("CREATE QUOTA {long} LIMIT 1"), "22023"),
        ("CREATE QUOTA a LIMIT 1 PROTOCOL raft", "22023"),
        ("CREATE QUOTA a LIMIT 1 OFFER some", "22023"),
        ("CREATE QUOTA a LIMIT 1 REALLOCATION first_come", "22023"),
        ("CREATE QUOTA a", "42601"),
        ("CREATE QUOTA a LIMIT many", "42601"),
        ("CREATE QUOTA a LIMIT NULL", "42601"),
        ("CREATE QUOTA a LIMIT 1 LIMIT 2", "42601"),
        ("CREATE QUOTA a LIMIT 1 COLOUR red", "42601"),
        ("CREATE QUOTA", "42601"),
        ("ALTER QUOTA nowhere LIMIT 1", "42704"),
        ("ALTER QUOTA vm LIMIT -1", "22023"),
        ("ALTER QUOTA vm RENAME TO a", "42601"),
        ("DROP QUOTA nowhere", "42704"),
        ("DROP QUOTA vm CASCADE", "42601"),
    ] {
        assert_eq!(refused(&client, sql).await.0, state, "{sql}");
    }
    let (_, message) = refused(&client, "CREATE QUOTA a LIMIT 1 PROTOCOL raft").await;
    assert_eq!(message, "no protocol `raft`; there are majority, any");
    assert_eq!(strings(&client, "SELECT name, token_limit FROM rhumb.quotas").await, ["vm", "10"], "nothing changed");
}

#[tokio::test]
async fn acquire_and_release_say_what_is_left() {
    let (server, client) = with_vm().await;
    assert_eq!(strings(&client, "SELECT acquire('vm', 3)").await, ["7"]);
    assert_eq!(strings(&client, "SELECT release('vm', 1)").await, ["8"]);
    assert_eq!(strings(&client, "SELECT RHUMB.Acquire('vm', 1) AS left, 'x', release('vm', '1'), 1 + 1").await, ["7", "x", "8", "2"]);
    assert_eq!(strings(&client, "SELECT acquire('vm', 2 - 1)").await, ["7"]);
    let row = client.query_one("SELECT acquire('vm', 1), acquire('vm', 1), release('vm', 5)", &[]).await.expect("a row");
    let names: Vec<&str> = row.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["acquire", "acquire", "release"]);
    assert_eq!([0, 1, 2].map(|column| row.get::<_, i64>(column)), [6, 5, 10], "from left to right");
    assert_eq!((server.quotas.held("vm"), server.quotas.operations()), (0, 8));
}

#[tokio::test]
async fn a_request_id_makes_a_retry_harmless() {
    let (server, client) = with_vm().await;
    for _ in 0..3 {
        assert_eq!(strings(&client, "SELECT acquire('vm', 4, 'order-17')").await, ["6"]);
    }
    let uuid = "SELECT acquire('vm', 1, uuid '00112233-4455-6677-8899-aabbccddeeff')";
    assert_eq!([strings(&client, uuid).await, strings(&client, uuid).await], [["5"], ["5"]]);
    assert_eq!(server.quotas.held("vm"), 5);
    let (state, message) = refused(&client, "SELECT release('vm', 4, 'order-17')").await;
    assert_eq!((state.as_str(), message.as_str()), ("22023", "the request id order-17 was used for another operation"));
}

#[tokio::test]
async fn what_cannot_be_acquired_is_refused_and_nothing_changes() {
    let (server, client) = with_vm().await;
    client.batch_execute("SELECT acquire('vm', 2)").await.expect("acquired");
    let (long, id) = ("x".repeat(10_000), "x".repeat(129));
    for (call, state) in [
        ("acquire('vm', 9)", "53400"),
        ("acquire('vm', 0)", "22023"),
        ("acquire('vm', -1)", "22023"),
        ("acquire('vm', 1.5)", "22023"),
        ("acquire('vm', 'one')", "22023"),
        ("acquire('vm', true)", "22023"),
        ("acquire('vm', 9007199254740992)", "22023"),
        ("acquire('vm', 9223372036854775808)", "22023"),
        ("acquire('vm', 99999999999999999999999999)", "22023"),
        ("acquire('vm', NULL)", "22004"),
        ("acquire(NULL, 1)", "22004"),
        ("acquire('vm', 1, NULL)", "22004"),
        ("acquire('', 1)", "22023"),
        ("acquire('v m', 1)", "22023"),
        (&format!("acquire('{long}', 1)"), "22023"),
        ("acquire('vm', 1, '')", "22023"),
        (&format!("acquire('vm', 1, '{id}')"), "22023"),
        ("acquire('VM', 1)", "42704"),
        ("acquire('nowhere', 1)", "42704"),
        ("release('vm', 3)", "55000"),
        ("release('nowhere', 1)", "42704"),
        ("release('vm', -1)", "22023"),
        ("acquire('vm', 1/0)", "22012"),
        ("acquire('vm', no_such_column)", "42703"),
        ("acquire('vm')", "42883"),
        ("acquire()", "42883"),
        ("acquire('vm', 1, 'a', 'b')", "42883"),
        ("acquire(quota => 'vm', amount => 1)", "42883"),
        ("acquire(DISTINCT 'vm', 1)", "42883"),
        ("acquire('vm', 1) OVER ()", "42883"),
    ] {
        assert_eq!(refused(&client, &format!("SELECT {call}")).await.0, state, "{call}");
        assert_eq!(refused(&client, &format!("SELECT release('vm', 1), acquire('vm', 1), {call}")).await.0, state, "{call}");
        // Only the cluster can tell that there is no such quota or not so many tokens: by then the calls before are done.
        let held = server.quotas.held("vm");
        assert_eq!(held, 2, "{call}");
    }
    assert_eq!(strings(&client, "SELECT tokens_left, held FROM rhumb.quotas").await, ["8", "2"]);
}

#[tokio::test]
async fn the_calls_before_a_refused_one_are_done_and_that_is_said() {
    let (server, client) = with_vm().await;
    let error = client.simple_query("SELECT acquire('vm', 1), acquire('vm', 2), acquire('vm', 8), acquire('vm', 1)").await;
    let error = error.expect_err("only 7 are left");
    let error = error.as_db_error().expect("an error of the server");
    assert_eq!((error.code().code(), error.message()), ("53400", "the limit of quota vm does not allow 8 more"));
    assert_eq!(error.detail(), Some("The 2 calls before it in the same statement were done: acquire('vm', 1), acquire('vm', 2)."));
    assert_eq!(error.hint(), Some("Acquire fewer, wait until others release, or raise the limit with ALTER QUOTA."));
    assert_eq!((server.quotas.held("vm"), server.quotas.operations()), (3, 3));
    // A call without sense is found before any of them is made.
    assert_eq!(refused(&client, "SELECT acquire('vm', 1), acquire('vm', 0)").await.0, "22023");
    assert_eq!(server.quotas.operations(), 3);
}

#[tokio::test]
async fn a_call_where_it_might_not_run_once_is_refused() {
    let (server, client) = with_vm().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    let mut otherwise = Vec::new();
    for sql in [
        "SELECT acquire('vm', n) FROM t",
        "SELECT n FROM t WHERE acquire('vm', 1) > 0",
        "SELECT 1 WHERE acquire('vm', 1) > 0",
        "SELECT acquire('vm', 1) WHERE false",
        "SELECT acquire('vm', 1) LIMIT 0",
        "SELECT DISTINCT acquire('vm', 1)",
        "SELECT acquire('vm', 1) ORDER BY 1",
        "SELECT acquire('vm', 1) AS a FOR UPDATE",
        "SELECT acquire('vm', 1) UNION ALL SELECT 1",
        "SELECT (SELECT acquire('vm', 1))",
        "WITH a AS (SELECT acquire('vm', 1)) SELECT 1",
        "VALUES (acquire('vm', 1))",
        "SELECT * FROM acquire('vm', 1)",
        "SELECT CASE WHEN false THEN acquire('vm', 1) END",
        "SELECT coalesce(1, acquire('vm', 1))",
        "SELECT false AND acquire('vm', 1) > 0",
        "SELECT TRY_CAST(acquire('vm', 1) AS text)",
        "SELECT count(acquire('vm', 1))",
        "SELECT acquire('vm', acquire('vm', 1))",
        "SELECT acquire('vm', 1)::int2",
        "SELECT acquire('vm', 1)::bigint",
        "SELECT CAST(acquire('vm', 1) AS text)",
        "SELECT (acquire('vm', 1))",
        "SELECT -acquire('vm', 1)",
        "SELECT acquire('vm', 1) + 1",
        "SELECT acquire('vm', 1) || 'x'",
        "SELECT acquire('vm', 1) > 0 AS some",
        "SELECT acquire('vm', 1), release('vm', 1) / 0",
        "INSERT INTO t SELECT acquire('vm', 1), 1",
        "INSERT INTO t WITH a AS (SELECT acquire('vm', 1) AS n) SELECT n, n FROM a",
        "EXPLAIN SELECT acquire('vm', 1)",
        "INSERT INTO t VALUES (2, acquire('vm', 1))",
        "INSERT INTO t VALUES (2, 2) RETURNING acquire('vm', 1)",
        "UPDATE t SET n = acquire('vm', 1)",
        "DELETE FROM t WHERE id = acquire('vm', 1)",
        "CREATE TABLE u (id int PRIMARY KEY, n int DEFAULT acquire('vm', 1))",
    ] {
        let (state, message) = refused(&client, sql).await;
        if state != "0A000" {
            otherwise.push((sql, state, message));
        }
    }
    assert_eq!(otherwise, []);
    assert_eq!(refused(&client, "SELECT count(*), acquire('vm', 1)").await.0, "42803");
    assert_eq!(refused(&client, "SELECT acquire('vm', 1) AS OF SYSTEM TIME '-1s'").await.0, "42601");
    assert_eq!(refused(&client, "SELECT *, acquire('vm', 1)").await.0, "42601");
    for sql in ["SELECT acquire('vm', 1)::int2", "INSERT INTO t SELECT acquire($1, 1), 1", "SELECT acquire('vm', $1) + 1"] {
        assert_eq!(code(client.prepare(sql).await), "0A000", "{sql}");
    }
    assert_eq!(server.quotas.operations(), 0);
    assert_eq!(strings(&client, "SELECT 'acquire(1)', acquire FROM (SELECT 1 AS acquire) AS release").await, ["acquire(1)", "1"]);
}

#[tokio::test]
async fn parameters_have_the_types_of_the_arguments_and_nothing_runs_before_it_is_executed() {
    let (server, client) = with_vm().await;
    let statement = client.prepare("SELECT acquire($1, $2, $3) AS left, 10 / $4 AS other").await.expect("prepared");
    assert_eq!(statement.params(), [Type::TEXT, Type::INT8, Type::TEXT, Type::INT4]);
    let columns: Vec<_> = statement.columns().iter().map(|column| (column.name(), column.type_().clone())).collect();
    assert_eq!(columns, [("left", Type::INT8), ("other", Type::INT4)]);
    assert_eq!(server.quotas.operations(), 0);
    for (amount, id, left) in [(2i64, "a", 8i64), (3, "b", 5), (3, "b", 5)] {
        let row = client.query_one(&statement, &[&"vm", &amount, &id, &5i32]).await.expect("a row");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i32>(1)), (left, 2));
    }
    let before = server.quotas.operations();
    assert_eq!(code(client.query(&statement, &[&"vm", &1i64, &"c", &0i32]).await), "22012");
    assert_eq!(server.quotas.operations(), before, "what fails beside a call fails before it");
    for bad in [0i64, -1, i64::MIN, i64::MAX] {
        assert_eq!(code(client.query(&statement, &[&"vm", &bad, &"c", &1i32]).await), "22023", "{bad}");
    }
    assert_eq!(code(client.query(&statement, &[&"vm", &None::<i64>, &"c", &0i32]).await), "22004");
    assert_eq!((server.quotas.held("vm"), server.quotas.operations()), (5, 3));
    let narrow = client.prepare_typed("SELECT release('vm', $1)", &[Type::INT2]).await.expect("prepared");
    assert_eq!(client.query_one(&narrow, &[&5i16]).await.expect("a row").get::<_, i64>(0), 10);
}

#[tokio::test]
async fn tokens_stay_whatever_becomes_of_the_transaction() {
    let (server, mut client) = with_vm().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let transaction = client.transaction().await.expect("begun");
    transaction.query_one("SELECT acquire('vm', 1)", &[]).await.expect("acquired");
    transaction.execute("INSERT INTO t VALUES (1)", &[]).await.expect("inserted");
    transaction.rollback().await.expect("rolled back");
    assert_eq!(server.quotas.held("vm"), 1);

    server.gateway.fail_commits([TxnError::Conflict("another transaction was in the way".into())]);
    assert_eq!(code(client.batch_execute("BEGIN; INSERT INTO t VALUES (1); SELECT acquire('vm', 1); COMMIT").await), "40001");
    assert_eq!(server.quotas.held("vm"), 2);

    // A refusal is an error, and so ends the transaction around it.
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("begun");
    assert_eq!(refused(&client, "SELECT acquire('vm', 100)").await.0, "53400");
    assert_eq!(refused(&client, "SELECT acquire('vm', 1)").await.0, "25P02");
    client.batch_execute("ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);

    for (sql, state) in [("CREATE QUOTA a LIMIT 1", "25001"), ("ALTER QUOTA vm LIMIT 1", "25001"), ("DROP QUOTA vm", "25001")] {
        client.batch_execute("BEGIN").await.expect("begun");
        assert_eq!(refused(&client, sql).await.0, state, "{sql}");
        client.batch_execute("ROLLBACK").await.expect("rolled back");
    }
    for sql in ["SELECT acquire('vm', 1)", "SELECT release('vm', 1)", "CREATE QUOTA a LIMIT 1", "DROP QUOTA vm"] {
        client.batch_execute("BEGIN READ ONLY").await.expect("begun");
        assert_eq!(refused(&client, sql).await.0, "25006", "{sql}");
        client.batch_execute("ROLLBACK; SET default_transaction_read_only = on").await.expect("set");
        assert_eq!(refused(&client, sql).await.0, "25006", "{sql}");
        client.batch_execute("RESET default_transaction_read_only").await.expect("reset");
    }
    assert_eq!(server.quotas.held("vm"), 2);
}

#[tokio::test]
async fn no_call_is_made_twice_when_statements_are_run_again() {
    let (server, client) = with_vm().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    let conflicts = || (0..3).map(|_| TxnError::Conflict("another transaction was in the way".into()));
    // Reads that are not validated lead to statements being run again, in general.
    for mode in ["default", "optimistic", "locking"] {
        client.batch_execute(&format!("SET rhumb.read_mode = '{mode}'")).await.expect("set");
        let before = server.quotas.operations();
        server.gateway.fail_commits(conflicts());
        assert_eq!(strings(&client, "SELECT acquire('vm', 1), acquire('vm', 1)").await, ["9", "8"], "{mode}");
        assert_eq!(client.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await.expect("updated"), 1);
        assert_eq!(strings(&client, "SELECT release('vm', 1), release('vm', 1)").await, ["9", "10"], "{mode}");
        assert_eq!(server.quotas.operations() - before, 4, "{mode}");
        server.gateway.fail_commits(conflicts().take(1));
        let batch = "UPDATE t SET n = 0 WHERE id = 1; SELECT acquire('vm', 1); SELECT release('vm', 1)";
        assert_eq!(code(client.batch_execute(batch).await), "40001", "{mode}");
        assert_eq!(server.quotas.operations() - before, 6, "{mode}");
    }
    let refusals = [Refusal::Unavailable("no majority".into()), Refusal::UnknownOutcome("it was stopped".into())];
    for (refusal, state) in refusals.into_iter().zip(["57P03", "40003"]) {
        let before = server.quotas.operations();
        server.quotas.refuse([refusal]);
        assert_eq!(refused(&client, "SELECT acquire('vm', 1)").await.0, state);
        assert_eq!(server.quotas.operations() - before, 1);
    }
}

#[tokio::test]
async fn the_view_is_a_table_like_any_other() {
    let (_server, client) = with_vm().await;
    client.batch_execute("CREATE QUOTA small LIMIT 3 PARENT vm; SELECT acquire('small', 2)").await.expect("acquired");
    client.batch_execute("CREATE TABLE quotas (name text PRIMARY KEY); INSERT INTO quotas VALUES ('mine')").await.expect("created");
    let row = client.query_one("SELECT * FROM rhumb.quotas WHERE name = $1", &[&"small"]).await.expect("a row");
    let columns: Vec<_> = row.columns().iter().map(|column| (column.name(), column.type_().clone())).collect();
    let expected = [
        ("name", Type::TEXT),
        ("token_limit", Type::INT8),
        ("parent", Type::TEXT),
        ("protocol", Type::TEXT),
        ("offer", Type::TEXT),
        ("reallocation", Type::TEXT),
        ("tokens_left", Type::INT8),
        ("held", Type::INT8),
        ("offered", Type::INT8),
        ("owed", Type::INT8),
    ];
    assert_eq!(columns, expected);
    assert_eq!(row.get::<_, Option<&str>>(2), Some("vm"));
    let qualified = "SELECT quotas.name, q.tokens_left, q.parent FROM rhumb.quotas JOIN rhumb.rhumb.quotas q USING (name) ORDER BY 1";
    assert_eq!(strings(&client, qualified).await, ["small", "1", "vm", "vm", "8", "NULL"]);
    assert_eq!(strings(&client, "SELECT name FROM quotas").await, ["mine"]);
    client.batch_execute("ALTER QUOTA small LIMIT 1").await.expect("altered");
    assert_eq!(strings(&client, "SELECT sum(owed), sum(tokens_left) FROM rhumb.quotas").await, ["1", "8"]);
    for sql in ["INSERT INTO rhumb.quotas VALUES ('x')", "DROP TABLE rhumb.quotas", "SELECT * FROM rhumb.quota"] {
        assert_eq!(refused(&client, sql).await.0, "42P01", "{sql}");
    }
}

#[tokio::test]
async fn a_site_without_quotas_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(serve(listener, Arc::new(LocalGateway::new()), None, ServerOptions::default()));
    let config = format!("host=127.0.0.1 port={port} user=tester dbname=rhumb");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("connected");
    tokio::spawn(connection);
    for sql in ["CREATE QUOTA a LIMIT 1", "SHOW QUOTAS", "SELECT acquire('a', 1)", "SELECT * FROM rhumb.quotas"] {
        assert_eq!(refused(&client, sql).await, ("0A000".into(), "this site serves no quotas".into()), "{sql}");
    }
}

#[tokio::test]
async fn what_fails_beside_a_call_fails_before_any_tokens_are_taken() {
    let (server, client) = with_vm().await;
    for (sql, state) in [
        ("SELECT acquire('vm', 1), 1/0", "22012"),
        ("SELECT 1/0, acquire('vm', 1)", "22012"),
        ("SELECT acquire('vm', 1), 40000::int2", "22003"),
        ("SELECT acquire('vm', 1), 'x'::int", "22P02"),
        ("SELECT acquire('vm', 1), no_such_column", "42703"),
        ("SELECT acquire('vm', 1), acquire('vm', 1/0)", "22012"),
    ] {
        assert_eq!(refused(&client, sql).await.0, state, "{sql}");
        assert_eq!(code(client.query(sql, &[]).await), state, "{sql}");
    }
    assert_eq!((server.quotas.operations(), server.quotas.held("vm")), (0, 0));
}

/// The SQLSTATE, the message and the detail of a statement that must fail.
fn told(result: Result<Vec<SimpleQueryMessage>, Error>) -> (String, String, Option<String>) {
    let error = result.expect_err("the statement must fail");
    let error = error.as_db_error().unwrap_or_else(|| panic!("an error of the server, not {error:?}"));
    (error.code().code().to_string(), error.message().to_string(), error.detail().map(str::to_string))
}

/// Waits until so many requests have come.
async fn asked(server: &Server, requests: u64) {
    while server.quotas.asked() < requests {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_cancel_request_within_a_call_ends_the_statement_before_the_next_and_says_what_was_done() {
    let (server, client) = with_vm().await;
    let cancel = async |requests: u64| {
        asked(&server, requests).await;
        client.cancel_token().cancel_query(NoTls).await.expect("asked to cancel");
        // The statement of another session is answered after the request was read.
        strings(&server.connect().await, "SELECT 1").await;
        server.quotas.hold_up(false);
    };
    server.quotas.hold_up(true);
    let (result, ()) = tokio::join!(client.simple_query("SELECT acquire('vm', 3), acquire('vm', 2), release('vm', 1)"), cancel(1));
    let done = "The call before it in the same statement was done: acquire('vm', 3).";
    assert_eq!(told(result), ("57014".into(), "canceling statement due to user request".into(), Some(done.into())));
    assert_eq!((server.quotas.held("vm"), server.quotas.operations()), (3, 1));

    // After the last call there is nothing to be cancelled, and the answer arrives.
    server.quotas.hold_up(true);
    let (left, ()) = tokio::join!(strings(&client, "SELECT acquire('vm', 1)"), cancel(2));
    assert_eq!(left, ["6"]);
    // The statement that follows in the same text is cancelled instead, the one after that is not.
    server.quotas.hold_up(true);
    let (result, ()) = tokio::join!(client.simple_query("SELECT acquire('vm', 1); SELECT acquire('vm', 1)"), cancel(3));
    assert_eq!(told(result).0, "57014");
    assert_eq!(strings(&client, "SELECT release('vm', 5)").await, ["10"]);
}

#[tokio::test]
async fn a_deadline_within_a_call_ends_the_statement_before_the_next_and_says_what_was_done() {
    let (server, client) = with_vm().await;
    client.batch_execute("SET statement_timeout = '40ms'").await.expect("set");
    let late = async |requests: u64| {
        asked(&server, requests).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
        server.quotas.hold_up(false);
    };
    server.quotas.hold_up(true);
    let (result, ()) = tokio::join!(client.simple_query("SELECT acquire('vm', 3), acquire('vm', 2)"), late(1));
    let done = "The call before it in the same statement was done: acquire('vm', 3).";
    assert_eq!(told(result), ("57014".into(), "canceling statement due to statement timeout".into(), Some(done.into())));
    server.quotas.hold_up(true);
    let (left, ()) = tokio::join!(strings(&client, "SELECT acquire('vm', 1)"), late(2));
    assert_eq!(left, ["6"]);
    assert_eq!((server.quotas.held("vm"), server.quotas.operations()), (4, 2));
}
