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
//! A name may hold any byte that a path segment cannot: it is percent-encoded. An exact read holds up whoever uses the quota, so it is no
//! GET, which anything may repeat.

mod answers;

use super::body::{self, Body};
use super::failed::Failed;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use rhumb_api::lost::{LostSite, LostSites};
use rhumb_api::quotas::{self as api, Amount, Done, ExactRead, NewLimit, NewQuota, Quota};
use rhumb_api::responses;
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
use std::str::FromStr;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest body taken, in bytes.
pub const BODY_BYTES_MAX: usize = 16 << 10;
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What the routes work on.
struct Site {
    quotas: Arc<dyn Quotas>,
    topology: Arc<Topology>,
}

type Shared = State<Arc<Site>>;
type Named = Result<Path<QuotaPath>, PathRejection>;

/// The quota that a path names.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
struct QuotaPath {
    /// 1 to 200 bytes of UTF-8 without white space and control characters, percent-encoded: `eCommerce.com/clothing` is
    /// `eCommerce.com%2Fclothing`.
    #[param(min_length = 1, max_length = 200)]
    name: String,
}

/// The routes over `quotas`, with the names of the sites from `topology`.
pub fn router(quotas: Arc<dyn Quotas>, topology: Arc<Topology>) -> OpenApiRouter {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(look, create, set_limit, end))
        .routes(routes!(acquire))
        .routes(routes!(free))
        .routes(routes!(look_exactly))
        .routes(routes!(release))
        .routes(routes!(lost, declare_lost))
        // An empty name is no segment of a path, and would be answered with 404.
        .route("/quotas/", any(nameless))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(Arc::new(Site { quotas, topology }))
}

fn name(named: Named) -> Result<Name, Failed> {
    let Path(QuotaPath { name }) = named.map_err(|rejection| Failed::invalid(rejection.body_text()))?;
    Ok(Name::new(&name).map_err(Refusal::from)?)
}

/// What a body says.
fn read<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Failed> {
    body::read(headers, body, BODY_BYTES_MAX)
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

/// All quotas by name, with the tokens of this site.
#[utoipa::path(
    get,
    path = "/quotas",
    operation_id = "listQuotas",
    responses(
        (status = 200, description = "The quotas.", body = api::Quotas),
        (status = 410, response = responses::Lost),
        (status = 503, response = responses::Unavailable)
    )
)]
async fn list(State(site): Shared) -> Result<Json<api::Quotas>, Failed> {
    let quotas = site.quotas.list().await?;
    Ok(Json(api::Quotas { quotas: quotas.iter().map(|info| answers::quota(info, &site.topology)).collect() }))
}

/// How far to look at a quota.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ReadQuery {
    /// How far to look: `local`, at this site's tokens, or `global`, at those of all sites that answer. `exact`, at all tokens at one moment,
    /// is refused with 405: POST to /quotas/{name}/read.
    #[param(value_type = Option<api::Read>, default = "local")]
    read: Option<String>,
}

/// A quota and its tokens.
#[utoipa::path(
    get,
    path = "/quotas/{name}",
    operation_id = "getQuota",
    params(QuotaPath, ReadQuery),
    responses(
        (status = 200, description = "The quota.", body = Quota),
        (status = 400, response = responses::Invalid),
        (status = 404, response = responses::NoQuota),
        (status = 405, response = responses::Invalid),
        (status = 410, response = responses::Lost),
        (status = 503, response = responses::Unavailable)
    )
)]
async fn look(State(site): Shared, named: Named, query: Result<Query<ReadQuery>, QueryRejection>) -> Result<Json<Quota>, Failed> {
    let name = name(named)?;
    let Query(ReadQuery { read }) = query.map_err(|rejection| Failed::invalid(rejection.body_text()))?;
    let read: Read = choice(read)?;
    if read == Read::Exact {
        let why = "an exact read holds up whoever uses the quota, so it is not had by GET; POST {} to the path of the quota and /read";
        return Err(Failed::method_not_allowed("PUT,PATCH,DELETE", why));
    }
    Ok(Json(answers::quota(&site.quotas.get(name, read).await?, &site.topology)))
}

/// The quota and all its tokens at one moment. Meanwhile whoever uses the quota waits.
#[utoipa::path(
    post,
    path = "/quotas/{name}/read",
    operation_id = "readQuota",
    params(QuotaPath),
    request_body = ExactRead,
    responses(
        (status = 200, description = "The quota.", body = Quota),
        (status = 400, response = responses::Invalid),
        (status = 404, response = responses::NoQuota),
        (status = 410, response = responses::Lost),
        (status = 413, response = responses::TooLarge),
        (status = 415, response = responses::NotJson),
        (status = 503, response = responses::Unavailable)
    )
)]
async fn look_exactly(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<Quota>, Failed> {
    let name = name(named)?;
    let ExactRead {} = read(&headers, body)?;
    Ok(Json(answers::quota(&site.quotas.get(name, Read::Exact).await?, &site.topology)))
}

/// Make a quota. Its limit is divided equally among the sites.
#[utoipa::path(
    put,
    path = "/quotas/{name}",
    operation_id = "createQuota",
    params(QuotaPath),
    request_body = NewQuota,
    responses((status = 201, description = "Made.", body = api::Spec), responses::QuotaRefusal)
)]
async fn create(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<(StatusCode, Json<api::Spec>), Failed> {
    let name = name(named)?;
    let created: NewQuota = read(&headers, body)?;
    let spec = Spec {
        limit: limit(&created.limit)?,
        parent: created.parent.map(|parent| Name::new(&parent)).transpose().map_err(Refusal::from)?,
        protocol: choice(created.protocol)?,
        offer: choice(created.offer)?,
        reallocation: choice(created.reallocation)?,
    };
    let answer = answers::spec(&name, &spec);
    site.quotas.create(name, spec).await?;
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Change the limit of a quota in use.
#[utoipa::path(
    patch,
    path = "/quotas/{name}",
    operation_id = "setLimit",
    params(QuotaPath),
    request_body = NewLimit,
    responses(
        (status = 204, description = "Changed."),
        (status = 400, response = responses::Invalid),
        (status = 404, response = responses::NoQuota),
        (status = 410, response = responses::Lost),
        (status = 413, response = responses::TooLarge),
        (status = 415, response = responses::NotJson),
        (status = 503, response = responses::Unavailable),
        (status = 504, response = responses::UnknownOutcome)
    )
)]
async fn set_limit(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<StatusCode, Failed> {
    let name = name(named)?;
    let changed: NewLimit = read(&headers, body)?;
    site.quotas.set_limit(name, limit(&changed.limit)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a quota that has none below it. Tokens that clients hold of it are forgotten.
#[utoipa::path(
    delete,
    path = "/quotas/{name}",
    operation_id = "dropQuota",
    params(QuotaPath),
    responses(
        (status = 204, description = "Ended."),
        (status = 400, response = responses::Invalid),
        (status = 404, response = responses::NoQuota),
        (status = 409, response = responses::QuotaConflict),
        (status = 410, response = responses::Lost),
        (status = 503, response = responses::Unavailable),
        (status = 504, response = responses::UnknownOutcome)
    )
)]
async fn end(State(site): Shared, named: Named) -> Result<StatusCode, Failed> {
    Quotas::drop(&*site.quotas, name(named)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The id of an operation, for the document; [`request_key`] reads it.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "a header that may be there twice is read by hand")]
struct IdempotencyKey {
    /// The id of the request, if the body gives none: bare, or a string in quotes.
    #[param(rename = "Idempotency-Key")]
    id: Option<String>,
}

/// Take tokens from the quota and from all above it, or from none.
#[utoipa::path(
    post,
    path = "/quotas/{name}/acquire",
    operation_id = "acquire",
    params(QuotaPath, IdempotencyKey),
    request_body = Amount,
    responses((status = 200, description = "Done, durably.", body = Done), responses::QuotaRefusal)
)]
async fn acquire(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<Done>, Failed> {
    run(&site, Action::Acquire, named, &headers, body).await
}

/// Give tokens back, to the quota and to all above it.
#[utoipa::path(
    post,
    path = "/quotas/{name}/release",
    operation_id = "release",
    params(QuotaPath, IdempotencyKey),
    request_body = Amount,
    responses((status = 200, description = "Done, durably.", body = Done), responses::QuotaRefusal)
)]
async fn release(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<Done>, Failed> {
    run(&site, Action::Release, named, &headers, body).await
}

/// Take back, in this quota alone, tokens booked for lost sites that no client holds. If a client holds them, clients may exceed the limit by as many.
#[utoipa::path(
    post,
    path = "/quotas/{name}/free",
    operation_id = "freeQuota",
    params(QuotaPath, IdempotencyKey),
    request_body = Amount,
    responses((status = 200, description = "Done, durably.", body = Done), responses::QuotaRefusal)
)]
async fn free(State(site): Shared, named: Named, headers: HeaderMap, body: Body) -> Result<Json<Done>, Failed> {
    run(&site, Action::Free, named, &headers, body).await
}

/// The sites declared lost, and in how many quotas it is not settled yet what they have.
#[utoipa::path(
    get,
    path = "/lost",
    operation_id = "lost",
    responses(
        (status = 200, description = "The sites declared lost.", body = LostSites),
        (status = 503, response = responses::Unavailable)
    )
)]
async fn lost(State(site): Shared) -> Result<Json<LostSites>, Failed> {
    let (lost, unsettled) = site.quotas.lost().await?;
    Ok(Json(answers::lost_sites(&lost, unsettled, &site.topology)))
}

/// Declare a site lost for ever: it has no part in quotas any more, and all that it may have given out counts as held.
#[utoipa::path(
    post,
    path = "/lost",
    operation_id = "declareLost",
    request_body = LostSite,
    responses(
        (status = 200, description = "The sites declared lost.", body = LostSites),
        (status = 400, response = responses::Invalid),
        (status = 410, response = responses::Lost),
        (status = 413, response = responses::TooLarge),
        (status = 415, response = responses::NotJson),
        (status = 503, response = responses::Unavailable),
        (status = 504, response = responses::UnknownOutcome)
    )
)]
async fn declare_lost(State(site): Shared, headers: HeaderMap, body: Body) -> Result<Json<LostSites>, Failed> {
    let LostSite { site: named } = read(&headers, body)?;
    let found = site.topology.sites().find(|id| answers::site_name(*id, &site.topology) == named);
    let unknown = || Refusal::Invalid(format!("this cluster has no site `{named}`; a site is named as ireland/0"));
    site.quotas.declare_lost(found.ok_or_else(unknown)?).await?;
    let (lost, unsettled) = site.quotas.lost().await?;
    Ok(Json(answers::lost_sites(&lost, unsettled, &site.topology)))
}

async fn run(site: &Site, action: Action, named: Named, headers: &HeaderMap, body: Body) -> Result<Json<Done>, Failed> {
    let quota = name(named)?;
    let Amount { amount, id } = read(headers, body)?;
    let amount = parse_amount(amount.to_string().as_bytes())?;
    let operation = Operation { action, quota, amount, id: request_key(headers, id)? };
    let outcomes = site.quotas.run(vec![operation]).await;
    let done = outcomes.into_iter().next().expect("each operation has an outcome")?;
    Ok(Json(Done { left: done.left }))
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
