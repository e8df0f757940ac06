//! Sites over TLS: who they are is in their certificates, and nobody speaks for another.

use crate::common::{ToySite, configure, echo, secret, setup, start, until};
use rhumb_config::{Config, Tls as TlsTable};
use rhumb_core::SiteId;
use rhumb_node::incarnation::Progress;
use rhumb_node::transport::frame::{GREETING_BYTES, Greeting, Greetings, HELLO_BYTES, Hello, NONCE_BYTES, Side};
use rhumb_security::authority::{Authority, LEAF_HOLDS, Subject};
use rhumb_security::files;
use rhumb_security::name::SiteName;
use rhumb_security::tls::{HANDSHAKES_MAX, Reload, Stream, Tls};
use rhumb_store::MemoryEngine;
use std::sync::Arc;
use std::time::SystemTime;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CALIFORNIA: SiteId = SiteId::new(0, 0);
const VIRGINIA: SiteId = SiteId::new(1, 0);
const OREGON: SiteId = SiteId::new(2, 0);
const REGIONS: [&str; 3] = ["california", "virginia", "oregon"];

/// Three sites with certificates, and their CA.
struct Cluster {
    folder: TempDir,
    authority: Authority,
    configs: Vec<Config>,
    ports: Vec<TcpListener>,
}

fn name(region: &str) -> SiteName {
    SiteName::new("test", region, 0).expect("a name")
}

impl Cluster {
    async fn new() -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::create(folder.path(), "test", SystemTime::now()).expect("made");
        let (mut configs, ports) = configure(&REGIONS, None).await;
        let authorities = folder.path().join("ca.crt");
        files::write_private(&authorities, authority.roots_pem().as_bytes()).expect("written");
        for config in &mut configs {
            let certificate = folder.path().join(format!("{}.pem", config.site.region));
            config.tls = Some(TlsTable { authorities: authorities.clone(), certificate, key: None, ca: None, renewal: None });
        }
        let cluster = Cluster { folder, authority, configs, ports };
        REGIONS.iter().for_each(|region| cluster.issue(region, region, SystemTime::now()));
        cluster
    }

    /// Writes the certificate of `region` where that of the site `of` is read.
    fn issue(&self, of: &str, region: &str, now: SystemTime) {
        let issued = self.authority.issue(&Subject::Site { name: name(region), hosts: vec![] }, now).expect("signed");
        files::write_private(&self.folder.path().join(format!("{of}.pem")), issued.as_bytes()).expect("written");
    }

    fn start(&mut self) -> Vec<ToySite> {
        let ports = std::mem::take(&mut self.ports);
        self.configs.iter().zip(ports).map(|(config, port)| start(config, port, MemoryEngine::new())).collect()
    }

    /// What Virginia connects with.
    fn virginia(&self) -> Arc<Tls> {
        let tls = setup(&self.configs[1]).tls.clone().expect("certificates");
        Tls::load(tls.files, name("virginia")).expect("whole")
    }

    async fn connected(&self, tls: &Arc<Tls>) -> std::io::Result<Stream> {
        let stream = TcpStream::connect(self.configs[0].listen.peer).await.expect("it listens");
        tls.connect(stream, &name("california")).await
    }

    /// Says to California over `stream`, with the secret of the cluster, that this is `site`: what it answers, if anything, besides its greeting.
    async fn hello(&self, stream: std::io::Result<Stream>, site: SiteId) -> Vec<u8> {
        let connecting = Greeting { nonce: [7; NONCE_BYTES] };
        let mut said = Vec::new();
        let talk = async {
            let mut stream = stream?;
            stream.write_all(&connecting.encode()).await?;
            stream.flush().await?;
            let mut bytes = [0; GREETING_BYTES];
            stream.read_exact(&mut bytes).await?;
            let greetings = Greetings { connecting, accepting: Greeting::decode(&bytes).expect("a greeting") };
            let cluster = setup(&self.configs[0]).fingerprint();
            let hello = Hello { cluster, site, to: CALIFORNIA, incarnation: u64::MAX, heard: Progress::default() };
            stream.write_all(&hello.seal(&secret(&self.configs[0]), &greetings, Side::Connecting)).await?;
            stream.flush().await?;
            let mut answer = [0; HELLO_BYTES];
            stream.read_exact(&mut answer).await?;
            said.extend_from_slice(&answer);
            Ok::<_, std::io::Error>(())
        };
        // One that is refused is closed, in one way or another.
        let _ = talk.await;
        said
    }
}

fn unproven(site: &ToySite) -> u64 {
    let metrics = site.status().metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix("rhumb_peer_connections_unproven_total "));
    line.expect("it is counted").parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_speaks_for_nobody_but_itself() {
    let mut cluster = Cluster::new().await;
    let sites = cluster.start();
    for (site, peer) in [(0, VIRGINIA), (1, OREGON), (2, CALIFORNIA)] {
        assert_eq!(echo(&sites[site].handle(), peer, "encrypted").await, "encrypted");
    }
    let virginia = cluster.virginia();
    // With the secret and a certificate of the cluster, in another's name.
    for site in [OREGON, CALIFORNIA, SiteId::new(9, 9)] {
        let before = unproven(&sites[0]);
        assert_eq!(cluster.hello(cluster.connected(&virginia).await, site).await, b"", "{site}");
        until("it is counted", async || unproven(&sites[0]) == before + 1).await;
    }
    assert_eq!(echo(&sites[2].handle(), CALIFORNIA, "undisturbed").await, "undisturbed");
    assert!(sites[0].status().peers().iter().all(|peer| peer.connected));
    // In its own name the same is believed, so that it was the name. The true Virginia is refused until this connection ends.
    let mut stream = cluster.connected(&virginia).await;
    assert_eq!(cluster.hello(std::mem::replace(&mut stream, Err(std::io::ErrorKind::Other.into())), VIRGINIA).await.len(), HELLO_BYTES);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_certificate_that_is_believed_is_turned_away_and_nothing_else_suffers() {
    let mut cluster = Cluster::new().await;
    let sites = cluster.start();
    assert_eq!(echo(&sites[1].handle(), CALIFORNIA, "connected").await, "connected");
    let before = unproven(&sites[0]);
    // In plain text, with the secret.
    let plain = TcpStream::connect(cluster.configs[0].listen.peer).await.map(Stream::from);
    assert_eq!(cluster.hello(plain, VIRGINIA).await, b"");
    // Expired.
    cluster.issue("virginia", "virginia", SystemTime::now() - 2 * LEAF_HOLDS);
    assert_eq!(cluster.hello(cluster.connected(&cluster.virginia()).await, VIRGINIA).await, b"");
    // Of another CA, which this side believes.
    let other = Cluster::new().await;
    let foreign = other.folder.path().join("virginia.pem");
    std::fs::copy(&foreign, cluster.folder.path().join("virginia.pem")).expect("copied");
    assert_eq!(cluster.hello(cluster.connected(&cluster.virginia()).await, VIRGINIA).await, b"");
    until("each is counted", async || unproven(&sites[0]) == before + 3).await;
    assert_eq!(echo(&sites[1].handle(), CALIFORNIA, "undisturbed").await, "undisturbed");
    assert!(sites[0].status().peers().iter().all(|peer| peer.connected));
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_with_new_certificates_find_each_other_while_connections_stall() {
    let mut cluster = Cluster::new().await;
    let sites = cluster.start();
    assert_eq!(echo(&sites[1].handle(), CALIFORNIA, "let in").await, "let in");
    let mut stalled = Vec::new();
    for _ in 0..2 * HANDSHAKES_MAX {
        stalled.push(TcpStream::connect(cluster.configs[0].listen.peer).await.expect("it listens"));
    }
    assert_eq!(echo(&sites[1].handle(), CALIFORNIA, "still in").await, "still in");
    let virginia = cluster.virginia();
    cluster.authority.rotate(SystemTime::now()).expect("rotated");
    cluster.issue("virginia", "virginia", SystemTime::now());
    assert_eq!(virginia.reload(), Reload::Changed);
    assert_eq!(virginia.certificate().issuer, "Rhumb CA of test 2");
    // California has not heard of the new CA, and believes it by the old one.
    assert_eq!(cluster.hello(cluster.connected(&virginia).await, VIRGINIA).await.len(), HELLO_BYTES);
    drop(stalled);
}
