//! One HTTP request to a site, answered within a bound.

use hyper::Method;
use rhumb_api::error::Error as ApiError;
use rhumb_node::forming::certificates;
use rhumb_node::https::{self, Failure};
use rhumb_security::tls::{Client, Stream};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;

/// How long the answer to what needs no other site may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The folder that certificates are taken from, where a command says it.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();
/// The variable of the environment that says it otherwise.
const FOLDER_VARIABLE: &str = "RHUMB_CERTS";

/// Has sites at `https://` be asked with the certificates of `folder`.
pub fn go_by(folder: &Path) {
    // The first stands: a command asks one cluster.
    let _ = FOLDER.set(folder.to_owned());
}

/// A client with those certificates.
fn client() -> Result<Client, Failure> {
    let folder = FOLDER.get().cloned().or_else(|| std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from));
    let folder = folder
        .ok_or_else(|| format!("set {FOLDER_VARIABLE} to the folder that `rhumb init` or `rhumb join` made: it holds the certificates"))?;
    Ok(Client::load(&certificates(&folder))?)
}

async fn exchange(base: &str, path: &str, method: Method, body: String) -> Result<Answer, Failure> {
    let (scheme, authority) = base.split_once("://").ok_or("the address does not start with http:// or https://")?;
    let authority = authority.trim_end_matches('/');
    let stream = match scheme {
        "http" => Stream::from(TcpStream::connect(authority).await?),
        "https" => {
            let client = client()?;
            let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
            client.connect(TcpStream::connect(authority).await?, host.trim_matches(['[', ']'])).await?
        }
        _ => return Err("the address does not start with http:// or https://".into()),
    };
    let (status, body) = https::exchange(stream, authority, method, path, body).await?;
    Ok(Answer { status, body })
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
