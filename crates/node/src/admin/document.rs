//! The OpenAPI document: what it says besides the routes, which add their operations and the shapes of these themselves.

use axum::Extension;
use axum::body::Bytes;
use axum::http::header;
use axum::response::IntoResponse;
use rhumb_api::error::Error;
use rhumb_api::responses;
use utoipa::OpenApi;

/// The document without routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Rhumb",
        description = "A site of a Rhumb cluster: its quotas and its state. Besides what its operation says, any request may be refused \
                       with an Error: 400 and 413 `INVALID`, 403 `CROSSORIGIN`, 408 `TIMEOUT` and 421 `MISDIRECTED`; and, but for probes, 503 \
                       `UNAVAILABLE` while the site stops.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(
        schemas(Error),
        responses(
            responses::Invalid,
            responses::TooLarge,
            responses::NotJson,
            responses::NoQuota,
            responses::QuotaConflict,
            responses::NoQuorums,
            responses::Lost,
            responses::Unavailable,
            responses::UnknownOutcome,
        )
    )
)]
pub(super) struct Document;

/// The document as it is sent.
#[derive(Clone)]
pub(super) struct Text(pub Bytes);

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "openapi",
    responses((status = 200, description = "The document.", body = serde_json::Value))
)]
pub(super) async fn openapi(Extension(Text(text)): Extension<Text>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text)
}
