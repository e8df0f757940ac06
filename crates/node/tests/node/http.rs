//! The HTTP port: how many may ask, how slowly, and from where.

use crate::common;
use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rhumb_node::admin::listener::{BODY_BYTES_MAX, CONNECTIONS_MAX, Entrance, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot};

/// Serves these routes.
async fn listen(routes: Router) -> SocketAddr {
    listen_until(routes, future::pending()).await.0
}

/// Serves these routes until `stop`; tells when all who were there then have been answered.
async fn listen_until(routes: Router, stop: impl Future<Output = ()> + Send + 'static) -> (SocketAddr, oneshot::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let (answered, all_answered) = oneshot::channel();
    tokio::spawn(serve(Entrance { listener, tls: None }, routes, stop, answered));
    (address, all_answered)
}

/// A connection on which this much of a request was sent.
async fn sent(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

/// The body of a refusal.
fn error(code: &str, message: &str) -> String {
    serde_json::json!({ "error": { "code": code, "message": message } }).to_string()
}

/// All that comes until the connection is closed.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // Where the server closes with bytes unread, the system may report a reset.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn half_sent_requests_lock_nobody_out_and_are_closed() {
    let files = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files }).expect("raised to what is allowed");
    let address = listen(Router::new().route("/", get(async || "here"))).await;
    let mut half_sent = Vec::new();
    for count in 0..1_100 {
        let request = ["", "G", "GET / HTTP/1.1\r\nhost: x\r\n", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1234"][count % 4];
        half_sent.push(sent(address, request).await);
        if count % 100 == 99 {
            assert_eq!(common::http(address, "GET", "/", "").await, (200, "here".into()), "with {count} half-sent requests");
        }
    }
    for stream in half_sent {
        let answer = rest(stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    assert_eq!(common::http(address, "GET", "/", "").await, (200, "here".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_being_answered_is_not_sent_away_for_others() {
    let answers = Arc::new(Semaphore::new(0));
    let asked = Arc::new(Semaphore::new(0));
    let (of_route, by_route) = (Arc::clone(&answers), Arc::clone(&asked));
    let wait = async move || {
        by_route.add_permits(1);
        of_route.acquire().await.expect("never closed").forget();
        "at last"
    };
    let address = listen(Router::new().route("/", get(wait))).await;
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        clients.push(sent(address, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await);
    }
    asked.acquire_many(CONNECTIONS_MAX as u32).await.expect("never closed").forget();
    assert_eq!(rest(sent(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await).await, "", "one more is closed");
    answers.add_permits(CONNECTIONS_MAX);
    for client in clients {
        let answer = rest(client).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("at last"), "{answer}");
    }
    answers.add_permits(1);
    assert_eq!(common::http(address, "GET", "/", "").await, (200, "at last".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_asked_is_answered_before_a_stop_and_who_has_not_is_not_waited_for() {
    let (asked, answers, stop) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let (by_route, of_route, told) = (Arc::clone(&asked), Arc::clone(&answers), Arc::clone(&stop));
    let wait = async move || {
        by_route.add_permits(1);
        of_route.acquire().await.expect("never closed").forget();
        "at last"
    };
    let routes = Router::new().route("/", get(wait)).route("/probe", get(async || "here"));
    let (address, mut all_answered) = listen_until(routes, async move { told.notified().await }).await;
    let silent = sent(address, "").await;
    let mut idle = sent(address, "GET /probe HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"here") {
        assert!(idle.read_buf(&mut answer).await.expect("answered") > 0);
    }
    let asking = sent(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    asked.acquire().await.expect("never closed").forget();
    stop.notify_one();
    assert_eq!((rest(silent).await, rest(idle).await), (String::new(), String::new()), "they are closed");
    assert_eq!(common::http(address, "GET", "/probe", "").await, (200, "here".into()), "who comes later is served");
    assert_eq!(all_answered.try_recv(), Err(oneshot::error::TryRecvError::Empty), "one is not answered yet");
    answers.add_permits(1);
    let answer = rest(asking).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("at last"), "{answer}");
    all_answered.await.expect("all are");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_bounded_in_bytes_and_in_time() {
    let address = listen(Router::new().route("/", post(async |body: Bytes| body.len().to_string()))).await;
    let most = "x".repeat(BODY_BYTES_MAX);
    assert_eq!(common::http(address, "POST", "/", &most).await, (200, BODY_BYTES_MAX.to_string()));
    let longer = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", BODY_BYTES_MAX + 1);
    let answer = rest(sent(address, &(longer + &most + "x")).await).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let answer = rest(sent(address, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n1234").await).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.ends_with(&error("TIMEOUT", "the body did not come within 10 s")), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_read_is_cut() {
    const BYTES: usize = 64 << 20;
    let address = listen(Router::new().route("/", get(async || Body::from(vec![b'x'; BYTES])))).await;
    let mut stream = sent(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    // Once the other end is closed, what is sent there fails.
    while stream.write_all(b"x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asks as a program, or a browser, does; the status and the text that comes.
async fn ask(address: SocketAddr, method: Method, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let stream = TcpStream::connect(address).await.expect("it listens");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a connection");
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = sender.send_request(request.body(Full::new(Bytes::from("{}"))).expect("a request")).await.expect("an answer");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_reach_nothing() {
    let routes = Router::new().route("/", get(async || "seen").post(async || "done"));
    let address = listen(rhumb_node::admin::guarded(routes, vec!["db.example.com".into()])).await;
    let own = format!("localhost:{}", address.port());
    let origin = format!("http://{own}");
    for headers in [
        &[("host", own.as_str())][..],
        &[("host", "127.0.0.1")],
        &[("host", "DB.example.com:80")],
        &[("host", &own), ("origin", &origin), ("sec-fetch-site", "same-origin")],
        &[("host", &own), ("sec-fetch-site", "none")],
    ] {
        assert_eq!(ask(address, Method::GET, "/", headers).await, (200, "seen".into()), "{headers:?}");
        assert_eq!(ask(address, Method::POST, "/", headers).await, (200, "done".into()), "{headers:?}");
    }
    for (headers, status) in [
        (&[("host", "evil.example")][..], 421),
        (&[("host", "evil.example"), ("origin", "http://evil.example"), ("sec-fetch-site", "same-origin")], 421),
        (&[("host", &own), ("origin", "http://evil.example")], 403),
        (&[("host", &own), ("origin", "null")], 403),
        (&[("host", &own), ("sec-fetch-site", "cross-site")], 403),
        (&[("host", &own), ("sec-fetch-site", "same-site")], 403),
    ] {
        for (method, path) in [(Method::GET, "/"), (Method::POST, "/"), (Method::GET, "/nowhere")] {
            assert_eq!(ask(address, method, path, headers).await.0, status, "{headers:?}");
        }
    }
    let (_, why) = ask(address, Method::GET, "/", &[("host", "evil.example")]).await;
    let expected = "this site is not `evil.example`: ask it by an IP address or as localhost, or add the name to `names` of `[http]` in its configuration";
    assert_eq!(why, error("MISDIRECTED", expected));
}
