//! Quotas in memory that remember what they were asked, a server in front of them, and a client that speaks bytes.

#![allow(dead_code)]

use async_trait::async_trait;
use rhumb_core::SiteId;
use rhumb_quota::gateway::Quotas;
use rhumb_quota::info::{Info, Read, SiteTokens};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, Done, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use rhumb_resp::{ServerOptions, serve_until};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

/// The quota whose operations wait until the test lets them.
pub const SLOW: &str = "slow";

/// The quotas of one site. An id is remembered for one operation's name, nothing more.
pub struct Book {
    quotas: Mutex<BTreeMap<Name, (Spec, u64)>>,
    asked: Mutex<Vec<String>>,
    pub gate: Semaphore,
}

impl Book {
    fn note(&self, what: String) {
        self.asked.lock().expect("no test panics inside").push(what);
    }

    /// What was asked since the last time, one line a call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("no test panics inside"))
    }

    fn one(&self, operation: &Operation) -> Result<Done, Refusal> {
        let mut quotas = self.quotas.lock().expect("no test panics inside");
        let Operation { action, quota, amount, .. } = operation;
        let (spec, held) = quotas.get_mut(quota).ok_or_else(|| Refusal::Unknown(quota.clone()))?;
        *held = match action {
            Action::Acquire if *held + amount > spec.limit => {
                return Err(Refusal::Exceeded { quota: quota.clone(), wanted: *amount });
            }
            Action::Acquire => *held + amount,
            Action::Release | Action::Free if *held < *amount => return Err(Refusal::NotHeld { quota: quota.clone(), amount: *amount }),
            Action::Release | Action::Free => *held - amount,
        };
        Ok(Done { left: spec.limit - *held })
    }

    fn info(name: &Name, spec: &Spec, held: u64, read: Read) -> Info {
        let tokens = SiteTokens { site: SiteId::new(0, 0), left: spec.limit.saturating_sub(held), held, offered: 0, owed: 0, freed: 0 };
        let missing = if read == Read::Global { vec![SiteId::new(1, 0)] } else { vec![] };
        Info { name: name.clone(), spec: spec.clone(), read, sites: vec![tokens], missing, booked: 0 }
    }
}

#[async_trait]
impl Quotas for Book {
    async fn run(&self, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>> {
        let shown = |operation: &Operation| {
            let Operation { action, quota, amount, id } = operation;
            let id = id.as_ref().map_or(String::new(), |id| format!(" {id:?}"));
            format!("{action:?} {quota} {amount}{id}")
        };
        self.note(operations.iter().map(shown).collect::<Vec<_>>().join(", "));
        if operations.iter().any(|operation| operation.quota.as_str() == SLOW) {
            self.gate.acquire().await.expect("never closed").forget();
        }
        operations.iter().map(|operation| self.one(operation)).collect()
    }

    async fn create(&self, name: Name, spec: Spec) -> Result<(), Refusal> {
        self.note(format!("create {name} {spec:?}"));
        let mut quotas = self.quotas.lock().expect("no test panics inside");
        if quotas.contains_key(&name) {
            return Err(Refusal::Exists(name));
        }
        quotas.insert(name, (spec, 0));
        Ok(())
    }

    async fn set_limit(&self, name: Name, limit: u64) -> Result<(), Refusal> {
        self.note(format!("limit {name} {limit}"));
        let mut quotas = self.quotas.lock().expect("no test panics inside");
        quotas.get_mut(&name).ok_or(Refusal::Unknown(name))?.0.limit = limit;
        Ok(())
    }

    async fn drop(&self, name: Name) -> Result<(), Refusal> {
        self.note(format!("drop {name}"));
        self.quotas.lock().expect("no test panics inside").remove(&name).map(|_| ()).ok_or(Refusal::Unknown(name))
    }

    async fn declare_lost(&self, _: SiteId) -> Result<(), Refusal> {
        Err(Refusal::Invalid("there is one site, and it cannot be lost".into()))
    }

    async fn lost(&self) -> Result<(Vec<SiteId>, usize), Refusal> {
        Ok((Vec::new(), 0))
    }

    async fn get(&self, name: Name, read: Read) -> Result<Info, Refusal> {
        self.note(format!("get {name} {read}"));
        let quotas = self.quotas.lock().expect("no test panics inside");
        let (spec, held) = quotas.get(&name).ok_or_else(|| Refusal::Unknown(name.clone()))?;
        Ok(Book::info(&name, spec, *held, read))
    }

    async fn list(&self) -> Result<Vec<Info>, Refusal> {
        self.note("list".to_owned());
        let quotas = self.quotas.lock().expect("no test panics inside");
        Ok(quotas.iter().map(|(name, (spec, held))| Book::info(name, spec, *held, Read::Local)).collect())
    }
}

/// A server that serves while it lives, with a quota `vm` of ten tokens and one called [`SLOW`].
pub struct Server {
    pub address: SocketAddr,
    pub book: Arc<Book>,
    /// Tells it to stop.
    pub stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Server {
    pub async fn start() -> Server {
        Server::with(ServerOptions::default()).await
    }

    pub async fn with(options: ServerOptions) -> Server {
        let quotas = ["vm", SLOW].map(|name| (Name::new(name).expect("a name"), (Spec::new(10), 0)));
        let book = Arc::new(Book { quotas: Mutex::new(quotas.into()), asked: Mutex::default(), gate: Semaphore::new(0) });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let quotas = book.clone();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let serve = async move {
            let stop = async { stopped.notified().await };
            serve_until(stop, listener, quotas, options).await.expect("it serves");
        };
        Server { address, book, stop, task: tokio::spawn(serve) }
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) {
        (&mut self.task).await.expect("no panic");
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.expect("the server listens"))
    }

    /// What a new client gets that sends `bytes` until the server closes the connection.
    pub async fn connect_and_send(&self, bytes: &[u8]) -> String {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.rest().await
    }

    /// What a new client gets that sends `bytes` and then nothing more.
    pub async fn replies(&self, bytes: &[u8]) -> String {
        let mut client = self.connect().await;
        client.send(bytes).await;
        client.0.shutdown().await.expect("connected");
        client.rest().await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub struct Client(pub TcpStream);

impl Client {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("the server reads");
    }

    /// Sends a command of these words, and asserts the reply byte by byte.
    pub async fn check(&mut self, words: &str, expected: &str) {
        self.send(&command(words)).await;
        self.expect(expected, words).await;
    }

    /// Reads as many bytes as are expected and asserts that they are.
    pub async fn expect(&mut self, expected: &str, why: &str) {
        let mut bytes = vec![0; expected.len()];
        let mut length = 0;
        while length < bytes.len() {
            match tokio::time::timeout(Duration::from_secs(10), self.0.read(&mut bytes[length..])).await {
                Ok(Ok(count)) if count > 0 => length += count,
                // Shows what came instead.
                _ => break,
            }
        }
        assert_eq!(String::from_utf8_lossy(&bytes[..length]), expected, "{why}");
    }

    /// All that comes until the server closes the connection.
    pub async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        tokio::time::timeout(Duration::from_secs(10), self.0.read_to_end(&mut bytes)).await.expect("closed in time").expect("not reset");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A command of these words as client libraries send it.
pub fn command(words: &str) -> Vec<u8> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}
