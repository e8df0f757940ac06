//! What tools ask of `information_schema`, and of `pg_catalog` beyond psql.

use crate::support::{Server, code, strings};
use tokio_postgres::Client;

/// A table of each kind of constraint, one that references it, and a sequence.
async fn shop(client: &Client) {
    client
        .batch_execute(
            "CREATE TABLE customers (
                 id bigint GENERATED ALWAYS AS IDENTITY (START 10) PRIMARY KEY, email varchar(80) NOT NULL CONSTRAINT one_email UNIQUE,
                 credit numeric(10, 2) DEFAULT 0 CHECK (credit >= 0), since date, code char(2), note text);
             CREATE TABLE \"Orders\" (
                 id serial PRIMARY KEY, customer bigint NOT NULL, email varchar(80) REFERENCES customers (email) ON UPDATE CASCADE,
                 FOREIGN KEY (customer) REFERENCES customers ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
             CREATE INDEX by_email ON \"Orders\" (email);
             CREATE SEQUENCE tickets AS int MAXVALUE 9 CYCLE;
             CREATE PROCEDURE greet(who text) BEGIN ATOMIC SELECT 1; END",
        )
        .await
        .expect("made");
}

async fn check(client: &Client, sql: &str, expected: &[&str]) {
    assert_eq!(strings(client, sql).await, expected, "{sql}");
}

#[tokio::test]
async fn tools_read_tables_and_columns() {
    let server = Server::start().await;
    let client = server.connect().await;
    shop(&client).await;
    check(
        &client,
        "SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY table_name",
        &["public", "Orders", "BASE TABLE", "public", "customers", "BASE TABLE"],
    )
    .await;
    check(
        &client,
        "SELECT column_name, ordinal_position, is_nullable, data_type, udt_name FROM information_schema.columns
         WHERE table_schema = 'public' AND table_name = 'customers' ORDER BY ordinal_position",
        &[
            "id",
            "1",
            "NO",
            "bigint",
            "int8",
            "email",
            "2",
            "NO",
            "character varying",
            "varchar",
            "credit",
            "3",
            "YES",
            "numeric",
            "numeric",
            "since",
            "4",
            "YES",
            "date",
            "date",
            "code",
            "5",
            "YES",
            "character",
            "bpchar",
            "note",
            "6",
            "YES",
            "text",
            "text",
        ],
    )
    .await;
}

#[tokio::test]
async fn tools_read_sizes_defaults_and_identities() {
    let server = Server::start().await;
    let client = server.connect().await;
    shop(&client).await;
    check(
        &client,
        "SELECT c.character_maximum_length, c.numeric_precision, c.numeric_scale, c.datetime_precision
         FROM information_schema.columns c WHERE c.table_name = 'customers' AND c.column_name <> 'note' ORDER BY c.ordinal_position",
        &[
            "NULL", "64", "0", "NULL", "80", "NULL", "NULL", "NULL", "NULL", "10", "2", "NULL", "NULL", "NULL", "NULL", "0", "2", "NULL",
            "NULL", "NULL",
        ],
    )
    .await;
    check(
        &client,
        "SELECT column_name, column_default, is_identity, identity_generation, identity_start FROM information_schema.columns
         WHERE column_name IN ('id', 'credit') ORDER BY table_name, column_name",
        &[
            "id",
            "nextval('\"Orders_id_seq\"'::regclass)",
            "NO",
            "NULL",
            "NULL",
            "credit",
            "0",
            "NO",
            "NULL",
            "NULL",
            "id",
            "NULL",
            "YES",
            "ALWAYS",
            "10",
        ],
    )
    .await;
    // Names of these tables are no names of one's own.
    client.batch_execute("CREATE TABLE columns (table_name text); INSERT INTO columns VALUES ('mine')").await.expect("created");
    check(&client, "SELECT table_name FROM columns", &["mine"]).await;
    check(&client, "SELECT columns.table_name FROM information_schema.columns WHERE data_type = 'date'", &["customers"]).await;
    check(&client, "SELECT count(*) FROM information_schema.views", &["0"]).await;
}

#[tokio::test]
async fn tools_read_constraints() {
    let server = Server::start().await;
    let client = server.connect().await;
    shop(&client).await;
    check(
        &client,
        "SELECT constraint_name, table_name, constraint_type, is_deferrable, initially_deferred FROM information_schema.table_constraints
         ORDER BY constraint_name",
        &[
            "Orders_customer_fkey",
            "Orders",
            "FOREIGN KEY",
            "YES",
            "YES",
            "Orders_email_fkey",
            "Orders",
            "FOREIGN KEY",
            "NO",
            "NO",
            "Orders_pkey",
            "Orders",
            "PRIMARY KEY",
            "NO",
            "NO",
            "customers_credit_check",
            "customers",
            "CHECK",
            "NO",
            "NO",
            "customers_pkey",
            "customers",
            "PRIMARY KEY",
            "NO",
            "NO",
            "one_email",
            "customers",
            "UNIQUE",
            "NO",
            "NO",
        ],
    )
    .await;
    // How most tools find foreign keys.
    check(
        &client,
        "SELECT kcu.column_name, ccu.table_name, ccu.column_name, rc.update_rule, rc.delete_rule, rc.unique_constraint_name
         FROM information_schema.table_constraints tc
         JOIN information_schema.key_column_usage kcu ON tc.constraint_name = kcu.constraint_name AND tc.table_schema = kcu.table_schema
         JOIN information_schema.constraint_column_usage ccu ON ccu.constraint_name = tc.constraint_name
         JOIN information_schema.referential_constraints rc ON rc.constraint_name = tc.constraint_name
         WHERE tc.constraint_type = 'FOREIGN KEY' AND tc.table_name = 'Orders' ORDER BY kcu.column_name",
        &[
            "customer",
            "customers",
            "id",
            "NO ACTION",
            "CASCADE",
            "customers_pkey",
            "email",
            "customers",
            "email",
            "CASCADE",
            "NO ACTION",
            "one_email",
        ],
    )
    .await;
    check(&client, "SELECT constraint_name FROM information_schema.check_constraints", &["customers_credit_check"]).await;
    check(
        &client,
        "SELECT sequence_name, data_type, maximum_value, cycle_option FROM information_schema.sequences ORDER BY sequence_name",
        &["Orders_id_seq", "integer", "2147483647", "NO", "tickets", "integer", "9", "YES"],
    )
    .await;
    check(&client, "SELECT routine_name, routine_type FROM information_schema.routines", &["greet", "PROCEDURE"]).await;
    let schemas = ["information_schema", "pg_catalog", "public"];
    check(&client, "SELECT schema_name FROM information_schema.schemata ORDER BY schema_name", &schemas).await;
}

#[tokio::test]
async fn statements_that_write_what_the_catalog_says_look_at_it_each_time() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE names (name text PRIMARY KEY)").await.expect("made");
    let insert = "INSERT INTO names SELECT relname FROM pg_class WHERE relkind = 'r' ON CONFLICT DO NOTHING";
    let delete = "DELETE FROM names USING pg_class WHERE relname = name AND relkind = 'r'";
    for table in ["one", "two"] {
        client.batch_execute(&format!("CREATE TABLE {table} (k int PRIMARY KEY)")).await.expect("made");
        client.batch_execute(insert).await.expect("inserted");
        check(&client, &format!("SELECT name FROM names WHERE name = '{table}'"), &[table]).await;
        client.batch_execute(delete).await.expect("deleted");
        check(&client, "SELECT name FROM names", &[]).await;
    }
}

#[tokio::test]
async fn names_and_numbers_of_relations_become_each_other() {
    let server = Server::start().await;
    let client = server.connect().await;
    shop(&client).await;
    check(&client, "SELECT relname FROM pg_class WHERE oid = 'customers'::regclass", &["customers"]).await;
    check(&client, "SELECT relname FROM pg_class WHERE oid = '\"Orders\"'::regclass::oid", &["Orders"]).await;
    check(
        &client,
        "SELECT attname FROM pg_attribute WHERE attrelid = 'public.customers'::regclass AND attnum > 0 ORDER BY attnum LIMIT 2",
        &["id", "email"],
    )
    .await;
    check(&client, "SELECT conrelid::regclass::text FROM pg_constraint WHERE conname = 'Orders_pkey'", &["\"Orders\""]).await;
    check(
        &client,
        "SELECT pg_get_serial_sequence('\"Orders\"', attname) FROM pg_attribute WHERE attrelid = '\"Orders\"'::regclass AND attname = 'id'",
        &["public.\"Orders_id_seq\""],
    )
    .await;
    check(&client, "SELECT count(*) FROM pg_enum", &["0"]).await;
}

#[tokio::test]
async fn arrays_of_values_and_escaped_patterns_are_conditions() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a%b'), (2, 'axb'), (3, 'a\\b'), (4, NULL), (5, 'a/b')",
        )
        .await
        .expect("made");
    check(&client, "SELECT k FROM t WHERE k = ANY (ARRAY[1, 3]) ORDER BY k", &["1", "3"]).await;
    check(&client, "SELECT k FROM t WHERE k <> ALL (ARRAY[1, 3]::int[]) ORDER BY k", &["2", "4", "5"]).await;
    check(&client, "SELECT k FROM t WHERE k = ANY (ARRAY[]::int[])", &[]).await;
    // Not without the cast: no number is 1.6 or 3.4.
    let each = strings(&client, "SELECT k FROM t WHERE k IN (1.6::int, 3.4::int) ORDER BY k").await;
    assert_eq!(each.len(), 2);
    let each: Vec<&str> = each.iter().map(String::as_str).collect();
    check(&client, "SELECT k FROM t WHERE k = ANY (ARRAY[1.6, 3.4]::int[]) ORDER BY k", &each).await;
    let statement = client.prepare("SELECT k FROM t WHERE k = ANY (ARRAY[$1, 9]::int[])").await.expect("a parameter of the array's type");
    assert_eq!(client.query_one(&statement, &[&4_i32]).await.expect("run").get::<_, i32>(0), 4);
    for (condition, keys) in [
        ("v LIKE 'a/%b' ESCAPE '/'", &["1"][..]),
        ("v LIKE 'a//b' ESCAPE '/'", &["5"]),
        ("v LIKE 'a\\b' ESCAPE '/'", &["3"]),
        ("v LIKE 'a\\b' ESCAPE ''", &["3"]),
        ("v LIKE 'a_b' ESCAPE '\\'", &["1", "2", "3", "5"]),
        ("v LIKE 'a!\\b' ESCAPE '!'", &["3"]),
        ("v LIKE 'a%%_' ESCAPE '%'", &["1"]),
        ("v NOT ILIKE 'A/%B' ESCAPE '/'", &["2", "3", "5"]),
    ] {
        check(&client, &format!("SELECT k FROM t WHERE {condition} ORDER BY k"), keys).await;
    }
    assert_eq!(code(client.simple_query("SELECT k FROM t WHERE v LIKE 'a' ESCAPE 'xy'").await), "22025");
    let statement = client.prepare("SELECT count(*) FROM t WHERE v LIKE $1 ESCAPE '/'").await.expect("a parameter as well");
    assert_eq!(client.query_one(&statement, &[&"a/%%"]).await.expect("run").get::<_, i64>(0), 1);
}
