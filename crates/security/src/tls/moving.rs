//! A connection whose handshake is done on one runtime, and which goes on on another.
//!
//! A handshake costs some tenths of a millisecond of signing and checking before anybody has proved anything; a thread that has something better to do leaves
//! it to others.

use super::lease::Lease;
use super::stream::Stream;
use rustls::{ServerConfig, ServerConnection};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server};

/// A connection between two runtimes.
pub struct Moving {
    socket: std::net::TcpStream,
    connection: ServerConnection,
    config: Arc<ServerConfig>,
    lease: Lease,
}

impl Moving {
    /// Takes `stream`, whose handshake is done, from the present runtime.
    pub(super) fn new(stream: server::TlsStream<TcpStream>, config: Arc<ServerConfig>, lease: Lease) -> io::Result<Moving> {
        let (socket, connection) = stream.into_inner();
        Ok(Moving { socket: socket.into_std()?, connection, config, lease })
    }

    /// The connection on the present runtime.
    pub async fn arrive(self) -> io::Result<Stream> {
        let Moving { socket, connection, config, lease } = self;
        // No handshake comes of it: the one of `connection` is done.
        let accepted = TlsAcceptor::from(config).accept_with(TcpStream::from_std(socket)?, |fresh| *fresh = connection).await?;
        Ok(Stream::Tls(Box::new(accepted.into()), lease))
    }
}

impl fmt::Debug for Moving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Moving")
    }
}
