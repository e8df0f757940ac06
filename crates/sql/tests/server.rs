//! The server as its clients see it, over a database in memory.

mod support;

use support::{Server, code};

#[tokio::test]
async fn a_row_is_inserted_read_changed_and_deleted() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(10,2))").await.expect("created");
    assert_eq!(client.execute("INSERT INTO t VALUES ($1, $2, 1.25), (2, 'b', NULL)", &[&1i32, &"a"]).await.expect("inserted"), 2);
    let row = client.query_one("SELECT name, price::text FROM t WHERE id = $1", &[&1i32]).await.expect("a row");
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("a", "1.25"));
    assert_eq!(client.execute("UPDATE t SET price = price + 1 WHERE id = $1", &[&1i32]).await.expect("updated"), 1);
    let row = client.query_one("SELECT sum(price)::text, count(*) FROM t", &[]).await.expect("a row");
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i64>(1)), ("2.25", 2));
    assert_eq!(client.execute("DELETE FROM t WHERE id = 2", &[]).await.expect("deleted"), 1);
    assert_eq!(client.query("SELECT * FROM t", &[]).await.expect("rows").len(), 1);
}

#[tokio::test]
async fn an_error_fails_the_transaction_it_happens_in() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY); BEGIN; INSERT INTO t VALUES (1)").await.expect("begun");
    assert_eq!(code(client.execute("SELECT * FROM nowhere", &[]).await), "42P01");
    assert_eq!(code(client.execute("SELECT 1", &[]).await), "25P02");
    client.batch_execute("COMMIT").await.expect("rolled back");
    assert_eq!(client.query("SELECT * FROM t", &[]).await.expect("rows").len(), 0);
}
