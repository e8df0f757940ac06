//! What accepts connections at a port: handshakes, bounded in number and time.

use super::config::Port;
use super::handshakes::{HANDSHAKES_MAX, Handshakes};
use super::lease::Lease;
use super::moving::Moving;
use super::stream::Stream;
use super::{Tls, config};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// How long a handshake may take.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Accepts connections at one port. Clones share its bound.
#[derive(Clone)]
pub struct Acceptor {
    tls: Arc<Tls>,
    port: Port,
    handshakes: Arc<Handshakes>,
}

/// Why a connection was not accepted.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum HandshakeError {
    #[error("no handshake: {0}")]
    Failed(#[from] io::Error),
    #[error("no handshake within {} s", HANDSHAKE_MAX.as_secs())]
    Slow,
    #[error("it was about its handshake, and more than {HANDSHAKES_MAX} connections were")]
    Crowded,
    #[error("direct TLS without the protocol `postgresql` (ALPN)")]
    Protocol,
}

impl Acceptor {
    pub(super) fn new(tls: Arc<Tls>, port: Port) -> Acceptor {
        Acceptor { tls, port, handshakes: Arc::default() }
    }

    /// Makes a connection out of `stream`, whose other end has to begin a handshake.
    pub async fn accept(&self, stream: TcpStream) -> Result<Stream, HandshakeError> {
        let address = stream.peer_addr()?.ip();
        self.within(address, self.handshake(stream)).await
    }

    /// The same without the bounds, for who keeps to them by [`Acceptor::within`].
    pub async fn handshake(&self, stream: TcpStream) -> Result<Stream, HandshakeError> {
        let changes = self.tls.changes();
        let acceptor = TlsAcceptor::from(self.tls.current().configs.server(self.port));
        Ok(Stream::encrypted(acceptor.accept(stream).await?, |chain| Lease::new(Arc::clone(&self.tls), changes, chain)))
    }

    /// The same for who goes on with the connection on another runtime.
    pub async fn accept_moving(&self, stream: TcpStream) -> Result<Moving, HandshakeError> {
        let address = stream.peer_addr()?.ip();
        let handshake = async {
            let changes = self.tls.changes();
            let config = self.tls.current().configs.server(self.port);
            let stream = TlsAcceptor::from(Arc::clone(&config)).accept(stream).await?;
            let lease = match stream.get_ref().1.peer_certificates() {
                Some(chain) => Lease::new(Arc::clone(&self.tls), changes, chain.to_vec()),
                None => Lease::unlimited(),
            };
            Ok(Moving::new(stream, config, lease)?)
        };
        self.within(address, handshake).await
    }

    /// Waits for what comes before the connection of who comes from `address` is encrypted: no longer than [`HANDSHAKE_MAX`], and not while too many others
    /// are about it.
    pub async fn within<T, E: From<HandshakeError>>(&self, address: IpAddr, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let place = self.handshakes.enter(address);
        tokio::select! {
            biased;
            () = place.dismissed() => Err(HandshakeError::Crowded.into()),
            done = tokio::time::timeout(HANDSHAKE_MAX, work) => done.unwrap_or_else(|_| Err(HandshakeError::Slow.into())),
        }
    }

    /// Whether the client of `stream`, which began with TLS at once, has said that it speaks the protocol of PostgreSQL: otherwise what it sends may be
    /// meant for another server, to which somebody has given this port's address.
    pub fn check_direct(&self, stream: &Stream) -> Result<(), HandshakeError> {
        if stream.protocol() == Some(config::POSTGRES) { Ok(()) } else { Err(HandshakeError::Protocol) }
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").field("port", &self.port).finish_non_exhaustive()
    }
}
