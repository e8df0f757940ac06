//! Serves one quota that is only counted, to measure this crate without the quotas below it, and what group commit
//! allows at the most: `cargo run --release --example fake -- ADDRESS [JOURNAL]`, then `redis-benchmark -p PORT -c 50
//! ACQUIRE vm 1`. With a journal, an answer waits until its operation is synced to that file.

use async_trait::async_trait;
use rhumb_core::SiteId;
use rhumb_quota::gateway::Quotas;
use rhumb_quota::info::{Info, Read};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{AMOUNT_MAX, Action, Done, OPERATIONS_MAX, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use rhumb_resp::{ServerOptions, serve};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Bytes of the journal for an operation.
const ENTRY_BYTES: usize = 32;

struct Counter {
    left: AtomicU64,
    journal: mpsc::UnboundedSender<(usize, oneshot::Sender<()>)>,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let listener = TcpListener::bind(arguments.next().unwrap_or_else(|| "127.0.0.1:7400".to_owned())).await?;
    let (journal, entries) = mpsc::unbounded_channel();
    tokio::spawn(commit(arguments.next().map(File::create).transpose()?.map(Arc::new), entries));
    println!("listening on {}", listener.local_addr()?);
    serve(listener, Arc::new(Counter { left: AtomicU64::new(AMOUNT_MAX), journal }), ServerOptions::default()).await
}

/// Writes and syncs all entries that have come meanwhile, then answers them.
async fn commit(file: Option<Arc<File>>, mut entries: mpsc::UnboundedReceiver<(usize, oneshot::Sender<()>)>) -> std::io::Result<()> {
    let mut group = Vec::new();
    while entries.recv_many(&mut group, OPERATIONS_MAX).await > 0 {
        if let Some(file) = file.clone() {
            let bytes = vec![b'x'; group.iter().map(|(operations, _)| operations * ENTRY_BYTES).sum()];
            let write = move || (&*file).write_all(&bytes).and_then(|()| file.sync_data());
            tokio::task::spawn_blocking(write).await.map_err(std::io::Error::other)??;
        }
        for (_, answer) in group.drain(..) {
            // The connection may be gone.
            answer.send(()).unwrap_or_default();
        }
    }
    Ok(())
}

#[async_trait]
impl Quotas for Counter {
    async fn run(&self, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>> {
        let (answer, durable) = oneshot::channel();
        if self.journal.send((operations.len(), answer)).is_err() || durable.await.is_err() {
            return operations.iter().map(|_| Err(Refusal::UnknownOutcome("the journal failed".to_owned()))).collect();
        }
        let run = |operation: Operation| match operation.action {
            Action::Acquire => Ok(Done { left: self.left.fetch_sub(operation.amount, Ordering::Relaxed) - operation.amount }),
            Action::Release | Action::Free => {
                Ok(Done { left: self.left.fetch_add(operation.amount, Ordering::Relaxed) + operation.amount })
            }
        };
        operations.into_iter().map(run).collect()
    }

    async fn create(&self, name: Name, _: Spec) -> Result<(), Refusal> {
        Err(Refusal::Exists(name))
    }

    async fn set_limit(&self, name: Name, _: u64) -> Result<(), Refusal> {
        Err(Refusal::Unknown(name))
    }

    async fn drop(&self, name: Name) -> Result<(), Refusal> {
        Err(Refusal::Unknown(name))
    }

    async fn declare_lost(&self, _: SiteId) -> Result<(), Refusal> {
        Err(Refusal::Invalid("there is one site, and it cannot be lost".into()))
    }

    async fn lost(&self) -> Result<(Vec<SiteId>, usize), Refusal> {
        Ok((Vec::new(), 0))
    }

    async fn get(&self, name: Name, _: Read) -> Result<Info, Refusal> {
        Err(Refusal::Unknown(name))
    }

    async fn list(&self) -> Result<Vec<Info>, Refusal> {
        Ok(Vec::new())
    }
}
