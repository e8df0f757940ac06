//! The table `[tls]`: the certificates by which a site is known and knows others.
//!
//! With it no port of the site serves in plain text, wherever it is bound; without it none is bound beyond the loopback. In between there is nothing.

use rhumb_core::{SiteId, Topology};
use rhumb_security::name::SiteName;
use rhumb_security::tls::Files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The certificates of a site. Paths are relative to the folder of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificates of the authorities that are believed, PEM.
    pub authorities: PathBuf,
    /// The site's own certificate, PEM, then those that lead from it to an authority.
    pub certificate: PathBuf,
    /// The key of that, PEM. In the file of the certificate if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The folder of the cluster's CA, at the site that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// Where the site renews its certificate; the operator replaces the file if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Renewal>,
}

/// Where a site renews its certificate: at the site that holds the CA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    /// Its name in certificates.
    pub site: String,
    /// Where it listens for HTTP.
    #[serde(deserialize_with = "super::read::address")]
    pub http: SocketAddr,
}

/// What `[tls]` means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSetup {
    /// The files.
    pub files: Files,
    /// The folder of the CA, if this site holds it.
    pub ca: Option<PathBuf>,
    /// Where certificates are renewed, if this site does not hold it.
    pub renewal: Option<RenewalSetup>,
    /// What every site is called in certificates.
    pub names: BTreeMap<SiteId, SiteName>,
}

/// Where certificates are renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalSetup {
    /// Whom to believe there.
    pub site: SiteName,
    /// Where it listens for HTTP.
    pub http: SocketAddr,
}

/// What is wrong with the key of this ending; the table itself if that is empty.
fn wrong<T>(key: &str, why: impl Into<String>) -> Result<T, (String, String)> {
    Err((key.to_owned(), why.into()))
}

impl Tls {
    /// What it means for the sites of `topology`, which make the cluster called `cluster`.
    pub(super) fn resolve(&self, cluster: &str, topology: &Topology, folder: &Path) -> Result<TlsSetup, (String, String)> {
        let files = [(".authorities", Some(&self.authorities)), (".certificate", Some(&self.certificate)), (".key", self.key.as_ref())];
        if let Some((key, _)) = files.into_iter().find(|(_, file)| file.is_some_and(|file| file.as_os_str().is_empty())) {
            return wrong(key, "is empty; expected a file");
        }
        let name = |site: SiteId| SiteName::new(cluster, topology.name(site.region), site.shard).map(|name| (site, name));
        let names = topology.sites().map(name).collect::<Result<_, _>>().or_else(|error| wrong("", error.to_string()))?;
        let renewal = match (&self.renewal, &self.ca) {
            (Some(_), Some(_)) => {
                return wrong(".renewal", "is given beside `ca`: the site that holds the CA renews by itself");
            }
            (Some(renewal), None) => {
                let site =
                    renewal.site.parse().or_else(|error: rhumb_security::name::NameError| wrong(".renewal.site", error.to_string()))?;
                Some(RenewalSetup { site, http: renewal.http })
            }
            (None, _) => None,
        };
        let certificate = folder.join(&self.certificate);
        let key = self.key.as_ref().map_or_else(|| certificate.clone(), |key| folder.join(key));
        let files = Files { authorities: folder.join(&self.authorities), certificate, key };
        Ok(TlsSetup { files, ca: self.ca.as_ref().map(|ca| folder.join(ca)), renewal, names })
    }
}
