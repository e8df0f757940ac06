//! Clusters of several machines: made by `rhumb init` and `rhumb join` alone, encrypted on every port, at addresses of the loopback that are not
//! 127.0.0.1, so that each site has the usual ports.

use crate::common::until;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio_postgres::config::SslNegotiation;
use tokio_postgres::{Client, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

const REGIONS: [&str; 3] = ["california", "virginia", "oregon"];
/// How long a client waits for what is not to come.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// A cluster that forms, or has.
struct Cluster {
    folder: TempDir,
    /// Of the address, which no other test has at the same time.
    number: u32,
    sites: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for site in &mut self.sites {
            let _ = site.kill();
            let _ = site.wait();
        }
    }
}

fn rhumb(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rhumb")).args(arguments).stdin(Stdio::null()).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Cluster {
    fn new(number: u32) -> Cluster {
        // Another process may run the same test.
        let number = 4 * std::process::id() + number;
        Cluster { folder: tempfile::tempdir().expect("a folder"), number, sites: Vec::new() }
    }

    fn ip(&self, site: usize) -> String {
        let (high, middle, low) = (self.number >> 14 & 63, self.number >> 6 & 255, self.number & 63);
        format!("127.{}.{middle}.{}", 64 + high, 4 * low + site as u32)
    }

    fn dir(&self, region: &str) -> PathBuf {
        self.folder.path().join(region)
    }

    fn log(&self, region: &str) -> PathBuf {
        self.folder.path().join(format!("{region}.log"))
    }

    /// Starts `rhumb` with what makes the site of a region.
    fn start(&mut self, site: usize, arguments: &[&str]) {
        let (region, dir, ip) = (REGIONS[site], self.dir(REGIONS[site]), self.ip(site));
        let log = fs::File::options().create(true).append(true).open(self.log(region)).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.args(arguments).args(["--region", region, "--listen", &ip, "--dir"]).arg(dir);
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("the same")).stderr(log);
        self.sites.push(command.spawn().expect("the binary runs"));
    }

    fn init(&mut self) -> Vec<String> {
        self.start(0, &["init", "--cluster", "shop", "--regions", "california,virginia,oregon"]);
        let token = |region: &str| {
            fs::read_to_string(self.dir("california").join(format!("tokens/{region}-0"))).unwrap_or_default().trim().to_owned()
        };
        let tokens = || REGIONS[1..].iter().map(|region| token(region)).collect::<Vec<_>>();
        until("it makes a token for each of the others", || tokens().iter().all(|token| !token.is_empty()));
        until("it listens", || TcpStream::connect((self.ip(0).as_str(), 8080)).is_ok());
        tokens()
    }

    /// A command that asks at the first machine, with the administrator's certificate.
    fn asked(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rhumb"));
        command.args(arguments).env("RHUMB_CERTS", self.dir("california")).stdin(Stdio::null()).output().expect("the binary runs")
    }

    fn status(&self, site: usize) -> Output {
        self.asked(&["status", "--http", &format!("https://{}:8080", self.ip(site))])
    }

    /// A cluster whose sites are all ready.
    fn formed(number: u32) -> (Cluster, Vec<String>) {
        let mut cluster = Cluster::new(number);
        let tokens = cluster.init();
        cluster.start(1, &["join", &tokens[0]]);
        cluster.start(2, &["join", &tokens[1]]);
        until("all are ready", || (0..3).all(|site| cluster.status(site).status.success()));
        (cluster, tokens)
    }

    /// A client of PostgreSQL at a site, which verifies the name of that and shows the certificate in `identity`, if any.
    async fn connect(&self, site: usize, identity: Option<&Path>, negotiation: SslNegotiation) -> Result<Client, tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        config.host(format!("{}-0.shop.rhumb.internal", REGIONS[site])).hostaddr(self.ip(site).parse().expect("an address"));
        config.port(26_257).user("root").dbname("rhumb").ssl_mode(tokio_postgres::config::SslMode::Require).ssl_negotiation(negotiation);
        let tls = MakeRustlsConnect::new(client_config(&self.dir("california"), identity));
        let (client, connection) = config.connect(tls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    fn admin(&self) -> PathBuf {
        self.dir("california").join("admin.pem")
    }
}

/// The configuration of a client that believes what the site in `dir` believes.
fn client_config(dir: &Path, identity: Option<&Path>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let authorities = CertificateDer::pem_file_iter(dir.join("tls/ca.crt")).expect("a file");
    authorities.for_each(|authority| roots.add(authority.expect("PEM")).expect("an authority"));
    let builder =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions().expect("some");
    let builder = builder.with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let chain = CertificateDer::pem_file_iter(file).expect("a file").collect::<Result<_, _>>().expect("PEM");
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(file).expect("a key")).expect("they belong together")
        }
    };
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    config
}

/// Says something over TLS to a port of California: what is answered before `enough`, or nothing if it is refused.
fn say(cluster: &Cluster, port: u16, identity: Option<&Path>, words: &str, enough: &str) -> String {
    let mut config = client_config(&cluster.dir("california"), identity);
    config.alpn_protocols.clear();
    let name = ServerName::try_from("california-0.shop.rhumb.internal").expect("a name");
    let connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a connection");
    let stream = TcpStream::connect((cluster.ip(0).as_str(), port)).expect("it listens");
    stream.set_read_timeout(Some(ANSWER_MAX)).expect("a timeout");
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let mut answer = Vec::new();
    if stream.write_all(words.as_bytes()).is_ok() {
        let mut byte = [0];
        while !text(&answer).contains(enough) && stream.read(&mut byte).is_ok_and(|count| count == 1) {
            answer.push(byte[0]);
        }
    }
    text(&answer)
}

/// Says something in plain text, and what is answered.
fn say_plainly(cluster: &Cluster, port: u16, words: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect((cluster.ip(0).as_str(), port)).expect("it listens");
    stream.set_read_timeout(Some(ANSWER_MAX)).expect("a timeout");
    let _ = stream.write_all(words);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// All files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_sites_form_a_cluster_by_init_and_join_alone_and_serve_nobody_else() {
    let (cluster, tokens) = Cluster::formed(0);
    let admin = cluster.admin();
    let california = cluster.connect(0, Some(&admin), SslNegotiation::Postgres).await.expect("verify-full");
    california.batch_execute("CREATE TABLE greeting (id INT PRIMARY KEY, words TEXT)").await.expect("created");
    california.batch_execute("INSERT INTO greeting VALUES (1, 'hello')").await.expect("committed");
    let oregon = cluster.connect(2, Some(&admin), SslNegotiation::Direct).await.expect("direct TLS");
    let row = oregon.query_one("SELECT words FROM greeting WHERE id = 1", &[]).await.expect("it is there");
    assert_eq!(row.get::<_, String>(0), "hello");

    let virginia = cluster.dir("virginia").join("tls/site.pem");
    for identity in [&admin, &virginia] {
        assert_eq!(say(&cluster, 6_380, Some(identity), "PING\r\n", "\n"), "+PONG\r\n");
        let request = "GET /status HTTP/1.1\r\nhost: california-0.shop.rhumb.internal\r\n\r\n";
        assert!(say(&cluster, 8_080, Some(identity), request, "\r\n").starts_with("HTTP/1.1 200 "));
    }

    // Nobody without a certificate of this CA.
    let other = Cluster::new(1).init_alone();
    for identity in [None, Some(other.admin())] {
        let identity = identity.as_deref();
        assert!(cluster.connect(0, identity, SslNegotiation::Postgres).await.is_err());
        assert_eq!(say(&cluster, 6_380, identity, "PING\r\n", "\n"), "");
    }
    let probe = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: california-0.shop.rhumb.internal\r\nconnection: close\r\n\r\n");
    assert!(say(&cluster, 8_080, None, &probe("/readyz"), "\r\n").starts_with("HTTP/1.1 200 "));
    for path in ["/status", "/metrics", "/quotas", "/certificates", "/forming", "/nowhere"] {
        assert!(say(&cluster, 8_080, None, &probe(path), "\r\n").starts_with("HTTP/1.1 401 "), "{path}");
    }
    assert_eq!(say(&cluster, 8_080, Some(&other.admin()), &probe("/readyz"), "\r\n"), "", "one that is not believed");

    // Nobody in plain text.
    let (mut config, ip) = (tokio_postgres::Config::new(), cluster.ip(0));
    let refused = config.host(&ip).port(26_257).user("root").dbname("rhumb").connect(NoTls).await;
    let error = refused.map(drop).expect_err("refused");
    assert_eq!(error.code().map(|code| code.code().to_owned()).as_deref(), Some("28000"), "{error:?}");
    for (port, words) in [(6_380, &b"PING\r\n"[..]), (8_080, b"GET /readyz HTTP/1.0\r\n\r\n"), (27_257, b"RHUMB")] {
        let answer = say_plainly(&cluster, port, words);
        // An alert of TLS, at the most.
        assert!(answer.len() <= 7, "port {port}: {:?}", text(&answer));
    }
    assert_eq!(say_plainly(&cluster, 26_257, &[&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f][..], b"Q\0\0\0\x05\0"].concat()), b"", "sent before TLS");

    // No token a second time.
    let again = rhumb(&[
        "join",
        &tokens[0],
        "--region",
        "oregon",
        "--listen",
        &cluster.ip(3),
        "--dir",
        &cluster.dir("again").display().to_string(),
    ]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("the token was used already"), "{}", text(&again.stderr));
    secrets_stay_where_they_are(&cluster);
    assert!(cluster.status(1).status.success(), "all of that has changed nothing");
}

impl Cluster {
    /// A cluster of one region that is complete at once.
    fn init_alone(mut self) -> Cluster {
        self.start(0, &["init", "--cluster", "shop"]);
        until("it is ready", || self.status(0).status.success());
        self
    }
}

/// Keys are their owner's alone, and in no log and no answer.
fn secrets_stay_where_they_are(cluster: &Cluster) {
    let mut secrets = vec!["PRIVATE KEY".to_owned(), "rhumb1.".to_owned()];
    for path in files(cluster.folder.path()).iter().filter(|path| !path.components().any(|part| part.as_os_str() == "data")) {
        let content = fs::read_to_string(path).unwrap_or_default();
        if content.contains("PRIVATE KEY") || path.ends_with("cluster.secret") {
            assert_eq!(fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o600, "{}", path.display());
        }
        if path.ends_with("cluster.secret") {
            secrets.push(content.trim().to_owned());
        }
        let key = content.split("-----BEGIN PRIVATE KEY-----").nth(1).and_then(|key| key.split("-----").next());
        secrets.extend(key.into_iter().flat_map(str::split_whitespace).map(str::to_owned));
    }
    assert!(secrets.len() > 8, "there are keys");
    let mut said: Vec<String> = REGIONS.iter().map(|region| fs::read_to_string(cluster.log(region)).expect("a log")).collect();
    for arguments in [&["cert", "status"][..], &["token", "list"]] {
        let output = rhumb(&[arguments, &["--dir", &cluster.dir("california").display().to_string()]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        said.push(text(&output.stdout));
    }
    for path in ["/status", "/metrics", "/certificates", "/forming", "/openapi.json"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: california-0.shop.rhumb.internal\r\nconnection: close\r\n\r\n");
        said.push(say(cluster, 8_080, Some(&cluster.admin()), &request, "the end"));
        assert!(said.last().is_some_and(|answer| answer.starts_with("HTTP/1.1 200 ")), "{path}");
    }
    for secret in &secrets {
        assert!(!said.iter().any(|said| said.contains(secret)), "a secret is shown: {secret}");
    }
}

#[test]
fn a_token_that_is_altered_revoked_or_unknown_lets_nobody_in_and_an_interrupted_join_goes_on() {
    let mut cluster = Cluster::new(2);
    let tokens = cluster.init();
    let (first, ip) = (cluster.dir("california").display().to_string(), cluster.ip(1));
    let join = |token: &str, region: &str, dir: &str| {
        let output = rhumb(&["join", token, "--region", region, "--listen", &ip, "--dir", &cluster.dir(dir).display().to_string()]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let register = || fs::read_to_string(cluster.dir("california").join("ca/register.json")).expect("a register");
    let done = |arguments: &[&str]| {
        let output = rhumb(&[arguments, &["--dir", &first]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    let revoked = done(&["token", "create", "--hours", "1"]);
    let listed = done(&["token", "list"]);
    let ids: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).filter(|word| word.len() == 12).collect();
    assert_eq!(ids.len(), 3, "{listed}");
    let before = register();
    let last = tokens[0].chars().last().expect("a letter");
    let altered = format!("{}{}", &tokens[0][..tokens[0].len() - 1], if last == 'A' { 'B' } else { 'A' });
    assert!(join(&altered, "virginia", "a").contains("not as it was made"));
    assert!(join("rhumb2.AAAA", "virginia", "b").contains("it is no join token"));
    assert!(join(&tokens[0], "mars", "c").contains("`mars` is none of them"));
    assert!(join(&tokens[0], "california", "d").contains("california-0 has joined already"));
    assert_eq!(register(), before, "what is refused changes nothing");
    // All are revoked but the two that are needed: the new one is the one that no longer works.
    for id in &ids {
        done(&["token", "revoke", id]);
    }
    assert!(join(&revoked, "virginia", "e").contains("the token is unknown here"));
    let tokens = [done(&["token", "create"]), done(&["token", "create"])];

    // It joins, and is killed while it waits for the others; then it goes on with the same command.
    cluster.start(1, &["join", &tokens[0]]);
    until("it waits", || fs::read_to_string(cluster.log("virginia")).is_ok_and(|log| log.contains("waiting for oregon-0")));
    let mut killed = cluster.sites.pop().expect("it runs");
    killed.kill().and_then(|()| killed.wait()).expect("killed");
    // So is the first site.
    let mut killed = cluster.sites.pop().expect("it runs");
    killed.kill().and_then(|()| killed.wait()).expect("killed");
    cluster.start(0, &["init", "--cluster", "shop", "--regions", "california,virginia,oregon"]);
    until("it listens again", || TcpStream::connect((cluster.ip(0).as_str(), 8080)).is_ok());
    cluster.start(1, &["join", &tokens[0]]);
    cluster.start(2, &["join", &tokens[1]]);
    until("all are ready", || (0..3).all(|site| cluster.status(site).status.success()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_ca_takes_the_place_of_the_old_while_clients_are_connected() {
    let (cluster, _) = Cluster::formed(3);
    let client = cluster.connect(1, Some(&cluster.admin()), SslNegotiation::Postgres).await.expect("verify-full");
    client.batch_execute("CREATE TABLE counter (id INT PRIMARY KEY, n INT)").await.expect("created");
    client.batch_execute("INSERT INTO counter VALUES (1, 0)").await.expect("committed");
    let cert = |action: &[&str], region: &str| {
        let output = rhumb(&[action, &["--dir", &cluster.dir(region).display().to_string()]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let signs = |region: &str| {
        cert(&["cert", "status"], region).lines().any(|line| line.starts_with("site") && line.contains("Rhumb CA of shop 2"))
    };
    assert!(!signs("virginia"));
    cert(&["cert", "rotate"], "california");
    let mut commits = 0;
    while !REGIONS.iter().all(|region| signs(region)) {
        client.batch_execute("UPDATE counter SET n = n + 1 WHERE id = 1").await.expect("the connection is kept");
        commits += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The old administrator is believed until the old CA is not.
    let old = cluster.connect(2, Some(&cluster.admin()), SslNegotiation::Postgres).await.expect("still believed");
    let row = old.query_one("SELECT n FROM counter WHERE id = 1", &[]).await.expect("it is there");
    assert_eq!(row.get::<_, i32>(0), commits);
    // Each site has to have shown its new certificate.
    let retire = || rhumb(&["cert", "retire", "--dir", &cluster.dir("california").display().to_string()]).status.success();
    until("the old CA is believed no more", retire);
    let new = cluster.folder.path().join("new.pem");
    cert(&["cert", "issue", "root", "--out", &new.display().to_string()], "california");
    let refused = async || cluster.connect(2, Some(&cluster.admin()), SslNegotiation::Postgres).await.is_err();
    while !refused().await {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    cluster.connect(2, Some(&new), SslNegotiation::Postgres).await.expect("signed by the new CA");
    // Who is left out is so on the connections that are there as well.
    while client.batch_execute("UPDATE counter SET n = n + 1 WHERE id = 1").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
