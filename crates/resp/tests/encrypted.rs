//! Clients with certificates, whose handshakes take nothing of the thread that serves.

mod support;

use rhumb_resp::ServerOptions;
use rhumb_security::authority::{Authority, Subject};
use rhumb_security::files;
use rhumb_security::name::SiteName;
use rhumb_security::tls::{Client, Files, Port, Stream, Tls};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};
use support::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime;

/// Files of a certificate for `subject`.
fn files(folder: &Path, file: &str, authority: &Authority, subject: &Subject) -> Files {
    let (authorities, certificate) = (folder.join("ca.crt"), folder.join(file));
    files::write_private(&authorities, authority.roots_pem().as_bytes()).expect("written");
    let issued = authority.issue(subject, SystemTime::now()).expect("signed");
    files::write_private(&certificate, issued.as_bytes()).expect("written");
    Files { authorities, certificate: certificate.clone(), key: certificate }
}

async fn ping(client: &Client, server: &Server) -> io::Result<(Stream, [u8; 7])> {
    let mut stream = client.connect(TcpStream::connect(server.address()).await?, "127.0.0.1").await?;
    stream.write_all(b"PING\r\n").await?;
    stream.flush().await?;
    let mut pong = [0; 7];
    stream.read_exact(&mut pong).await?;
    Ok((stream, pong))
}

#[tokio::test]
async fn handshakes_are_done_elsewhere_and_the_connection_goes_on_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::create(folder.path(), "shop", SystemTime::now()).expect("made");
    let name = SiteName::new("shop", "california", 0).expect("a name");
    let site = files(folder.path(), "site", &authority, &Subject::Site { name: name.clone(), hosts: vec![] });
    let root = files(folder.path(), "root", &authority, &Subject::Client { user: "root".into() });
    let tls = Tls::load(site, name).expect("whole");
    let client = Client::load(&root).expect("a client");
    let elsewhere = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let options =
        ServerOptions { tls: Some(tls.acceptor(Port::Resp)), handshakes: Some(elsewhere.handle().clone()), ..ServerOptions::default() };
    let server = Server::with(options).await;
    let waited = tokio::time::timeout(Duration::from_secs(2), ping(&client, &server)).await;
    assert!(waited.is_err(), "nobody is there to do it");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        // An end of the sender is one as well.
        let _ = elsewhere.block_on(stopped);
    });
    let (mut stream, pong) = ping(&client, &server).await.expect("served");
    assert_eq!(&pong, b"+PONG\r\n");
    // What is encrypted and decrypted from now on takes nothing of that runtime.
    drop(stop);
    thread.join().expect("no panic");
    stream.write_all(b"PING\r\n").await.expect("sent");
    stream.flush().await.expect("sent");
    let mut again = [0; 7];
    stream.read_exact(&mut again).await.expect("answered");
    assert_eq!(&again, b"+PONG\r\n");
}
