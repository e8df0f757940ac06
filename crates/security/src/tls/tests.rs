//! Which ends of a connection accept each other, and files that are read anew.

use super::*;
use crate::authority::{Authority, Subject};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A CA, and files of certificates by it.
struct Ca {
    folder: TempDir,
    authority: Authority,
}

fn name(region: &str) -> SiteName {
    SiteName::new("shop", region, 0).expect("a name")
}

fn site(region: &str) -> Subject {
    Subject::Site { name: name(region), hosts: vec!["localhost".into()] }
}

impl Ca {
    fn new() -> Ca {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::create(folder.path(), "shop", SystemTime::now()).expect("made");
        Ca { folder, authority }
    }

    fn files_at(&self, file: &str, subject: &Subject, now: SystemTime) -> Files {
        let at = |file: &str| self.folder.path().join(file);
        files::write_private(&at("ca.crt"), self.authority.roots_pem().as_bytes()).expect("written");
        files::write_private(&at(file), self.authority.issue(subject, now).expect("signed").as_bytes()).expect("written");
        Files { authorities: at("ca.crt"), certificate: at(file), key: at(file) }
    }

    fn files(&self, file: &str, subject: &Subject) -> Files {
        self.files_at(file, subject, SystemTime::now())
    }

    fn site(&self, region: &str) -> Arc<Tls> {
        Tls::load(self.files(region, &site(region)), name(region)).expect("whole")
    }
}

/// Has `connect` talk to a port of `server`: what either side says of it, once a byte has gone each way.
async fn meet(
    server: &Arc<Tls>,
    port: Port,
    connect: impl AsyncFnOnce(TcpStream) -> io::Result<Stream>,
) -> (Result<Stream, String>, Result<Stream, String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
    let (socket, _) = listener.accept().await.expect("accepted");
    let talk = |mut stream: Stream| async move {
        stream.write_all(b"x").await?;
        stream.flush().await?;
        if stream.read_u8().await? == b'x' { Ok(stream) } else { Err(io::Error::other("something else")) }
    };
    let acceptor = server.acceptor(port);
    let serve = async {
        let stream = acceptor.accept(socket).await.map_err(|error| error.to_string())?;
        talk(stream).await.map_err(|error| error.to_string())
    };
    let ask = async {
        let stream = connect(client).await.map_err(|error| error.to_string())?;
        talk(stream).await.map_err(|error| error.to_string())
    };
    tokio::join!(serve, ask)
}

fn put(path: &Path, text: &[u8]) {
    files::write_private(path, text).expect("written");
}

#[tokio::test]
async fn sites_of_a_cluster_know_each_other_by_name() {
    let ca = Ca::new();
    let (california, virginia) = (ca.site("california"), ca.site("virginia"));
    let (served, asked) = meet(&california, Port::Peer, async |stream| virginia.connect(stream, &name("california")).await).await;
    let served = served.expect("let in");
    assert!(served.is_of(&name("virginia")) && !served.is_of(&name("california")));
    assert_eq!(served.peer().expect("it shows one").sites(), [name("virginia")]);
    assert!(asked.expect("served").is_of(&name("california")));
    let (served, asked) = meet(&california, Port::Peer, async |stream| virginia.connect(stream, &name("oregon")).await).await;
    assert!(served.is_err());
    assert!(asked.expect_err("another site").contains("not valid for name"), "the site there is California");
}

#[tokio::test]
async fn who_shows_no_certificate_an_expired_one_or_one_of_another_ca_is_refused() {
    let ca = Ca::new();
    let california = ca.site("california");
    let long_ago = SystemTime::now() - 2 * crate::authority::LEAF_HOLDS;
    let expired = Tls::load(ca.files_at("expired", &site("virginia"), long_ago), name("virginia")).expect("whole");
    // The other CA is trusted to by whoever comes with it, which must not help.
    let other = Ca::new();
    let mut foreign = other.files("virginia", &site("virginia"));
    foreign.authorities = ca.folder.path().join("ca.crt");
    let foreign = Tls::load(foreign, name("virginia")).expect("whole");
    let stranger = Client::pinned(ca.authority.fingerprint()).expect("a client");
    for port in [Port::Peer, Port::Sql, Port::Resp] {
        let (served, _) = meet(&california, port, async |stream| expired.connect(stream, &name("california")).await).await;
        assert!(served.expect_err("expired").contains("certificate expired"));
        let (served, _) = meet(&california, port, async |stream| foreign.connect(stream, &name("california")).await).await;
        // The other CA bears the same name, as every CA of a cluster called shop does, and has another key.
        let error = served.expect_err("of another CA");
        assert!(error.contains("BadSignature"), "{error}");
    }
    // The CA's certificate is not in the chain, so who knows its fingerprint alone believes nobody; and no certificate is shown.
    let (served, asked) = meet(&california, Port::Peer, async |stream| stranger.connect(stream, "127.0.0.1").await).await;
    assert!(served.is_err() && asked.is_err());
    let root = ca.folder.path().join("california");
    let mut chain = std::fs::read(&root).expect("text");
    chain.extend_from_slice(ca.authority.roots_pem().as_bytes());
    put(&root, &chain);
    assert_eq!(california.reload(), Reload::Changed);
    let (served, _) = meet(&california, Port::Peer, async |stream| stranger.connect(stream, "127.0.0.1").await).await;
    assert!(served.expect_err("no certificate").contains("peer sent no certificates"));
    let (served, asked) =
        meet(&california, Port::Http, async |stream| stranger.connect(stream, "california-0.shop.rhumb.internal").await).await;
    assert!(served.expect("HTTP tells who it is").peer().is_none() && asked.is_ok());
    let other = Client::pinned(other.authority.fingerprint()).expect("a client");
    let (_, asked) = meet(&california, Port::Http, async |stream| other.connect(stream, "127.0.0.1").await).await;
    assert!(asked.expect_err("not that CA").contains("UnknownIssuer"));
}

#[tokio::test]
async fn a_client_certificate_serves_nobody() {
    let ca = Ca::new();
    let california = ca.site("california");
    let root = ca.files("root", &Subject::Client { user: "root".into() });
    let client = Client::load(&root).expect("a client");
    for host in ["127.0.0.1", "localhost", "california-0.shop.rhumb.internal"] {
        let (served, asked) = meet(&california, Port::Sql, async |stream| client.connect(stream, host).await).await;
        assert_eq!(served.expect("let in").peer().expect("it shows one").subject, "root");
        asked.expect("served");
    }
    assert!(matches!(Tls::load(root, name("california")), Err(TlsError::OtherSite { .. })));
    let (_, asked) = meet(&california, Port::Sql, async |stream| client.connect(stream, "db.example.com").await).await;
    assert!(asked.expect_err("no such name").contains("not valid for name"));
}

#[tokio::test]
async fn files_are_read_anew_and_broken_ones_leave_the_old_in_use() {
    let ca = Ca::new();
    let california = ca.site("california");
    let virginia = ca.site("virginia");
    assert_eq!(california.reload(), Reload::Same);
    let path = california.files().certificate.clone();
    let first = california.certificate();
    let good = std::fs::read(&path).expect("text");
    let (open, _) = meet(&california, Port::Peer, async |stream| virginia.connect(stream, &name("california")).await).await;
    for broken in [
        &b""[..],
        b"-----BEGIN CERTIFICATE-----\n",
        &good[..good.len() / 2],
        &std::fs::read(virginia.files().certificate.clone()).expect("text"),
    ] {
        put(&path, broken);
        assert!(matches!(california.reload(), Reload::Broken(_)));
        assert_eq!(california.reload(), Reload::Same, "it is said once");
        assert_eq!(california.certificate(), first);
        put(&path, &good);
        assert_eq!(california.reload(), Reload::Same);
    }
    ca.files("california", &site("california"));
    assert_eq!(california.reload(), Reload::Changed);
    assert_ne!(california.certificate(), first);
    let (served, _) = meet(&california, Port::Peer, async |stream| virginia.connect(stream, &name("california")).await).await;
    served.expect("by the new one");
    drop(open.expect("the old connection is there"));
}

#[tokio::test]
async fn a_rotation_of_the_ca_parts_nobody() {
    let mut ca = Ca::new();
    let (california, virginia) = (ca.site("california"), ca.site("virginia"));
    ca.authority.rotate(SystemTime::now()).expect("rotated");
    // California has a certificate by the new root, and believes both; Virginia has heard of nothing.
    ca.files("california", &site("california"));
    put(&virginia.files().authorities.with_file_name("ca.crt"), ca.authority.roots_pem().as_bytes());
    assert_eq!(california.reload(), Reload::Changed);
    assert_eq!(california.certificate().issuer, "Rhumb CA of shop 2");
    for _ in 0..2 {
        let (served, _) = meet(&california, Port::Peer, async |stream| virginia.connect(stream, &name("california")).await).await;
        served.expect("Virginia's is of the old root");
        let (served, _) = meet(&virginia, Port::Peer, async |stream| california.connect(stream, &name("virginia")).await).await;
        served.expect("California's is of the new one");
        // Now Virginia believes both as well, and has still its old certificate.
        virginia.reload();
    }
    ca.authority.retire().expect("retired");
    ca.files("california", &site("california"));
    assert_eq!(california.reload(), Reload::Changed);
    let (served, _) = meet(&california, Port::Peer, async |stream| virginia.connect(stream, &name("california")).await).await;
    assert!(served.expect_err("the old root is believed no more").contains("UnknownIssuer"));
}

#[tokio::test]
async fn handshakes_that_stall_keep_nobody_out() {
    let ca = Ca::new();
    let (california, virginia) = (ca.site("california"), ca.site("virginia"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let acceptor = california.acceptor(Port::Peer);
    let mut stalled = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 * HANDSHAKES_MAX {
        stalled.push(TcpStream::connect(address).await.expect("connected"));
        let (socket, _) = listener.accept().await.expect("accepted");
        let acceptor = acceptor.clone();
        tasks.spawn(async move { acceptor.accept(socket).await.map(drop).map_err(|error| error.to_string()) });
    }
    let client = TcpStream::connect(address).await.expect("connected");
    let (socket, _) = listener.accept().await.expect("accepted");
    let name = name("california");
    let (served, asked) = tokio::join!(acceptor.accept(socket), virginia.connect(client, &name));
    served.expect("its handshake is done");
    asked.expect("and for the client too");
    // All but those that still have a place, and one for which the last made room, were told to leave.
    for _ in 0..2 * HANDSHAKES_MAX + 1 {
        let crowded = tasks.join_next().await.expect("there are more").expect("no panic");
        assert!(crowded.expect_err("dismissed").contains("was about its handshake"));
    }
}

#[tokio::test]
async fn plain_text_and_old_tls_are_no_handshake() {
    let ca = Ca::new();
    let california = ca.site("california");
    // A ClientHello of TLS 1.1, which says all that is needed to speak 1.2: ECDHE-ECDSA, with P-256 and SHA-256.
    let extensions = [0, 0x0d, 0, 4, 0, 2, 4, 3, 0, 0x0a, 0, 4, 0, 2, 0, 0x17, 0, 0x0b, 0, 2, 1, 0];
    let head = |minor| [0x16, 3, 1, 0, 69, 1, 0, 0, 65, 3, minor];
    let hello = |minor| [&head(minor)[..], &[7; 32], &[0, 0, 2, 0xc0, 0x2b, 1, 0, 0, 22], &extensions].concat();
    let (old, present) = (hello(2), hello(3));
    let (alert, of_version) = ([0x15].as_slice(), [2, 70].as_slice());
    for (bytes, begins, ends) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], alert, [].as_slice()),
        (b"*1\r\n$4\r\nPING\r\n", alert, &[]),
        (&old, alert, of_version),
        // The same in TLS 1.2 is answered.
        (&present, &[0x16], &[]),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
        client.write_all(bytes).await.expect("sent");
        client.shutdown().await.expect("sent");
        let (socket, _) = listener.accept().await.expect("accepted");
        let refused = california.acceptor(Port::Http).accept(socket).await;
        assert!(matches!(refused, Err(HandshakeError::Failed(_))), "{refused:?}");
        let mut answer = Vec::new();
        // An alert at the most.
        let _ = tokio::time::timeout(Duration::from_secs(10), client.read_to_end(&mut answer)).await.expect("it is closed");
        assert!(answer.starts_with(begins) && answer.ends_with(ends), "{bytes:?}: {answer:?}");
        assert!(begins != alert || answer.len() == 7, "nothing but an alert: {answer:?}");
    }
}

#[tokio::test]
async fn chains_of_many_certificates_are_not_looked_at() {
    let ca = Ca::new();
    let california = ca.site("california");
    let files = ca.files("root", &Subject::Client { user: "root".into() });
    let good = std::fs::read(&files.certificate).expect("text");
    let padded = |count: usize| [good.clone(), ca.authority.roots_pem().into_bytes().repeat(count)].concat();
    for port in [Port::Peer, Port::Sql, Port::Resp, Port::Http] {
        for (more, is_served) in [(CHAIN_MAX - 1, true), (CHAIN_MAX, false)] {
            put(&files.certificate, &padded(more));
            let client = Client::load(&files).expect("a client");
            let (served, _) = meet(&california, port, async |stream| client.connect(stream, "127.0.0.1").await).await;
            assert_eq!(served.is_ok(), is_served, "{port:?}, {more} more: {:?}", served.err());
        }
    }
    // A site that would show as many is told so.
    let own = california.files().certificate.clone();
    let whole = std::fs::read(&own).expect("text");
    put(&own, &[whole.clone(), ca.authority.roots_pem().into_bytes().repeat(CHAIN_MAX)].concat());
    assert!(matches!(california.reload(), Reload::Broken(_)));
    // And nobody who connects looks at them either.
    let virginia = ca.site("virginia");
    let identity = Identity::load(&own, &own).expect("whole");
    let server =
        rustls::ServerConfig::builder_with_provider(super::provider::provider()).with_safe_default_protocol_versions().expect("some");
    let server = server.with_no_client_auth().with_single_cert(identity.chain, identity.key).expect("they belong together");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
    put(&own, &whole);
    let client = Client::load(&ca.files("root", &Subject::Client { user: "root".into() })).expect("a client");
    for as_site in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connected");
        let (socket, _) = listener.accept().await.expect("accepted");
        let connect =
            async { if as_site { virginia.connect(stream, &name("california")).await } else { client.connect(stream, "127.0.0.1").await } };
        let (_, asked) = tokio::join!(acceptor.accept(socket), connect);
        assert!(asked.expect_err("too many").to_string().contains("more than 5 certificates"), "{as_site}");
    }
}

#[tokio::test]
async fn what_nobody_would_believe_takes_the_place_of_nothing() {
    let mut ca = Ca::new();
    let california = ca.site("california");
    let (path, first) = (california.files().certificate.clone(), california.certificate());
    let good = std::fs::read_to_string(&path).expect("text");
    let day = Duration::from_hours(24);
    let foreign = Ca::new().authority.issue(&site("california"), SystemTime::now()).expect("signed");
    let ended = ca.authority.issue(&site("california"), SystemTime::now() - 91 * day).expect("signed");
    let to_come = ca.authority.issue(&site("california"), SystemTime::now() + day).expect("signed");
    for bad in [foreign, ended, to_come] {
        assert!(matches!(california.check_identity(&bad), Err(TlsError::Unbelieved { .. })));
        put(&path, bad.as_bytes());
        assert!(matches!(california.reload(), Reload::Broken(_)));
        assert_eq!(california.certificate(), first);
    }
    put(&path, good.as_bytes());
    california.check_identity(&good).expect("the one in use");
    // An older CA is put back: whoever took it for the authority would believe no site any more.
    let old = ca.authority.roots_pem();
    ca.authority.rotate(SystemTime::now()).expect("rotated");
    california.check_authorities(&ca.authority.roots_pem()).expect("both are there");
    ca.files("california", &site("california"));
    assert_eq!(california.reload(), Reload::Changed);
    ca.authority.retire().expect("retired");
    california.check_authorities(&ca.authority.roots_pem()).expect("it is by that");
    assert!(matches!(california.check_authorities(&old), Err(TlsError::Unbelieved { .. })));
}

/// Waits until reading a connection fails: what it says.
async fn ended(mut stream: Stream) -> String {
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_u8()).await.expect("it ends");
    read.expect_err("nothing is sent").to_string()
}

#[tokio::test]
async fn a_connection_ends_with_the_certificate_that_was_shown_on_it() {
    let ca = Ca::new();
    let (california, virginia) = (ca.site("california"), ca.site("virginia"));
    let soon = SystemTime::now() + Duration::from_secs(3) - crate::authority::LEAF_HOLDS;
    let files = ca.files_at("root", &Subject::Client { user: "root".into() }, soon);
    let client = Client::load(&files).expect("a client");
    let (served, asked) = meet(&california, Port::Sql, async |stream| client.connect(stream, "127.0.0.1").await).await;
    let (served, _open) = (served.expect("it still holds"), asked.expect("served"));
    assert_eq!(ended(served).await, "the certificate of the other end has ended, or is no longer believed");
    let ending = Tls::load(
        ca.files_at("oregon", &site("oregon"), SystemTime::now() + Duration::from_secs(3) - crate::authority::LEAF_HOLDS),
        name("oregon"),
    );
    let ending = ending.expect("whole");
    let (served, asked) = meet(&ending, Port::Peer, async |stream| virginia.connect(stream, &name("oregon")).await).await;
    let (_open, asked) = (served.expect("let in"), asked.expect("it still holds"));
    assert_eq!(ended(asked).await, "the certificate of the other end has ended, or is no longer believed");
}

#[tokio::test]
async fn who_is_left_out_by_a_new_ca_is_so_on_connections_that_are_there() {
    let mut ca = Ca::new();
    let (california, virginia) = (ca.site("california"), ca.site("virginia"));
    let (old, _keep) = meet(&california, Port::Peer, async |stream| virginia.connect(stream, &name("california")).await).await;
    let old = old.expect("let in");
    ca.authority.rotate(SystemTime::now()).expect("rotated");
    ca.files("california", &site("california"));
    assert_eq!(california.reload(), Reload::Changed);
    let (new, _keep_too) = {
        let oregon = ca.site("oregon");
        meet(&california, Port::Peer, async |stream| oregon.connect(stream, &name("california")).await).await
    };
    ca.authority.retire().expect("retired");
    ca.files("california", &site("california"));
    assert_eq!(california.reload(), Reload::Changed);
    assert_eq!(ended(old).await, "the certificate of the other end has ended, or is no longer believed");
    let mut new = new.expect("let in");
    let quiet = tokio::time::timeout(Duration::from_millis(50), new.read_u8()).await;
    assert!(quiet.is_err(), "its certificate is of the present CA");
}

#[tokio::test]
async fn a_pattern_of_names_is_the_certificate_of_no_site() {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let folder = tempfile::tempdir().expect("a folder");
    let at = |file: &str| folder.path().join(file);
    let key = KeyPair::generate().expect("a key");
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    put(&at("ca.crt"), root.self_signed(&key).expect("signed").pem().as_bytes());
    let issuer = Issuer::from_params(&root, &key);
    let load = |region: &str, names: &[&str], serves: bool| {
        let own = KeyPair::generate().expect("a key");
        let mut leaf = CertificateParams::new(names.iter().map(|&name| name.into()).collect::<Vec<String>>()).expect("names");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        leaf.extended_key_usages.extend(serves.then_some(ExtendedKeyUsagePurpose::ServerAuth));
        let text = leaf.signed_by(&own, &issuer).expect("signed").pem() + &own.serialize_pem();
        put(&at(region), text.as_bytes());
        Tls::load(Files { authorities: at("ca.crt"), certificate: at(region), key: at(region) }, name(region)).expect("whole")
    };
    let california = load("california", &["california-0.shop.rhumb.internal"], true);
    let pattern = load("virginia", &["virginia-0.shop.rhumb.internal", "*.shop.rhumb.internal"], true);
    let program = load("oregon", &["oregon-0.shop.rhumb.internal"], false);
    let (served, asked) = meet(&california, Port::Peer, async |stream| pattern.connect(stream, &name("california")).await).await;
    let served = served.expect("a certificate of the CA");
    assert!(served.is_of(&name("virginia")) && !served.is_of(&name("oregon")));
    asked.expect("that is California");
    let (served, _asked) = meet(&california, Port::Peer, async |stream| program.connect(stream, &name("california")).await).await;
    assert!(!served.expect("a certificate of the CA").is_of(&name("oregon")), "it may not serve");
    let (_, asked) = meet(&pattern, Port::Peer, async |stream| california.connect(stream, &name("oregon")).await).await;
    assert!(asked.expect_err("not Oregon").contains("does not bear just the name"));
}
