//! The secret that the sites of a cluster share: who proves to have it is believed, nobody else.
//!
//! It is a file of 32 random bytes, made once by [`Secret::create`] and copied to every site. It never leaves a site: what goes over a
//! connection is a proof, an HMAC-SHA256 over the random numbers of both sides ([`crate::transport::frame`]).
//!
//! Invariants: a file that others than its owner can read is refused, and so is one that holds fewer bytes; nothing prints the secret.

use hmac::{Hmac, KeyInit, Mac};
use rhumb_security::files::{self, FileError};
use sha2::Sha256;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The bytes of a secret.
pub const SECRET_BYTES: usize = 32;
/// The bytes of a proof.
pub const PROOF_BYTES: usize = 32;
/// A longer file is none of ours, and is not read to its end.
const FILE_BYTES_MAX: u64 = 1_024;
/// The permissions that only a file's owner has none of.
const OTHERS: u32 = 0o077;

/// The secret of a cluster.
#[derive(Clone)]
pub struct Secret([u8; SECRET_BYTES]);

/// Why a secret cannot be read or made.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum SecretError {
    #[error(
        "{shown} is not there: sites believe only who has the secret of their cluster. Make one with `rhumb secret {shown}`, once, and copy \
         that file to every site", shown = .path.display()
    )]
    Missing { path: PathBuf },
    #[error(
        "{shown} can be read by others than its owner (mode {mode:03o}): run `chmod 600 {shown}`; if others may have read it, give all sites a \
         new one, made with `rhumb secret FILE`", shown = .path.display()
    )]
    Open { path: PathBuf, mode: u32 },
    #[error("{} holds no secret: expected {} hexadecimal digits, as `rhumb secret FILE` writes them", .path.display(), 2 * SECRET_BYTES)]
    Text { path: PathBuf },
    #[error("{} is there already; a cluster keeps its secret, and a new one needs a file of its own", .path.display())]
    Exists { path: PathBuf },
    #[error("{} cannot be read or written: {reason}", .path.display())]
    Io { path: PathBuf, reason: io::Error },
}

impl Secret {
    /// The secret of these bytes.
    pub fn of(bytes: [u8; SECRET_BYTES]) -> Secret {
        Secret(bytes)
    }

    /// A new one, which nobody else has.
    pub fn random() -> io::Result<Secret> {
        random().map(Secret)
    }

    /// Makes a new one in the file `path`, which only its owner can read and which is not there yet.
    pub fn create(path: &Path) -> Result<(), SecretError> {
        let io = |reason| SecretError::Io { path: path.to_owned(), reason };
        let text = hex::encode(random::<SECRET_BYTES>().map_err(io)?) + "\n";
        // Whole or not at all: half a secret would be none for ever.
        files::create_private(path, text.as_bytes()).map_err(|error| match error {
            FileError::Io { reason, .. } if reason.kind() == io::ErrorKind::AlreadyExists => SecretError::Exists { path: path.to_owned() },
            FileError::Io { reason, .. } => io(reason),
            error => io(io::Error::other(error)),
        })
    }

    /// The one in the file `path`.
    pub fn load(path: &Path) -> Result<Secret, SecretError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => SecretError::Missing { path: path.to_owned() },
            _ => SecretError::Io { path: path.to_owned(), reason: error },
        };
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            return Err(SecretError::Open { path: path.to_owned(), mode });
        }
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
        let mut bytes = [0; SECRET_BYTES];
        hex::decode_to_slice(text.trim_ascii(), &mut bytes).map_err(|_| SecretError::Text { path: path.to_owned() })?;
        Ok(Secret(bytes))
    }

    /// Proves over `parts` that whoever says them has the secret.
    pub fn prove(&self, parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// True if `proof` is that of `parts`. Takes as long whatever it is.
    pub fn proves(&self, parts: &[&[u8]], proof: &[u8; PROOF_BYTES]) -> bool {
        self.mac(parts).verify_slice(proof).is_ok()
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Random bytes of the system.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn error(path: &Path) -> String {
        Secret::load(path).expect_err("refused").to_string()
    }

    #[test]
    fn a_secret_is_made_once_and_read_back_by_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cluster.secret");
        let shown = path.display();
        assert_eq!(
            error(&path),
            format!(
                "{shown} is not there: sites believe only who has the secret of their cluster. Make one with `rhumb secret {shown}`, once, \
                 and copy that file to every site"
            )
        );
        Secret::create(&path).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).expect("text");
        assert_eq!(
            Secret::create(&path).expect_err("it is kept").to_string().split(';').next(),
            Some(&*format!("{shown} is there already"))
        );
        assert_eq!(fs::read_to_string(&path).expect("text"), text);
        let secret = Secret::load(&path).expect("its owner reads it");
        assert_eq!(hex::encode(secret.0) + "\n", text);
        assert_eq!(format!("{secret:?}"), "Secret");

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        assert!(error(&path).starts_with(&format!("{shown} can be read by others than its owner (mode 640): run `chmod 600 {shown}`;")));
    }

    #[test]
    fn what_is_too_short_too_long_or_no_number_is_no_secret() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cluster.secret");
        for text in ["", "ab", &"ab".repeat(31), &"ab".repeat(33), &"xy".repeat(32)] {
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
            let expected = "holds no secret: expected 64 hexadecimal digits, as `rhumb secret FILE` writes them";
            assert_eq!(error(&path), format!("{} {expected}", path.display()), "{text}");
        }
    }

    #[test]
    fn a_proof_is_that_of_its_parts_and_of_its_secret() {
        // RFC 4231, test case 2, with the key padded as HMAC pads it.
        let mut key = [0; SECRET_BYTES];
        key[..4].copy_from_slice(b"Jefe");
        let secret = Secret::of(key);
        let proof = secret.prove(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(hex::encode(proof), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert!(secret.proves(&[b"what do ya want for nothing?"], &proof));
        assert!(!secret.proves(&[b"what do ya want for nothing!"], &proof));
        assert!(!Secret::of([1; SECRET_BYTES]).proves(&[b"what do ya want for nothing?"], &proof));
    }
}
