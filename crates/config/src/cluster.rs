//! One file for all sites of a cluster on one machine: what `rhumb plan -o` writes, `rhumb demo --cluster` starts as a whole
//! and `rhumb start --region` site by site.
//!
//! It says what the file of a site does, but for `site`, `listen` and `data_dir`: each site stands in its region with all
//! its addresses, and keeps its data in a folder of its own within `data_dir`.

use super::read::{parse, written};
use super::{
    Catenae, Clock, Config, ConfigError, Http, Limits, Listen, OwnSite, Placement, Quad, Quotas, Region, Setup, Storage, Wan,
    default_cluster, default_secret_file,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Where ports begin unless a file says otherwise.
pub mod first_port {
    /// For PostgreSQL clients.
    pub const SQL: u16 = 26_257;
    /// For clients of the Redis protocol: the one after that of Redis itself, which may run here too.
    pub const RESP: u16 = 6_380;
    /// For HTTP.
    pub const HTTP: u16 = 8_080;
    /// For the other sites.
    pub const PEER: u16 = 27_257;
}

file! {
    /// The file of a cluster.
    pub struct Cluster {
        /// Where sites keep their data, each in a folder `REGION-SHARD` within. Relative to the folder of the file.
        #[serde(default = "default_data_dir")]
        pub data_dir: PathBuf,
        /// All regions of the cluster.
        pub regions: Vec<ClusterRegion>,
    }
}

/// A region of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterRegion {
    /// Its name, of letters, digits, `-`, `_`, `.` and `:`: folders are called so.
    pub name: String,
    /// Where each of its sites listens, by shard.
    pub sites: Vec<Listen>,
}

fn default_data_dir() -> PathBuf {
    "data".into()
}

impl Cluster {
    /// A cluster with one site in each of `regions`, on this machine, at ports counted on from the first.
    pub fn on_loopback(regions: &[String], wan: Option<Wan>) -> Cluster {
        let at = |first: u16, index: usize| SocketAddr::from((Ipv4Addr::LOCALHOST, first + index as u16));
        let listen = |index: usize| Listen {
            sql: at(first_port::SQL, index),
            resp: Some(at(first_port::RESP, index)),
            http: at(first_port::HTTP, index),
            peer: at(first_port::PEER, index),
        };
        let region = |(index, name): (usize, &String)| ClusterRegion { name: name.clone(), sites: vec![listen(index)] };
        Cluster {
            cluster: default_cluster(),
            data_dir: default_data_dir(),
            secret_file: default_secret_file(),
            chaos: false,
            regions: regions.iter().enumerate().map(region).collect(),
            wan,
            placement: None,
            clock: Clock::default(),
            storage: Storage::default(),
            quotas: Quotas::default(),
            catenae: Catenae::default(),
            quad: Quad::default(),
            http: Http::default(),
            limits: Limits::default(),
        }
    }

    /// Reads and checks the file at `path`: every site of it is whole.
    pub fn load(path: &Path) -> Result<Cluster, ConfigError> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { file: file.clone(), reason: error.to_string() })?;
        let cluster = Cluster::parse(&file, &text)?;
        cluster.check(&file, path.parent().unwrap_or(Path::new("")))?;
        Ok(cluster)
    }

    /// What the file at `path`, which is checked, means for the site of `shard` in `region`.
    pub fn load_site(path: &Path, region: &str, shard: u16) -> Result<Setup, ConfigError> {
        Cluster::load(path)?.setup(region, shard, &path.display().to_string(), path.parent().unwrap_or(Path::new("")))
    }

    /// Reads `text`; `file` names it in errors. What it means is checked by [`Cluster::check`].
    pub fn parse(file: &str, text: &str) -> Result<Cluster, ConfigError> {
        parse(file, text)
    }

    /// The file of this cluster.
    pub fn to_toml(&self) -> String {
        written(self)
    }

    /// Checks every site. `file` names the file in errors; paths in it are relative to `folder`.
    pub fn check(&self, file: &str, folder: &Path) -> Result<(), ConfigError> {
        let mistake = |(key, message)| ConfigError::Mistake { file: file.to_owned(), line: None, key, message };
        self.check_names().and_then(|()| self.check_addresses()).map_err(mistake)?;
        if self.regions.is_empty() {
            return Err(mistake(("regions".to_owned(), "has no entries; expected at least one region".to_owned())));
        }
        for (index, region) in self.regions.iter().enumerate() {
            for shard in 0..region.sites.len().max(1) {
                self.resolve(index, shard as u16, file, folder)?;
            }
        }
        Ok(())
    }

    /// What the file means for the site of `shard` in the region called `name`.
    pub fn setup(&self, name: &str, shard: u16, file: &str, folder: &Path) -> Result<Setup, ConfigError> {
        let mistake = |message| ConfigError::Mistake { file: file.to_owned(), line: None, key: "regions".to_owned(), message };
        let Some(index) = self.regions.iter().position(|region| region.name == name) else {
            let names: Vec<&str> = self.regions.iter().map(|region| region.name.as_str()).collect();
            return Err(mistake(format!("there is no region `{name}`; expected one of {}", names.join(", "))));
        };
        let sites = self.regions[index].sites.len();
        if usize::from(shard) >= sites {
            return Err(mistake(format!("there is no shard {shard}; region `{name}` has the shards 0 to {}", sites.saturating_sub(1))));
        }
        self.resolve(index, shard, file, folder)
    }

    fn resolve(&self, index: usize, shard: u16, file: &str, folder: &Path) -> Result<Setup, ConfigError> {
        let key_here = |key: String| match key.strip_prefix("listen.") {
            Some(kind) => format!("regions[{index}].sites[{shard}].{kind}"),
            None => key,
        };
        Setup::new(self.config(index, shard), file, folder).map_err(|error| match error {
            ConfigError::Mistake { file, line, key, message } => ConfigError::Mistake { file, line, key: key_here(key), message },
            unreadable @ ConfigError::Unreadable { .. } => unreadable,
        })
    }

    /// The file that this site would have by itself. A region without sites has none to listen; that is for the check of
    /// the configuration to say.
    fn config(&self, index: usize, shard: u16) -> Config {
        let own = &self.regions[index];
        let nowhere = || SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listen = own.sites.get(usize::from(shard)).cloned();
        let region =
            |region: &ClusterRegion| Region { name: region.name.clone(), sites: region.sites.iter().map(|site| site.peer).collect() };
        Config {
            data_dir: self.data_dir.join(format!("{}-{shard}", own.name)),
            cluster: self.cluster.clone(),
            secret_file: self.secret_file.clone(),
            chaos: self.chaos,
            site: OwnSite { region: own.name.clone(), shard },
            listen: listen.unwrap_or_else(|| Listen { sql: nowhere(), resp: None, http: nowhere(), peer: nowhere() }),
            regions: self.regions.iter().map(region).collect(),
            tls: None,
            wan: self.wan.clone(),
            placement: self.placement.clone(),
            clock: self.clock.clone(),
            storage: self.storage.clone(),
            quotas: self.quotas.clone(),
            catenae: self.catenae.clone(),
            quad: self.quad.clone(),
            http: self.http.clone(),
            limits: self.limits.clone(),
        }
    }

    fn check_names(&self) -> Result<(), (String, String)> {
        match self.regions.iter().position(|region| !names_a_folder(&region.name)) {
            None => Ok(()),
            Some(index) => {
                let message = format!("`{}` cannot name a folder; expected {FOLDER_NAMES}", self.regions[index].name);
                Err((format!("regions[{index}].name"), message))
            }
        }
    }

    /// All sites are on one machine, so no two listen on the same address.
    fn check_addresses(&self) -> Result<(), (String, String)> {
        let mut seen: BTreeMap<SocketAddr, String> = BTreeMap::new();
        for (index, region) in self.regions.iter().enumerate() {
            for (shard, site) in region.sites.iter().enumerate() {
                let resp = site.resp.map(|address| ("resp", address));
                for (kind, address) in [("sql", site.sql), ("http", site.http), ("peer", site.peer)].into_iter().chain(resp) {
                    let key = format!("regions[{index}].sites[{shard}].{kind}");
                    if address.port() == 0 {
                        return Err((key, "has port 0; expected 1 to 65535".to_owned()));
                    }
                    if let Some(first) = seen.insert(address, key.clone()) {
                        return Err((key, format!("{address} is already the address of {first}")));
                    }
                }
            }
        }
        Ok(())
    }
}

/// What [`names_a_folder`] asks for, in words.
pub const FOLDER_NAMES: &str = "letters, digits, `-`, `_`, `.` and `:`, a letter or digit first";

/// Whether a folder can be called like this region.
pub fn names_a_folder(region: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    region.starts_with(|c: char| c.is_ascii_alphanumeric()) && region.chars().all(plain)
}
