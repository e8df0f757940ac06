//! Quotas over HTTP and JSON.
//!
//! ```text
//!   GET    /quotas                  all quotas, with the tokens of this site
//!   PUT    /quotas/{name}           make one: {"limit":100,"parent":"p","protocol":"any","offer":"all","reallocation":"proportional"}
//!   GET    /quotas/{name}?read=R    look at one: local (the default) or global
//!   PATCH  /quotas/{name}           change its limit: {"limit":200}
//!   DELETE /quotas/{name}           end it
//!   POST   /quotas/{name}/acquire   take tokens: {"amount":3,"id":"order-17"}; the id also as header Idempotency-Key
//!   POST   /quotas/{name}/release   give them back, likewise
//!   POST   /quotas/{name}/read      look at all its tokens at one moment: {}
//!   POST   /quotas/{name}/free      take back tokens of lost sites that no client holds, likewise
//!   GET    /lost                    the sites declared lost, and in how many quotas it is not settled yet what they have
//!   POST   /lost                    declare a site lost for ever: {"site":"ireland/0"}
//! ```
//!
//! A name may hold any byte that a path segment cannot: it is percent-encoded. Bodies must come as `application/json`,
//! which keeps other sites' pages in a browser from posting here. An exact read holds up whoever uses the quota, so it is no GET, which
//! anything may repeat. What is refused is answered with the status of
//! [`status_of`] and `{"error":{"code":…,"message":…}}`.

mod shown;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use axum::{Json, Router};
use rhumb_core::Topology;
use rhumb_quota::gateway::Quotas;
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::operation::{AMOUNT_MAX, Action, Operation, RequestKey, parse_amount};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::Spec;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Number;
use shown::{ShownDone, ShownFailure, ShownLost, ShownQuota, ShownQuotas, ShownSpec, shown_name};
use std::str::FromStr;
use std::sync::Arc;

/// The longest body taken, in bytes.
pub const BODY_BYTES_MAX: usize = 16 << 10;
/// Who is told to come again later is told to wait so many seconds.
const RETRY_AFTER_SECONDS: &str = "1";
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What the routes work on.
struct Site {
    quotas: Arc<dyn Quotas>,
    topology: Arc<Topology>,
}

type Shared = State<Arc<Site>>;
type Named = Result<Path<String>, PathRejection>;
type Body = Result<Bytes, BytesRejection>;

/// The routes over `quotas`, with the names of the sites from `topology`.
pub fn router(quotas: Arc<dyn Quotas>, topology: Arc<Topology>) -> Router {
    let site = Arc::new(Site { quotas, topology });
    let routes = routes().into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    // An empty name is no segment of a path, and would be answered with 404.
    routes
        .route("/lost", get(lost).post(declare_lost))
        .route("/quotas/", any(nameless))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(site)
}

/// Each path and what may be done there.
fn routes() -> [(&'static str, MethodRouter<Arc<Site>>); 6] {
    [
        ("/quotas", get(list)),
        ("/quotas/{name}", get(look).put(create).patch(set_limit).delete(end)),
        ("/quotas/{name}/acquire", post(acquire)),
        ("/quotas/{name}/free", post(free)),
        ("/quotas/{name}/read", post(look_exactly)),
        ("/quotas/{name}/release", post(release)),
    ]
}

/// The status that a refusal is answered with.
pub fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Invalid(_) => StatusCode::BAD_REQUEST,
        Refusal::Unknown(_) => StatusCode::NOT_FOUND,
        Refusal::Exists(_) | Refusal::Exceeded { .. } | Refusal::NotHeld { .. } | Refusal::IdReused(_) | Refusal::HasChildren(_) => {
            StatusCode::CONFLICT
        }
        Refusal::NotBooked { .. } => StatusCode::CONFLICT,
        Refusal::DeclaredLost => StatusCode::GONE,
        Refusal::Unreachable { .. } | Refusal::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        // As from a proxy that has lost its server: done or not, nobody here can tell.
        Refusal::UnknownOutcome(_) => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// What is answered instead of what was asked for.
struct Failed {
    status: StatusCode,
    refusal: Refusal,
}

impl Failed {
    fn invalid(status: StatusCode, why: impl Into<String>) -> Failed {
        Failed { status, refusal: Refusal::Invalid(why.into()) }
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Failed {
        Failed { status: status_of(&refusal), refusal }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(ShownFailure::new(&self.refusal))).into_response();
        if self.refusal.is_retryable() {
            response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        response
    }
}

/// The answer to a request that is refused before a route has looked at it.
pub(super) fn refuse(refusal: Refusal) -> Response {
    Failed::from(refusal).into_response()
}

fn name(named: Named) -> Result<Name, Failed> {
    let Path(name) = named.map_err(|rejection| Failed::invalid(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    Ok(Name::new(&name).map_err(Refusal::from)?)
}

/// What a body says.
fn read<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Failed> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).and_then(|kind| kind.split(';').next());
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        let why = "the body must be JSON and be sent with the header Content-Type: application/json";
        return Err(Failed::invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Failed::invalid(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {BODY_BYTES_MAX} bytes"))
        }
        status => Failed::invalid(status, rejection.body_text()),
    })?;
    let mut json = serde_json::Deserializer::from_slice(&body);
    let invalid = |why: String| Failed::invalid(StatusCode::BAD_REQUEST, format!("the body: {why}"));
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| invalid(error.to_string()))?;
    json.end().map_err(|error| invalid(error.to_string()))?;
    Ok(value)
}

fn limit(number: &Number) -> Result<u64, Refusal> {
    let limit = number.as_u64().filter(|&limit| limit <= AMOUNT_MAX);
    limit.ok_or_else(|| Refusal::Invalid(format!("a limit of {number} tokens; allowed are whole numbers from 0 to {AMOUNT_MAX}")))
}

fn choice<T: FromStr<Err = Refusal> + Default>(text: Option<String>) -> Result<T, Refusal> {
    text.map_or(Ok(T::default()), |text| text.parse())
}

async fn nameless() -> Result<(), Failed> {
    Name::new("").map_err(Refusal::from)?;
    Ok(())
}

async fn list(State(site): Shared) -> Result<Json<ShownQuotas>, Failed> {
    let quotas = site.quotas.list().await?;
    Ok(Json(ShownQuotas::new(&quotas, &site.topology)))
}

#[derive(Deserialize)]
struct Looked {
    read: Option<String>,
}

async fn look(State(site): Shared, named: Named, query: Result<Query<Looked>, QueryRejection>) -> Result<Json<ShownQuota>, Failed> {
    let name = name(named)?;
    let Query(Looked { read }) = query.map_err(|rejection| Failed::invalid(StatusCode::BAD_REQUEST, rejection.body_text()))?;
    let read: Read = choice(read)?;
    if read == Read::Exact {
        let why = "an exact read holds up whoever uses the quota, so it is not had by GET; POST {} to the path of the quota and /read";
        return Err(Failed::invalid(StatusCode::METHOD_NOT_ALLOWED, why));
    }
    Ok(Json(ShownQuota::new(&site.quotas.get(name, read).await?, &site.topology)))
}

/// What the body of an exact read says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LookedExactly {}

async fn look_exactly(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<ShownQuota>, Failed> {
    let name = name(named)?;
    let LookedExactly {} = read(&headers, body)?;
    Ok(Json(ShownQuota::new(&site.quotas.get(name, Read::Exact).await?, &site.topology)))
}

/// What the body of `PUT` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Created {
    limit: Number,
    parent: Option<String>,
    protocol: Option<String>,
    offer: Option<String>,
    reallocation: Option<String>,
}

async fn create(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<(StatusCode, Json<ShownSpec>), Failed> {
    let name = name(named)?;
    let created: Created = read(&headers, body)?;
    let spec = Spec {
        limit: limit(&created.limit)?,
        parent: created.parent.map(|parent| Name::new(&parent)).transpose().map_err(Refusal::from)?,
        protocol: choice(created.protocol)?,
        offer: choice(created.offer)?,
        reallocation: choice(created.reallocation)?,
    };
    let shown = ShownSpec::new(&name, &spec);
    site.quotas.create(name, spec).await?;
    Ok((StatusCode::CREATED, Json(shown)))
}

/// What the body of `PATCH` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    limit: Number,
}

async fn set_limit(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<StatusCode, Failed> {
    let name = name(named)?;
    let changed: Changed = read(&headers, body)?;
    site.quotas.set_limit(name, limit(&changed.limit)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn end(State(site): Shared, named: Named) -> Result<StatusCode, Failed> {
    Quotas::drop(&*site.quotas, name(named)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn acquire(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<ShownDone>, Failed> {
    run(&site, Action::Acquire, named, &headers, body).await
}

async fn release(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<ShownDone>, Failed> {
    run(&site, Action::Release, named, &headers, body).await
}

async fn free(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<ShownDone>, Failed> {
    run(&site, Action::Free, named, &headers, body).await
}

async fn lost(State(site): Shared) -> Result<Json<ShownLost>, Failed> {
    let (lost, unsettled) = site.quotas.lost().await?;
    Ok(Json(ShownLost::new(&lost, unsettled, &site.topology)))
}

/// What the body of a declaration says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    site: String,
}

async fn declare_lost(State(site): Shared, headers: HeaderMap, body: Body) -> Result<Json<ShownLost>, Failed> {
    let Declared { site: named } = read(&headers, body)?;
    let found = site.topology.sites().find(|id| shown_name(*id, &site.topology) == named);
    let unknown = || Refusal::Invalid(format!("this cluster has no site `{named}`; a site is named as ireland/0"));
    site.quotas.declare_lost(found.ok_or_else(unknown)?).await?;
    let (lost, unsettled) = site.quotas.lost().await?;
    Ok(Json(ShownLost::new(&lost, unsettled, &site.topology)))
}

/// What the body of an operation says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Amount {
    amount: Number,
    id: Option<String>,
}

async fn run(site: &Site, action: Action, named: Named, headers: &HeaderMap, body: Body) -> Result<Json<ShownDone>, Failed> {
    let quota = name(named)?;
    let Amount { amount, id } = read(headers, body)?;
    let amount = parse_amount(amount.to_string().as_bytes())?;
    let operation = Operation { action, quota, amount, id: request_key(headers, id)? };
    let outcomes = site.quotas.run(vec![operation]).await;
    let done = outcomes.into_iter().next().expect("each operation has an outcome")?;
    Ok(Json(ShownDone::new(done)))
}

/// The id of an operation: from its body, from the header, or the same from both.
fn request_key(headers: &HeaderMap, of_body: Option<String>) -> Result<Option<RequestKey>, Refusal> {
    let mut ids = headers.get_all(IDEMPOTENCY_KEY).iter().map(|id| unquoted(id.as_bytes()).to_vec());
    let of_header = ids.next();
    if ids.next().is_some() {
        return Err(Refusal::Invalid("the header Idempotency-Key is there twice; send one".into()));
    }
    let of_body = of_body.map(String::into_bytes);
    if of_body.is_some() && of_header.is_some() && of_body != of_header {
        return Err(Refusal::Invalid("the body and the header Idempotency-Key give different ids; give one, or the same in both".into()));
    }
    of_body.or(of_header).map(RequestKey::new).transpose()
}

/// The header may be a string in quotes, as it is standardized, or bare, as it is mostly sent.
fn unquoted(id: &[u8]) -> &[u8] {
    id.strip_prefix(b"\"").and_then(|id| id.strip_suffix(b"\"")).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_the_document_and_every_path_of_the_document_has_one() {
        let document: serde_json::Value = serde_json::from_str(crate::admin::OPENAPI).expect("JSON");
        let documented = document["paths"].as_object().expect("paths").keys().filter(|path| path.starts_with("/quotas"));
        assert!(documented.eq(routes().map(|(path, _)| path)), "the paths of openapi.json are not those of routes()");
    }
}
