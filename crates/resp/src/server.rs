//! A listener for clients of Redis, and a task for each connection.
//!
//! There is no authentication, so the listener must be on the loopback. What one connection does wrong ends that
//! connection only.

use crate::connection::Connection;
use crate::session::{Session, Vitals};
use rhumb_core::SiteId;
use rhumb_quota::gateway::Quotas;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
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
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions { connections_max: 1_000, site_names: BTreeMap::new() }
    }
}

impl ServerOptions {
    /// The most connections that are open at a time, those that are being told to go among them.
    pub fn sockets_max(&self) -> usize {
        self.connections_max + REFUSALS_MAX
    }
}

struct Server {
    quotas: Arc<dyn Quotas>,
    vitals: Vitals,
}

/// Serves the clients that connect to `listener`, on the runtime that it is called on. Dropping the future closes the
/// listener and all connections; operations that the quotas have not answered by then may be done or not.
pub async fn serve(listener: TcpListener, quotas: Arc<dyn Quotas>, options: ServerOptions) -> io::Result<()> {
    let places = options.connections_max;
    let server = Arc::new(Server { quotas, vitals: Vitals::new(places, options.site_names) });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(_) if connections.len() >= places.saturating_add(REFUSALS_MAX) => {}
                Ok((stream, peer)) => drop(connections.spawn(server.clone().connection(stream, peer))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Server {
    async fn connection(self: Arc<Server>, stream: TcpStream, peer: SocketAddr) {
        let Some((_place, id)) = self.vitals.enter() else { return refuse(stream).await };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let session = Session::new(id, peer);
        if let Err(ending) = Connection::new(stream, session, &*self.quotas, &self.vitals).run().await {
            tracing::debug!(%peer, %ending, "a connection ended");
        }
    }
}

async fn refuse(mut stream: TcpStream) {
    if !matches!(timeout(REFUSAL_TIMEOUT, stream.write_all(TOO_MANY_CONNECTIONS)).await, Ok(Ok(()))) {
        tracing::debug!("could not tell a client that there are too many");
    }
}
