//! Errors that several operations share, as the OpenAPI document describes them: each a response that operations refer to by name.

use crate::error::Error;
use utoipa::ToResponse;

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
