//! Statements as deep as can be, from the text to the rows and to the end of the connection that sent them.

use crate::support::{Server, code, strings};
use rhumb_sqltestkit::deep::DEEP;

const REFUSED: &str = "54001";
/// The time that the query engine plans a chain grows with the square of its length, in a build without optimizations to many seconds.
const PLANNED_MAX: usize = 300;

#[tokio::test]
async fn no_text_ends_the_site() {
    let server = Server::start().await;
    let other = server.connect().await;
    other.batch_execute("CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t VALUES (1, 'x')").await.expect("created");
    for deep in DEEP {
        let client = server.connect().await;
        assert_eq!(code(client.batch_execute(&deep.text(10_000)).await), REFUSED, "{}", deep.name);
        assert_eq!(code(client.prepare(&deep.text(10_000)).await), REFUSED, "{} as it is prepared", deep.name);
        drop(client);
        assert_eq!(strings(&server.connect().await, "SELECT id FROM t").await, ["1"], "after {}", deep.name);
    }
    assert_eq!(strings(&other, "SELECT id FROM t").await, ["1"]);
}

#[tokio::test]
async fn deep_texts_are_run_or_refused() {
    let server = Server::start().await;
    server
        .connect()
        .await
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t VALUES (1, 'x')")
        .await
        .expect("created");
    for deep in DEEP {
        let deepest = deep.deepest(|sql| rhumb_sql::parser::parse(sql).is_ok()).min(PLANNED_MAX);
        let client = server.connect().await;
        // Whether it is a statement that can be run at all depends on its kind; either way the server answers, and goes on.
        if let Err(error) = client.batch_execute(&deep.text(deepest)).await {
            assert!(error.code().is_some(), "{} of depth {deepest}: {error:?}", deep.name);
        }
        if let Ok(statement) = client.prepare(&deep.text(deepest)).await {
            drop(statement);
        }
        drop(client);
        assert_eq!(strings(&server.connect().await, "SELECT id FROM t").await, ["1"], "after {} of depth {deepest}", deep.name);
    }
}

#[tokio::test]
async fn a_deep_default_and_a_deep_procedure_can_be_used_by_others() {
    let server = Server::start().await;
    let chain = vec!["1"; 1_000].join(" + ");
    let made = format!(
        "CREATE TABLE d (id int PRIMARY KEY, n int DEFAULT {chain}); CREATE PROCEDURE p() AS 'INSERT INTO d VALUES (2, {chain})' LANGUAGE SQL"
    );
    server.connect().await.batch_execute(&made).await.expect("created");
    let other = server.connect().await;
    other.batch_execute("INSERT INTO d (id) VALUES (1)").await.expect("inserted");
    other.batch_execute("CALL p()").await.expect("called");
    assert_eq!(strings(&other, "SELECT n FROM d ORDER BY id").await, ["1000", "1000"]);
}
