//! What the CA issues, keeps and refuses.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::time::UNIX_EPOCH;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn site(region: &str, hosts: &[&str]) -> Subject {
    let name = SiteName::new("shop", region, 0).expect("a name");
    Subject::Site { name, hosts: hosts.iter().map(|host| (*host).to_owned()).collect() }
}

fn first(pem: &str) -> Certificate {
    Certificate::read(&certificate::all_of(pem.as_bytes()).expect("PEM")[0]).expect("a certificate")
}

#[test]
fn a_site_gets_the_names_that_it_is_given_and_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::create(folder.path(), "shop", now()).expect("made");
    // A request that asks to be a CA under another site's name.
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut wishes = CertificateParams::new(vec!["virginia-0.shop.rhumb.internal".to_owned()]).expect("names");
    wishes.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let request = wishes.serialize_request(&key).and_then(|request| request.pem()).expect("a request");
    let leaf = first(&authority.sign(&request, &site("california", &["localhost", "db.example.com"]), now()).expect("signed"));
    assert_eq!(leaf.names, ["california-0.shop.rhumb.internal", "localhost", "db.example.com"]);
    assert_eq!(leaf.sites(), [SiteName::new("shop", "california", 0).expect("a name")]);
    assert!(!leaf.is_authority && leaf.serves);
    assert_eq!((leaf.from, leaf.until), (now() - CLOCK_SLACK, now() + LEAF_HOLDS));
    assert_eq!(leaf.issuer, "Rhumb CA of shop 1");
    assert!(
        !leaf.is_due(now()) && !leaf.is_due(now() + LEAF_HOLDS / 2) && leaf.is_due(now() + LEAF_HOLDS * 7 / 10) && leaf.is_due(leaf.until)
    );

    let ahead = first(&authority.issue(&site("california", &[]), now() + LEAF_HOLDS).expect("signed"));
    assert!(ahead.is_due(now()), "made while a clock was ahead");
    let root = Certificate::read(&authority.roots()[0]).expect("a certificate");
    let other = Authority::create(tempfile::tempdir().expect("a folder").path(), "shop", now()).expect("made");
    let other = Certificate::read(&other.roots()[0]).expect("a certificate");
    assert!(leaf.is_signed_by(&root) && leaf.issuer == other.subject && !leaf.is_signed_by(&other), "of one name and two keys");

    assert_eq!(Subject::of(&leaf), Some(site("california", &["localhost", "db.example.com"])));

    let admin = first(&authority.issue(&Subject::Client { user: "root".into() }, now()).expect("signed"));
    assert_eq!((admin.subject.as_str(), admin.serves, admin.names.len()), ("root", false, 0));
    assert_eq!(Subject::of(&admin), Some(Subject::Client { user: "root".into() }));
    assert_eq!(Subject::of(&Certificate::read(&authority.roots()[0]).expect("a certificate")), None);
}

#[test]
fn what_is_no_request_or_asks_for_a_foreign_name_is_not_signed() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::create(folder.path(), "shop", now()).expect("made");
    let request = Key::new().and_then(|key| key.request()).expect("a request");
    let refused = |request: &str, subject| authority.sign(request, &subject, now()).expect_err("refused").to_string();
    for bad in ["", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", &"x".repeat(REQUEST_BYTES_MAX + 1)] {
        assert_eq!(refused(bad, site("california", &[])), "the request for a certificate is none, or is not signed by the key it is about");
    }
    let other = refused(&request, site("california", &["virginia-0.shop.rhumb.internal"]));
    assert!(other.contains("is no host name that a certificate may bear"), "{other}");
    let hosts: Vec<String> = (0..=HOSTS_MAX).map(|index| format!("h{index}")).collect();
    let many = refused(&request, site("california", &hosts.iter().map(String::as_str).collect::<Vec<_>>()));
    assert_eq!(many, format!("the certificate bears {} names besides the site's own; at most {HOSTS_MAX} are allowed", HOSTS_MAX + 1));
}

#[test]
fn the_ca_is_read_back_and_its_key_is_its_owners_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Authority::create(folder.path(), "shop", now()).expect("made");
    let path = folder.path().join(CA_FILE);
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert!(matches!(Authority::create(folder.path(), "shop", now()), Err(AuthorityError::Exists(_))));
    let opened = Authority::open(folder.path()).expect("opened");
    assert_eq!((opened.cluster(), opened.fingerprint()), ("shop", made.fingerprint()));
    let shown = format!("{opened:?} {:?}", Key::new());
    assert!(!shown.contains("PRIVATE"), "{shown}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
    let error = Authority::open(folder.path()).expect_err("others can read it").to_string();
    assert!(error.contains("can be read by others") && !error.contains("PRIVATE"), "{error}");
}

#[test]
fn a_rotation_is_carried_through_reopening_and_ends_with_the_old_root_retired() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut authority = Authority::create(folder.path(), "shop", now()).expect("made");
    let old = authority.fingerprint();
    authority.rotate(now()).expect("rotated");
    let mut authority = Authority::open(folder.path()).expect("opened");
    assert_ne!(authority.fingerprint(), old);
    assert_eq!(authority.roots().iter().map(|root| certificate::fingerprint(root)).collect::<Vec<_>>(), [authority.fingerprint(), old]);
    let leaf = authority.issue(&site("california", &[]), now()).expect("signed");
    let chain = certificate::all_of(leaf.as_bytes()).expect("PEM");
    assert_eq!(chain.len(), 2, "the leaf, and the new root signed by the old");
    let cross = Certificate::read(&chain[1]).expect("a certificate");
    assert_eq!((cross.subject.as_str(), cross.issuer.as_str()), ("Rhumb CA of shop 2", "Rhumb CA of shop 1"));
    assert_eq!(authority.retire().expect("retired"), 1);
    let authority = Authority::open(folder.path()).expect("opened");
    assert_eq!(authority.roots().len(), 1);
    let leaf = authority.issue(&site("california", &[]), now()).expect("signed");
    assert_eq!(certificate::all_of(leaf.as_bytes()).expect("PEM").len(), 1);
}

#[test]
fn two_rotations_at_a_time_are_one_after_the_other_and_the_second_waits_for_the_end_of_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut one = Authority::create(folder.path(), "shop", now()).expect("made");
    let mut other = Authority::open(folder.path()).expect("opened");
    one.rotate(now()).expect("rotated");
    // It was read before the first rotation, and would undo that.
    assert!(matches!(other.rotate(now()), Err(AuthorityError::Unretired)));
    let kept = Authority::open(folder.path()).expect("opened");
    assert_eq!((kept.fingerprint(), kept.roots().len()), (one.fingerprint(), ROOTS_MAX));
    assert_eq!(other.retire().expect("retired"), 1);
    other.rotate(now()).expect("rotated");
    assert_eq!(Authority::open(folder.path()).expect("opened").fingerprint(), other.fingerprint());
}

#[test]
fn nothing_is_retired_before_all_sites_have_shown_certificates_of_the_present_ca() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut authority = Authority::create(folder.path(), "shop", now()).expect("made");
    let virginia = SiteName::new("shop", "virginia", 0).expect("a name");
    let regions = vec!["virginia".to_owned()];
    let register = register::Register::new(&virginia, ([10, 0, 0, 1], 8080).into(), regions, 1).expect("a shape");
    register::create(folder.path(), &register).expect("made");
    authority.rotate(now()).expect("rotated");
    let before = std::fs::read(folder.path().join(CA_FILE)).expect("text");
    let error = authority.retire().expect_err("it is down").to_string();
    assert!(error.starts_with("virginia-0.shop.rhumb.internal would be believed by nobody"), "{error}");
    assert_eq!(std::fs::read(folder.path().join(CA_FILE)).expect("text"), before, "what is refused changes nothing");
    let shown = first(&authority.issue(&site("virginia", &[]), now()).expect("signed"));
    holders::show(folder.path(), &virginia, &shown).expect("noted");
    assert_eq!(authority.retire().expect("retired"), 1);
}

#[test]
fn a_request_is_about_the_key_that_its_certificate_is_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::create(folder.path(), "shop", now()).expect("made");
    let request = Key::new().and_then(|key| key.request()).expect("a request");
    let leaf = first(&authority.sign(&request, &site("california", &[]), now()).expect("signed"));
    assert_eq!(Authority::key_in(&request).expect("a request"), leaf.key);
    assert!(matches!(Authority::key_in(&"x".repeat(REQUEST_BYTES_MAX + 1)), Err(AuthorityError::Request)));
}

#[test]
fn a_stolen_certificate_gets_none_of_a_new_ca() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut authority = Authority::create(folder.path(), "shop", now()).expect("made");
    let virginia = SiteName::new("shop", "virginia", 0).expect("a name");
    let shown = first(&authority.issue(&site("virginia", &["db.example.com"]), now()).expect("signed"));
    let ask = |by: &Certificate, request: &str| answer(folder.path(), Some(by), Some(request), now()).map(|answer| answer.certificate);
    let [own, thief] = [(); 2].map(|()| Key::new().and_then(|key| key.request()).expect("a request"));
    authority.rotate(now()).expect("rotated");
    let renewed = ask(&shown, &own).expect("its holder asks").expect("a certificate");
    assert!(ask(&shown, &thief).is_err_and(|error| matches!(error, AuthorityError::Holder(HolderError::Superseded(_)))));
    let renewed = first(&renewed);
    assert_eq!((renewed.issuer.as_str(), &renewed.names), ("Rhumb CA of shop 2", &shown.names));
    // The thief has come first: a certificate made at the CA ends that.
    let stolen = first(&ask(&renewed, &thief).expect("by its copy").expect("a certificate"));
    assert!(ask(&renewed, &own).is_err());
    let replaced = first(&authority.replace(&virginia, vec![], now()).expect("made"));
    assert!(ask(&stolen, &thief).is_err());
    assert_eq!(authority.retire().expect("what is made here is by the present CA"), 1);
    ask(&replaced, &own).expect("its holder asks");
    // Those of clients are made by hand, so that there is nothing to renew for a thief.
    let client = first(&authority.issue(&Subject::Client { user: "root".into() }, now()).expect("signed"));
    assert!(matches!(ask(&client, &own), Err(AuthorityError::NotRenewed)));
    assert!(answer(folder.path(), Some(&client), None, now()).expect("the authorities").certificate.is_none());
    assert!(matches!(answer(folder.path(), None, Some(&own), now()), Err(AuthorityError::NotRenewed)));
}
