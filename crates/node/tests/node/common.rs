//! Toy protocols, and clusters of them over loopback TCP in one process.

use async_trait::async_trait;
use bytes::Bytes;
use rhumb_commit::placement::{Change, Placement};
use rhumb_commit::transaction::TxnError;
use rhumb_config::{self, Catenae, Config, Http, Limits, Listen, OwnSite, Quad, Quotas, Region, Setup, Storage, Wan};
use rhumb_core::actor::{Actor, Batch, Body, Collect, Effects, Input, Load, Loaded, RequestId, Space};
use rhumb_core::{Key, RegionId, SiteId, Span, Time, Timestamp, Value};
use rhumb_node::clock::Clock;
use rhumb_node::credentials::Credentials;
use rhumb_node::gateway::placements::{Placements, Refused, View};
use rhumb_node::gateway::vitals::Commits;
use rhumb_node::incarnation::Incarnations;
use rhumb_node::metrics::Metrics;
use rhumb_node::metrics::vitals::Vitals;
use rhumb_node::runtime::Handle;
use rhumb_node::secret::Secret;
use rhumb_node::service::Service;
use rhumb_node::site::Site;
use rhumb_node::status::Status;
use rhumb_quota::operation::Done;
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{self as quotas, Answer, Status as QuotaVitals};
use rhumb_security::tls::Tls;
use rhumb_store::{Engine, MemoryEngine, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What clients of the toy ask.
#[derive(Clone, Debug)]
pub enum Request {
    /// Have `to` write the text to its disk, and answer it once `to` promised that it is there.
    Echo { to: SiteId, text: String },
    /// Tell `to` something, for nothing.
    Tell { to: SiteId, text: String },
    /// What this site was told, joined by spaces.
    Heard,
    /// Write, and answer once durable.
    Put { key: &'static str, value: &'static str },
    /// Read.
    Get { key: &'static str },
    /// Write without an answer, then read at once.
    PutThenGet { key: &'static str, value: &'static str },
    /// Write without an answer, and answer from an empty write behind it.
    PutThenConfirm { key: &'static str, value: &'static str },
    /// Write without an answer, then collect garbage.
    Collect { horizon: Timestamp },
    /// Answer after so many milliseconds.
    Later { ms: u64 },
    /// Take so many steps one after the other, each of which writes its number to `step` if `writes`, and count them in `made`. The answer names the threads
    /// that made them, in turn.
    Steps { times: usize, writes: bool, made: Arc<AtomicUsize> },
    /// How are you?
    Vitals,
    /// Step off a cliff.
    Panic,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Note {
    Ask { id: RequestId, text: String },
    Told(String),
    Step,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Promise {
    id: RequestId,
    text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The toy: echoes once durable, and remembers what it was told.
#[derive(Default)]
pub struct Toy {
    heard: Vec<String>,
    recovered: bool,
    steps: Option<Steps>,
}

/// Steps to be taken.
struct Steps {
    id: RequestId,
    left: usize,
    writes: bool,
    made: Arc<AtomicUsize>,
    threads: Vec<String>,
}

const SPACE: Space = Space(1);

impl Toy {
    fn put(key: &str, value: &str) -> Batch {
        let mut batch = Batch::new();
        batch.put_version(Key::from(key), Timestamp::from_bits(1), Some(Value::from(value)));
        batch
    }

    fn get(id: RequestId, key: &str, fx: &mut Effects<Toy>) {
        fx.load(id, Load::Get { keys: vec![Key::from(key)], at: Timestamp::MAX, bytes: usize::MAX });
    }

    fn step_on(&mut self, fx: &mut Effects<Toy>) {
        let Some(steps) = &mut self.steps else { return };
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        if steps.threads.last() != Some(&thread) {
            steps.threads.push(thread);
        }
        let made = steps.made.fetch_add(1, Ordering::SeqCst) + 1;
        if steps.writes {
            fx.persist(Toy::put("step", &made.to_string()));
        }
        if steps.left == 0 {
            fx.answer(steps.id, steps.threads.join(" "));
            self.steps = None;
        } else {
            steps.left -= 1;
            fx.send(SiteId::new(0, 0), Note::Step);
        }
    }

    fn asked(&mut self, id: RequestId, request: Request, fx: &mut Effects<Toy>) {
        match request {
            Request::Echo { to, text } => fx.send(to, Note::Ask { id, text }),
            Request::Tell { to, text } => {
                fx.send(to, Note::Told(text));
                fx.answer(id, "told".into());
            }
            Request::Heard => fx.answer(id, self.heard.join(" ")),
            Request::Put { key, value } => {
                fx.persist(Toy::put(key, value)).answer(id, "put".into());
            }
            Request::Get { key } => Toy::get(id, key, fx),
            Request::Collect { horizon } => {
                fx.persist(Toy::put("horizon", "v"));
                fx.collect(Collect { horizon, deletions: Timestamp::ZERO });
                fx.answer(id, "collected".into());
            }
            Request::PutThenGet { key, value } => {
                fx.persist(Toy::put(key, value));
                Toy::get(id, key, fx);
            }
            Request::PutThenConfirm { key, value } => {
                fx.persist(Toy::put(key, value));
                fx.persist(Batch::new()).answer(id, "put".into());
            }
            Request::Later { ms } => fx.set_timer(Some(id), Span::from_millis(ms)),
            Request::Steps { times, writes, made } => {
                self.steps = Some(Steps { id, left: times - 1, writes, made, threads: Vec::new() });
                self.step_on(fx);
            }
            Request::Vitals => fx.answer(id, format!("heard {}", self.heard.len())),
            Request::Panic => panic!("the toy was told to"),
        }
    }
}

impl Actor for Toy {
    type Note = Note;
    type Promise = Promise;
    type Timer = Option<RequestId>;
    type Request = Request;
    type Answer = String;

    fn step(&mut self, _: Time, input: Input<Toy>, fx: &mut Effects<Toy>) {
        match input {
            Input::Start => fx.load(0, Load::Records { space: SPACE, from: Bytes::new(), limit: 10, bytes: usize::MAX }),
            Input::Loaded { loaded: Loaded::Records { .. }, .. } => fx.set_timer(None, Span::from_millis(1)),
            Input::Loaded { token, loaded: Loaded::Rows { rows, .. } } => {
                assert!(self.recovered || token > 0);
                let value = rows[0].value.as_ref().map_or("nothing".into(), |value| String::from_utf8_lossy(&value.0).into_owned());
                fx.answer(token, value);
            }
            Input::Timer(None) => self.recovered = true,
            Input::Timer(Some(id)) => fx.answer(id, "later".into()),
            Input::Persisted { .. } => {}
            Input::Client { id, request } => self.asked(id, request, fx),
            Input::Message { from, body: Body::Note(Note::Ask { id, text }) } => {
                let mut batch = Batch::new();
                batch.put_record(SPACE, text.clone(), Bytes::new());
                fx.persist(batch).send(from, Promise { id, text });
            }
            Input::Message { body: Body::Note(Note::Told(text)), .. } => self.heard.push(text),
            Input::Message { body: Body::Note(Note::Step), .. } => self.step_on(fx),
            Input::Message { body: Body::Promise(Promise { id, text }), .. } => fx.answer(id, text),
        }
    }
}

impl Commits for Toy {
    fn inquiry() -> Request {
        Request::Vitals
    }

    /// As many transactions are open as it was told things; the rest never changes.
    fn vitals(answer: String) -> Option<Vitals> {
        let open = answer.strip_prefix("heard ")?.parse().ok()?;
        let safe = Timestamp::from_time(Time::from_micros(1_500_000));
        Some(Vitals { open, prepared: 2, in_doubt: 1, safe, reachable: vec![RegionId(0)], ..Vitals::default() })
    }

    fn placements(_: Handle<Toy>, _: Arc<Status>) -> Arc<dyn Placements> {
        Arc::new(NoPlacements)
    }
}

/// Toys have no placement.
struct NoPlacements;

#[async_trait]
impl Placements for NoPlacements {
    async fn view(&self) -> Result<View, TxnError> {
        Err(TxnError::Unavailable("toys have no placement".into()))
    }

    async fn change(&self, _: u64, _: Change) -> Result<Placement, Refused> {
        Err(TxnError::Unavailable("toys have no placement".into()).into())
    }
}

/// A toy that keeps quotas: it knows none, notes durably what it is asked to run, and refuses it. What is asked of the quota `held`
/// waits until somebody lists all quotas, and is done.
#[derive(Default)]
pub struct ToyQuotas {
    asked: usize,
    held: Vec<RequestId>,
}

impl Actor for ToyQuotas {
    type Note = String;
    type Promise = String;
    type Timer = ();
    type Request = quotas::Request;
    type Answer = Answer;

    fn step(&mut self, _: Time, input: Input<ToyQuotas>, fx: &mut Effects<ToyQuotas>) {
        match input {
            Input::Start => fx.load(0, Load::Records { space: SPACE, from: Bytes::new(), limit: 10, bytes: usize::MAX }),
            Input::Loaded { loaded: Loaded::Records { records, .. }, .. } => self.asked = records.len(),
            Input::Client { id, request: quotas::Request::Status } => {
                fx.answer(
                    id,
                    Answer::Status(QuotaVitals {
                        serving: true,
                        quotas: self.asked,
                        waiting: 2,
                        redistributing: 1,
                        ..QuotaVitals::default()
                    }),
                );
            }
            Input::Client { id, request: quotas::Request::Run(operations) } if operations[0].quota.to_string() == "held" => {
                self.asked += 1;
                self.held.push(id);
            }
            Input::Client { id, request: quotas::Request::Run(operations) } => {
                let mut batch = Batch::new();
                for operation in &operations {
                    self.asked += 1;
                    batch.put_record(SPACE, operation.quota.to_string(), Bytes::new());
                }
                let refused = operations.into_iter().map(|operation| Err(Refusal::Unknown(operation.quota)));
                fx.persist(batch).answer(id, Answer::Ran(refused.collect()));
            }
            Input::Client { id, request: quotas::Request::List } => {
                fx.answer(id, Answer::Listed(Vec::new()));
                self.held.drain(..).for_each(|held| fx.answer(held, Answer::Ran(vec![Ok(Done { left: 0 })])));
            }
            Input::Client { id, request: quotas::Request::Get { name, .. } } => fx.answer(id, Answer::Got(Err(Refusal::Unknown(name)))),
            Input::Client { id, request: quotas::Request::Drop { name } } => fx.answer(id, Answer::Changed(Err(Refusal::Unknown(name)))),
            Input::Client { .. } => panic!("the toy was told to"),
            Input::Message { .. } | Input::Timer(()) | Input::Loaded { .. } | Input::Persisted { .. } => {}
        }
    }
}

/// A port that stays free when it is given up, for a process to bind: below those that systems give to outgoing connections, and
/// each time another.
pub async fn lasting_port() -> TcpListener {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            return listener;
        }
    }
}

/// A data folder, which the build tool's folder for what tests leave behind keeps.
fn folder() -> PathBuf {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder").keep()
}

/// Begins an incarnation of a site.
pub fn incarnations(config: &Config) -> Incarnations {
    Incarnations::begin(&config.data_dir).expect("a folder")
}

/// The configurations of a cluster of one site per region, on free ports, and its bound peer ports.
pub async fn configure(regions: &[&str], wan: Option<Wan>) -> (Vec<Config>, Vec<TcpListener>) {
    let mut ports = Vec::new();
    for _ in regions {
        ports.push(lasting_port().await);
    }
    let address = |index: usize| ports[index].local_addr().expect("bound");
    let all: Vec<Region> =
        regions.iter().enumerate().map(|(index, name)| Region { name: (*name).into(), sites: vec![address(index)] }).collect();
    let secret_file = folder().join("cluster.secret");
    Secret::create(&secret_file).expect("made");
    let free = "127.0.0.1:0".parse().expect("an address");
    let config = |(index, name): (usize, &&str)| Config {
        data_dir: folder(),
        cluster: "test".into(),
        secret_file: secret_file.clone(),
        chaos: true,
        site: OwnSite { region: (*name).into(), shard: 0 },
        listen: Listen { sql: free, resp: None, http: free, peer: address(index) },
        regions: all.clone(),
        tls: None,
        wan: wan.clone(),
        placement: None,
        clock: rhumb_config::Clock::default(),
        storage: Storage::default(),
        quotas: Quotas::default(),
        catenae: Catenae::default(),
        quad: Quad::default(),
        http: Http::default(),
        limits: Limits::default(),
    };
    (regions.iter().enumerate().map(config).collect(), ports)
}

pub fn setup(config: &Config) -> Arc<Setup> {
    Arc::new(Setup::new(config.clone(), "test.toml", Path::new("")).expect("a whole configuration"))
}

/// The secret of a site's cluster.
pub fn secret(config: &Config) -> Secret {
    Secret::load(&config.secret_file).expect("it was made")
}

/// What a site proves itself with.
pub fn credentials(config: &Config) -> Credentials {
    let setup = setup(config);
    let tls = setup.tls.as_ref().map(|tls| Tls::load(tls.files.clone(), tls.names[&setup.site].clone()).expect("whole"));
    Credentials { secret: secret(config), tls }
}

/// A site that hosts the toy alone.
pub struct ToySite {
    site: Site,
    handle: Handle<Toy>,
}

impl ToySite {
    pub fn handle(&self) -> Handle<Toy> {
        self.handle.clone()
    }

    pub fn status(&self) -> Arc<Status> {
        self.site.status()
    }

    pub async fn stop(self) {
        self.site.stop().await;
    }
}

/// Starts a site of the toy over `engine`.
pub fn start<E: Engine>(config: &Config, port: TcpListener, engine: E) -> ToySite {
    start_as(Service::Commit, config, port, engine)
}

/// The same as another service.
pub fn start_as<E: Engine>(service: Service, config: &Config, port: TcpListener, engine: E) -> ToySite {
    start_by(Clock::start(), service, config, port, engine)
}

/// The same by another clock.
pub fn start_by<E: Engine>(clock: Clock, service: Service, config: &Config, port: TcpListener, engine: E) -> ToySite {
    let store = Store::open(engine).expect("a store");
    let mut site = Site::new(setup(config), credentials(config), incarnations(config), clock, Arc::new(Metrics::new())).expect("threads");
    let handle = site.host(service, store, Toy::default()).expect("threads");
    site.open(port);
    ToySite { site, handle }
}

/// Starts a cluster of the toy in memory.
pub async fn cluster(regions: &[&str], wan: Option<Wan>) -> Vec<ToySite> {
    let (configs, ports) = configure(regions, wan).await;
    configs.iter().zip(ports).map(|(config, port)| start(config, port, MemoryEngine::new())).collect()
}

/// Asks, again and again, until an answer comes: messages may be lost while links form.
pub async fn echo(handle: &Handle<Toy>, to: SiteId, text: &str) -> String {
    loop {
        let request = Request::Echo { to, text: text.into() };
        if let Ok(answer) = tokio::time::timeout(Duration::from_millis(500), handle.ask(request)).await {
            return answer.expect("not rejected");
        }
    }
}

/// Sends a request; returns the status and the body of the answer.
pub async fn http(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

/// Waits until `met`; the test's own time limit is the bound.
pub async fn until(what: &str, mut met: impl AsyncFnMut() -> bool) {
    for _ in 0..2_000 {
        if met().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never happened: {what}");
}

/// The properties that the schema of this name requires are those of `answer`.
pub fn agrees(document: &Json, name: &str, answer: &Json) {
    let required = required(document, &document["components"]["schemas"][name]);
    let answered: BTreeSet<&str> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(required, answered, "{name}");
}

/// The properties that a schema requires, or those of which it is made up.
fn required<'d>(document: &'d Json, schema: &'d Json) -> BTreeSet<&'d str> {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.strip_prefix('#').expect("a reference into the document");
        return required(document, document.pointer(pointer).expect("it is there"));
    }
    let parts = schema["allOf"].as_array().into_iter().flatten().flat_map(|part| required(document, part));
    parts.chain(schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str)).collect()
}
