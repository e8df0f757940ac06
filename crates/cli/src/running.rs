//! The state file of a running demo: where its sites are, and the socket on which it takes orders.
//!
//! The demo writes it once its cluster serves and whenever a process comes or goes, atomically; `rhumb chaos`, `bench`
//! and `status` read it. A file whose demo no longer answers its socket counts as absent.

use crate::http;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use thiserror::Error;

const FILE_NAME: &str = "rhumb-demo.json";

/// A demo that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The process of the demo itself.
    pub pid: u32,
    /// The socket on which it takes orders.
    pub control: PathBuf,
    /// Where data and logs are.
    pub data: PathBuf,
    /// True if its sites are asked over TLS, with the certificates in that folder.
    #[serde(default)]
    pub secure: bool,
    /// All sites, region by region.
    pub sites: Vec<RunningSite>,
}

/// A site of a running demo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningSite {
    /// Its region.
    pub region: String,
    /// Its shard.
    pub shard: u16,
    /// Its process; none while it is dead.
    pub pid: Option<u32>,
    /// For PostgreSQL clients.
    pub pg: String,
    /// For clients of the Redis protocol: host and port.
    pub resp: String,
    /// For health, metrics and administration.
    pub http: String,
    /// Its configuration.
    pub config: PathBuf,
    /// Its log.
    pub log: PathBuf,
}

/// Why a demo, or a site of it, cannot be addressed.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum RunningError {
    #[error("no demo is running ({} is not there): start one with `rhumb demo`", .0.display())]
    None(PathBuf),
    #[error("the demo of {} has ended: start one with `rhumb demo`", .0.display())]
    Ended(PathBuf),
    #[error("{}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("there is no region `{name}`; the demo has {known}")]
    UnknownRegion { name: String, known: String },
    #[error("there is no site `{name}`; the shards of region {region} are 0 to {last}")]
    UnknownSite { name: String, region: String, last: usize },
}

impl fmt::Display for RunningSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.region, self.shard)
    }
}

/// Where the state file is unless told otherwise.
pub fn default_path() -> PathBuf {
    std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_dir())
        .unwrap_or_else(std::env::temp_dir)
        .join(FILE_NAME)
}

impl Running {
    /// The demo that runs now, by its state file.
    pub fn find(path: &Path) -> Result<Running, RunningError> {
        let unreadable = |reason: String| RunningError::Unreadable { path: path.to_owned(), reason };
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RunningError::None(path.to_owned())),
            text => text.map_err(|error| unreadable(error.to_string()))?,
        };
        let running: Running =
            serde_json::from_str(&text).map_err(|error| unreadable(format!("is not the state file of a demo: {error}")))?;
        match UnixStream::connect(&running.control) {
            Ok(_) => {
                if running.secure {
                    http::go_by(&running.data);
                }
                Ok(running)
            }
            Err(_) => Err(RunningError::Ended(path.to_owned())),
        }
    }

    /// The sites that `name` means: `REGION`, or `REGION/SHARD` for one of them, or `REGION.SHARD`.
    pub fn select(&self, name: &str) -> Result<Vec<&RunningSite>, RunningError> {
        let of = |region: &str| self.sites.iter().filter(|site| site.region == region).collect::<Vec<_>>();
        let whole = of(name);
        if !whole.is_empty() {
            return Ok(whole);
        }
        if let Some((region, shard)) = name.rsplit_once(['.', '/']) {
            let sites = of(region);
            if let Some(last) = sites.len().checked_sub(1) {
                let unknown = RunningError::UnknownSite { name: name.to_owned(), region: region.to_owned(), last };
                let shard: u16 =
                    shard.parse().map_err(|_| RunningError::UnknownSite { name: name.to_owned(), region: region.to_owned(), last })?;
                return sites.into_iter().find(|site| site.shard == shard).map(|site| vec![site]).ok_or(unknown);
            }
        }
        Err(RunningError::UnknownRegion { name: name.to_owned(), known: self.regions().join(", ") })
    }

    /// The names of the regions, in order.
    pub fn regions(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.sites.iter().map(|site| site.region.as_str()).collect();
        names.dedup();
        names
    }
}

/// Writes `value` as JSON so that a reader sees either all of it or what was there before.
pub fn write_atomically(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, value)?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(names: &[(&str, u16)]) -> Running {
        let site = |&(region, shard): &(&str, u16)| RunningSite {
            region: region.into(),
            shard,
            pid: Some(1),
            pg: String::new(),
            resp: String::new(),
            http: String::new(),
            config: PathBuf::new(),
            log: PathBuf::new(),
        };
        Running { pid: 1, control: "/nowhere".into(), data: "/".into(), secure: false, sites: names.iter().map(site).collect() }
    }

    #[test]
    fn a_name_means_a_region_or_one_site_of_it() {
        let running = running(&[("us.east", 0), ("us.east", 1), ("eu", 0), ("eu", 1)]);
        let select = |name: &str| match running.select(name) {
            Ok(sites) => sites.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(select("us.east"), "us.east/0 us.east/1");
        assert_eq!(select("us.east.1"), "us.east/1");
        assert_eq!(select("eu.2"), "there is no site `eu.2`; the shards of region eu are 0 to 1");
        assert_eq!(select("mars"), "there is no region `mars`; the demo has us.east, eu");
    }

    #[test]
    fn a_demo_that_does_not_answer_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("demo.json");
        let error = || Running::find(&path).expect_err("no demo").to_string();
        assert_eq!(error(), format!("no demo is running ({} is not there): start one with `rhumb demo`", path.display()));
        let running = running(&[("eu", 0)]);
        write_atomically(&path, &running).expect("written");
        assert_eq!(error(), format!("the demo of {} has ended: start one with `rhumb demo`", path.display()));
        let control = folder.path().join("control");
        let _listener = std::os::unix::net::UnixListener::bind(&control).expect("bound");
        let running = Running { control, ..running };
        write_atomically(&path, &running).expect("written");
        assert_eq!(Running::find(&path).expect("it answers"), running);
    }
}
