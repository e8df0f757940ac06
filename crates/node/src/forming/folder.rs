//! What lies in the folder of a site that was made by `rhumb init` or `rhumb join`, and the configuration that is written there.
//!
//! ```text
//!   site.toml        the configuration: all sites are known
//!   cluster.secret   the secret of the cluster
//!   tls/ca.crt       the authorities that are believed
//!   tls/site.pem     the site's key and certificate
//!   admin.pem        the administrator's, at the first site
//!   ca/              the CA and its register, at the first site
//!   tokens/          a token for each site that is missing, at the first site, while the cluster forms
//!   data/            the data
//! ```

use crate::secret::SecretError;
use rhumb_api::certificates::Forming;
use rhumb_config::{
    Catenae, Clock, Config, ConfigError, Http, Limits, Listen, OwnSite, Quad, Quotas, Region, Renewal, SECRET_FILE, Setup, Storage, Tls,
    first_port,
};
use rhumb_security::authority::AuthorityError;
use rhumb_security::authority::register::RegisterError;
use rhumb_security::files::{self, FileError};
use rhumb_security::identity::KeyError;
use rhumb_security::name::NameError;
use rhumb_security::tls::{Files, TlsError};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The configuration of a site.
pub const CONFIG_FILE: &str = "site.toml";
/// The authorities that are believed.
pub const AUTHORITIES_FILE: &str = "tls/ca.crt";
/// The site's key and certificate.
pub const IDENTITY_FILE: &str = "tls/site.pem";
/// The administrator's.
pub const ADMIN_FILE: &str = "admin.pem";
/// The tokens of sites that are missing, at the first site.
pub const TOKENS_FOLDER: &str = "tokens";
/// The CA and its register.
pub const CA_FOLDER: &str = "ca";

/// The certificates by which somebody at the machine of a site asks: the administrator's if there are any in `folder`, else the site's own.
pub fn certificates(folder: &Path) -> Files {
    let admin = folder.join(ADMIN_FILE);
    let identity = if admin.exists() { admin } else { folder.join(IDENTITY_FILE) };
    Files { authorities: folder.join(AUTHORITIES_FILE), certificate: identity.clone(), key: identity }
}

/// Where a site stands and is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its folder.
    pub folder: PathBuf,
    /// Its region.
    pub region: String,
    /// Its shard.
    pub shard: u16,
    /// Where it listens, at the usual ports.
    pub ip: IpAddr,
    /// Names by which clients reach it.
    pub hosts: Vec<String>,
}

/// Why a cluster does not form, or this site does not join.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum FormingError {
    #[error("{shown} is there already: go on with `rhumb start --config {shown}`", shown = .0.display())]
    Started(PathBuf),
    #[error("{} holds another site, or a part of one: name a new folder, or remove this one", .0.display())]
    Foreign(PathBuf),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error(transparent)]
    Register(#[from] RegisterError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot listen on {address}: {reason}")]
    Listen { address: SocketAddr, reason: std::io::Error },
    #[error("the system gives no random numbers: {0}")]
    Random(std::io::Error),
    #[error("{address} does not answer as the site of the token: {reason}")]
    Asked { address: SocketAddr, reason: String },
    #[error("{0}")]
    Refused(String),
}

impl FormingError {
    /// The exit code of the process: 2 for what was asked wrongly, 1 for what went wrong.
    pub fn exit_code(&self) -> u8 {
        match self {
            FormingError::Started(_)
            | FormingError::Foreign(_)
            | FormingError::Name(_)
            | FormingError::Refused(_)
            | FormingError::Config(_) => 2,
            FormingError::Register(error) if !matches!(error, RegisterError::File(_)) => 2,
            _ => 1,
        }
    }
}

impl Place {
    /// A file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where it listens at `port`.
    pub fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, port)
    }

    /// Makes its folder, unless it has started before.
    pub(super) fn prepare(&self) -> Result<(), FormingError> {
        let config = self.file(CONFIG_FILE);
        if config.exists() {
            return Err(FormingError::Started(config));
        }
        Ok(files::make_folder(&self.file("tls"))?)
    }

    /// Writes its configuration in the cluster that has `formed`, and returns where. `renewal` is where it renews its certificate, unless it holds the CA.
    pub(super) fn write(&self, formed: &Forming, renewal: Option<Renewal>) -> Result<PathBuf, FormingError> {
        let path = self.file(CONFIG_FILE);
        let config = self.config(formed, renewal)?;
        Setup::new(config.clone(), &path.display().to_string(), &self.folder)?;
        files::write_private(&path, config.to_toml().as_bytes())?;
        Ok(path)
    }

    fn config(&self, formed: &Forming, renewal: Option<Renewal>) -> Result<Config, FormingError> {
        let address = |address: &Option<String>| address.as_deref().and_then(|address| address.parse().ok());
        let region = |region: &rhumb_api::certificates::FormingRegion| {
            let sites: Option<Vec<SocketAddr>> = region.sites.iter().map(address).collect();
            sites.map(|sites| Region { name: region.name.clone(), sites })
        };
        let regions: Option<Vec<Region>> = formed.regions.iter().map(region).collect();
        let regions = regions.ok_or_else(|| FormingError::Refused("a site is still missing".to_owned()))?;
        Ok(Config {
            data_dir: "data".into(),
            cluster: formed.cluster.clone(),
            secret_file: SECRET_FILE.into(),
            chaos: false,
            site: OwnSite { region: self.region.clone(), shard: self.shard },
            listen: Listen {
                sql: self.at(first_port::SQL),
                resp: Some(self.at(first_port::RESP)),
                http: self.at(first_port::HTTP),
                peer: self.at(first_port::PEER),
            },
            regions,
            tls: Some(Tls {
                authorities: AUTHORITIES_FILE.into(),
                certificate: IDENTITY_FILE.into(),
                key: None,
                ca: renewal.is_none().then(|| Path::new(CA_FOLDER).to_owned()),
                renewal,
            }),
            wan: None,
            placement: None,
            clock: Clock::default(),
            storage: Storage::default(),
            quotas: Quotas::default(),
            catenae: Catenae::default(),
            quad: Quad::default(),
            http: Http { names: self.hosts.clone() },
            limits: Limits::default(),
        })
    }
}
