//! Bodies of requests.

use super::failed::Failed;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

/// The bytes of a body, or why they did not come.
pub(super) type Body = Result<Bytes, BytesRejection>;

/// Reads a body of JSON, of `bytes_max` at the most. It must be sent as such, which keeps other sites' pages in a browser from posting here.
pub(super) fn read<T: DeserializeOwned>(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<T, Failed> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).and_then(|kind| kind.split(';').next());
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        let why = "the body must be JSON and be sent with the header Content-Type: application/json";
        return Err(Failed::invalid_with(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Failed::too_large(bytes_max),
        status => Failed::invalid_with(status, rejection.body_text()),
    })?;
    if body.len() > bytes_max {
        return Err(Failed::too_large(bytes_max));
    }
    let mut json = serde_json::Deserializer::from_slice(&body);
    let invalid = |why: String| Failed::invalid(format!("the body: {why}"));
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| invalid(error.to_string()))?;
    json.end().map_err(|error| invalid(error.to_string()))?;
    Ok(value)
}
