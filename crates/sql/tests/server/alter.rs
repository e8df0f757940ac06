//! ALTER TABLE and ALTER INDEX.

use crate::support::{Server, code, strings};
use tokio_postgres::Client;

/// A table of two rows with a unique key, an index and a check.
async fn created(server: &Server) -> Client {
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, a int, b text UNIQUE, CHECK (a < 100))").await.expect("created");
    client.batch_execute("CREATE INDEX t_by_a ON t (a); INSERT INTO t VALUES (1, 10, 'x'), (2, NULL, 'y')").await.expect("filled");
    client
}

async fn alter(client: &Client, actions: &str) {
    client.batch_execute(&format!("ALTER TABLE t {actions}")).await.unwrap_or_else(|error| panic!("{actions}: {error:?}"));
}

async fn refused(client: &Client, actions: &str) -> String {
    code(client.batch_execute(&format!("ALTER TABLE t {actions}")).await)
}

#[tokio::test]
async fn columns_are_added_with_values_for_the_rows_there_are() {
    let server = Server::start().await;
    let client = created(&server).await;
    alter(&client, "ADD COLUMN c int, ADD d text NOT NULL DEFAULT 'd', ADD COLUMN IF NOT EXISTS a int").await;
    alter(&client, "ADD e timestamptz DEFAULT now(), ADD f numeric(6, 2) DEFAULT 1.5 CHECK (f > 1)").await;
    assert_eq!(strings(&client, "SELECT id, c, d, f FROM t ORDER BY id").await, ["1", "NULL", "d", "1.50", "2", "NULL", "d", "1.50"]);
    assert_eq!(
        strings(&client, "SELECT count(DISTINCT e) FROM t WHERE e > now() - interval '1 minute'").await,
        ["1"],
        "that of the statement"
    );
    client.batch_execute("UPDATE t SET f = NULL WHERE id = 1; INSERT INTO t (id) VALUES (3)").await.expect("written");
    assert_eq!(strings(&client, "SELECT f, d FROM t ORDER BY id").await, ["NULL", "d", "1.50", "d", "1.50", "d"]);
    client.batch_execute("UPDATE t SET f = f + 1 WHERE id = 2; UPDATE t SET d = 'new' WHERE id = 3").await.expect("written");
    assert_eq!(strings(&client, "SELECT f, d FROM t WHERE id > 1 ORDER BY id").await, ["2.50", "d", "1.50", "new"]);
    assert_eq!(refused(&client, "ADD a int").await, "42701");
    assert_eq!(refused(&client, "ADD g int NOT NULL").await, "23502");
    assert_eq!(refused(&client, "ADD g int DEFAULT 'x'").await, "22P02");
    assert_eq!(refused(&client, "ADD g int DEFAULT 5 CHECK (g < id)").await, "23514");
    assert_eq!(refused(&client, "ADD g int DEFAULT 5 UNIQUE").await, "23505");
    alter(&client, "ADD g text DEFAULT uuid() UNIQUE").await;
    assert_eq!(strings(&client, "SELECT count(DISTINCT g) FROM t").await, ["3"], "each row has its own");
    client.batch_execute("CREATE INDEX t_by_d ON t (d)").await.expect("indexed");
    assert_eq!(strings(&client, "SELECT id FROM t WHERE d = 'd' ORDER BY id").await, ["1", "2"]);
}

#[tokio::test]
async fn columns_are_dropped_with_what_is_over_them_and_renamed() {
    let server = Server::start().await;
    let client = created(&server).await;
    alter(&client, "RENAME COLUMN b TO \"B\"").await;
    alter(&client, "RENAME a TO n").await;
    assert_eq!(strings(&client, "SELECT \"B\" FROM t WHERE n = 10").await, ["x"]);
    assert_eq!(code(client.batch_execute("UPDATE t SET n = 100").await), "23514", "the condition goes by the new name");
    assert_eq!(refused(&client, "RENAME id TO n").await, "42701");
    assert_eq!(refused(&client, "RENAME nothing TO m").await, "42703");
    alter(&client, "DROP COLUMN n, DROP COLUMN IF EXISTS nothing").await;
    assert_eq!(strings(&client, "SELECT * FROM t ORDER BY id").await, ["1", "x", "2", "y"]);
    assert_eq!(code(client.batch_execute("DROP INDEX t_by_a").await), "42704");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (3, 'x')").await), "23505", "what is over other columns stays");
    alter(&client, "ADD n int").await;
    assert_eq!(strings(&client, "SELECT n FROM t").await, ["NULL", "NULL"], "the old values do not come back");
    assert_eq!(refused(&client, "DROP COLUMN nothing").await, "42703");
    assert_eq!(refused(&client, "DROP COLUMN id").await, "0A000");
}

#[tokio::test]
async fn nulls_and_defaults_come_and_go() {
    let server = Server::start().await;
    let client = created(&server).await;
    assert_eq!(refused(&client, "ALTER a SET NOT NULL").await, "23502");
    client.batch_execute("UPDATE t SET a = 1 WHERE id = 2").await.expect("updated");
    alter(&client, "ALTER COLUMN a SET NOT NULL, ALTER a SET DEFAULT 6 + 1").await;
    client.batch_execute("INSERT INTO t (id) VALUES (3)").await.expect("inserted");
    assert_eq!(strings(&client, "SELECT a FROM t WHERE id = 3").await, ["7"]);
    alter(&client, "ALTER a DROP DEFAULT").await;
    assert_eq!(code(client.batch_execute("INSERT INTO t (id) VALUES (4)").await), "23502");
    alter(&client, "ALTER a DROP NOT NULL").await;
    client.batch_execute("INSERT INTO t (id) VALUES (4)").await.expect("inserted");
    assert_eq!(refused(&client, "ALTER id DROP NOT NULL").await, "42P16");
    assert_eq!(refused(&client, "ALTER a SET DEFAULT b").await, "42703");
    assert_eq!(refused(&client, "ALTER nothing SET NOT NULL").await, "42703");
}

#[tokio::test]
async fn a_column_becomes_one_of_another_type() {
    let server = Server::start().await;
    let client = created(&server).await;
    alter(&client, "ALTER a TYPE bigint, ALTER id TYPE bigint").await;
    client.batch_execute("INSERT INTO t VALUES (5000000000, -5000000000, 'z')").await.expect("inserted");
    assert_eq!(strings(&client, "SELECT id FROM t WHERE a = -5000000000").await, ["5000000000"]);
    assert_eq!(refused(&client, "ALTER a TYPE int").await, "22003");
    client.batch_execute("DELETE FROM t WHERE a < 0").await.expect("deleted");
    assert_eq!(refused(&client, "ALTER a SET DATA TYPE text").await, "42883", "the check compares a number");
    alter(&client, "DROP CONSTRAINT t_a_check, ALTER a SET DATA TYPE text").await;
    assert_eq!(strings(&client, "SELECT id FROM t WHERE a = '10'").await, ["1"], "by the index, whose entries are rewritten");
    assert_eq!(refused(&client, "ALTER a TYPE int").await, "42804");
    alter(&client, "ALTER a TYPE int USING a::int * 2").await;
    assert_eq!(strings(&client, "SELECT a FROM t WHERE id = 1").await, ["20"]);
    assert_eq!(refused(&client, "ALTER b TYPE varchar(0)").await, "22023");
    alter(&client, "ALTER b TYPE varchar(1)").await;
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (3, 1, 'zz')").await), "22001");
    assert_eq!(refused(&client, "ALTER b TYPE text USING 'same'").await, "23505");
}

#[tokio::test]
async fn constraints_are_added_renamed_and_dropped() {
    let server = Server::start().await;
    let client = created(&server).await;
    assert_eq!(refused(&client, "ADD CONSTRAINT small CHECK (a < 10)").await, "23514");
    alter(&client, "ADD CONSTRAINT small CHECK (a < 20)").await;
    assert_eq!(refused(&client, "ADD CONSTRAINT small CHECK (a < 30)").await, "42710");
    assert_eq!(code(client.batch_execute("UPDATE t SET a = 20").await), "23514");
    alter(&client, "RENAME CONSTRAINT small TO tiny").await;
    assert_eq!(refused(&client, "DROP CONSTRAINT small").await, "42704");
    alter(&client, "VALIDATE CONSTRAINT tiny").await;
    alter(&client, "DROP CONSTRAINT tiny, DROP CONSTRAINT IF EXISTS tiny").await;
    client.batch_execute("UPDATE t SET a = 20").await.expect("updated");
    assert_eq!(refused(&client, "ADD UNIQUE (a)").await, "23505");
    client.batch_execute("UPDATE t SET a = id").await.expect("updated");
    alter(&client, "ADD UNIQUE (a)").await;
    assert_eq!(code(client.batch_execute("UPDATE t SET a = 1").await), "23505");
    assert_eq!(code(client.batch_execute("DROP INDEX t_a_key").await), "2BP01");
    client.batch_execute("ALTER INDEX t_a_key RENAME TO one_a").await.expect("renamed");
    alter(&client, "DROP CONSTRAINT one_a").await;
    client.batch_execute("UPDATE t SET a = 1").await.expect("updated");
    assert_eq!(code(client.batch_execute("ALTER INDEX nothing RENAME TO b").await), "42704");
    assert_eq!(code(client.batch_execute("ALTER INDEX t_by_a RENAME TO t_pkey").await), "42P07");
}

#[tokio::test]
async fn a_table_is_given_another_primary_key() {
    let server = Server::start().await;
    let client = created(&server).await;
    assert_eq!(refused(&client, "ADD PRIMARY KEY (b)").await, "42P16");
    alter(&client, "DROP CONSTRAINT t_pkey").await;
    client.batch_execute("INSERT INTO t VALUES (1, 3, 'z')").await.expect("the key was all that forbade it");
    assert_eq!(refused(&client, "ADD PRIMARY KEY (id)").await, "23505");
    assert_eq!(refused(&client, "ADD PRIMARY KEY (a)").await, "23502");
    alter(&client, "ADD CONSTRAINT by_b PRIMARY KEY (b)").await;
    assert_eq!(strings(&client, "SELECT id, b FROM t ORDER BY b").await, ["1", "x", "2", "y", "1", "z"]);
    assert_eq!(strings(&client, "SELECT id FROM t WHERE a = 3").await, ["1"], "by an index, whose entries are rewritten");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (7, 7, 'z')").await), "23505");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (7, 7, NULL)").await), "23502");
}

#[tokio::test]
async fn a_table_is_renamed_and_what_belongs_to_it_follows() {
    let server = Server::start().await;
    let client = created(&server).await;
    client.batch_execute("CREATE TABLE other (id int)").await.expect("created");
    assert_eq!(refused(&client, "RENAME TO other").await, "42P07");
    alter(&client, "RENAME TO u").await;
    assert_eq!(strings(&client, "SELECT id FROM u WHERE b = 'y'").await, ["2"]);
    assert_eq!(code(client.batch_execute("SELECT * FROM t").await), "42P01");
    client
        .batch_execute("DROP INDEX t_by_a; CREATE TABLE t (id int); ALTER TABLE IF EXISTS nothing ADD c int")
        .await
        .expect("the name is free");
    assert_eq!(code(client.batch_execute("ALTER TABLE nothing ADD c int").await), "42P01");
    client.batch_execute("BEGIN; ALTER TABLE u ADD c int DEFAULT 1; ROLLBACK").await.expect("rolled back");
    assert_eq!(code(client.batch_execute("SELECT c FROM u").await), "42703");
    assert_eq!(strings(&server.connect().await, "SELECT count(*) FROM u").await, ["2"]);
}

#[tokio::test]
async fn an_index_is_over_the_column_that_it_names_also_behind_a_hidden_row_id() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE t (a int); ALTER TABLE t ADD b int UNIQUE, ADD c int; CREATE INDEX by_c ON t (c)")
        .await
        .expect("created");
    client.batch_execute("INSERT INTO t VALUES (1, 7, 5)").await.expect("inserted");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (2, 7, 5)").await), "23505");
    client.batch_execute("INSERT INTO t VALUES (2, 7, 6) ON CONFLICT (b) DO UPDATE SET a = 9").await.expect("updated");
    assert_eq!(strings(&client, "SELECT a, b FROM t WHERE c = 5").await, ["9", "7"]);
    alter(&client, "DROP b, ADD PRIMARY KEY (a)").await;
    assert_eq!(code(client.batch_execute("DROP INDEX t_b_key").await), "42704");
    assert_eq!(strings(&client, "SELECT a FROM t WHERE c = 5").await, ["9"]);
    assert_eq!(refused(&client, "ADD UNIQUE (_rowid)").await, "42703");
}

#[tokio::test]
async fn a_type_that_changes_values_keeps_what_rows_have_to_keep() {
    let server = Server::start().await;
    let client = created(&server).await;
    assert_eq!(refused(&client, "ALTER a TYPE int USING a * 10").await, "23514");
    assert_eq!(refused(&client, "ALTER b TYPE int USING NULL, ALTER b SET NOT NULL").await, "23502");
    assert_eq!(refused(&client, "ALTER id TYPE int USING a, ALTER a TYPE int USING id").await, "0A000");
    assert_eq!(refused(&client, "ALTER a TYPE int USING $1").await, "42P02");
    alter(&client, "ADD CHECK (c <> 5), ADD c int DEFAULT 6, DROP COLUMN b").await;
    assert_eq!(strings(&client, "SELECT a, c FROM t WHERE id = 1").await, ["10", "6"]);
}

#[tokio::test]
async fn expressions_are_kept_as_they_were_written_or_refused() {
    let server = Server::start().await;
    let client = created(&server).await;
    for default in ["$1", "'a' || $1"] {
        assert_eq!(refused(&client, &format!("ADD d text DEFAULT {default}")).await, "42P02", "{default}");
        assert_eq!(code(client.batch_execute(&format!("CREATE TABLE u (d text DEFAULT {default})")).await), "42P02", "{default}");
    }
    // What a default is for a row, or that it is refused.
    for (default, value) in
        [("'it''s'", Ok("it's")), ("-(-1)", Ok("1")), ("E'a\\x27\\x27b'", Ok("a''b")), ("'a''''b'", Err("0A000")), ("- -1", Err("0A000"))]
    {
        let created = client.batch_execute(&format!("CREATE TABLE u (id int PRIMARY KEY, d text DEFAULT {default})")).await;
        match value {
            Err(state) => assert_eq!(code(created), state, "{default}"),
            Ok(value) => {
                client.batch_execute("INSERT INTO u (id) VALUES (1)").await.expect(default);
                assert_eq!(strings(&client, "SELECT d FROM u").await, [value], "{default}");
                client.batch_execute("DROP TABLE u").await.expect("dropped");
            }
        }
    }
    client
        .batch_execute("CREATE TABLE u (n int, CHECK (u.n > 0)); ALTER TABLE u RENAME TO v")
        .await
        .expect("the condition goes by the column");
    assert_eq!(code(client.batch_execute("INSERT INTO v VALUES (0)").await), "23514");
}

#[tokio::test]
async fn names_of_constraints_are_taken_once() {
    let server = Server::start().await;
    let client = created(&server).await;
    assert_eq!(refused(&client, "ADD CONSTRAINT t_a_check UNIQUE (id)").await, "42P07");
    assert_eq!(refused(&client, "RENAME CONSTRAINT t_b_key TO t_a_check").await, "42710");
    client.batch_execute("CREATE TABLE u (a int)").await.expect("created");
    assert_eq!(code(client.batch_execute("ALTER TABLE u RENAME CONSTRAINT \"\" TO x").await), "42704");
}

#[tokio::test]
async fn the_example_of_the_documentation_runs() {
    let server = Server::start().await;
    let client = server.connect().await;
    let page = include_str!("../../../../docs/sql.md");
    let (_, section) = page.split_once("## Tables that change").expect("the section");
    let (_, example) = section.split_once("```sql").expect("its example");
    let (example, _) = example.split_once("```").expect("its end");
    client.batch_execute("CREATE TABLE stock (item int PRIMARY KEY, left int); INSERT INTO stock VALUES (7, 3)").await.expect("created");
    client.batch_execute(example).await.expect("altered");
    assert_eq!(strings(&client, "SELECT * FROM stock").await, ["7", "3", "new"]);
    assert_eq!(code(client.batch_execute("UPDATE stock SET left = left - 4").await), "23514");
}
