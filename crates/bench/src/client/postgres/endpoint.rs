//! Where the servers are: one or more PostgreSQL addresses per region.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::client::ready_file;
use crate::error::BenchError;

/// How long to wait for a connection unless the address says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server's address and the region it is in.
#[derive(Clone, Debug)]
pub struct Endpoint {
    region: Option<String>,
    config: Config,
}

impl Endpoint {
    /// Reads `postgres://…` or `REGION=postgres://…`.
    pub fn parse(argument: &str) -> Result<Endpoint, BenchError> {
        let refuse = |reason: &str| BenchError::Address { argument: argument.to_owned(), reason: reason.to_owned() };
        let (region, url) = match argument.split_once('=') {
            Some((region, url)) if !region.contains("://") => (Some(region), url),
            _ => (None, argument),
        };
        if region.is_some_and(str::is_empty) {
            return Err(refuse("the region before '=' is empty"));
        }
        if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
            return Err(refuse("it does not start with postgres://"));
        }
        let mut config = Config::from_str(url).map_err(|error| refuse(&super::failure::innermost(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(refuse("it names no host"));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("rhumb-bench");
        }
        Ok(Endpoint { region: region.map(str::to_owned), config })
    }

    /// The endpoints of a running demo, from the file that it wrote when it was ready.
    pub fn from_ready_file(path: &Path) -> Result<Vec<Endpoint>, BenchError> {
        let regions: Vec<ReadyRegion> = ready_file::regions(path)?;
        if regions.is_empty() {
            return Err(ready_file::refused(path, "it lists no regions".to_owned()));
        }
        regions.iter().map(|region| Endpoint::parse(&format!("{}={}", region.name, with_scheme(&region.pg)))).collect()
    }

    /// The region's name as the user gave it.
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// What to connect with.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The host and port, the name of last resort for a region.
    pub fn authority(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        format!("{host}:{}", self.config.get_ports().first().copied().unwrap_or(5432))
    }

    /// The address without its password, for people to read.
    pub fn display_url(&self) -> String {
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let database = self.config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
        format!("postgres://{user}{}{database}", self.authority())
    }
}

/// A region as the ready file has it.
#[derive(Deserialize)]
struct ReadyRegion {
    name: String,
    pg: String,
}

fn with_scheme(address: &str) -> String {
    if address.contains("://") { address.to_owned() } else { format!("postgres://{address}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_may_stand_before_the_address() {
        let named = Endpoint::parse("oregon=postgres://shop@127.0.0.1:6432/shop?options=-c%20a%3Db").expect("an address");
        assert_eq!(named.region(), Some("oregon"));
        assert_eq!(named.authority(), "127.0.0.1:6432");
        let bare = Endpoint::parse("postgres://127.0.0.1/shop?connect_timeout=3").expect("an address");
        assert_eq!(bare.region(), None);
        assert_eq!(bare.authority(), "127.0.0.1:5432");
    }

    #[test]
    fn a_password_is_never_shown() {
        let endpoint = Endpoint::parse("postgres://shop:secret@127.0.0.1:6432/shop").expect("an address");
        assert_eq!(endpoint.display_url(), "postgres://shop@127.0.0.1:6432/shop");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (argument, reason) in [("=postgres://h", "empty"), ("mysql://h", "does not start"), ("postgres://h:port/", "invalid")] {
            let error = Endpoint::parse(argument).expect_err("no address").to_string();
            assert!(error.contains(reason), "{argument}: {error}");
        }
    }

    #[test]
    fn a_ready_file_names_the_regions() {
        let path = std::env::temp_dir().join(format!("rhumb-lab-ready-{}.json", std::process::id()));
        let text = r#"{"regions":[{"name":"c","pg":"postgres://127.0.0.1:1/a","http":"x"},{"name":"v","pg":"127.0.0.1:2","http":"y"}]}"#;
        std::fs::write(&path, text).expect("a writable temporary folder");
        let endpoints = Endpoint::from_ready_file(&path).expect("a ready file");
        std::fs::remove_file(&path).expect("the file just written");
        assert_eq!(
            endpoints.iter().map(|e| (e.region(), e.authority())).collect::<Vec<_>>(),
            [(Some("c"), "127.0.0.1:1".to_owned()), (Some("v"), "127.0.0.1:2".to_owned())]
        );
        assert!(Endpoint::from_ready_file(&path).expect_err("no file").to_string().contains("--ready-file"));
    }
}
