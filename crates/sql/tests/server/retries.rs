//! What becomes of commits that do not succeed.

use crate::support::{Server, code, strings};
use rhumb_commit::transaction::TxnError;
use rhumb_sql::server::ServerOptions;

fn conflict() -> TxnError {
    TxnError::Conflict("another transaction was in the way".into())
}

#[tokio::test]
async fn an_autocommit_statement_is_run_again_after_a_conflict() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    server.gateway.fail_commits([conflict(), conflict()]);
    assert_eq!(client.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await.expect("updated"), 1);
    assert_eq!(strings(&client, "SELECT n FROM t").await, ["2"]);
    server.gateway.fail_commits((0..10).map(|_| conflict()));
    assert_eq!(code(client.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await), "40001");
    assert_eq!(strings(&client, "SELECT n FROM t").await, ["2"]);
}

#[tokio::test]
async fn a_failed_commit_of_a_transaction_is_reported_and_not_run_again() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("begun");
    server.gateway.fail_commits([conflict()]);
    assert_eq!(code(client.batch_execute("COMMIT").await), "40001");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
    server.gateway.fail_commits([conflict()]);
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await), "40001");
}

#[tokio::test]
async fn an_unknown_outcome_is_reported_as_unknown_and_never_run_again() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let lost = TxnError::Unknown("the gateway lost its peers".into());
    server.gateway.fail_commits([lost.clone()]);
    assert_eq!(code(client.execute("INSERT INTO t VALUES (1)", &[]).await), "40003");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("begun");
    server.gateway.fail_commits([lost]);
    assert_eq!(code(client.batch_execute("COMMIT").await), "40003");
}

#[tokio::test]
async fn point_statements_need_one_round_of_reads() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    let point = client.prepare("UPDATE t SET n = n + 1 WHERE id = $1").await.expect("prepared");
    client.execute(&point, &[&1i32]).await.expect("updated");
    let before = server.gateway.rounds();
    client.execute(&point, &[&1i32]).await.expect("updated");
    assert_eq!(server.gateway.rounds() - before, 1);
}

#[tokio::test]
async fn the_first_write_to_a_table_takes_one_trip_at_every_gateway() {
    let server = Server::start().await;
    let maker = server.connect().await;
    maker.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int)").await.expect("created");
    let trips = || server.gateway.trips();
    let before = trips();
    maker.execute("INSERT INTO t VALUES (1, 1)", &[]).await.expect("inserted");
    assert_eq!(trips() - before, 1, "where it was made");
    for (sql, prepared) in [("INSERT INTO t VALUES (2, 2)", true), ("INSERT INTO t VALUES (3, 3)", false)] {
        let other = Server::over(server.gateway.clone(), ServerOptions::default()).await;
        let client = other.connect().await;
        let before = trips();
        match prepared {
            true => assert_eq!(client.execute(sql, &[]).await.expect("inserted"), 1),
            false => client.batch_execute(sql).await.expect("inserted"),
        }
        assert_eq!(trips() - before, 1, "{sql}");
    }
}

#[tokio::test]
async fn a_gateway_whose_replica_lags_still_answers_as_the_majority_does() {
    let server = Server::start().await;
    let maker = server.connect().await;
    maker.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int)").await.expect("created");
    server.gateway.fall_behind();
    maker
        .batch_execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, m text); CREATE TABLE u (id int PRIMARY KEY)")
        .await
        .expect("created");
    let other = Server::over(server.gateway.clone(), ServerOptions::default()).await;
    let client = other.connect().await;
    assert_eq!(client.execute("INSERT INTO t (id, m) VALUES (1, 'x')", &[]).await.expect("there is a column m"), 1);
    client.batch_execute("INSERT INTO u VALUES (1)").await.expect("there is a table u");
    assert_eq!(strings(&client, "SELECT m FROM t").await, ["x"]);
}

#[tokio::test]
async fn a_statement_that_read_a_replica_that_lags_does_not_read_it_again() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 1)").await.expect("created");
    server.gateway.fall_behind();
    // One for the commit, one for locking the row, and after a conflict one for the table, which may be another by now.
    for (mode, trips) in [("optimistic", 2), ("default", 3), ("active", 1), ("locking", 2)] {
        client.batch_execute(&format!("SET rhumb.read_mode = {mode}")).await.expect("set");
        client.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await.expect("updated");
        let before = server.gateway.trips();
        client.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await.expect(mode);
        assert_eq!(server.gateway.trips() - before, trips, "{mode}");
        client.execute("DELETE FROM t WHERE id = 2", &[]).await.expect("deleted");
        client.execute("INSERT INTO t VALUES (2, 1)", &[]).await.expect(mode);
    }
    assert_eq!(strings(&client, "SELECT n FROM t WHERE id = 1").await, ["9"]);
}

#[tokio::test]
async fn rows_of_a_dropped_table_are_in_nobodys_way() {
    let server = Server::start().await;
    let maker = server.connect().await;
    let other = Server::over(server.gateway.clone(), ServerOptions::default()).await;
    for mode in ["default", "optimistic", "active", "locking"] {
        maker.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").await.expect("created");
        let client = other.connect().await;
        client.batch_execute(&format!("SET rhumb.read_mode = {mode}")).await.expect("set");
        client.batch_execute("INSERT INTO t VALUES (2)").await.expect("inserted");
        maker.batch_execute("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY)").await.expect("another");
        assert_eq!(client.execute("INSERT INTO t VALUES (1)", &[]).await.expect(mode), 1);
        assert_eq!(code(client.execute("INSERT INTO t VALUES (1)", &[]).await), "23505", "{mode}");
        maker.batch_execute("DROP TABLE t").await.expect("dropped");
    }
}

#[tokio::test]
async fn a_table_that_changes_elsewhere_while_a_statement_is_prepared_is_a_conflict() {
    let server = Server::start().await;
    let there = Server::over(server.gateway.clone(), ServerOptions::default()).await.connect().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").await.expect("created");
    assert_eq!(strings(&client, "SELECT * FROM t").await, ["1"], "the table is known here");
    there.batch_execute("ALTER TABLE t ADD COLUMN n int DEFAULT 2").await.expect("altered");
    let prepared = client.prepare("SELECT * FROM t").await.expect("told of the table as it was known here");
    assert_eq!(code(client.query(&prepared, &[]).await), "40001");
    assert_eq!(code(client.query(&prepared, &[]).await), "0A000", "the client is to prepare it again");
    let again = client.prepare("SELECT * FROM t").await.expect("told of the table as it is");
    assert_eq!(client.query(&again, &[]).await.expect("rows")[0].len(), 2);
}

#[tokio::test]
async fn what_a_constraint_refuses_that_was_dropped_elsewhere_is_taken() {
    let server = Server::start().await;
    let there = Server::over(server.gateway.clone(), ServerOptions::default()).await.connect().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL, v varchar(1))").await.expect("created");
    client.batch_execute("INSERT INTO t VALUES (1, 1, 'a')").await.expect("inserted");
    there.batch_execute("ALTER TABLE t ALTER n DROP NOT NULL, ALTER v TYPE text").await.expect("altered");
    client.execute("INSERT INTO t VALUES (2, NULL, 'long')", &[]).await.expect("taken");
}
