//! Sites over loopback TCP: delay, order, reconnects, faults, bounds, and unproven connections.

use crate::common::{self, Request, Toy, cluster, configure, echo, start, until};
use rhumb_config::Wan;
use rhumb_core::{SiteId, Span, Time};
use rhumb_node::clock::Clock;
use rhumb_node::incarnation::{PEERS, Progress};
use rhumb_node::metrics::Metrics;
use rhumb_node::secret::Secret;
use rhumb_node::service::Service;
use rhumb_node::site::Site;
use rhumb_node::transport::frame::{
    FRAME_BYTES_MAX, GREETING_BYTES, Greeting, Greetings, HELLO_BYTES, Hello, Kind, NONCE_BYTES, PING_BYTES, Side, encode,
};
use rhumb_node::transport::{Direction, Fault};
use rhumb_store::{MemoryEngine, Store};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CALIFORNIA: SiteId = SiteId::new(0, 0);
const VIRGINIA: SiteId = SiteId::new(1, 0);

fn wan() -> Option<Wan> {
    Some(Wan { profile: Some("paper_replicated_commit_5".into()), jitter_ms: 2.0, ..Wan::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_echo_over_the_wide_area_takes_a_round_trip_and_one_within_a_site_takes_none() {
    let sites = cluster(&["california", "virginia"], wan()).await;
    let handle = sites[0].handle();
    echo(&handle, VIRGINIA, "first").await;
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(echo(&handle, VIRGINIA, "far").await, "far");
        assert!(begun.elapsed() >= Duration::from_millis(86), "{:?}", begun.elapsed());
        // No upper bound is asserted; but were the own site's messages delayed too, this would find the far one first.
        let (far, near) = (echo(&handle, VIRGINIA, "far"), echo(&handle, CALIFORNIA, "near"));
        tokio::select! { biased; _ = far => panic!("the far echo was first"), near = near => assert_eq!(near, "near") }
    }
    let rtt = sites[0].status().peers()[0].rtt.expect("pinged by now");
    assert!(rtt >= Span::from_millis(86), "{rtt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jitter_keeps_the_order_of_a_link() {
    let sites = cluster(&["california", "virginia"], wan()).await;
    let (handle, far) = (sites[0].handle(), sites[1].handle());
    echo(&handle, VIRGINIA, "connected").await;
    let texts: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    for text in &texts {
        handle.ask(Request::Tell { to: VIRGINIA, text: text.clone() }).await.expect("told");
    }
    let mut heard = String::new();
    until("all are heard", async || {
        heard = far.ask(Request::Heard).await.expect("answered");
        heard.ends_with("499")
    })
    .await;
    assert_eq!(heard, texts.join(" "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lossy_link_loses_some_messages_and_not_all() {
    let sites = cluster(&["california", "virginia"], Some(Wan { loss: 0.5, ..Wan::default() })).await;
    let (handle, far) = (sites[0].handle(), sites[1].handle());
    echo(&handle, VIRGINIA, "connected").await;
    for _ in 0..200 {
        handle.ask(Request::Tell { to: VIRGINIA, text: "x".into() }).await.expect("told");
    }
    echo(&handle, VIRGINIA, "behind them").await;
    let heard = far.ask(Request::Heard).await.expect("answered").split(' ').count();
    assert!((50..150).contains(&heard), "{heard} of 200");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_restarts_is_found_again() {
    let (configs, mut ports) = configure(&["california", "virginia"], None).await;
    let address = configs[1].listen.peer;
    let second = start(&configs[1], ports.pop().expect("two"), MemoryEngine::new());
    let first = start(&configs[0], ports.pop().expect("two"), MemoryEngine::new());
    assert_eq!(echo(&first.handle(), VIRGINIA, "one").await, "one");
    second.stop().await;
    until("the loss is noticed", async || !first.status().peers()[0].connected).await;
    let port = TcpListener::bind(address).await.expect("free again");
    let second = start(&configs[1], port, MemoryEngine::new());
    assert_eq!(echo(&first.handle(), VIRGINIA, "two").await, "two");
    assert_eq!(echo(&second.handle(), CALIFORNIA, "three").await, "three");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_drops_what_crosses_it_its_way_only_and_healing_ends_that() {
    let sites = cluster(&["california", "virginia"], None).await;
    let (near, far) = (sites[0].handle(), sites[1].handle());
    echo(&near, VIRGINIA, "connected").await;
    echo(&far, CALIFORNIA, "connected").await;
    let told = async |from: &rhumb_node::runtime::Handle<common::Toy>, to, text: &str| {
        from.ask(Request::Tell { to, text: text.into() }).await.expect("told");
    };

    // One way: the other still works.
    assert!(sites[0].status().fault(VIRGINIA, Fault::Cut(Direction::Out)));
    told(&near, VIRGINIA, "lost").await;
    told(&far, CALIFORNIA, "heard").await;
    until("the open way works", async || near.ask(Request::Heard).await.expect("answered") == "heard").await;

    // Both ways, by one side alone.
    sites[0].status().fault(VIRGINIA, Fault::Cut(Direction::Both));
    told(&far, CALIFORNIA, "lost").await;
    sites[0].status().fault(VIRGINIA, Fault::Heal);
    // What was sent into the cut may still be on its way to it, so the sender is asked for something behind it.
    echo(&far, CALIFORNIA, "healed").await;
    echo(&near, VIRGINIA, "healed").await;
    assert_eq!(far.ask(Request::Heard).await.expect("answered"), "", "the out-going cut dropped it");
    assert!(!sites[0].status().fault(CALIFORNIA, Fault::Heal), "no link to oneself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_link_is_slower_by_that_much() {
    let sites = cluster(&["california", "virginia"], None).await;
    let handle = sites[0].handle();
    echo(&handle, VIRGINIA, "connected").await;
    sites[0].status().fault(VIRGINIA, Fault::Slow(Span::from_millis(120)));
    let begun = Instant::now();
    echo(&handle, VIRGINIA, "slow").await;
    assert!(begun.elapsed() >= Duration::from_millis(120));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_drops_the_newest_and_counts_it() {
    let sites = cluster(&["california", "virginia"], None).await;
    let (near, far) = (sites[0].handle(), sites[1].handle());
    echo(&near, VIRGINIA, "connected").await;
    // So slow that all of it waits: 9 messages of 8 MiB against a bound of 64 MiB.
    sites[0].status().fault(VIRGINIA, Fault::Slow(Span::from_secs(2)));
    for n in 0..9 {
        let text = format!("{n}{}", "x".repeat((8 << 20) - 100));
        near.ask(Request::Tell { to: VIRGINIA, text }).await.expect("told");
    }
    let metrics = sites[0].status().metrics();
    assert!(metrics.contains("rhumb_peer_messages_dropped_total{region=\"virginia\",shard=\"0\",cause=\"full\"} 1\n"), "{metrics}");
    until("the others come", async || {
        let heard = far.ask(Request::Heard).await.expect("answered");
        let firsts: String = heard.split(' ').filter_map(|text| text.chars().next()).collect();
        assert!("01234567".starts_with(&firsts), "{firsts}");
        firsts == "01234567"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_no_frame_holds_is_dropped_and_the_link_goes_on() {
    let sites = cluster(&["california", "virginia"], None).await;
    let handle = sites[0].handle();
    echo(&handle, VIRGINIA, "connected").await;
    handle.ask(Request::Tell { to: VIRGINIA, text: "x".repeat(FRAME_BYTES_MAX) }).await.expect("told");
    assert_eq!(echo(&handle, VIRGINIA, "after").await, "after");
    assert!(sites[0].status().metrics().contains("cause=\"large\"} 1\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn services_share_the_links_and_each_hears_its_own() {
    let (configs, ports) = configure(&["california", "virginia"], None).await;
    let mut sites = Vec::new();
    for (config, port) in configs.iter().zip(ports) {
        let mut site = {
            let (secret, incarnations) = (common::secret(config), common::incarnations(config));
            Site::new(common::setup(config), secret, incarnations, Clock::start(), Arc::new(Metrics::new())).expect("threads")
        };
        let store = || Store::open(MemoryEngine::new()).expect("a store");
        let handles = [Service::Commit, Service::Quotas].map(|service| site.host(service, store(), Toy::default()).expect("threads"));
        site.open(port);
        sites.push((site, handles));
    }
    let (near, far) = (&sites[0].1, &sites[1].1);
    for (handle, name) in near.iter().zip(["commit", "quotas"]) {
        assert_eq!(echo(handle, VIRGINIA, name).await, name);
        handle.ask(Request::Tell { to: VIRGINIA, text: name.into() }).await.expect("told");
        assert_eq!(echo(handle, VIRGINIA, name).await, name);
    }
    assert_eq!(far[0].ask(Request::Heard).await.expect("answered"), "commit");
    assert_eq!(far[1].ask(Request::Heard).await.expect("answered"), "quotas");
    for (site, _) in sites {
        site.stop().await;
    }
}

/// Sends `bytes` to a site; waits until it closes the connection; returns what it said.
async fn strange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(bytes).await.expect("sent");
    let mut said = Vec::new();
    // A connection that is reset is closed as well.
    let _ = stream.read_to_end(&mut said).await;
    said
}

/// A connection to a site that has greeted, and the greetings.
async fn greeted(address: SocketAddr) -> (TcpStream, Greetings) {
    let connecting = Greeting { nonce: [7; NONCE_BYTES] };
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(&connecting.encode()).await.expect("sent");
    let mut bytes = [0; GREETING_BYTES];
    stream.read_exact(&mut bytes).await.expect("it greets");
    (stream, Greetings { connecting, accepting: Greeting::decode(&bytes).expect("a greeting") })
}

/// Says a hello with a proof by `secret` to a site, and `more`; waits until it closes the connection; returns what it said.
async fn say(address: SocketAddr, secret: &Secret, hello: &Hello, more: &[u8]) -> Vec<u8> {
    let (mut stream, greetings) = greeted(address).await;
    let bytes = [&hello.seal(secret, &greetings, Side::Connecting)[..], more].concat();
    stream.write_all(&bytes).await.expect("sent");
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said).await;
    said
}

fn count(metrics: &str, name: &str) -> u64 {
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("{name} in {metrics}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_secret_and_does_not_fit_is_turned_away_and_nothing_else_suffers() {
    let (configs, ports) = configure(&["california", "virginia"], None).await;
    let sites: Vec<_> = configs.iter().zip(ports).map(|(config, port)| start(config, port, MemoryEngine::new())).collect();
    let handle = sites[1].handle();
    echo(&handle, CALIFORNIA, "connected").await;
    let (address, secret) = (configs[0].listen.peer, common::secret(&configs[0]));
    let cluster = common::setup(&configs[0]).fingerprint();
    // Of an earlier incarnation, so that it never takes the place of the true one.
    let hello = Hello { cluster, site: VIRGINIA, to: CALIFORNIA, incarnation: 1, heard: Progress::default() };
    let said = async |hello: Hello| say(address, &secret, &hello, b"").await.len();
    let heard = Progress { incarnation: 12_345, ..Progress::default() };

    assert_eq!(said(hello).await, 0, "left over from an earlier incarnation");
    assert_eq!(said(Hello { site: CALIFORNIA, ..hello }).await, 0, "ourselves");
    assert_eq!(said(Hello { site: SiteId::new(9, 9), ..hello }).await, 0, "nobody");
    assert_eq!(said(Hello { to: VIRGINIA, incarnation: u64::MAX, heard, ..hello }).await, 0, "passed on: it was meant for another");
    assert_eq!(said(Hello { cluster: cluster + 1, ..hello }).await, HELLO_BYTES, "another cluster is told ours, so that it can say so too");

    let metrics = sites[0].status().metrics();
    assert_eq!(count(&metrics, "rhumb_peer_connections_refused_total"), 5);
    assert_eq!(count(&metrics, "rhumb_peer_connections_unproven_total"), 0);
    assert_eq!(echo(&handle, CALIFORNIA, "undisturbed").await, "undisturbed");
    assert!(sites[0].status().peers()[0].connected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_an_unproven_connection_is_believed() {
    let (configs, ports) = configure(&["california", "virginia"], None).await;
    let sites: Vec<_> = configs.iter().zip(ports).map(|(config, port)| start(config, port, MemoryEngine::new())).collect();
    echo(&sites[1].handle(), CALIFORNIA, "connected").await;
    let (address, secret) = (configs[0].listen.peer, common::secret(&configs[0]));
    let cluster = common::setup(&configs[0]).fingerprint();
    // By a site of the cluster this would end the one that hears it, and would be written to its disk.
    let fatal = Hello {
        cluster,
        site: VIRGINIA,
        to: CALIFORNIA,
        incarnation: u64::MAX,
        heard: Progress { incarnation: 12_345, ..Progress::default() },
    };
    let ping = encode(Kind::Ping, Time::ZERO, |mut bytes| {
        bytes.extend([0; PING_BYTES]);
        Ok::<_, Infallible>(bytes)
    });
    let ping = ping.expect("infallible");
    let peers = configs[0].data_dir.join(PEERS);
    // Region, shard and incarnation of each site heard; how often its stores have synced since is no matter here.
    let noted = || -> Vec<Vec<u64>> {
        let text = std::fs::read_to_string(&peers).expect("it has heard the other");
        text.lines().map(|line| line.split(' ').take(3).map(|word| word.parse().expect("a number")).collect()).collect()
    };
    let before = noted();

    // Another protocol, another version, a hello of the version before, no secret, another secret, the proof of the other side.
    assert_eq!(strange(address, b"GET / HTTP/1.1\r\n\r\n").await, b"");
    let mut version = Greeting { nonce: [1; NONCE_BYTES] }.encode();
    version[8] += 1;
    assert_eq!(strange(address, &version).await, b"");
    version[8] -= 2;
    assert_eq!(strange(address, &version).await, b"");
    assert_eq!(say(address, &Secret::of([0; 32]), &fatal, &ping).await, b"");
    assert_eq!(say(address, &Secret::random().expect("random"), &fatal, &ping).await, b"");
    let (mut stream, greetings) = greeted(address).await;
    stream.write_all(&fatal.seal(&secret, &greetings, Side::Accepting)).await.expect("sent");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    // What was true on one connection, again on another.
    let (mut stream, greetings) = greeted(address).await;
    let proven = Hello { incarnation: before[0][2], heard: Progress::default(), ..fatal }.seal(&secret, &greetings, Side::Connecting);
    stream.write_all(&proven).await.expect("sent");
    stream.read_exact(&mut [0; HELLO_BYTES]).await.expect("it was true there");
    drop(stream);
    let (mut stream, _) = greeted(address).await;
    stream.write_all(&[&proven[..], &ping[..]].concat()).await.expect("sent");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    // Each bit of it changed.
    for bit in (0..HELLO_BYTES * 8).step_by(23) {
        let (mut stream, greetings) = greeted(address).await;
        let mut bytes = fatal.seal(&secret, &greetings, Side::Connecting);
        bytes[bit / 8] ^= 1 << (bit % 8);
        stream.write_all(&bytes).await.expect("sent");
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0, "bit {bit}");
    }
    // Nothing, for long; and a greeting, and then nothing.
    let (slow, (mut slower, _)) = (strange(address, b""), greeted(address).await);
    let mut rest = Vec::new();
    let (said, _) = tokio::join!(slow, slower.read_to_end(&mut rest));
    assert_eq!((said, rest), (vec![], vec![]));

    assert_eq!(sites[0].status().failure().reason(), None);
    assert_eq!(noted(), before);
    let metrics = sites[0].status().metrics();
    assert_eq!(count(&metrics, "rhumb_peer_connections_unproven_total"), 9 + HELLO_BYTES as u64 * 8 / 23 + 1);
    assert_eq!(echo(&sites[1].handle(), CALIFORNIA, "undisturbed").await, "undisturbed");
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_with_different_secrets_never_meet_and_go_on() {
    let (mut configs, ports) = configure(&["california", "virginia"], None).await;
    configs[1].secret_file = configs[1].data_dir.join("other.secret");
    Secret::create(&configs[1].secret_file).expect("made");
    let sites: Vec<_> = configs.iter().zip(ports).map(|(config, port)| start(config, port, MemoryEngine::new())).collect();
    until("both have tried", async || {
        sites.iter().all(|site| count(&site.status().metrics(), "rhumb_peer_connections_unproven_total") > 2)
    })
    .await;
    for (site, config) in sites.iter().zip(&configs) {
        assert!(!site.status().peers()[0].connected);
        assert_eq!(site.status().failure().reason(), None);
        assert!(!config.data_dir.join(PEERS).exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unproven_connections_that_stay_open_keep_no_site_out() {
    let (configs, ports) = configure(&["california", "virginia"], None).await;
    let mut ports = ports.into_iter();
    let site = start(&configs[0], ports.next().expect("two"), MemoryEngine::new());
    let mut unproven = Vec::new();
    for _ in 0..300 {
        unproven.push(TcpStream::connect(configs[0].listen.peer).await.expect("it listens"));
    }
    // The oldest made room for the newest.
    assert_eq!(unproven[0].read(&mut [0; 1]).await.unwrap_or(0), 0);
    let peer = start(&configs[1], ports.next().expect("two"), MemoryEngine::new());
    assert_eq!(echo(&peer.handle(), CALIFORNIA, "let in").await, "let in");
    assert_eq!(echo(&site.handle(), VIRGINIA, "heard").await, "heard");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_sends_garbage_after_its_hello_loses_that_connection_only() {
    let (configs, ports) = configure(&["california", "virginia"], None).await;
    let site = start(&configs[0], ports.into_iter().next().expect("two"), MemoryEngine::new());
    let cluster = common::setup(&configs[0]).fingerprint();
    let incarnation = common::incarnations(&configs[1]).now();
    let (address, secret) = (configs[0].listen.peer, common::secret(&configs[0]));
    // A message is looked at once the site's incarnation has begun, alone after a while.
    until("its incarnation begins", async || site.status().is_recovered()).await;
    let mut oversize = u32::MAX.to_le_bytes().to_vec();
    oversize.extend([0; 100]);
    let now = site.status().now();
    let no_message = encode(Kind::Message(Service::Commit), now, |mut bytes| {
        bytes.extend([0xff; 20]);
        Ok::<_, Infallible>(bytes)
    });
    let no_service = encode(Kind::Message(Service::Quotas), now, Ok::<_, Infallible>);
    for garbage in [oversize, vec![1; 100], no_message.expect("infallible"), no_service.expect("infallible")] {
        let hello = Hello { cluster, site: VIRGINIA, to: CALIFORNIA, incarnation, heard: Progress::default() };
        let said = say(address, &secret, &hello, &garbage).await;
        assert_eq!(said.len(), HELLO_BYTES, "believed, then closed");
    }
    // A connection is closed before it is counted.
    until("all are counted", async || count(&site.status().metrics(), "rhumb_peer_connections_refused_total") == 4).await;
    // They are gone, so they do not keep the true peer out.
    let peer = start(&configs[1], TcpListener::bind(configs[1].listen.peer).await.expect("free"), MemoryEngine::new());
    assert_eq!(echo(&peer.handle(), CALIFORNIA, "let in").await, "let in");
    assert_eq!(echo(&site.handle(), CALIFORNIA, "undisturbed").await, "undisturbed");
}
