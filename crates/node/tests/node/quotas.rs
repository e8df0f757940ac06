//! Quotas over HTTP: the exact answer of every route, every refusal, and what no route takes.

use crate::common::{agrees, http};
use async_trait::async_trait;
use rhumb_api::error::Error;
use rhumb_core::{SiteId, Topology};
use rhumb_node::admin::quotas::{BODY_BYTES_MAX, router};
use rhumb_quota::gateway::Quotas;
use rhumb_quota::info::{Info, Read, SiteTokens};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{AMOUNT_MAX, Done, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Notes what it is asked, and refuses it if it is told to.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<String>>,
    refusal: Mutex<Option<Refusal>>,
}

impl Fake {
    fn asked<T>(&self, what: String, answer: T) -> Result<T, Refusal> {
        self.asked.lock().expect("no panic").push(what);
        self.refusal.lock().expect("no panic").clone().map_or(Ok(answer), Err)
    }
}

fn info(name: Name, read: Read) -> Info {
    let tokens = |region, left| SiteTokens { site: SiteId::new(region, 0), left, held: 2, offered: 1, owed: 0, freed: 3 };
    let mut spec = Spec::new(100);
    spec.parent = Some(Name::new("all").expect("a name"));
    Info { name, spec, read, sites: vec![tokens(0, 30), tokens(1, 40)], missing: vec![SiteId::new(2, 0)], booked: 9 }
}

#[async_trait]
impl Quotas for Fake {
    async fn run(&self, operations: Vec<Operation>) -> Vec<Result<Done, Refusal>> {
        let outcome = |operation: Operation| {
            let Operation { action, quota, amount, id } = operation;
            self.asked(format!("{action:?} {amount} of {quota} {id:?}"), Done { left: 7 })
        };
        operations.into_iter().map(outcome).collect()
    }

    async fn create(&self, name: Name, spec: Spec) -> Result<(), Refusal> {
        let Spec { limit, parent, protocol, offer, reallocation } = spec;
        let parent = parent.map_or("none".to_owned(), |parent| parent.to_string());
        self.asked(format!("create {name}: {limit} below {parent}, {protocol} {offer} {reallocation}"), ())
    }

    async fn set_limit(&self, name: Name, limit: u64) -> Result<(), Refusal> {
        self.asked(format!("limit {name} to {limit}"), ())
    }

    async fn drop(&self, name: Name) -> Result<(), Refusal> {
        self.asked(format!("drop {name}"), ())
    }

    async fn declare_lost(&self, site: SiteId) -> Result<(), Refusal> {
        self.asked(format!("declare {site} lost"), ())
    }

    async fn lost(&self) -> Result<(Vec<SiteId>, usize), Refusal> {
        self.asked("lost".into(), (vec![SiteId::new(1, 0)], 4))
    }

    async fn get(&self, name: Name, read: Read) -> Result<Info, Refusal> {
        self.asked(format!("get {name} {read}"), info(name, read))
    }

    async fn list(&self) -> Result<Vec<Info>, Refusal> {
        self.asked("list".into(), vec![info(Name::new("vm").expect("a name"), Read::Local)])
    }
}

/// Serves a fake.
async fn serve() -> (SocketAddr, Arc<Fake>) {
    let (address, fake, _) = serve_documented().await;
    (address, fake)
}

/// The same, and what the routes say of themselves in the OpenAPI document.
async fn serve_documented() -> (SocketAddr, Arc<Fake>, Value) {
    let fake = Arc::new(Fake::default());
    let topology = Topology::new(vec!["california".into(), "virginia".into(), "ireland".into()], 1);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (routes, document) = router(Arc::clone(&fake) as Arc<dyn Quotas>, Arc::new(topology)).split_for_parts();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, fake, serde_json::to_value(document).expect("JSON"))
}

/// Sends exactly this; returns the whole answer.
async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    answer
}

fn error(code: &str, message: &str) -> String {
    serde_json::json!({ "error": { "code": code, "message": message } }).to_string()
}

const VM: &str = concat!(
    r#"{"name":"vm","limit":100,"parent":"all","protocol":"majority","offer":"spare","reallocation":"maximum-usage","read":"local","#,
    r#""left":70,"held":4,"offered":2,"owed":0,"sites":[{"site":"california/0","left":30,"held":2,"offered":1,"owed":0,"freed":3},"#,
    r#"{"site":"virginia/0","left":40,"held":2,"offered":1,"owed":0,"freed":3}],"missing":["ireland/0"],"booked":9,"freed":6}"#
);

#[tokio::test]
async fn each_route_asks_for_one_thing_and_answers_exactly_that() {
    let (address, fake) = serve().await;
    let whole = r#"{"limit":0,"parent":"all/of it","protocol":"ANY","offer":"all","reallocation":"proportional"}"#.replace(' ', "-");
    let table = [
        ("GET", "/quotas", "", 200, format!(r#"{{"quotas":[{VM}]}}"#), "list"),
        ("GET", "/quotas/vm", "", 200, VM.into(), "get vm local"),
        ("POST", "/quotas/vm/read", "{}", 200, VM.replace("local", "exact"), "get vm exact"),
        ("GET", "/quotas/vm?read=Global&x=1", "", 200, VM.replace("local", "global"), "get vm global"),
        (
            "PUT",
            "/quotas/vm",
            r#"{"limit":9007199254740991}"#,
            201,
            r#"{"name":"vm","limit":9007199254740991,"parent":null,"protocol":"majority","offer":"spare","reallocation":"maximum-usage"}"#
                .into(),
            "create vm: 9007199254740991 below none, majority spare maximum-usage",
        ),
        (
            "PUT",
            "/quotas/a%2Fb",
            &whole,
            201,
            r#"{"name":"a/b","limit":0,"parent":"all/of-it","protocol":"any","offer":"all","reallocation":"proportional"}"#.into(),
            "create a/b: 0 below all/of-it, any all proportional",
        ),
        ("PATCH", "/quotas/vm", r#"{"limit":5}"#, 204, String::new(), "limit vm to 5"),
        ("DELETE", "/quotas/gr%C3%B6%C3%9Fe", "", 204, String::new(), "drop größe"),
        ("POST", "/quotas/vm/acquire", r#"{"amount":3}"#, 200, r#"{"left":7}"#.into(), "Acquire 3 of vm None"),
        ("POST", "/quotas/vm/release", r#"{"amount":1,"id":"x"}"#, 200, r#"{"left":7}"#.into(), "Release 1 of vm Some(x)"),
        ("POST", "/quotas/a%2Fb%3F%25/acquire", r#" {"amount":3} "#, 200, r#"{"left":7}"#.into(), "Acquire 3 of a/b?% None"),
    ];
    for (method, path, body, status, answer, asked) in table {
        assert_eq!(http(address, method, path, body).await, (status, answer), "{method} {path}");
        assert_eq!(std::mem::take(&mut *fake.asked.lock().expect("no panic")), [asked], "{method} {path}");
    }
}

#[tokio::test]
async fn what_no_quota_or_operation_can_be_is_refused_before_anything_is_asked() {
    let (address, fake) = serve().await;
    let long = format!("/quotas/{}", "x".repeat(10_000));
    let oversize = format!(r#"{{"amount":1,"id":"{}"}}"#, "x".repeat(BODY_BYTES_MAX));
    let long_id = format!(r#"{{"amount":1,"id":"{}"}}"#, "x".repeat(129));
    let amount = |amount: &str| format!("an amount of `{amount}` tokens; allowed are whole numbers from 1 to {AMOUNT_MAX}");
    let limit = |limit: &str| format!("a limit of {limit} tokens; allowed are whole numbers from 0 to {AMOUNT_MAX}");
    let no_name = "the name of a quota is empty; give it 1 to 200 bytes";
    let table = [
        ("GET", "/quotas/", "", 400, no_name.into()),
        ("PUT", "/quotas/", r#"{"limit":1}"#, 400, no_name.into()),
        ("POST", "/quotas//acquire", r#"{"amount":1}"#, 400, no_name.into()),
        ("GET", &long, "", 400, "the name of a quota has 10000 bytes; at most 200 are allowed".to_owned()),
        ("GET", "/quotas/a%20b", "", 400, "the name of a quota holds white space or control characters; neither is allowed".into()),
        ("GET", "/quotas/%ff", "", 400, "Invalid URL: Invalid UTF-8 in `name`".into()),
        ("POST", "/quotas/vm/read", "", 400, "the body: EOF while parsing a value at line 1 column 0".into()),
        (
            "GET",
            "/quotas/vm?read=exact",
            "",
            405,
            "an exact read holds up whoever uses the quota, so it is not had by GET; POST {} to the path of the quota and /read".into(),
        ),
        ("GET", "/quotas/vm?read=far", "", 400, "no read `far`; there are local, global, exact".into()),
        ("POST", "/quotas/vm/acquire", r#"{"amount":0}"#, 400, amount("0")),
        ("POST", "/quotas/vm/acquire", r#"{"amount":-1}"#, 400, amount("-1")),
        ("POST", "/quotas/vm/acquire", r#"{"amount":1.5}"#, 400, amount("1.5")),
        ("POST", "/quotas/vm/release", r#"{"amount":9007199254740992}"#, 400, amount("9007199254740992")),
        ("POST", "/quotas/vm/release", r#"{"amount":99999999999999999999999}"#, 400, amount("1e+23")),
        ("POST", "/quotas/vm/acquire", &long_id, 400, "a request id of 129 bytes; give it 1 to 128, or leave it out".into()),
        ("POST", "/quotas/vm/acquire", r#"{"amount":1,"id":""}"#, 400, "a request id of 0 bytes; give it 1 to 128, or leave it out".into()),
        ("POST", "/quotas/vm/acquire", &oversize, 413, "the body is longer than 16384 bytes".into()),
        ("POST", "/quotas/vm/acquire", "", 400, "the body: EOF while parsing a value at line 1 column 0".into()),
        ("POST", "/quotas/vm/acquire", "{}", 400, "the body: missing field `amount` at line 1 column 2".into()),
        (
            "POST",
            "/quotas/vm/acquire",
            r#"{"amount":"3"}"#,
            400,
            "the body: amount: invalid type: string \"3\", expected a JSON number at line 1 column 13".into(),
        ),
        (
            "POST",
            "/quotas/vm/acquire",
            r#"{"amount":3,"ammount":3}"#,
            400,
            "the body: ammount: unknown field `ammount`, expected `amount` or `id` at line 1 column 21".into(),
        ),
        ("POST", "/quotas/vm/acquire", r#"{"amount":3}}"#, 400, "the body: trailing characters at line 1 column 13".into()),
        ("PUT", "/quotas/vm", r#"{"limit":-1}"#, 400, limit("-1")),
        ("PUT", "/quotas/vm", r#"{"limit":9007199254740992}"#, 400, limit("9007199254740992")),
        ("PATCH", "/quotas/vm", r#"{"limit":0.5}"#, 400, limit("0.5")),
        ("PUT", "/quotas/vm", r#"{"limit":1,"protocol":"most"}"#, 400, "no protocol `most`; there are majority, any".into()),
        ("PUT", "/quotas/vm", r#"{"limit":1,"parent":""}"#, 400, no_name.into()),
    ];
    for (method, path, body, status, message) in table {
        assert_eq!(http(address, method, path, body).await, (status, error("INVALID", &message)), "{method} {path} {body}");
    }
    assert_eq!(*fake.asked.lock().expect("no panic"), [""; 0]);
}

#[tokio::test]
async fn a_refusal_has_its_status_and_its_code_and_says_whether_to_try_again() {
    let (address, fake) = serve().await;
    let quota = || Name::new("vm").expect("a name");
    let table = [
        (Refusal::Invalid("no".into()), 400, "INVALID", "no"),
        (Refusal::Unknown(quota()), 404, "NOQUOTA", "there is no quota vm; create it first"),
        (Refusal::Exists(quota()), 409, "EXISTS", "there is a quota vm already"),
        (Refusal::Exceeded { quota: quota(), wanted: 3 }, 409, "EXCEEDED", "the limit of quota vm does not allow 3 more"),
        (
            Refusal::NotHeld { quota: quota(), amount: 3 },
            409,
            "NOTHELD",
            "fewer than 3 tokens of quota vm are acquired, so as many cannot be released",
        ),
        (
            Refusal::NotBooked { quota: quota(), amount: 3, booked: 9, freed: 7 },
            409,
            "NOTBOOKED",
            "3 tokens of quota vm cannot be freed: 9 are booked as held by clients of lost sites, and 7 of these are freed",
        ),
        (Refusal::DeclaredLost, 410, "LOST", "this site was declared lost and serves quotas no more; ask another one"),
        (Refusal::IdReused("x".into()), 409, "IDREUSED", "the request id x was used for another operation"),
        (Refusal::HasChildren(quota()), 409, "HASCHILDREN", "quota vm has quotas below it; drop those first"),
        (
            Refusal::Unreachable { quota: quota(), why: "no majority answers".into() },
            503,
            "UNREACHABLE",
            "quota vm has not enough tokens at this site, and no majority answers; try again later",
        ),
        (Refusal::Unavailable("the site is busy".into()), 503, "UNAVAILABLE", "the site is busy; try again later"),
        (Refusal::UnknownOutcome("it stopped".into()), 504, "UNKNOWN", "it is not known whether this was done: it stopped"),
    ];
    let requests = [
        ("GET", "/quotas", ""),
        ("GET", "/quotas/vm", ""),
        ("PUT", "/quotas/vm", r#"{"limit":1}"#),
        ("PATCH", "/quotas/vm", r#"{"limit":1}"#),
        ("DELETE", "/quotas/vm", ""),
        ("POST", "/quotas/vm/acquire", r#"{"amount":1}"#),
        ("POST", "/quotas/vm/release", r#"{"amount":1}"#),
        ("POST", "/quotas/vm/free", r#"{"amount":1}"#),
        ("POST", "/lost", r#"{"site":"virginia/0"}"#),
    ];
    for (refusal, status, code, message) in table {
        *fake.refusal.lock().expect("no panic") = Some(refusal.clone());
        assert_eq!(refusal.code(), code, "the Redis protocol has the same codes");
        for (method, path, body) in requests {
            let (answered, answer) = http(address, method, path, body).await;
            assert_eq!((answered, &answer), (status, &error(code, message)), "{method} {path}");
            let Error { error } = serde_json::from_str(&answer).expect("an error of the interface");
            assert_eq!(error.code.statuses()[0], status, "{code}");
        }
        let answer = raw(address, "GET /quotas HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert_eq!(answer.contains("\r\nretry-after: 1\r\n"), refusal.is_retryable(), "{answer}");
    }
}

#[tokio::test]
async fn the_id_of_a_request_may_be_a_header_and_a_body_must_come_as_json() {
    let (address, fake) = serve().await;
    let post = async |headers: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "POST /quotas/vm/acquire HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let answer = raw(address, &request).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head[9..12].to_owned(), body.to_owned(), std::mem::take(&mut *fake.asked.lock().expect("no panic")).concat())
    };
    let json = "content-type: application/json";
    let done = |asked: &str| ("200".to_owned(), r#"{"left":7}"#.to_owned(), asked.to_owned());
    let refused = |status: &str, message: &str| (status.to_owned(), error("INVALID", message), String::new());
    let amount = r#"{"amount":1}"#;
    assert_eq!(post(&format!("{json}\r\nIdempotency-Key: k-1"), amount).await, done("Acquire 1 of vm Some(k-1)"));
    assert_eq!(post(&format!("{json}; charset=utf-8\r\nIdempotency-Key: \"k-1\""), amount).await, done("Acquire 1 of vm Some(k-1)"));
    let both = r#"{"amount":1,"id":"k-1"}"#;
    assert_eq!(post(&format!("{json}\r\nIdempotency-Key: k-1"), both).await, done("Acquire 1 of vm Some(k-1)"));
    let differ = "the body and the header Idempotency-Key give different ids; give one, or the same in both";
    assert_eq!(post(&format!("{json}\r\nIdempotency-Key: k-2"), both).await, refused("400", differ));
    let twice = "the header Idempotency-Key is there twice; send one";
    assert_eq!(post(&format!("{json}\r\nIdempotency-Key: a\r\nIdempotency-Key: a"), amount).await, refused("400", twice));
    let no_json = "the body must be JSON and be sent with the header Content-Type: application/json";
    assert_eq!(post("content-type: text/plain", amount).await, refused("415", no_json));
    assert_eq!(post("accept: */*", amount).await, refused("415", no_json));
}

/// Every method of a documented path is served, and no other.
#[tokio::test]
async fn what_the_document_says_of_quotas_is_served_and_nothing_else() {
    let (address, _, document) = serve_documented().await;
    let mut served = 0;
    for (path, documented) in document["paths"].as_object().expect("paths") {
        for method in ["get", "put", "patch", "delete", "post"] {
            let (status, _) = http(address, &method.to_uppercase(), &path.replace("{name}", "vm"), "").await;
            let operation = documented.get(method);
            assert_eq!(status != 405 && status != 404, operation.is_some(), "{method} {path}: {status}");
            served += usize::from(operation.is_some());
        }
    }
    assert_eq!(served, 11);
}

#[tokio::test]
async fn what_is_answered_has_the_shape_that_the_document_gives_it() {
    let (address, _, document) = serve_documented().await;
    let ask = async |method, path, body| -> Value { serde_json::from_str(&http(address, method, path, body).await.1).expect("JSON") };
    let quotas = ask("GET", "/quotas", "").await;
    agrees(&document, "Quotas", &quotas);
    agrees(&document, "Quota", &quotas["quotas"][0]);
    agrees(&document, "SiteTokens", &quotas["quotas"][0]["sites"][0]);
    agrees(&document, "Spec", &ask("PUT", "/quotas/vm", r#"{"limit":1}"#).await);
    agrees(&document, "Done", &ask("POST", "/quotas/vm/acquire", r#"{"amount":1}"#).await);
    agrees(&document, "LostSites", &ask("POST", "/lost", r#"{"site":"virginia/0"}"#).await);
}
