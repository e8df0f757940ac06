//! `/lost`: sites declared lost to quotas.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The sites declared lost: the answer to `GET` and `POST /lost`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LostSites {
    /// In the order of the declarations, each as `ireland/0`.
    pub sites: Vec<String>,
    /// Quotas in which it is not settled yet what they have.
    pub unsettled: usize,
}

/// The body of `POST /lost`: the declaration that a site is lost for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LostSite {
    /// As `ireland/0`.
    pub site: String,
}
