//! Statements on rows, by key and by plan.

use crate::support::{Server, code, strings};

const ITEMS: &str = "CREATE TABLE items (shop int, id int, name text NOT NULL, price numeric(10,2), PRIMARY KEY (shop, id));
    CREATE UNIQUE INDEX items_name ON items (name);
    INSERT INTO items VALUES (1, 1, 'axe', 1.25), (1, 2, 'bow', 2.50), (1, 3, 'cup', NULL), (2, 1, 'dye', 4)";

#[tokio::test]
async fn a_row_is_inserted_read_changed_and_deleted() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute(ITEMS).await.expect("created");
    assert_eq!(client.execute("INSERT INTO items VALUES ($1, $2, $3, 1.5)", &[&3i32, &1i32, &"eel"]).await.expect("inserted"), 1);
    let row = client.query_one("SELECT name, price::text FROM items WHERE shop = $1 AND id = $2", &[&3i32, &1i32]).await.expect("a row");
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("eel", "1.50"));
    let update = "UPDATE items SET price = price + $2 WHERE shop = $1 AND id = 1";
    let price = "1".parse::<rust_decimal::Decimal>().expect("a number");
    let changed =
        client.query_typed(update, &[(&3i32, tokio_postgres::types::Type::INT4), (&price, tokio_postgres::types::Type::NUMERIC)]).await;
    assert_eq!(changed.expect("updated").len(), 0);
    assert_eq!(strings(&client, "SELECT price FROM items WHERE shop = 3").await, ["2.50"]);
    assert_eq!(client.execute("DELETE FROM items WHERE shop = 3 AND id = 1", &[]).await.expect("deleted"), 1);
    assert_eq!(strings(&client, "SELECT name FROM items WHERE shop = 3").await, [""; 0]);
}

#[tokio::test]
async fn keys_ranges_and_orders_find_the_right_rows() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute(ITEMS).await.expect("created");
    let cases: &[(&str, &[&str])] = &[
        ("SELECT name FROM items WHERE shop = 1 AND id = 2", &["bow"]),
        ("SELECT name FROM items WHERE shop = 1 AND id IN (3, 1, 9, 1) ORDER BY id", &["axe", "cup"]),
        ("SELECT name FROM items WHERE shop = 1 AND id > 1", &["bow", "cup"]),
        ("SELECT name FROM items WHERE shop = 1 AND id BETWEEN 1 AND 2 ORDER BY id DESC", &["bow", "axe"]),
        ("SELECT name FROM items WHERE shop = 1 ORDER BY id DESC LIMIT 1", &["cup"]),
        ("SELECT name FROM items WHERE shop = 1 ORDER BY id LIMIT 1 OFFSET 1", &["bow"]),
        ("SELECT name FROM items WHERE shop = 1 AND id > 1.5 AND id < 2.5", &["bow"]),
        ("SELECT name FROM items WHERE shop = 1 AND id BETWEEN 2 AND 3 AND id > 0 ORDER BY id LIMIT 1", &["bow"]),
        ("SELECT name FROM items WHERE shop = 1 AND id < 9 AND id BETWEEN 1 AND 2 ORDER BY id DESC LIMIT 1", &["bow"]),
        ("SELECT name FROM items WHERE shop = 1 AND id BETWEEN 1 AND 2 AND id < 9 ORDER BY id DESC LIMIT 1", &["bow"]),
        ("SELECT name FROM items WHERE id = 1 ORDER BY shop", &["axe", "dye"]),
        ("SELECT name FROM items WHERE name = 'dye'", &["dye"]),
        ("SELECT name FROM items WHERE name >= 'b' AND name < 'd'", &["bow", "cup"]),
        ("SELECT name FROM items WHERE shop = NULL", &[]),
        ("SELECT name FROM items WHERE shop = 1 AND id = 2 AND price > 100", &[]),
        ("SELECT name FROM items WHERE price IS NULL", &["cup"]),
        ("SELECT upper(name) || '!' FROM items WHERE shop = 2 AND id = 1", &["DYE!"]),
        ("SELECT name FROM items ORDER BY price DESC NULLS LAST LIMIT 2", &["dye", "bow"]),
        ("SELECT count(*) FROM items", &["4"]),
        ("SELECT sum(price) FROM items WHERE shop = 1", &["3.75"]),
        ("SELECT shop FROM items GROUP BY shop HAVING count(*) > 1", &["1"]),
        ("SELECT a.name FROM items a JOIN items b ON a.id = b.id AND a.shop < b.shop", &["axe"]),
        ("SELECT name FROM items WHERE price = (SELECT max(price) FROM items)", &["dye"]),
        ("WITH cheap AS (SELECT * FROM items WHERE price < 2) SELECT name FROM cheap", &["axe"]),
        ("SELECT coalesce(price, 0) + 1 FROM items WHERE shop = 1 AND id = 3", &["1.00"]),
        ("SELECT nullif(name, 'axe') FROM items WHERE shop = 1 AND id = 1", &["NULL"]),
        ("SELECT CASE WHEN price > 2 THEN 'dear' ELSE 'cheap' END FROM items WHERE shop = 1 AND id < 3", &["cheap", "dear"]),
        ("SELECT 1 UNION ALL SELECT 2 ORDER BY 1 DESC", &["2", "1"]),
        ("SELECT i.name FROM public.items AS i WHERE i.shop = 2", &["dye"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(strings(&client, sql).await, *expected, "{sql}");
    }
}

#[tokio::test]
async fn inserts_settle_conflicts_and_return_rows() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute(ITEMS).await.expect("created");
    let again = "INSERT INTO items VALUES (1, 1, 'ash', 9)";
    assert_eq!(code(client.execute(again, &[]).await), "23505");
    assert_eq!(client.execute(&format!("{again} ON CONFLICT DO NOTHING"), &[]).await.expect("left out"), 0);
    let upsert = format!(
        "{again} ON CONFLICT (shop, id) DO UPDATE SET name = excluded.name, price = items.price + excluded.price RETURNING name, price"
    );
    assert_eq!(strings(&client, &upsert).await, ["ash", "10.25"]);
    let kept = format!("{again} ON CONFLICT (shop, id) DO UPDATE SET price = 0 WHERE items.price > 100");
    assert_eq!(client.execute(&kept, &[]).await.expect("left alone"), 0);
    assert_eq!(code(client.execute("INSERT INTO items VALUES (9, 9, 'bow', 1) ON CONFLICT (shop, id) DO NOTHING", &[]).await), "23505");
    assert_eq!(code(client.execute("INSERT INTO items (shop, id) VALUES (9, 9)", &[]).await), "23502");
    assert_eq!(code(client.execute("INSERT INTO items VALUES (1, 2, 3, 4, 5)", &[]).await), "42601");
    let twice = "INSERT INTO items VALUES (5, 5, 'x', 1), (5, 5, 'y', 2)";
    assert_eq!(code(client.execute(twice, &[]).await), "23505");
    let copied = "INSERT INTO items SELECT shop + 10, id, name || '2', price FROM items WHERE shop = 1 RETURNING id";
    assert_eq!(strings(&client, copied).await.len(), 3);
    assert_eq!(client.execute("INSERT INTO items SELECT 1, 1, 'fig', 1, 1", &[]).await.err().map(|_| ()), Some(()));
    assert_eq!(client.execute("INSERT INTO items SELECT 8, 8, 'fig', 8", &[]).await.expect("inserted"), 1);
}

#[tokio::test]
async fn updates_and_deletes_take_any_condition() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute(ITEMS).await.expect("created");
    let doubled = "UPDATE items SET price = price * 2 WHERE price IS NOT NULL AND name <> 'dye' RETURNING name, price";
    assert_eq!(strings(&client, doubled).await, ["axe", "2.50", "bow", "5.00"]);
    let moved = "UPDATE items SET shop = 7 WHERE shop = 2 AND id = 1";
    assert_eq!(client.execute(moved, &[]).await.expect("moved"), 1);
    assert_eq!(strings(&client, "SELECT name FROM items WHERE shop = 7 AND id = 1").await, ["dye"]);
    let largest = "UPDATE items SET price = 0 WHERE price = (SELECT max(price) FROM items)";
    assert_eq!(client.execute(largest, &[]).await.expect("changed"), 1);
    assert_eq!(strings(&client, "SELECT name FROM items WHERE price = 0").await, ["bow"]);
    let joined = "UPDATE items SET price = other.price + 1 FROM items other WHERE items.name = 'cup' AND other.name = 'dye'";
    assert_eq!(client.execute(joined, &[]).await.expect("changed"), 1);
    assert_eq!(strings(&client, "SELECT price FROM items WHERE name = 'cup'").await, ["5.00"]);
    let deleted = "DELETE FROM items WHERE name IN (SELECT name FROM items WHERE price >= 4) RETURNING name";
    assert_eq!(strings(&client, deleted).await, ["cup", "dye"]);
    assert_eq!(client.execute("TRUNCATE items", &[]).await.expect("emptied"), 0);
    assert_eq!(strings(&client, "SELECT count(*) FROM items").await, ["0"]);
}

#[tokio::test]
async fn a_table_without_a_primary_key_hides_its_row_id() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE log (line text DEFAULT 'none', at timestamptz DEFAULT now())").await.expect("created");
    client.batch_execute("INSERT INTO log (line) VALUES ('a'), ('a'); INSERT INTO log DEFAULT VALUES").await.expect("inserted");
    assert_eq!(client.query("SELECT * FROM log", &[]).await.expect("rows")[0].len(), 2);
    assert_eq!(client.query("SELECT * FROM log l JOIN log m ON l.line = m.line", &[]).await.expect("rows")[0].len(), 4);
    assert_eq!(strings(&client, "SELECT line FROM log WHERE at <= now() ORDER BY line").await, ["a", "a", "none"]);
    assert_eq!(client.execute("DELETE FROM log WHERE line = 'a'", &[]).await.expect("deleted"), 2);
}

#[tokio::test]
async fn columns_are_named_as_postgresql_names_them() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute(ITEMS).await.expect("created");
    let names = async |sql: &str| {
        let statement = client.prepare(sql).await.expect("prepared");
        statement.columns().iter().map(|column| column.name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        names("SELECT 1, 1, count(*), max(id), 'a'::text, current_user FROM items").await,
        ["?column?", "?column?", "count", "max", "text", "current_user"]
    );
    assert_eq!(names("SELECT id, id, upper(name), price AS id FROM items WHERE shop = 1").await, ["id", "id", "upper", "id"]);
    assert_eq!(names("SELECT a.id, b.id FROM items a, items b").await, ["id", "id"]);
    assert_eq!(names("SELECT * FROM items").await, ["shop", "id", "name", "price"]);
}

#[tokio::test]
async fn mistakes_have_the_right_sqlstate() {
    let server = Server::start().await;
    let client = server.connect().await;
    client.batch_execute(ITEMS).await.expect("created");
    let cases = [
        ("SELEC 1", "42601"),
        ("SELECT * FROM (", "42601"),
        ("SELECT * FROM nowhere", "42P01"),
        ("SELECT nothing FROM items", "42703"),
        ("SELECT nothing FROM items WHERE shop = 1 AND id = 1", "42703"),
        ("SELECT id FROM items a, items b", "42702"),
        ("SELECT nofunction(1)", "42883"),
        ("UPDATE items SET nothing = 1", "42703"),
        ("INSERT INTO items (nothing) VALUES (1)", "42703"),
        ("INSERT INTO items VALUES (1, 'x', 'y', 1)", "22P02"),
        ("INSERT INTO items VALUES (1, 99999999999, 'y', 1)", "22003"),
        ("CREATE TABLE items (id int PRIMARY KEY)", "42P07"),
        ("CREATE TABLE child (id int REFERENCES items)", "42830"),
        ("DROP TABLE nowhere", "42P01"),
        ("CREATE DATABASE rhumb", "42P04"),
        ("CREATE DATABASE other WITH (protocol = 'magic')", "22023"),
        ("SELECT 1/0", "22012"),
        ("SELECT id FROM items WHERE shop = 1 AND id = 1 AND 1/(id-1) = 1", "22012"),
        ("SAVEPOINT a", "25P01"),
        ("SELECT $1::int", "42P02"),
    ];
    for (sql, expected) in cases {
        assert_eq!(code(client.simple_query(sql).await), expected, "{sql}");
    }
    assert_eq!(strings(&client, "SELECT 1").await, ["1"]);
}
