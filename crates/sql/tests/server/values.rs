//! Values of every type, in text and in binary, as parameters and in results.

use crate::support::{Server, code, strings};
use bytes::BytesMut;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// The bytes of a value on the wire, whatever its type.
#[derive(Debug, PartialEq)]
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A type, a value as text, and its binary form by PostgreSQL's own `send` function.
const VALUES: &[(&str, &str, &[u8])] = &[
    ("bool", "t", &[1]),
    ("int2", "-2", &[0xff, 0xfe]),
    ("int4", "65536", &[0, 1, 0, 0]),
    ("int8", "-1", &[0xff; 8]),
    ("interval", "1 mon 2 days 00:00:01", &[0, 0, 0, 0, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 2, 0, 0, 0, 1]),
    ("float4", "1.5", &[0x3f, 0xc0, 0, 0]),
    ("float8", "-2.25", &[0xc0, 0x02, 0, 0, 0, 0, 0, 0]),
    ("numeric(10,3)", "12345.678", &[0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]),
    ("numeric(6,4)", "-0.0001", &[0, 1, 0xff, 0xff, 0x40, 0, 0, 4, 0, 1]),
    ("text", "naïve", "naïve".as_bytes()),
    ("varchar(5)", "abc", b"abc"),
    ("bytea", "\\x00ff", &[0, 255]),
    ("date", "2000-01-02", &[0, 0, 0, 1]),
    ("time", "00:00:01", &[0, 0, 0, 0, 0, 0x0f, 0x42, 0x40]),
    ("timestamp", "1999-12-31 23:59:59", &[0xff, 0xff, 0xff, 0xff, 0xff, 0xf0, 0xbd, 0xc0]),
    ("timestamptz", "2000-01-01 00:00:01+00", &[0, 0, 0, 0, 0, 0x0f, 0x42, 0x40]),
    (
        "uuid",
        "00112233-4455-6677-8899-aabbccddeeff",
        &[0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff],
    ),
];

/// A type of a key, a value of it, and constants to compare it with.
const COMPARED: &[(&str, &str, &[&str])] = &[
    ("int4", "1", &["1", "1.0", "1.5", "1e0", "'1'", "1::int8", "2147483648", "-1", "NULL", "1 + 0", "'1'::numeric"]),
    ("int8", "9007199254740993", &["9007199254740993", "9007199254740992", "9007199254740993.0", "9007199254740993::float8"]),
    ("float8", "0.1", &["0.1", "'0.1'", "0.1::float4", "1e-1"]),
    ("float8", "9007199254740992", &["9007199254740993", "9007199254740993::int8", "9007199254740992", "9007199254740991"]),
    ("float4", "0.1", &["0.1", "0.1::float4", "'0.1'", "0.1::float8"]),
    ("float4", "16777216", &["16777217", "16777216", "16777217::int8", "16777217::float8"]),
    ("numeric(30, 20)", "0.1", &["0.1", "0.1::float8", "0.10000000000000000555", "0.1::float4"]),
    ("float8", "'NaN'", &["'NaN'", "'NaN'::float8", "1"]),
    ("float8", "0", &["0", "-0.0", "'-0'::float8"]),
    ("float4", "0", &["0", "'-0'::float4"]),
    ("char(5)", "'abc'", &["'abc'", "'abc  '", "'abc  '::text", "'abcdef'"]),
    ("bytea", "'a'", &["'a'", "'b'"]),
    ("time", "'01:02:03'", &["'01:02:03'", "'01:02:04'"]),
    ("uuid", "'00112233-4455-6677-8899-aabbccddeeff'", &["'00112233-4455-6677-8899-AABBCCDDEEFF'", "'00112233445566778899aabbccddeeff'"]),
    ("numeric(6, 2)", "1.50", &["1.5", "1.50", "1.500", "1.501", "'1.5'", "1.5::float8"]),
    ("text", "'a'", &["'a'", "'a '", "'A'", "'a'::varchar(1)", "'ab'::varchar(1)"]),
    ("varchar(3)", "'abc'", &["'abc'", "'abcd'", "'abc '"]),
    ("date", "'2026-01-02'", &["'2026-01-02'", "'2026-01-02'::timestamp", "'2026-01-02 12:00:00'::timestamp", "'2026-01-03'"]),
    ("timestamp", "'2026-01-02 03:04:05'", &["'2026-01-02 03:04:05'", "'2026-01-02'", "'2026-01-02'::date"]),
    ("timestamptz", "'2026-01-02 03:04:05+00'", &["'2026-01-02 03:04:05+00'", "'2026-01-02 04:04:05+01'", "'2026-01-02 03:04:05'"]),
    ("bool", "true", &["true", "(1 = 1)", "false"]),
];

#[tokio::test]
async fn a_row_found_by_its_key_alone_is_one_that_satisfies_the_condition() {
    let server = Server::start().await;
    let client = server.connect().await;
    let mut wrong = Vec::new();
    for (number, (ty, value, constants)) in COMPARED.iter().enumerate() {
        client.batch_execute(&format!("CREATE TABLE t{number} (k {ty} PRIMARY KEY, n int)")).await.expect("created");
        client.batch_execute(&format!("INSERT INTO t{number} VALUES ({value}, 7)")).await.expect("inserted");
        for constant in *constants {
            let conditions = [
                format!("k = {constant}"),
                format!("k <= {constant}"),
                format!("{constant} < k"),
                format!("k IN ({constant}, {constant})"),
            ];
            for condition in conditions {
                let found = strings(&client, &format!("SELECT n FROM t{number} WHERE {condition}")).await;
                // Of a condition within another nothing can be read off a key.
                let expected = strings(&client, &format!("SELECT n FROM t{number} WHERE ({condition}) IS TRUE")).await;
                if found != expected {
                    wrong.push(format!("{ty} {value}: {condition}: {found:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");

    // Zeros of either sign are one key.
    client.batch_execute("CREATE TABLE zeros (k float8 PRIMARY KEY, n int)").await.expect("created");
    client.batch_execute("INSERT INTO zeros VALUES (0, 7)").await.expect("inserted");
    let zeros = "('0'::float8, '-0'::float8)";
    assert_eq!(strings(&client, &format!("SELECT n FROM zeros WHERE k IN {zeros}")).await, ["7"]);
    assert_eq!(client.execute(&format!("UPDATE zeros SET k = k + 1 WHERE k IN {zeros}"), &[]).await.expect("updated"), 1);
}

#[tokio::test]
async fn every_type_travels_as_text_and_as_binary() {
    let server = Server::start().await;
    let client = server.connect().await;
    for (number, (ty, text, binary)) in VALUES.iter().enumerate() {
        client.batch_execute(&format!("CREATE TABLE t{number} (id int PRIMARY KEY, v {ty})")).await.expect(ty);
        client.batch_execute(&format!("INSERT INTO t{number} VALUES (1, '{text}')")).await.expect(ty);
        client.execute(&format!("INSERT INTO t{number} VALUES (2, $1)"), &[&Raw(binary.to_vec())]).await.expect(ty);
        client.execute(&format!("INSERT INTO t{number} VALUES (3, $1)"), &[&None::<Raw>]).await.expect(ty);
        let rows = client.query(&format!("SELECT v FROM t{number}"), &[]).await.expect(ty);
        let found: Vec<Option<Raw>> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, [Some(Raw(binary.to_vec())), Some(Raw(binary.to_vec())), None], "{ty}");
        assert_eq!(strings(&client, &format!("SELECT v FROM t{number} WHERE v IS NOT NULL")).await, [*text, *text], "{ty}");
        let found = client.query(&format!("SELECT id FROM t{number} WHERE v = $1"), &[&Raw(binary.to_vec())]).await.expect(ty);
        assert_eq!(found.len(), 2, "{ty}");
    }
}

#[tokio::test]
async fn parameters_have_the_type_of_the_column_they_meet() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE t (id int8 PRIMARY KEY, name varchar(9), price numeric(6,2), at timestamptz)")
        .await
        .expect("created");
    let types = async |sql: &str| client.prepare(sql).await.expect(sql).params().to_vec();
    assert_eq!(types("INSERT INTO t VALUES ($1, $2, $3, $4)").await, [Type::INT8, Type::TEXT, Type::NUMERIC, Type::TIMESTAMPTZ]);
    assert_eq!(types("UPDATE t SET price = price * $2 WHERE id = $1").await, [Type::INT8, Type::NUMERIC]);
    assert_eq!(types("SELECT * FROM t WHERE name = $1 LIMIT $2").await, [Type::TEXT, Type::INT8]);
    assert_eq!(types("SELECT count(*) FROM t a JOIN t b ON a.id = b.id WHERE a.at > $1").await, [Type::TIMESTAMPTZ]);
    assert_eq!(types("SELECT $1, $2::int4").await, [Type::TEXT, Type::INT4]);
}

#[tokio::test]
async fn malformed_values_are_refused() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, name varchar(2))").await.expect("created");
    assert_eq!(code(client.execute("INSERT INTO t VALUES ($1, 'a')", &[&Raw(vec![1])]).await), "22P03");
    assert_eq!(code(client.execute("INSERT INTO t VALUES (1, $1)", &[&Raw(vec![0xff])]).await), "22021");
    assert_eq!(code(client.execute("INSERT INTO t VALUES (1, 'abc')", &[]).await), "22001");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES ('one', 'a')").await), "22P02");
}

#[tokio::test]
async fn a_series_is_named_as_its_function_or_alias() {
    let server = Server::start().await;
    let client = server.connect().await;
    assert_eq!(strings(&client, "SELECT generate_series FROM generate_series(1, 3)").await, ["1", "2", "3"]);
    assert_eq!(strings(&client, "SELECT sum(g) FROM generate_series(10, 1, -3) AS g").await, ["22"]);
    assert_eq!(
        strings(&client, "SELECT i * j FROM pg_catalog.generate_series(1, 2) AS a (i), generate_series(5, 5) AS b (j)").await,
        ["5", "10"]
    );
    assert_eq!(strings(&client, "SELECT * FROM GENERATE_SERIES(1, 1)").await, ["1"]);
    client
        .batch_execute("CREATE TABLE generate_series (n int PRIMARY KEY); INSERT INTO generate_series VALUES (5)")
        .await
        .expect("a table");
    assert_eq!(strings(&client, "SELECT max(n) FROM generate_series").await, ["5"]);
    client.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY, u uuid DEFAULT gen_random_uuid())").await.expect("created");
    client.batch_execute("INSERT INTO t (id) SELECT g FROM generate_series(1, 1000) g").await.expect("inserted");
    assert_eq!(strings(&client, "SELECT count(*), count(DISTINCT u), max(length(u::text)) FROM t").await, ["1000", "1000", "36"]);
    let rows = client.query("SELECT gen_random_uuid()", &[]).await.expect("a row");
    assert_eq!((rows[0].columns()[0].name(), rows[0].columns()[0].type_().name()), ("gen_random_uuid", "uuid"));
}
