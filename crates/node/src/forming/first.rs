//! The first site of a cluster: it makes the CA, the register and an administrator, and lets the others in.

use super::LOOK_EVERY;
use super::folder::{ADMIN_FILE, AUTHORITIES_FILE, CA_FOLDER, FormingError, IDENTITY_FILE, Place};
use crate::admin::joining::{self, Joining};
use crate::admin::listener::{Entrance, serve};
use crate::admin::open;
use crate::config::{SECRET_FILE, first_port};
use crate::secret::{self, Secret};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use rhumb_security::authority::register::{self, Member, Register, member_name};
use rhumb_security::authority::{Authority, CA_FILE, Subject};
use rhumb_security::files;
use rhumb_security::identity::Key;
use rhumb_security::name::SiteName;
use rhumb_security::tls::{Files, Port, Tls};
use rhumb_security::token::{Token, TokenSecret};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The name of the administrator.
const ADMINISTRATOR: &str = "root";

/// What a cluster is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    /// Its name.
    pub cluster: String,
    /// Its regions, in order.
    pub regions: Vec<String>,
    /// The sites of each.
    pub sites_per_region: u16,
}

/// The first site, in its folder.
#[derive(Debug)]
pub struct First {
    place: Place,
    name: SiteName,
}

impl First {
    /// Makes what the first site of a cluster holds, or finds what an earlier call has made for the same.
    pub fn found(place: Place, founding: &Founding) -> Result<First, FormingError> {
        let name = SiteName::new(&founding.cluster, &place.region, place.shard)?;
        let mut register = Register::new(&name, place.at(first_port::HTTP), founding.regions.clone(), founding.sites_per_region)?;
        place.prepare()?;
        let ca = place.file(CA_FOLDER);
        let now = SystemTime::now();
        let authority = if ca.join(CA_FILE).exists() { Authority::open(&ca)? } else { Authority::create(&ca, &founding.cluster, now)? };
        let secret_file = place.file(SECRET_FILE);
        if secret_file.exists() {
            Secret::load(&secret_file).map(drop)?
        } else {
            Secret::create(&secret_file)?
        }
        files::write_private(&place.file(AUTHORITIES_FILE), authority.roots_pem().as_bytes())?;
        let key = Key::new()?;
        let subject = Subject::Site { name: name.clone(), hosts: place.hosts.clone() };
        // The CA's own certificate goes with it: who comes with a token knows only the fingerprint of that.
        let chain = authority.sign(&key.request()?, &subject, now)? + &authority.roots_pem();
        files::write_private(&place.file(IDENTITY_FILE), key.file(&chain).as_bytes())?;
        let admin = authority.issue(&Subject::Client { user: ADMINISTRATOR.to_owned() }, now)?;
        files::write_private(&place.file(ADMIN_FILE), admin.as_bytes())?;
        let peer = place.at(first_port::PEER);
        // By its address alone: its key is not asked for by itself.
        let own = Member { region: place.region.clone(), shard: place.shard, peer, hosts: place.hosts.clone(), request: String::new() };
        register.found(own)?;
        match register::read(&ca) {
            Ok(kept) if (&kept.regions, kept.sites_per_region) != (&register.regions, register.sites_per_region) => {
                return Err(FormingError::Foreign(place.folder));
            }
            Ok(kept) if kept.members.get(&name_of(&place)) != register.members.get(&name_of(&place)) => {
                return Err(FormingError::Foreign(place.folder));
            }
            Ok(_) => {}
            Err(error) if error.is_missing() => register::create(&ca, &register)?,
            Err(error) => return Err(error.into()),
        }
        Ok(First { place, name })
    }

    /// The sites that are missing.
    pub fn missing(&self) -> Result<Vec<String>, FormingError> {
        Ok(register::read(&self.place.file(CA_FOLDER))?.missing())
    }

    /// Makes a token, which holds for `holds`.
    pub fn token(&self, holds: Duration) -> Result<Token, FormingError> {
        create_token(&self.place.file(CA_FOLDER), holds)
    }

    /// Lets sites in until none is missing, then writes the configuration; where that is. `joined` is told of each site that joins.
    pub async fn form(&self, joined: impl FnMut(&str)) -> Result<PathBuf, FormingError> {
        let address = self.place.at(first_port::HTTP);
        let identity = self.place.file(IDENTITY_FILE);
        let files = Files { authorities: self.place.file(AUTHORITIES_FILE), certificate: identity.clone(), key: identity };
        let tls = Tls::load(files, self.name.clone())?;
        let listener = TcpListener::bind(address).await.map_err(|reason| FormingError::Listen { address, reason })?;
        let ca = self.place.file(CA_FOLDER);
        let joining = Joining { ca: ca.clone(), secret_file: self.place.file(SECRET_FILE), site: self.name.clone() };
        let not_ready = async || (StatusCode::SERVICE_UNAVAILABLE, "the cluster forms: not all sites have joined\n");
        let probes = Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(not_ready));
        let mut names = self.place.hosts.clone();
        names.push(self.name.to_string());
        let routes = open(joining::router(joining).merge(probes), names);
        let entrance = Entrance { listener, tls: Some(tls.acceptor(Port::Http)) };
        let (answered, _all_answered) = oneshot::channel();
        tokio::select! {
            () = serve(entrance, routes, std::future::pending(), answered) => unreachable!("it serves until it is dropped"),
            formed = wait(&ca, joined) => { formed?; }
        }
        let formed = joining::shape(&register::read(&ca)?);
        self.place.write(&formed, None)
    }
}

fn name_of(place: &Place) -> String {
    member_name(&place.region, place.shard)
}

/// Waits until the register in the folder `ca` misses nobody. `joined` is told of each site that joins.
async fn wait(ca: &Path, mut joined: impl FnMut(&str)) -> Result<(), FormingError> {
    let mut missing: BTreeSet<String> = register::read(ca)?.missing().into_iter().collect();
    while !missing.is_empty() {
        tokio::time::sleep(LOOK_EVERY).await;
        let now: BTreeSet<String> = register::read(ca)?.missing().into_iter().collect();
        missing.difference(&now).for_each(|name| joined(name));
        missing = now;
    }
    Ok(())
}

/// Makes a token of the CA in the folder `ca`.
pub fn create_token(ca: &Path, holds: Duration) -> Result<Token, FormingError> {
    let id = secret::random().map_err(FormingError::Random)?;
    let secret = TokenSecret(secret::random().map_err(FormingError::Random)?);
    let authority = Authority::open(ca)?;
    register::change(ca, |register| {
        let expires = register.add_token(id, &secret, holds, SystemTime::now())?;
        let (address, site) = (register.http, register.site.clone());
        Ok(Token { address, site, authority: authority.fingerprint(), id, secret: secret.clone(), expires })
    })
}
