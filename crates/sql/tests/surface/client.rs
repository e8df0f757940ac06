//! A client of the simple protocol that keeps what others hide: the tag of a statement, the types of its columns and its values as they were sent.

use crate::script::Outcome;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a statement may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Version 3.0 of the protocol.
const PROTOCOL: u32 = 3 << 16;

/// PostgreSQL's numbers of types; an array has the number beside its elements'.
const TYPES: [(u32, u32, &str); 26] = [
    (16, 1000, "bool"),
    (17, 1001, "bytea"),
    (18, 1002, "\"char\""),
    (19, 1003, "name"),
    (20, 1016, "int8"),
    (21, 1005, "int2"),
    (23, 1007, "int4"),
    (25, 1009, "text"),
    (26, 1028, "oid"),
    (22, 1006, "int2vector"),
    (114, 199, "json"),
    (700, 1021, "float4"),
    (701, 1022, "float8"),
    (1042, 1014, "bpchar"),
    (1043, 1015, "varchar"),
    (1082, 1182, "date"),
    (1083, 1183, "time"),
    (1114, 1115, "timestamp"),
    (1184, 1185, "timestamptz"),
    (1186, 1187, "interval"),
    (1560, 1561, "bit"),
    (1700, 1231, "numeric"),
    (2205, 2210, "regclass"),
    (2206, 2211, "regtype"),
    (2249, 2287, "record"),
    (2950, 2951, "uuid"),
];

/// The least number of a type that is not PostgreSQL's own.
const OWN_TYPES: i64 = 16_384;

/// A server on the loopback, and a database there.
pub struct Target {
    pub port: u16,
    pub database: String,
}

/// A connection.
pub struct Client {
    stream: TcpStream,
}

impl Client {
    pub fn connect(target: &Target) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", target.port))?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_nodelay(true)?;
        let mut client = Client { stream };
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for text in ["user", "tester", "database", &target.database, ""] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        client.stream.write_all(&[&length(&body)[..], &body].concat())?;
        match client.answer(&[])?.head {
            head if head.starts_with("error") => Err(io::Error::other(head)),
            _ => Ok(client),
        }
    }

    /// What a text of one statement is answered with. An error is that of the connection.
    pub fn run(&mut self, sql: &str) -> io::Result<Outcome> {
        let body = [sql.as_bytes(), b"\0"].concat();
        self.stream.write_all(&[b"Q", &length(&body)[..], &body].concat())?;
        let ordered = sql.to_ascii_uppercase().contains("ORDER BY");
        let mut outcome = self.answer(sql.as_bytes())?;
        if !ordered {
            outcome.rows.sort();
        }
        Ok(outcome)
    }

    /// All messages up to ReadyForQuery, as one outcome.
    fn answer(&mut self, sql: &[u8]) -> io::Result<Outcome> {
        let (mut error, mut columns, mut rows, mut tags) = (None, None, Vec::new(), Vec::new());
        loop {
            let (kind, body) = self.message()?;
            match kind {
                b'Z' => break,
                b'E' => error = error.or_else(|| sqlstate(&body)),
                b'T' => columns = Some(columns_of(&body)),
                b'D' => rows.push(row_of(&body)),
                b'C' => tags.push(text_at(&body, 0)),
                b'I' => tags.push("EMPTY".to_owned()),
                b'G' => self.stream.write_all(b"f\0\0\0\x05\0")?,
                b'd' => rows.push(written(&String::from_utf8_lossy(&body))),
                _ => {}
            }
        }
        assert!(tags.len() <= 1, "one statement at a time: {}", String::from_utf8_lossy(sql));
        if let Some(state) = error {
            return Ok(Outcome { head: format!("error {state}"), rows: Vec::new() });
        }
        let tag = tags.pop().unwrap_or_default();
        let head = columns.map_or_else(|| format!("ok {tag}"), |columns: String| format!("query {tag} ({columns})"));
        Ok(Outcome { head, rows })
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize - 4;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((header[0], body))
    }
}

fn length(body: &[u8]) -> [u8; 4] {
    u32::try_from(body.len() + 4).expect("a short message").to_be_bytes()
}

/// The SQLSTATE among the fields of an error.
fn sqlstate(body: &[u8]) -> Option<String> {
    let field = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&b'C'))?;
    Some(String::from_utf8_lossy(&field[1..]).into_owned())
}

/// The text that begins at a place and ends at a zero byte.
fn text_at(body: &[u8], from: usize) -> String {
    let bytes = body[from..].split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(body: &[u8], from: usize, bytes: usize) -> i64 {
    let unsigned = body[from..from + bytes].iter().fold(0i64, |sum, byte| (sum << 8) | i64::from(*byte));
    // A length of -1 says NULL.
    if bytes == 4 && unsigned == i64::from(u32::MAX) { -1 } else { unsigned }
}

/// Names and types of a RowDescription.
fn columns_of(body: &[u8]) -> String {
    let (mut columns, mut at) = (Vec::new(), 2);
    for _ in 0..number(body, 0, 2) {
        let name = text_at(body, at);
        at += name.len() + 1;
        columns.push(format!("{name} {}", type_name(number(body, at + 6, 4))));
        at += 18;
    }
    columns.join(", ")
}

fn type_name(oid: i64) -> String {
    for (element, array, name) in TYPES {
        if oid == i64::from(element) {
            return name.to_owned();
        } else if oid == i64::from(array) {
            return format!("{name}[]");
        }
    }
    // Above are those that were created, as the type of a table's rows is.
    if oid < OWN_TYPES { format!("type {oid}") } else { "composite".to_owned() }
}

/// The values of a DataRow, one after the other.
fn row_of(body: &[u8]) -> String {
    let (mut values, mut at) = (Vec::new(), 2);
    for _ in 0..number(body, 0, 2) {
        let length = number(body, at, 4);
        at += 4;
        let Ok(length) = usize::try_from(length) else {
            values.push("NULL".to_owned());
            continue;
        };
        values.push(written(&String::from_utf8_lossy(&body[at..at + length])));
        at += length;
    }
    if values.is_empty() { "(no columns)".to_owned() } else { values.join(" | ") }
}

/// A value so that it stands on one line and is taken for nothing else.
fn written(value: &str) -> String {
    let plain =
        !value.is_empty() && value.trim() == value && value != "NULL" && !value.contains(['|', '"']) && !value.contains(char::is_control);
    // Arrays and the like have quotes of their own, and need no others.
    let quoted_within = value.starts_with('{') && value.ends_with('}') && !value.contains('|') && !value.contains(char::is_control);
    if plain || quoted_within { value.to_owned() } else { format!("{value:?}") }
}
