//! The data folder of a demo: what it is a demo of, and a folder per site.
//!
//! ```text
//!   DIR/demo.json              shape and ports; a folder is used again only for the same shape
//!   DIR/cluster.secret         by which its sites know each other
//!   DIR/ca, DIR/tls, DIR/admin.pem, DIR/virginia-0/site.pem   certificates of a secure one (`secure.rs`)
//!   DIR/virginia-0/site.toml   what `rhumb start` reads
//!   DIR/virginia-0/data/       what the site keeps
//!   DIR/virginia-0/log.txt     what it says
//! ```

use super::error::{DemoError, file};
use super::network::Network;
use super::ports::{self, Ports};
use super::secure;
use crate::running::write_atomically;
use rhumb_commit::placement;
use rhumb_config::{Config, Http, Limits, Listen, OwnSite, Placement, Region, SECRET_FILE, Setup};
use rhumb_core::{RegionId, Topology};
use rhumb_node::secret::Secret;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

const SHAPE_FILE: &str = "demo.json";
/// More processes are no demonstration.
const SITES_MAX: usize = 128;
/// How long a site of a demo waits for its clients when it is to stop.
const STOP_GRACE_MS: u64 = 2_000;

/// What is remembered of the demos before in the same folder.
#[derive(Serialize, Deserialize)]
struct Shape {
    /// What its sites know each other by: a site that finds another demo's where a dead one was is refused there.
    #[serde(default = "first_name")]
    cluster: String,
    regions: Vec<String>,
    sites_per_region: u16,
    ports: Vec<Ports>,
    /// Folders of former versions say nothing of it.
    #[serde(default)]
    placement: Option<Placement>,
    /// Likewise.
    #[serde(default)]
    secure: bool,
}

/// The name of every demo in folders of former versions.
fn first_name() -> String {
    "demo".to_owned()
}

/// A folder that is ready.
#[derive(Debug)]
pub struct Prepared {
    /// All sites, region by region.
    pub sites: Vec<SitePlan>,
    /// Which regions hold what.
    pub placement: placement::Placement,
}

impl Shape {
    fn describe(&self) -> String {
        format!("{} with {} each", self.regions.join(", "), plural(self.sites_per_region.into(), "site"))
    }
}

/// Where a site is and what it listens on.
#[derive(Clone, Debug)]
pub struct SitePlan {
    /// Its region.
    pub region: String,
    /// Its shard.
    pub shard: u16,
    /// Its ports.
    pub ports: Ports,
    /// Its configuration.
    pub config: PathBuf,
    /// Its log.
    pub log: PathBuf,
    /// How clients prove themselves, if all is encrypted.
    pub secure: Option<secure::Access>,
}

impl SitePlan {
    /// The address for PostgreSQL clients.
    pub fn pg(&self) -> String {
        match &self.secure {
            None => format!("postgres://rhumb@{}/rhumb", loopback(self.ports.sql)),
            Some(access) => access.pg(self.ports.sql),
        }
    }

    /// The address for clients of the Redis protocol.
    pub fn resp(&self) -> SocketAddr {
        loopback(self.ports.resp)
    }

    /// The address for HTTP.
    pub fn http(&self) -> String {
        match &self.secure {
            None => format!("http://{}", loopback(self.ports.http)),
            Some(_) => format!("https://localhost:{}", self.ports.http),
        }
    }

    /// Its name as people know it: `virginia/0`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.region, self.shard)
    }
}

/// Makes `folder` ready for a demo of `network`: chooses ports, those of the folder or others (all `ports_from` that one on, if it is
/// given), and writes the configuration of each site. Without a `placement` it stays as it was in this folder.
pub fn prepare(
    folder: &Path,
    network: &Network,
    placement: Option<Placement>,
    ports_from: Option<u16>,
    secure: bool,
) -> Result<Prepared, DemoError> {
    let sites_per_region = network.sites_per_region;
    let count = network.regions.len() * usize::from(sites_per_region);
    if !(1..=SITES_MAX).contains(&count) {
        return Err(DemoError::Sites { regions: network.regions.len(), sites_per_region, sites: count, max: SITES_MAX });
    }
    let topology = Topology::new(network.regions.clone(), sites_per_region);
    let asked = placement.as_ref().map(|placement| resolve(placement, &topology)).transpose()?;
    std::fs::create_dir_all(folder).map_err(file("cannot make the folder", folder))?;
    let folder = &folder.canonicalize().map_err(file("cannot find the folder", folder))?;
    let kept = kept(folder)?;
    let preferred = match (&kept, ports_from) {
        (Some(shape), _) => &shape.ports[..],
        (None, None) => &network.ports,
        (None, Some(_)) => &[],
    };
    let ports = ports::choose(count, preferred, ports_from)?;
    let cluster = kept.as_ref().map_or_else(|| format!("demo-{:016x}", rand::random::<u64>()), |shape| shape.cluster.clone());
    let mut shape = Shape { cluster, regions: network.regions.clone(), sites_per_region, ports, placement, secure };
    let mut placement = asked.unwrap_or_else(|| placement::Placement::everywhere(topology.region_count()));
    if let Some(kept) = kept {
        if (&kept.regions, kept.sites_per_region) != (&shape.regions, sites_per_region) {
            return Err(DemoError::OtherShape { folder: folder.clone(), kept: kept.describe(), asked: shape.describe() });
        }
        if kept.secure != secure {
            return Err(DemoError::OtherSecurity { folder: folder.clone(), kept: kept.secure });
        }
        let before = match &kept.placement {
            Some(placement) => resolve(placement, &topology)?,
            None => placement::Placement::everywhere(topology.region_count()),
        };
        if shape.placement.is_some() && placement != before {
            let (kept, asked) = (describe(&before, &topology), describe(&placement, &topology));
            return Err(DemoError::OtherPlacement { folder: folder.clone(), kept, asked });
        }
        (shape.placement, placement) = (kept.placement, before);
    }
    let secret = folder.join(SECRET_FILE);
    // Folders of former versions have none.
    if !secret.exists() {
        Secret::create(&secret)?;
    }
    if secure {
        secure::prepare(folder, &shape.cluster, &shape.regions, sites_per_region)?;
    }
    let sites = plan(folder, &shape);
    for site in &sites {
        write_config(site, &config(site, &shape, network))?;
    }
    write_atomically(&folder.join(SHAPE_FILE), &shape).map_err(file("cannot write", folder.join(SHAPE_FILE)))?;
    Ok(Prepared { sites, placement })
}

fn resolve(placement: &Placement, topology: &Topology) -> Result<placement::Placement, DemoError> {
    placement.resolve(topology).map_err(|(key, why)| DemoError::Placement { key, why })
}

/// `active a, b, c; passive d`.
pub fn describe(placement: &placement::Placement, topology: &Topology) -> String {
    let names = |regions: placement::Regions| regions.iter().map(|region: RegionId| topology.name(region)).collect::<Vec<_>>().join(", ");
    let passive = if placement.passives.is_empty() { String::new() } else { format!("; passive {}", names(placement.passives)) };
    format!("active {}{passive}", names(placement.voters))
}

/// The shape of the demo that used `folder` before; none if it is empty.
fn kept(folder: &Path) -> Result<Option<Shape>, DemoError> {
    let path = folder.join(SHAPE_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => match serde_json::from_str(&text) {
            Ok(shape) => Ok(Some(shape)),
            Err(error) => Err(file("cannot understand", path)(error.into())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut entries = std::fs::read_dir(folder).map_err(file("cannot read the folder", folder))?;
            match entries.next() {
                None => Ok(None),
                Some(_) => Err(DemoError::Foreign { folder: folder.to_owned(), file: SHAPE_FILE }),
            }
        }
        Err(error) => Err(file("cannot read", path)(error)),
    }
}

fn plan(folder: &Path, shape: &Shape) -> Vec<SitePlan> {
    let names = shape.regions.iter().flat_map(|region| (0..shape.sites_per_region).map(move |shard| (region, shard)));
    let site = |((region, shard), &ports): ((&String, u16), &Ports)| {
        let own = folder.join(format!("{region}-{shard}"));
        let secure = shape.secure.then(|| secure::Access::in_folder(folder));
        SitePlan { region: region.clone(), shard, ports, config: own.join("site.toml"), log: own.join("log.txt"), secure }
    };
    names.zip(&shape.ports).map(site).collect()
}

fn config(site: &SitePlan, shape: &Shape, network: &Network) -> Config {
    let peers = shape.ports.chunks(usize::from(shape.sites_per_region));
    let region =
        |(name, ports): (&String, &[Ports])| Region { name: name.clone(), sites: ports.iter().map(|ports| loopback(ports.peer)).collect() };
    Config {
        data_dir: "data".into(),
        cluster: shape.cluster.clone(),
        secret_file: Path::new("..").join(SECRET_FILE),
        chaos: true,
        site: OwnSite { region: site.region.clone(), shard: site.shard },
        listen: Listen {
            sql: loopback(site.ports.sql),
            resp: Some(site.resp()),
            http: loopback(site.ports.http),
            peer: loopback(site.ports.peer),
        },
        regions: shape.regions.iter().zip(peers).map(region).collect(),
        tls: shape.secure.then(|| {
            secure::tls(site.region == shape.regions[0] && site.shard == 0, &shape.cluster, &shape.regions[0], shape.ports[0].http)
        }),
        wan: network.wan.clone(),
        placement: shape.placement.clone(),
        clock: network.clock.clone(),
        storage: network.storage.clone(),
        quotas: network.quotas.clone(),
        catenae: network.catenae.clone(),
        quad: network.quad.clone(),
        http: Http::default(),
        limits: Limits { stop_grace_ms: STOP_GRACE_MS, ..Limits::default() },
    }
}

/// Writes a configuration, once it is known to be whole.
fn write_config(site: &SitePlan, config: &Config) -> Result<(), DemoError> {
    let own = site.config.parent().expect("a configuration lies in the folder of its site");
    std::fs::create_dir_all(own).map_err(file("cannot make the folder", own))?;
    Setup::new(config.clone(), &site.config.display().to_string(), own)?;
    std::fs::write(&site.config, config.to_toml()).map_err(file("cannot write", &site.config))
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// `1 site`, `2 sites`.
pub fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn network(regions: usize, sites_per_region: u16) -> Network {
        Network::choose("none", Some(regions), sites_per_region).expect("none")
    }

    #[test]
    fn a_folder_is_used_again_for_the_same_shape_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let sites = prepare(&folder, &network(2, 2), None, None, false).expect("an empty folder").sites;
        assert_eq!(sites.iter().map(SitePlan::name).collect::<Vec<_>>(), ["region1/0", "region1/1", "region2/0", "region2/1"]);
        for site in &sites {
            Config::load(&site.config).expect("a whole configuration");
        }
        let secret = |site: &SitePlan| Config::load(&site.config).expect("a whole configuration").secret_file;
        let made = std::fs::read(secret(&sites[0])).expect("made");
        Secret::load(&secret(&sites[3])).expect("all sites have it");
        let again = prepare(&folder, &network(2, 2), None, None, false).expect("the same shape").sites;
        assert_eq!(std::fs::read(secret(&again[2])).expect("kept"), made);
        assert_eq!(again.len(), 4);
        let error = prepare(&folder, &network(2, 1), None, None, false).expect_err("another shape").to_string();
        let expected = "holds a cluster of region1, region2 with 2 sites each, not of region1, region2 with 1 site each: ask for the same, or name another folder";
        assert_eq!(error, format!("{} {expected}", folder.display()));
    }

    #[test]
    fn sites_of_different_demos_do_not_take_each_other_for_theirs() {
        let name = |folder: &Path| {
            let sites = prepare(folder, &network(2, 1), None, None, false).expect("the same shape").sites;
            let names: Vec<String> = sites.iter().map(|site| Config::load(&site.config).expect("a whole configuration").cluster).collect();
            assert_eq!(names[0], names[1]);
            names[0].clone()
        };
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let first = name(one.path());
        assert_eq!(name(one.path()), first, "what it has on disk is of that name");
        assert_ne!(name(other.path()), first);
        let path = one.path().join(SHAPE_FILE);
        let mut shape: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).expect("written")).expect("JSON");
        shape.as_object_mut().expect("by name").remove("cluster").expect("the present version writes it");
        std::fs::write(&path, shape.to_string()).expect("written");
        assert_eq!(name(one.path()), "demo", "as in former versions");
    }

    #[test]
    fn a_folder_keeps_its_placement() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let placed = |active: &[&str], passive: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            Some(Placement { active: names(active), passive: names(passive), coordinators: BTreeMap::new() })
        };
        let prepare = |placement| prepare(&folder, &network(4, 1), placement, None, false);
        let error = prepare(placed(&["region1", "region9"], &[])).expect_err("no such region").to_string();
        let expected =
            "--active[1]: `region9` is not among the regions; did you mean `region4`? expected one of region1, region2, region3, region4";
        assert_eq!(error, expected);
        let first = prepare(placed(&["region1", "region2"], &["region3"])).expect("an empty folder");
        for placement in [None, placed(&["region2", "region1"], &["region3"])] {
            assert_eq!(prepare(placement).expect("the same").placement, first.placement);
        }
        for site in &first.sites {
            assert_eq!(Config::load(&site.config).expect("a whole configuration").placement, first.placement);
        }
        let error = prepare(placed(&["region1", "region2", "region3"], &[])).expect_err("another placement").to_string();
        let expected = "holds a cluster with active region1, region2; passive region3, not with active region1, region2, region3: ask for the same or for none, or name another folder";
        assert_eq!(error, format!("{} {expected}", folder.display()));
    }

    #[test]
    fn a_folder_of_a_version_without_ports_for_redis_clients_is_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        prepare(folder.path(), &network(2, 1), None, None, false).expect("an empty folder");
        let path = folder.path().join(SHAPE_FILE);
        let mut shape: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).expect("written")).expect("JSON");
        for ports in shape["ports"].as_array_mut().expect("ports") {
            ports.as_object_mut().expect("by name").remove("resp").expect("the present version writes it");
        }
        std::fs::write(&path, shape.to_string()).expect("written");
        let sites = prepare(folder.path(), &network(2, 1), None, None, false).expect("what was there before").sites;
        assert!(sites.iter().all(|site| site.ports.resp != 0));
        assert_ne!(sites[0].ports.resp, sites[1].ports.resp);
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("thesis.tex"), "x").expect("written");
        let error = prepare(folder.path(), &network(1, 1), None, None, false).expect_err("not ours").to_string();
        assert!(
            error.ends_with("is not the data folder of a demo (it is not empty and has no file demo.json): name an empty or a new folder"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn too_many_processes_are_refused() {
        let error = prepare(Path::new("/nonexistent"), &network(5, 50), None, None, false).expect_err("too many").to_string();
        assert_eq!(error, "5 regions of 50 sites would be 250 processes; a demo runs 1 to 128");
        assert!(prepare(Path::new("/nonexistent"), &network(0, 1), None, None, false).is_err());
    }
}
