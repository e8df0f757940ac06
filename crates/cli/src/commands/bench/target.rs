//! Which servers a benchmark drives, and how its sessions are set.

use super::error::Error;
use crate::running::{self, Running, RunningSite};
use clap::Args;
use rhumb_bench::client::postgres::Endpoint;
use rhumb_bench::client::redis;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which servers a benchmark drives, and how its sessions are set.
#[derive(Args)]
pub struct Target {
    #[command(flatten)]
    servers: Servers,
    /// A setting of every session, as in SET; may be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Which servers.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct Servers {
    /// A server, and the region it is in if it does not say so itself; may be repeated. For quotas: [REGION=]HOST:PORT.
    #[arg(long = "url", value_name = "[REGION=]URL")]
    urls: Vec<String>,
    /// All sites of the running demo that live.
    #[arg(long, value_name = "FILE", require_equals = true)]
    demo: Option<Option<PathBuf>>,
    /// The regions of the file that `rhumb demo --ready-file PATH` wrote.
    #[arg(long, value_name = "PATH")]
    ready_file: Option<PathBuf>,
}

impl Target {
    /// The servers.
    pub fn endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        if let Some(path) = &self.servers.ready_file {
            return Ok(Endpoint::from_ready_file(path)?);
        }
        match &self.servers.demo {
            Some(path) => of_demo(&path.clone().unwrap_or_else(running::default_path)),
            None => self.servers.urls.iter().map(|url| Ok(Endpoint::parse(url)?)).collect(),
        }
    }

    /// The settings of every session.
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.settings.iter().cloned().collect()
    }
}

impl Servers {
    /// Their ports for Redis clients.
    pub fn redis(&self) -> Result<Vec<redis::Endpoint>, Error> {
        if let Some(path) = &self.ready_file {
            return Ok(redis::Endpoint::from_ready_file(path)?);
        }
        match &self.demo {
            Some(path) => {
                let of = |site: RunningSite| redis::Endpoint { region: site.region, address: site.resp, http: Some(site.http) };
                Ok(alive(&path.clone().unwrap_or_else(running::default_path))?.into_iter().map(of).collect())
            }
            None => self.urls.iter().map(|url| Ok(redis::Endpoint::parse(url)?)).collect(),
        }
    }
}

fn of_demo(path: &Path) -> Result<Vec<Endpoint>, Error> {
    alive(path)?.iter().map(|site| Ok(Endpoint::parse(&format!("{}={}", site.region, site.pg))?)).collect()
}

/// The sites of a demo that live.
fn alive(path: &Path) -> Result<Vec<RunningSite>, Error> {
    let running = Running::find(path)?;
    let (alive, dead): (Vec<_>, Vec<_>) = running.sites.into_iter().partition(|site| site.pid.is_some());
    for site in dead {
        eprintln!("rhumb: {site} is dead and gets no clients");
    }
    Ok(alive)
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}
