//! A process of the same machine that is no site of the cluster says hello to one: the cluster goes on, and remembers nothing of it.

use crate::common::{Demo, get, lives, until};
use rhumb_config::{Config, Setup};
use rhumb_core::SiteId;
use rhumb_node::incarnation::Progress;
use rhumb_node::secret::Secret;
use rhumb_node::transport::frame::{GREETING_BYTES, Greeting, Greetings, Hello, NONCE_BYTES, Side};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

#[test]
fn a_process_without_the_secret_neither_ends_a_site_nor_leaves_a_trace() {
    let demo = Demo::start(&["--wan", "none", "--regions", "3"]);
    let running = demo.running();
    let sites = running["sites"].as_array().expect("sites");
    let text = |site: &Value, name: &str| site[name].as_str().expect("text").to_owned();
    let setups = sites.iter().map(|site| Config::load(&PathBuf::from(text(site, "config"))).expect("whole"));
    let setups: Vec<_> = setups.collect();
    // Region, shard and incarnation of each site heard; how often its stores have synced since is no matter here.
    let kept = || -> Vec<Vec<String>> {
        let text = |setup: &Setup| std::fs::read_to_string(setup.data_dir.join("PEERS")).unwrap_or_default();
        let names = |line: &str| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
        setups.iter().map(|setup| text(setup).lines().map(names).collect()).collect()
    };
    until("all have met", || kept().iter().all(|peers| peers.len() == 2));
    let (pids, before) = (demo.pids(), kept());
    for setup in &setups {
        let others = setup.topology.sites().filter(|site| *site != setup.site);
        for from in others.chain([setup.site, SiteId::new(9, 9)]) {
            let connecting = Greeting { nonce: [0; NONCE_BYTES] };
            let mut stream = TcpStream::connect(setup.addresses[&setup.site]).expect("it listens");
            stream.write_all(&connecting.encode()).expect("sent");
            let mut bytes = [0; GREETING_BYTES];
            stream.read_exact(&mut bytes).expect("it greets");
            let greetings = Greetings { connecting, accepting: Greeting::decode(&bytes).expect("a greeting") };
            let heard = Progress { incarnation: 12_345, ..Progress::default() };
            // Of an incarnation that would outlive all, by one that has heard an incarnation of the site that it never had.
            let hello = Hello { cluster: setup.fingerprint(), site: from, to: setup.site, incarnation: u64::MAX, heard };
            stream.write_all(&hello.seal(&Secret::of([0; 32]), &greetings, Side::Connecting)).expect("sent");
            assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "it is told nothing");
        }
    }
    for site in sites {
        let metrics = get(&text(site, "http"), "/metrics");
        assert!(metrics.contains("\nrhumb_peer_connections_unproven_total 4\n"), "{metrics}");
    }
    assert_eq!(kept(), before);
    assert_eq!(demo.pids(), pids);
    assert!(pids.into_iter().all(lives));
}
