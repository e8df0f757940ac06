//! The configuration of a site or of a cluster: never panics, neither on its syntax nor on what it means; what is read is written back as
//! a file that says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rhumb_config::{Cluster, Config, Setup};
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Ok(cluster) = Cluster::parse("cluster.toml", text) {
        let written = cluster.to_toml();
        assert_eq!(Cluster::parse("cluster.toml", &written).expect("what is written can be read").to_toml(), written);
        if cluster.wan.as_ref().is_none_or(|wan| wan.file.is_none()) && cluster.check("cluster.toml", Path::new("/")).is_ok() {
            assert!(cluster.regions.iter().all(|region| cluster.setup(&region.name, 0, "cluster.toml", Path::new("/")).is_ok()));
        }
    }
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
