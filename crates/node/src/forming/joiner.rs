//! A site that comes with a token.

use super::LOOK_EVERY;
use super::folder::{AUTHORITIES_FILE, FormingError, IDENTITY_FILE, Place};
use crate::https;
use hyper::Method;
use rhumb_api::certificates::{Forming, JoinRequest, Joined};
use rhumb_api::error::Error as ApiError;
use rhumb_config::{Renewal, SECRET_FILE, first_port};
use rhumb_security::authority::register::seconds;
use rhumb_security::files::{self, FileError};
use rhumb_security::identity::{Identity, Key};
use rhumb_security::name::SiteName;
use rhumb_security::tls::{Client, Files};
use rhumb_security::token::Token;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;

/// The key, until there is a certificate of it.
const KEY_FILE: &str = "tls/site.key";
/// The request for that: the same each time it is asked, so that it is known again.
const REQUEST_FILE: &str = "tls/request.pem";
/// How long the other site may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How often the other site is asked whether all have joined.
const ASK_EVERY: Duration = LOOK_EVERY;
/// How often it is asked to let this one in, if it does not answer.
const JOIN_TRIES: u32 = 20;

/// Joins with `token`, waits until all sites have, and writes the configuration; where that is. `waiting` is told which sites are missing, when that
/// changes.
pub async fn join(place: &Place, token: &Token, mut waiting: impl FnMut(&[String])) -> Result<PathBuf, FormingError> {
    place.prepare()?;
    let identity = place.file(IDENTITY_FILE);
    if identity.exists() {
        check_identity(place, token, &identity)?;
    } else {
        ask_in(place, token).await?;
    }
    // The key is in one file with its certificate by now. Together with the token this would be worth as much.
    for file in [KEY_FILE, REQUEST_FILE] {
        forget(&place.file(file))?;
    }
    let files = Files { authorities: place.file(AUTHORITIES_FILE), certificate: identity.clone(), key: identity };
    let client = Client::load(&files).map_err(|error| asked(token, error))?;
    let mut missing = Vec::new();
    loop {
        match ask(&client, token, Method::GET, "/forming", String::new()).await {
            Ok(Ok(text)) => {
                let formed: Forming = serde_json::from_str(&text).map_err(|error| asked(token, error))?;
                if formed.missing.is_empty() {
                    let renewal = Renewal { site: token.site.clone(), http: token.address };
                    return place.write(&formed, Some(renewal));
                }
                if formed.missing != missing {
                    waiting(&formed.missing);
                    missing = formed.missing;
                }
            }
            Ok(Err(refused)) => return Err(FormingError::Refused(refused)),
            // The first site may be starting, or away for a while.
            Err(error) => tracing::debug!(%error, "asked in vain whether all have joined"),
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Whether the certificate of an earlier join is one of the same site, in a cluster of the same name.
fn check_identity(place: &Place, token: &Token, identity: &Path) -> Result<(), FormingError> {
    let first: SiteName = token.site.parse()?;
    let name = SiteName::new(first.cluster(), &place.region, place.shard)?;
    let own = Identity::load(identity, identity)?.certificate();
    if own.is_ok_and(|own| own.sites().contains(&name)) { Ok(()) } else { Err(FormingError::Foreign(place.folder.clone())) }
}

fn forget(path: &Path) -> Result<(), FormingError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::io(path)(error).into()),
        _ => Ok(()),
    }
}

/// Asks for a certificate, and keeps what is answered: the certificate last, since all is there with it.
async fn ask_in(place: &Place, token: &Token) -> Result<(), FormingError> {
    if token.expires <= seconds(SystemTime::now()) {
        return Err(FormingError::Refused("the token has expired; make another with `rhumb token create`".to_owned()));
    }
    let (key, request) = key(place)?;
    let body = JoinRequest {
        token: hex::encode(token.id),
        secret: hex::encode(token.secret.0),
        region: place.region.clone(),
        shard: place.shard,
        peer: place.at(first_port::PEER).to_string(),
        hosts: place.hosts.clone(),
        request,
    };
    let client = Client::pinned(token.authority).map_err(|error| asked(token, error))?;
    let body = serde_json::to_string(&body).map_err(|error| asked(token, error))?;
    let mut tries = 1;
    let text = loop {
        match ask(&client, token, Method::POST, "/join", body.clone()).await {
            // The first site may be starting.
            Err(error) if tries < JOIN_TRIES => tracing::debug!(%error, "asked in vain to be let in"),
            answered => break answered?.map_err(FormingError::Refused)?,
        }
        tries += 1;
        tokio::time::sleep(ASK_EVERY).await;
    };
    let Joined { certificates, secret, .. } = serde_json::from_str(&text).map_err(|error| asked(token, error))?;
    let chain = certificates.certificate.ok_or_else(|| asked(token, "it sends no certificate"))?;
    files::write_private(&place.file(AUTHORITIES_FILE), certificates.authorities.as_bytes())?;
    files::write_private(&place.file(SECRET_FILE), format!("{secret}\n").as_bytes())?;
    files::write_private(&place.file(IDENTITY_FILE), key.file(&chain).as_bytes())?;
    Ok(())
}

/// The key of the site and the request for its certificate: those of an earlier attempt, if there was one.
fn key(place: &Place) -> Result<(Key, String), FormingError> {
    let (key_file, request_file) = (place.file(KEY_FILE), place.file(REQUEST_FILE));
    if request_file.exists() {
        let key = Key::of(&files::read_private(&key_file)?).ok_or_else(|| FormingError::Foreign(place.folder.clone()))?;
        return Ok((key, String::from_utf8_lossy(&files::read_private(&request_file)?).into_owned()));
    }
    let key = Key::new()?;
    let request = key.request()?;
    files::write_private(&key_file, key.pem().as_bytes())?;
    files::write_private(&request_file, request.as_bytes())?;
    Ok((key, request))
}

/// Asks the site of the token: the answer, or why it refuses.
async fn ask(client: &Client, token: &Token, method: Method, path: &str, body: String) -> Result<Result<String, String>, FormingError> {
    let asking = async {
        let stream = client.connect(TcpStream::connect(token.address).await?, &token.site).await?;
        https::exchange(stream, &token.site, method, path, body).await
    };
    let (status, body) = match tokio::time::timeout(ANSWER_MAX, asking).await {
        Ok(answered) => answered.map_err(|error| asked(token, error))?,
        Err(_) => return Err(asked(token, format!("nothing came within {} s", ANSWER_MAX.as_secs()))),
    };
    if status == 200 {
        return Ok(Ok(body));
    }
    match serde_json::from_str::<ApiError>(&body) {
        Ok(ApiError { error }) if status < 500 => Ok(Err(error.message)),
        Ok(ApiError { error }) => Err(asked(token, error.message)),
        Err(_) => Err(asked(token, format!("it answers {status}"))),
    }
}

fn asked(token: &Token, reason: impl std::fmt::Display) -> FormingError {
    FormingError::Asked { address: token.address, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_security::authority::{Authority, Subject};
    use rhumb_security::token::TokenSecret;

    #[tokio::test]
    async fn a_folder_of_another_join_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::create(&folder.path().join("ca"), "shop", SystemTime::now()).expect("made");
        let virginia = Subject::Site { name: SiteName::new("shop", "virginia", 0).expect("a name"), hosts: vec![] };
        let issued = authority.issue(&virginia, SystemTime::now()).expect("signed");
        files::make_folder(&folder.path().join("tls")).expect("made");
        files::write_private(&folder.path().join(IDENTITY_FILE), issued.as_bytes()).expect("written");
        let token = |cluster: &str| Token {
            address: ([127, 0, 0, 1], 1).into(),
            site: format!("california-0.{cluster}.rhumb.internal"),
            authority: [0; 32],
            id: [1; 6],
            secret: TokenSecret([1; 32]),
            expires: u64::MAX,
        };
        for (cluster, region) in [("shop", "oregon"), ("stall", "virginia")] {
            let place = Place { folder: folder.path().into(), region: region.into(), shard: 0, ip: [127, 0, 0, 1].into(), hosts: vec![] };
            let refused = join(&place, &token(cluster), |_| {}).await;
            assert!(matches!(refused, Err(FormingError::Foreign(_))), "{refused:?}");
        }
        let place = Place { folder: folder.path().into(), region: "virginia".into(), shard: 0, ip: [127, 0, 0, 1].into(), hosts: vec![] };
        check_identity(&place, &token("shop"), &folder.path().join(IDENTITY_FILE)).expect("its own");
    }
}
