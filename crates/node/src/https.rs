//! One HTTP request over a connection that is there already, and its answer.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rhumb_security::tls::Stream;

/// Larger answers are not those of a site, in bytes.
pub const ANSWER_BYTES_MAX: usize = 4 << 20;

/// Why there is no answer.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Sends a request with a body of JSON to the site at the other end of `stream`, which is called `host`. The status, and the text of the body without the
/// blanks around it.
pub async fn exchange(stream: Stream, host: &str, method: Method, path: &str, body: String) -> Result<(u16, String), Failure> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", host)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let answered = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let bytes = Limited::new(body, ANSWER_BYTES_MAX).collect().await?.to_bytes();
        Ok((head.status.as_u16(), String::from_utf8_lossy(&bytes).trim().to_owned()))
    };
    tokio::pin!(answered);
    tokio::select! {
        answer = &mut answered => answer,
        // The connection may end together with the answer; what has been read of it is still there.
        closed = connection => { closed?; answered.await }
    }
}
