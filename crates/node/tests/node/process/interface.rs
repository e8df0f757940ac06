//! What a site serves over HTTP: who reaches it, in which form it refuses, and what its OpenAPI document says.

use super::{Process, configs};
use crate::common::{self, http};
use rhumb_api::error::{Code, Error};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_reach_no_route_of_a_site() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = configs(&["a"], folder.path()).await.remove(0);
    config.http.names = vec!["db.example.com".into()];
    let process = Process::start(&config).await;
    let asked = async |path: &str, header: &str| {
        let mut stream = TcpStream::connect(config.listen.http).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{header}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        answer[9..12].to_owned()
    };
    for path in ["/healthz", "/readyz", "/metrics", "/status", "/openapi.json", "/placement", "/quorums", "/quotas", "/nowhere"] {
        assert_eq!(asked(path, "host: evil.example").await, "421", "{path}");
        assert_eq!(asked(path, "host: localhost\r\nsec-fetch-site: cross-site").await, "403", "{path}");
    }
    assert_eq!([asked("/healthz", "host: db.example.com").await, asked("/healthz", "host: localhost").await], ["200", "200"]);
    process.stop().await.expect("exit code 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_one_form_and_a_code_of_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    let process = Process::start(&config).await;
    let answer = async |request: &str| {
        let mut stream = TcpStream::connect(config.listen.http).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        answer
    };
    let post = |path: &str, headers: &str, body: &str| {
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\r\n\r\n{body}")
    };
    let get = |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n\r\n");
    let longest = 64 << 10;
    let table = [
        (get("/nowhere", "host: localhost"), 404, Code::NotFound, ""),
        (get("/quotas/vm/acquire/3", "host: localhost"), 404, Code::NotFound, ""),
        (get("/chaos", "host: localhost"), 405, Code::Invalid, "\r\nallow: POST\r\n"),
        (post("/healthz", "content-length: 0", ""), 405, Code::Invalid, "\r\nallow: GET,HEAD\r\n"),
        (get("/quotas/vm?read=exact", "host: localhost"), 405, Code::Invalid, "\r\nallow: PUT,PATCH,DELETE\r\n"),
        (get("/quotas", "host: evil.example"), 421, Code::Misdirected, ""),
        (get("/quotas", "host: localhost\r\norigin: null"), 403, Code::CrossOrigin, ""),
        (get("/quotas", "host: localhost\r\nhost: localhost"), 400, Code::Invalid, ""),
        (get("/quorums", "host: localhost"), 404, Code::NoQuorums, ""),
        (post("/chaos", "content-length: 9", "{\"action\""), 400, Code::Invalid, ""),
        (post("/lost", "transfer-encoding: chunked", "no number\r\n"), 400, Code::Invalid, "\r\nconnection: close\r\n"),
        (post("/placement", &format!("content-length: {}", longest + 1), &"x".repeat(longest + 1)), 413, Code::Invalid, ""),
    ];
    for (request, status, code, header) in table {
        let answer = answer(&request).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let head = format!("{head}\r\n");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")) && head.contains(header), "{request}: {head}");
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{request}: {head}");
        let Error { error } = serde_json::from_str(body).expect("an error of the interface");
        assert_eq!(error.code, code, "{request}");
        assert!(code.statuses().contains(&status), "{request}");
    }
    process.stop().await.expect("exit code 0");
}

/// All references in a part of the document.
fn references(part: &Value) -> Vec<&str> {
    match part {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            own.into_iter().chain(members.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openapi_document_describes_every_operation_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configs(&["a"], folder.path()).await.remove(0);
    let process = Process::start(&config).await;
    let address = config.listen.http;
    let document: Value = serde_json::from_str(&http(address, "GET", "/openapi.json", "").await.1).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    for reference in references(&document) {
        let pointer = reference.strip_prefix('#').expect("a reference into the document");
        assert!(document.pointer(pointer).is_some(), "{reference} is not there");
    }
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let part = part["$ref"].as_str().map_or(part, |reference| document.pointer(&reference[1..]).expect("checked above"));
            assert_ne!(part["additionalProperties"], false, "a part of {name} refuses the members of the others");
        }
    }
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in ["get", "put", "patch", "delete", "post"] {
            let (status, answer) = http(address, &method.to_uppercase(), &path.replace("{name}", "vm"), "").await;
            let Some(operation) = item.get(method) else {
                assert_eq!(status, 405, "{method} {path} is not in the document");
                continue;
            };
            assert!(status != 405 && (status != 404 || !answer.contains("NOTFOUND")), "{method} {path} is not served");
            operations.push(format!("{method} {path}"));
            assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{method} {path} has no summary");
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let response = match response["$ref"].as_str() {
                    Some(reference) => document.pointer(&reference[1..]).expect("checked above"),
                    None => response,
                };
                assert!(!response["description"].as_str().expect("a text").is_empty(), "{method} {path}: {status} is not described");
            }
        }
    }
    let all = [
        "get /certificates",
        "post /certificates",
        "post /chaos",
        "get /healthz",
        "get /lost",
        "post /lost",
        "get /metrics",
        "get /openapi.json",
        "get /placement",
        "post /placement",
        "get /quorums",
        "post /quorums",
        "get /quotas",
        "get /quotas/{name}",
        "put /quotas/{name}",
        "patch /quotas/{name}",
        "delete /quotas/{name}",
        "post /quotas/{name}/acquire",
        "post /quotas/{name}/free",
        "post /quotas/{name}/read",
        "post /quotas/{name}/release",
        "get /readyz",
        "get /status",
    ];
    assert_eq!(operations, all);
    let answer = async |path| -> Value { serde_json::from_str(&http(address, "GET", path, "").await.1).expect("JSON") };
    let status = answer("/status").await;
    common::agrees(&document, "Status", &status);
    common::agrees(&document, "RegionStatus", &status["regions"][0]);
    common::agrees(&document, "TransactionStatus", &status["transactions"]);
    common::agrees(&document, "QuotaStatus", &status["quotas"]);
    let refused = answer("/quorums").await;
    common::agrees(&document, "Error", &refused);
    common::agrees(&document, "Reason", &refused["error"]);
    process.stop().await.expect("exit code 0");
}
