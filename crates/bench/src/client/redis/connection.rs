//! A connection to a site that speaks the Redis protocol.

use super::decode::{Reply, decode};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than a site lets an operation wait for tokens or a reader for a count.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);
const READ_BYTES: usize = 16 << 10;

/// A connection. After an error it is of no more use: replies would be taken for those of other commands.
pub struct Connection {
    stream: TcpStream,
    unsent: Vec<u8>,
    received: Vec<u8>,
    /// Bytes of `received` that are decoded.
    decoded: usize,
}

impl Connection {
    /// Connects to `address`.
    pub async fn open(address: &str) -> io::Result<Connection> {
        let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, unsent: Vec::new(), received: Vec::new(), decoded: 0 })
    }

    /// Adds a command to those that are sent next.
    pub fn push(&mut self, words: &[&str]) {
        self.unsent.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            self.unsent.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
    }

    /// Sends them.
    pub async fn send(&mut self) -> io::Result<()> {
        timeout(REPLY_TIMEOUT, self.stream.write_all(&self.unsent)).await??;
        self.unsent.clear();
        Ok(())
    }

    /// Waits for the next reply.
    pub async fn receive(&mut self) -> io::Result<Reply> {
        loop {
            if let Some((reply, length)) = decode(&self.received[self.decoded..]).map_err(io::Error::other)? {
                self.decoded += length;
                return Ok(reply);
            }
            self.received.drain(..self.decoded);
            self.decoded = 0;
            self.received.reserve(READ_BYTES);
            if timeout(REPLY_TIMEOUT, self.stream.read_buf(&mut self.received)).await?? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends one command, and waits for its reply.
    pub async fn ask(&mut self, words: &[&str]) -> io::Result<Reply> {
        self.push(words);
        self.send().await?;
        self.receive().await
    }
}
