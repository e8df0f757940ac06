//! Who asks over HTTP, and what that lets them ask.
//!
//! In plain text everybody on the machine may ask everything. Over TLS whoever has a certificate of the cluster may.
//!
//! Invariant: no route but those of [`OPEN`] sees a request of an anonymous client.

use super::OPEN;
use super::failed::Failed;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rhumb_api::error::Code;
use rhumb_security::certificate::Certificate;
use std::sync::Arc;

/// Who asks.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Somebody on this machine.
    Local,
    /// An anonymous client: one that has shown no certificate.
    Anonymous,
    /// The owner of this certificate, which an authority of the cluster has signed.
    Certified(Arc<Certificate>),
}

/// Lets a request through to the routes, or refuses it.
pub async fn check(request: Request, next: Next) -> Response {
    let is_anonymous = matches!(request.extensions().get(), Some(Caller::Anonymous) | None);
    if is_anonymous && !OPEN.contains(&request.uri().path()) {
        let why = "show a certificate of this cluster, such as `rhumb init` makes for the administrator; without one only the probes /healthz and /readyz are answered";
        return Failed::new(Code::Unauthenticated, why).into_response();
    }
    next.run(request).await
}
