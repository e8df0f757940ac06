//! The answer to a request that is refused.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rhumb_api::error::{Code, Error};
use rhumb_commit::transaction::TxnError;
use rhumb_quota::refusal::Refusal;

/// Who is told to come again later is told to wait so many seconds.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// What is answered instead of what was asked for.
pub(super) struct Failed {
    status: StatusCode,
    /// The header Allow, where a handler refuses its own method. Where no handler takes the method, the router adds it.
    allow: Option<HeaderValue>,
    error: Error,
}

impl Failed {
    /// With the usual status of `code`.
    pub fn new(code: Code, message: impl Into<String>) -> Failed {
        let status = StatusCode::from_u16(code.statuses()[0]).expect("the table holds statuses");
        Failed { status, allow: None, error: Error::new(code, message) }
    }

    /// The request can never be granted.
    pub fn invalid(message: impl Into<String>) -> Failed {
        Failed::new(Code::Invalid, message)
    }

    /// Likewise, for a reason that has a status of its own.
    pub fn invalid_with(status: StatusCode, message: impl Into<String>) -> Failed {
        debug_assert!(Code::Invalid.statuses().contains(&status.as_u16()), "{status} is not in the table");
        Failed { status, ..Failed::invalid(message) }
    }

    /// The path takes the method, but not for what is asked of it; it takes the methods in `allow`.
    pub fn method_not_allowed(allow: &'static str, message: impl Into<String>) -> Failed {
        let allow = Some(HeaderValue::from_static(allow));
        Failed { allow, ..Failed::invalid_with(StatusCode::METHOD_NOT_ALLOWED, message) }
    }

    /// The body has more bytes than are taken.
    pub fn too_large(bytes_max: usize) -> Failed {
        Failed::invalid_with(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {bytes_max} bytes"))
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        let code = match &refusal {
            Refusal::Invalid(_) => Code::Invalid,
            Refusal::Unknown(_) => Code::NoQuota,
            Refusal::Exists(_) => Code::Exists,
            Refusal::Exceeded { .. } => Code::Exceeded,
            Refusal::NotHeld { .. } => Code::NotHeld,
            Refusal::NotBooked { .. } => Code::NotBooked,
            Refusal::IdReused(_) => Code::IdReused,
            Refusal::HasChildren(_) => Code::HasChildren,
            Refusal::DeclaredLost => Code::Lost,
            Refusal::Unreachable { .. } => Code::Unreachable,
            Refusal::Unavailable(_) => Code::Unavailable,
            Refusal::UnknownOutcome(_) => Code::Unknown,
        };
        Failed::new(code, refusal.to_string())
    }
}

impl From<TxnError> for Failed {
    fn from(error: TxnError) -> Failed {
        let code = match &error {
            TxnError::Conflict(_) => Code::Conflict,
            TxnError::Unavailable(_) => Code::Unavailable,
            TxnError::Unknown(_) => Code::Unknown,
            TxnError::TooLarge(_) | TxnError::Invalid(_) | TxnError::OutOfRange(_) | TxnError::Unsupported(_) => Code::Invalid,
            TxnError::LockTimeout(_) => Code::LockTimeout,
        };
        Failed::new(code, error.to_string())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let is_retryable = self.error.error.code.is_retryable();
        let mut response = (self.status, Json(self.error)).into_response();
        if is_retryable {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        if let Some(allow) = self.allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[tokio::test]
    async fn every_error_of_a_transaction_has_its_status_and_code() {
        for (error, status, code) in [
            (TxnError::Conflict("a row is locked".into()), 409, "CONFLICT"),
            (TxnError::LockTimeout("no answer within 5 ms".into()), 409, "LOCKTIMEOUT"),
            (TxnError::Unavailable("no majority".into()), 503, "UNAVAILABLE"),
            (TxnError::Unknown("the site stopped".into()), 504, "UNKNOWN"),
            (TxnError::TooLarge("13 MiB".into()), 400, "INVALID"),
            (TxnError::Invalid("a write".into()), 400, "INVALID"),
            (TxnError::OutOfRange("too old".into()), 400, "INVALID"),
            (TxnError::Unsupported("locks".into()), 400, "INVALID"),
        ] {
            let message = error.to_string();
            let response = Failed::from(error).into_response();
            assert_eq!(response.status(), status, "{message}");
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), status == 503, "{message}");
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body, json!({"error": {"code": code, "message": message}}));
        }
    }
}
