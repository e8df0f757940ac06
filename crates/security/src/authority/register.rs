//! The register of the CA: which tokens there are, of which sites a cluster is to consist, and which of them have joined.
//!
//! ```text
//!   Register::create ──▶ forming ──admit: one token, one site──▶ … ──▶ complete: the cluster opens, and nobody is admitted any more
//! ```
//! The protocols count majorities among regions that are fixed when a cluster begins, so all sites join before it opens
//! (docs/decisions/0042-tls.md).
//!
//! A token may be for one site alone, and says which names besides the site's own its certificate may bear: whoever joins chooses none.
//!
//! A token is used up, and the site that came with it entered, in one write of one file: a crash leaves both or neither. Whoever got no answer asks again
//! with the same token, key and wishes, and is answered the same, until it has shown the certificate or the token has expired.
//!
//! Invariants: a token lets in one key, once; a site is of one key; a register that is complete stays as it is. Of a token only the SHA-256 of its secret is
//! kept.

use crate::files::{self, FileError};
use crate::name::{self, NameError, SiteName};
use crate::token::{Token, TokenId, TokenSecret};
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
    /// The site that it is for, `REGION-SHARD`; any that is missing if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The further names that a certificate may bear which is given for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// What a token is to be good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The site that may come with it, `REGION-SHARD`; any that is missing if there is none.
    pub site: Option<String>,
    /// The further names that its certificate may bear.
    pub names: Vec<String>,
    /// It holds so long.
    pub holds: Duration,
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
    #[error("the token is for {0}; make another with `rhumb token create`")]
    OtherSite(String),
    #[error(
        "the token is for no site that is called `{0}`: make one with `rhumb token create --name {0}`, or join by address and without the name"
    )]
    UngrantedName(String),
    #[error("{0} is no site that is missing; `rhumb token create` without --site makes a token for any")]
    NotMissing(String),
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

    /// Enters a token, which holds from `now`: until when, in seconds since the Unix epoch. Those that have expired unused make room.
    pub fn add_token(&mut self, id: TokenId, secret: &TokenSecret, grant: Grant, now: SystemTime) -> Result<u64, RegisterError> {
        let Grant { site, names, holds } = grant;
        if self.is_complete() {
            return Err(RegisterError::Complete);
        }
        if !(Duration::from_mins(1)..=TOKEN_HOLDS_MAX).contains(&holds) {
            return Err(RegisterError::Holds);
        }
        if let Some(site) = site.as_ref().filter(|site| !self.missing().contains(site)) {
            return Err(RegisterError::NotMissing(site.clone()));
        }
        names.iter().try_for_each(|name| name::check_host(name))?;
        self.tokens.retain(|_, token| token.used_by.is_some() || token.expires > seconds(now));
        if self.tokens.len() >= TOKENS_MAX {
            return Err(RegisterError::TooManyTokens);
        }
        let expires = seconds(now + holds);
        let issued = Issued { digest: hex::encode(secret.digest()), expires, used_by: None, site, names };
        self.tokens.insert(hex::encode(id), issued);
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

    /// True if `token` is one of these, and lets somebody in at `now`.
    pub fn is_unused(&self, token: &Token, now: SystemTime) -> bool {
        self.token(&token.id, &token.secret).is_ok_and(|issued| issued.used_by.is_none() && issued.expires > seconds(now))
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

    /// Whether there is a token of this id and secret.
    pub fn check_token(&self, id: &TokenId, secret: &TokenSecret) -> Result<(), RegisterError> {
        self.token(id, secret).map(drop)
    }

    fn token(&self, id: &TokenId, secret: &TokenSecret) -> Result<&Issued, RegisterError> {
        // What is compared is the digest, which tells nothing of how near another secret comes.
        let token = self.tokens.get(&hex::encode(id)).filter(|token| token.digest == hex::encode(secret.digest()));
        token.ok_or(RegisterError::UnknownToken)
    }

    /// Lets a site in, or says why not. True if it is new; false if it asks once more, as it may until it `has_arrived`: shown its certificate.
    pub fn admit(&mut self, candidate: &Candidate, has_arrived: bool, now: SystemTime) -> Result<bool, RegisterError> {
        let Candidate { id, secret, member } = candidate;
        let name = member_name(&member.region, member.shard);
        let token = self.token(id, secret)?;
        let has_expired = token.expires <= seconds(now);
        match &token.used_by {
            // A copy of its folder would ask in the same words: so not for ever.
            Some(user) if *user == name && self.members.get(user) == Some(member) && !has_expired && !has_arrived => return Ok(false),
            Some(user) => return Err(RegisterError::UsedToken(user.clone())),
            None if has_expired => return Err(RegisterError::ExpiredToken),
            None => {}
        }
        if self.is_complete() {
            return Err(RegisterError::Complete);
        }
        self.check(member)?;
        token.check(&name, member)?;
        self.members.insert(name.clone(), member.clone());
        if let Some(token) = self.tokens.get_mut(&hex::encode(id)) {
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

impl Issued {
    /// Whether it is for the site `name`, and for all names that the certificate of that is to bear.
    fn check(&self, name: &str, member: &Member) -> Result<(), RegisterError> {
        if let Some(site) = self.site.as_ref().filter(|site| *site != name) {
            return Err(RegisterError::OtherSite(site.clone()));
        }
        // Every machine is called so by itself.
        let is_own = |host: &String| host == "localhost" && member.peer.ip().is_loopback();
        match member.hosts.iter().find(|host| !self.names.contains(host) && !is_own(host)) {
            Some(host) => Err(RegisterError::UngrantedName(host.clone())),
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
mod tests;
