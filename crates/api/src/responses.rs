//! Errors that several operations share, as the OpenAPI document describes them: each a response that operations refer to by name.

use crate::error::Error;
use utoipa::{IntoResponses, ToResponse};

/// `INVALID`: the message says what is allowed.
#[derive(ToResponse)]
pub struct Invalid(pub Error);

/// `INVALID`: the body is longer than 16 KiB, or than 64 KiB at `/placement`, `/quorums` and `/chaos`.
#[derive(ToResponse)]
pub struct TooLarge(pub Error);

/// `INVALID`: the body did not come as `application/json`.
#[derive(ToResponse)]
pub struct NotJson(pub Error);

/// `NOQUOTA`: there is no such quota, or none above it of that name.
#[derive(ToResponse)]
pub struct NoQuota(pub Error);

/// `EXISTS`, `EXCEEDED`, `NOTHELD`, `NOTBOOKED`, `IDREUSED` or `HASCHILDREN`: nothing was done.
#[derive(ToResponse)]
pub struct QuotaConflict(pub Error);

/// `NOQUORUMS`: the site holds no databases of protocol quad.
#[derive(ToResponse)]
pub struct NoQuorums(pub Error);

/// `LOST`: this site was declared lost; ask another one.
#[derive(ToResponse)]
pub struct Lost(pub Error);

/// `UNREACHABLE` or `UNAVAILABLE`: nothing was done; the same may succeed later.
#[derive(ToResponse)]
#[response(headers(("Retry-After" = u32, description = "Seconds to wait.")))]
pub struct Unavailable(pub Error);

/// `UNKNOWN`: it is not known whether it was done. An operation with an id may be asked again at the same site.
#[derive(ToResponse)]
pub struct UnknownOutcome(pub Error);

/// How a site refuses what changes a quota or its tokens and comes with a body.
#[derive(IntoResponses)]
pub enum QuotaRefusal {
    /// The message says what is allowed.
    #[response(status = 400)]
    Invalid(#[ref_response] Invalid),
    /// There is no such quota.
    #[response(status = 404)]
    NoQuota(#[ref_response] NoQuota),
    /// Nothing was done.
    #[response(status = 409)]
    Conflict(#[ref_response] QuotaConflict),
    /// Another site is to be asked.
    #[response(status = 410)]
    Lost(#[ref_response] Lost),
    /// The body is too long.
    #[response(status = 413)]
    TooLarge(#[ref_response] TooLarge),
    /// The body is of another type.
    #[response(status = 415)]
    NotJson(#[ref_response] NotJson),
    /// The same may succeed later.
    #[response(status = 503)]
    Unavailable(#[ref_response] Unavailable),
    /// It may have been done.
    #[response(status = 504)]
    UnknownOutcome(#[ref_response] UnknownOutcome),
}
