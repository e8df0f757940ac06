//! The configuration of a site: never panics, neither on its syntax nor on what it means; what is read is written back as
//! a file that says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_node::config::{Config, Setup};
use std::path::Path;

fuzz_target!(|text: &str| {
    let Ok(config) = Config::parse("site.toml", text) else { return };
    let written = config.to_toml();
    let reread = Config::parse("site.toml", &written).expect("what is written can be read");
    assert_eq!(reread.to_toml(), written);
    // The target `matrix` reads such files; here the input would choose which.
    if config.wan.as_ref().is_some_and(|wan| wan.file.is_some()) {
        return;
    }
    if let Ok(setup) = Setup::new(config, "site.toml", Path::new("/")) {
        assert!(setup.topology.sites().all(|site| setup.addresses.contains_key(&site) && !setup.name(site).is_empty()));
        setup.fingerprint();
    }
});
