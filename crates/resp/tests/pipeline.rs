//! Many commands at once: what is gathered, what overlaps, what waits, and in which order replies come.

mod support;

use rhumb_quota::operation::OPERATIONS_MAX;
use rhumb_resp::ServerOptions;
use std::time::Duration;
use support::{Server, command};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

fn pipeline(commands: &[&str]) -> Vec<u8> {
    commands.iter().flat_map(|words| command(words)).collect()
}

#[tokio::test]
async fn operations_that_come_together_are_one_call() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(&pipeline(&["ACQUIRE vm 1", "ACQUIRE vm 2 ID a", "RELEASE vm 3", "ACQUIRE vm 11", "ACQUIRE disk 1"])).await;
    let refused = "-EXCEEDED the limit of quota vm does not allow 11 more\r\n-NOQUOTA there is no quota disk; create it first\r\n";
    client.expect(&format!(":9\r\n:7\r\n:10\r\n{refused}"), "in the order asked").await;
    assert_eq!(server.book.asked(), ["Acquire vm 1, Acquire vm 2 a, Release vm 3, Acquire vm 11, Acquire disk 1"]);
}

#[tokio::test]
async fn a_command_sees_what_those_before_it_did() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let commands =
        ["ACQUIRE vm 3", "QUOTA.LIMIT vm 4", "ACQUIRE vm 2", "ACQUIRE vm x", "ACQUIRE vm 1", "PING", "QUOTA.DROP vm", "ACQUIRE vm 1"];
    client.send(&pipeline(&commands)).await;
    let expected = ":7\r\n+OK\r\n-EXCEEDED the limit of quota vm does not allow 2 more\r\n\
                    -INVALID an amount of `x` tokens; allowed are whole numbers from 1 to 9007199254740991\r\n\
                    :0\r\n+PONG\r\n+OK\r\n-NOQUOTA there is no quota vm; create it first\r\n";
    client.expect(expected, "each for itself").await;
    assert_eq!(server.book.asked(), ["Acquire vm 3", "limit vm 4", "Acquire vm 2", "Acquire vm 1", "drop vm", "Acquire vm 1"]);
}

#[tokio::test]
async fn a_call_that_waits_lets_later_ones_start_but_not_answer() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.send(&command("ACQUIRE slow 1")).await;
    while server.book.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    client.send(&pipeline(&["ACQUIRE vm 1", "ECHO end", "ACQUIRE vm 1"])).await;
    let mut asked = Vec::new();
    while asked.is_empty() {
        tokio::task::yield_now().await;
        asked = server.book.asked();
    }
    assert_eq!(asked, ["Acquire vm 1"], "what follows ECHO waits for it");
    assert_eq!(client.0.try_read(&mut [0]).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
    server.book.gate.add_permits(1);
    client.expect(":9\r\n:9\r\n$3\r\nend\r\n:8\r\n", "in order").await;
}

#[tokio::test]
async fn one_call_has_a_bounded_number_of_operations() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let count = OPERATIONS_MAX * 3 + 5;
    client.send(&command("ACQUIRE vm 1").repeat(count)).await;
    let reply = "-EXCEEDED the limit of quota vm does not allow 1 more\r\n";
    let acquired: String = (0..10).rev().map(|left| format!(":{left}\r\n")).collect();
    client.expect(&(acquired + &reply.repeat(count - 10)), "every operation is answered").await;
    let sizes: Vec<usize> = server.book.asked().iter().map(|call| call.split(", ").count()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), count);
    assert!(sizes.iter().all(|size| *size <= OPERATIONS_MAX), "{sizes:?}");
}

#[tokio::test]
async fn what_came_before_the_client_fell_silent_is_answered() {
    let server = Server::start().await;
    assert_eq!(server.replies(&pipeline(&["ACQUIRE vm 1", "PING", "ACQUIRE vm 1"])).await, ":9\r\n+PONG\r\n:8\r\n");
}

#[tokio::test]
async fn a_half_written_command_is_not_carried_out() {
    let server = Server::start().await;
    let whole = command("ACQUIRE vm 1");
    for cut in 1..whole.len() {
        assert_eq!(server.replies(&whole[..cut]).await, "");
    }
    assert_eq!(server.book.asked(), [""; 0]);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_not_served_without_end() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let echo = command(&format!("ECHO {}", "x".repeat(60_000)));
    let mut sent = 0;
    // What fits the buffers of both ends of the socket depends on the system; without a bound this would never end.
    while tokio::time::timeout(Duration::from_secs(1), client.send(&echo)).await.is_ok() {
        sent += 1;
    }
    let expected = format!("$60000\r\n{}\r\n", "x".repeat(60_000));
    for _ in 0..sent {
        let mut reply = vec![0; expected.len()];
        client.0.read_exact(&mut reply).await.expect("every command is answered once the client reads");
        assert!(reply == expected.as_bytes());
    }
}

#[tokio::test]
async fn short_commands_with_long_replies_are_all_answered() {
    let server = Server::start().await;
    let one = server.replies(b"COMMAND DOCS\r\n").await;
    let all = server.replies(&b"COMMAND DOCS\r\n".repeat(1_000)).await;
    assert!(all == one.repeat(1_000), "{} bytes, and not 1,000 times {}", all.len(), one.len());
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_connections() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    client.check("PING", "+PONG\r\n").await;
    drop(server);
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_server_that_stops_answers_what_is_under_way_and_lets_nobody_in() {
    let mut server = Server::start().await;
    let (mut busy, mut idle) = (server.connect().await, server.connect().await);
    idle.check("PING", "+PONG\r\n").await;
    busy.send(&command("ACQUIRE slow 1")).await;
    while server.book.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    server.stop.notify_one();
    assert_eq!(idle.rest().await, "", "who has nothing under way is closed");
    assert!(TcpStream::connect(server.address).await.is_err());
    server.book.gate.add_permits(1);
    assert_eq!(busy.rest().await, ":9\r\n");
    drop((busy, idle));
    server.ended().await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = Server::with(ServerOptions { connections_max: 2, ..ServerOptions::default() }).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    first.check("PING", "+PONG\r\n").await;
    second.check("PING", "+PONG\r\n").await;
    assert_eq!(server.connect().await.rest().await, "-ERR max number of clients reached\r\n");
    drop(first);
    let mut third = server.connect().await;
    loop {
        third.send(b"CLIENT GETNAME\r\n").await;
        let mut byte = [0];
        third.0.read_exact(&mut byte).await.expect("a reply");
        if byte == *b"$" {
            break;
        }
        third = server.connect().await;
    }
}
