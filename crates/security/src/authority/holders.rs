//! Who holds the present certificate of each site, by the key of it; a file beside the CA.
//!
//! ```text
//!   shown for the first time ──▶ key A ──renewed by the owner of A──▶ key B ──renewed by the owner of B──▶ …
//! ```
//! A certificate is renewed by whoever holds the last one that was given out, so a copy that was stolen is worth nothing once its owner has renewed; and if
//! the thief comes first, the owner is refused and says so. Then a certificate that is made at the CA takes the place of both.
//!
//! An answer can be lost: whoever asks again with the same key as before, for the same new key, is answered again until the new certificate was shown.
//!
//! Invariant: of one key at most one other is made.

use crate::certificate::{Certificate, Fingerprint};
use crate::files::{self, FileError};
use crate::name::SiteName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;

const HOLDERS_FILE: &str = "holders.json";

/// The holders, by the names of their sites.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Holders(BTreeMap<String, Holder>);

/// Of one site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Holder {
    /// The SHA-256 of its public key, in hexadecimal digits.
    key: String,
    /// That of the key before, until the new one was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Which key of the CA has signed the certificate that was shown last, or made at the CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
}

/// Why a certificate is not renewed. Nothing has changed then.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum HolderError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "another key than that of this certificate was given the present one of {0}: if the site has not renewed it itself, its key was \
         stolen. `rhumb cert issue --site {0}` makes one that takes the place of all before"
    )]
    Superseded(SiteName),
}

fn signer(certificate: &Certificate) -> Option<String> {
    certificate.signer_id.as_ref().map(hex::encode)
}

impl Holders {
    /// True if a certificate of `site` was shown already.
    pub fn knows(&self, site: &SiteName) -> bool {
        self.0.contains_key(&site.to_string())
    }

    /// Those of `sites`, or of all that are known, that have shown no certificate yet that the key of `authority` has signed.
    pub fn behind(&self, sites: Option<Vec<String>>, authority: &Certificate) -> Vec<String> {
        let present = authority.key_id.as_ref().map(hex::encode);
        let is_behind = |site: &String| self.0.get(site).is_none_or(|holder| holder.signer != present);
        sites.unwrap_or_else(|| self.0.keys().cloned().collect()).into_iter().filter(is_behind).collect()
    }

    /// The certificate of `site` was shown.
    fn show(&mut self, site: &SiteName, certificate: &Certificate) {
        let key = hex::encode(certificate.key);
        let holder = self.0.entry(site.to_string()).or_insert_with(|| Holder { key: key.clone(), before: None, signer: None });
        if holder.key == key {
            (holder.before, holder.signer) = (None, signer(certificate));
        }
    }

    /// Has the holder of `certificate` hold one of the key `new`.
    fn renew(&mut self, site: &SiteName, certificate: &Certificate, new: &Fingerprint) -> Result<(), HolderError> {
        let (old, new) = (hex::encode(certificate.key), hex::encode(new));
        let holder =
            self.0.entry(site.to_string()).or_insert_with(|| Holder { key: old.clone(), before: None, signer: signer(certificate) });
        if holder.key == old {
            *holder = Holder { key: new, before: Some(old), signer: holder.signer.take() };
            Ok(())
        } else if holder.before.as_ref() == Some(&old) && holder.key == new {
            Ok(())
        } else {
            Err(HolderError::Superseded(site.clone()))
        }
    }
}

/// The holders in the folder of the CA, for reading.
pub fn read(folder: &Path) -> Result<Holders, FileError> {
    let path = folder.join(HOLDERS_FILE);
    match files::read_private(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| FileError::content(&path, format!("names no holders: {error}"))),
        Err(error) if error.is_missing() => Ok(Holders::default()),
        Err(error) => Err(error),
    }
}

fn change<T>(folder: &Path, change: impl FnOnce(&mut Holders) -> Result<T, HolderError>) -> Result<T, HolderError> {
    let _lock = files::lock(folder)?;
    let before = read(folder)?;
    let mut holders = before.clone();
    let changed = change(&mut holders)?;
    if holders != before {
        let text = serde_json::to_vec_pretty(&holders).expect("holders have a form in JSON");
        files::write_private(&folder.join(HOLDERS_FILE), &text)?;
    }
    Ok(changed)
}

/// Notes in the folder of the CA that `certificate` of `site` was shown.
pub fn show(folder: &Path, site: &SiteName, certificate: &Certificate) -> Result<(), HolderError> {
    let mut holders = read(folder)?;
    let before = holders.clone();
    holders.show(site, certificate);
    // Most often it was shown before: then nobody waits for the lock.
    if holders == before {
        return Ok(());
    }
    change(folder, |holders| {
        holders.show(site, certificate);
        Ok(())
    })
}

/// Notes in the folder of the CA that the holder of `certificate`, which is that of `site`, is given one of the key `new`, before he is.
pub fn renew(folder: &Path, site: &SiteName, certificate: &Certificate, new: &Fingerprint) -> Result<(), HolderError> {
    change(folder, |holders| holders.renew(site, certificate, new))
}

/// Notes that `certificate` was made at the CA for `site`, and takes the place of all before.
pub fn replace(folder: &Path, site: &SiteName, certificate: &Certificate) -> Result<(), HolderError> {
    change(folder, |holders| {
        holders.0.remove(&site.to_string());
        holders.show(site, certificate);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{Authority, Subject};
    use crate::certificate;
    use std::time::SystemTime;

    fn site() -> SiteName {
        SiteName::new("shop", "virginia", 0).expect("a name")
    }

    fn issued(authority: &Authority) -> Certificate {
        let text = authority.issue(&Subject::Site { name: site(), hosts: vec![] }, SystemTime::now()).expect("signed");
        Certificate::read(&certificate::all_of(text.as_bytes()).expect("PEM")[0]).expect("a certificate")
    }

    #[test]
    fn a_certificate_is_renewed_once_by_its_holder_and_a_copy_of_an_older_one_never() {
        let folder = tempfile::tempdir().expect("a folder");
        let ca = Authority::create(folder.path(), "shop", SystemTime::now()).expect("made");
        let [first, second, third, fourth] = [(); 4].map(|()| issued(&ca));
        let renew = |by: &Certificate, to: &Certificate| renew(folder.path(), &site(), by, &to.key).map_err(|error| error.to_string());
        assert!(!read(folder.path()).expect("none").knows(&site()));
        renew(&first, &second).expect("it is the only one");
        // The answer was lost.
        renew(&first, &second).expect("asked again");
        assert!(renew(&first, &third).expect_err("by a thief").contains("its key was stolen"));
        show(folder.path(), &site(), &second).expect("noted");
        assert!(renew(&first, &second).is_err(), "the answer has come");
        show(folder.path(), &site(), &first).expect("told in vain");
        renew(&second, &third).expect("it is its turn");
        assert!(renew(&second, &fourth).is_err());
        // The thief has the third: one that is made at the CA ends that.
        replace(folder.path(), &site(), &fourth).expect("noted");
        assert!([&first, &second, &third].into_iter().all(|old| renew(old, &second).is_err()));
        renew(&fourth, &first).expect("it is the only one");
    }

    #[test]
    fn who_has_shown_no_certificate_of_the_present_ca_is_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut ca = Authority::create(folder.path(), "shop", SystemTime::now()).expect("made");
        let behind = |ca: &Authority, sites: Option<Vec<String>>| {
            read(folder.path()).expect("readable").behind(sites, &Certificate::read(&ca.roots()[0]).expect("a certificate"))
        };
        let all = vec![site().to_string(), "oregon-0.shop.rhumb.internal".to_owned()];
        assert_eq!(behind(&ca, None), Vec::<String>::new());
        assert_eq!(behind(&ca, Some(all.clone())), all);
        let old = issued(&ca);
        show(folder.path(), &site(), &old).expect("noted");
        assert_eq!(behind(&ca, Some(all.clone())), all[1..]);
        ca.rotate(SystemTime::now()).expect("rotated");
        assert_eq!(behind(&ca, None), all[..1]);
        let new = issued(&ca);
        renew(folder.path(), &site(), &old, &new.key).expect("its holder asks");
        assert_eq!(behind(&ca, None), all[..1], "nobody knows yet whether the answer has come");
        show(folder.path(), &site(), &new).expect("noted");
        assert_eq!(behind(&ca, None), Vec::<String>::new());
    }
}
