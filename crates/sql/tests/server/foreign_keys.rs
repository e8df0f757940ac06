//! FOREIGN KEY constraints and their actions.

use crate::support::{Server, code, strings};
use futures::SinkExt;
use rhumb_sqltestkit::LocalGateway;
use tokio_postgres::Client;

async fn created(server: &Server, references: &str) -> Client {
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE p (id int PRIMARY KEY, code text UNIQUE)").await.expect("created");
    client.batch_execute(&format!("CREATE TABLE c (id int PRIMARY KEY, p int DEFAULT 3 {references})")).await.expect("created");
    client
        .batch_execute("INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO c VALUES (10, 1), (11, 1), (20, 2)")
        .await
        .expect("filled");
    client
}

/// What is said of a statement that a foreign key forbids.
async fn forbidden(client: &Client, sql: &str) -> (String, String, String) {
    let error = client.batch_execute(sql).await.expect_err(sql);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: {error:?}"));
    assert_eq!(error.code().code(), "23503", "{sql}: {error}");
    let text = |part: Option<&str>| part.unwrap_or_default().to_string();
    (error.message().to_string(), text(error.detail()), text(error.constraint()))
}

async fn children(client: &Client) -> Vec<String> {
    strings(client, "SELECT id, p FROM c ORDER BY id").await
}

#[tokio::test]
async fn a_row_references_one_that_is_there() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p").await;
    let of_child = "insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\"".to_string();
    let detail = "Key (p)=(9) is not present in table \"p\".".to_string();
    let expected = (of_child, detail, "c_p_fkey".to_string());
    for sql in [
        "INSERT INTO c VALUES (30, 1), (31, 9)",
        "UPDATE c SET p = 9 WHERE id = 10",
        "INSERT INTO c SELECT 30, 9",
        "INSERT INTO c VALUES (10, 1) ON CONFLICT (id) DO UPDATE SET p = 9",
        "UPDATE c SET p = v.p FROM (VALUES (9)) AS v (p)",
    ] {
        assert_eq!(forbidden(&client, sql).await, expected, "{sql}");
    }
    let mut sink = std::pin::pin!(client.copy_in("COPY c FROM STDIN").await.expect("begun"));
    sink.send(bytes::Bytes::from_static(b"30\t1\n31\t9\n")).await.expect("sent");
    assert_eq!(code(sink.as_mut().finish().await), "23503");
    client
        .batch_execute("INSERT INTO c VALUES (30, NULL), (31, 3), (10, 9) ON CONFLICT DO NOTHING")
        .await
        .expect("NULL references nothing");
    client.batch_execute("BEGIN; INSERT INTO p VALUES (9, 'x'); INSERT INTO c VALUES (32, 9); COMMIT").await.expect("it is there by then");
    assert_eq!(children(&client).await, ["10", "1", "11", "1", "20", "2", "30", "NULL", "31", "3", "32", "9"]);
}

#[tokio::test]
async fn a_row_that_is_referenced_stays() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p ON DELETE NO ACTION").await;
    let message = "update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\"".to_string();
    let expected = (message, "Key (id)=(1) is still referenced from table \"c\".".to_string(), "c_p_fkey".to_string());
    for sql in ["DELETE FROM p WHERE id = 1", "DELETE FROM p", "UPDATE p SET id = 9 WHERE id = 1"] {
        assert_eq!(forbidden(&client, sql).await, expected, "{sql}");
    }
    client.batch_execute("DELETE FROM p WHERE id = 3; UPDATE p SET code = 'z' WHERE id = 1").await.expect("nobody references that");
    client.batch_execute("UPDATE p SET id = 3 - id").await.expect("at the end of the statement all keys are there");
    client.batch_execute("DELETE FROM c WHERE p = 1; DELETE FROM p WHERE id = 1").await.expect("nobody references it any more");
    assert_eq!(children(&client).await, ["20", "2"]);
}

#[tokio::test]
async fn rows_follow_the_row_that_they_reference() {
    for (action, after_delete, after_update) in [
        ("CASCADE", vec!["20", "2"], vec!["10", "7", "11", "7", "20", "2"]),
        ("SET NULL", vec!["10", "NULL", "11", "NULL", "20", "2"], vec!["10", "NULL", "11", "NULL", "20", "2"]),
        ("SET DEFAULT", vec!["10", "3", "11", "3", "20", "2"], vec!["10", "3", "11", "3", "20", "2"]),
    ] {
        let server = Server::start().await;
        let client = created(&server, &format!("REFERENCES p (id) ON DELETE {action} ON UPDATE {action}")).await;
        client.batch_execute("BEGIN; DELETE FROM p WHERE id = 1").await.expect("deleted");
        assert_eq!(children(&client).await, after_delete, "{action}");
        client.batch_execute("ROLLBACK; UPDATE p SET id = 7 WHERE id = 1").await.expect("updated");
        assert_eq!(children(&client).await, after_update, "{action}");
        client.batch_execute("CREATE INDEX ON c (p); DELETE FROM p WHERE id = 2").await.expect("deleted, now by an index");
        assert_eq!(children(&client).await[..4], after_update[..4], "{action}");
    }
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p ON DELETE RESTRICT ON UPDATE SET DEFAULT").await;
    forbidden(&client, "DELETE FROM p WHERE id = 1").await;
    client.batch_execute("ALTER TABLE c ALTER p SET DEFAULT 8").await.expect("altered");
    assert_eq!(forbidden(&client, "UPDATE p SET id = 7 WHERE id = 1").await.1, "Key (p)=(8) is not present in table \"p\".");
    // The default is the very key that goes.
    client.batch_execute("ALTER TABLE c ALTER p SET DEFAULT 2").await.expect("altered");
    assert_eq!(forbidden(&client, "UPDATE p SET id = 7 WHERE id = 2").await.1, "Key (id)=(2) is still referenced from table \"c\".");
}

#[tokio::test]
async fn cascades_go_through_tables_and_around_circles() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p ON DELETE CASCADE").await;
    client
        .batch_execute("CREATE TABLE g (id int PRIMARY KEY, c int REFERENCES c ON DELETE CASCADE, p int REFERENCES p ON DELETE SET NULL)")
        .await
        .expect("created");
    client.batch_execute("INSERT INTO g VALUES (1, 10, 1), (2, 20, 1), (3, NULL, 2)").await.expect("filled");
    client.batch_execute("DELETE FROM p WHERE id = 1").await.expect("deleted");
    assert_eq!(strings(&client, "SELECT id, c, p FROM g ORDER BY id").await, ["2", "20", "NULL", "3", "NULL", "2"]);
    client.batch_execute("CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree ON DELETE CASCADE)").await.expect("created");
    client
        .batch_execute("INSERT INTO tree VALUES (3, 2), (1, 1), (2, 1), (4, 3), (5, 5)")
        .await
        .expect("rows of one statement reference each other");
    client.batch_execute("INSERT INTO tree SELECT g, g - 1 FROM generate_series(6, 2000) g").await.expect("a long chain");
    forbidden(&client, "INSERT INTO tree VALUES (5000, 4000)").await;
    client.batch_execute("DELETE FROM tree WHERE id = 1").await.expect("deleted");
    assert_eq!(strings(&client, "SELECT count(*), min(id) FROM tree").await, ["1996", "5"]);
    client.batch_execute("DELETE FROM tree WHERE id = 5").await.expect("one after the other");
    assert_eq!(strings(&client, "SELECT count(*) FROM tree").await, ["0"]);
}

#[tokio::test]
async fn deferred_constraints_are_looked_at_by_the_commit() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p DEFERRABLE INITIALLY DEFERRED").await;
    client
        .batch_execute("BEGIN; INSERT INTO c VALUES (30, 9); INSERT INTO p VALUES (9, 'x'); COMMIT")
        .await
        .expect("it is there in the end");
    client.batch_execute("BEGIN; DELETE FROM p WHERE id = 9; INSERT INTO p VALUES (9, 'y'); COMMIT").await.expect("it is there again");
    client.batch_execute("BEGIN; INSERT INTO c VALUES (31, 8)").await.expect("not yet");
    assert_eq!(forbidden(&client, "COMMIT").await.1, "Key (p)=(8) is not present in table \"p\".");
    client
        .batch_execute("BEGIN; INSERT INTO c VALUES (31, 8); DELETE FROM c WHERE id = 31; COMMIT")
        .await
        .expect("nothing references it in the end");
    client.batch_execute("BEGIN; SAVEPOINT a; INSERT INTO c VALUES (31, 8); ROLLBACK TO a; COMMIT").await.expect("likewise");
    forbidden(&client, "INSERT INTO c VALUES (31, 8)").await;
    forbidden(&client, "DELETE FROM p WHERE id = 9").await;
    client.batch_execute("BEGIN; DELETE FROM p WHERE id = 9; DELETE FROM c WHERE p = 9; COMMIT").await.expect("in any order");
    assert_eq!(children(&client).await, ["10", "1", "11", "1", "20", "2"]);
}

#[tokio::test]
async fn definitions_of_foreign_keys_make_sense() {
    let server = Server::start().await;
    let client = created(&server, "").await;
    for (sql, state) in [
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES nowhere", "42P01"),
        ("ALTER TABLE c ADD FOREIGN KEY (nothing) REFERENCES p", "42703"),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (nothing)", "42703"),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id, code)", "42830"),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (code)", "42804"),
        ("ALTER TABLE p ADD FOREIGN KEY (id) REFERENCES c (p)", "42830"),
        ("CREATE TABLE d (p int REFERENCES c MATCH FULL)", "0A000"),
        ("CREATE TABLE d (p numeric REFERENCES p)", "42804"),
        ("CREATE TABLE d (p int REFERENCES p NOT DEFERRABLE INITIALLY DEFERRED)", "42601"),
    ] {
        assert_eq!(code(client.batch_execute(sql).await), state, "{sql}");
    }
    let error = client.batch_execute("ALTER TABLE c ADD FOREIGN KEY (x) REFERENCES p").await.expect_err("there is no such column");
    let message = error.as_db_error().map(|error| error.message().to_string());
    assert_eq!(message.as_deref(), Some("column \"x\" referenced in foreign key constraint does not exist"));
    client.batch_execute("INSERT INTO c VALUES (30, 9)").await.expect("nothing forbids it yet");
    forbidden(&client, "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p").await;
    client.batch_execute("DELETE FROM c WHERE id = 30; ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES p").await.expect("added");
    forbidden(&client, "INSERT INTO c VALUES (30, 9)").await;
    assert_eq!(code(client.batch_execute("ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES p").await), "42710");
    assert_eq!(code(client.batch_execute("ALTER TABLE p ALTER id TYPE text").await), "0A000");
    client.batch_execute("ALTER TABLE p ALTER id TYPE bigint; INSERT INTO p VALUES (5000000000, 'far')").await.expect("stored as before");
    client.batch_execute("DELETE FROM p WHERE id = 5000000000").await.expect("no row can reference it");
    client
        .batch_execute("ALTER TABLE p RENAME TO q; ALTER TABLE c RENAME TO d; ALTER TABLE d RENAME CONSTRAINT f TO g")
        .await
        .expect("renamed");
    assert_eq!(forbidden(&client, "DELETE FROM q").await.2, "g");
    client
        .batch_execute("ALTER TABLE q DROP COLUMN code; ALTER TABLE d DROP COLUMN p; DELETE FROM q")
        .await
        .expect("the constraint went along");
}

#[tokio::test]
async fn what_is_referenced_is_dropped_with_what_references_it_or_not_at_all() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p ON DELETE CASCADE").await;
    client.batch_execute("CREATE TABLE d (code text REFERENCES p (code))").await.expect("created");
    for sql in [
        "DROP TABLE p",
        "DROP TABLE p, c",
        "ALTER TABLE p DROP COLUMN code",
        "ALTER TABLE p DROP CONSTRAINT p_code_key",
        "ALTER TABLE p DROP CONSTRAINT p_pkey",
    ] {
        assert_eq!(code(client.batch_execute(sql).await), "2BP01", "{sql}");
    }
    assert_eq!(code(client.batch_execute("TRUNCATE p").await), "0A000");
    client.batch_execute("BEGIN; TRUNCATE p, c, d; ROLLBACK; BEGIN; TRUNCATE p CASCADE").await.expect("all of them");
    assert_eq!(children(&client).await, [""; 0]);
    client
        .batch_execute("ROLLBACK; ALTER TABLE p DROP COLUMN code CASCADE; INSERT INTO d VALUES ('free')")
        .await
        .expect("its key went along");
    client.batch_execute("DROP TABLE p CASCADE; INSERT INTO c VALUES (30, 99); DROP TABLE c").await.expect("nothing binds it any more");
    client
        .batch_execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (a int REFERENCES a); DROP TABLE a, b")
        .await
        .expect("together");
    client
        .batch_execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (a int REFERENCES a); DROP TABLE b; DROP TABLE a")
        .await
        .expect("in order");
}

#[tokio::test]
async fn two_transactions_cannot_part_a_row_from_the_one_it_references() {
    let server = Server::start().await;
    let one = created(&server, "REFERENCES p").await;
    let two = server.connect().await;
    one.batch_execute("BEGIN; INSERT INTO c VALUES (30, 3)").await.expect("inserted");
    two.batch_execute("DELETE FROM p WHERE id = 3").await.expect("nobody references it yet");
    assert_eq!(code(one.batch_execute("COMMIT").await), "40001");
    one.batch_execute("BEGIN; DELETE FROM p WHERE id = 2 AND false; DELETE FROM c WHERE p = 2; DELETE FROM p WHERE id = 2")
        .await
        .expect("deleted");
    two.batch_execute("INSERT INTO c VALUES (21, 2)").await.expect("it is there still");
    assert_eq!(code(one.batch_execute("COMMIT").await), "40001");
    assert_eq!(children(&two).await, ["10", "1", "11", "1", "20", "2", "21", "2"]);
}

#[tokio::test]
async fn where_commits_carry_out_operations_rows_are_looked_up_all_the_same() {
    let server = Server::over(LocalGateway::operating(), Default::default()).await;
    let client = created(&server, "REFERENCES p ON DELETE SET NULL").await;
    forbidden(&client, "INSERT INTO c VALUES (30, 9)").await;
    forbidden(&client, "UPDATE c SET p = 9 WHERE id = 10").await;
    client.batch_execute("DELETE FROM p WHERE id = 1").await.expect("deleted");
    assert_eq!(children(&client).await, ["10", "NULL", "11", "NULL", "20", "2"]);
    assert_eq!(code(client.batch_execute("CREATE PROCEDURE put(a int) AS $$ INSERT INTO c VALUES ($1, 2) $$").await), "0A000");
}

#[tokio::test]
async fn constraints_wait_for_the_end_of_the_statement() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree)").await.expect("created");
    client
        .batch_execute("INSERT INTO tree SELECT g, CASE WHEN g < 3000 THEN g + 1 END FROM generate_series(1, 3000) g")
        .await
        .expect("each references the next, beyond what is written at once");
    client.batch_execute("UPDATE tree SET id = id + 1, up = up + 1").await.expect("all of them go one further");
    client.batch_execute("DELETE FROM tree").await.expect("all at once");
    let mut sink = std::pin::pin!(client.copy_in("COPY tree FROM STDIN").await.expect("begun"));
    let lines: String = (1..3000).map(|id| format!("{id}\t{}\n", id + 1)).collect();
    sink.send(bytes::Bytes::from(lines + "3000\t\\N\n")).await.expect("sent");
    assert_eq!(sink.as_mut().finish().await.expect("copied"), 3000);
    let mut sink = std::pin::pin!(client.copy_in("COPY tree FROM STDIN").await.expect("begun"));
    sink.send(bytes::Bytes::from_static(b"5000\t5001\n5001\t5002\n")).await.expect("sent");
    assert_eq!(code(sink.as_mut().finish().await), "23503");
    client.batch_execute("ALTER TABLE tree DROP CONSTRAINT tree_up_fkey, DROP CONSTRAINT tree_pkey").await.expect("dropped");
    client
        .batch_execute("ALTER TABLE tree ADD FOREIGN KEY (up) REFERENCES tree (id), ADD PRIMARY KEY (id)")
        .await
        .expect("keys come first");
}

#[tokio::test]
async fn other_constraints_may_take_along_what_one_would_miss() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE b (t int, id int, PRIMARY KEY (t, id));
             CREATE TABLE c (t int, b int); ALTER TABLE c ADD FOREIGN KEY (t) REFERENCES t ON UPDATE CASCADE;
             ALTER TABLE c ADD FOREIGN KEY (t, b) REFERENCES b ON UPDATE CASCADE; ALTER TABLE b ADD FOREIGN KEY (t) REFERENCES t ON UPDATE CASCADE;
             INSERT INTO t VALUES (1); INSERT INTO b VALUES (1, 5); INSERT INTO c VALUES (1, 5); UPDATE t SET id = 2",
        )
        .await
        .expect("a tenant that is renumbered");
    assert_eq!(strings(&client, "SELECT c.t, b.t FROM b, c").await, ["2", "2"]);
    client
        .batch_execute(
            "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE q (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE);
             CREATE TABLE r (p int REFERENCES p ON DELETE CASCADE, q int REFERENCES q ON DELETE RESTRICT);
             INSERT INTO p VALUES (1); INSERT INTO q VALUES (1, 1); INSERT INTO r VALUES (1, 1)",
        )
        .await
        .expect("created");
    assert_eq!(forbidden(&client, "DELETE FROM q").await.2, "r_q_fkey");
    client.batch_execute("DELETE FROM p").await.expect("what is restricted goes along");
    client
        .batch_execute(
            "CREATE TABLE x (k int PRIMARY KEY); CREATE TABLE y (k int PRIMARY KEY REFERENCES x ON UPDATE CASCADE);
             INSERT INTO x VALUES (1); INSERT INTO y VALUES (1); ALTER TABLE x ADD FOREIGN KEY (k) REFERENCES y ON UPDATE CASCADE;
             UPDATE x SET k = 2",
        )
        .await
        .expect("they reference each other");
    assert_eq!(strings(&client, "SELECT x.k, y.k FROM x, y").await, ["2", "2"]);
}

#[tokio::test]
async fn values_are_referenced_that_are_equal_and_no_others() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE p (code varchar(3) PRIMARY KEY, n numeric(10, 2) UNIQUE, f float8 UNIQUE, big bigint UNIQUE);
             CREATE TABLE c (code text REFERENCES p, n int REFERENCES p (n) ON DELETE CASCADE, f float8 REFERENCES p (f), big int REFERENCES p (big));
             INSERT INTO p VALUES ('abc', 1.50, 0, 1), ('x', 2, 7.5, 2); INSERT INTO c (n) VALUES (2); INSERT INTO c (f) VALUES (-0.0)",
        )
        .await
        .expect("created");
    forbidden(&client, "INSERT INTO c (code) VALUES ('abc  ')").await;
    forbidden(&client, "INSERT INTO c (code) VALUES ('abcd')").await;
    assert_eq!(forbidden(&client, "DELETE FROM p WHERE n = 1.50").await.1, "Key (f)=(0) is still referenced from table \"c\".");
    client.batch_execute("DELETE FROM c WHERE f = 0; DELETE FROM p WHERE n = 1.50").await.expect("no whole number is that");
    assert_eq!(strings(&client, "SELECT n FROM c").await, ["2"]);
    client.batch_execute("UPDATE p SET big = 5000000000").await.expect("nobody references it");
    client.batch_execute("DELETE FROM p").await.expect("along with its child");
    assert_eq!(strings(&client, "SELECT n FROM c").await, [""; 0]);
    forbidden(&client, &format!("INSERT INTO c (code) VALUES ('{}')", "long".repeat(5_000))).await;
}

#[tokio::test]
async fn what_is_deferred_is_looked_at_as_the_transaction_sees_it_then() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p DEFERRABLE INITIALLY DEFERRED").await;
    client.batch_execute("CREATE INDEX i ON c (p)").await.expect("created");
    let refused = async |sql: &str| {
        client.batch_execute("BEGIN").await.expect("begun");
        client.batch_execute(sql).await.expect(sql);
        forbidden(&client, "COMMIT").await
    };
    let gone = refused("DELETE FROM p WHERE id = 2").await;
    assert_eq!(gone.0, "update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\"");
    assert_eq!(gone.1, "Key (id)=(2) is still referenced from table \"c\".");
    refused("INSERT INTO c VALUES (30, 9); UPDATE c SET id = 31 WHERE id = 30").await;
    refused("SAVEPOINT a; INSERT INTO c VALUES (30, 9); SAVEPOINT b; DELETE FROM c WHERE id = 30; ROLLBACK TO b").await;
    for change in ["DROP INDEX i", "ALTER TABLE c DROP CONSTRAINT c_pkey", "ALTER TABLE p ADD x int", "DROP TABLE c"] {
        client.batch_execute("BEGIN; DELETE FROM p WHERE id = 2").await.expect("deleted");
        assert_eq!(code(client.batch_execute(change).await), "55006", "{change}");
        client.batch_execute("ROLLBACK").await.expect("rolled back");
    }
    client
        .batch_execute("BEGIN; INSERT INTO c VALUES (30, 3); DELETE FROM p WHERE id = 1; INSERT INTO p VALUES (1, 'a'); ALTER TABLE tables RENAME TO t")
        .await
        .expect_err("there is no such table");
    client
        .batch_execute(
            "ROLLBACK; BEGIN; SAVEPOINT a; CREATE TABLE x (id int PRIMARY KEY, p int REFERENCES p DEFERRABLE INITIALLY DEFERRED);
             INSERT INTO x VALUES (1, 99); ROLLBACK TO a; CREATE TABLE y (k text PRIMARY KEY); INSERT INTO y VALUES ('z'); COMMIT",
        )
        .await
        .expect("what was undone is not looked at");
}

#[tokio::test]
async fn a_transaction_says_when_constraints_are_looked_at() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p DEFERRABLE").await;
    forbidden(&client, "INSERT INTO c VALUES (30, 9)").await;
    client
        .batch_execute("BEGIN; SET CONSTRAINTS c_p_fkey DEFERRED; INSERT INTO c VALUES (30, 9); INSERT INTO p VALUES (9, 'x')")
        .await
        .expect("deferred");
    client.batch_execute("SET CONSTRAINTS ALL IMMEDIATE").await.expect("all is there by now");
    forbidden(&client, "INSERT INTO c VALUES (31, 10)").await;
    client.batch_execute("ROLLBACK; BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO c VALUES (30, 9)").await.expect("deferred");
    forbidden(&client, "SET CONSTRAINTS c_p_fkey IMMEDIATE").await;
    client.batch_execute("ROLLBACK; BEGIN; SAVEPOINT a; SET CONSTRAINTS ALL DEFERRED; ROLLBACK TO a").await.expect("undone");
    forbidden(&client, "INSERT INTO c VALUES (30, 9)").await;
    client.batch_execute("ROLLBACK; CREATE TABLE d (p int REFERENCES p)").await.expect("created");
    for (name, state) in [("nothing", "42704"), ("d_p_fkey", "42809")] {
        client.batch_execute("BEGIN").await.expect("begun");
        assert_eq!(code(client.batch_execute(&format!("SET CONSTRAINTS {name} DEFERRED")).await), state);
        client.batch_execute("ROLLBACK").await.expect("rolled back");
    }
    client.batch_execute("SET CONSTRAINTS ALL DEFERRED").await.expect("a warning outside of a transaction");
}

#[tokio::test]
async fn definitions_are_shown_with_quotes_where_names_need_them() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE \"User\" (\"Id\" int PRIMARY KEY); CREATE TABLE a (\"order\" int REFERENCES \"User\" ON DELETE CASCADE)",
        )
        .await
        .expect("created");
    let shown = strings(&client, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'").await;
    assert_eq!(shown, ["FOREIGN KEY (\"order\") REFERENCES \"User\"(\"Id\") ON DELETE CASCADE"]);
}

#[tokio::test]
async fn definitions_are_made_of_tables_as_they_are_now() {
    let server = Server::start().await;
    let one = created(&server, "").await;
    let two = Server::over(server.gateway.clone(), Default::default()).await.connect().await;
    assert_eq!(children(&two).await.len(), 6);
    one.batch_execute("ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES p").await.expect("added");
    two.batch_execute("ALTER TABLE p ADD COLUMN x int").await.expect("the other site knows nothing of it yet");
    forbidden(&two, "DELETE FROM p WHERE id = 1").await;
}

#[tokio::test]
async fn constraints_that_take_each_others_place_are_looked_at_apart() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE p1 (id int PRIMARY KEY); CREATE TABLE p2 (id int PRIMARY KEY); CREATE TABLE p3 (id int PRIMARY KEY);
             CREATE TABLE c (id int PRIMARY KEY, a int REFERENCES p2, b int REFERENCES p1 DEFERRABLE INITIALLY DEFERRED,
                             d int REFERENCES p3 DEFERRABLE INITIALLY DEFERRED);
             INSERT INTO p1 VALUES (1), (100); INSERT INTO p3 VALUES (7); INSERT INTO c VALUES (1, NULL, 1, 7);
             BEGIN; DELETE FROM p1 WHERE id = 100; DROP TABLE p2 CASCADE; DELETE FROM p3 WHERE id = 7",
        )
        .await
        .expect("deferred");
    assert_eq!(forbidden(&client, "COMMIT").await.2, "c_d_fkey");
}

#[tokio::test]
async fn what_was_looked_at_is_looked_at_again_once_that_is_undone() {
    let server = Server::start().await;
    let client = created(&server, "REFERENCES p DEFERRABLE INITIALLY DEFERRED").await;
    client
        .batch_execute(
            "BEGIN; INSERT INTO c VALUES (30, 9); SAVEPOINT a; INSERT INTO p VALUES (9, 'x'); SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK TO a",
        )
        .await
        .expect("its parent is gone again");
    forbidden(&client, "COMMIT").await;
    client.batch_execute("BEGIN; SAVEPOINT a; INSERT INTO c VALUES (30, 9)").await.expect("deferred");
    forbidden(&client, "SET CONSTRAINTS ALL IMMEDIATE").await;
    client.batch_execute("ROLLBACK TO a; INSERT INTO p VALUES (9, 'x'); INSERT INTO c VALUES (30, 9); COMMIT").await.expect("in order now");
}

#[tokio::test]
async fn many_keys_are_looked_for_in_one_scan() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE); CREATE INDEX ON c (p);
             INSERT INTO p SELECT g FROM generate_series(1, 1000) g; INSERT INTO c SELECT g, g FROM generate_series(1, 1000) g",
        )
        .await
        .expect("created");
    client.batch_execute("DELETE FROM p WHERE id % 2 = 0").await.expect("deleted");
    assert_eq!(strings(&client, "SELECT count(*), min(p % 2) FROM c").await, ["500", "1"]);
    client.batch_execute("DELETE FROM p WHERE id < 100").await.expect("deleted, few enough for a scan each");
    assert_eq!(strings(&client, "SELECT count(*), min(p) FROM c").await, ["450", "101"]);
}
