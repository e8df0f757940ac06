//! The end of a server: what is under way is finished, and nobody is let in. And the end of a client that does not read.

use crate::support::{Server, Wire, code, state_of, strings};
use rhumb_sql::server::{ServerOptions, serve_until};
use rhumb_sqltestkit::LocalGateway;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A server that can be told to stop.
struct Stoppable {
    server: Server,
    stop: Arc<Notify>,
    life: JoinHandle<()>,
}

impl Stoppable {
    async fn start() -> Stoppable {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (gateway, stop) = (LocalGateway::new(), Arc::new(Notify::new()));
        let stopped = Arc::clone(&stop);
        let gateways = Arc::new(gateway.clone());
        let life = async move {
            let stop = async { stopped.notified().await };
            serve_until(stop, listener, gateways, None, ServerOptions::default()).await.expect("it ends well");
        };
        Stoppable { server: Server { address, gateway, quotas: Default::default() }, stop, life: tokio::spawn(life) }
    }
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_is_under_way_and_lets_nobody_in() {
    let Stoppable { server, stop, life } = Stoppable::start().await;
    let mut idle = TcpStream::connect(server.address).await.expect("connected");
    idle.write_all(b"\0\0\0\x24\0\x03\0\0user\0tester\0database\0rhumb\0\0").await.expect("sent");
    let unopened = TcpStream::connect(server.address).await.expect("connected");
    let busy = server.connect().await;
    busy.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let within = server.connect().await;
    within.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("begun");
    let failed = server.connect().await;
    failed.batch_execute("BEGIN; SELECT 1").await.expect("begun");
    assert_eq!(code(failed.batch_execute("SELECT 1 / 0").await), "22012");

    let kept = server.connect().await;
    kept.batch_execute("BEGIN; INSERT INTO t VALUES (3); SAVEPOINT a").await.expect("begun");
    assert_eq!(code(kept.batch_execute("SELECT 1 / 0").await), "22012");

    let gate = server.gateway.hold_commit();
    let commit = busy.batch_execute("INSERT INTO t VALUES (2)");
    let stopped = async {
        gate.reached().await;
        stop.notify_one();
        // The idle session is the first to hear of it.
        let mut said = Vec::new();
        idle.read_to_end(&mut said).await.expect("closed");
        assert!(said.windows(5).any(|code| code == b"57P01"), "{said:?}");
        assert!(TcpStream::connect(server.address).await.is_err(), "nobody is let in");
        gate.open();
    };
    let (committed, ()) = tokio::join!(commit, stopped);
    committed.expect("the statement under way is finished");
    assert_eq!(strings(&within, "SELECT id FROM t WHERE id = 1").await, ["1"], "an open transaction goes on");
    within.batch_execute("COMMIT").await.expect("committed");
    kept.batch_execute("ROLLBACK TO a; COMMIT").await.expect("one that failed may go on from its savepoint");
    life.await.expect("all sessions have ended");
    assert!(busy.batch_execute("SELECT 1").await.is_err() && within.batch_execute("SELECT 1").await.is_err());
    drop(unopened);
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_a_client_that_has_nothing_open_to_go_on() {
    let Stoppable { server, stop, life } = Stoppable::start().await;
    let mut wire = Wire::open(&server).await;
    for (kind, body) in [(b'P', &b"\0SELECT 1\0\0\0"[..]), (b'B', b"\0\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0")] {
        wire.send(kind, body).await;
    }
    stop.notify_one();
    assert_eq!(state_of(&wire.until_ready().await).as_deref(), Some("57P01"));
    life.await.expect("all sessions have ended");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let options = ServerOptions { write_stall_max: Duration::from_millis(200), connections_max: 2, ..ServerOptions::default() };
    let server = Server::start_with(options).await;
    let reader = server.connect().await;
    let rows: Vec<String> = (0..1_000).map(|row| format!("({row}, repeat('x', 100))")).collect();
    let filled = format!("CREATE TABLE t (id int PRIMARY KEY, filler text); INSERT INTO t VALUES {}", rows.join(","));
    reader.batch_execute(&filled).await.expect("filled");
    let mut stalled = TcpStream::connect(server.address).await.expect("connected");
    let text = b"SELECT a.filler FROM t AS a, t AS b\0";
    stalled.write_all(b"\0\0\0\x24\0\x03\0\0user\0tester\0database\0rhumb\0\0Q").await.expect("sent");
    stalled.write_all(&(text.len() as u32 + 4).to_be_bytes()).await.expect("sent");
    stalled.write_all(text).await.expect("sent");
    // Once the server has closed it, what is sent there fails.
    while stalled.write_all(b"S\0\0\0\x04").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(strings(&reader, "SELECT 1").await, ["1"]);
    assert_eq!(strings(&server.connect().await, "SELECT 1").await, ["1"], "its place is free");
}
