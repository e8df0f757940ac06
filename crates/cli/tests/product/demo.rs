//! A demo with real processes: it comes up, outlives the death of a site, and leaves nothing behind.

use crate::common::{self, Demo, done, lives, refused, send, until};
use rustix::process::Signal;
use serde_json::json;
use tokio_postgres::Client;

const THREE: [&str; 4] = ["--wan", "none", "--regions", "3"];

async fn words(client: &Client, id: i32) -> Option<String> {
    let row = client.query_opt("SELECT words FROM greeting WHERE id = $1", &[&id]).await.expect("a majority is there");
    row.map(|row| row.get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_killed_the_others_go_on_and_it_returns() {
    let mut demo = Demo::start(&THREE);
    let ready = demo.ready();
    let names: Vec<_> = ready["regions"].as_array().expect("regions").iter().map(|region| region["name"].clone()).collect();
    assert_eq!(names, [json!("region1"), json!("region2"), json!("region3")]);
    let resp = ready["regions"][1]["resp"].as_str().expect("an address");
    assert!(resp.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_loopback()), "{resp}");
    assert!(ready["regions"][1]["http"].as_str().expect("an address").starts_with("http://127.0.0.1:"));

    let first = demo.connect(0).await;
    first.batch_execute("CREATE TABLE greeting (id INT PRIMARY KEY, words TEXT)").await.expect("created");
    first.execute("INSERT INTO greeting VALUES (1, 'hello')", &[]).await.expect("inserted");
    let second = demo.connect(1).await;
    assert_eq!(words(&second, 1).await.as_deref(), Some("hello"));

    // Killed by another process: the demo notices.
    let pids = demo.pids();
    assert_eq!(pids.len(), 3);
    send(pids[2], Signal::KILL);
    until("the demo notices", || demo.pids().len() == 2);
    assert!(demo.said().contains("region3/0 died (signal: 9 (SIGKILL)); `rhumb chaos restart region3` starts it again"), "{}", demo.said());
    demo.chaos_refused(&["kill", "region3"], "region3 is dead already; `rhumb chaos restart region3` starts it again");
    first.execute("INSERT INTO greeting VALUES (2, 'still here')", &[]).await.expect("two of three are a majority");

    let back = demo.chaos(&["restart", "region3"]);
    assert!(back.starts_with("region3 is back, ready after "), "{back}");
    let third = demo.connect(2).await;
    assert_eq!(words(&third, 2).await.as_deref(), Some("still here"));
    third.execute("INSERT INTO greeting VALUES (3, 'and I')", &[]).await.expect("inserted");
    assert_eq!(words(&first, 3).await.as_deref(), Some("and I"));
    demo.chaos_refused(&["restart", "region3"], "region3 is running already");

    let pids = demo.pids();
    assert!(pids.iter().all(|&pid| lives(pid)));
    let (status, left) = demo.end(Signal::INT);
    assert_eq!((status.code(), left), (Some(0), vec![]));
    assert!(!pids.iter().any(|&pid| lives(pid)));
    assert!(!demo.path("demo.json").exists() && !demo.path("demo.sock").exists() && !demo.path("ready.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_cut_and_healed() {
    let demo = Demo::start(&THREE);
    let status = || common::rhumb(&["status", &format!("--demo={}", demo.state())]);
    assert_eq!(status().status.code(), Some(0));
    let open = || {
        let shown: serde_json::Value =
            serde_json::from_str(&done(&["status", "--json", &format!("--demo={}", demo.state())])).expect("JSON");
        let of = |site: &serde_json::Value| site["status"]["transactions"]["open"].as_u64().expect("a count");
        shown.as_array().expect("sites").iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(open(), [0, 0, 0]);
    let client = demo.connect(1).await;
    client.batch_execute("BEGIN; SELECT 1").await.expect("begun");
    assert_eq!(open(), [0, 1, 0]);
    client.batch_execute("ROLLBACK").await.expect("ended");
    until("it is over", || open() == [0, 0, 0]);

    assert_eq!(demo.chaos(&["cut", "region3"]), "region3 ↔ all others is cut\n");
    until("region3 is not ready", || {
        let shown = String::from_utf8(status().stdout).expect("text");
        shown.contains("region3/0: only 1 of 3 regions can be heard (region3); a majority is 2")
    });
    assert_eq!(demo.chaos(&["heal"]), "all links are healed\n");
    until("all are ready", || status().status.success());
    assert_eq!(demo.chaos(&["cut", "region1", "region2", "--one-way"]), "region1 → region2 is cut\n");
    assert_eq!(demo.chaos(&["slow", "region2", "region3", "--by", "20ms"]), "region2 ↔ region3 is slower by 20 ms each way\n");
    assert_eq!(demo.chaos(&["heal", "region1", "region2"]), "region1 ↔ region2 is healed\n");

    demo.chaos_refused(&["cut", "mars"], "there is no region `mars`; the demo has region1, region2, region3");
    demo.chaos_refused(&["kill", "region1.4"], "there is no site `region1.4`; the shards of region region1 are 0 to 0");
    demo.chaos_refused(&["cut", "region1", "region1"], "there is no link between region1 and region1: they are the same");
    assert_eq!(demo.chaos(&["kill", "region1.0"]), "region1.0 is dead; `rhumb chaos restart region1.0` starts it again\n");
    demo.chaos(&["kill", "region2"]);
    let line = "both ends of the link between region1 and region2 are dead; `rhumb chaos restart` starts them again";
    demo.chaos_refused(&["cut", "region1", "region2"], line);
    let again = ["demo", "--state", &demo.state()];
    let running = demo.running()["pid"].clone();
    refused(
        &again,
        1,
        &format!("a demo is already running (process {running}): stop it, or give this one a state file of its own with --state FILE"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_there_again_on_the_same_ports_even_after_the_demo_itself_was_killed() {
    let kept = tempfile::tempdir().expect("a folder");
    let data = kept.path().join("data");
    let arguments = [&THREE[..], &["--data", data.to_str().expect("text")]].concat();
    let mut demo = Demo::start(&arguments);
    let ready = demo.ready();
    let client = demo.connect(0).await;
    client.batch_execute("CREATE TABLE greeting (id INT PRIMARY KEY, words TEXT)").await.expect("created");
    client.execute("INSERT INTO greeting VALUES (1, 'hello')", &[]).await.expect("inserted");
    let pids = demo.pids();
    demo.end(Signal::KILL);
    until("no site outlives its demo", || !pids.iter().any(|&pid| lives(pid)));
    // Nor does another demo take its ports.
    let lane = demo.leave();

    let mut demo = Demo::start_in(lane, &arguments);
    assert_eq!(demo.ready(), ready);
    assert_eq!(words(&demo.connect(1).await, 1).await.as_deref(), Some("hello"));
    assert_eq!(demo.end(Signal::TERM).0.code(), Some(0));

    // A site that cannot start ends the demo, which shows why.
    std::fs::write(data.join("region2-0/data/FORMAT"), "format = 99\n").expect("written");
    let output = common::rhumb(&[&["demo", "--state", &demo.state()], &arguments[..]].concat());
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("rhumb: region2/0 did not start (exit status: 1); the end of "), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.starts_with("  rhumb: ") && line.contains("region2-0/data")), "{said}");
}

#[test]
fn a_benchmark_runs_on_a_demo_with_two_shards() {
    let demo = Demo::start(&["--wan", "none", "--regions", "3", "--sites-per-region", "2"]);
    assert_eq!(demo.ready()["regions"].as_array().expect("regions").len(), 3);
    assert_eq!(demo.pids().len(), 6);
    let of_demo = format!("--demo={}", demo.state());
    let loaded = done(&["bench", "init", "bank", "--accounts", "20", &of_demo]);
    assert!(loaded.contains("bank_account          20 rows"), "{loaded}");
    let report = done(&["bench", "run", "bank", &of_demo, "--clients", "1", "--transactions", "30", "--warmup", "0s", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["regions"].as_array().expect("regions").len(), 3);
    assert_eq!(report["violations"], json!([]));
    let checked = done(&["bench", "check", "bank", "--ready-file", &demo.path("ready.json").display().to_string()]);
    assert!(checked.starts_with("bank · "), "{checked}");

    done(&["bench", "init", "statements", "--rows", "10", &of_demo]);
    let report = done(&["bench", "run", "statements", &of_demo, "--transactions", "42", "--warmup", "0s", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["statements"].as_array().expect("statements").len(), 7 * 3);
    assert_eq!((&report["violations"], &report["total"]["committed"]), (&json!([]), &json!(42)));
    let checked = done(&["bench", "check", "statements", &of_demo]);
    assert!(checked.starts_with("statements · "), "{checked}");
}
