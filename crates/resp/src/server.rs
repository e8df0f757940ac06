//! A listener for clients of Redis, and a task for each connection.
//!
//! Clients show a certificate where connections are encrypted; in plain text there is no authentication, so the listener must be on the loopback. What
//! one connection does wrong ends that
//! connection only.

use crate::connection::Connection;
use crate::session::{Session, Vitals};
use rhumb_core::SiteId;
use rhumb_quota::gateway::Quotas;
use rhumb_security::tls::{Acceptor, HANDSHAKES_MAX, HandshakeError, Stream};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long to wait after the system refused a connection, say for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that are being told at the same time that there are too many; further ones are closed without a word.
const REFUSALS_MAX: usize = 100;
/// How long telling one may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
const TOO_MANY_CONNECTIONS: &[u8] = b"-ERR max number of clients reached\r\n";

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Connections at a time at the most; one more is told so and closed.
    pub connections_max: usize,
    /// What people call the sites; one without a name is shown by its id.
    pub site_names: BTreeMap<SiteId, String>,
    /// What encrypts connections; in plain text if absent.
    pub tls: Option<Acceptor>,
    /// Where handshakes are done, so that whoever only makes connections takes nothing of the thread that serves; there as well if absent.
    pub handshakes: Option<Handle>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions { connections_max: 1_000, site_names: BTreeMap::new(), tls: None, handshakes: None }
    }
}

impl ServerOptions {
    /// The most connections that are open at a time, those that are being told to go, or are about a handshake, among them.
    pub fn sockets_max(&self) -> usize {
        self.connections_max + REFUSALS_MAX + HANDSHAKES_MAX
    }
}

struct Server {
    quotas: Arc<dyn Quotas>,
    vitals: Vitals,
    tls: Option<Acceptor>,
    handshakes: Option<Handle>,
    stopped: watch::Receiver<bool>,
}

/// Serves the clients that connect to `listener`, on the runtime that it is called on. Dropping the future closes the
/// listener and all connections; operations that the quotas have not answered by then may be done or not.
pub async fn serve(listener: TcpListener, quotas: Arc<dyn Quotas>, options: ServerOptions) -> io::Result<()> {
    serve_until(std::future::pending(), listener, quotas, options).await
}

/// The same until `stop` is done. From then on nobody is let in, and a connection is closed as soon as all that has come on it is carried out
/// and answered; when all have ended, this ends.
pub async fn serve_until(
    stop: impl Future<Output = ()>,
    listener: TcpListener,
    quotas: Arc<dyn Quotas>,
    options: ServerOptions,
) -> io::Result<()> {
    let (stopping, stopped) = watch::channel(false);
    let places = options.connections_max;
    let handshakes = if options.tls.is_some() { HANDSHAKES_MAX } else { 0 };
    let ServerOptions { site_names, tls, handshakes: home, .. } = options;
    let server = Arc::new(Server { quotas, vitals: Vitals::new(places, site_names), tls, handshakes: home, stopped });
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok(_) if connections.len() >= places.saturating_add(REFUSALS_MAX + handshakes) => {}
                Ok((stream, peer)) => drop(connections.spawn(server.clone().connection(stream, peer))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    stopping.send_replace(true);
    while connections.join_next().await.is_some() {}
    Ok(())
}

impl Server {
    async fn connection(self: Arc<Server>, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let stream = match &self.tls {
            None => Stream::from(stream),
            // The bounds of handshakes are theirs: no client takes a place before its own is done.
            Some(tls) => match encrypt(tls, self.handshakes.as_ref(), stream).await {
                Ok(stream) => stream,
                Err(error) => return tracing::debug!(%peer, %error, "a connection was not encrypted"),
            },
        };
        let Some((_place, id)) = self.vitals.enter() else { return refuse(stream).await };
        let session = Session::new(id, peer);
        if let Err(ending) = Connection::new(stream, session, &*self.quotas, &self.vitals, self.stopped.clone()).run().await {
            tracing::debug!(%peer, %ending, "a connection ended");
        }
    }
}

/// Encrypts a connection, the handshake on the runtime `elsewhere` if there is one.
async fn encrypt(tls: &Acceptor, elsewhere: Option<&Handle>, stream: TcpStream) -> Result<Stream, HandshakeError> {
    let Some(elsewhere) = elsewhere else { return tls.accept(stream).await };
    let (tls, socket) = (tls.clone(), stream.into_std()?);
    // It ends with whoever waits for it.
    let mut work = JoinSet::new();
    work.spawn_on(async move { tls.accept_moving(TcpStream::from_std(socket)?).await }, elsewhere);
    match work.join_next().await {
        Some(Ok(moving)) => Ok(moving?.arrive().await?),
        Some(Err(error)) => Err(io::Error::other(error).into()),
        None => unreachable!("there is one task"),
    }
}

async fn refuse(mut stream: Stream) {
    let told = async {
        stream.write_all(TOO_MANY_CONNECTIONS).await?;
        stream.flush().await
    };
    if !matches!(timeout(REFUSAL_TIMEOUT, told).await, Ok(Ok(()))) {
        tracing::debug!("could not tell a client that there are too many");
    }
}
