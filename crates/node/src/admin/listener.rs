//! The HTTP listener: whoever connects to it takes a bounded part of the site, for a bounded time.
//!
//! ```text
//!   connected ──(head within HEAD_MAX, body within BODY_MAX)──▶ a request ──▶ the routes ──▶ the answer, read on within UNREAD_MAX
//!       ▲                                                                                         │
//!       └─────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Of a connection on the left the client owes something; one on the right has been asked something. When all places are taken and another
//! client comes, the one that owes longest leaves, of those from where most come. So half-sent requests, however many, keep nobody out who sends a whole one.
//!
//! Told to stop, it closes the connections on the left of which nothing has come, and every other one after its answer. Who connects later
//! is still served, for the sake of probes: to all others the routes say that the site is stopping.
//!
//! An encrypted connection owes its handshake first. Requests carry who makes them (`Caller`).
//!
//! Invariant: at most [`CONNECTIONS_MAX`] connections are served at a time.

use super::caller::Caller;
use super::failed::Failed;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, Response, header};
use axum::response::IntoResponse;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rhumb_api::error::Code;
use rhumb_security::crowd::{Crowd, Ticket};
use rhumb_security::tls::{Acceptor, HandshakeError, Stream};
use std::convert::Infallible;
use std::future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;

/// Connections at a time at the most.
pub const CONNECTIONS_MAX: usize = 256;
/// The longest body of a request, in bytes.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// What is kept of a connection that has been read and not carried out, or made and not sent, in bytes: the longest head.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// How long the head of a request may take, from when it may come.
const HEAD_MAX: Duration = Duration::from_secs(5);
/// How long its body may take.
const BODY_MAX: Duration = Duration::from_secs(10);
/// How long a client may leave an answer unread.
const UNREAD_MAX: Duration = Duration::from_secs(10);
/// How long to wait after the system refused a connection, say for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where clients connect.
pub struct Entrance {
    /// The port.
    pub listener: TcpListener,
    /// What encrypts; in plain text if absent.
    pub tls: Option<Acceptor>,
}

/// Serves `routes` to those who connect. Once `stop` is over, those who are connected then are answered what they have
/// asked, and leave; `answered` is told when all have. Dropping the future closes the listener and all connections.
pub async fn serve(entrance: Entrance, routes: Router, stop: impl Future<Output = ()>, answered: oneshot::Sender<()>) {
    let Entrance { listener, tls } = entrance;
    let mut door = Door { listener, tls, routes, waiting: Arc::default(), connections: JoinSet::new() };
    let (before, after) = (watch::Sender::new(()), watch::Sender::new(()));
    tokio::select! {
        never = door.admit(&before) => match never {},
        () = stop => {}
    }
    let leave = async {
        before.send_replace(());
        before.closed().await;
        // Who wanted to know may have run out of patience.
        let _ = answered.send(());
        future::pending::<()>().await;
    };
    tokio::select! {
        never = door.admit(&after) => match never {},
        () = leave => {}
    }
}

/// Where clients come in.
struct Door {
    listener: TcpListener,
    tls: Option<Acceptor>,
    routes: Router,
    waiting: Arc<Mutex<Waiting>>,
    connections: JoinSet<()>,
}

impl Door {
    /// Lets clients in, who leave when `leave` tells them to.
    async fn admit(&mut self, leave: &watch::Sender<()>) -> Infallible {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        let place = Place::new(Arc::clone(&self.waiting), address.ip());
                        if self.connections.len() >= CONNECTIONS_MAX {
                            let leaves = lock(&self.waiting).dismiss();
                            // Where all are being answered, nobody leaves for another; and whoever comes in numbers leaves itself.
                            let Some(leaves) = leaves.filter(|leaves| !Arc::ptr_eq(leaves, &place.dismissed)) else { continue };
                            leaves.notify_one();
                            self.connections.join_next().await;
                        }
                        self.connections.spawn(connection((stream, self.tls.clone()), self.routes.clone(), place, leave.subscribe()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = self.connections.join_next() => {}
            }
        }
    }
}

async fn connection((stream, tls): (TcpStream, Option<Acceptor>), routes: Router, place: Place, mut leave: watch::Receiver<()>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let opened = tokio::select! {
        biased;
        opened = open(stream, tls) => opened,
        Ok(()) = leave.changed() => return,
        () = place.dismissed.notified() => return tracing::debug!("a connection made room for another"),
    };
    let (stream, caller) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::debug!(%error, "a connection was not encrypted"),
    };
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD_MAX));
    let place = Arc::new(place);
    let asked = Arc::clone(&place);
    let service = service_fn(move |request| {
        let (routes, place, caller) = (routes.clone(), Arc::clone(&asked), caller.clone());
        async move { Ok::<_, Infallible>(answer(routes, place, request, caller).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut served = pin!(served);
    loop {
        tokio::select! {
            // In this order: a request that has come is read before its client is told to leave.
            biased;
            ended = &mut served => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
                return;
            }
            Ok(()) = leave.changed() => served.as_mut().graceful_shutdown(),
            () = place.dismissed.notified() => return tracing::debug!("a connection made room for another"),
        }
    }
}

/// The connection as requests come over it, and who makes them.
async fn open(stream: TcpStream, tls: Option<Acceptor>) -> Result<(Stream, Caller), HandshakeError> {
    let Some(tls) = tls else { return Ok((stream.into(), Caller::Local)) };
    let stream = tls.accept(stream).await?;
    let caller = stream.peer().map_or(Caller::Anonymous, |certificate| Caller::Certified(Arc::new(certificate)));
    Ok((stream, caller))
}

/// Answers a request once it has come whole.
async fn answer(routes: Router, place: Arc<Place>, request: Request<Incoming>, caller: Caller) -> Response<Body> {
    let (mut head, body) = request.into_parts();
    head.extensions.insert(caller);
    let body = match tokio::time::timeout(BODY_MAX, whole(body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(failed)) => return refuse(failed),
        Err(_) => return refuse(Failed::new(Code::Timeout, format!("the body did not come within {} s", BODY_MAX.as_secs()))),
    };
    let busy = Busy::new(place);
    let answer = match TowerToHyperService::new(routes).call(Request::from_parts(head, Body::from(body))).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    // Until all of it is made, the place is held.
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _held = &busy;
            frame
        }))
    })
}

async fn whole(body: Incoming) -> Result<Bytes, Failed> {
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failed::too_large(BODY_BYTES_MAX)),
        Err(error) => Err(Failed::invalid(format!("the body cannot be read: {error}"))),
    }
}

/// An answer to a request of which a part was not read, and after which none can be.
fn refuse(failed: Failed) -> Response<Body> {
    let mut answer = failed.into_response();
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// The connections of which the client owes something.
type Waiting = Crowd<Arc<Notify>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of one connection.
struct Place {
    waiting: Arc<Mutex<Waiting>>,
    dismissed: Arc<Notify>,
    /// Where its client comes from.
    address: IpAddr,
    /// Its place among those that wait, if it does.
    ticket: Mutex<Option<Ticket>>,
}

impl Place {
    /// That of a connection just made from `address`.
    fn new(waiting: Arc<Mutex<Waiting>>, address: IpAddr) -> Place {
        let place = Place { waiting, dismissed: Arc::new(Notify::new()), address, ticket: Mutex::default() };
        place.begin();
        place
    }

    fn begin(&self) {
        *lock(&self.ticket) = Some(lock(&self.waiting).enter(self.address, Arc::clone(&self.dismissed)));
    }

    fn end(&self) {
        if let Some(ticket) = lock(&self.ticket).take() {
            lock(&self.waiting).leave(ticket);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end();
    }
}

/// While it lives, the connection is not dismissed.
struct Busy(Arc<Place>);

impl Busy {
    fn new(place: Arc<Place>) -> Busy {
        place.end();
        Busy(place)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.begin();
    }
}
