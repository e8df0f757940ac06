//! The ports that a site listens on, bound before anything is opened: a port in use changes nothing on disk.

use super::error::RunError;
use rhumb_config::Setup;
use rhumb_security::tls::{Acceptor, Port, Tls};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// A port for clients, bound.
pub struct ClientPort {
    /// Where they connect.
    pub listener: TcpListener,
    /// What encrypts; in plain text, on the loopback, if absent.
    pub tls: Option<Acceptor>,
}

/// The ports of a site, bound.
pub(super) struct Ports {
    pub(super) peer: TcpListener,
    pub(super) http: ClientPort,
    pub(super) sql: ClientPort,
    pub(super) resp: Option<ClientPort>,
}

impl Ports {
    /// Binds those of `setup`. Clients are served over `tls` if there is one.
    pub(super) async fn bind(setup: &Setup, tls: Option<&Arc<Tls>>) -> Result<Ports, RunError> {
        let client = |listener, port| ClientPort { listener, tls: tls.map(|tls| tls.acceptor(port)) };
        let peer = bind("listen.peer", setup.addresses[&setup.site]).await?;
        let http = client(bind("listen.http", setup.http).await?, Port::Http);
        let sql = client(bind("listen.sql", setup.sql).await?, Port::Sql);
        let resp = match setup.resp {
            Some(address) => Some(client(bind("listen.resp", address).await?, Port::Resp)),
            None => None,
        };
        Ok(Ports { peer, http, sql, resp })
    }

    /// The line that says where the site listens.
    pub(super) fn describe(&self, setup: &Setup) -> String {
        let mut line = format!("site {} listens:", setup.name(setup.site));
        let clients = [("sql", Some(&self.sql)), ("resp", self.resp.as_ref()), ("http", Some(&self.http))];
        let ports = clients.into_iter().map(|(name, port)| (name, port.map(|port| &port.listener))).chain([("peer", Some(&self.peer))]);
        let known = ports.filter_map(|(name, port)| Some((name, port?.local_addr().ok()?)));
        let known: Vec<String> = known.map(|(name, address)| format!(" {name} {address}")).collect();
        line.push_str(&known.join(","));
        line
    }
}

async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, RunError> {
    TcpListener::bind(address).await.map_err(|reason| match reason.kind() {
        io::ErrorKind::AddrInUse => RunError::InUse { key, address },
        _ => RunError::Listen { key, address, reason },
    })
}
