//! Who may ask to join over HTTP, and what the answer holds.

use super::*;
use crate::admin::open;
use axum::body::{Body as RequestBody, to_bytes};
use axum::http::{Request, StatusCode};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use rhumb_security::authority::register::Grant;
use rhumb_security::certificate::{self, Certificate};
use rhumb_security::identity::Key;
use std::time::Duration;
use tempfile::TempDir;

/// The folder of the CA of a cluster of which Virginia is missing, and a request to join as that with its token.
struct Forming {
    folder: TempDir,
    request: JoinRequest,
}

fn name(region: &str) -> SiteName {
    SiteName::new("shop", region, 0).expect("a name")
}

impl Forming {
    fn new() -> Forming {
        let folder = tempfile::tempdir().expect("a folder");
        let now = SystemTime::now();
        Authority::create(folder.path(), "shop", now).expect("made");
        files::write_private(&folder.path().join("secret"), b"5ec2e7").expect("written");
        let regions = ["california", "virginia"].map(String::from).to_vec();
        let mut register = Register::new(&name("california"), ([10, 0, 0, 1], 8080).into(), regions, 1).expect("a shape");
        let peer = ([10, 0, 0, 1], 27_257).into();
        register.found(Member { region: "california".into(), shard: 0, peer, hosts: vec![], request: String::new() }).expect("the first");
        let grant = Grant { site: None, names: vec![], holds: Duration::from_hours(1) };
        register.add_token([1; 6], &TokenSecret([1; 32]), grant, now).expect("room");
        register::create(folder.path(), &register).expect("made");
        let request = JoinRequest {
            token: hex::encode([1; 6]),
            secret: hex::encode([1; 32]),
            region: "virginia".into(),
            shard: 0,
            peer: "10.0.0.2:27257".into(),
            hosts: vec![],
            request: Key::new().and_then(|key| key.request()).expect("a request"),
        };
        Forming { folder, request }
    }

    async fn ask(&self, is_open: bool, caller: Caller, request: Request<RequestBody>) -> (StatusCode, String) {
        let (ca, secret_file) = (self.folder.path().to_owned(), self.folder.path().join("secret"));
        let routes = open(router(Joining { ca, secret_file, site: name("california"), is_open }), vec![]);
        let (mut head, body) = request.into_parts();
        head.extensions.insert(caller);
        let answer = TowerToHyperService::new(routes).call(Request::from_parts(head, body)).await.expect("answered");
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    async fn join(&self, is_open: bool, request: &JoinRequest) -> (StatusCode, String) {
        let body = serde_json::to_string(request).expect("JSON");
        let request = Request::post("/join").header("content-type", "application/json").body(RequestBody::from(body)).expect("a request");
        self.ask(is_open, Caller::Anonymous, request).await
    }

    /// Asks how far it has formed, with the certificate in what a join was answered.
    async fn arrive(&self, joined: &str) -> StatusCode {
        let joined: Joined = serde_json::from_str(joined).expect("an answer");
        let chain = certificate::all_of(joined.certificates.certificate.expect("one").as_bytes()).expect("PEM");
        let certificate = Arc::new(Certificate::read(&chain[0]).expect("a certificate"));
        let request = Request::get("/forming").body(RequestBody::empty()).expect("a request");
        self.ask(false, Caller::Certified(certificate), request).await.0
    }
}

#[tokio::test]
async fn a_site_is_answered_again_until_it_has_arrived_and_a_copy_of_it_never_after() {
    let forming = Forming::new();
    let (status, joined) = forming.join(false, &forming.request).await;
    assert_eq!(status, StatusCode::OK, "{joined}");
    // The answer was lost. The first site may have started meanwhile.
    for is_open in [false, true] {
        assert_eq!(forming.join(is_open, &forming.request).await.0, StatusCode::OK);
    }
    assert_eq!(forming.arrive(&joined).await, StatusCode::OK);
    for is_open in [false, true] {
        let (status, why) = forming.join(is_open, &forming.request).await;
        assert!(status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN, "{status}");
        assert!(why.contains("the token was used already") && !why.contains("5ec2e7"), "{why}");
    }
}

#[tokio::test]
async fn nobody_joins_a_cluster_that_has_opened_by_a_register_that_was_put_back() {
    let forming = Forming::new();
    let before = register::read(forming.folder.path()).expect("a register");
    let (_, why) = forming.join(true, &forming.request).await;
    assert!(why.contains("all sites have joined"), "{why}");
    assert_eq!(register::read(forming.folder.path()).expect("a register"), before, "what is refused changes nothing");
}

#[tokio::test]
async fn who_has_no_token_waits_for_nobody_and_is_told_of_no_file() {
    let forming = Forming::new();
    let lock = files::lock(forming.folder.path()).expect("free");
    let stranger = JoinRequest { secret: hex::encode([2; 32]), ..forming.request.clone() };
    let answered = tokio::time::timeout(Duration::from_secs(30), forming.join(false, &stranger)).await;
    assert!(answered.expect("at once").1.contains("the token is unknown here"));
    drop(lock);
    std::fs::remove_file(forming.folder.path().join("secret")).expect("removed");
    let (status, why) = forming.join(false, &forming.request).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!why.contains(&forming.folder.path().display().to_string()), "{why}");
    let long = JoinRequest { request: "x".repeat(JOIN_BYTES_MAX), ..forming.request.clone() };
    assert_eq!(forming.join(false, &long).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}
