//! Clients of PostgreSQL: a listener, and a session for each connection.
//!
//! Clients show a certificate where connections are encrypted; in plain text there is no authentication, so the listener must be on the loopback.
//! Any user may connect; the database must exist. What one connection does wrong ends that connection only.

use crate::catalog::keep_reclaiming;
use crate::context::environment::{Environment, System};
use crate::context::{STARTUP_TIMEOUT, WRITE_STALL_TIMEOUT};
use crate::engine::Engine;
use crate::error::{SqlError, SqlResult, SqlState};
use crate::protocols::Gateways;
use crate::session::{Canceller, Session};
use crate::stack::LargeStack;
use crate::wire::budget::{Budget, Pool};
use crate::wire::connection::{Connection, Ending, Output};
use crate::wire::encryption::{Encrypted, encrypt};
use crate::wire::frame::{FrameError, FrameReader};
use crate::wire::request::Opening;
use crate::wire::stop::Stop;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::ErrorResponse;
use pgwire::messages::startup::{Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey};
use rhumb_core::SiteId;
use rhumb_quota::gateway::Quotas;
use rhumb_security::tls::{Acceptor, Reader, Stream};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// How long to wait after the system refused a connection, say for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The most connections whose session has not started yet; further ones are closed at once.
const OPENINGS_MAX: usize = 1_000;
/// How often to look for rows of dropped tables.
const RECLAIM_EVERY: Duration = Duration::from_secs(60);
const TOO_MANY_CONNECTIONS: &str = "53300";
const CANNOT_CONNECT_NOW: &str = "57P03";
const NOT_ENCRYPTED: &str = "28000";

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The site that serves; it marks the ids of rows without a primary key.
    pub site: SiteId,
    /// The most sessions at a time; one more is refused with SQLSTATE 53300.
    pub connections_max: usize,
    /// A client that reads nothing of its answers for so long is disconnected.
    pub write_stall_max: Duration,
    /// The bytes that prepared statements and portals of all sessions may hold; more are refused with SQLSTATE 53200.
    pub statement_bytes_max: usize,
    /// What encrypts connections; in plain text if absent.
    pub tls: Option<Acceptor>,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            site: SiteId::new(0, 0),
            connections_max: 500,
            write_stall_max: WRITE_STALL_TIMEOUT,
            statement_bytes_max: 512 << 20,
            tls: None,
        }
    }
}

impl ServerOptions {
    /// The most connections that are open at a time, those whose session has not started among them.
    pub fn sockets_max(&self) -> usize {
        self.connections_max + OPENINGS_MAX
    }
}

/// Tells a client that it cannot be served now, and why, with SQLSTATE 57P03.
pub async fn decline(stream: TcpStream, tls: Option<&Acceptor>, reason: &str) {
    let declined = async {
        let stream = match tls {
            None => Stream::from(stream),
            Some(tls) => match encrypt(stream, tls).await? {
                Encrypted::Stream(stream) => stream,
                _ => return Ok(()),
            },
        };
        let (read, write) = stream.into_split();
        let (mut reader, mut output) = (FrameReader::new(read), Output::new(write, STARTUP_TIMEOUT));
        match opening(&mut reader, &mut output).await? {
            Some(Opening::Startup { .. }) => refuse(&mut output, CANNOT_CONNECT_NOW, reason).await,
            _ => Ok(()),
        }
    };
    if let Ok(Err(ending)) = tokio::time::timeout(STARTUP_TIMEOUT, declined).await {
        tracing::debug!(%ending, "a connection ended");
    }
}

struct Server {
    engine: Arc<Engine>,
    sessions: Semaphore,
    statements: Arc<Pool>,
    openings: Semaphore,
    next_pid: AtomicI32,
    cancellers: Mutex<BTreeMap<i32, (i32, Canceller)>>,
    write_stall_max: Duration,
    tls: Option<Acceptor>,
    stop: Stop,
}

/// Serves the clients that connect to `listener`; without `quotas` their statements about quotas are refused. Dropping the future closes the listener and all connections; what they
/// had not committed is rolled back.
pub async fn serve(
    listener: TcpListener,
    gateways: impl Into<Gateways>,
    quotas: Option<Arc<dyn Quotas>>,
    options: ServerOptions,
) -> SqlResult<()> {
    serve_until(std::future::pending(), listener, gateways, quotas, options).await
}

/// The same until `stop` is done. From then on nobody is let in, what runs goes on, and a session is ended with SQLSTATE 57P01 as soon as
/// its client has no transaction open; when all have ended, this ends.
pub async fn serve_until(
    stop: impl Future<Output = ()>,
    listener: TcpListener,
    gateways: impl Into<Gateways>,
    quotas: Option<Arc<dyn Quotas>>,
    options: ServerOptions,
) -> SqlResult<()> {
    let gateways = gateways.into();
    let environment: Arc<dyn Environment> = Arc::new(System::default());
    let (stopping, stopped) = watch::channel(false);
    let server = Arc::new(Server {
        engine: Arc::new(Engine::new(gateways.clone(), quotas, options.site, environment.clone())?),
        sessions: Semaphore::new(options.connections_max),
        statements: Arc::new(Pool::new(options.statement_bytes_max)),
        openings: Semaphore::new(OPENINGS_MAX),
        next_pid: AtomicI32::new(1),
        cancellers: Mutex::default(),
        write_stall_max: options.write_stall_max,
        tls: options.tls,
        stop: Stop(stopped),
    });
    let mut background = tokio::task::JoinSet::new();
    background.spawn(keep_reclaiming(gateways, RECLAIM_EVERY, environment));
    let mut connections = tokio::task::JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(LargeStack::new(server.clone().connection(stream)))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
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
    async fn connection(self: Arc<Server>, stream: TcpStream) {
        let Ok(place) = self.openings.try_acquire() else { return };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let mut stop = self.stop.clone();
        let log = |ending: Ending| tracing::debug!(%ending, "a connection ended");
        let stream = tokio::select! {
            stream = self.stream(stream) => stream,
            () = stop.requested() => return,
        };
        let stream = match stream {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(ending) => return log(ending),
        };
        let (read, write) = stream.into_split();
        let (mut reader, mut output) = (FrameReader::new(read), Output::new(write, self.write_stall_max));
        let opening = tokio::select! {
            opening = tokio::time::timeout(STARTUP_TIMEOUT, opening(&mut reader, &mut output)) => opening,
            () = stop.requested() => return,
        };
        drop(place);
        let ending = match opening {
            Ok(Ok(Some(Opening::Startup { minor, settings }))) => {
                return self.session(reader, output, minor, settings).await.unwrap_or_else(log);
            }
            Ok(Ok(Some(Opening::Cancel { pid, secret }))) => {
                self.cancel(pid, secret);
                return;
            }
            Ok(Ok(_)) | Err(_) => return,
            Ok(Err(ending)) => ending,
        };
        if let Ending::Frame(FrameError::Protocol(reason)) = &ending
            && let Err(ending) = refuse(&mut output, SqlState::ProtocolViolation.code(), reason).await
        {
            log(ending);
        }
        log(ending);
    }

    /// The connection as sessions go over it: encrypted if that is how this serves. `None`: it is done.
    async fn stream(&self, stream: TcpStream) -> Result<Option<Stream>, Ending> {
        let Some(tls) = &self.tls else { return Ok(Some(stream.into())) };
        match encrypt(stream, tls).await? {
            Encrypted::Stream(stream) => Ok(Some(stream)),
            Encrypted::Cancel { pid, secret } => {
                self.cancel(pid, secret);
                Ok(None)
            }
            Encrypted::Refused(mut output) => {
                refuse(&mut output, NOT_ENCRYPTED, "connections must be encrypted: connect with sslmode=verify-full").await?;
                Ok(None)
            }
            Encrypted::Closed => Ok(None),
        }
    }

    async fn session(
        &self,
        reader: FrameReader<Reader>,
        mut output: Output,
        minor: u16,
        startup: Vec<(String, String)>,
    ) -> Result<(), Ending> {
        let Ok(_place) = self.sessions.try_acquire() else {
            return refuse(&mut output, TOO_MANY_CONNECTIONS, "sorry, too many clients already").await;
        };
        let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
        let session = match self.open(pid, &startup).await {
            Ok(session) => session,
            Err(error) => {
                output.put_error(&error, true)?;
                return output.flush().await;
            }
        };
        let secret = rand::random();
        let _registration = Registration::new(self, pid, secret, session.canceller());
        let extensions: Vec<String> = startup.iter().filter(|(name, _)| name.starts_with("_pq_.")).map(|(name, _)| name.clone()).collect();
        if minor > 0 || !extensions.is_empty() {
            output.put(Answer::NegotiateProtocolVersion(NegotiateProtocolVersion::new(0, extensions)))?;
        }
        output.put(Answer::Authentication(Authentication::Ok))?;
        for (name, value) in session.settings().reported() {
            output.put(Answer::ParameterStatus(ParameterStatus::new(name.to_string(), value)))?;
        }
        output.put(Answer::BackendKeyData(BackendKeyData::new(pid, SecretKey::I32(secret))))?;
        let budget = Budget::new(self.statements.clone());
        Connection::new(reader, output, session, budget, self.stop.clone()).run().await
    }

    async fn open(&self, pid: i32, startup: &[(String, String)]) -> SqlResult<Session> {
        let setting = |wanted: &str| startup.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
        let user = setting("user")
            .filter(|user| !user.is_empty())
            .ok_or_else(|| SqlError::new(SqlState::ProtocolViolation, "no PostgreSQL user name specified in startup packet"))?;
        let database = setting("database").filter(|name| !name.is_empty()).unwrap_or_else(|| user.clone());
        let mut session = Session::open(self.engine.clone(), user, database, pid).await?;
        for (name, value) in startup {
            match name.as_str() {
                "user" | "database" | "replication" => {}
                "options" => options(value).try_for_each(|(name, value)| session.set(&name, &value))?,
                extension if extension.starts_with("_pq_.") => {}
                name => session.set(name, value)?,
            }
        }
        Ok(session)
    }

    fn cancel(&self, pid: i32, secret: i32) {
        if let Some((expected, canceller)) = self.cancellers().get(&pid)
            && *expected == secret
        {
            canceller.cancel();
        }
    }

    fn cancellers(&self) -> MutexGuard<'_, BTreeMap<i32, (i32, Canceller)>> {
        self.cancellers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// While it lives, the session can be cancelled.
struct Registration<'a> {
    server: &'a Server,
    pid: i32,
}

impl<'a> Registration<'a> {
    fn new(server: &'a Server, pid: i32, secret: i32, canceller: Canceller) -> Registration<'a> {
        server.cancellers().insert(pid, (secret, canceller));
        Registration { server, pid }
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.server.cancellers().remove(&self.pid);
    }
}

/// The first packet, after the wishes to encrypt, which are declined.
async fn opening(reader: &mut FrameReader<Reader>, output: &mut Output) -> Result<Option<Opening>, Ending> {
    const ENCRYPTION_WISHES_MAX: usize = 2;
    for _ in 0..=ENCRYPTION_WISHES_MAX {
        match reader.opening().await? {
            Some(Opening::Tls | Opening::Gssapi) => {
                output.put_byte(b'N');
                output.flush().await?;
            }
            opening => return Ok(opening),
        }
    }
    Err(FrameError::Protocol("too many requests to encrypt the connection".into()).into())
}

async fn refuse(output: &mut Output, code: &str, reason: &str) -> Result<(), Ending> {
    let fields = [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', reason)];
    let fields = fields.into_iter().map(|(field, text)| (field, text.replace('\0', ""))).collect();
    output.put(Answer::ErrorResponse(ErrorResponse::new(fields)))?;
    output.flush().await
}

/// The settings in the startup option `-c name=value --name=value`, with `\` before blanks that belong to a value.
fn options(text: &str) -> impl Iterator<Item = (String, String)> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let last = words.last_mut().expect("never empty");
        match character {
            '\\' => last.extend(characters.next()),
            blank if blank.is_whitespace() => words.push(String::new()),
            other => last.push(other),
        }
    }
    words.into_iter().filter_map(|word| {
        let word = word.strip_prefix("--").or_else(|| word.strip_prefix("-c")).unwrap_or(&word);
        word.split_once('=').map(|(name, value)| (name.replace('-', "_"), value.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_options_are_settings() {
        let found: Vec<_> = options("-c statement_timeout=5s --application-name=a\\ b").collect();
        let expected = [("statement_timeout", "5s"), ("application_name", "a b")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_string(), value.to_string())));
    }
}
