//! Where the sites are: for each region the address of its Redis port.

use crate::client::ready_file;
use crate::error::BenchError;
use serde::Deserialize;
use std::path::Path;

/// A site's Redis port, and what is known of it beside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its region; the address where no name was given.
    pub region: String,
    /// Host and port.
    pub address: String,
    /// Its HTTP address, where its metrics are, if it is known.
    pub http: Option<String>,
}

impl Endpoint {
    /// Reads `HOST:PORT`, `redis://HOST:PORT`, or either after `REGION=`.
    pub fn parse(argument: &str) -> Result<Endpoint, BenchError> {
        let refuse = |reason: &str| BenchError::RedisAddress { argument: argument.to_owned(), reason: reason.to_owned() };
        let (region, address) = argument.split_once('=').map_or((None, argument), |(region, address)| (Some(region), address));
        if region.is_some_and(str::is_empty) {
            return Err(refuse("the region before '=' is empty"));
        }
        let address = address.strip_prefix("redis://").unwrap_or(address).trim_end_matches('/');
        match address.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {}
            _ => return Err(refuse("it does not end in a host and a port")),
        }
        Ok(Endpoint { region: region.unwrap_or(address).to_owned(), address: address.to_owned(), http: None })
    }

    /// The first site of each region of a demo, from the file that it wrote when it was ready.
    pub fn from_ready_file(path: &Path) -> Result<Vec<Endpoint>, BenchError> {
        let region = |ReadyRegion { name, resp, http }| Endpoint { region: name, address: resp, http: Some(http) };
        Ok(ready_file::regions(path)?.into_iter().map(region).collect())
    }
}

/// A region as the ready file has it.
#[derive(Deserialize)]
struct ReadyRegion {
    name: String,
    resp: String,
    http: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_may_stand_before_the_address() {
        let endpoint = |region: &str| Endpoint { region: region.into(), address: "127.0.0.1:6380".into(), http: None };
        assert_eq!(Endpoint::parse("oregon=redis://127.0.0.1:6380/").expect("an address"), endpoint("oregon"));
        assert_eq!(Endpoint::parse("127.0.0.1:6380").expect("an address"), endpoint("127.0.0.1:6380"));
        for wrong in ["", "127.0.0.1", ":6380", "=127.0.0.1:6380", "oregon=127.0.0.1:0", "postgres://h:1/db"] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_ready_file_names_the_ports() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = r#"{"regions":[{"name":"a","pg":"postgres://h:1/r","resp":"127.0.0.1:6380","http":"http://127.0.0.1:8080"}]}"#;
        std::fs::write(file.path(), text).expect("written");
        let expected = Endpoint { region: "a".into(), address: "127.0.0.1:6380".into(), http: Some("http://127.0.0.1:8080".into()) };
        assert_eq!(Endpoint::from_ready_file(file.path()).expect("read"), [expected]);
    }
}
