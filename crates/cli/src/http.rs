//! One HTTP request to a site, answered within a bound.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rhumb_api::error::Error as ApiError;
use serde::Serialize;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;

/// How long the answer to what needs no other site may take. Sites are asked over the loopback.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Larger answers are not those of a site.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// What a site answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The text of the body, without the blanks around it.
    pub body: String,
}

impl Answer {
    /// True if the site did what it was asked for.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Why the site refuses, for people; `None` if the body is not an error of a site.
    pub fn refusal(&self) -> Option<String> {
        serde_json::from_str(&self.body).ok().map(|ApiError { error }| error.message)
    }

    /// The same; if the body is something else, that.
    pub fn reason(&self) -> String {
        self.refusal().unwrap_or_else(|| self.body.clone())
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, Error)]
#[error("{url} does not answer: {reason}")]
pub struct HttpError {
    url: String,
    reason: String,
}

/// Gets `path` from the site at `base`, such as `http://127.0.0.1:8080`.
pub async fn get(base: &str, path: &str) -> Result<Answer, HttpError> {
    ask(base, path, Method::GET, String::new(), ANSWER_TIMEOUT).await
}

/// Posts `body` as JSON.
pub async fn post(base: &str, path: &str, body: &impl Serialize) -> Result<Answer, HttpError> {
    let body = serde_json::to_string(body).expect("what is posted has a form in JSON");
    ask(base, path, Method::POST, body, ANSWER_TIMEOUT).await
}

/// Sends a request with a body of JSON, and waits so long for the answer.
pub async fn ask(base: &str, path: &str, method: Method, body: String, within: Duration) -> Result<Answer, HttpError> {
    let failed = |reason: String| HttpError { url: format!("{base}{path}"), reason };
    match tokio::time::timeout(within, exchange(base, path, method, body)).await {
        Ok(answered) => answered.map_err(|reason| failed(reason.to_string())),
        Err(_) => Err(failed(format!("nothing came within {} s", within.as_secs()))),
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(base: &str, path: &str, method: Method, body: String) -> Result<Answer, Failure> {
    let authority = base.strip_prefix("http://").ok_or("the address does not start with http://")?.trim_end_matches('/');
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", authority)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let answered = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let bytes = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok(Answer { status: head.status.as_u16(), body: String::from_utf8_lossy(&bytes).trim().to_owned() })
    };
    tokio::pin!(answered);
    tokio::select! {
        answer = &mut answered => answer,
        // The connection may end together with the answer; what has been read of it is still there.
        closed = connection => { closed?; answered.await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_message_of_an_error_or_whatever_was_answered() {
        let answer = |body: &str| Answer { status: 503, body: body.to_owned() };
        let error = answer(r#"{"error":{"code":"UNAVAILABLE","message":"the site is busy"}}"#);
        assert_eq!((error.refusal().as_deref(), error.reason().as_str()), (Some("the site is busy"), "the site is busy"));
        let other = answer("<html>");
        assert_eq!((other.refusal(), other.reason().as_str()), (None, "<html>"));
    }
}
