//! The `rhumb` binary as its users run it, and a demo that is gone when the test is.

mod lane;

use lane::Lane;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// A port that stays free when it is given up, for a site to bind: below those that systems give to outgoing connections, and each
/// time another.
pub fn lasting_port() -> TcpListener {
    static NEXT: AtomicU16 = AtomicU16::new(21_000);
    let mut ports = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
    ports.find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()).expect("a free port")
}

/// Runs `rhumb` with these arguments to its end.
pub fn rhumb(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rhumb")).args(arguments).stdin(Stdio::null()).output().expect("the binary runs")
}

/// Starts a site in a shell that runs `first`, which may set limits. One that `is_refused` is ended after a minute, should it serve.
pub fn start_limited(first: &str, config: &Path, is_refused: bool) -> Child {
    let at_most = if is_refused { "timeout 60" } else { "" };
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{first} exec {at_most} \"$0\" start --config \"$1\"")]);
    shell.args([Path::new(env!("CARGO_BIN_EXE_rhumb")), config]);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell")
}

/// Runs it, and expects it to fail with this code and this one line.
pub fn refused(arguments: &[&str], code: i32, line: &str) {
    let output = rhumb(arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("rhumb: {line}\n"), "{arguments:?}");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

/// Runs it, expects it to succeed, and returns what it printed.
pub fn done(arguments: &[&str]) -> String {
    let output = rhumb(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// What is answered at `path` of a site, whose HTTP address is `http`.
pub fn get(http: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(http.trim_start_matches("http://")).expect("it listens");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it takes requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

/// The placement that a site shows.
pub fn placement(http: &str) -> Value {
    let answer = get(http, "/placement");
    let (_, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    serde_json::from_str(body).expect("JSON")
}

/// Makes a table, an index, and changes rows, each in another region: what one region was told, all see at once.
pub async fn a_table_is_the_same_in_all_regions(clients: &[Client]) {
    clients[1].batch_execute("CREATE TABLE item (id INT PRIMARY KEY, name TEXT UNIQUE, n INT NOT NULL)").await.expect("created");
    clients[4].batch_execute("INSERT INTO item VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)").await.expect("inserted");
    for client in clients {
        assert_eq!(rows(client, "SELECT name FROM item WHERE n > 1 ORDER BY id DESC").await, ["three", "two"]);
        assert_eq!(rows(client, "SELECT id FROM item ORDER BY id DESC LIMIT 1").await, ["3"]);
    }
    clients[3].batch_execute("CREATE INDEX item_n ON item (n)").await.expect("created");
    assert_eq!(clients[0].execute("UPDATE item SET n = n * 10 WHERE n >= 2", &[]).await.expect("updated"), 2);
    assert_eq!(clients[2].execute("DELETE FROM item WHERE n = 30", &[]).await.expect("deleted"), 1);
    assert_eq!(rows(&clients[1], "SELECT id FROM item WHERE n = 20").await, ["2"]);
    assert_eq!(code(clients[1].batch_execute("INSERT INTO item VALUES (4, 'two', 0)").await), "23505");
    assert_eq!(clients[1].execute("INSERT INTO item VALUES (4, 'three', 0)", &[]).await.expect("the name is free"), 1);
    assert_eq!(rows(&clients[0], "SELECT sum(n) FROM item").await, ["21"]);
}

/// The rows of a statement, as text, columns between bars.
pub async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.iter().filter_map(|message| if let SimpleQueryMessage::Row(row) = message { Some(row) } else { None });
    rows.map(|row| (0..row.len()).map(|column| row.get(column).unwrap_or("NULL")).collect::<Vec<_>>().join("|")).collect()
}

/// A client of the Redis protocol that says one thing at a time.
pub struct Redis(BufReader<TcpStream>);

impl Redis {
    /// No answer takes longer than an operation may wait, and a little.
    const ANSWER_MAX: Duration = Duration::from_secs(30);

    /// Connected to the site of a region.
    pub fn at(demo: &Demo, region: usize) -> Redis {
        let stream = TcpStream::connect(demo.of_region(region, "resp")).expect("it listens");
        stream.set_read_timeout(Some(Redis::ANSWER_MAX)).expect("a timeout");
        Redis(BufReader::new(stream))
    }

    /// The first line of the answer, without its end.
    pub fn say(&mut self, command: &str) -> String {
        self.0.get_mut().write_all(format!("{command}\r\n").as_bytes()).expect("it reads");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }

    /// The same, which is no refusal.
    pub fn done(&mut self, command: &str) -> String {
        let answer = self.say(command);
        assert!(!answer.starts_with('-'), "{command}: {answer}");
        answer
    }

    /// It is refused with that code.
    pub fn refused(&mut self, command: &str, code: &str) {
        let answer = self.say(command);
        assert!(answer.starts_with(&format!("-{code} ")), "{command}: {answer}");
    }
}

/// What is answered to a body of JSON at `path` of a site: the status and the body.
pub fn post(http: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(http.trim_start_matches("http://")).expect("it listens");
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .expect("it takes requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// The SQLSTATE of a statement that must fail.
pub fn code<T>(result: Result<T, tokio_postgres::Error>) -> String {
    let error = result.err().expect("the statement must fail");
    error.code().unwrap_or_else(|| panic!("an error of the server, not {error:?}")).code().to_string()
}

/// A running demo.
pub struct Demo {
    child: Child,
    folder: TempDir,
    lane: Option<Lane>,
}

impl Demo {
    /// Starts one, and waits until its ready file is there. Its temporary files are in a folder of the test's own.
    pub fn start(arguments: &[&str]) -> Demo {
        Demo::start_in(Lane::any(), arguments)
    }

    /// The same for a demo to be put under load, while no other one is.
    pub fn start_for_load(arguments: &[&str]) -> Demo {
        Demo::start_in(Lane::of_load(), arguments)
    }

    /// The same, while no other demo runs.
    pub fn start_alone(arguments: &[&str]) -> Demo {
        Demo::start_in(Lane::all(), arguments)
    }

    /// The same in a lane that the test has.
    pub fn start_in(lane: Lane, arguments: &[&str]) -> Demo {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("tmp")).expect("a folder in it");
        let said = File::create(folder.path().join("out.txt")).expect("a file in it");
        let child = Command::new(env!("CARGO_BIN_EXE_rhumb"))
            .arg("demo")
            .args(arguments)
            .args([Path::new("--ready-file"), &folder.path().join("ready.json")])
            .args([Path::new("--state"), &folder.path().join("demo.json")])
            .args(["--ports-from", &lane.port()])
            .env("TMPDIR", folder.path().join("tmp"))
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("a second handle"))
            .stderr(said)
            .spawn()
            .expect("the binary runs");
        let mut demo = Demo { child, folder, lane: Some(lane) };
        let ready = demo.path("ready.json");
        while !ready.exists() {
            if let Some(status) = demo.child.try_wait().expect("a child") {
                panic!("the demo ended ({status}): {}", demo.said());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        demo
    }

    /// Ends it, if it has not ended, and leaves its lane to one that comes after.
    pub fn leave(mut self) -> Lane {
        self.lane.take().expect("taken here alone, and only once")
    }

    /// What the ready file says of a region: its `name`, or the address of its `http`, `sql` or `resp`.
    pub fn of_region(&self, region: usize, what: &str) -> String {
        let text = &self.ready()["regions"][region][what];
        text.as_str().unwrap_or_else(|| panic!("no {what} of region {region}")).trim_end_matches('/').to_owned()
    }

    /// A metric of a region's site; none if it is not there.
    pub fn metric(&self, region: usize, name: &str) -> Option<f64> {
        let text = get(&self.of_region(region, "http"), "/metrics");
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    /// The same, which is there.
    pub fn counted(&self, region: usize, name: &str) -> f64 {
        self.metric(region, name).unwrap_or_else(|| panic!("region {region} has no {name}"))
    }

    /// A file in the test's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The option by which other commands find this demo.
    pub fn state(&self) -> String {
        self.path("demo.json").display().to_string()
    }

    /// What it printed so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.path("out.txt")).expect("it prints there")
    }

    /// Its ready file.
    pub fn ready(&self) -> Value {
        self.json("ready.json")
    }

    /// Its state file.
    pub fn running(&self) -> Value {
        self.json("demo.json")
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path(name)).expect("it is there")).expect("JSON")
    }

    /// The processes of its sites that live, by its own account.
    pub fn pids(&self) -> Vec<u32> {
        let sites = self.running()["sites"].as_array().expect("sites").clone();
        sites.iter().filter_map(|site| site["pid"].as_u64()).map(|pid| pid as u32).collect()
    }

    /// Runs `rhumb chaos` on it.
    pub fn chaos(&self, arguments: &[&str]) -> String {
        done(&[&["chaos", "--demo", &self.state()], arguments].concat())
    }

    /// Runs `rhumb chaos` on it, which must be refused with this line.
    pub fn chaos_refused(&self, arguments: &[&str], line: &str) {
        refused(&[&["chaos", "--demo", &self.state()], arguments].concat(), 1, line);
    }

    /// Connects to the region at `index`.
    pub async fn connect(&self, index: usize) -> Client {
        let ready = self.ready();
        let url = ready["regions"][index]["pg"].as_str().expect("an address").to_owned();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("it serves");
        tokio::spawn(connection);
        client
    }

    /// Connects to a database in the region at `index`.
    pub async fn connect_to(&self, index: usize, database: &str) -> Result<Client, tokio_postgres::Error> {
        let ready = self.ready();
        let url = ready["regions"][index]["pg"].as_str().expect("an address").to_owned();
        let mut config: tokio_postgres::Config = url.parse().expect("an address");
        let (client, connection) = config.dbname(database).connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Sends `signal` to the demo's own process, and waits for its end. Returns what is left of its temporary files.
    pub fn end(&mut self, signal: Signal) -> (std::process::ExitStatus, Vec<PathBuf>) {
        send(self.child.id(), signal);
        let status = self.child.wait().expect("a child");
        let left = std::fs::read_dir(self.path("tmp")).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        (status, left)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // A demo that a failed test leaves behind takes its sites with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends `signal` to the process `pid`.
pub fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).expect("not zero"), signal).expect("it lives");
}

/// True while the process `pid` lives.
pub fn lives(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        // A zombie has ended.
        Ok(stat) => !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => false,
    }
}

/// Waits until `met`; panics after a minute.
pub fn until(what: &str, mut met: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if met() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never happened: {what}");
}
