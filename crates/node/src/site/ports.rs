//! The ports that a site listens on, bound before anything is opened: a port in use changes nothing on disk.

use super::error::RunError;
use crate::config::Setup;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// The ports of a site, bound.
pub(super) struct Ports {
    pub(super) peer: TcpListener,
    pub(super) http: TcpListener,
    pub(super) sql: TcpListener,
    pub(super) resp: Option<TcpListener>,
}

impl Ports {
    pub(super) async fn bind(setup: &Setup) -> Result<Ports, RunError> {
        let peer = bind("listen.peer", setup.addresses[&setup.site]).await?;
        let http = bind("listen.http", setup.http).await?;
        let sql = bind("listen.sql", setup.sql).await?;
        let resp = match setup.resp {
            Some(address) => Some(bind("listen.resp", address).await?),
            None => None,
        };
        Ok(Ports { peer, http, sql, resp })
    }

    /// The line that says where the site listens.
    pub(super) fn describe(&self, setup: &Setup) -> String {
        let mut line = format!("site {} listens:", setup.name(setup.site));
        let ports = [("sql", Some(&self.sql)), ("resp", self.resp.as_ref()), ("http", Some(&self.http)), ("peer", Some(&self.peer))];
        let known = ports.into_iter().filter_map(|(name, port)| Some((name, port?.local_addr().ok()?)));
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
