//! BEGIN, COMMIT, ROLLBACK and what happens without them.

use crate::support::{Server, code, strings};

#[tokio::test]
async fn an_error_fails_the_transaction_it_happens_in() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("begun");
    assert_eq!(code(client.execute("SELECT * FROM nowhere", &[]).await), "42P01");
    assert_eq!(code(client.execute("SELECT 1", &[]).await), "25P02");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (2)").await), "25P02");
    client.batch_execute("COMMIT").await.expect("rolled back");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
}

#[tokio::test]
async fn a_transaction_reads_its_own_writes_and_others_do_not() {
    let server = Server::start().await;
    let (mut client, other) = (server.connect().await, server.connect().await);
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int)").await.expect("created");
    let transaction = client.transaction().await.expect("begun");
    transaction.execute("INSERT INTO t VALUES (1, 1)", &[]).await.expect("inserted");
    transaction.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await.expect("updated");
    assert_eq!(transaction.query_one("SELECT n FROM t", &[]).await.expect("a row").get::<_, i32>(0), 2);
    assert_eq!(strings(&other, "SELECT count(*) FROM t").await, ["0"]);
    transaction.commit().await.expect("committed");
    assert_eq!(strings(&other, "SELECT n FROM t").await, ["2"]);
    let transaction = client.transaction().await.expect("begun");
    transaction.execute("DELETE FROM t", &[]).await.expect("deleted");
    transaction.rollback().await.expect("rolled back");
    assert_eq!(strings(&other, "SELECT n FROM t").await, ["2"]);
}

#[tokio::test]
async fn statements_of_one_text_are_one_transaction() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let result = client.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); INSERT INTO t VALUES (1)").await;
    assert_eq!(code(result), "23505");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
    client.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await.expect("inserted");
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["2"]);
}

#[tokio::test]
async fn a_transaction_in_conflict_is_told_so_rather_than_that_a_key_exists() {
    let server = Server::start().await;
    let (one, two) = (server.connect().await, server.connect().await);
    one.batch_execute("CREATE TABLE counter (id int PRIMARY KEY, n int); CREATE TABLE taken (n int PRIMARY KEY)").await.expect("created");
    one.batch_execute("INSERT INTO counter VALUES (1, 0)").await.expect("inserted");
    let next = "BEGIN; UPDATE counter SET n = n + 1 WHERE id = 1";
    for client in [&one, &two] {
        client.batch_execute(next).await.expect("both take the same number");
    }
    one.batch_execute("INSERT INTO taken VALUES (1); COMMIT").await.expect("committed");
    assert_eq!(code(two.batch_execute("INSERT INTO taken VALUES (1)").await), "40001");
    assert_eq!(code(two.batch_execute("SELECT 1").await), "25P02");
    two.batch_execute("ROLLBACK").await.expect("rolled back");
    two.batch_execute(next).await.expect("the next number");
    assert_eq!(code(two.batch_execute("INSERT INTO taken VALUES (1)").await), "23505", "nobody is in the way");
    two.batch_execute("ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&two, "SELECT n FROM counter").await, ["1"]);
}

#[tokio::test]
async fn a_read_only_transaction_refuses_to_write() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    for sql in ["INSERT INTO t VALUES (1)", "SELECT * FROM t FOR UPDATE", "CREATE TABLE u (id int PRIMARY KEY)", "TRUNCATE t"] {
        client.batch_execute("BEGIN READ ONLY").await.expect("begun");
        assert_eq!(code(client.batch_execute(sql).await), "25006", "{sql}");
        client.batch_execute("ROLLBACK").await.expect("rolled back");
    }
    client.batch_execute("SET default_transaction_read_only = on").await.expect("set");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (1)").await), "25006");
}

#[tokio::test]
async fn the_past_can_be_read() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    assert_eq!(code(client.batch_execute("SELECT * FROM t AS OF SYSTEM TIME 'soon'").await), "22023");
    assert_eq!(code(client.batch_execute("SELECT * FROM t AS OF SYSTEM TIME '3000-01-01'").await), "22023");
    client.batch_execute("BEGIN AS OF SYSTEM TIME '-0us'").await.expect("begun");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (2, 2)").await), "25006");
    client.batch_execute("ROLLBACK").await.expect("rolled back");
    assert_eq!(strings(&client, "SELECT n FROM t AS OF SYSTEM TIME '-0us' WHERE id = 1").await, ["1"]);
}

#[tokio::test]
async fn rows_read_for_update_are_contended() {
    let server = Server::start().await;
    let (mut one, mut two) = (server.connect().await, server.connect().await);
    one.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    let (a, b) = (one.transaction().await.expect("begun"), two.transaction().await.expect("begun"));
    for transaction in [&a, &b] {
        transaction.query_one("SELECT n FROM t WHERE id = 1 FOR UPDATE", &[]).await.expect("a row");
        transaction.execute("UPDATE t SET n = n + 1 WHERE id = 1", &[]).await.expect("updated");
    }
    a.commit().await.expect("committed");
    assert_eq!(code(b.commit().await), "40001");
    assert_eq!(strings(&one, "SELECT n FROM t").await, ["2"]);
}

#[tokio::test]
async fn databases_are_apart() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE DATABASE shop WITH (protocol = 'replicated_commit')").await.expect("created");
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let shop = server.connect_to("shop").await.expect("connected");
    assert_eq!(code(shop.batch_execute("SELECT * FROM t").await), "42P01");
    assert_eq!(strings(&shop, "SELECT current_database()").await, ["shop"]);
    assert_eq!(code(server.connect_to("nowhere").await), "3D000");
}

#[tokio::test]
async fn definitions_belong_to_their_transaction() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("BEGIN; CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)").await.expect("created");
    assert_eq!(strings(&client, "SELECT id FROM t").await, ["1"]);
    client.batch_execute("ROLLBACK").await.expect("rolled back");
    assert_eq!(code(client.batch_execute("SELECT id FROM t").await), "42P01");
}

#[tokio::test]
async fn a_prepared_statement_notices_that_its_table_changed() {
    let server = Server::start().await;
    let (client, other) = (server.connect().await, server.connect().await);
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1)").await.expect("created");
    let statement = client.prepare("SELECT n FROM t WHERE id = $1").await.expect("prepared");
    other.batch_execute("DROP TABLE t").await.expect("dropped");
    other.batch_execute("CREATE TABLE t (id int PRIMARY KEY, m int, n int); INSERT INTO t VALUES (1, 7, 8)").await.expect("created");
    assert_eq!(client.query_one(&statement, &[&1i32]).await.expect("a row").get::<_, i32>(0), 8);
    other.batch_execute("DROP TABLE t").await.expect("dropped");
    assert_eq!(code(client.query(&statement, &[&1i32]).await), "42P01");
}
