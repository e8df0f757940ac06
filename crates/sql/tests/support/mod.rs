//! A server over a database in memory, on a port of its own.

use rhumb_sql::server::{ServerOptions, serve};
use rhumb_sql::testing::LocalGateway;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_postgres::{Client, NoTls};

/// A running server. It ends with the test's runtime.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its database.
    pub gateway: LocalGateway,
}

impl Server {
    /// Starts one with an empty database.
    pub async fn start() -> Server {
        Server::start_with(ServerOptions::default()).await
    }

    /// Starts one with these options.
    pub async fn start_with(options: ServerOptions) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let gateway = LocalGateway::new();
        tokio::spawn(serve(listener, Arc::new(gateway.clone()), options));
        Server { address, gateway }
    }

    /// The settings of a connection to it.
    pub fn config(&self) -> String {
        format!("host=127.0.0.1 port={} user=tester dbname=rhumb", self.address.port())
    }

    /// A client of it.
    pub async fn connect(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.config(), NoTls).await.expect("connected");
        tokio::spawn(connection);
        client
    }
}

/// The SQLSTATE of a statement that must fail.
pub fn code<T: Debug>(result: Result<T, tokio_postgres::Error>) -> String {
    let error = result.expect_err("the statement must fail");
    error.code().unwrap_or_else(|| panic!("an error of the server, not {error:?}")).code().to_string()
}
