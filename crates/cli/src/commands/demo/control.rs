//! Orders to a running demo: one JSON line over its socket, one JSON line back.

use crate::running::Running;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};

/// How long either side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer lines are no orders.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Orders waiting for the demo; one more waits in its connection.
const WAITING_MAX: usize = 8;

/// What the demo is to do to one of its sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What.
    pub action: Action,
    /// The region of the site.
    pub region: String,
    /// Its shard.
    pub shard: u16,
}

/// What to do to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Kill its process at once.
    Kill,
    /// Start its process, which must be dead.
    Restart,
}

/// What came of an order.
pub type Outcome = Result<(), String>;

/// Gives `order` to the running demo.
pub fn give(running: &Running, order: &Order) -> Outcome {
    let said = || -> io::Result<Outcome> {
        let mut stream = UnixStream::connect(&running.control)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut line = serde_json::to_string(order)?;
        line.push('\n');
        stream.write_all(line.as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    };
    said().unwrap_or_else(|error| Err(format!("the demo does not answer on {}: {error}", running.control.display())))
}

/// An order, and where to tell what came of it.
pub type Received = (Order, oneshot::Sender<Outcome>);

/// Listens for orders at `path` as long as the receiver lives. The caller has made sure that nobody else listens there.
pub fn listen(path: &Path) -> io::Result<mpsc::Receiver<Received>> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    let (orders, received) = mpsc::channel(WAITING_MAX);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // One at a time: an order is small, and its sender waits for the answer. Who only looks whether the demo is
            // there says nothing.
            let _ = tokio::time::timeout(TIMEOUT, serve(stream, &orders)).await;
        }
    });
    Ok(received)
}

async fn serve(mut stream: tokio::net::UnixStream, orders: &mpsc::Sender<Received>) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut line = String::new();
    tokio::io::BufReader::new(read.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
    if line.is_empty() {
        return Ok(());
    }
    let outcome = match serde_json::from_str(&line) {
        Err(error) => Err(format!("not an order: {error}")),
        Ok(order) => {
            let (tell, told) = oneshot::channel();
            let stopping = || Err("the demo is stopping".to_owned());
            match orders.send((order, tell)).await {
                Ok(()) => told.await.unwrap_or_else(|_| stopping()),
                Err(_) => stopping(),
            }
        }
    };
    let mut answer = serde_json::to_string(&outcome)?;
    answer.push('\n');
    write.write_all(answer.as_bytes()).await
}
