//! By way of which site a command asks a cluster.

use crate::running::{self, Running, RunningSite};
use clap::Args as ClapArgs;
use std::path::PathBuf;

/// The site that is asked.
#[derive(ClapArgs)]
pub struct Reach {
    /// By way of the running demo, by its state file [default: rhumb-demo.json in $XDG_RUNTIME_DIR or the temporary
    /// folder].
    #[arg(long, value_name = "FILE", require_equals = true, conflicts_with = "http", global = true)]
    demo: Option<Option<PathBuf>>,
    /// By way of this site of the demo [default: the first that lives].
    #[arg(long, value_name = "REGION[/SHARD]", conflicts_with = "http", global = true)]
    site: Option<String>,
    /// By way of the site with this HTTP address.
    #[arg(long, value_name = "URL", global = true)]
    http: Option<String>,
}

impl Reach {
    /// The HTTP address of the site that is asked.
    pub fn base(&self) -> Result<String, String> {
        self.base_among(|_| true)
    }

    /// The same; of a demo, of the first site that lives and `fits`.
    pub fn base_among(&self, fits: impl Fn(&RunningSite) -> bool) -> Result<String, String> {
        match &self.http {
            Some(http) => Ok(http.clone()),
            None => self.alive(self.site.as_deref(), fits),
        }
    }

    /// The address of the first site of the demo that lives and `fits`, of those that `name` means if there is one.
    pub fn alive(&self, name: Option<&str>, fits: impl Fn(&RunningSite) -> bool) -> Result<String, String> {
        let path = self.demo.clone().flatten().unwrap_or_else(running::default_path);
        let running = Running::find(&path).map_err(|error| error.to_string())?;
        let sites = match name {
            Some(name) => running.select(name).map_err(|error| error.to_string())?,
            None => running.sites.iter().collect(),
        };
        let alive = sites.iter().find(|site| site.pid.is_some() && fits(site));
        alive.map(|site| site.http.clone()).ok_or_else(|| "none of these sites lives; `rhumb chaos restart` starts them again".to_owned())
    }
}
