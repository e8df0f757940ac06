//! Where a site stands that is made by `rhumb init` or `rhumb join`: the options that both have.

use clap::Args as ClapArgs;
use rhumb_node::forming::Place;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The folder of a site unless said otherwise.
pub const FOLDER: &str = "rhumb";

/// Where a site stands.
#[derive(ClapArgs)]
pub struct Options {
    /// The region of this site.
    #[arg(long, value_name = "REGION")]
    region: String,
    /// Its shard, if regions have several sites.
    #[arg(long, value_name = "N", default_value_t = 0)]
    shard: u16,
    /// The address or host name of this machine by which the other machines and clients reach it. A name stands in the site's certificate.
    #[arg(long, value_name = "HOST")]
    listen: String,
    /// A further name by which clients reach it, for its certificate; may be repeated.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// The folder in which the site keeps its configuration, certificates and data.
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    pub dir: PathBuf,
}

impl Options {
    /// The place that they describe, or why there is none.
    pub fn place(&self) -> Result<Place, String> {
        let mut hosts = self.names.clone();
        let ip = match self.listen.parse::<IpAddr>() {
            Ok(ip) => ip,
            Err(_) => {
                hosts.insert(0, self.listen.clone());
                let found = (self.listen.as_str(), 0).to_socket_addrs();
                let mut found = found.map_err(|error| format!("--listen {}: no such host: {error}", self.listen))?;
                found.next().ok_or_else(|| format!("--listen {}: it has no address", self.listen))?.ip()
            }
        };
        if ip.is_unspecified() {
            return Err(format!("--listen {ip}: expected the address or name by which other machines reach this one"));
        }
        if ip.is_loopback() && !hosts.iter().any(|host| host == "localhost") {
            hosts.push("localhost".to_owned());
        }
        let folder = std::path::absolute(&self.dir).map_err(|error| format!("--dir {}: {error}", self.dir.display()))?;
        Ok(Place { folder, region: self.region.clone(), shard: self.shard, ip, hosts })
    }
}
