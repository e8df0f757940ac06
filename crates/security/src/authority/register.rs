//! The register of the CA: which tokens there are, of which sites a cluster is to consist, and which of them have joined.
//!
//! ```text
//!   Register::create ──▶ forming ──admit: one token, one site──▶ … ──▶ complete: the cluster opens, and nobody is admitted any more
//! ```
//! The protocols count majorities among regions that are fixed when a cluster begins, so all sites join before it opens
//! (docs/decisions/0042-tls.md).
//!
//! A token is used up, and the site that came with it entered, in one write of one file: a crash leaves both or neither. Whoever got no answer asks again
//! with the same token, key and wishes, and is answered the same.
//!
//! Invariants: a token lets in one key, once; a site is of one key; a register that is complete stays as it is. Of a token only the SHA-256 of its secret is
//! kept.

use crate::files::{self, FileError};
use crate::name::{self, NameError, SiteName};
use crate::token::{TokenId, TokenSecret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thiserror::Error;

const REGISTER_FILE: &str = "register.json";
/// The most tokens that are kept, used ones among them.
pub const TOKENS_MAX: usize = 1_000;
/// The longest that a token may hold.
pub const TOKEN_HOLDS_MAX: Duration = Duration::from_hours(24 * 30);

/// The register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The cluster.
    pub cluster: String,
    /// Its regions, in the order that all configurations have.
    pub regions: Vec<String>,
    /// The sites of each region.
    pub sites_per_region: u16,
    /// The name in certificates of the site that holds the CA.
    pub site: String,
    /// Where that listens for HTTP.
    pub http: SocketAddr,
    /// The sites that have joined, by `REGION-SHARD`.
    pub members: BTreeMap<String, Member>,
    /// The tokens, by the hexadecimal digits of their ids.
    pub tokens: BTreeMap<String, Issued>,
}

/// A site that has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its region.
    pub region: String,
    /// Its shard.
    pub shard: u16,
    /// Where other sites reach it.
    pub peer: SocketAddr,
    /// Further names in its certificate.
    pub hosts: Vec<String>,
    /// The request for its certificate, by which it is known again.
    pub request: String,
}

/// A token that was given out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issued {
    /// The SHA-256 of its secret, in hexadecimal digits.
    digest: String,
    /// Until when it holds, in seconds since the Unix epoch.
    pub expires: u64,
    /// The site that has come with it, if one has.
    pub used_by: Option<String>,
}

/// Who wants in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The token's id.
    pub id: TokenId,
    /// And its secret.
    pub secret: TokenSecret,
    /// As whom.
    pub member: Member,
}

/// Why somebody is not let in, or the register cannot be used. Nothing has changed then.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum RegisterError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the token is unknown here: it was altered, revoked, or made for another cluster; make one with `rhumb token create`")]
    UnknownToken,
    #[error("the token has expired; make another with `rhumb token create`")]
    ExpiredToken,
    #[error("the token was used already, by {0}; make another with `rhumb token create`")]
    UsedToken(String),
    #[error("the cluster is to have the regions {known}, and `{region}` is none of them")]
    UnknownRegion { region: String, known: String },
    #[error("there is no shard {shard}; regions have the shards 0 to {last}")]
    UnknownShard { shard: u16, last: u16 },
    #[error("{0} has joined already, from elsewhere or with another key; choose a region that is still missing")]
    Taken(String),
    #[error("{address} is the address of {other} already")]
    Address { address: SocketAddr, other: String },
    #[error("all sites have joined, and a cluster's regions stay what they were when it opened")]
    Complete,
    #[error("there are {TOKENS_MAX} tokens; revoke some with `rhumb token revoke`")]
    TooManyTokens,
    #[error("a cluster has at least one region, one site in each, and no region twice")]
    Shape,
    #[error("a token holds for a minute at least and 30 days at most")]
    Holds,
}

/// `california-0`.
pub fn member_name(region: &str, shard: u16) -> String {
    format!("{region}-{shard}")
}

impl Register {
    /// That of a cluster of these regions, of which nobody has joined. The site `site` holds it, and listens for HTTP at `http`.
    pub fn new(site: &SiteName, http: SocketAddr, regions: Vec<String>, sites_per_region: u16) -> Result<Register, RegisterError> {
        let cluster = site.cluster();
        for (index, region) in regions.iter().enumerate() {
            SiteName::new(cluster, region, 0)?;
            if regions[..index].contains(region) {
                return Err(RegisterError::Shape);
            }
        }
        if regions.is_empty() || sites_per_region == 0 {
            return Err(RegisterError::Shape);
        }
        let (members, tokens) = (BTreeMap::new(), BTreeMap::new());
        Ok(Register { cluster: cluster.to_owned(), regions, sites_per_region, site: site.to_string(), http, members, tokens })
    }

    /// The names of all sites in certificates.
    pub fn sites(&self) -> Vec<String> {
        let name = |(region, shard): (&String, u16)| SiteName::new(&self.cluster, region, shard).ok();
        let all = self.regions.iter().flat_map(|region| (0..self.sites_per_region).map(move |shard| (region, shard)));
        all.filter_map(name).map(|name| name.to_string()).collect()
    }

    /// The sites that have not joined yet.
    pub fn missing(&self) -> Vec<String> {
        let all = self.regions.iter().flat_map(|region| (0..self.sites_per_region).map(move |shard| member_name(region, shard)));
        all.filter(|name| !self.members.contains_key(name)).collect()
    }

    /// True once all have.
    pub fn is_complete(&self) -> bool {
        self.missing().is_empty()
    }

    /// Enters a token, which holds for `holds` from `now`: until when, in seconds since the Unix epoch.
    pub fn add_token(&mut self, id: TokenId, secret: &TokenSecret, holds: Duration, now: SystemTime) -> Result<u64, RegisterError> {
        if self.is_complete() {
            return Err(RegisterError::Complete);
        }
        if !(Duration::from_mins(1)..=TOKEN_HOLDS_MAX).contains(&holds) {
            return Err(RegisterError::Holds);
        }
        if self.tokens.len() >= TOKENS_MAX {
            return Err(RegisterError::TooManyTokens);
        }
        let expires = seconds(now + holds);
        self.tokens.insert(hex::encode(id), Issued { digest: hex::encode(secret.digest()), expires, used_by: None });
        Ok(expires)
    }

    /// The state of a token at `now`, in a word or two.
    pub fn state(token: &Issued, now: SystemTime) -> String {
        match &token.used_by {
            Some(site) => format!("used by {site}"),
            None if token.expires <= seconds(now) => "expired".to_owned(),
            None => "unused".to_owned(),
        }
    }

    /// Takes a token back that nobody has used. False if there is none of this id.
    pub fn revoke(&mut self, id: &str) -> bool {
        let unused = self.tokens.get(id).is_some_and(|token| token.used_by.is_none());
        unused && self.tokens.remove(id).is_some()
    }

    /// Enters the first site, which needs no token.
    pub fn found(&mut self, member: Member) -> Result<(), RegisterError> {
        self.check(&member)?;
        self.members.insert(member_name(&member.region, member.shard), member);
        Ok(())
    }

    /// Lets a site in, or says why not. True if it is new; false if it asks once more.
    pub fn admit(&mut self, candidate: &Candidate, now: SystemTime) -> Result<bool, RegisterError> {
        let Candidate { id, secret, member } = candidate;
        let name = member_name(&member.region, member.shard);
        let id = hex::encode(id);
        // What is compared is the digest, which tells nothing of how near another secret comes.
        let token = self.tokens.get(&id).filter(|token| token.digest == hex::encode(secret.digest())).ok_or(RegisterError::UnknownToken)?;
        match &token.used_by {
            Some(user) if *user == name && self.members.get(user) == Some(member) => return Ok(false),
            Some(user) => return Err(RegisterError::UsedToken(user.clone())),
            None if token.expires <= seconds(now) => return Err(RegisterError::ExpiredToken),
            None => {}
        }
        if self.is_complete() {
            return Err(RegisterError::Complete);
        }
        self.check(member)?;
        self.members.insert(name.clone(), member.clone());
        if let Some(token) = self.tokens.get_mut(&id) {
            token.used_by = Some(name);
        }
        Ok(true)
    }

    fn check(&self, member: &Member) -> Result<(), RegisterError> {
        let Member { region, shard, peer, hosts, .. } = member;
        if !self.regions.contains(region) {
            return Err(RegisterError::UnknownRegion { region: region.clone(), known: self.regions.join(", ") });
        }
        if *shard >= self.sites_per_region {
            return Err(RegisterError::UnknownShard { shard: *shard, last: self.sites_per_region - 1 });
        }
        hosts.iter().try_for_each(|host| name::check_host(host))?;
        let name = member_name(region, *shard);
        if self.members.contains_key(&name) {
            return Err(RegisterError::Taken(name));
        }
        match self.members.iter().find(|(_, other)| other.peer == *peer) {
            Some((other, _)) => Err(RegisterError::Address { address: *peer, other: other.clone() }),
            None => Ok(()),
        }
    }
}

/// The register in `folder`, for reading.
pub fn read(folder: &Path) -> Result<Register, FileError> {
    let path = folder.join(REGISTER_FILE);
    serde_json::from_slice(&files::read_private(&path)?).map_err(|error| FileError::content(&path, format!("is no register: {error}")))
}

/// Makes the register in `folder`, which has none.
pub fn create(folder: &Path, register: &Register) -> Result<(), FileError> {
    write(folder, register)
}

/// Changes the register in `folder`, on disk before this returns; if `change` fails it stays as it was. One process at a time.
pub fn change<T, E: From<FileError>>(folder: &Path, change: impl FnOnce(&mut Register) -> Result<T, E>) -> Result<T, E> {
    let _lock = files::lock(folder)?;
    let before = read(folder)?;
    let mut register = before.clone();
    let changed = change(&mut register)?;
    if register != before {
        write(folder, &register)?;
    }
    Ok(changed)
}

fn write(folder: &Path, register: &Register) -> Result<(), FileError> {
    let text = serde_json::to_vec_pretty(register).expect("a register has a form in JSON");
    files::write_private(&folder.join(REGISTER_FILE), &text)
}

/// Seconds since the Unix epoch.
pub fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = UNIX_EPOCH;
    const HOUR: Duration = Duration::from_hours(1);

    fn member(region: &str, port: u16, request: &str) -> Member {
        Member { region: region.into(), shard: 0, peer: ([10, 0, 0, 1], port).into(), hosts: vec![], request: request.into() }
    }

    fn candidate(id: u8, member: Member) -> Candidate {
        Candidate { id: [id; 6], secret: TokenSecret([id; 32]), member }
    }

    fn new(regions: Vec<String>, sites_per_region: u16) -> Result<Register, RegisterError> {
        let site = SiteName::new("shop", "california", 0).expect("a name");
        Register::new(&site, ([10, 0, 0, 1], 8080).into(), regions, sites_per_region)
    }

    /// California has founded it, and there are the tokens 1 and 2.
    fn forming() -> Register {
        let regions = ["california", "virginia", "oregon"].map(String::from).to_vec();
        let mut register = new(regions, 1).expect("a shape");
        register.found(member("california", 1, "c")).expect("the first");
        for id in [1, 2] {
            register.add_token([id; 6], &TokenSecret([id; 32]), HOUR, NOW).expect("room");
        }
        register
    }

    fn refusal(register: &mut Register, candidate: &Candidate, now: SystemTime) -> String {
        let before = register.clone();
        let error = register.admit(candidate, now).expect_err("refused").to_string();
        assert_eq!(*register, before, "what is refused changes nothing");
        error
    }

    #[test]
    fn a_token_lets_one_site_in_once() {
        let mut register = forming();
        let virginia = candidate(1, member("virginia", 2, "v"));
        assert!(register.admit(&virginia, NOW).expect("let in"));
        assert_eq!(register.missing(), ["oregon-0"]);
        // The answer was lost: it asks again, even once the token has expired.
        let after = register.clone();
        assert!(!register.admit(&virginia, NOW + 2 * HOUR).expect("the same"));
        assert_eq!(register, after);
        let used = "the token was used already, by virginia-0; make another with `rhumb token create`";
        assert_eq!(refusal(&mut register, &candidate(1, member("oregon", 3, "o")), NOW), used);
        assert_eq!(refusal(&mut register, &candidate(1, member("virginia", 2, "another key")), NOW), used);
        assert!(refusal(&mut register, &candidate(2, member("virginia", 2, "v")), NOW).starts_with("virginia-0 has joined already"));
    }

    #[test]
    fn an_altered_expired_or_revoked_token_changes_nothing() {
        let mut register = forming();
        let virginia = candidate(1, member("virginia", 2, "v"));
        let altered = Candidate { secret: TokenSecret([9; 32]), ..virginia.clone() };
        assert!(refusal(&mut register, &altered, NOW).starts_with("the token is unknown here"));
        assert!(refusal(&mut register, &candidate(9, member("virginia", 2, "v")), NOW).starts_with("the token is unknown here"));
        assert_eq!(refusal(&mut register, &virginia, NOW + HOUR), "the token has expired; make another with `rhumb token create`");
        assert!(register.revoke(&hex::encode([1; 6])));
        assert!(!register.revoke(&hex::encode([1; 6])), "it is gone");
        assert!(refusal(&mut register, &virginia, NOW).starts_with("the token is unknown here"));
    }

    #[test]
    fn a_site_that_the_cluster_is_not_to_have_is_refused() {
        let mut register = forming();
        let mars = candidate(1, member("mars", 2, "m"));
        assert_eq!(
            refusal(&mut register, &mars, NOW),
            "the cluster is to have the regions california, virginia, oregon, and `mars` is none of them"
        );
        let second = candidate(1, Member { shard: 1, ..member("virginia", 2, "v") });
        assert_eq!(refusal(&mut register, &second, NOW), "there is no shard 1; regions have the shards 0 to 0");
        let taken = candidate(1, member("virginia", 1, "v"));
        assert_eq!(refusal(&mut register, &taken, NOW), "10.0.0.1:1 is the address of california-0 already");
        let host = candidate(1, Member { hosts: vec!["california-0.shop.rhumb.internal".into()], ..member("virginia", 2, "v") });
        assert!(refusal(&mut register, &host, NOW).contains("is no host name that a certificate may bear"));
    }

    #[test]
    fn nobody_joins_a_cluster_that_is_complete() {
        let mut register = forming();
        register.admit(&candidate(1, member("virginia", 2, "v")), NOW).expect("let in");
        register.add_token([3; 6], &TokenSecret([3; 32]), HOUR, NOW).expect("still forming");
        register.admit(&candidate(2, member("oregon", 3, "o")), NOW).expect("let in");
        assert!(register.is_complete());
        assert!(refusal(&mut register, &candidate(3, member("oregon", 3, "o")), NOW).starts_with("all sites have joined"));
        assert!(matches!(register.add_token([4; 6], &TokenSecret([4; 32]), HOUR, NOW), Err(RegisterError::Complete)));
    }

    #[test]
    fn a_register_is_read_back_and_keeps_no_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        create(folder.path(), &forming()).expect("made");
        let error = change(folder.path(), |register| {
            register.members.clear();
            Err::<(), _>(RegisterError::UnknownToken)
        });
        assert!(error.is_err());
        assert_eq!(read(folder.path()).expect("as before"), forming());
        change(folder.path(), |register| register.admit(&candidate(1, member("virginia", 2, "v")), NOW)).expect("let in");
        assert_eq!(read(folder.path()).expect("changed").missing(), ["oregon-0"]);
        let text = std::fs::read_to_string(folder.path().join(REGISTER_FILE)).expect("text");
        assert!(!text.contains(&hex::encode([1; 32])), "the digest alone is kept");
    }

    #[test]
    fn a_shape_that_cannot_be_is_refused() {
        assert!(matches!(new(vec![], 1), Err(RegisterError::Shape)));
        assert!(matches!(new(vec!["a".into(), "a".into()], 1), Err(RegisterError::Shape)));
        assert!(matches!(new(vec!["a".into()], 0), Err(RegisterError::Shape)));
        assert!(matches!(new(vec!["a.b".into()], 1), Err(RegisterError::Name(_))));
        let mut register = forming();
        for holds in [Duration::ZERO, TOKEN_HOLDS_MAX + HOUR] {
            assert!(matches!(register.add_token([5; 6], &TokenSecret([5; 32]), holds, NOW), Err(RegisterError::Holds)));
        }
    }
}
