//! Arrays: as columns, as parameters in both formats, and in expressions.

use crate::support::{Server, code, strings};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

async fn check(client: &Client, sql: &str, expected: &[&str]) {
    assert_eq!(strings(client, sql).await, expected, "{sql}");
}

#[tokio::test]
async fn columns_hold_arrays() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (k int PRIMARY KEY, n int[], words varchar(5)[] DEFAULT '{a,b}', seen timestamptz[], amounts numeric(6, 2)[] NOT NULL DEFAULT '{}');
             INSERT INTO t (k, n) VALUES (1, '{1,2,NULL}'), (2, ARRAY[3, 4]), (3, NULL);
             INSERT INTO t VALUES (4, ARRAY[]::int[], '{\"x y\",NULL}', '{2024-01-02 03:04:05+00}', ARRAY[1.5, 2])",
        )
        .await
        .expect("made");
    check(
        &client,
        "SELECT * FROM t ORDER BY k",
        &[
            "1",
            "{1,2,NULL}",
            "{a,b}",
            "NULL",
            "{}",
            "2",
            "{3,4}",
            "{a,b}",
            "NULL",
            "{}",
            "3",
            "NULL",
            "{a,b}",
            "NULL",
            "{}",
            "4",
            "{}",
            "{\"x y\",NULL}",
            "{\"2024-01-02 03:04:05+00\"}",
            "{1.50,2.00}",
        ],
    )
    .await;
    client.batch_execute("UPDATE t SET n = n || 9, words = array_append(words, 'c') WHERE k <= 2").await.expect("changed");
    check(&client, "SELECT n, words FROM t WHERE k <= 2 ORDER BY k", &["{1,2,NULL,9}", "{a,b,c}", "{3,4,9}", "{a,b,c}"]).await;
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (5, NULL, '{toolong}')").await), "22001");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (5, '{1,x}')").await), "22P02");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (5, '{{1},{2}}')").await), "0A000");
    assert_eq!(code(client.batch_execute("INSERT INTO t VALUES (5, 'one')").await), "22P02");
    for sql in ["CREATE TABLE u (n int[] PRIMARY KEY)", "CREATE INDEX ON t (n)", "ALTER TABLE t ADD UNIQUE (words)"] {
        assert_eq!(code(client.batch_execute(sql).await), "0A000", "{sql}");
    }
    client.batch_execute("ALTER TABLE t ADD more text[] DEFAULT '{new}'; ALTER TABLE t ALTER n TYPE bigint[]").await.expect("altered");
    check(&client, "SELECT n, more FROM t WHERE k = 2", &["{3,4,9}", "{new}"]).await;
}

#[tokio::test]
async fn arrays_are_parameters_and_results_in_both_formats() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (k int PRIMARY KEY, n bigint[], words text[])").await.expect("made");
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3)").await.expect("prepared");
    assert_eq!(insert.params()[1..], [Type::INT8_ARRAY, Type::TEXT_ARRAY]);
    let (numbers, words) = (vec![Some(1_i64), None, Some(-3)], vec!["a".to_string(), "b\"c".to_string(), String::new()]);
    client.execute(&insert, &[&1, &numbers, &words]).await.expect("inserted");
    client.execute(&insert, &[&2, &Vec::<i64>::new(), &None::<Vec<String>>]).await.expect("inserted");
    let row = client.query_one("SELECT n, words FROM t WHERE k = 1", &[]).await.expect("found");
    assert_eq!((row.get::<_, Vec<Option<i64>>>(0), row.get::<_, Vec<String>>(1)), (numbers, words));
    let row = client.query_one("SELECT n, words FROM t WHERE k = 2", &[]).await.expect("found");
    assert_eq!((row.get::<_, Vec<i64>>(0), row.get::<_, Option<Vec<String>>>(1)), (vec![], None));
    for sql in ["SELECT k FROM t WHERE k = ANY($1) ORDER BY k", "SELECT k FROM t WHERE k = ANY ($1::int[]) ORDER BY k"] {
        let statement = client.prepare(sql).await.expect(sql);
        assert_eq!(statement.params(), [Type::INT4_ARRAY], "{sql}");
        let found = client.query(&statement, &[&vec![2, 7, 1, 2]]).await.expect(sql);
        assert_eq!(found.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [1, 2], "{sql}");
        assert!(client.query(&statement, &[&Vec::<i32>::new()]).await.expect(sql).is_empty());
        assert!(client.query(&statement, &[&None::<Vec<i32>>]).await.expect(sql).is_empty());
        let many: Vec<i32> = (1..10_000).collect();
        assert_eq!(client.query(&statement, &[&many]).await.expect("more keys than are looked up one by one").len(), 2);
    }
    client.batch_execute("CREATE TABLE pairs (k int, w text)").await.expect("made");
    let inserted =
        client.query("INSERT INTO pairs SELECT * FROM UNNEST($1::int[], $2::text[]) RETURNING k", &[&vec![5, 6], &vec!["x", "y"]]).await;
    assert_eq!(inserted.expect("inserted").len(), 2);
    check(&client, "SELECT * FROM pairs ORDER BY k", &["5", "x", "6", "y"]).await;
}

/// Expressions, and what they print as.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("ARRAY[1, 2, 3]", "{1,2,3}"),
    ("'{1,2}'::int[]", "{1,2}"),
    ("'{a,\"b c\"}'::text[]", "{a,\"b c\"}"),
    ("CAST('{}' AS bigint[])", "{}"),
    ("(ARRAY[1, 2, 3])[2]", "2"),
    ("(ARRAY[1, 2, 3])[4]", "NULL"),
    ("(ARRAY[1, 2, 3])[2:3]", "{2,3}"),
    ("ARRAY[1] || ARRAY[2, 3]", "{1,2,3}"),
    ("ARRAY[1] || 2", "{1,2}"),
    ("0 || ARRAY[1]", "{0,1}"),
    ("ARRAY[1] || NULL::int[]", "{1}"),
    ("array_length(ARRAY[7, 8], 1)", "2"),
    ("array_length('{}'::int[], 1)", "NULL"),
    ("array_length(ARRAY[7, 8], 2)", "NULL"),
    ("array_upper(ARRAY[7, 8], 1)", "2"),
    ("array_lower(ARRAY[7, 8], 1)", "1"),
    ("cardinality('{}'::int[])", "0"),
    ("cardinality(NULL::int[])", "NULL"),
    ("array_position(ARRAY['a', 'b', 'a'], 'a')", "1"),
    ("array_position(ARRAY['a', 'b', 'a'], 'a', 2)", "3"),
    ("array_position(ARRAY['a', 'b'], 'c')", "NULL"),
    ("array_positions(ARRAY[1, 2, 1], 1)", "{1,3}"),
    ("array_remove(ARRAY[1, 2, 1, NULL], 1)", "{2,NULL}"),
    ("array_replace(ARRAY[1, 2, 1], 1, 5)", "{5,2,5}"),
    ("array_prepend(0, ARRAY[1])", "{0,1}"),
    ("array_cat(ARRAY[1], ARRAY[2])", "{1,2}"),
    ("array_to_string(ARRAY[1, NULL, 3], ',')", "1,3"),
    ("array_to_string(ARRAY[1, NULL, 3], ',', '*')", "1,*,3"),
    ("string_to_array('a,b,,c', ',')", "{a,b,\"\",c}"),
    ("string_to_array('a,b,,c', ',', '')", "{a,b,NULL,c}"),
    ("string_to_array('ab', NULL)", "{a,b}"),
    ("string_to_array('', ',')", "{}"),
    ("ARRAY[1, 2] @> ARRAY[2]", "t"),
    ("ARRAY[1, 2] <@ ARRAY[2]", "f"),
    ("ARRAY[1, NULL] @> ARRAY[NULL::int]", "f"),
    ("ARRAY[1, 2] && ARRAY[2, 3]", "t"),
    ("ARRAY[1, 2] && '{4}'", "f"),
    ("ARRAY[1, 2] = '{1,2}'", "t"),
    ("ARRAY[1, 2] <> ARRAY[1, 2]", "f"),
    ("1 = ANY ('{1,2}'::int[])", "t"),
    ("3 = ANY ('{1,2}'::int[])", "f"),
    ("3 = ANY ('{1,NULL}'::int[])", "NULL"),
    ("NULL::int = ANY ('{}'::int[])", "f"),
    ("1 = ANY (NULL::int[])", "NULL"),
    ("3 <> ALL ('{1,2}'::int[])", "t"),
    ("1 <> ALL ('{1,2}'::int[])", "f"),
    ("3 <> ALL ('{1,NULL}'::int[])", "NULL"),
    ("2 > ALL ('{1,0}'::int[])", "t"),
    ("ARRAY[1, 2]::text", "{1,2}"),
    ("ARRAY['a b', NULL]::text", "{\"a b\",NULL}"),
    ("ARRAY[1, 2]::text[]", "{1,2}"),
    ("ARRAY['1', '2']::int[]", "{1,2}"),
    ("ARRAY[1] || 2.5", "{1,2.5}"),
    ("ARRAY[1, 2] || NULL", "{1,2}"),
    ("NULL || ARRAY[1, 2]", "{1,2}"),
    ("ARRAY[1] || '{2,3}'", "{1,2,3}"),
    ("ARRAY[1] || '2'::int", "{1,2}"),
    ("COALESCE(NULL::int[], '{1}') || 2", "{1,2}"),
    ("CASE WHEN 1 = 1 THEN ARRAY[1] ELSE '{}'::int[] END || 2", "{1,2}"),
    ("COALESCE(NULL::text[], '{}')", "{}"),
    ("NULLIF(ARRAY[1], ARRAY[1])", "NULL"),
    ("COALESCE('{}', ARRAY[1])", "{}"),
    ("ARRAY[1] || ARRAY[2] || 3 || ARRAY[4.5]", "{1,2,3,4.5}"),
    ("array_cat(ARRAY[1], '{2,3}')", "{1,2,3}"),
    ("array_append('{1}', 2)", "{1,2}"),
    ("array_append(NULL, 2)", "{2}"),
    ("array_append(ARRAY[1], '2')", "{1,2}"),
    ("array_append(ARRAY[1], NULL)", "{1,NULL}"),
    ("array_replace(ARRAY[1, NULL], NULL, 2.5)", "{1,2.5}"),
    ("ARRAY[1, '2']", "{1,2}"),
    ("ARRAY['2024-01-02'::date, '2024-01-03']", "{2024-01-02,2024-01-03}"),
    ("1 = ANY (ARRAY[1.5, 1.0])", "t"),
    ("1 = ANY ('{1.5,1.0}'::numeric[])", "t"),
    ("1.5 = ANY ('{1,2}'::int[])", "f"),
    ("2 = ANY (ARRAY[1.5] || 2)", "t"),
    ("'2024-01-02 03:04:05' = ANY ('{2024-01-02 03:04:05}'::timestamp[])", "t"),
    ("array_position('{2024-01-02}'::date[], '2024-01-02')", "1"),
    ("array_position(ARRAY[1, 2], 2.0)", "2"),
    ("array_remove(ARRAY[1, 2], 2.5)", "{1,2}"),
    ("1 <> ANY ('{1,1}'::int[])", "f"),
    ("1 <> ANY ('{1,2}'::int[])", "t"),
    ("1 < ANY ('{1,NULL}'::int[])", "NULL"),
    ("1 <= ANY ('{1,NULL}'::int[])", "t"),
    ("1 >= ALL ('{1,NULL}'::int[])", "NULL"),
    ("1 > ALL ('{1,NULL}'::int[])", "f"),
    ("1 > ALL ('{}'::int[])", "t"),
    ("1 = ANY (NULL)", "NULL"),
    ("ARRAY[1, NULL] < ARRAY[1, 2]", "f"),
    ("ARRAY[1, NULL] > ARRAY[1, 2]", "t"),
    ("ARRAY[1, NULL] = ARRAY[1, NULL]", "t"),
    ("ARRAY[1] < ARRAY[1, 2]", "t"),
    ("ARRAY[1, 2] >= '{1,2}'", "t"),
    ("ARRAY[1, 2] @> ARRAY[2.0]", "t"),
    ("ARRAY[1, 2] && ARRAY[2.5]", "f"),
    ("ARRAY[1, 2] IN ('{1,2}', '{3}')", "t"),
    ("'{1,2}'::numeric[]", "{1,2}"),
    ("(ARRAY[1.50, 2])[1]", "1.50"),
    ("('{1.5,2}'::numeric[])[1]", "1.5"),
    ("(ARRAY[1, 2])[1::smallint]", "1"),
    ("(ARRAY[1, 2])[1.6]", "2"),
    ("'0'::float8 = ANY ('{-0}'::float8[])", "t"),
    ("'{0}'::float8[] @> '{-0}'", "t"),
    ("array_position('{-0}'::float8[], '0')", "1"),
    ("2 = ALL ('{2,2}'::int[])", "t"),
    ("2 = ALL ('{2,3}'::int[])", "f"),
    ("2 = ALL ('{2,NULL}'::int[])", "NULL"),
    ("3 > ANY ('{9,1,5}'::int[])", "t"),
    ("3 < ALL ('{9,4,5}'::int[])", "t"),
    ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid = ANY (ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid])", "t"),
    ("'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid[] @> ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid]", "t"),
    ("array_to_string('{1.5,2}'::numeric[], ',')", "1.5,2"),
    ("'{1.5,2}'::numeric[]::text", "{1.5,2}"),
    ("'{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}'::uuid[]", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"),
];

#[tokio::test]
async fn functions_and_operators_are_those_of_postgresql() {
    let server = Server::start().await;
    let client = server.connect().await;
    for (expression, value) in EXPRESSIONS {
        check(&client, &format!("SELECT {expression}"), &[*value]).await;
        // The same where it is no constant.
        check(&client, &format!("SELECT {expression} FROM generate_series(1, 2) AS g (n) WHERE n = 2"), &[*value]).await;
    }
    for (sql, state) in [
        ("SELECT array_length(5, 1)", "42804"),
        ("SELECT array_append(ARRAY[1])", "42883"),
        ("SELECT 1 = ANY (2)", "42809"),
        ("SELECT ARRAY['a'] || 'x'", "22P02"),
        ("SELECT ARRAY[1] || 'x'::text", "42883"),
        ("SELECT 'x'::text = ANY ('{1}'::int[])", "42883"),
        ("SELECT array_append(ARRAY[1], ARRAY[2])", "0A000"),
        ("SELECT array_append(1, 2)", "42804"),
        ("SELECT array_position(ARRAY[1], 1, NULL)", "22004"),
        ("SELECT array_position(ARRAY[1], 'x')", "22P02"),
        ("SELECT cardinality('{1,2}')", "42804"),
        ("SELECT '{1'::int[]", "22P02"),
        ("SELECT ARRAY[[1], [2]]", "0A000"),
        ("SELECT array_agg(ARRAY[n]) FROM generate_series(1, 2) AS g (n)", "0A000"),
    ] {
        let error = client.simple_query(sql).await.expect_err(sql);
        assert_eq!(error.code().map(|code| code.code()), Some(state), "{sql}");
    }
    // What WITH names has no primary key, whatever it is called.
    client.batch_execute("CREATE TABLE t (k int PRIMARY KEY, v int)").await.expect("made");
    client.simple_query("WITH t AS (SELECT 1 AS k, 2 AS v) SELECT k, v FROM t GROUP BY k").await.expect_err("v is not grouped by");
    client.simple_query("SELECT k, v FROM t GROUP BY k").await.expect("v depends on k");
}

#[tokio::test]
async fn parameters_take_the_types_that_arrays_ask_for() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (k int PRIMARY KEY, n int[], tags text[])").await.expect("made");
    for (sql, types) in [
        ("SELECT k FROM t WHERE $1 = ANY (n)", vec![Type::INT4]),
        ("SELECT k FROM t WHERE k = ANY (ARRAY[$1, $2]::int[])", vec![Type::INT4, Type::INT4]),
        ("SELECT array_append(n, $1) FROM t", vec![Type::INT4]),
        ("SELECT array_position(n, $1) FROM t", vec![Type::INT4]),
        ("SELECT tags || $1 FROM t", vec![Type::TEXT_ARRAY]),
        ("SELECT tags || $1::text FROM t", vec![Type::TEXT]),
        ("SELECT k FROM t WHERE tags @> $1 AND n && $2", vec![Type::TEXT_ARRAY, Type::INT4_ARRAY]),
        ("SELECT COALESCE(n, $1) FROM t", vec![Type::INT4_ARRAY]),
        ("SELECT n[$1], n[$2:$3], array_length(n, $4) FROM t", vec![Type::INT4, Type::INT4, Type::INT4, Type::INT4]),
        ("SELECT array_to_string(tags, $1) FROM t", vec![Type::TEXT]),
        ("UPDATE t SET n = array_append(n, $1) WHERE k = ANY ($2)", vec![Type::INT4, Type::INT4_ARRAY]),
        ("UPDATE t SET n = n || $1 WHERE n = $2", vec![Type::INT4_ARRAY, Type::INT4_ARRAY]),
    ] {
        let statement = client.prepare(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        assert_eq!(statement.params(), types, "{sql}");
    }
}

#[tokio::test]
async fn a_long_array_is_looked_through_for_many_rows() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT n, n FROM generate_series(1, 5000) AS g (n)")
        .await
        .expect("made");
    let many: Vec<i32> = (1..300_000).map(|n| n * 2).collect();
    for (sql, count) in [
        ("SELECT k FROM t WHERE v = ANY ($1)", 2500),
        ("SELECT k FROM t WHERE k = ANY ($1)", 2500),
        ("SELECT k FROM t WHERE v > ALL ($1)", 0),
        ("UPDATE t SET v = v WHERE v = ANY ($1) RETURNING k", 2500),
        ("SELECT k FROM t WHERE v = ANY ($1) AND v + 1 <> ALL ($1)", 2500),
    ] {
        assert_eq!(client.query(sql, &[&many]).await.expect(sql).len(), count, "{sql}");
    }
}

/// What takes little to say takes little to hold, or is refused.
#[tokio::test]
async fn arrays_are_bounded() {
    let server = Server::start().await;
    let client = server.connect().await;
    let many = "string_to_array(repeat('x', 1000000), NULL)";
    let sum: Vec<String> = (0..40).map(|_| format!("cardinality({many})")).collect();
    for (sql, state) in [
        ("SELECT string_to_array(repeat('x', 2000000), NULL)".to_owned(), "54000"),
        (format!("SELECT {many} || {many}"), "54000"),
        (format!("SELECT array_to_string({many}, repeat('y', 1000000))"), "54000"),
        (format!("SELECT array_replace({many}, 'x', repeat('y', 1000000))"), "54000"),
        (
            format!(
                "SELECT {} FROM (SELECT repeat('y', 1000000) AS x) AS s",
                vec![format!("ARRAY[{}]", vec!["x"; 100].join(", ")); 10].join(", ")
            ),
            "54000",
        ),
        (format!("SELECT {}", sum.join(" + ")), "54000"),
        (
            "SELECT count(*) FROM generate_series(1, 1000) AS g (n) WHERE cardinality(string_to_array(repeat('x', 10000 + n % 2), NULL)) > 5".to_owned(),
            "54000",
        ),
    ] {
        assert_eq!(code(client.simple_query(&sql).await), state, "{sql}");
    }
    check(&client, &format!("SELECT cardinality({many})"), &["1000000"]).await;
    check(
        &client,
        "SELECT count(*) FROM generate_series(1, 1000) AS g (n) WHERE n = ANY (string_to_array(repeat('7', 9999), NULL)::int[])",
        &["1"],
    )
    .await;
}

#[tokio::test]
async fn the_type_of_a_key_cannot_become_an_array() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (k text PRIMARY KEY, v text); INSERT INTO t VALUES ('{1}', '{2}')").await.expect("made");
    assert_eq!(code(client.batch_execute("ALTER TABLE t ALTER k TYPE int[] USING k::int[]").await), "0A000");
    client.batch_execute("ALTER TABLE t ALTER v TYPE int[] USING v::int[]").await.expect("altered");
    check(&client, "SELECT t.v[1], k FROM t", &["2", "{1}"]).await;
}

#[tokio::test]
async fn queries_become_arrays() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'b'), (2, 'a')").await.expect("made");
    check(&client, "SELECT ARRAY(SELECT v FROM t ORDER BY v), ARRAY(SELECT k FROM t WHERE k > 5)", &["{a,b}", "{}"]).await;
    check(&client, "SELECT ARRAY(SELECT v FROM t ORDER BY k DESC) || 'x'::text", &["{a,b,x}"]).await;
}

/// Queries of `t`, and the fields of their rows.
const QUERIES: &[(&str, &[&str])] = &[
    (
        "SELECT k, tag FROM t LEFT JOIN LATERAL unnest(t.tags) AS u (tag) ON true WHERE k > 1 ORDER BY k, u.tag",
        &["2", "b", "2", "c", "3", "NULL", "4", "NULL"],
    ),
    ("SELECT u.* FROM t, unnest(t.tags) AS u (tag) WHERE k = 1 ORDER BY u.tag DESC", &["b", "a"]),
    ("SELECT t.*, u.* FROM t, unnest(t.tags) AS u (tag) WHERE k = 1 ORDER BY 3", &["1", "{a,b}", "a", "1", "{a,b}", "b"]),
    (
        "SELECT * FROM t, (SELECT 5 AS five) s, unnest(t.tags) u (tag) WHERE k = 1 ORDER BY tag",
        &["1", "{a,b}", "5", "a", "1", "{a,b}", "5", "b"],
    ),
    ("SELECT k FROM t, unnest(t.tags) u (tag) WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.k = 1) AND u.tag = 'c'", &["2"]),
    ("SELECT a, b, n FROM unnest(ARRAY[1], ARRAY['x', 'y']) WITH ORDINALITY u (a, b, n) ORDER BY n", &["1", "x", "1", "NULL", "y", "2"]),
    (
        "SELECT tag FROM t, unnest(t.tags) u (tag) WHERE k = 1 UNION SELECT u.tag FROM t, unnest(t.tags) u (tag) WHERE k = 2 ORDER BY 1",
        &["a", "b", "c"],
    ),
    (
        "SELECT t.k, s.k, tag FROM t LEFT JOIN t s ON s.k = t.k + 3, unnest(t.tags) u (tag) ORDER BY 1, 3",
        &["1", "4", "a", "1", "4", "b", "2", "NULL", "b", "2", "NULL", "c"],
    ),
    ("SELECT tags, count(*) FROM t GROUP BY tags ORDER BY tags", &["{}", "1", "{a,b}", "1", "{b,c}", "1", "NULL", "1"]),
    ("SELECT k FROM t ORDER BY tags DESC NULLS LAST", &["2", "1", "3", "4"]),
    ("SELECT max(tags) FROM t", &["{b,c}"]),
    ("SELECT COALESCE(array_agg(k), '{}') FROM t WHERE k > 9", &["{}"]),
    ("SELECT array_agg(k) || 9 FROM t WHERE k = 1", &["{1,9}"]),
    ("SELECT max(tags) || 'x'::text FROM t", &["{b,c,x}"]),
    ("SELECT k FROM t WHERE tags || 'z'::text = '{a,b,z}'", &["1"]),
    ("SELECT count(*) FROM t WHERE NOT ('b' = ANY (tags))", &["1"]),
    ("SELECT t.* FROM t, unnest(t.tags) AS x, unnest(t.tags) AS y WHERE k = 1 AND x = y ORDER BY x", &["1", "{a,b}", "1", "{a,b}"]),
    (
        "SELECT * FROM t, unnest(t.tags) AS x, unnest(t.tags) AS y WHERE k = 1 AND x <> y ORDER BY x",
        &["1", "{a,b}", "a", "b", "1", "{a,b}", "b", "a"],
    ),
    ("SELECT t.k, u.k FROM t, unnest(t.tags) AS u (k) WHERE t.k = 1 ORDER BY u.k", &["1", "a", "1", "b"]),
    ("SELECT k, count(*) FROM t, unnest(t.tags) AS tags GROUP BY k ORDER BY 1", &["1", "2", "2", "2"]),
    ("SELECT t.k FROM t, unnest(t.tags) u (name) WHERE EXISTS (SELECT 1 FROM (SELECT 'c' AS name) AS t WHERE t.name = u.name)", &["2"]),
    ("SELECT s.tag FROM (SELECT u.tag FROM t, unnest(t.tags) u (tag) WHERE k = 2) AS s ORDER BY 1", &["b", "c"]),
    ("SELECT t.k AS tag FROM t, unnest(t.tags) u (tag) WHERE k < 3 ORDER BY tag", &["1", "1", "2", "2"]),
    ("SELECT array_agg(v) FROM (SELECT k AS v FROM t ORDER BY k DESC) s", &["{4,3,2,1}"]),
    ("WITH t AS (SELECT 1 AS k, 2 AS v UNION ALL SELECT 1, 2) SELECT k, v, count(*) FROM t GROUP BY k, v", &["1", "2", "2"]),
    ("SELECT k FROM t WHERE cardinality(tags) = ALL (SELECT 0) AND tags IS NOT NULL", &["3"]),
];

#[tokio::test]
async fn arrays_become_rows_and_rows_arrays() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (k int PRIMARY KEY, tags text[]); INSERT INTO t VALUES (1, '{a,b}'), (2, '{b,c}'), (3, '{}'), (4, NULL)",
        )
        .await
        .expect("made");
    check(&client, "SELECT unnest(tags) FROM t WHERE k <= 2 ORDER BY 1", &["a", "b", "b", "c"]).await;
    check(
        &client,
        "SELECT tag, count(*) FROM (SELECT unnest(tags) AS tag FROM t) AS x GROUP BY tag ORDER BY tag",
        &["a", "1", "b", "2", "c", "1"],
    )
    .await;
    check(&client, "SELECT * FROM unnest(ARRAY[5, 6]) WITH ORDINALITY AS u (n, place)", &["5", "1", "6", "2"]).await;
    check(&client, "SELECT unnest FROM unnest('{x,y}'::text[])", &["x", "y"]).await;
    for join in [", unnest(t.tags) AS u (tag)", "CROSS JOIN LATERAL unnest(t.tags) u (tag)", "JOIN unnest(t.tags) AS u (tag) ON true"] {
        check(&client, &format!("SELECT t.k, u.tag FROM t {join} WHERE u.tag <> 'b' ORDER BY 1"), &["1", "a", "2", "c"]).await;
    }
    let numbered = "SELECT k, tag, place FROM t x, unnest(x.tags) WITH ORDINALITY u (tag, place) WHERE k = 2 ORDER BY place";
    check(&client, numbered, &["2", "b", "1", "2", "c", "2"]).await;
    for (sql, rows) in QUERIES {
        check(&client, sql, rows).await;
    }
    for sql in [
        "SELECT 1 FROM t LEFT JOIN t s ON s.k = t.k + 3, unnest(s.tags) u (tag)",
        "SELECT 1 FROM t RIGHT JOIN t s ON s.k = t.k + 3 CROSS JOIN unnest(t.tags) u (tag)",
        "SELECT 1 FROM t JOIN unnest(t.tags) u (tag) ON u.tag = 'a'",
        "SELECT generate_subscripts(tags, 2) FROM t",
        "SELECT tags[1:2][1] FROM t",
    ] {
        assert_eq!(code(client.simple_query(sql).await), "0A000", "{sql}");
    }
    check(&client, "SELECT array_agg(k ORDER BY k DESC) FROM t", &["{4,3,2,1}"]).await;
    check(&client, "SELECT k FROM t WHERE 'b' = ANY (tags) ORDER BY k", &["1", "2"]).await;
    check(&client, "SELECT k FROM t WHERE tags @> '{a,b}'", &["1"]).await;
    check(&client, "SELECT k FROM t WHERE tags = '{}'", &["3"]).await;
    check(&client, "SELECT DISTINCT tags FROM t WHERE k = 1", &["{a,b}"]).await;
    check(&client, "SELECT max(cardinality(tags)), count(tags) FROM t", &["2", "3"]).await;
    check(&client, "SELECT generate_subscripts(tags, 1) FROM t WHERE k = 1", &["1", "2"]).await;
}

#[tokio::test]
async fn tools_find_the_columns_of_keys() {
    let server = Server::start().await;
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE p (a int, b int, c text UNIQUE, PRIMARY KEY (b, a));
             CREATE TABLE q (id int PRIMARY KEY, x int, y int CHECK (y > 0), CONSTRAINT up FOREIGN KEY (y, x) REFERENCES p)",
        )
        .await
        .expect("made");
    check(
        &client,
        "SELECT conname, conkey, confkey FROM pg_constraint WHERE conrelid = 'q'::regclass ORDER BY conname",
        &["q_pkey", "{1}", "NULL", "q_y_check", "{3}", "NULL", "up", "{3,2}", "{2,1}"],
    )
    .await;
    check(
        &client,
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND oid <> ALL (SELECT tgrelid FROM pg_trigger) ORDER BY 1",
        &["p", "q"],
    )
    .await;
    check(&client, "SELECT relname FROM pg_class WHERE oid = ANY (SELECT tgrelid FROM pg_trigger)", &[]).await;
    check(&client, "SELECT typname, typelem FROM pg_type WHERE oid = 1007", &["_int4", "23"]).await;
    check(
        &client,
        "SELECT format_type(1015, 14), format_type(1007, -1) FROM pg_type WHERE oid = 16",
        &["character varying(10)[]", "integer[]"],
    )
    .await;
}
