//! `/certificates`: renewing certificates at the site that holds the CA. And what a site that is about to join asks and is answered, before the
//! cluster has opened.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The body of `POST /certificates`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewalRequest {
    /// A request for a certificate (PKCS #10) of a new key, PEM. What it asks for is passed over: the new certificate says what the one says with which
    /// the client has connected.
    pub request: String,
}

/// What a CA answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Certificates {
    /// The new certificate, then those that lead from it to older authorities, PEM; none if none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The authorities that are to be believed, PEM; the present one first.
    pub authorities: String,
}

/// Who wants to join: the body of `POST /join` while a cluster forms.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The id of the token, 12 hexadecimal digits.
    pub token: String,
    /// Its secret, 64 of them.
    pub secret: String,
    /// The region of the site.
    pub region: String,
    /// Its shard.
    pub shard: u16,
    /// Where other sites reach it, `IP:PORT`.
    pub peer: String,
    /// Further names for its certificate.
    pub hosts: Vec<String>,
    /// A request for a certificate of its key, PEM.
    pub request: String,
}

/// What a site that is let in gets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joined {
    /// Its certificate and the authorities.
    pub certificates: Certificates,
    /// The secret of the cluster, 64 hexadecimal digits.
    pub secret: String,
    /// The name of the site that holds the CA.
    pub site: String,
}

/// How far a cluster has formed: the answer to `GET /forming`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forming {
    /// The cluster.
    pub cluster: String,
    /// Its regions, in order, with the peer addresses of the sites that have joined, by shard.
    pub regions: Vec<FormingRegion>,
    /// The sites that are still missing.
    pub missing: Vec<String>,
}

/// A region of a cluster that forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormingRegion {
    /// Its name.
    pub name: String,
    /// The peer address of each site, `IP:PORT`; none while it is missing.
    pub sites: Vec<Option<String>>,
}

impl fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinRequest").field("region", &self.region).field("shard", &self.shard).finish_non_exhaustive()
    }
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").field("site", &self.site).finish_non_exhaustive()
    }
}
