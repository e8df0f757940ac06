//! EXPLAIN: of every statement that has a plan, and what its options run and show.

use crate::support::{Server, code, strings};
use tokio_postgres::Client;

async fn begun(server: &Server) -> Client {
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int, words text); CREATE INDEX ON t (n); INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')")
        .await
        .expect("created");
    client
}

#[tokio::test]
async fn each_statement_shows_how_its_rows_are_found() {
    let server = Server::start().await;
    let client = begun(&server).await;
    for (statement, plan) in [
        ("SELECT 1", &["Result"][..]),
        ("SELECT * FROM t WHERE id = 1", &["Select from t", "  Rows: keys of the primary key: id = 1"]),
        ("SELECT * FROM t WHERE id IN (1, 2)", &["Select from t", "  Rows: keys of the primary key: id in (1, 2)"]),
        ("SELECT * FROM t", &["Select from t", "  Rows: all rows, by the primary key"]),
        ("SELECT * FROM t WHERE n >= 3 AND n < 9", &["Select from t", "  Rows: range of the index t_n_idx: n >= 3 and < 9"]),
        (
            "SELECT * FROM t WHERE words = 'a'",
            &["Select from t", "  Rows: all rows, by the primary key", "  Filter: what the keys do not say"],
        ),
        ("SELECT * FROM t ORDER BY id DESC LIMIT 1", &["Select from t", "  Rows: all rows, by the primary key, backwards"]),
        ("INSERT INTO t VALUES (3, 30, 'c'), (4, 40, 'd')", &["Insert into t", "  Rows: 2 given"]),
        ("UPDATE t SET n = 0 WHERE id = 1", &["Update t", "  Rows: keys of the primary key: id = 1"]),
        ("DELETE FROM t WHERE n = 10", &["Delete from t", "  Rows: range of the index t_n_idx: n = 10"]),
    ] {
        assert_eq!(strings(&client, &format!("EXPLAIN {statement}")).await, plan, "{statement}");
    }
    let join = strings(&client, "EXPLAIN SELECT * FROM t a JOIN t b ON a.id = b.n WHERE a.id = 2").await;
    assert!(join.iter().any(|line| line.contains("Join")), "{join:?}");
    assert!(join.iter().any(|line| line == "t: keys of the primary key: id = 2"), "{join:?}");
    client
        .batch_execute(
            "CREATE PROCEDURE both(a int) LANGUAGE SQL BEGIN ATOMIC UPDATE t SET n = 1 WHERE id = a; DELETE FROM t WHERE id = a; END",
        )
        .await
        .expect("created");
    let call = [
        "Call both",
        "  Update t",
        "    Rows: keys of the primary key: id = $1",
        "  Delete from t",
        "    Rows: keys of the primary key: id = $1",
    ];
    assert_eq!(strings(&client, "EXPLAIN CALL both(1)").await, call);
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["2"], "nothing was run");
}

#[tokio::test]
async fn analyze_runs_the_statement_and_wan_alone_does_not() {
    let server = Server::start().await;
    let client = begun(&server).await;
    let rehearsed = strings(&client, "EXPLAIN (WAN) UPDATE t SET n = n + 1 WHERE id = 1").await;
    assert_eq!(
        rehearsed,
        [
            "Update t",
            "  Rows: keys of the primary key: id = 1",
            "Trips between regions, from local, by replicated_commit:",
            "  step        rows  bytes  trips  foreseen ms  waits for",
            "  read 1 key     1     22      0          0.0  no other region",
            "  all            1     22      0          0.0",
            "The floor of a commit here: 0.0 ms",
        ]
    );
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 1").await, ["10"]);
    let ran = strings(&client, "EXPLAIN (ANALYZE, WAN) UPDATE t SET n = n + 1 WHERE id = 1").await;
    assert!(ran.iter().any(|line| line.starts_with("  commit ")), "{ran:?}");
    assert!(
        ran.iter().any(|line| line == "Result: UPDATE 1") && ran.last().is_some_and(|line| line.starts_with("Execution Time: ")),
        "{ran:?}"
    );
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 1").await, ["11"]);

    client.batch_execute("BEGIN").await.expect("begun");
    let within = strings(&client, "EXPLAIN ANALYZE DELETE FROM t WHERE id = 1").await;
    assert_eq!(within[..2], ["Delete from t", "  Rows: keys of the primary key: id = 1"]);
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["1"], "the transaction sees what it did");
    let rest = strings(&client, "EXPLAIN (WAN) SELECT * FROM t").await;
    assert!(rest.iter().any(|line| line == "The commit of its transaction: no trip"), "{rest:?}");
    client.batch_execute("ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["2"]);

    let selected = strings(&client, "EXPLAIN (ANALYZE) SELECT * FROM t WHERE n > 0").await;
    assert!(selected.contains(&"Result: SELECT 2".to_owned()), "{selected:?}");
    assert_eq!(strings(&client, "SELECT 1").await, ["1"], "no transaction is left open");
}

#[tokio::test]
async fn parameters_and_the_past_are_explained_too() {
    let server = Server::start().await;
    let client = begun(&server).await;
    let prepared = client.prepare("EXPLAIN (ANALYZE) UPDATE t SET n = $2 WHERE id = $1").await.expect("prepared");
    assert_eq!((prepared.params().len(), prepared.columns()[0].name()), (2, "QUERY PLAN"));
    client.query(&prepared, &[&2_i32, &7_i32]).await.expect("run");
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 2").await, ["7"]);
    let past = strings(&client, "EXPLAIN (WAN) SELECT * FROM t WHERE id = 1 AS OF SYSTEM TIME '-0us'").await;
    assert_eq!(past[..2], ["Select from t", "  Rows: keys of the primary key: id = 1"]);
}

#[tokio::test]
async fn what_cannot_be_explained_is_refused() {
    let server = Server::start().await;
    let client = begun(&server).await;
    for (statement, expected) in [
        ("EXPLAIN (JSON) SELECT 1", "42601"),
        ("EXPLAIN (WAN maybe) SELECT 1", "42601"),
        ("EXPLAIN (FORMAT json) SELECT 1", "0A000"),
        ("EXPLAIN CREATE TABLE u (id int PRIMARY KEY)", "0A000"),
        ("EXPLAIN (ANALYZE) INSERT INTO t VALUES (1, 1, 'taken')", "23505"),
        ("EXPLAIN SELECT * FROM nowhere", "42P01"),
    ] {
        assert_eq!(code(client.batch_execute(statement).await), expected, "{statement}");
    }
    let off = strings(&client, "EXPLAIN (ANALYZE off, VERBOSE, COSTS off, FORMAT text) DELETE FROM t WHERE id = 1").await;
    assert_eq!(off, ["Delete from t", "  Rows: keys of the primary key: id = 1"]);
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["2"]);
    client.batch_execute("SET default_transaction_read_only = on").await.expect("set");
    assert_eq!(code(client.batch_execute("EXPLAIN (ANALYZE) DELETE FROM t").await), "25006");
}
