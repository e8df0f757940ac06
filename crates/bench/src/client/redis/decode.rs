//! Replies of the Redis protocol, version 2, as bytes come in.

use std::fmt;
use std::str;
use thiserror::Error;

/// A longer reply is not one of quotas.
pub const REPLY_BYTES_MAX: usize = 4 << 20;
/// Arrays in arrays, at the most.
const DEPTH_MAX: usize = 8;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`, or a bulk string.
    Text(String),
    /// `:7`
    Integer(i64),
    /// `-CODE message`
    Refused(String),
    /// Nothing.
    Null,
    /// Several.
    Array(Vec<Reply>),
}

impl Reply {
    /// The first word of a refusal, which is for programs.
    pub fn code(&self) -> Option<&str> {
        match self {
            Reply::Refused(text) => text.split(' ').next(),
            _ => None,
        }
    }

    /// What stands under `key` in a map, which version 2 sends as keys and values in turn.
    pub fn field(&self, key: &str) -> Option<&Reply> {
        let Reply::Array(entries) = self else { return None };
        let named = |pair: &&[Reply]| matches!(pair, [Reply::Text(name), _] if name == key);
        entries.chunks(2).find(named).map(|pair| &pair[1])
    }

    /// The number, if it is one.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Reply::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Text(text) | Reply::Refused(text) => f.write_str(text),
            Reply::Integer(number) => number.fmt(f),
            Reply::Null => f.write_str("nothing"),
            Reply::Array(replies) => write!(f, "{} replies", replies.len()),
        }
    }
}

/// Bytes that are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what it sends is not the Redis protocol")]
pub struct Malformed;

/// The first reply of `bytes` and its length; none while more is to come.
pub fn decode(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let decoded = reply(bytes, 0, 0)?;
    if decoded.is_none() && bytes.len() >= REPLY_BYTES_MAX { Err(Malformed) } else { Ok(decoded) }
}

/// The reply that begins at `at`, and where the next one does.
fn reply(bytes: &[u8], at: usize, depth: usize) -> Result<Option<(Reply, usize)>, Malformed> {
    let Some((line, next)) = line(&bytes[at..])? else { return Ok(None) };
    let next = at + next;
    let (kind, rest) = line.split_at_checked(1).ok_or(Malformed)?;
    let number = || rest.parse::<i64>().map_err(|_| Malformed);
    Ok(match kind {
        "+" => Some((Reply::Text(rest.to_owned()), next)),
        "-" => Some((Reply::Refused(rest.to_owned()), next)),
        ":" => Some((Reply::Integer(number()?), next)),
        "$" | "*" if number()? == -1 => Some((Reply::Null, next)),
        "$" => {
            let end = next + length(number()?)?;
            match bytes.get(next..end + 2) {
                None => None,
                Some(text) => {
                    let text = text.strip_suffix(b"\r\n").ok_or(Malformed)?;
                    Some((Reply::Text(String::from_utf8_lossy(text).into_owned()), end + 2))
                }
            }
        }
        "*" if depth < DEPTH_MAX => array(bytes, next, length(number()?)?, depth)?,
        _ => return Err(Malformed),
    })
}

fn array(bytes: &[u8], mut at: usize, count: usize, depth: usize) -> Result<Option<(Reply, usize)>, Malformed> {
    let mut replies = Vec::new();
    for _ in 0..count {
        let Some((next, end)) = reply(bytes, at, depth + 1)? else { return Ok(None) };
        replies.push(next);
        at = end;
    }
    Ok(Some((Reply::Array(replies), at)))
}

fn length(number: i64) -> Result<usize, Malformed> {
    usize::try_from(number).ok().filter(|length| *length <= REPLY_BYTES_MAX).ok_or(Malformed)
}

/// The first line, and where the next one begins.
fn line(bytes: &[u8]) -> Result<Option<(&str, usize)>, Malformed> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    Ok(Some((str::from_utf8(&bytes[..end]).map_err(|_| Malformed)?, end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_decoded_once_it_is_whole() {
        let map = Reply::Array(vec![Reply::Text("left".into()), Reply::Integer(-7), Reply::Text("parent".into()), Reply::Null]);
        for (bytes, expected) in [
            (&b"+OK\r\n"[..], Reply::Text("OK".into())),
            (b":997\r\n", Reply::Integer(997)),
            (b"-EXCEEDED the limit\r\n", Reply::Refused("EXCEEDED the limit".into())),
            (b"*4\r\n$4\r\nleft\r\n:-7\r\n$6\r\nparent\r\n$-1\r\n", map.clone()),
            (b"$4\r\n\r\n\r\n\r\n", Reply::Text("\r\n\r\n".into())),
        ] {
            let two = [bytes, bytes].concat();
            assert_eq!(decode(&two), Ok(Some((expected, bytes.len()))));
            for cut in 0..bytes.len() {
                assert_eq!(decode(&bytes[..cut]), Ok(None), "{}", bytes.escape_ascii());
            }
        }
        assert_eq!(map.field("left").and_then(Reply::integer), Some(-7));
        assert_eq!(map.field("right"), None);
        assert_eq!(Reply::Refused("EXCEEDED the limit".into()).code(), Some("EXCEEDED"));
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"\r\n", b":x\r\n", b"$-2\r\n", b"$99999999\r\n", b"$1\r\nxyz", b"%1\r\n"] {
            assert_eq!(decode(bytes), Err(Malformed), "{}", bytes.escape_ascii());
        }
        assert_eq!(decode("*1\r\n".repeat(DEPTH_MAX + 1).as_bytes()), Err(Malformed));
    }
}
