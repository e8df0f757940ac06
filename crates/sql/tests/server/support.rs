//! A server over a database in memory, on a port of its own.

use rhumb_sql::Gateways;
use rhumb_sql::server::{ServerOptions, serve};
use rhumb_sqltestkit::{LocalGateway, LocalQuotas};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
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

/// A connection of the default database that speaks the protocol message by message.
pub struct Wire {
    stream: TcpStream,
    /// What a request to cancel names the session by.
    key: Vec<u8>,
}

/// A message of the server: its type and its body.
pub type Message = (u8, Vec<u8>);

impl Wire {
    /// Connects and starts a session.
    pub async fn open(server: &Server) -> Wire {
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        stream.write_all(b"\0\0\0\x24\0\x03\0\0user\0tester\0database\0rhumb\0\0").await.expect("sent");
        let mut wire = Wire { stream, key: Vec::new() };
        let greeting = wire.until_ready().await;
        wire.key = greeting.into_iter().find(|(kind, _)| *kind == b'K').expect("a key").1;
        wire
    }

    /// Asks to cancel what the session does. Done once the server has read it.
    pub async fn cancel(&self, server: &Server) {
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let request = [&16u32.to_be_bytes()[..], &80_877_102u32.to_be_bytes(), &self.key].concat();
        stream.write_all(&request).await.expect("sent");
        stream.read_to_end(&mut Vec::new()).await.expect("closed");
    }

    /// Sends a message.
    pub async fn send(&mut self, kind: u8, body: &[u8]) {
        let length = u32::try_from(body.len() + 4).expect("a length").to_be_bytes();
        self.stream.write_all(&[&[kind][..], &length, body].concat()).await.expect("sent");
    }

    /// Sends a text of the simple protocol; all that is answered up to ReadyForQuery.
    pub async fn query(&mut self, sql: &str) -> Vec<Message> {
        self.send(b'Q', &[sql.as_bytes(), b"\0"].concat()).await;
        self.until_ready().await
    }

    /// The next message; `None` at the end of the connection.
    pub async fn next(&mut self) -> Option<Message> {
        let kind = self.stream.read_u8().await.ok()?;
        let length = self.stream.read_u32().await.expect("a length") as usize - 4;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.expect("a body");
        Some((kind, body))
    }

    /// All messages up to ReadyForQuery, or to the end of the connection.
    pub async fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            if message.0 == b'Z' {
                break;
            }
            messages.push(message);
        }
        messages
    }
}

/// The SQLSTATE of the first error among messages.
pub fn state_of(messages: &[Message]) -> Option<String> {
    let (_, body) = messages.iter().find(|(kind, _)| *kind == b'E')?;
    field_of(body, b'C')
}

/// A field of an error.
pub fn field_of(body: &[u8], field: u8) -> Option<String> {
    let text = body.split(|byte| *byte == 0).find(|part| part.first() == Some(&field))?;
    Some(String::from_utf8(text[1..].to_vec()).expect("text"))
}
