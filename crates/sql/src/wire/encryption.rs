//! How a connection is encrypted before anything else is said on it.
//!
//! ```text
//!   client                                      server
//!     ├── SSLRequest ─────────────────────────────▶│           psql and most drivers
//!     │◀─────────────────────────────────────── S ─┤
//!     ├═══ TLS ═══▶                                │
//!
//!     ├═══ TLS, naming the protocol postgresql ═══▶│           sslnegotiation=direct
//! ```
//! A cancel request is taken in plain text, as PostgreSQL does too: libpq sends it so from a signal handler. It is answered nothing, and holds
//! nothing but two numbers that cancel one statement.
//!
//! Invariants: nothing that came in plain text is taken for what was said encrypted; a session never begins in plain text.

use super::connection::{Ending, Output};
use super::frame::{FrameError, FrameReader};
use super::request::Opening;
use crate::context::STARTUP_TIMEOUT;
use rhumb_security::tls::{Acceptor, Stream};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// The first byte of TLS, which no packet of the protocol begins with.
const TLS_HANDSHAKE: u8 = 0x16;
/// How often a client may ask for GSSAPI, which there is not.
const WISHES_MAX: usize = 2;

/// What came of a connection.
pub enum Encrypted {
    /// It is encrypted; its session is to be opened.
    Stream(Stream),
    /// It asked in plain text to cancel the statement of another.
    Cancel {
        /// The process id of that.
        pid: i32,
        /// The secret that goes with it.
        secret: i32,
    },
    /// It wants a session in plain text, and is to be told that there is none.
    Refused(Output),
    /// It was closed.
    Closed,
}

/// Encrypts a connection, within the bounds of `tls`.
pub async fn encrypt(stream: TcpStream, tls: &Acceptor) -> Result<Encrypted, Ending> {
    let address = stream.peer_addr()?.ip();
    tls.within(address, negotiate(stream, tls)).await
}

async fn negotiate(mut stream: TcpStream, tls: &Acceptor) -> Result<Encrypted, Ending> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0] == TLS_HANDSHAKE {
        let stream = tls.handshake(stream).await?;
        tls.check_direct(&stream)?;
        return Ok(Encrypted::Stream(stream));
    }
    for _ in 0..=WISHES_MAX {
        let mut reader = FrameReader::new(&mut stream);
        let opening = reader.opening().await?;
        if reader.has_more() && matches!(opening, Some(Opening::Tls | Opening::Gssapi)) {
            return Err(FrameError::Protocol("received unencrypted data after a request to encrypt".into()).into());
        }
        match opening {
            Some(Opening::Tls) => {
                stream.write_all(b"S").await?;
                return Ok(Encrypted::Stream(tls.handshake(stream).await?));
            }
            Some(Opening::Gssapi) => stream.write_all(b"N").await?,
            Some(Opening::Cancel { pid, secret }) => return Ok(Encrypted::Cancel { pid, secret }),
            Some(Opening::Startup { .. }) => {
                let (_, writer) = Stream::from(stream).into_split();
                return Ok(Encrypted::Refused(Output::new(writer, STARTUP_TIMEOUT)));
            }
            None => return Ok(Encrypted::Closed),
        }
    }
    Err(FrameError::Protocol("too many requests to encrypt the connection".into()).into())
}
