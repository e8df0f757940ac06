//! From [`Config`] to [`Setup`]: what a configuration means, and everything about it that cannot be.

use super::{Catenae, ChainSites, Config, ConfigError, Durability, Http, Limits, Quotas, Storage, TlsSetup, Wan};
use crate::models::Models;
use rhumb_catenae::Config as CatenaeConfig;
use rhumb_commit::placement::{Placement, REGIONS_MAX};
use rhumb_core::{RttMatrix, SiteId, Span, Topology, wan};
use rhumb_quad::Config as QuadConfig;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// More sites in a region than are useful; a bound for what is allocated per peer.
pub const SITES_PER_REGION_MAX: usize = 64;
/// Jitter above this is a mistake of units.
const JITTER_MS_MAX: f64 = 10_000.0;
/// Clocks differ by a tenth of a second now and then; hours would bound nothing.
const MAX_OFFSET_MS: std::ops::RangeInclusive<u32> = 100..=600_000;
const REQUESTS_MAX: u32 = 1_000_000;
const CACHE_MIB: std::ops::RangeInclusive<u32> = 1..=1_048_576;
const STATEMENTS_MIB: std::ops::RangeInclusive<u32> = 16..=65_536;
/// Shorter epochs end faster than a message is handled, longer ones only wait.
const CATENAE_EPOCH_MS: std::ops::RangeInclusive<u32> = 1..=1_000;
/// A day.
const EPOCH_S_MAX: u32 = 86_400;
/// Each model is kept in memory, and again for its quota.
const MODELS_MAX: usize = 1_000;
const STOP_GRACE_MS_MAX: u64 = 600_000;

/// A configuration that is whole, resolved to what the parts of a site need.
#[derive(Clone, Debug)]
pub struct Setup {
    /// This site.
    pub site: SiteId,
    /// The cluster's shape.
    pub topology: Topology,
    /// The cluster's name.
    pub cluster: String,
    /// The peer address of every site, this one among them.
    pub addresses: BTreeMap<SiteId, SocketAddr>,
    /// Where to listen for PostgreSQL clients.
    pub sql: SocketAddr,
    /// Where to listen for clients that speak the Redis protocol, if at all.
    pub resp: Option<SocketAddr>,
    /// Where to listen for health, metrics, quotas and administration.
    pub http: SocketAddr,
    /// The names of that, besides `localhost` and addresses.
    pub http_names: Vec<String>,
    /// Where the data is kept.
    pub data_dir: PathBuf,
    /// The file of the cluster's secret.
    pub secret_file: PathBuf,
    /// The certificates; none where all is plain text on the loopback.
    pub tls: Option<TlsSetup>,
    /// How far the clocks of two sites may differ.
    pub max_clock_offset: Span,
    /// True if links may be cut and slowed at run time.
    pub chaos: bool,
    /// The emulated wide-area network.
    pub wan: Option<WanLinks>,
    /// Which regions hold what.
    pub placement: Placement,
    /// The storage engine.
    pub storage: Storage,
    /// Quotas.
    pub quotas: QuotaSetup,
    /// Databases of protocol `catenae`.
    pub catenae: CatenaeConfig,
    /// Databases of protocol `quad`.
    pub quad: QuadConfig,
    /// Bounds.
    pub limits: Limits,
}

/// What quotas go by.
#[derive(Clone, Debug)]
pub struct QuotaSetup {
    /// The epoch of demand and forecasts.
    pub epoch: Span,
    /// Forecasts.
    pub models: Models,
}

/// What an emulated wide-area network does to the messages between regions.
#[derive(Clone, Debug, PartialEq)]
pub struct WanLinks {
    /// Round-trip times, in the order of the topology.
    pub matrix: RttMatrix,
    /// Up to so much is added to each message's way.
    pub jitter: Span,
    /// The share of messages lost.
    pub loss: f64,
}

type Checked<T = ()> = Result<T, (String, String)>;

/// What is wrong with `key`.
fn wrong<T>(key: impl Into<String>, message: impl Into<String>) -> Checked<T> {
    Err((key.into(), message.into()))
}

impl Setup {
    /// What `config` means. `file` names it in errors; paths in it are relative to `folder`.
    pub fn new(config: Config, file: &str, folder: &Path) -> Result<Setup, ConfigError> {
        resolve(config, folder).map_err(|(key, message)| ConfigError::Mistake { file: file.to_owned(), line: None, key, message })
    }

    /// The name of `site` as people know it: `california/0`.
    pub fn name(&self, site: SiteId) -> String {
        format!("{}/{}", self.topology.name(site.region), site.shard)
    }
}

fn resolve(config: Config, folder: &Path) -> Checked<Setup> {
    if config.data_dir.as_os_str().is_empty() {
        return wrong("data_dir", "is empty; expected a folder");
    }
    check_regions(&config)?;
    let topology = Topology::new(config.regions.iter().map(|region| region.name.clone()).collect(), config.regions[0].sites.len() as u16);
    let site = own_site(&config, &topology)?;
    let addresses: BTreeMap<SiteId, SocketAddr> =
        topology.sites().zip(config.regions.iter().flat_map(|region| region.sites.iter().copied())).collect();
    check_listen(&config, addresses[&site])?;
    let tls = config.tls.as_ref().map(|tls| tls.resolve(&config.cluster, &topology, folder)).transpose();
    let tls = tls.or_else(|(key, why)| wrong(format!("tls{key}"), why))?;
    let wan = config.wan.as_ref().map(|wan| resolve_wan(wan, &topology, folder)).transpose()?;
    let placement = match &config.placement {
        Some(placement) => placement.resolve(&topology).or_else(|(key, why)| wrong(format!("placement.{key}"), why))?,
        None => Placement::everywhere(topology.region_count()),
    };
    check_http(&config.http)?;
    let mut http_names = config.http.names;
    http_names.extend(tls.as_ref().and_then(|tls| tls.names.get(&site)).map(ToString::to_string));
    if !(1..=REQUESTS_MAX).contains(&config.limits.requests) {
        return wrong("limits.requests", format!("is {}; expected 1 to {REQUESTS_MAX}", config.limits.requests));
    }
    if config.limits.stop_grace_ms > STOP_GRACE_MS_MAX {
        return wrong("limits.stop_grace_ms", format!("is {}; expected 0 to {STOP_GRACE_MS_MAX}", config.limits.stop_grace_ms));
    }
    if !STATEMENTS_MIB.contains(&config.limits.statements_mib) {
        let (low, high) = (STATEMENTS_MIB.start(), STATEMENTS_MIB.end());
        return wrong("limits.statements_mib", format!("is {}; expected {low} to {high}", config.limits.statements_mib));
    }
    if !MAX_OFFSET_MS.contains(&config.clock.max_offset_ms) {
        let (low, high) = (MAX_OFFSET_MS.start(), MAX_OFFSET_MS.end());
        return wrong("clock.max_offset_ms", format!("is {}; expected {low} to {high}", config.clock.max_offset_ms));
    }
    if config.secret_file.as_os_str().is_empty() {
        return wrong("secret_file", "is empty; expected a file");
    }
    let caches = [("storage.cache_mib", config.storage.cache_mib), ("storage.row_cache_mib", config.storage.row_cache_mib)];
    if let Some((key, mib)) = caches.into_iter().find(|(_, mib)| !CACHE_MIB.contains(mib)) {
        let (low, high) = (CACHE_MIB.start(), CACHE_MIB.end());
        return wrong(key, format!("is {mib}; expected {low} to {high}"));
    }
    let quotas = resolve_quotas(&config.quotas, folder)?;
    let catenae = resolve_catenae(&config.catenae, &topology)?;
    let quad = config.quad.resolve(addresses.len()).or_else(|(key, why)| wrong(format!("quad.{key}"), why))?;
    Ok(Setup {
        site,
        topology,
        cluster: config.cluster,
        addresses,
        sql: config.listen.sql,
        resp: config.listen.resp,
        http: config.listen.http,
        http_names,
        data_dir: folder.join(config.data_dir),
        secret_file: folder.join(config.secret_file),
        tls,
        max_clock_offset: Span::from_millis(u64::from(config.clock.max_offset_ms)),
        chaos: config.chaos,
        wan,
        placement,
        storage: config.storage,
        quotas,
        catenae,
        quad,
        limits: config.limits,
    })
}

fn check_http(Http { names }: &Http) -> Checked {
    let plain = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    match names.iter().position(|name| !plain(name)) {
        Some(index) => wrong(
            format!("http.names[{index}]"),
            format!("`{}` is no host; expected a name without port, like db.example.com", names[index]),
        ),
        None => Ok(()),
    }
}

fn check_regions(config: &Config) -> Checked {
    let regions = &config.regions;
    if regions.is_empty() || regions.len() > REGIONS_MAX {
        return wrong("regions", format!("has {} entries; expected 1 to {REGIONS_MAX}", regions.len()));
    }
    let mut seen = BTreeMap::new();
    for (index, region) in regions.iter().enumerate() {
        if region.name.is_empty() {
            return wrong(format!("regions[{index}].name"), "is empty");
        }
        if let Some(first) = regions[..index].iter().position(|other| other.name == region.name) {
            return wrong(format!("regions[{index}].name"), format!("`{}` is already the name of regions[{first}]", region.name));
        }
        if region.sites.is_empty() || region.sites.len() > SITES_PER_REGION_MAX {
            return wrong(
                format!("regions[{index}].sites"),
                format!("has {} entries; expected 1 to {SITES_PER_REGION_MAX}", region.sites.len()),
            );
        }
        if region.sites.len() != regions[0].sites.len() {
            let (count, first) = (region.sites.len(), regions[0].sites.len());
            return wrong(
                format!("regions[{index}].sites"),
                format!("has {count} entries, but regions[0] has {first}; every region holds one site per shard"),
            );
        }
        for (shard, &address) in region.sites.iter().enumerate() {
            let key = format!("regions[{index}].sites[{shard}]");
            check_address(&key, address, config)?;
            if address.port() == 0 {
                return wrong(key, "has port 0; the other sites must know the port, so expected 1 to 65535");
            }
            if let Some(first) = seen.insert(address, key.clone()) {
                return wrong(key, format!("{address} is already the address of {first}"));
            }
        }
    }
    Ok(())
}

fn own_site(config: &Config, topology: &Topology) -> Checked<SiteId> {
    let Some(region) = topology.region(&config.site.region) else {
        let names: Vec<&str> = topology.regions().map(|region| topology.name(region)).collect();
        return wrong("site.region", format!("`{}` is not among the regions; expected one of {}", config.site.region, names.join(", ")));
    };
    let site = SiteId { region, shard: config.site.shard };
    if !topology.has(site) {
        let last = topology.shard_count() - 1;
        return wrong("site.shard", format!("is {}, but region `{}` has only the shards 0 to {last}", site.shard, config.site.region));
    }
    Ok(site)
}

fn check_listen(config: &Config, own: SocketAddr) -> Checked {
    let resp = config.listen.resp.map(|address| ("listen.resp", address));
    let mut listen = vec![("listen.sql", config.listen.sql)];
    listen.extend(resp);
    listen.extend([("listen.http", config.listen.http), ("listen.peer", config.listen.peer)]);
    for (index, &(key, address)) in listen.iter().enumerate() {
        check_address(key, address, config)?;
        if let Some((other, _)) = listen[..index].iter().find(|(_, taken)| *taken == address && address.port() != 0) {
            return wrong(key, format!("{address} is already taken by {other}"));
        }
    }
    if config.listen.peer != own {
        return wrong("listen.peer", format!("is {}, but regions give this site the address {own}; they must agree", config.listen.peer));
    }
    Ok(())
}

fn check_address(key: &str, address: SocketAddr, config: &Config) -> Checked {
    if address.ip().is_loopback() || config.tls.is_some() {
        return Ok(());
    }
    wrong(
        key,
        format!(
            "{address} is refused: nothing is served in plain text beyond the loopback; give the site certificates under `[tls]`, as `rhumb init` does, or bind to 127.0.0.1 or [::1]"
        ),
    )
}

fn resolve_quotas(quotas: &Quotas, folder: &Path) -> Checked<QuotaSetup> {
    let Quotas { epoch_s, models } = quotas;
    if !(1..=EPOCH_S_MAX).contains(epoch_s) {
        return wrong("quotas.epoch_s", format!("is {epoch_s}; expected 1 to {EPOCH_S_MAX}"));
    }
    if models.len() > MODELS_MAX {
        return wrong("quotas.models", format!("has {} entries; expected at most {MODELS_MAX}", models.len()));
    }
    let files: Vec<(&str, PathBuf)> = models.iter().map(|(name, path)| (name.as_str(), folder.join(path))).collect();
    let models = Models::read(files.iter().map(|(name, path)| (*name, path.as_path())));
    let models = models.or_else(|(name, why)| wrong(format!("quotas.models.{name}"), why))?;
    Ok(QuotaSetup { epoch: Span::from_secs(u64::from(*epoch_s)), models })
}

fn resolve_catenae(catenae: &Catenae, topology: &Topology) -> Checked<CatenaeConfig> {
    let Catenae { epoch_ms, durability, coordinators, chain_sites } = catenae;
    if !CATENAE_EPOCH_MS.contains(epoch_ms) {
        let (low, high) = (CATENAE_EPOCH_MS.start(), CATENAE_EPOCH_MS.end());
        return wrong("catenae.epoch_ms", format!("is {epoch_ms}; expected {low} to {high}"));
    }
    let durability = match durability {
        Durability::Majority => rhumb_catenae::Durability::Majority,
        Durability::Region => rhumb_catenae::Durability::Region,
    };
    let sites = topology.shard_count().min(rhumb_catenae::SITES_PER_REGION_MAX);
    if !(1..=sites).contains(coordinators) {
        let why = format!("is {coordinators}; expected 1 to {sites}: each coordinator of a region is one of its first two sites");
        return wrong("catenae.coordinators", why);
    }
    let chain_sites = match chain_sites {
        ChainSites::Coordinator => rhumb_catenae::ChainSites::Coordinator,
        ChainSites::Every if topology.shard_count() > 1 => rhumb_catenae::ChainSites::Every,
        ChainSites::Every => return wrong("catenae.chain_sites", "is `every`, but regions have one site each; expected `coordinator`"),
    };
    let epoch = Span::from_millis(u64::from(*epoch_ms));
    Ok(CatenaeConfig { epoch, durability, coordinators: *coordinators, chain_sites, ..CatenaeConfig::default() })
}

fn resolve_wan(wan: &Wan, topology: &Topology, folder: &Path) -> Checked<WanLinks> {
    let names: Vec<&str> = topology.regions().map(|region| topology.name(region)).collect();
    let (key, source, matrix) = match (&wan.profile, &wan.file, &wan.matrix) {
        (Some(profile), None, None) => ("wan.profile", profile.clone(), shipped(profile)?),
        (None, Some(file), None) => ("wan.file", file.display().to_string(), read_matrix(&folder.join(file))?),
        (None, None, Some(text)) => ("wan.matrix", "wan.matrix".to_owned(), parse_matrix("wan.matrix", text)?),
        (None, None, None) => ("wan", String::new(), RttMatrix::uniform(names.iter().map(|&name| name.to_owned()).collect(), Span::ZERO)),
        _ => return wrong("wan", "more than one of `profile`, `file` and `matrix` is given; expected one of them"),
    };
    let Some(restricted) = matrix.restrict(&names) else {
        let missing = names.iter().find(|&&name| !matrix.names().iter().any(|known| known == name)).copied().unwrap_or_default();
        return wrong(key, format!("`{source}` has no region `{missing}`; it has {}", matrix.names().join(", ")));
    };
    let Some(jitter) = Span::from_millis_f64(wan.jitter_ms).filter(|_| wan.jitter_ms <= JITTER_MS_MAX) else {
        return wrong("wan.jitter_ms", format!("is {}; expected 0 to {JITTER_MS_MAX}", wan.jitter_ms));
    };
    if !(0.0..1.0).contains(&wan.loss) {
        return wrong("wan.loss", format!("is {}; expected a share, 0 to below 1", wan.loss));
    }
    Ok(WanLinks { matrix: restricted, jitter, loss: wan.loss })
}

fn shipped(name: &str) -> Checked<RttMatrix> {
    match wan::profile(name) {
        Some(profile) => Ok(profile.matrix()),
        None => {
            let known: Vec<&str> = wan::PROFILES.iter().map(|profile| profile.name).collect();
            wrong("wan.profile", format!("`{name}` is not a shipped profile; expected one of {}", known.join(", ")))
        }
    }
}

fn read_matrix(path: &Path) -> Checked<RttMatrix> {
    let text = std::fs::read_to_string(path).or_else(|error| wrong("wan.file", format!("cannot read {}: {error}", path.display())))?;
    RttMatrix::parse(&path.display().to_string(), &text).or_else(|error| wrong("wan.file", error.to_string()))
}

fn parse_matrix(key: &str, text: &str) -> Checked<RttMatrix> {
    RttMatrix::parse("the matrix", text).or_else(|error| wrong(key, error.to_string()))
}
