//! The first site of a cluster: it makes the CA, the register and an administrator, and lets the others in.

use super::LOOK_EVERY;
use super::folder::{ADMIN_FILE, AUTHORITIES_FILE, CA_FOLDER, FormingError, IDENTITY_FILE, Place, TOKENS_FOLDER};
use crate::admin::joining::{self, Joining};
use crate::admin::listener::{Entrance, serve};
use crate::admin::open;
use crate::secret::{self, Secret};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use rhumb_config::{SECRET_FILE, first_port};
use rhumb_security::authority::register::{self, Grant, Member, Register, member_name};
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

/// What lets one further site in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The site, `REGION-SHARD`.
    pub site: String,
    /// Its token.
    pub token: Token,
    /// The file that holds the token, for its owner alone.
    pub file: PathBuf,
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
        let peer = place.at(first_port::PEER);
        // By its address alone: its key is not asked for by itself.
        let own = Member { region: place.region.clone(), shard: place.shard, peer, hosts: place.hosts.clone(), request: String::new() };
        register.found(own)?;
        place.prepare()?;
        let ca = place.file(CA_FOLDER);
        let now = SystemTime::now();
        // Before anything is written: what was made for another cluster stays as it is.
        let is_new = is_new(&ca, &register, &place)?;
        let authority = if ca.join(CA_FILE).exists() { Authority::open(&ca)? } else { Authority::create(&ca, &founding.cluster, now)? };
        if authority.cluster() != founding.cluster {
            return Err(FormingError::Foreign(place.folder));
        }
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
        if is_new {
            register::create(&ca, &register)?;
        }
        Ok(First { place, name })
    }

    /// The tokens of the sites that are missing, each in a file of its own, which hold for `holds` unless an earlier call has made them.
    pub fn tokens(&self, holds: Duration) -> Result<Vec<Invitation>, FormingError> {
        let ca = self.place.file(CA_FOLDER);
        files::make_folder(&self.place.file(TOKENS_FOLDER))?;
        let register = register::read(&ca)?;
        let invite = |site: String| -> Result<Invitation, FormingError> {
            let file = self.place.file(TOKENS_FOLDER).join(&site);
            let kept = match files::read_private(&file) {
                Ok(text) => {
                    String::from_utf8_lossy(&text).parse::<Token>().ok().filter(|token| register.is_unused(token, SystemTime::now()))
                }
                Err(error) if error.is_missing() => None,
                Err(error) => return Err(error.into()),
            };
            let token = match kept {
                Some(token) => token,
                None => {
                    let token = create_token(&ca, Grant { site: Some(site.clone()), names: Vec::new(), holds })?;
                    files::write_private(&file, format!("{token}\n").as_bytes())?;
                    token
                }
            };
            Ok(Invitation { site, token, file })
        };
        register.missing().into_iter().map(invite).collect()
    }

    /// Lets sites in until none is missing, then writes the configuration; where that is. `joined` is told of each site that joins.
    pub async fn form(&self, joined: impl FnMut(&str)) -> Result<PathBuf, FormingError> {
        let address = self.place.at(first_port::HTTP);
        let identity = self.place.file(IDENTITY_FILE);
        let files = Files { authorities: self.place.file(AUTHORITIES_FILE), certificate: identity.clone(), key: identity };
        let tls = Tls::load(files, self.name.clone())?;
        let listener = TcpListener::bind(address).await.map_err(|reason| FormingError::Listen { address, reason })?;
        let ca = self.place.file(CA_FOLDER);
        let joining = Joining { ca: ca.clone(), secret_file: self.place.file(SECRET_FILE), site: self.name.clone(), is_open: false };
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

/// Whether there is no register in the folder `ca` yet. One that is there must be for the same as `register`, with the same first site at `place`.
fn is_new(ca: &Path, register: &Register, place: &Place) -> Result<bool, FormingError> {
    let kept = match register::read(ca) {
        Ok(kept) => kept,
        Err(error) if error.is_missing() => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    let first = member_name(&place.region, place.shard);
    // All but who has joined since, and the tokens.
    let same = Register { members: register.members.clone(), tokens: register.tokens.clone(), ..kept.clone() };
    if same == *register && kept.members.get(&first) == register.members.get(&first) {
        Ok(false)
    } else {
        Err(FormingError::Foreign(place.folder.clone()))
    }
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
pub fn create_token(ca: &Path, grant: Grant) -> Result<Token, FormingError> {
    let id = secret::random().map_err(FormingError::Random)?;
    let secret = TokenSecret(secret::random().map_err(FormingError::Random)?);
    let authority = Authority::open(ca)?;
    register::change(ca, |register| {
        let expires = register.add_token(id, &secret, grant, SystemTime::now())?;
        let (address, site) = (register.http, register.site.clone());
        Ok(Token { address, site, authority: authority.fingerprint(), id, secret: secret.clone(), expires })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &Path, region: &str) -> Place {
        Place { folder: folder.to_owned(), region: region.to_owned(), shard: 0, ip: [127, 0, 0, 1].into(), hosts: vec!["localhost".into()] }
    }

    fn founding(cluster: &str) -> Founding {
        let regions = ["california", "virginia", "oregon"].map(String::from).to_vec();
        Founding { cluster: cluster.to_owned(), regions, sites_per_region: 1 }
    }

    #[test]
    fn what_was_made_for_one_cluster_stays_as_it_is_when_another_is_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        First::found(place(folder.path(), "california"), &founding("shop")).expect("made");
        let identity = std::fs::read(folder.path().join(IDENTITY_FILE)).expect("text");
        let two = Founding { sites_per_region: 2, ..founding("shop") };
        for (region, founding) in [("california", founding("stall")), ("virginia", founding("shop")), ("california", two)] {
            let refused = First::found(place(folder.path(), region), &founding);
            assert!(matches!(refused, Err(FormingError::Foreign(_))), "{region}, {founding:?}: {refused:?}");
            assert_eq!(std::fs::read(folder.path().join(IDENTITY_FILE)).expect("text"), identity, "what is refused changes nothing");
        }
        // Before there is a register, the CA says for whom it was made.
        std::fs::remove_file(folder.path().join(CA_FOLDER).join("register.json")).expect("removed");
        assert!(matches!(First::found(place(folder.path(), "california"), &founding("stall")), Err(FormingError::Foreign(_))));
        First::found(place(folder.path(), "california"), &founding("shop")).expect("goes on");
    }

    #[test]
    fn tokens_are_in_files_for_their_owner_and_made_once() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let first = First::found(place(folder.path(), "california"), &founding("shop")).expect("made");
        let made = first.tokens(Duration::from_hours(1)).expect("made");
        assert_eq!(made.iter().map(|invitation| invitation.site.as_str()).collect::<Vec<_>>(), ["virginia-0", "oregon-0"]);
        for Invitation { token, file, .. } in &made {
            assert_eq!(std::fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
            assert_eq!(std::fs::read_to_string(file).expect("text").parse().as_ref(), Ok(token));
        }
        assert_eq!(first.tokens(Duration::from_hours(1)).expect("the same"), made);
        let revoke = |register: &mut Register| Ok::<_, FormingError>(register.revoke(&hex::encode(made[0].token.id)));
        assert!(register::change(&folder.path().join(CA_FOLDER), revoke).expect("revoked"));
        let again = first.tokens(Duration::from_hours(1)).expect("one is made");
        assert!(again[0] != made[0] && again[1] == made[1]);
    }
}
