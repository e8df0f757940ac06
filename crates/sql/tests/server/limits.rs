//! How much a client may ask for: columns, parameters, memory.

use crate::support::{Server, Wire, code, state_of, strings};

/// The number of columns that the first message of this type counts.
fn count_in(messages: &[(u8, Vec<u8>)], kind: u8) -> Option<i16> {
    let (_, body) = messages.iter().find(|(found, _)| *found == kind)?;
    Some(i16::from_be_bytes([body[0], body[1]]))
}

#[tokio::test]
async fn a_result_has_as_many_columns_as_its_client_can_be_told_of() {
    let server = Server::start().await;
    let mut wire = Wire::open(&server).await;
    let ones = |columns: usize| vec!["1"; columns].join(",");
    let most = wire.query(&format!("SELECT {}", ones(1_664))).await;
    assert_eq!((count_in(&most, b'T'), count_in(&most, b'D')), (Some(1_664), Some(1_664)));

    wire.query("CREATE TABLE t (id int PRIMARY KEY)").await;
    // 70,000 as 16 bits are 4,464.
    for columns in [1_665, 32_768, 70_000] {
        for sql in [
            format!("SELECT {}", ones(columns)),
            format!("SELECT {}, acquire('vm', 1)", ones(columns)),
            format!("INSERT INTO t VALUES (1) RETURNING {}", ones(columns)),
        ] {
            let shown = &sql[..40];
            let answer = wire.query(&sql).await;
            assert_eq!((state_of(&answer).as_deref(), count_in(&answer, b'T')), (Some("54011"), None), "{shown} with {columns}");
            wire.send(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"].concat()).await;
            wire.send(b'S', b"").await;
            assert_eq!(state_of(&wire.until_ready().await).as_deref(), Some("54011"), "{shown} with {columns}, prepared");
        }
    }
    let client = server.connect().await;
    assert_eq!(strings(&client, "SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(server.quotas.operations(), 0);
}

#[tokio::test]
async fn a_table_has_at_most_1600_columns_and_a_join_of_two_such_cannot_be_shown_whole() {
    let server = Server::start().await;
    let client = server.connect().await;
    let table = |name: &str, columns: usize| {
        let columns: Vec<String> = (0..columns).map(|column| format!("{name}{column} int")).collect();
        format!("CREATE TABLE {name} ({})", columns.join(","))
    };
    assert_eq!(code(client.batch_execute(&table("a", 1_601)).await), "54011");
    client.batch_execute(&table("a", 1_600)).await.expect("created");
    client.batch_execute(&table("b", 65)).await.expect("created");
    assert_eq!(client.prepare("SELECT * FROM a").await.expect("prepared").columns().len(), 1_600);
    assert_eq!(code(client.batch_execute("SELECT * FROM a, b").await), "54011");
    assert_eq!(strings(&client, "SELECT count(*) FROM a, b").await, ["0"]);
    let named = vec!["b0"; 40_000].join(",");
    assert_eq!(code(client.batch_execute(&format!("COPY b ({named}) FROM STDIN")).await), "42701");
}

#[tokio::test]
async fn a_statement_has_as_many_parameters_as_the_wire_can_count() {
    let server = Server::start().await;
    let mut wire = Wire::open(&server).await;
    wire.send(b'P', b"\0SELECT $65535::int4\0\0\0").await;
    wire.send(b'D', b"S\0").await;
    let nulls = [&b"\0\0\0\0\xff\xff"[..], &b"\xff\xff\xff\xff".repeat(65_535 - 1), b"\0\0\0\x017\0\0"].concat();
    wire.send(b'B', &nulls).await;
    wire.send(b'E', b"\0\0\0\0\0").await;
    wire.send(b'S', b"").await;
    let answer = wire.until_ready().await;
    assert_eq!(state_of(&answer), None);
    assert_eq!(count_in(&answer, b't'), Some(-1), "65,535 in 16 bits");
    assert_eq!(answer.iter().find(|(kind, _)| *kind == b'D').expect("a row").1, b"\0\x01\0\0\0\x017");
    for (sql, state) in [("SELECT $65536::int4", "54023"), ("SELECT $0::int4", "42P02")] {
        assert_eq!(state_of(&wire.query(sql).await).as_deref(), Some(state), "{sql}");
    }
}
