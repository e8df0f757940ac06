//! The tasks that hear peers: one accepts connections, one per connection reads it.
//!
//! A connection that does not keep to the protocol is closed with one line in the log; nothing else notices. A peer has
//! one connection: a newer one replaces it, one of an earlier life is refused as long as there is one of a later.

use super::acquaintance::Acquaintance;
use super::link::Link;
use super::{Inboxes, Transport};
use crate::frame::{self, FrameError, HEADER_BYTES, HELLO_BYTES, Hello, Kind, Ping};
use crate::lives::Life;
use bytes::{Buf, BytesMut};
use rhumb_core::SiteId;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Connections held at once, those of strangers among them, besides one per peer.
pub const SPARE_CONNECTIONS_MAX: usize = 64;
/// Who connects must have sent its hello by then.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// After a failure to accept (out of file descriptors, say), so long a pause.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 64 << 10;

/// Why a connection was closed.
#[derive(Debug, Error)]
enum Refusal {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("it sent no hello within {} s", HELLO_TIMEOUT.as_secs())]
    Silent,
    #[error("it belongs to another cluster; compare `cluster` and `regions` of the two configurations")]
    Cluster,
    #[error("it says it is the site {0}, which is no other site of this cluster")]
    Site(SiteId),
    #[error("it is left over from an earlier life of {0}")]
    Outlived(SiteId),
    #[error("{0}")]
    Forgotten(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The connection of each peer: of which life it is, and how to end it.
type Current = Arc<Mutex<BTreeMap<SiteId, (Life, AbortHandle)>>>;

/// Accepts connections, for ever.
pub async fn run(listener: TcpListener, transport: Arc<Transport>, inboxes: Arc<Inboxes>) {
    let connections_max = transport.links.len() + SPARE_CONNECTIONS_MAX;
    let current = Current::default();
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
        if tasks.len() >= connections_max {
            transport.metrics.refused.inc();
            tracing::warn!("closed the connection of {address}: {connections_max} connections are open already");
            continue;
        }
        let (transport, inboxes, current) = (Arc::clone(&transport), Arc::clone(&inboxes), Arc::clone(&current));
        // The task is told its own handle, so that a newer connection of the same peer can end it.
        let (give, take) = tokio::sync::oneshot::channel();
        let handle = tasks.spawn(async move {
            let Ok(own) = take.await else { return };
            hear(stream, address, &transport, &inboxes, &current, own).await;
        });
        let _ = give.send(handle);
    }
}

fn lock(current: &Current) -> MutexGuard<'_, BTreeMap<SiteId, (Life, AbortHandle)>> {
    current.lock().expect("nothing panics while it holds the connections")
}

async fn hear(mut stream: TcpStream, address: SocketAddr, transport: &Transport, inboxes: &Inboxes, current: &Current, own: AbortHandle) {
    let refuse = |who: &str, refusal: &Refusal| {
        transport.metrics.refused.inc();
        tracing::warn!("closed the connection of {who}: {refusal}");
    };
    let id = own.id();
    let (link, life) = match greet(&mut stream, transport, current, own).await {
        Ok(greeted) => greeted,
        Err(refusal) => return refuse(&address.to_string(), &refusal),
    };
    let outcome = read(stream, (link, life), &transport.acquaintance, inboxes).await;
    // A connection that has ended stands in nobody's way, whatever the clocks of two lives say.
    lock(current).retain(|_, (_, connection)| connection.id() != id);
    match outcome {
        Ok(()) => tracing::info!("{} closed its connection", link.name),
        Err(Refusal::Io(error)) => tracing::info!("lost the connection of {}: {error}", link.name),
        Err(refusal) => refuse(&format!("{} at {address}", link.name), &refusal),
    }
}

/// Reads the hello, answers it, and makes this the peer's connection.
async fn greet<'a>(
    stream: &mut TcpStream,
    transport: &'a Transport,
    current: &Current,
    own: AbortHandle,
) -> Result<(&'a Link, Life), Refusal> {
    stream.set_nodelay(true)?;
    let hello = tokio::time::timeout(HELLO_TIMEOUT, read_hello(stream)).await.map_err(|_| Refusal::Silent)??;
    let answer = transport.acquaintance.hello(hello.site).encode();
    if !transport.acquaintance.is_of_cluster(&hello) {
        // Our own hello lets the other side say the same.
        stream.write_all(&answer).await?;
        return Err(Refusal::Cluster);
    }
    let link = transport.links.get(&hello.site).ok_or(Refusal::Site(hello.site))?;
    transport.acquaintance.check(&link.name, &hello).map_err(Refusal::Forgotten)?;
    {
        let mut current = lock(current);
        if let Some((life, older)) = current.get(&hello.site) {
            if *life > hello.life {
                return Err(Refusal::Outlived(hello.site));
            }
            older.abort();
        }
        current.insert(hello.site, (hello.life, own));
    }
    stream.write_all(&answer).await?;
    Ok((link, hello.life))
}

async fn read_hello(stream: &mut TcpStream) -> Result<Hello, Refusal> {
    let mut bytes = [0; HELLO_BYTES];
    let mut filled = 0;
    while filled < HELLO_BYTES {
        let count = stream.read(&mut bytes[filled..]).await?;
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it left without a hello").into());
        }
        filled += count;
        if !frame::may_be_hello(&bytes[..filled]) {
            return Err(FrameError::Magic.into());
        }
    }
    Ok(Hello::decode(&bytes)?)
}

/// Reads frames until the peer closes the connection or breaks a rule. Who sends one has found that its folder knows what was heard of
/// it before, and is noted as heard in its life of now.
async fn read(mut stream: TcpStream, (link, life): (&Link, Life), own: &Acquaintance, inboxes: &Inboxes) -> Result<(), Refusal> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    loop {
        while let Some((frame, length)) = frame::decode(&buffer)? {
            own.note(link.peer, life).await?;
            take(frame, (link, life), own, inboxes).await?;
            buffer.advance(length);
        }
        buffer.reserve(READ_BYTES);
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

async fn take(frame: frame::Frame<'_>, (link, life): (&Link, Life), own: &Acquaintance, inboxes: &Inboxes) -> Result<(), FrameError> {
    if link.faults.cuts_in() {
        link.metrics.dropped_fault.inc();
        return Ok(());
    }
    link.heard(frame.data.len() + HEADER_BYTES);
    let length = |_| FrameError::Length(frame.data.len());
    match frame.kind {
        Kind::Message(service) => {
            let inbox = inboxes.get(&service).ok_or(FrameError::Service(service))?;
            if inbox.room().enter().await {
                inbox.put(link.peer, frame.data)?;
            } else {
                link.metrics.dropped_busy.inc();
            }
        }
        Kind::Ping => {
            let Ping { number, counts } = Ping::decode(frame.data.try_into().map_err(length)?);
            own.hear(link.peer, life, counts);
            link.answer_ping(number);
        }
        Kind::Pong => link.pong(u64::from_le_bytes(frame.data.try_into().map_err(length)?)),
    }
    Ok(())
}
