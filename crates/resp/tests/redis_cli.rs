//! The client that everybody has: a script of `redis-cli`, in RESP2 and RESP3.

mod support;

use std::process::{Command, Stdio};
use support::Server;

/// What `redis-cli` prints for the commands of `script`.
fn cli(port: u16, options: &[&str], script: &'static str) -> Option<String> {
    let mut child = Command::new("redis-cli")
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), script.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    Some(String::from_utf8(output.stdout).expect("text"))
}

const SCRIPT: &str =
    "PING\nACQUIRE vm 3\nACQUIRE vm 8\nRELEASE vm 1 ID a\nQUOTA.CREATE team 5 PARENT vm\nQUOTA.DROP team\nACQUIRE vm -1\nQUOTA.LIST x\n";
const PRINTED: &str = "PONG\n(integer) 7\n(error) EXCEEDED the limit of quota vm does not allow 8 more\n(integer) 8\nOK\nOK\n\
    (error) INVALID an amount of `-1` tokens; allowed are whole numbers from 1 to 9007199254740991\n\
    (error) ERR wrong number of arguments for 'quota.list' command; it is QUOTA.LIST\n";

#[tokio::test(flavor = "multi_thread")]
async fn redis_cli_works() {
    for options in [&["-2", "--no-raw"][..], &["-3", "--no-raw"]] {
        let server = Server::start().await;
        let Some(printed) = cli(server.address.port(), options, SCRIPT) else {
            println!("skipped: redis-cli is not installed (Debian: redis-tools)");
            return;
        };
        assert_eq!(printed, PRINTED, "{options:?}");
    }
    let server = Server::start().await;
    let got = cli(server.address.port(), &["-3"], "QUOTA.GET vm\n").expect("it was there");
    let expected = "name vm\nlimit 10\nleft 10\nheld 0\noffered 0\nowed 0\nparent \nprotocol majority\noffer spare\nreallocation maximum-usage\n\
                    read local\nsites site r0.0\nleft 10\nheld 0\noffered 0\nowed 0\nmissing \n";
    assert_eq!(got, expected);
}
