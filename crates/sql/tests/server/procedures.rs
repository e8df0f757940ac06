//! Procedures: how they are made, what they are given, and that a call is one transaction.

use crate::support::{Server, code, strings};
use rhumb_commit::transaction::TxnError;
use rhumb_sql::server::ServerOptions;
use rhumb_sqltestkit::LocalGateway;
use tokio_postgres::Client;

const TABLES: &str = "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, name text);
    CREATE TABLE transfer (id bigint PRIMARY KEY, amount int, note text);
    INSERT INTO account VALUES (1, 100, 'one'), (2, 100, 'two')";

const PAY: &str = "CREATE PROCEDURE pay(transfer_id bigint, amount int, payer int, payee int) LANGUAGE SQL AS $$
    UPDATE account SET balance = balance - amount WHERE id = payer;
    UPDATE account SET balance = balance + amount WHERE id = payee;
    INSERT INTO transfer (id, amount, note) VALUES (transfer_id, amount, 'paid');
$$";

/// A server whose commits carry out operations if `travels`, with two accounts and the procedure `pay`.
async fn server(travels: bool) -> (Server, Client) {
    let gateway = if travels { LocalGateway::operating() } else { LocalGateway::new() };
    let server = Server::over(gateway, ServerOptions::default()).await;
    let client = server.connect().await;
    client.batch_execute(TABLES).await.expect("tables");
    client.batch_execute(PAY).await.expect("a procedure");
    (server, client)
}

async fn state(client: &Client) -> Vec<String> {
    let balances = strings(client, "SELECT balance FROM account ORDER BY id").await;
    [balances, strings(client, "SELECT count(*) FROM transfer").await].concat()
}

/// The SQLSTATE and the message of a statement that must fail.
async fn refused(client: &Client, sql: &str) -> (String, String) {
    let error = client.batch_execute(sql).await.err().unwrap_or_else(|| panic!("{sql} must be refused"));
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: an error of the server, not {error:?}"));
    (error.code().code().to_owned(), error.message().to_owned())
}

#[tokio::test]
async fn a_call_is_one_transaction() {
    for travels in [false, true] {
        let (_server, client) = server(travels).await;
        client.batch_execute("CALL pay(1, 30, 1, 2)").await.expect("called");
        assert_eq!(state(&client).await, ["70", "130", "1"]);
        // The last of its statements fails.
        assert_eq!(code(client.batch_execute("CALL pay(1, 30, 1, 2)").await), "23505");
        assert_eq!(state(&client).await, ["70", "130", "1"]);
        let pay = client.prepare("CALL pay($1, $2, $3, $4)").await.expect("prepared");
        let types: Vec<&str> = pay.params().iter().map(tokio_postgres::types::Type::name).collect();
        assert_eq!((types, pay.columns().len()), (vec!["int8", "int4", "int4", "int4"], 0));
        for id in 2..5i64 {
            assert_eq!(client.execute(&pay, &[&id, &10i32, &2i32, &1i32]).await.expect("called"), 0);
        }
        assert_eq!(state(&client).await, ["100", "100", "4"]);
        client.batch_execute("BEGIN; CALL pay(9, 1, 1, 2); SELECT 1").await.expect("within a transaction");
        assert_eq!(state(&client).await, ["99", "101", "5"]);
        client.batch_execute("ROLLBACK").await.expect("undone");
        assert_eq!(state(&client).await, ["100", "100", "4"]);
        client.batch_execute("CALL pay(10, 1, 1, 2); CALL pay(11, 1, 1, 2)").await.expect("together");
        assert_eq!(code(client.batch_execute("CALL pay(12, 1, 1, 2); CALL pay(11, 1, 1, 2)").await), "23505");
        assert_eq!(state(&client).await, ["98", "102", "6"]);
        assert_eq!(code(client.batch_execute("BEGIN READ ONLY; CALL pay(13, 1, 1, 2)").await), "25006");
    }
}

#[tokio::test]
async fn where_commits_carry_out_operations_a_call_reads_nothing_before() {
    let (server, client) = server(true).await;
    let pay = client.prepare("CALL pay($1, $2, $3, $4)").await.expect("prepared");
    client.execute(&pay, &[&1i64, &10i32, &2i32, &1i32]).await.expect("called");
    let before = server.gateway.rounds();
    client.execute(&pay, &[&2i64, &10i32, &2i32, &1i32]).await.expect("called");
    client.batch_execute("CALL pay(3, 10, 1, 2)").await.expect("called");
    client
        .batch_execute("BEGIN; CALL pay(4, 10, 1, 2); UPDATE account SET balance = balance + 1 WHERE id = 1; COMMIT")
        .await
        .expect("one text");
    assert_eq!(server.gateway.rounds(), before);
    assert_eq!(state(&client).await, ["101", "100", "4"]);
}

/// Procedures that must look at rows to know what to do.
const CONDITIONAL: [&str; 5] = [
    "CREATE PROCEDURE p(n int) LANGUAGE SQL AS 'UPDATE account SET balance = balance + n WHERE id = 1; UPDATE account SET balance = 0 WHERE balance > n'",
    "CREATE PROCEDURE p(n int) LANGUAGE SQL AS 'UPDATE account SET balance = balance + n WHERE id = 1; UPDATE account SET balance = balance * 2 WHERE id = n'",
    "CREATE PROCEDURE p() LANGUAGE SQL AS 'DELETE FROM transfer WHERE id = 1; INSERT INTO transfer SELECT id, balance, name FROM account'",
    "CREATE PROCEDURE p(n int) LANGUAGE SQL AS 'SELECT balance FROM account WHERE id = n; SELECT sum(balance) FROM account'",
    "CREATE PROCEDURE p(n int) LANGUAGE SQL AS 'DELETE FROM account WHERE id = n; INSERT INTO account VALUES (n, 1) ON CONFLICT DO NOTHING'",
];

#[tokio::test]
async fn what_must_read_first_is_refused_where_a_call_is_to_travel() {
    let (_server, client) = server(true).await;
    for sql in CONDITIONAL {
        let (state, message) = refused(&client, sql).await;
        assert_eq!(state, "0A000", "{sql}");
        assert!(
            message.starts_with("statement 2 (") && message.ends_with("of procedure \"p\" cannot be part of a one-shot transaction"),
            "{message}"
        );
        assert_eq!(code(client.batch_execute("CALL p(1)").await), "42883");
    }
    let (_server, client) = server(false).await;
    for sql in CONDITIONAL {
        client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let call = if sql.contains("p()") { "CALL p()" } else { "CALL p(2)" };
        client.batch_execute(call).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        client.batch_execute("DROP PROCEDURE p; DELETE FROM transfer").await.expect("dropped");
    }
    assert_eq!(state(&client).await, ["2", "1", "0"]);
}

#[tokio::test]
async fn what_only_a_call_shows_is_refused_then() {
    let (_server, client) = server(true).await;
    let (state, message) = refused(&client, "CALL pay(1, NULL, 1, 2)").await;
    assert_eq!((state.as_str(), message.starts_with("statement 1 (UPDATE) of procedure \"pay\"")), ("0A000", true), "{message}");
    client
        .batch_execute(
            "CREATE PROCEDURE note(n bigint, lowest bigint) LANGUAGE SQL AS
             'INSERT INTO transfer (id) VALUES (n); SELECT note FROM transfer WHERE id >= lowest ORDER BY id LIMIT 3'",
        )
        .await
        .expect("it depends on what it is given");
    client.batch_execute("CALL note(1, 2)").await.expect("another range");
    assert_eq!(
        refused(&client, "CALL note(2, 2)").await,
        ("0A000".into(), "a procedure cannot read a range of rows after it wrote into it".into())
    );
    let rows: Vec<String> = (0..4_097).map(|id| format!("({id})")).collect();
    client
        .batch_execute(&format!("CREATE PROCEDURE many() LANGUAGE SQL AS 'INSERT INTO transfer (id) VALUES {}'", rows.join(",")))
        .await
        .expect("made");
    assert_eq!(
        refused(&client, "CALL many()").await,
        ("54000".into(), "a transaction has at most 4096 operations; this one has 4097".into())
    );
    client.batch_execute("CREATE PROCEDURE none(n int) LANGUAGE SQL AS 'UPDATE account SET balance = 0 WHERE id = n'").await.expect("made");
    client.batch_execute("CALL none(NULL)").await.expect("there is nothing to do");
    assert_eq!(strings(&client, "SELECT id FROM transfer").await, ["1"]);
}

#[tokio::test]
async fn procedures_that_cannot_be_are_refused() {
    let (_server, client) = server(false).await;
    let long = format!("CREATE PROCEDURE p() LANGUAGE SQL AS $$ SELECT '{}' $$", "x".repeat(70_000));
    let wide: Vec<String> = (0..101).map(|number| format!("p{number} int")).collect();
    let wide = format!("CREATE PROCEDURE p({}) LANGUAGE SQL AS ''", wide.join(", "));
    for (sql, expected) in [
        ("CREATE PROCEDURE pay() LANGUAGE SQL AS ''", "42723"),
        ("CREATE PROCEDURE p(a int, a int) LANGUAGE SQL AS ''", "42P13"),
        ("CREATE PROCEDURE p(a int) LANGUAGE SQL", "42P13"),
        ("CREATE PROCEDURE p(a int) LANGUAGE plpgsql AS 'BEGIN END'", "42704"),
        ("CREATE PROCEDURE p(OUT a int) LANGUAGE SQL AS 'SELECT 1'", "0A000"),
        ("CREATE PROCEDURE p(a int DEFAULT 1) LANGUAGE SQL AS ''", "0A000"),
        ("CREATE PROCEDURE p(a widget) LANGUAGE SQL AS ''", "42704"),
        ("CREATE PROCEDURE p(a int LANGUAGE SQL AS ''", "42601"),
        ("CREATE PROCEDURE p() LANGUAGE SQL AS 'SELEC 1'", "42601"),
        ("CREATE PROCEDURE p() LANGUAGE SQL AS '' AS ''", "42601"),
        ("CREATE PROCEDURE p() BEGIN ATOMIC SELECT 1", "42601"),
        ("CREATE PROCEDURE p() LANGUAGE SQL AS 'COMMIT'", "0A000"),
        ("CREATE PROCEDURE p() LANGUAGE SQL AS 'CALL pay(1, 1, 1, 1)'", "0A000"),
        ("CREATE PROCEDURE p() LANGUAGE SQL AS 'CREATE TABLE x (a int)'", "0A000"),
        ("CREATE PROCEDURE p() LANGUAGE SQL AS 'UPDATE nowhere SET a = 1'", "42P01"),
        ("CREATE PROCEDURE p() LANGUAGE SQL AS 'UPDATE account SET nothing = 1'", "42703"),
        ("CREATE PROCEDURE p(a int) LANGUAGE SQL AS 'UPDATE account SET balance = b'", "42703"),
        ("CREATE PROCEDURE p(a int) LANGUAGE SQL AS 'UPDATE account SET balance = $2'", "42P02"),
        (&long, "54000"),
        (&wide, "54023"),
    ] {
        let (state, message) = refused(&client, sql).await;
        assert_eq!(state, expected, "{}: {message}", &sql[..sql.len().min(90)]);
    }
    assert_eq!(strings(&client, "SELECT proname FROM pg_proc").await, ["pay"]);
}

#[tokio::test]
async fn what_a_procedure_is_given_must_fit() {
    for travels in [false, true] {
        let (_server, client) = server(travels).await;
        client
            .batch_execute("CREATE PROCEDURE note(n smallint, words varchar, d double precision) LANGUAGE SQL AS 'INSERT INTO transfer (id, note) VALUES (n, words)'")
            .await
            .expect("made");
        for (sql, expected) in [
            ("CALL nothing(1)", "42883"),
            ("CALL elsewhere.pay(1, 1, 1, 1)", "42883"),
            ("CALL pay(1, 1, 1)", "42883"),
            ("CALL pay(1, 1, 1, 1, 1)", "42883"),
            ("CALL pay(1, 1.5, 1, 1)", "42883"),
            ("CALL pay(1, true, 1, 1)", "42883"),
            ("CALL pay(1, '1'::text, 1, 1)", "42883"),
            ("CALL note(1, 2, 3)", "42883"),
            ("CALL pay(1, 'x', 1, 1)", "22P02"),
            ("CALL pay(1, 3000000000, 1, 1)", "22003"),
            ("CALL note(40000, 'x', 1)", "22003"),
            ("CALL pay(1, amount, 1, 1)", "42703"),
            ("CALL pay(1, amount => 1, payer => 1, payee => 1)", "0A000"),
            ("CALL pay", "42601"),
        ] {
            let (state, message) = refused(&client, sql).await;
            assert_eq!(state, expected, "{sql}: {message}");
        }
        let (_, message) = refused(&client, "CALL pay(1, 'x', true, NULL, 1)").await;
        assert_eq!(message, "procedure pay(integer, unknown, boolean, unknown, integer) does not exist");
        client
            .batch_execute("CALL note(1 + 1, 'x', 1); CALL note('3', NULL, '1.5'); CALL public.note(4, 'y', 1.25)")
            .await
            .expect("they fit");
        assert_eq!(strings(&client, "SELECT id, note FROM transfer ORDER BY id").await, ["2", "x", "3", "NULL", "4", "y"]);
        assert_eq!(code(client.prepare("CALL pay($1, $2)").await), "42883");
    }
}

#[tokio::test]
async fn a_column_goes_before_a_parameter_of_its_name() {
    for travels in [false, true] {
        let (_server, client) = server(travels).await;
        // In VALUES no column is in sight, and pay2.id is the parameter wherever it stands; $2 is the second.
        client
            .batch_execute(
                "CREATE PROCEDURE pay2(id int, balance int) BEGIN ATOMIC
                     INSERT INTO account (id, balance, name) VALUES (id + 10, balance, CASE WHEN balance > 5 THEN 'much; more' ELSE 'little' END);
                     UPDATE account SET balance = account.balance + $2 WHERE id = pay2.id;
                 END",
            )
            .await
            .expect("made");
        client.batch_execute("CALL pay2(1, 5); CALL PAY2(2, 7)").await.expect("called");
        let rows = strings(&client, "SELECT id || ':' || balance || ':' || name FROM account ORDER BY id").await;
        assert_eq!(rows, ["1:105:one", "2:107:two", "11:5:little", "12:7:much; more"]);
    }
    let (_server, client) = server(false).await;
    client
        .batch_execute("CREATE PROCEDURE all_of(balance int) LANGUAGE SQL AS 'UPDATE account SET balance = balance + 1'")
        .await
        .expect("made");
    client.batch_execute("CALL all_of(50)").await.expect("called");
    assert_eq!(state(&client).await, ["101", "101", "0"]);
}

#[tokio::test]
async fn another_in_its_place_is_noticed_everywhere() {
    for travels in [false, true] {
        let (server, client) = server(travels).await;
        let other = Server::over(server.gateway.clone(), ServerOptions::default()).await.connect().await;
        let pay = other.prepare("CALL pay($1, $2, $3, $4)").await.expect("prepared");
        other.execute(&pay, &[&1i64, &1i32, &1i32, &2i32]).await.expect("called");
        client.batch_execute(&PAY.replace("CREATE", "CREATE OR REPLACE").replace("- amount", "- (2 * amount)")).await.expect("replaced");
        other.execute(&pay, &[&2i64, &1i32, &1i32, &2i32]).await.expect("the new one");
        assert_eq!(state(&client).await, ["97", "102", "2"]);
        client
            .batch_execute("DROP TABLE transfer; CREATE TABLE transfer (id bigint PRIMARY KEY, note text, amount int)")
            .await
            .expect("another");
        other.execute(&pay, &[&3i64, &1i32, &1i32, &2i32]).await.expect("into another table");
        assert_eq!(strings(&client, "SELECT id, note, amount FROM transfer").await, ["3", "paid", "1"]);
        client
            .batch_execute("CREATE OR REPLACE PROCEDURE pay(n int) LANGUAGE SQL AS 'UPDATE account SET balance = n WHERE id = 1'")
            .await
            .expect("replaced");
        assert_eq!(code(other.execute(&pay, &[&4i64, &1i32, &1i32, &2i32]).await), "42883");
        other.batch_execute("CALL pay(5)").await.expect("called");
        client.batch_execute("DROP PROCEDURE pay").await.expect("dropped");
        assert_eq!(code(other.batch_execute("CALL pay(6)").await), "42883");
        assert_eq!(strings(&client, "SELECT balance FROM account ORDER BY id").await, ["5", "103"]);
    }
}

#[tokio::test]
async fn conflicts_are_run_again_and_unknown_outcomes_told() {
    for travels in [false, true] {
        let (server, client) = server(travels).await;
        server.gateway.fail_commits([TxnError::Conflict("another was in the way".into())]);
        client.batch_execute("CALL pay(1, 10, 1, 2)").await.expect("run again");
        server.gateway.fail_commits([TxnError::Unknown("nobody knows".into())]);
        assert_eq!(code(client.batch_execute("CALL pay(2, 10, 1, 2)").await), "40003");
        assert_eq!(state(&client).await, ["90", "110", "1"]);
    }
}

#[tokio::test]
async fn procedures_are_dropped_alone_and_with_their_database() {
    let (server, client) = server(false).await;
    for (sql, expected) in
        [("DROP PROCEDURE nothing", "42883"), ("DROP PROCEDURE pay(int)", "42883"), ("DROP PROCEDURE pay, nothing", "42883")]
    {
        assert_eq!(code(client.batch_execute(sql).await), expected, "{sql}");
    }
    client.batch_execute("DROP PROCEDURE IF EXISTS nothing, pay(int)").await.expect("there is none");
    client.batch_execute("CALL pay(1, 1, 1, 2)").await.expect("it is there");
    client.batch_execute("DROP PROCEDURE pay(bigint, int, int, int)").await.expect("dropped");
    assert_eq!(code(client.batch_execute("CALL pay(2, 1, 1, 2)").await), "42883");
    client.batch_execute("BEGIN; CREATE PROCEDURE p() LANGUAGE SQL AS ''; CALL p(); ROLLBACK").await.expect("undone");
    assert_eq!(code(client.batch_execute("CALL p()").await), "42883");
    let before = server.gateway.live_keys();
    client.batch_execute("CREATE DATABASE shop").await.expect("created");
    let shop = server.connect_to("shop").await.expect("connected");
    shop.batch_execute("CREATE PROCEDURE p() LANGUAGE SQL AS ''; CALL p()").await.expect("one of its own");
    assert_eq!(code(client.batch_execute("CALL p()").await), "42883");
    client.batch_execute("DROP DATABASE shop").await.expect("dropped");
    // The note that its rows are garbage.
    assert_eq!(server.gateway.live_keys(), before + 1);
}
