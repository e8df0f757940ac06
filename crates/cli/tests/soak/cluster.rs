//! The cluster under test: a demo of five regions whose data and logs stay if the test fails, and the ways to its sites.

use crate::common::{self, Demo};
use rhumb_bench::client::postgres::Endpoint;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

const PROFILE: &str = "paper_replicated_commit_5";
/// How long a site may take to answer over HTTP before it counts as silent.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Five regions at work.
pub struct Cluster {
    demo: Demo,
    sites: Vec<Site>,
    _data: Kept,
}

/// Where a site is reached.
struct Site {
    name: String,
    sql: String,
    http: SocketAddr,
    resp: SocketAddr,
}

/// A folder that goes with its owner, unless the test fails.
struct Kept(Option<TempDir>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let (true, Some(folder)) = (std::thread::panicking(), self.0.take()) {
            println!("data, configurations and logs of the sites are kept in {}", folder.keep().display());
        }
    }
}

impl Cluster {
    /// Starts it.
    pub fn start() -> Cluster {
        let data = tempfile::tempdir().expect("a folder");
        let demo = Demo::start(&["--wan", PROFILE, "--data", data.path().to_str().expect("text")]);
        let ready = demo.ready();
        let site = |site: &Value| {
            let text = |name: &str| site[name].as_str().expect("the demo wrote it").to_owned();
            let http = text("http").trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
            Site { name: text("name"), sql: text("pg"), http, resp: text("resp").parse().expect("an address") }
        };
        let sites = ready["regions"].as_array().expect("regions").iter().map(site).collect();
        Cluster { demo, sites, _data: Kept(Some(data)) }
    }

    /// How many regions there are, each with a site.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// A region's name.
    pub fn name(&self, region: usize) -> &str {
        &self.sites[region].name
    }

    /// Where clients of a database connect in a region.
    pub fn endpoint(&self, region: usize, database: &str) -> Endpoint {
        let (server, _) = self.sites[region].sql.rsplit_once('/').expect("a database at its end");
        Endpoint::parse(&format!("{}={server}/{database}", self.name(region))).expect("an address")
    }

    /// Where clients of quotas connect in a region.
    pub fn resp(&self, region: usize) -> SocketAddr {
        self.sites[region].resp
    }

    /// All ports of a region's site that clients connect to.
    pub fn client_ports(&self, region: usize) -> [SocketAddr; 3] {
        let Site { sql, http, resp, .. } = &self.sites[region];
        let sql = sql.rsplit('@').next().and_then(|rest| rest.split('/').next()).expect("a host");
        [*http, sql.parse().expect("an address"), *resp]
    }

    /// The configuration of a region's site.
    pub fn config(&self, region: usize) -> PathBuf {
        self.demo.running()["sites"][region]["config"].as_str().expect("a path").into()
    }

    /// The log of a region's site.
    pub fn log(&self, region: usize) -> PathBuf {
        self.demo.running()["sites"][region]["log"].as_str().expect("a path").into()
    }

    /// What `path` of a region's site answers: the status and the body.
    pub fn get(&self, region: usize, path: &str) -> io::Result<(u16, String)> {
        self.ask(region, &format!("GET {path} HTTP/1.0\r\n\r\n"))
    }

    /// The same with a body of JSON.
    pub fn post(&self, region: usize, path: &str, body: &str) -> io::Result<(u16, String)> {
        let length = body.len();
        self.ask(region, &format!("POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"))
    }

    fn ask(&self, region: usize, request: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.sites[region].http, ANSWER_WITHIN)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let parsed = answer.split_once("\r\n\r\n").and_then(|(head, body)| Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned())));
        parsed.ok_or_else(|| io::Error::other("no answer of HTTP"))
    }

    /// Sends `signal` to the process of a region's site, if it lives.
    pub fn signal(&self, region: usize, signal: Signal) {
        let pid = self.demo.running()["sites"][region]["pid"].as_u64();
        if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid as i32)) {
            // It may have ended in this moment.
            let _ = kill_process(pid, signal);
        }
    }

    /// True if the demo knows of a process of this region's site.
    pub fn runs(&self, region: usize) -> bool {
        self.demo.running()["sites"][region]["pid"].is_u64()
    }

    /// Has the demo start a region's site again, and does not wait until that serves.
    pub fn begin_restart(&self, region: usize) {
        let control = self.demo.running()["control"].as_str().expect("a path").to_owned();
        let order = json!({ "action": "restart", "region": self.name(region), "shard": 0 });
        let mut stream = UnixStream::connect(control).expect("the demo takes orders");
        writeln!(stream, "{order}").expect("it reads them");
        let mut outcome = String::new();
        stream.read_to_string(&mut outcome).expect("it answers them");
        assert!(outcome.contains("Ok"), "{} is not started: {outcome}", self.name(region));
    }

    /// Runs `rhumb chaos` on it.
    pub fn chaos(&self, arguments: &[&str]) -> String {
        self.demo.chaos(arguments)
    }

    /// Runs another command of `rhumb` on it, which must succeed.
    pub fn done(&self, arguments: &[&str]) -> String {
        common::done(&[arguments, &[&format!("--demo={}", self.demo.state())]].concat())
    }
}
