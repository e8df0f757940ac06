//! How the two ends of a connection make sure of each other before either believes anything.
//!
//! ```text
//!   connecting                                      accepting
//!     ├── greeting: nonce ─────────────────────────────▶│
//!     │◀──────────────────────────── greeting: nonce ───┤
//!     ├── hello, with a proof over both nonces ────────▶│ proven? else it closes
//!     │◀──────────── hello, with a proof over both ─────┤
//!     │ proven? else it closes
//! ```
//!
//! Invariants: until the proof is verified, nothing of what the other end said is looked at but magic and version, nothing is kept, and
//! nothing but a nonce is told to who has connected. A proof heard on one connection is worth nothing on another.

use super::acquaintance::Acquaintance;
use crate::secret;
use crate::transport::frame::{self, FrameError, GREETING_BYTES, Greeting, Greetings, HELLO_BYTES, Hello, Side};
use rhumb_core::SiteId;
use rhumb_security::tls::Stream;
use std::io;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Why the other end is not believed.
#[derive(Debug, Error)]
pub enum Unproven {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("it left without {0}")]
    Left(&'static str),
    #[error("it closed the connection without {0}; its log says why, and most often the two have different secrets (`secret_file`)")]
    Closed(&'static str),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Makes sure of `peer`, to which `stream` has connected: what it says in its hello.
pub async fn connecting(stream: &mut Stream, own: &Acquaintance, peer: SiteId) -> Result<Hello, Unproven> {
    let mine = Greeting { nonce: secret::random()? };
    send(stream, &mine.encode()).await?;
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes).await.map_err(closed("a greeting"))?;
    let greetings = Greetings { connecting: mine, accepting: Greeting::decode(&bytes)? };
    send(stream, &own.hello(peer).seal(own.secret(), &greetings, Side::Connecting)).await?;
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).await.map_err(closed("a hello"))?;
    Ok(Hello::open(&bytes, own.secret(), &greetings, Side::Accepting)?)
}

/// Makes sure of whoever has connected: what it says in its hello, and the greetings to which the answer is bound.
pub async fn accepting(stream: &mut Stream, own: &Acquaintance) -> Result<(Hello, Greetings), Unproven> {
    let connecting = read_greeting(stream).await?;
    let accepting = Greeting { nonce: secret::random()? };
    send(stream, &accepting.encode()).await?;
    let greetings = Greetings { connecting, accepting };
    let mut bytes = [0; HELLO_BYTES];
    stream.read_exact(&mut bytes).await.map_err(left("a hello"))?;
    Ok((Hello::open(&bytes, own.secret(), &greetings, Side::Connecting)?, greetings))
}

/// Says something, and sees that it leaves.
pub async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Reads a greeting. What cannot become one is turned away at its first wrong byte.
async fn read_greeting(stream: &mut Stream) -> Result<Greeting, Unproven> {
    let mut bytes = [0; GREETING_BYTES];
    let mut filled = 0;
    while filled < GREETING_BYTES {
        let count = stream.read(&mut bytes[filled..]).await?;
        if count == 0 {
            return Err(Unproven::Left("a greeting"));
        }
        filled += count;
        if !frame::may_be_greeting(&bytes[..filled]) {
            return Err(FrameError::Magic.into());
        }
    }
    Ok(Greeting::decode(&bytes)?)
}

/// For `map_err`: whoever has connected is gone before it said this.
fn left(what: &'static str) -> impl Fn(io::Error) -> Unproven {
    move |error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Unproven::Left(what),
        _ => Unproven::Io(error),
    }
}

/// The same of whom this site has connected to.
fn closed(what: &'static str) -> impl Fn(io::Error) -> Unproven {
    move |error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Unproven::Closed(what),
        _ => Unproven::Io(error),
    }
}
