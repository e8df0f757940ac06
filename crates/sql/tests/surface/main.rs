//! The surface of SQL held against PostgreSQL: every statement of the files in `scripts` has the result that PostgreSQL 15 gave, or a difference
//! that stands beside it with its reason. `make surface` asks PostgreSQL and records; these tests need what is recorded only.

mod client;
mod page;
mod random;
mod run;
mod script;

use client::Target;
use rhumb_sql::server::{ServerOptions, serve};
use rhumb_sqltestkit::{LocalGateway, LocalQuotas};
use run::{Complaint, check, record};
use script::Script;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// The port of a PostgreSQL on the loopback to record from, if results are to be recorded.
const RECORD: &str = "SURFACE_POSTGRES_PORT";
/// Scripts that run at a time. Each has a server of its own.
const WORKERS: usize = 4;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/surface/scripts")
}

fn page_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/surface.md")
}

/// Every script, in the order of their names.
fn scripts() -> Vec<(PathBuf, Script)> {
    let listed = std::fs::read_dir(folder()).expect("a folder of scripts");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).expect("a script");
        let script = Script::parse(&text);
        (file, script)
    };
    files.into_iter().map(read).collect()
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

/// A server of Rhumb over an empty database in memory. It ends with the runtime.
fn rhumb(runtime: &Runtime) -> Target {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let gateway = Arc::new(LocalGateway::new());
    runtime.spawn(serve(listener, gateway, Some(Arc::new(LocalQuotas::new())), ServerOptions::default()));
    Target { port, database: "rhumb".to_owned() }
}

/// Calls `work` for each item, on several threads.
fn on_several_threads<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let queue = Mutex::new(items);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(item) = { queue.lock().expect("no thread panics with it").pop() } {
                    work(item);
                }
            });
        }
    });
}

#[test]
fn every_statement_has_the_result_of_postgresql_or_a_difference_with_its_reason() {
    let runtime = runtime();
    let scripts = scripts();
    if let Ok(port) = std::env::var(RECORD) {
        return record_all(&runtime, scripts, port.parse().expect("a port"));
    }
    let complaints = Mutex::new(Vec::new());
    on_several_threads(scripts, |(file, script)| {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let found = check(&script, &rhumb(&runtime));
        complaints.lock().expect("no thread panics with it").extend(found.into_iter().map(|complaint| format!("{name}: {complaint}")));
    });
    let mut complaints = complaints.into_inner().expect("no thread panicked with it");
    complaints.sort();
    assert!(complaints.is_empty(), "{} of:\n\n{}", complaints.len(), complaints.join("\n\n"));
}

/// Writes what PostgreSQL and Rhumb answer into the files, and then the page. PostgreSQL has one database, made anew for each file.
fn record_all(runtime: &Runtime, scripts: Vec<(PathBuf, Script)>, port: u16) {
    let asked = Mutex::new(Vec::new());
    for (file, script) in scripts {
        asked.lock().expect("one thread").push((file, record::ask_postgresql(script, port)));
    }
    on_several_threads(asked.into_inner().expect("one thread"), |(file, script)| {
        let recorded = record::ask_rhumb(script, &rhumb(runtime));
        let open = recorded.differences().filter(|(_, difference)| difference.reason == script::NO_REASON).count();
        println!(
            "{}: {} statements, {} differ, {open} without a reason",
            file.display(),
            recorded.records().count(),
            recorded.differences().count()
        );
        std::fs::write(&file, recorded.to_string()).expect("written");
    });
    std::fs::write(page_file(), page::page(&self::scripts())).expect("written");
}

#[test]
fn the_page_is_that_of_the_scripts() {
    if std::env::var(RECORD).is_ok() {
        return;
    }
    let on_disk = std::fs::read_to_string(page_file()).expect("a page");
    assert!(on_disk == page::page(&scripts()), "docs/surface.md is not what the scripts say: run `make surface`");
}

#[test]
fn scripts_are_written_as_they_are_printed() {
    if std::env::var(RECORD).is_ok() {
        return;
    }
    for (file, script) in scripts() {
        let text = std::fs::read_to_string(&file).expect("a script");
        assert!(text == script.to_string(), "{} is not as it would be recorded: run `make surface`", file.display());
    }
}

#[test]
fn a_wrong_expectation_and_a_difference_that_is_gone_are_found() {
    let text = "\
# A subject

query SELECT 1 (n int8)
SELECT 2::bigint AS n
----
1

error 22012
SELECT 1 / 0
differs: it is not
query SELECT 1 (n int8)
----
3

SELECT 'never recorded'

query SELECT 1 (n int8)
SELECT 4::bigint AS n
----
4

query SELECT 1 (n int8)
SELECT 5::bigint AS n
----
6
differs: ?
query SELECT 1 (n int8)
----
5
";
    let runtime = runtime();
    let complaints = check(&Script::parse(text), &rhumb(&runtime));
    let kinds: Vec<&str> = complaints.iter().map(Complaint::kind).collect();
    assert_eq!(kinds, ["another result", "no difference", "not recorded", "no reason"], "{complaints:#?}");
}
