//! When a site renews its certificate, and what it does where that fails.

use super::*;
use rhumb_security::authority::{Authority, CA_FILE, Subject};
use rhumb_security::name::SiteName;
use rhumb_security::tls::Files;
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

/// The site that holds the CA, in its folder.
struct First {
    folder: TempDir,
    authority: Authority,
    setup: TlsSetup,
    tls: Arc<Tls>,
}

impl First {
    fn new() -> First {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::create(folder.path(), "shop", SystemTime::now()).expect("made");
        let name = SiteName::new("shop", "california", 0).expect("a name");
        let (authorities, certificate) = (folder.path().join("ca.crt"), folder.path().join("site.pem"));
        let issued = authority.issue(&Subject::Site { name: name.clone(), hosts: vec![] }, SystemTime::now()).expect("signed");
        files::write_private(&authorities, authority.roots_pem().as_bytes()).expect("written");
        files::write_private(&certificate, issued.as_bytes()).expect("written");
        let files = Files { authorities, certificate: certificate.clone(), key: certificate };
        let tls = Tls::load(files.clone(), name).expect("whole");
        let setup = TlsSetup { files, ca: Some(folder.path().to_owned()), renewal: None, names: BTreeMap::new() };
        First { folder, authority, setup, tls }
    }

    async fn renew(&self) -> Result<bool, String> {
        renew(&self.tls, &self.setup).await.map(|renewed| renewed.is_some()).map_err(|failure| failure.to_string())
    }
}

#[tokio::test]
async fn a_rotation_is_followed_and_an_older_ca_that_is_put_back_is_not() {
    let mut first = First::new();
    let ca = first.folder.path().join(CA_FILE);
    let old = fs::read(&ca).expect("text");
    assert_eq!(first.renew().await, Ok(false), "it is not time");
    first.authority.rotate(SystemTime::now()).expect("rotated");
    assert!(first.authority.retire().is_err(), "no certificate of the new CA was shown");
    assert_eq!(first.renew().await, Ok(true));
    assert_eq!(first.tls.certificate().issuer, "Rhumb CA of shop 2");
    assert!(!first.setup.files.certificate.with_extension("next").exists());
    first.authority.retire().expect("it was shown at once");
    assert_eq!(first.renew().await, Ok(false));
    assert_eq!(first.tls.authorities().len(), 1);

    fs::write(&ca, old).expect("put back");
    let kept = || [&first.setup.files.authorities, &first.setup.files.certificate].map(|file| fs::read(file).expect("text"));
    let before = kept();
    let failure = first.renew().await.expect_err("it has not signed the certificate in use");
    assert!(failure.contains("was an older one put back?"), "{failure}");
    assert_eq!(kept(), before);
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_again_with_the_same_key() {
    let mut first = First::new();
    first.authority.rotate(SystemTime::now()).expect("rotated");
    let (key, _) = next_key(&first.setup.files.certificate).await.expect("made");
    let request = key.request().expect("a request");
    // The CA has noted it, and the site has died.
    authority::answer(first.folder.path(), Some(&first.tls.certificate()), Some(&request), SystemTime::now()).expect("answered");
    assert_eq!(first.renew().await, Ok(true));
    assert_eq!(first.tls.certificate().key, Authority::key_in(&request).expect("a request"));
}
