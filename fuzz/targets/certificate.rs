//! A certificate, a file of them, and the names in one: never panics; the name of a site is written in one way, and no host that a certificate may bear is one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_security::certificate::{Certificate, NAMES_MAX, all_of};
use rhumb_security::name::{SiteName, check_host};

fuzz_target!(|data: &[u8]| {
    if let Ok(certificate) = Certificate::read(data) {
        assert!(certificate.names.len() <= NAMES_MAX);
        certificate.names.iter().for_each(|name| look(name));
    }
    let _ = all_of(data);
    if let Ok(text) = std::str::from_utf8(data) {
        look(text);
    }
});

fn look(text: &str) {
    if let Ok(name) = text.parse::<SiteName>() {
        assert_eq!(name.to_string(), text);
        assert!(check_host(text).is_err());
    }
}
