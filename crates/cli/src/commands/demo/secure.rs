//! The certificates of a demo whose sites are encrypted: what `rhumb init` and `rhumb join` make on several machines, in one folder.

use rhumb_config::{Renewal, Tls};
use rhumb_node::forming::{ADMIN_FILE, AUTHORITIES_FILE, CA_FOLDER};
use rhumb_security::authority::{Authority, AuthorityError, CA_FILE, Subject};
use rhumb_security::files;
use rhumb_security::name::{DOMAIN, SiteName};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The certificate of a site, in the folder of that.
const SITE_FILE: &str = "site.pem";

/// How clients prove themselves, and whom they believe.
#[derive(Clone, Debug)]
pub struct Access {
    authorities: PathBuf,
    admin: PathBuf,
}

impl Access {
    /// That of a demo in `folder`.
    pub fn in_folder(folder: &Path) -> Access {
        Access { authorities: folder.join(AUTHORITIES_FILE), admin: folder.join(ADMIN_FILE) }
    }

    /// The address for PostgreSQL clients at `port`, with all that it takes.
    pub fn pg(&self, port: u16) -> String {
        let (ca, admin) = (self.authorities.display(), self.admin.display());
        format!("postgres://root@localhost:{port}/rhumb?sslmode=verify-full&sslrootcert={ca}&sslcert={admin}&sslkey={admin}")
    }

    /// The options of curl.
    pub fn curl(&self) -> String {
        format!("--cacert {} --cert {}", self.authorities.display(), self.admin.display())
    }

    /// The options of redis-cli.
    pub fn redis(&self) -> String {
        let (ca, admin) = (self.authorities.display(), self.admin.display());
        format!("--tls --cacert {ca} --cert {admin} --key {admin}")
    }
}

/// Makes the CA of the demo in `folder`, unless there is one, and certificates of its sites and of the administrator.
pub fn prepare(folder: &Path, cluster: &str, regions: &[String], sites_per_region: u16) -> Result<(), AuthorityError> {
    let (ca, now) = (folder.join(CA_FOLDER), SystemTime::now());
    let authority = if ca.join(CA_FILE).exists() { Authority::open(&ca)? } else { Authority::create(&ca, cluster, now)? };
    files::make_folder(&folder.join("tls"))?;
    files::write_private(&folder.join(AUTHORITIES_FILE), authority.roots_pem().as_bytes())?;
    let admin = authority.issue(&Subject::Client { user: "root".to_owned() }, now)?;
    files::write_private(&folder.join(ADMIN_FILE), admin.as_bytes())?;
    for (region, shard) in regions.iter().flat_map(|region| (0..sites_per_region).map(move |shard| (region, shard))) {
        let own = folder.join(format!("{region}-{shard}"));
        files::make_folder(&own)?;
        let issued = authority.replace(&SiteName::new(cluster, region, shard)?, vec!["localhost".to_owned()], now)?;
        files::write_private(&own.join(SITE_FILE), issued.as_bytes())?;
    }
    Ok(())
}

/// The table `[tls]` of a site, which holds the CA if it is the first one. That is in the region `first` and listens for HTTP at the port `http`.
pub fn tls(is_first: bool, cluster: &str, first: &str, http: u16) -> Tls {
    let up = Path::new("..");
    let renewal = Renewal { site: format!("{first}-0.{cluster}.{DOMAIN}"), http: ([127, 0, 0, 1], http).into() };
    Tls {
        authorities: up.join(AUTHORITIES_FILE),
        certificate: SITE_FILE.into(),
        key: None,
        ca: is_first.then(|| up.join(CA_FOLDER)),
        renewal: (!is_first).then_some(renewal),
    }
}
