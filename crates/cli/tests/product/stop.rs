//! A site that is told to stop, as a process: what its clients have under way is finished within the grace, and kept. And one that
//! may open too few files.

use crate::common::{self, send};
use bytes::Bytes;
use futures::SinkExt;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use tokio_postgres::{Client, Error, NoTls};

/// A site by itself.
struct Site {
    process: Child,
    sql: String,
}

impl Site {
    /// Starts it on the data and the configuration in `folder`.
    fn start(folder: &Path) -> Site {
        let mut process = Command::new(env!("CARGO_BIN_EXE_rhumb"))
            .args([Path::new("start"), Path::new("--config"), &folder.join("site.toml")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut said = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut said).expect("text");
        let sql = said.split("sql ").nth(1).and_then(|rest| rest.split(',').next()).expect("where it listens").to_owned();
        Site { process, sql }
    }

    async fn connect(&self) -> Client {
        let (host, port) = self.sql.split_once(':').expect("an address");
        let config = format!("host={host} port={port} user=tester dbname=rhumb");
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.expect("it serves");
        tokio::spawn(connection);
        client
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A test that failed left it behind.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configured(folder: &Path) {
    let port = || common::lasting_port().local_addr().expect("bound").port();
    let (sql, http, peer) = (port(), port(), port());
    let listen = format!("sql = '127.0.0.1:{sql}', http = '127.0.0.1:{http}', peer = '127.0.0.1:{peer}'");
    let regions = format!("[{{ name = 'a', sites = ['127.0.0.1:{peer}'] }}]");
    let text = format!(
        "data_dir = 'data'\nsite = {{ region = 'a', shard = 0 }}\nlisten = {{ {listen} }}\nregions = {regions}\n[limits]\nstop_grace_ms = 600000\n"
    );
    std::fs::write(folder.join("site.toml"), text).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_under_way_are_finished_when_a_site_is_told_to_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    configured(folder.path());
    let mut site = Site::start(folder.path());
    let (busy, idle) = (site.connect().await, site.connect().await);
    busy.batch_execute("CREATE TABLE t (id int PRIMARY KEY)").await.expect("created");
    let copied: Result<u64, Error> = async {
        let mut rows = pin!(busy.copy_in("COPY t FROM STDIN").await?);
        rows.send(Bytes::from_static(b"1\n2\n")).await?;
        send(site.process.id(), Signal::TERM);
        while TcpStream::connect(&site.sql).is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let ended = idle.simple_query("SELECT 1").await.expect_err("idle sessions end");
        assert!(ended.is_closed() || ended.code().is_some_and(|code| code.code() == "57P01"), "{ended:?}");
        rows.send(Bytes::from_static(b"3\n")).await?;
        rows.as_mut().finish().await
    }
    .await;
    assert_eq!(copied.expect("the statement under way is finished"), 3);
    assert!(site.process.wait().expect("it ends").success());
    let site = Site::start(folder.path());
    let count: i64 = site.connect().await.query_one("SELECT count(*) FROM t", &[]).await.expect("counted").get(0);
    assert_eq!(count, 3);
}

#[test]
fn a_site_that_may_open_too_few_files_does_not_start_and_one_with_a_low_soft_limit_raises_it() {
    let folder = tempfile::tempdir().expect("a folder");
    configured(folder.path());
    let config = folder.path().join("site.toml");
    let refused = common::start_limited("ulimit -n 1000;", &config, true).wait_with_output().expect("it ends");
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(line.starts_with("rhumb: this process may open 1000 files, and a site needs 7114 for its store and all clients"), "{line}");
    assert_eq!((line.lines().count(), refused.status.code(), folder.path().join("data").exists()), (1, Some(1), false));
    let mut started = common::start_limited("ulimit -S -n 100;", &config, false);
    let mut said = String::new();
    BufReader::new(started.stdout.take().expect("piped")).read_line(&mut said).expect("text");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", started.id())).expect("it lives");
    started.kill().expect("it runs");
    started.wait().expect("it ends");
    let files: Vec<&str> = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line").split_whitespace().collect();
    assert_eq!(files[3], files[4], "the soft limit is the hard one");
    assert!(said.starts_with("site a/0 listens: "), "{said}");
}
