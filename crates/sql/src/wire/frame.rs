//! The bytes of a connection cut into frames, each bounded before it is buffered.

use super::request::{Malformed, Opening, Request};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest first packet, in bytes.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// The longest message of a client, in bytes: a statement with its parameters, or a piece of a COPY.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 16 << 20;
const READ_BYTES: usize = 8 << 10;
const LENGTH_BYTES: usize = 4;
/// The messages that are read ahead.
const AHEAD_MAX: usize = 4;

/// Why a connection cannot go on.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// What arrived is not the protocol.
    #[error("{0}")]
    Protocol(String),
}

impl From<Malformed> for FrameError {
    fn from(Malformed(reason): Malformed) -> FrameError {
        FrameError::Protocol(reason)
    }
}

/// Reads frames; safe to cancel between bytes, since what was read stays in the buffer.
pub struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
    /// Read ahead, at most [`AHEAD_MAX`].
    ahead: VecDeque<Request>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// A reader of `stream`.
    pub fn new(stream: R) -> FrameReader<R> {
        FrameReader { stream, buffer: BytesMut::with_capacity(READ_BYTES), ahead: VecDeque::new() }
    }

    /// The first packet, which has no type. `None`: the client closed the connection.
    pub async fn opening(&mut self) -> Result<Option<Opening>, FrameError> {
        if !self.fill(LENGTH_BYTES).await? {
            return Ok(None);
        }
        let body = body_bytes(&self.buffer, STARTUP_BYTES_MAX)?;
        self.fill_whole(LENGTH_BYTES + body).await?;
        self.buffer.advance(LENGTH_BYTES);
        Ok(Some(Opening::decode(self.buffer.split_to(body).freeze())?))
    }

    /// The next message. `None`: the client closed the connection.
    pub async fn next(&mut self) -> Result<Option<Request>, FrameError> {
        match self.ahead.pop_front() {
            Some(request) => Ok(Some(request)),
            None => self.read().await,
        }
    }

    /// The message that `next` will return. `None`: the client closed the connection.
    pub async fn peek(&mut self) -> Result<Option<&Request>, FrameError> {
        if self.ahead.is_empty() {
            let next = self.read().await?;
            self.ahead.extend(next);
        }
        Ok(self.ahead.front())
    }

    /// The first message that is none of those which `skipped` says are of no account. No more are looked past than a few, and none after which the client
    /// may wait for an answer.
    pub async fn peek_past(&mut self, skipped: fn(&Request) -> bool) -> Result<Option<&Request>, FrameError> {
        let mut place = 0;
        loop {
            if place == self.ahead.len() {
                match self.read().await? {
                    Some(request) => self.ahead.push_back(request),
                    None => return Ok(None),
                }
            }
            if !skipped(&self.ahead[place]) || place + 1 == AHEAD_MAX {
                return Ok(Some(&self.ahead[place]));
            }
            place += 1;
        }
    }

    /// True if at least one byte of the next message is here already.
    pub fn has_more(&self) -> bool {
        !self.ahead.is_empty() || !self.buffer.is_empty()
    }

    async fn read(&mut self) -> Result<Option<Request>, FrameError> {
        let header = 1 + LENGTH_BYTES;
        if !self.fill(header).await? {
            return Ok(None);
        }
        let kind = self.buffer[0];
        if !is_known(kind) {
            return Err(FrameError::Protocol(format!("invalid frontend message type {kind}")));
        }
        let body = body_bytes(&self.buffer[1..], CLIENT_MESSAGE_BYTES_MAX)?;
        self.fill_whole(header + body).await?;
        self.buffer.advance(header);
        let body = self.buffer.split_to(body).freeze();
        Ok(Some(Request::decode(kind, body)?))
    }

    /// Buffers at least `bytes`; false if the connection ended before the first of them.
    async fn fill(&mut self, bytes: usize) -> Result<bool, FrameError> {
        while self.buffer.len() < bytes {
            self.buffer.reserve((bytes - self.buffer.len()).max(READ_BYTES));
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                if self.buffer.is_empty() {
                    return Ok(false);
                }
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
        }
        Ok(true)
    }

    async fn fill_whole(&mut self, bytes: usize) -> Result<(), FrameError> {
        if self.fill(bytes).await? { Ok(()) } else { Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()) }
    }
}

/// Told before a frame is buffered, so that garbage is not waited for.
fn is_known(kind: u8) -> bool {
    b"QPBDECHSdcfX".contains(&kind)
}

/// The length of the body that the length field at the front of `buffer` announces.
fn body_bytes(buffer: &[u8], bytes_max: usize) -> Result<usize, FrameError> {
    let length = Bytes::copy_from_slice(&buffer[..LENGTH_BYTES]).get_u32() as usize;
    let body = length.checked_sub(LENGTH_BYTES).ok_or_else(|| FrameError::Protocol(format!("invalid message length {length}")))?;
    if body > bytes_max {
        return Err(FrameError::Protocol(format!("invalid message length {length}: at most {bytes_max} bytes are accepted")));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_cut_wherever_the_reads_end() {
        let bytes: &[u8] = b"Q\0\0\0\x06a\0S\0\0\0\x04";
        for cut in 0..bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            let mut reader = FrameReader::new(AsyncReadExt::chain(head, tail));
            assert_eq!(reader.peek().await.expect("a frame"), Some(&Request::Query("a".into())));
            assert_eq!(reader.next().await.expect("a frame"), Some(Request::Query("a".into())));
            assert_eq!(reader.next().await.expect("a frame"), Some(Request::Sync));
            assert_eq!(reader.next().await.expect("the end"), None);
        }
    }

    #[tokio::test]
    async fn a_message_beyond_the_bound_is_refused_before_it_is_read() {
        let mut reader = FrameReader::new(&b"Q\x7f\xff\xff\xff"[..]);
        assert!(matches!(reader.next().await, Err(FrameError::Protocol(_))));
        let mut reader = FrameReader::new(&b"Q\0\0\0\x03"[..]);
        assert!(matches!(reader.next().await, Err(FrameError::Protocol(_))));
        let mut reader = FrameReader::new(&b"\x16\x03\x01\x02\x00"[..]);
        assert!(matches!(reader.next().await, Err(FrameError::Protocol(_))));
    }
}
