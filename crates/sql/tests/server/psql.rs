//! psql, where it is installed.

use crate::support::Server;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What psql prints for these commands: standard output, then standard error. `None`: it is not installed.
async fn psql(server: &Server, input: &str) -> Option<String> {
    let port = server.address.port().to_string();
    let mut child = Command::new("psql")
        .args(["-X", "-q", "-h", "127.0.0.1", "-p", &port, "-U", "tester", "-d", "rhumb", "-P", "border=1"])
        .env("PAGER", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).await.expect("sent");
    drop(stdin);
    let output = child.wait_with_output().await.expect("psql ran");
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[tokio::test]
async fn psql_prints_what_it_prints_with_postgresql() {
    let server = Server::start().await;
    let input = "CREATE TABLE t (id int PRIMARY KEY, price numeric(6,2));
INSERT INTO t VALUES (1, 2.5), (2, NULL);
SELECT * FROM t;
UPDATE t SET price = 3 WHERE id = 2 RETURNING id, price AS new;
SELEC 1;
\\copy t FROM STDIN
3\t4.25
\\.
SELECT count(*), sum(price) FROM t;
";
    let Some(printed) = psql(&server, input).await else { return };
    let expected = " id | price \n----+-------\n  1 |  2.50\n  2 |      \n(2 rows)\n
 id | new  \n----+------\n  2 | 3.00\n(1 row)\n
 count | sum  \n-------+------\n     3 | 9.75\n(1 row)\n
ERROR:  syntax error at or near \"SELEC\"\nLINE 1: SELEC 1;\n        ^\n";
    let printed: Vec<&str> = printed.lines().filter(|line| !line.starts_with("HINT:")).collect();
    assert_eq!(printed, expected.lines().collect::<Vec<_>>());
}

#[tokio::test]
async fn psql_describes_tables() {
    let server = Server::start().await;
    let input = "CREATE TABLE items (shop int, id int, name text NOT NULL, price numeric(6,2) DEFAULT 1, PRIMARY KEY (shop, id));
CREATE UNIQUE INDEX items_name ON items (name);
ALTER TABLE items ADD CONSTRAINT cheap CHECK (price < 100), ADD UNIQUE (price);
\\dt
\\d items
";
    let Some(printed) = psql(&server, input).await else { return };
    let expected = "        List of relations
 Schema | Name  | Type  | Owner  \n--------+-------+-------+--------
 public | items | table | tester
(1 row)

                  Table \"public.items\"
 Column |     Type     | Collation | Nullable | Default \n--------+--------------+-----------+----------+---------
 shop   | integer      |           | not null | \n id     | integer      |           | not null | \n name   | text         |           | not null | \n price  | numeric(6,2) |           |          | 1
Indexes:
    \"items_pkey\" PRIMARY KEY, btree (shop, id)
    \"items_name\" UNIQUE, btree (name)
    \"items_price_key\" UNIQUE CONSTRAINT, btree (price)
Check constraints:
    \"cheap\" CHECK (price < 100)

";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn psql_lists_procedures() {
    let server = Server::start().await;
    let input = "CREATE TABLE t (id int PRIMARY KEY, n numeric(6,2));
CREATE PROCEDURE pay(amount numeric(6,2), payer int) LANGUAGE SQL AS $$ UPDATE t SET n = n - amount WHERE id = payer; $$;
CREATE PROCEDURE none() BEGIN ATOMIC DELETE FROM t WHERE id = 1; DELETE FROM t WHERE id = 2; END;
\\df
\\df pa*
";
    let Some(printed) = psql(&server, input).await else { return };
    let head = "                           List of functions
 Schema | Name | Result data type |     Argument data types      | Type 
--------+------+------------------+------------------------------+------
";
    let none = " public | none |                  |                              | proc\n";
    let pay = " public | pay  |                  | IN amount numeric, IN payer integer | proc\n";
    let words = |text: &str| text.split_whitespace().filter(|word| !word.contains("---")).map(str::to_owned).collect::<Vec<_>>();
    let expected = format!("{head}{none}{pay}(2 rows)\n\n{head}{pay}(1 row)\n\n");
    assert_eq!(words(&printed), words(&expected), "{printed}");
}

#[tokio::test]
async fn psql_speaks_of_quotas() {
    let server = Server::start().await;
    let input = "\\set QUIET off
CREATE QUOTA vm LIMIT 5;
ALTER QUOTA vm LIMIT 10;
SELECT acquire('vm', 4), acquire('vm', 7);
SELECT name, token_limit, tokens_left, held FROM rhumb.quotas;
DROP QUOTA vm;
\\d
";
    let Some(printed) = psql(&server, input).await else { return };
    let expected = "CREATE QUOTA
ALTER QUOTA
 name | token_limit | tokens_left | held 
------+-------------+-------------+------
 vm   |          10 |           6 |    4
(1 row)

DROP QUOTA
ERROR:  the limit of quota vm does not allow 7 more
DETAIL:  The call before it in the same statement was done: acquire('vm', 4).
HINT:  Acquire fewer, wait until others release, or raise the limit with ALTER QUOTA.
Did not find any relations.
";
    assert_eq!(printed, expected);
}
