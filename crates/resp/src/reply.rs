//! Replies, written as RESP2 or RESP3 into one buffer.
//!
//! The two differ in what has no word in RESP2: null becomes a null bulk string, a map the array of its keys and values,
//! a set an array.

use crate::code::Code;
use rhumb_quota::refusal::Refusal;
use std::fmt::Display;

/// The version of the protocol that a client chose with `HELLO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What every connection begins with.
    #[default]
    Resp2,
    /// With maps, sets and a null of its own.
    Resp3,
}

/// Replies on their way to a client.
#[derive(Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    /// How many of them have been sent.
    sent: usize,
    /// How to write what comes next.
    pub protocol: Protocol,
}

impl Replies {
    /// What is still to be sent.
    pub fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// `count` more bytes of them have been sent. What was sent is forgotten before it is the larger part, and memory
    /// beyond `keep` bytes is given back once all is sent.
    pub fn sent(&mut self, count: usize, keep: usize) {
        self.sent += count;
        if self.sent * 2 >= self.bytes.len() {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        if self.bytes.is_empty() {
            self.bytes.shrink_to(keep);
        }
    }

    /// `+text`. The text must be one line.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// `-CODE message`, in one line whatever the message holds.
    pub fn error(&mut self, code: Code, message: impl Display) {
        self.bytes.push(b'-');
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(format!("{} {message}", code.word()).as_bytes());
        for byte in &mut self.bytes[begin..] {
            if byte.is_ascii_control() {
                *byte = b' ';
            }
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Why a quota did not do what was asked.
    pub fn refusal(&mut self, refusal: &Refusal) {
        self.error(refusal.into(), refusal);
    }

    /// A whole number.
    pub fn integer(&mut self, number: impl itoa::Integer) {
        self.line(b':', itoa::Buffer::new().format(number).as_bytes());
    }

    /// A string of any bytes.
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.header(b'$', bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Text for people, as it is shown.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.header(b'=', text.len() + 4);
                self.bytes.extend_from_slice(b"txt:");
                self.bytes.extend_from_slice(text.as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Nothing.
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// An array of the next `count` values.
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// A map of the next `count` pairs.
    pub fn map(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', count * 2),
            Protocol::Resp3 => self.header(b'%', count),
        }
    }

    /// A set of the next `count` values.
    pub fn set(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', count),
            Protocol::Resp3 => self.header(b'~', count),
        }
    }

    fn header(&mut self, kind: u8, count: usize) {
        self.line(kind, itoa::Buffer::new().format(count).as_bytes());
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(text);
        self.bytes.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Replies)) -> String {
        let mut replies = Replies { protocol, ..Replies::default() };
        write(&mut replies);
        String::from_utf8(replies.unsent().to_vec()).expect("text")
    }

    #[test]
    fn both_protocols_write_what_they_have_in_common_alike() {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            assert_eq!(written(protocol, |replies| replies.simple("OK")), "+OK\r\n");
            assert_eq!(written(protocol, |replies| replies.integer(u64::MAX)), ":18446744073709551615\r\n");
            assert_eq!(written(protocol, |replies| replies.bulk("a\r\n")), "$3\r\na\r\n\r\n");
            assert_eq!(written(protocol, |replies| replies.array(2)), "*2\r\n");
            assert_eq!(written(protocol, |replies| replies.error(Code::Err, "two\r\nlines\0")), "-ERR two  lines \r\n");
        }
    }

    #[test]
    fn the_older_protocol_makes_do_without_maps_sets_and_null() {
        let all = |replies: &mut Replies| {
            replies.map(2);
            replies.set(2);
            replies.null();
            replies.verbatim("a");
        };
        assert_eq!(written(Protocol::Resp2, all), "*4\r\n*2\r\n$-1\r\n$1\r\na\r\n");
        assert_eq!(written(Protocol::Resp3, all), "%2\r\n~2\r\n_\r\n=5\r\ntxt:a\r\n");
    }

    #[test]
    fn what_was_sent_is_forgotten() {
        let mut replies = Replies::default();
        replies.bulk([b'x'; 1_000]);
        replies.sent(999, 64);
        assert_eq!(replies.unsent().len(), 10);
        replies.sent(10, 64);
        assert!(replies.unsent().is_empty() && replies.bytes.capacity() < 1_000);
    }

    #[test]
    fn a_client_that_never_catches_up_costs_no_more_than_what_it_has_not_read() {
        let mut replies = Replies::default();
        for _ in 0..1_000 {
            replies.bulk([b'x'; 1_000]);
            replies.sent(replies.unsent().len() - 1, 64);
            assert_eq!(replies.unsent(), b"\n");
        }
        assert!(replies.bytes.capacity() < 4_000);
    }
}
