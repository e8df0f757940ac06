//! The task that keeps a connection to one peer and writes the link's frames to it.

use super::acquaintance::Acquaintance;
use super::handshake;
use super::link::Link;
use rhumb_alarm::Alarm;
use rhumb_core::Rng;
use rhumb_security::tls::{Reader, Stream};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The wait after the first failed attempt to connect; it doubles with each.
const BACKOFF_MIN: Duration = Duration::from_millis(20);
/// The longest wait between attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// An attempt to connect, hello and all, takes no longer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A peer that takes nothing off its socket for so long is taken for gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connects to the peer, again and again, and writes to it.
pub async fn run(link: Arc<Link>, own: Arc<Acquaintance>, alarm: Alarm) {
    let mut rng = Rng::seeded(own.incarnation() ^ u64::from(link.address.port()));
    let mut backoff = BACKOFF_MIN;
    let mut said = None;
    loop {
        let failure = match timeout(CONNECT_TIMEOUT, connect(&link, &own)).await {
            Ok(Ok(stream)) => {
                tracing::info!("connected to {} at {}", link.name, link.address);
                link.metrics.connects.inc();
                link.set_connected(true);
                link.ping(own.counts());
                (backoff, said) = (BACKOFF_MIN, None);
                write(stream, &link, &alarm).await
            }
            Ok(Err(failure)) => failure,
            Err(_) => io::Error::new(io::ErrorKind::TimedOut, "no answer"),
        };
        link.set_connected(false);
        // One line when a peer goes or fails otherwise than before, none for every further attempt.
        let failure = failure.to_string();
        if said.as_ref() != Some(&failure) {
            tracing::warn!("no connection to {} at {}: {failure}; trying again", link.name, link.address);
            said = Some(failure);
        }
        let jitter = Duration::from_micros(rng.below(backoff.as_micros() as u64 / 2));
        tokio::time::sleep(backoff + jitter).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

async fn connect(link: &Link, own: &Acquaintance) -> io::Result<Stream> {
    let stream = TcpStream::connect(link.address).await?;
    stream.set_nodelay(true)?;
    let mut stream = own.connect(stream, link.peer).await?;
    let theirs = handshake::connecting(&mut stream, own, link.peer).await.map_err(|unproven| invalid(unproven.to_string()))?;
    if !own.is_of_cluster(&theirs) {
        return Err(invalid("it belongs to another cluster; compare `cluster` and `regions` of the two configurations".to_owned()));
    }
    if theirs.site != link.peer || !own.is_for_me(&theirs) {
        return Err(invalid(format!("the site there is {}, not {}; compare `regions` of the two configurations", theirs.site, link.peer)));
    }
    own.check(&link.name, &theirs).map_err(invalid)?;
    own.note(link.peer, theirs.incarnation).await?;
    Ok(stream)
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Writes frames as they become due, until the connection fails; returns how.
async fn write(stream: Stream, link: &Link, alarm: &Alarm) -> io::Error {
    let (read, mut write) = stream.into_split();
    let closed = closed(read);
    tokio::pin!(closed);
    let mut bytes = Vec::new();
    loop {
        let due = async { alarm.sleep_until(link.next_release().await).await };
        tokio::select! {
            () = due => {}
            failure = &mut closed => return failure,
        }
        bytes.clear();
        link.take_due(&mut bytes);
        let written = async {
            write.write_all(&bytes).await?;
            write.flush().await
        };
        match timeout(WRITE_TIMEOUT, written).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => return failure,
            Err(_) => return io::Error::new(io::ErrorKind::TimedOut, "it reads nothing"),
        }
    }
}

/// Waits until the peer closes the connection. It sends nothing on it after its hello.
async fn closed(mut read: Reader) -> io::Error {
    match read.read_u8().await {
        Ok(_) => invalid("it sent something where only this site sends".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection")
        }
        Err(error) => error,
    }
}
