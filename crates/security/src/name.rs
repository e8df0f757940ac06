//! What a site is called in certificates: `california-0.shop.rhumb.internal` is shard 0 of region california of the cluster shop.
//!
//! `.internal` is the domain that ICANN keeps for private use: nobody else can have a certificate for such a name. A certificate of a site bears
//! its name as a DNS name among the subject's alternative names, so that every client of TLS can check it.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The domain of all names of sites.
pub const DOMAIN: &str = "rhumb.internal";
/// The longest name of a cluster or region, in bytes: with a hyphen and a shard it still is a label of DNS.
pub const LABEL_BYTES_MAX: usize = 56;
/// What [`is_label`] asks for, in words.
pub const LABELS: &str = "lower-case letters, digits and `-`, no `-` first or last, at most 56 of them";

/// The name of a site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteName {
    cluster: String,
    region: String,
    shard: u16,
}

/// Why there is no such name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NameError {
    #[error("`{0}` cannot stand in a certificate; expected {LABELS}")]
    Label(String),
    #[error("`{0}` is not the name of a site, REGION-SHARD.CLUSTER.{DOMAIN}")]
    Shape(String),
    #[error("`{0}` is no host name that a certificate may bear; expected a DNS name outside {DOMAIN}, like db.example.com")]
    Host(String),
}

/// True if a certificate can bear a cluster or region of this name. No two such names differ in case alone.
pub fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= LABEL_BYTES_MAX && text.bytes().all(plain) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a certificate of a site may bear `host` besides the site's own name: a DNS name that is none of a site.
pub fn check_host(host: &str) -> Result<(), NameError> {
    let wrong = || NameError::Host(host.to_owned());
    let name = rustls_pki_types::DnsName::try_from(host).map_err(|_| wrong())?;
    let lower = name.as_ref().to_ascii_lowercase();
    let of_sites = lower.strip_suffix('.').unwrap_or(&lower);
    // A name that ends in a number is read as an address by some.
    let like_an_address = of_sites.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    if of_sites == DOMAIN || of_sites.ends_with(&format!(".{DOMAIN}")) || like_an_address { Err(wrong()) } else { Ok(()) }
}

impl SiteName {
    /// That of shard `shard` of `region` in `cluster`.
    pub fn new(cluster: &str, region: &str, shard: u16) -> Result<SiteName, NameError> {
        match [cluster, region].into_iter().find(|label| !is_label(label)) {
            Some(label) => Err(NameError::Label(label.to_owned())),
            None => Ok(SiteName { cluster: cluster.to_owned(), region: region.to_owned(), shard }),
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The shard.
    pub fn shard(&self) -> u16 {
        self.shard
    }
}

impl fmt::Display for SiteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}.{}.{DOMAIN}", self.region, self.shard, self.cluster)
    }
}

impl FromStr for SiteName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<SiteName, NameError> {
        let parts = || {
            let (site, cluster) = text.strip_suffix(DOMAIN)?.strip_suffix('.')?.split_once('.')?;
            let (region, shard) = site.rsplit_once('-')?;
            SiteName::new(cluster, region, shard.parse().ok()?).ok()
        };
        // One way to write it: not `-00`, nor `-+0`.
        parts().filter(|name| name.to_string() == text).ok_or_else(|| NameError::Shape(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_written_in_one_way() {
        let name = SiteName::new("shop", "us-east-1", 12).expect("a name");
        assert_eq!(name.to_string(), "us-east-1-12.shop.rhumb.internal");
        assert_eq!(name.to_string().parse(), Ok(name));
        for text in [
            "",
            "rhumb.internal",
            "shop.rhumb.internal",
            "us.shop.rhumb.internal",
            "us-0.rhumb.internal",
            "us-00.shop.rhumb.internal",
            "us-+0.shop.rhumb.internal",
            "us-65536.shop.rhumb.internal",
            "us-0.shop.rhumb.internal.",
            "US-0.shop.rhumb.internal",
            "us-0.a.shop.rhumb.internal",
            "us-0.shop.rhumb.internal.evil.example",
            "us-0.shopxrhumb.internal",
            "*.shop.rhumb.internal",
        ] {
            assert_eq!(text.parse::<SiteName>(), Err(NameError::Shape(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn labels_are_those_of_dns_in_lower_case() {
        let longest = "a".repeat(LABEL_BYTES_MAX);
        for good in ["a", "eu-west-1", "0", &longest] {
            assert!(is_label(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a.b", "a_b", "EU", "a b", "é", &format!("{longest}a")] {
            assert!(!is_label(bad), "{bad}");
        }
        let full = SiteName::new(&longest, &longest, u16::MAX).expect("a name").to_string();
        assert!(rustls_pki_types::DnsName::try_from(full.as_str()).is_ok());
    }

    #[test]
    fn no_host_of_a_certificate_is_the_name_of_a_site() {
        for good in ["localhost", "db.example.com", "DB.example.com", "internal", "rhumb.internal.example.com", "xrhumb.internal"] {
            assert_eq!(check_host(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "rhumb.internal",
            "a-0.shop.rhumb.internal",
            "A-0.shop.RHUMB.internal",
            "a-0.shop.rhumb.internal.",
            "10.0.0.1",
            "::1",
            "a b",
            "*.example.com",
            "db:80",
        ] {
            assert_eq!(check_host(bad), Err(NameError::Host(bad.to_owned())), "{bad}");
        }
    }
}
