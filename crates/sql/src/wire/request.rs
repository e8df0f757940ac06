//! What a client may send, decoded strictly from one frame at a time.
//!
//! A frame arrives whole and within its bound (see [`frame`](super::frame)). Its fields must fill it exactly: a count or
//! length that reaches past the frame, text that is not UTF-8, and bytes left over are each a [`Malformed`] frame, which
//! ends the connection. Decoding never panics and never allocates more than the frame holds.

use bytes::{Buf, Bytes};
use thiserror::Error;

/// A message of a client that is connected.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Statements of the simple protocol, separated by semicolons.
    Query(String),
    /// Prepares a statement.
    Parse {
        /// Its name; empty for the unnamed statement.
        name: String,
        /// Its text.
        sql: String,
        /// The types of its first parameters; 0 where the server is to find out.
        type_oids: Vec<u32>,
    },
    /// Gives a prepared statement its parameters, as a portal.
    Bind(Bind),
    /// Asks for the parameters and columns of a statement or a portal.
    Describe {
        /// Which of the two.
        target: Target,
        /// Its name.
        name: String,
    },
    /// Runs a portal.
    Execute {
        /// Its name.
        portal: String,
        /// The most rows to return; zero: all.
        max_rows: usize,
    },
    /// Forgets a statement or a portal.
    Close {
        /// Which of the two.
        target: Target,
        /// Its name.
        name: String,
    },
    /// Asks for the answers so far.
    Flush,
    /// Ends a sequence of extended messages, and with it their implicit transaction.
    Sync,
    /// A piece of the rows of a COPY.
    CopyData(Bytes),
    /// The rows of a COPY are complete.
    CopyDone,
    /// The client gives a COPY up, and says why.
    CopyFail(String),
    /// Goodbye.
    Terminate,
}

/// The fields of a Bind message.
#[derive(Debug, PartialEq)]
pub struct Bind {
    /// The name of the portal to make; empty for the unnamed one.
    pub portal: String,
    /// The name of the statement.
    pub statement: String,
    /// The formats of the parameters: none (text), one for all, or one each.
    pub parameter_formats: Vec<i16>,
    /// The values; `None` is NULL.
    pub parameters: Vec<Option<Bytes>>,
    /// The formats of the columns: none (text), one for all, or one each.
    pub result_formats: Vec<i16>,
}

/// What Describe and Close speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// The first packet of a connection.
#[derive(Debug, PartialEq)]
pub enum Opening {
    /// A wish to encrypt by TLS.
    Tls,
    /// A wish to encrypt by GSSAPI.
    Gssapi,
    /// A request to cancel the statement of another connection.
    Cancel {
        /// The process id that the server gave to that connection.
        pid: i32,
        /// The secret that goes with it.
        secret: i32,
    },
    /// A session of protocol 3, with its settings.
    Startup {
        /// The minor version that the client would like.
        minor: u16,
        /// User, database and other settings.
        settings: Vec<(String, String)>,
    },
}

/// A frame that is not of the protocol; the text says what is wrong with it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Malformed(pub String);

const PROTOCOL_MAJOR: u16 = 3;
const CODE_CANCEL: u32 = 80_877_102;
const CODE_TLS: u32 = 80_877_103;
const CODE_GSSAPI: u32 = 80_877_104;

impl Request {
    /// Decodes the frame of type `kind` with this body.
    pub fn decode(kind: u8, body: Bytes) -> Result<Request, Malformed> {
        let mut fields = Fields(body);
        let request = match kind {
            b'Q' => Request::Query(fields.text()?),
            b'P' => Request::Parse { name: fields.text()?, sql: fields.text()?, type_oids: fields.list(Fields::u32)? },
            b'B' => Request::Bind(Bind {
                portal: fields.text()?,
                statement: fields.text()?,
                parameter_formats: fields.list(Fields::format)?,
                parameters: fields.list(Fields::parameter)?,
                result_formats: fields.list(Fields::format)?,
            }),
            b'D' => Request::Describe { target: fields.target()?, name: fields.text()? },
            b'E' => Request::Execute { portal: fields.text()?, max_rows: usize::try_from(fields.u32()? as i32).unwrap_or(0) },
            b'C' => Request::Close { target: fields.target()?, name: fields.text()? },
            b'H' => Request::Flush,
            b'S' => Request::Sync,
            b'd' => return Ok(Request::CopyData(fields.0)),
            b'c' => Request::CopyDone,
            b'f' => Request::CopyFail(fields.text()?),
            b'X' => Request::Terminate,
            other => return Err(Malformed(format!("invalid frontend message type {other}"))),
        };
        fields.end()?;
        Ok(request)
    }
}

impl Opening {
    /// Decodes the body of the first packet.
    pub fn decode(body: Bytes) -> Result<Opening, Malformed> {
        let mut fields = Fields(body);
        let code = fields.u32()?;
        let opening = match code {
            CODE_TLS => Opening::Tls,
            CODE_GSSAPI => Opening::Gssapi,
            CODE_CANCEL => Opening::Cancel { pid: fields.u32()? as i32, secret: fields.u32()? as i32 },
            _ if (code >> 16) as u16 == PROTOCOL_MAJOR => {
                let mut settings = Vec::new();
                loop {
                    let name = fields.text()?;
                    if name.is_empty() {
                        break;
                    }
                    settings.push((name, fields.text()?));
                }
                Opening::Startup { minor: code as u16, settings }
            }
            _ => return Err(Malformed(format!("unsupported frontend protocol {}.{}: this server speaks 3.0", code >> 16, code as u16))),
        };
        fields.end()?;
        Ok(opening)
    }
}

/// The part of a frame that is still to be read.
struct Fields(Bytes);

impl Fields {
    fn need(&self, bytes: usize) -> Result<(), Malformed> {
        if self.0.len() < bytes { Err(Malformed("message is shorter than its fields".into())) } else { Ok(()) }
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.need(1)?;
        Ok(self.0.get_u8())
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.need(2)?;
        Ok(self.0.get_u16())
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.need(4)?;
        Ok(self.0.get_u32())
    }

    fn format(&mut self) -> Result<i16, Malformed> {
        match self.u16()? {
            format @ (0 | 1) => Ok(format as i16),
            other => Err(Malformed(format!("unsupported format code {other}: text is 0, binary is 1"))),
        }
    }

    fn parameter(&mut self) -> Result<Option<Bytes>, Malformed> {
        let length = self.u32()? as i32;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Malformed("negative length of a parameter".into()))?;
        self.need(length)?;
        Ok(Some(self.0.split_to(length)))
    }

    fn target(&mut self) -> Result<Target, Malformed> {
        match self.u8()? {
            b'S' => Ok(Target::Statement),
            b'P' => Ok(Target::Portal),
            other => Err(Malformed(format!("invalid target {other}: a statement is S, a portal is P"))),
        }
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.u16()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or_else(|| Malformed("text without its end".into()))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        String::from_utf8(text.to_vec()).map_err(|_| Malformed("invalid byte sequence for encoding \"UTF8\"".into()))
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("message is longer than its fields".into())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(kind: u8, body: &'static [u8]) -> Result<Request, Malformed> {
        Request::decode(kind, Bytes::from_static(body))
    }

    #[test]
    fn a_bind_message_is_read_field_by_field() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x02ab\0\0";
        let expected = Bind {
            portal: "p".into(),
            statement: "s".into(),
            parameter_formats: vec![1],
            parameters: vec![None, Some(Bytes::from_static(b"ab"))],
            result_formats: vec![],
        };
        assert_eq!(decode(b'B', body), Ok(Request::Bind(expected)));
    }

    #[test]
    fn every_truncation_of_a_message_is_refused() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x02ab\0\0";
        for length in 0..body.len() {
            assert!(Request::decode(b'B', Bytes::from_static(&body[..length])).is_err(), "{length} bytes");
        }
        assert_eq!(decode(b'Q', b"select 1\0x"), Err(Malformed("message is longer than its fields".into())));
        assert_eq!(decode(b'Q', b"select 1"), Err(Malformed("text without its end".into())));
        assert!(decode(b'Q', b"\xff\0").is_err());
        assert!(decode(b'?', b"").is_err());
    }

    #[test]
    fn the_first_packet_starts_a_session_or_cancels_a_statement() {
        let startup = Opening::decode(Bytes::from_static(b"\0\x03\0\0user\0me\0\0"));
        assert_eq!(startup, Ok(Opening::Startup { minor: 0, settings: vec![("user".into(), "me".into())] }));
        let cancel = Opening::decode(Bytes::from_static(b"\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x09"));
        assert_eq!(cancel, Ok(Opening::Cancel { pid: 7, secret: 9 }));
        assert!(Opening::decode(Bytes::from_static(b"GET / HTTP/1.1\r\n")).is_err());
    }
}
