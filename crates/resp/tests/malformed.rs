//! What breaks the protocol: a clear error, the connection is closed, and no quota is asked anything.

mod support;

use rhumb_resp::decode::decode;
use rhumb_resp::frame::COMMAND_BYTES_MAX;
use support::{Server, command};

#[tokio::test]
async fn a_broken_frame_closes_the_connection_after_the_error() {
    let server = Server::start().await;
    let (count, bulk) =
        ("invalid multibulk length; a command has at most 1024 arguments", "invalid bulk length; a command has at most 65536 bytes");
    for (bytes, error) in [
        (&b"*-5\r\n"[..], count),
        (b"*1025\r\n", count),
        (b"*9999999999999999999\r\n", count),
        (b"*x\r\n", count),
        (b"*3\n", count),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
        (b"*3\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n:1\r\n", "expected '$', got ':'"),
        (b"*3\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n\0", "expected '$', got '\\x00'"),
        (b"*1\r\n$-1\r\n", bulk),
        (b"*1\r\n$999999999999\r\n", bulk),
        (b"*3\r\n$7\r\nACQUIRE\r\n$2\r\nvm\r\n$1\r\n1XX", "expected \\r\\n after a bulk string of 1 bytes"),
        (b"*3\r\n$7\r\nACQUIRE\r\n$3\r\nvm\r\n$1\r\n1\r\n", "expected \\r\\n after a bulk string of 3 bytes"),
        (b"ACQUIRE \"vm 1\r\n", "unbalanced quotes in request"),
        (&[b'x'; COMMAND_BYTES_MAX], "too big inline request; a line has at most 65536 bytes"),
    ] {
        let after = [bytes, &command("ACQUIRE vm 1")].concat();
        let expected = format!("-ERR Protocol error: {error}\r\n");
        assert_eq!(server.connect_and_send(&after).await, expected, "{}", bytes[..bytes.len().min(80)].escape_ascii());
    }
    assert_eq!(server.book.asked(), [""; 0]);
}

#[tokio::test]
async fn what_came_before_a_broken_frame_is_answered_first() {
    let server = Server::start().await;
    let bytes = [&command("ACQUIRE vm 1")[..], b"*-5\r\n"].concat();
    let error = "-ERR Protocol error: invalid multibulk length; a command has at most 1024 arguments\r\n";
    assert_eq!(server.connect_and_send(&bytes).await, format!(":9\r\n{error}"));
    assert_eq!(server.book.asked(), ["Acquire vm 1"]);
}

#[tokio::test]
async fn empty_commands_are_passed_over() {
    let server = Server::start().await;
    assert_eq!(server.replies(b"\r\n*0\r\n\n  \r\nPING\r\n").await, "+PONG\r\n");
}

#[tokio::test]
async fn a_web_browser_is_not_served() {
    let server = Server::start().await;
    let form = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nACQUIRE vm 1\r\n";
    assert_eq!(server.connect_and_send(form).await, "");
    let get = server.connect_and_send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nACQUIRE vm 1\r\n").await;
    assert!(get.starts_with("-ERR unknown command 'GET'") && get.matches("\r\n").count() == 1, "{get}");
    assert_eq!(server.book.asked(), [""; 0]);
}

/// Every byte of a well-formed pipeline replaced by every byte there is, and left out: never a panic, never more than
/// what is there.
#[test]
fn mutated_frames_are_decoded_or_refused() {
    let whole = [command("ACQUIRE vm 1 ID a"), b"RELEASE 'v m' \"\\x01\"\r\n".to_vec()].concat();
    for place in 0..whole.len() {
        for byte in 0..=u8::MAX {
            let mut changed = whole.clone();
            changed[place] = byte;
            drain(&changed);
        }
        let mut shorter = whole.clone();
        shorter.remove(place);
        drain(&shorter);
    }
}

fn drain(mut bytes: &[u8]) {
    while let Ok(Some(frame)) = decode(bytes) {
        assert!((1..=bytes.len()).contains(&frame.length));
        assert!(frame.arguments.iter().map(|argument| argument.len()).sum::<usize>() < frame.length);
        bytes = &bytes[frame.length..];
    }
}
