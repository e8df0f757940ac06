//! A server over a database in memory, on a port of its own.

use rhumb_sql::keyspaces::Gateways;
use rhumb_sql::server::{ServerOptions, serve};
use rhumb_sql::testing::{LocalGateway, LocalQuotas};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// A running server. It ends with the test's runtime.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its database.
    pub gateway: LocalGateway,
    /// Its quotas.
    pub quotas: LocalQuotas,
}

impl Server {
    /// Starts one with an empty database.
    pub async fn start() -> Server {
        Server::start_with(ServerOptions::default()).await
    }

    /// Starts one with these options.
    pub async fn start_with(options: ServerOptions) -> Server {
        Server::over(LocalGateway::new(), options).await
    }

    /// Starts one over a database that others may serve too.
    pub async fn over(gateway: LocalGateway, options: ServerOptions) -> Server {
        Server::behind(Arc::new(gateway.clone()).into(), gateway, options).await
    }

    /// Starts one over databases of which `gateway` is that of the names.
    pub async fn behind(gateways: Gateways, gateway: LocalGateway, options: ServerOptions) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let quotas = LocalQuotas::new();
        tokio::spawn(serve(listener, gateways, Some(Arc::new(quotas.clone())), options));
        Server { address, gateway, quotas }
    }

    /// A client of the default database.
    pub async fn connect(&self) -> Client {
        self.connect_to("rhumb").await.expect("connected")
    }

    /// A client of a database.
    pub async fn connect_to(&self, database: &str) -> Result<Client, Error> {
        let config = format!("host=127.0.0.1 port={} user=tester dbname={database}", self.address.port());
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

/// The SQLSTATE of a statement that must fail.
pub fn code<T>(result: Result<T, Error>) -> String {
    let error = result.err().expect("the statement must fail");
    error.code().unwrap_or_else(|| panic!("an error of the server, not {error:?}")).code().to_string()
}

/// The values of a query of the simple protocol, row by row, as text; NULL is `NULL`.
pub async fn strings(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    rows.flat_map(|row| (0..row.len()).map(|column| row.get(column).unwrap_or("NULL").to_string())).collect()
}
