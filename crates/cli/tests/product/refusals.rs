//! What is asked wrongly is refused with one line that says what to do, and the exit code that goes with it.

use crate::common::{self, done, refused, rhumb};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The configuration of a cluster of one site, with free ports.
fn config(folder: &Path) -> String {
    let ports: Vec<u16> = (0..3)
        .map(|_| common::lasting_port())
        .collect::<Vec<_>>()
        .iter()
        .map(|listener| listener.local_addr().expect("bound").port())
        .collect();
    let [sql, http, peer] = ports[..] else { unreachable!("three were asked for") };
    let text = format!(
        "data_dir = 'data'\nsite = {{ region = 'a', shard = 0 }}\nlisten = {{ sql = '127.0.0.1:{sql}', http = '127.0.0.1:{http}', peer = '127.0.0.1:{peer}' }}\nregions = [{{ name = 'a', sites = ['127.0.0.1:{peer}'] }}]\n"
    );
    std::fs::write(folder.join("site.toml"), &text).expect("written");
    text
}

#[test]
fn a_configuration_that_cannot_be_is_refused_with_file_and_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("site.toml");
    let path = path.to_str().expect("text");
    let start = |code, line: &str| refused(&["start", "--config", path], code, line);
    start(2, &format!("{path}: cannot read the configuration: No such file or directory (os error 2)"));

    let text = config(folder.path());
    let with = |from: &str, to: &str| std::fs::write(path, text.replacen(from, to, 1)).expect("written");
    with("data_dir", "data_drive");
    start(
        2,
        &format!(
            "{path}, line 1, data_drive: unknown field `data_drive`, expected one of `data_dir`, `site`, `listen`, `regions`, `tls`, `cluster`, `secret_file`, `chaos`, `wan`, `placement`, `clock`, `storage`, `quotas`, `catenae`, `quad`, `http`, `limits`"
        ),
    );
    with("region = 'a'", "region = 'mars'");
    start(2, &format!("{path}, site.region: `mars` is not among the regions; expected one of a"));
    with("sql = '127.0.0.1", "sql = '0.0.0.0");
    let port = text.split("sql = '127.0.0.1:").nth(1).and_then(|rest| rest.split('\'').next()).expect("a port");
    start(
        2,
        &format!(
            "{path}, listen.sql: 0.0.0.0:{port} is refused: nothing is served in plain text beyond the loopback; give the site certificates under `[tls]`, as `rhumb init` does, or bind to 127.0.0.1 or [::1]"
        ),
    );
}

#[test]
fn a_site_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = config(folder.path());
    let path = folder.path().join("site.toml");
    let path = path.to_str().expect("text");
    let port = text.split("http = '").nth(1).and_then(|rest| rest.split('\'').next()).expect("an address");
    let taken = TcpListener::bind(port).expect("free");
    let line = format!("listen.http: {port} is in use by another process; stop that one, or choose another port");
    refused(&["start", "--config", path], 1, &line);
    drop(taken);

    std::fs::create_dir(folder.path().join("data")).expect("a folder");
    std::fs::write(folder.path().join("data/holiday.jpg"), "x").expect("written");
    let data = folder.path().join("data");
    let line = "is not a data folder of rhumb (it is not empty and has no file FORMAT): name an empty or a new folder";
    refused(&["start", "--config", path], 1, &format!("{} {line}", data.display()));
}

#[test]
fn a_site_that_has_peers_starts_with_the_secret_of_its_cluster_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = config(folder.path());
    let peer = common::lasting_port().local_addr().expect("bound");
    let path = folder.path().join("site.toml");
    std::fs::write(&path, text.replace("regions = [", &format!("regions = [{{ name = 'b', sites = ['{peer}'] }}, "))).expect("written");
    let path = path.to_str().expect("text");
    let secret = folder.path().join("cluster.secret");
    let file = secret.to_str().expect("text");
    let why = format!(
        "secret_file: {file} is not there: sites believe only who has the secret of their cluster. Make one with `rhumb secret {file}`, once, \
         and copy that file to every site"
    );
    refused(&["start", "--config", path], 2, &why);
    assert_eq!(done(&["secret", file]), format!("made {file}; copy it to every site of the cluster, and to nobody else\n"));
    let made = std::fs::read(&secret).expect("made");
    refused(&["secret", file], 1, &format!("{file} is there already; a cluster keeps its secret, and a new one needs a file of its own"));
    assert_eq!(std::fs::read(&secret).expect("kept"), made);
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).expect("set");
    let why = format!(
        "secret_file: {file} can be read by others than its owner (mode 644): run `chmod 600 {file}`; if others may have read it, give all sites \
         a new one, made with `rhumb secret FILE`"
    );
    refused(&["start", "--config", path], 2, &why);
    assert!(!folder.path().join("data").exists(), "nothing is made");
}

#[tokio::test]
async fn a_client_that_cannot_be_served_now_is_told_why() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("free");
    let url = format!("postgres://rhumb@{}/rhumb", listener.local_addr().expect("bound"));
    let declining = async {
        let (client, _) = listener.accept().await.expect("a client");
        rhumb_sql::server::decline(client, None, "the clock of this site is wrong").await;
    };
    let (refused, ()) = tokio::join!(tokio_postgres::connect(&url, tokio_postgres::NoTls), declining);
    let error = refused.map(|_| ()).expect_err("declined");
    let error = error.as_db_error().expect("an error of the server");
    assert_eq!((error.severity(), error.code().code(), error.message()), ("FATAL", "57P03", "the clock of this site is wrong"));
}

/// The system refuses writes beyond a size, as it does on a disk that is full.
#[test]
fn a_site_without_room_for_its_data_says_so_and_starts_once_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    config(folder.path());
    let path = folder.path().join("site.toml");
    // 128 KiB: less than a new journal is filled with.
    let refused = common::start_limited("trap '' XFSZ; ulimit -f 256;", &path, true).wait_with_output().expect("it ends");
    let line = format!("rhumb: {}: File too large (os error 27)\n", folder.path().join("data/creating").display());
    assert_eq!((String::from_utf8_lossy(&refused.stderr).into_owned(), refused.status.code()), (line, Some(1)));
    let mut started = common::start_limited("", &path, false);
    let mut said = String::new();
    BufReader::new(started.stdout.take().expect("piped")).read_line(&mut said).expect("text");
    started.kill().expect("it runs");
    started.wait().expect("it ends");
    assert!(said.starts_with("site a/0 listens: "), "{said}");
}

#[test]
fn a_demo_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state.json");
    let demo = |arguments: &[&str], line: &str| {
        let own = ["demo", "--state", state.to_str().expect("text")];
        refused(&[&own, arguments].concat(), 2, line);
    };
    let known = "paper_replicated_commit_5, paper_samya_5, paper_gplacer_9, aws_32, azure_48, gcp_39, aws_azure_42";
    demo(
        &["--wan", "mars"],
        &format!(
            "--wan: `mars` is neither a shipped profile, nor a file that can be read (No such file or directory (os error 2)); the profiles are {known}"
        ),
    );
    demo(&["--regions", "6"], "--regions 6: paper_replicated_commit_5 has 5 regions; expected 1 to 5");
    demo(&["--wan", "none", "--regions", "0"], "0 regions of 1 sites would be 0 processes; a demo runs 1 to 128");
    let matrix = folder.path().join("rtt.csv");
    std::fs::write(&matrix, "region,a,b\na,0,fast\nb,1,0\n").expect("written");
    let matrix = matrix.to_str().expect("text");
    demo(&["--wan", matrix], &format!("--wan: {matrix}, row 2 (a), column 3 (b): `fast` is not a round-trip time in milliseconds"));
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    std::fs::write(data.join("thesis.tex"), "x").expect("written");
    let data = data.canonicalize().expect("it is there");
    let line = "is not the data folder of a demo (it is not empty and has no file demo.json): name an empty or a new folder";
    demo(&["--data", data.to_str().expect("text")], &format!("{} {line}", data.display()));
    assert!(!state.exists());
}

#[test]
fn without_a_demo_there_is_nothing_to_harm_to_watch_or_to_measure() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state.json");
    let state = state.to_str().expect("text");
    let line = format!("no demo is running ({state} is not there): start one with `rhumb demo`");
    refused(&["chaos", "heal", "--demo", state], 1, &line);
    refused(&["status", &format!("--demo={state}")], 1, &line);
    refused(&["bench", "run", "bank", &format!("--demo={state}")], 1, &line);
    std::fs::write(state, "{}").expect("written");
    let line = format!("{state}: is not the state file of a demo: missing field `pid` at line 1 column 2");
    refused(&["chaos", "heal", "--demo", state], 1, &line);
}

#[test]
fn a_benchmark_that_cannot_be_is_refused() {
    let line = "\"mysql://h\" is not an address: it does not start with postgres://. Write postgres://USER@HOST:PORT/DATABASE, or REGION=postgres://…";
    refused(&["bench", "check", "tpcc", "--url", "mysql://h"], 2, line);
    let line = "the scale of a warehouse lies above 0 and up to 1, not at 2";
    refused(&["bench", "init", "tpcc", "--scale", "2", "--url", "postgres://127.0.0.1:1/rhumb"], 2, line);
    let missing = rhumb(&["bench", "run", "bank"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("<--url <[REGION=]URL>|--demo[=<FILE>]|--ready-file <PATH>>"));
}

#[test]
fn every_command_has_help_with_examples() {
    for command in [
        &["demo"][..],
        &["start"],
        &["secret"],
        &["status"],
        &["chaos"],
        &["sim"],
        &["quota"],
        &["lab"],
        &["plan"],
        &["bench"],
        &["bench", "init"],
        &["bench", "run"],
        &["bench", "check"],
    ] {
        let output = rhumb(&[command, &["--help"]].concat());
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && help.contains("Examples:\n  rhumb "), "{command:?}: {help}");
    }
}
