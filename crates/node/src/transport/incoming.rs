//! The tasks that hear peers: one accepts connections, one per connection reads it.
//!
//! A connection that does not keep to the protocol is closed; the log says so, though not of each of many unproven ones, and nothing
//! else notices. Nothing that it said is believed before it has proved that it is of a site of this cluster ([`super::handshake`]). A peer has
//! one connection: a newer one replaces it, one of an earlier incarnation is refused as long as there is one of a later.

use super::acquaintance::Acquaintance;
use super::handshake::{self, Unproven};
use super::link::Link;
use super::throttle::Throttle;
use super::unproven::{UNPROVEN_MAX, UnprovenConnections};
use super::{Inboxes, Transport};
use crate::incarnation::IncarnationId;
use crate::transport::frame::{self, FrameError, Greetings, HEADER_BYTES, Hello, Kind, Ping, Side};
use bytes::{Buf, BytesMut};
use rhumb_core::SiteId;
use rhumb_security::tls::{HandshakeError, Stream};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Who connects must have proved by then that it is a site of this cluster.
const PROOF_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the log says that an unproven connection was turned away.
const UNPROVEN_SAID_EVERY: Duration = Duration::from_secs(1);
/// After a failure to accept (out of file descriptors, say), so long a pause.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 64 << 10;

/// Why a connection was closed.
#[derive(Debug, Error)]
enum Refusal {
    #[error(transparent)]
    Unproven(#[from] Unproven),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error("it says it is the site {0}, and its certificate is not that of this site")]
    Certificate(SiteId),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("it proved nothing within {} s", PROOF_TIMEOUT.as_secs())]
    Slow,
    #[error("it had proved nothing yet, and more than {UNPROVEN_MAX} connections were such")]
    Crowded,
    #[error("it belongs to another cluster; compare `cluster` and `regions` of the two configurations")]
    Cluster,
    #[error("it means the site {0}, which is another; compare `regions` of the two configurations")]
    Meant(SiteId),
    #[error("it says it is the site {0}, which is no other site of this cluster")]
    Site(SiteId),
    #[error("it is left over from an earlier incarnation of {0}")]
    Outlived(SiteId),
    #[error("{0}")]
    Forgotten(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The connection of each peer: of which incarnation it is, and how to end it.
type Current = Arc<Mutex<BTreeMap<SiteId, (IncarnationId, AbortHandle)>>>;

/// What the connections of a site share.
struct Hearing {
    transport: Arc<Transport>,
    inboxes: Arc<Inboxes>,
    current: Current,
    unproven: UnprovenConnections,
    log: Throttle,
}

/// Accepts connections, for ever. There are at most one per peer and [`UNPROVEN_MAX`].
pub async fn run(listener: TcpListener, transport: Arc<Transport>, inboxes: Arc<Inboxes>) {
    let (current, unproven, log) = (Current::default(), UnprovenConnections::default(), Throttle::new(UNPROVEN_SAID_EVERY));
    let hearing = Arc::new(Hearing { transport, inboxes, current, unproven, log });
    let mut tasks = JoinSet::new();
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("cannot accept a connection of a site: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while tasks.try_join_next().is_some() {}
        let shared = Arc::clone(&hearing);
        // The task is told its own handle, so that a newer connection of the same peer can end it.
        let (give, take) = tokio::sync::oneshot::channel();
        let handle = tasks.spawn(async move {
            let Ok(own) = take.await else { return };
            shared.hear(stream, address, own).await;
        });
        if let Some(oldest) = hearing.unproven.add(address, handle.clone()) {
            hearing.turn_away(oldest, &Refusal::Crowded);
        }
        let _ = give.send(handle);
    }
}

fn lock(current: &Current) -> MutexGuard<'_, BTreeMap<SiteId, (IncarnationId, AbortHandle)>> {
    current.lock().expect("nothing panics while it holds the connections")
}

impl Hearing {
    async fn hear(&self, stream: TcpStream, address: SocketAddr, own: AbortHandle) {
        let id = own.id();
        let proven = tokio::time::timeout(PROOF_TIMEOUT, self.prove(stream)).await.unwrap_or(Err(Refusal::Slow));
        if !self.unproven.remove(id) {
            return;
        }
        let (mut stream, hello, greetings) = match proven {
            Ok(proven) => proven,
            Err(refusal) => return self.turn_away(address, &refusal),
        };
        let refuse = |who: &str, refusal: &Refusal| {
            self.transport.metrics.refused.inc();
            tracing::warn!("closed the connection of {who}: {refusal}");
        };
        let link = match self.greet(&mut stream, &hello, &greetings, own).await {
            Ok(link) => link,
            Err(refusal) => return refuse(&address.to_string(), &refusal),
        };
        // Now there is a way for its answer.
        link.ping(self.transport.acquaintance.counts());
        let outcome = read(stream, (link, hello.incarnation), &self.transport.acquaintance, &self.inboxes).await;
        // A connection that has ended stands in nobody's way, whatever the clocks of two incarnations say.
        lock(&self.current).retain(|_, (_, connection)| connection.id() != id);
        match outcome {
            Ok(()) => tracing::info!("{} closed its connection", link.name),
            Err(Refusal::Io(error)) => tracing::info!("lost the connection of {}: {error}", link.name),
            Err(refusal) => refuse(&format!("{} at {address}", link.name), &refusal),
        }
    }

    /// Counts an unproven connection that is turned away, and says so unless much else was said lately.
    fn turn_away(&self, address: SocketAddr, refusal: &Refusal) {
        self.transport.metrics.unproven.inc();
        if let Some(more) = self.log.pass(Instant::now()) {
            tracing::warn!("closed the connection of {address}: {refusal}{more}");
        }
    }

    async fn prove(&self, stream: TcpStream) -> Result<(Stream, Hello, Greetings), Refusal> {
        let acquaintance = &self.transport.acquaintance;
        stream.set_nodelay(true)?;
        let mut stream = acquaintance.accept(stream).await?;
        let (hello, greetings) = handshake::accepting(&mut stream, acquaintance).await?;
        if !acquaintance.is_certified(&stream, hello.site) {
            return Err(Refusal::Certificate(hello.site));
        }
        Ok((stream, hello, greetings))
    }

    /// Answers the hello of a site of this cluster, and makes this its connection.
    async fn greet(&self, stream: &mut Stream, hello: &Hello, greetings: &Greetings, own: AbortHandle) -> Result<&Link, Refusal> {
        let acquaintance = &self.transport.acquaintance;
        let answer = acquaintance.hello(hello.site).seal(acquaintance.secret(), greetings, Side::Accepting);
        if !acquaintance.is_of_cluster(hello) {
            // Our own hello lets the other side say the same.
            handshake::send(stream, &answer).await?;
            return Err(Refusal::Cluster);
        }
        if !acquaintance.is_for_me(hello) {
            return Err(Refusal::Meant(hello.to));
        }
        let link = self.transport.links.get(&hello.site).ok_or(Refusal::Site(hello.site))?;
        acquaintance.check(&link.name, hello).map_err(Refusal::Forgotten)?;
        {
            let mut current = lock(&self.current);
            if let Some((incarnation, older)) = current.get(&hello.site) {
                if *incarnation > hello.incarnation {
                    return Err(Refusal::Outlived(hello.site));
                }
                older.abort();
            }
            current.insert(hello.site, (hello.incarnation, own));
        }
        handshake::send(stream, &answer).await?;
        Ok(link)
    }
}

/// Reads frames until the peer closes the connection or breaks a rule. Who sends one has found that its folder knows what was heard of
/// it before, and is noted as heard in its incarnation of now.
async fn read(
    mut stream: Stream,
    (link, incarnation): (&Link, IncarnationId),
    own: &Acquaintance,
    inboxes: &Inboxes,
) -> Result<(), Refusal> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        while let Some((frame, length)) = frame::decode(&buffer)? {
            own.note(link.peer, incarnation).await?;
            take(frame, (link, incarnation), own, inboxes).await?;
            buffer.advance(length);
        }
        buffer.reserve(READ_BYTES);
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

async fn take(
    frame: frame::Frame<'_>,
    (link, incarnation): (&Link, IncarnationId),
    own: &Acquaintance,
    inboxes: &Inboxes,
) -> Result<(), FrameError> {
    if link.faults.cuts_in() {
        link.metrics.dropped_fault.inc();
        return Ok(());
    }
    link.heard(frame.data.len() + HEADER_BYTES);
    let length = |_| FrameError::Length(frame.data.len());
    match frame.kind {
        Kind::Message(service) => {
            let inbox = inboxes.get(&service).ok_or(FrameError::Service(service))?;
            if !link.admits(frame.sent) {
                return Ok(());
            }
            if inbox.room().enter().await {
                inbox.put(link.peer, frame.data)?;
            } else {
                link.metrics.dropped_busy.inc();
            }
        }
        Kind::Ping => {
            let Ping { number, counts } = Ping::decode(frame.data.try_into().map_err(length)?);
            own.hear(link.peer, incarnation, counts);
            link.answer_ping(number);
        }
        Kind::Pong => link.pong(u64::from_le_bytes(frame.data.try_into().map_err(length)?), frame.sent),
    }
    Ok(())
}
