//! `rhumb plan` through the binary: tables and JSON, the searches, files that a demo starts with, and what is refused.

use crate::common::{self, Demo, done, refused, rhumb};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// A folder of files for one test.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a folder"))
    }

    /// The path of `name`.
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes `text` to `name` and returns its path.
    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.path().join(name), text).expect("written");
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    }
}

/// `rhumb plan` with these options to its end.
fn plan(options: &[&str]) -> String {
    done(&[&["plan"], options].concat())
}

/// The same with --json.
fn plan_json(options: &[&str]) -> Value {
    serde_json::from_str(&plan(&[options, &["--json"]].concat())).expect("JSON")
}

fn plan_refused(options: &[&str], line: &str) {
    refused(&[&["plan"], options].concat(), 2, line);
}

#[test]
fn a_plan_is_a_table_with_a_proof() {
    let text = plan(&["--rtt", "paper_replicated_commit_5"]);
    let expected = "\
california, oregon, singapore
3 of 5 regions hold a replica; any one may be lost
replicated-commit, majority reads, no handoff; the smallest mean
No workload was given: one client in every region.
Transactions read nothing: latencies are those of commits.

clients in  commit by   clients  latency ms  floor   gap
────────────────────────────────────────────────────────
california  california        1        21.0   21.0   0.0
oregon      oregon            1        21.0   21.0   0.0
virginia    virginia          1       101.0   86.0  15.0
ireland     ireland           1       169.0   99.0  70.0
singapore   singapore         1       173.0  173.0   0.0
────────────────────────────────────────────────────────
mean                          5        97.0   80.0  17.0
p95                           5       173.0  173.0   0.0
worst                         5       173.0  173.0   0.0

Proven: no placement of 3 replicas has a smaller mean than 97.0 ms (exact search, ";
    assert!(text.starts_with(expected) && text.ends_with(" nodes).\n"), "{text}");
}

#[test]
fn json_has_what_was_promised_first_and_in_order() {
    let files = Files::new();
    let workload = files.write("clients.csv", "region,clients,reads_per_txn\ncalifornia,3,0\nireland,1,2.5\n");
    let text =
        plan(&["--rtt", "paper_replicated_commit_5", "--workload", &workload, "--reads", "optimistic", "--forbidden", "ireland", "--json"]);
    let positions: Vec<usize> =
        ["\"replicas\"", "\"mean_ms\"", "\"proven_gap\"", "\"clients\""].map(|key| text.find(key).expect(key)).to_vec();
    assert!(positions.is_sorted() && text.starts_with("{\n  \"replicas\""), "{text}");
    let plan: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(plan["replicas"], json!(["california", "oregon", "virginia"]));
    assert_eq!(plan["proven_gap"], json!(0.0));
    // California commits in 21 ms; Ireland reads 2.5 times in Virginia, 99 ms away, and commits in 159 ms.
    let ireland = 2.5 * 99.0 + 159.0;
    assert_eq!(plan["mean_ms"], json!((3.0 * 21.0 + ireland) / 4.0));
    let clients = plan["clients"].as_array().expect("clients");
    assert_eq!(clients.len(), 2);
    let fields = ["region", "read_coordinator", "commit_coordinator", "latency_ms"].map(|field| clients[1][field].clone());
    assert_eq!(fields, [json!("ireland"), json!("virginia"), json!("ireland"), json!(ireland)]);
}

#[test]
fn every_method_finds_a_placement_and_the_searches_agree() {
    let by = |method: &str| plan_json(&["--rtt", "paper_gplacer_9", "--faults", "2", "--method", method]);
    let (exact, exhaustive) = (by("exact"), by("exhaustive"));
    for field in ["replicas", "mean_ms", "clients"] {
        assert_eq!(exact[field], exhaustive[field]);
    }
    assert_eq!((&exact["proven_gap"], &exhaustive["proven_gap"], &exhaustive["looked_at"]), (&json!(0.0), &json!(0.0), &json!(126)));
    for heuristic in ["greedy", "weighted"] {
        let found = by(heuristic);
        assert!(found["objective_ms"].as_f64() >= exact["objective_ms"].as_f64(), "{found}");
        assert!(found["bound_ms"].as_f64() <= exact["objective_ms"].as_f64(), "{found}");
    }
}

#[test]
fn a_search_that_is_stopped_says_how_far_off_it_may_be() {
    let stopped = |method: &str| plan_json(&["--rtt", "azure_48", "--faults", "5", "--method", method, "--time-limit", "0s"]);
    for method in ["exact", "exhaustive"] {
        let found = stopped(method);
        let [objective, bound, gap] = ["objective_ms", "bound_ms", "proven_gap"].map(|field| found[field].as_f64().expect("a number"));
        assert!(0.0 < bound && bound < objective, "{found}");
        assert!((gap - (objective - bound) / objective).abs() < 1e-9, "{found}");
        assert_eq!(found["replicas"].as_array().expect("replicas").len(), 11);
    }
    let text = plan(&["--rtt", "azure_48", "--faults", "5", "--time-limit", "0s"]);
    assert!(text.lines().last().is_some_and(|line| line.starts_with("Not proven: mean ")), "{text}");
}

#[test]
fn models_and_objectives_are_told_apart() {
    let mean = |options: &[&str]| plan_json(&[&["--rtt", "paper_gplacer_9", "--reads-per-txn", "2"], options].concat());
    let value = |plan: &Value, field: &str| plan[field].as_f64().expect("a number");
    let majority = value(&mean(&[]), "mean_ms");
    let optimistic = value(&mean(&["--reads", "optimistic"]), "mean_ms");
    let passive = value(&mean(&["--reads", "passive"]), "mean_ms");
    assert!(passive < optimistic && optimistic < majority);
    let two_round = value(&mean(&["--reads", "passive", "--protocol", "two-round"]), "mean_ms");
    let handed = mean(&["--reads", "passive", "--protocol", "two-round", "--handoff"]);
    assert!(value(&handed, "mean_ms") < two_round && passive < two_round);
    assert!(handed["clients"].as_array().expect("clients").iter().any(|client| client["commit_coordinator"] != client["region"]));
    let leader = mean(&["--protocol", "one-leader"]);
    let leaders: Vec<&Value> = leader["clients"].as_array().expect("clients").iter().map(|client| &client["commit_coordinator"]).collect();
    assert!(leaders.windows(2).all(|pair| pair[0] == pair[1]));
    let spread = |percent: &str| value(&mean(&["--protocol", "spread-leaders", "--multi-partition", percent]), "mean_ms");
    assert!(spread("0") < spread("10.5"));
    for (objective, field) in [("worst", "worst_ms"), ("p95", "p95_ms"), ("p100", "worst_ms"), ("region-mean", "mean_ms")] {
        let plan = mean(&["--objective", objective]);
        assert_eq!((&plan["objective"], &plan["objective_ms"]), (&json!(objective), &plan[field]));
    }
}

#[test]
fn constraints_are_kept_and_given_placements_held_against_the_best() {
    let files = Files::new();
    let capacity = files.write("capacity.csv", "region,clients\noregon,8\n");
    let constraints = ["--rtt", "paper_gplacer_9", "--at-most", "1/continent", "--forbidden", "virginia", "--capacity", &capacity];
    let free = plan_json(&["--rtt", "paper_gplacer_9"]);
    assert_eq!(free["replicas"], json!(["california", "oregon", "tokyo"]));
    let text = plan(&[&constraints[..], &["--required", "sydney", "--compare", "california,oregon,tokyo"]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("sydney") && !lines[0].contains("oregon") && !lines[0].contains("virginia"), "{text}");
    assert!(lines.contains(&"kept to: at most 1 per continent"), "{text}");
    let breaks = "california, oregon, tokyo does not keep to: \
                  a replica in sydney; at most 1 per continent; a replica only where there is capacity for all clients";
    assert_eq!(lines.last(), Some(&breaks), "{text}");
    assert!(lines[lines.len() - 2].starts_with("california, oregon, tokyo") && lines[lines.len() - 2].contains(" -"), "{text}");
    let within = plan_json(&["--rtt", "paper_gplacer_9", "--within", "ireland,sydney,seoul"]);
    assert_eq!(within["replicas"], json!(["ireland", "seoul", "sydney"]));
}

#[test]
fn the_front_of_price_and_latency_begins_with_the_best_and_ends_with_the_cheapest() {
    let files = Files::new();
    let rows = "california,90,0\noregon,80,0\nvirginia,70,0\nireland,60,0\nsingapore,50,0\n";
    let prices = files.write("prices.csv", &format!("region,replica_month,gigabyte_sent\n{rows}"));
    let options = ["--rtt", "paper_replicated_commit_5", "--prices", &prices, "--pareto"];
    let plan_of = plan_json(&options);
    let front = plan_of["front"].as_array().expect("a front");
    let column = |field: &str| front.iter().map(|point| point[field].as_f64().expect("a number")).collect::<Vec<f64>>();
    assert_eq!((column("price_month")[0], column("price_month").last().copied()), (220.0, Some(180.0)));
    assert!(column("objective_ms").is_sorted() && column("price_month").iter().rev().is_sorted(), "{front:?}");
    assert_eq!(
        (&plan_of["front_complete"], &front[0]["replicas"], &plan_of["price_month"]),
        (&json!(true), &plan_of["replicas"], &json!(220.0))
    );
    assert!(plan(&options).contains("price against latency"));
    let cheap = plan_json(&["--rtt", "paper_replicated_commit_5", "--prices", &prices, "--budget", "180"]);
    assert_eq!(cheap["replicas"], json!(["virginia", "ireland", "singapore"]));
}

#[test]
fn a_map_shows_every_region_once() {
    let files = Files::new();
    let map = files.path("map.svg");
    let said = plan(&["--rtt", "aws_azure_42", "--faults", "2", "--map", &map]);
    assert!(said.ends_with(&format!("written to {map}\n")), "{said}");
    let svg = fs::read_to_string(&map).expect("written");
    for name in ["aws:us-east-1", "azure:westus", "replica", "clients"] {
        assert_eq!(svg.matches(&format!("\n{name}\n")).count(), 1, "{name}");
    }
    let matrix = files.write("rtt.csv", "region,a,b,c\na,0,1,2\nb,1,0,3\nc,2,3,0\n");
    let unknown = "--map: the latitude,longitude of the region `a` is not known; \
                   give a table `region,latitude,longitude` with a row for every region with --places";
    plan_refused(&["--rtt", &matrix, "--map", &files.path("own.svg")], unknown);
    let places = files.write("places.csv", "region,latitude,longitude\na,-33.9,18.4\nb,52.4,4.9\nc,1.4,103.8\n");
    plan(&["--rtt", &matrix, "--places", &places, "--map", &files.path("own.svg")]);
    assert!(fs::read_to_string(files.path("own.svg")).expect("written").contains("\nc\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_starts_with_the_cluster_that_was_chosen() {
    let files = Files::new();
    let cluster = files.path("cluster.toml");
    let said = rhumb(&["plan", "--rtt", "aws_azure_42", "--at-most", "1/continent", "--json", "-o", &cluster]);
    assert_eq!(String::from_utf8_lossy(&said.stderr), format!("written to {cluster}\n"));
    let plan: Value = serde_json::from_slice(&said.stdout).expect("standard output is JSON alone");
    let mut demo = Demo::start(&["--cluster", &cluster]);
    let names: Vec<Value> = demo.ready()["regions"].as_array().expect("regions").iter().map(|region| region["name"].clone()).collect();
    assert_eq!(json!(names), plan["replicas"]);
    let client = demo.connect(0).await;
    client.batch_execute("CREATE TABLE greeting (id INT PRIMARY KEY, words TEXT)").await.expect("created");
    client.execute("INSERT INTO greeting VALUES (1, 'hello')", &[]).await.expect("inserted");
    let rows = demo.connect(2).await.query("SELECT words FROM greeting", &[]).await.expect("read");
    assert_eq!(rows[0].get::<_, String>(0), "hello");
    assert_eq!(demo.end(Signal::INT).0.code(), Some(0));

    let unknown = format!("{cluster}, regions: there is no region `mars`; expected one of {}", names_of(&plan));
    refused(&["start", "--config", &cluster, "--region", "mars"], 2, &unknown);
    let text = fs::read_to_string(&cluster).expect("written");
    let broken = files.write("broken.toml", &text.replacen("127.0.0.1:26258", "127.0.0.1:26257", 1));
    let line = format!("{broken}, regions[1].sites[0].sql: 127.0.0.1:26257 is already the address of regions[0].sites[0].sql");
    refused(&["demo", "--cluster", &broken, "--state", &files.path("state.json")], 2, &line);
    refused(&["start", "--config", &broken, "--region", "mars"], 2, &line);
}

#[tokio::test(flavor = "multi_thread")]
async fn regions_that_have_clients_and_no_replica_are_placed_in_the_cluster_too() {
    let files = Files::new();
    let (cluster, clients) = (files.path("cluster.toml"), files.write("clients.csv", "region,clients\noregon,3\nireland,2\n"));
    let options = ["--rtt", "paper_replicated_commit_5", "--workload", &clients, "--within", "california,oregon,virginia", "-o", &cluster];
    let placement = |more: &[&str]| {
        plan(&[&options[..], more].concat());
        let file: toml::Table = fs::read_to_string(&cluster).expect("written").parse().expect("TOML");
        let names = file["regions"].as_array().expect("regions").iter().map(|region| region["name"].as_str().expect("text").to_owned());
        (names.collect::<Vec<String>>(), file.get("placement").map(|placement| json!(placement)))
    };
    let everywhere = ["california", "oregon", "virginia", "ireland"].map(str::to_owned).to_vec();
    let active = ["california", "oregon", "virginia"];
    assert_eq!(placement(&["--reads", "optimistic"]), (everywhere.clone(), Some(json!({"active": active}))));
    let handed = json!({"ireland": {"read": "ireland", "commit": "california"}});
    let (_, two_rounds) = placement(&["--reads", "passive", "--protocol", "two-round", "--handoff"]);
    assert_eq!(two_rounds, Some(json!({"active": active, "passive": ["ireland"], "coordinators": handed})));
    assert_eq!(placement(&["--reads", "passive"]), (everywhere, Some(json!({"active": active, "passive": ["ireland"]}))));

    let demo = Demo::start(&["--cluster", &cluster]);
    let client = demo.connect(3).await;
    client.batch_execute("CREATE TABLE greeting (id INT PRIMARY KEY, words TEXT)").await.expect("created");
    client.execute("INSERT INTO greeting VALUES (1, 'hello')", &[]).await.expect("inserted");
    let rows = client.query("SHOW REGIONS", &[]).await.expect("regions");
    let roles: Vec<(String, String)> = rows.iter().map(|row| (row.get("name"), row.get("role"))).collect();
    let expected = [("california", "active"), ("oregon", "active"), ("virginia", "active"), ("ireland", "passive")];
    assert_eq!(roles, expected.map(|(name, role)| (name.to_owned(), role.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sites_of_a_cluster_are_started_one_by_one() {
    let files = Files::new();
    let cluster = files.path("cluster.toml");
    plan(&["--rtt", "paper_replicated_commit_5", "-o", &cluster]);
    let mut text = fs::read_to_string(&cluster).expect("written");
    // The documented ports may be taken on this machine.
    let free: Vec<TcpListener> = (0..12).map(|_| common::lasting_port()).collect();
    let documented = (0..3).flat_map(|site| [26257, 6380, 8080, 27257].map(|first| first + site));
    for (listener, port) in free.iter().zip(documented) {
        let address = listener.local_addr().expect("bound").to_string();
        text = text.replacen(&format!("\"127.0.0.1:{port}\""), &format!("\"{address}\""), 1);
    }
    let cluster = files.write("cluster.toml", &text);
    let sql = free[0].local_addr().expect("bound").port();
    drop(free);
    done(&["secret", &files.path("cluster.secret")]);
    let sites: Vec<Site> = ["california", "oregon", "singapore"].map(|region| Site::start(&cluster, region)).into();
    let (client, connection) =
        tokio_postgres::connect(&format!("postgres://rhumb@127.0.0.1:{sql}/rhumb"), NoTls).await.expect("California serves");
    tokio::spawn(connection);
    let mut outcome = client.batch_execute("CREATE TABLE greeting (id INT PRIMARY KEY)").await;
    for _ in 0..100 {
        // Until a majority hears of each other.
        if outcome.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        outcome = client.batch_execute("CREATE TABLE IF NOT EXISTS greeting (id INT PRIMARY KEY)").await;
    }
    outcome.expect("a majority is there");
    assert_eq!(client.execute("INSERT INTO greeting VALUES (1)", &[]).await.expect("inserted"), 1);
    assert!(Path::new(&files.path("data/oregon-0")).is_dir());
    drop(sites);
}

/// A process of `rhumb start` that goes with the test.
struct Site(Child);

impl Site {
    /// Starts the site of `region` in the file of a cluster, and waits until it listens.
    fn start(cluster: &str, region: &str) -> Site {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rhumb"))
            .args(["start", "--config", cluster, "--region", region])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("text");
        let site = Site(child);
        assert!(line.starts_with(&format!("site {region}/0 listens: ")), "{line}");
        site
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may have ended, which the test then says.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn names_of(plan: &Value) -> String {
    let names = plan["replicas"].as_array().expect("replicas").iter().map(|name| name.as_str().expect("text"));
    names.collect::<Vec<&str>>().join(", ")
}

#[test]
fn a_mistake_in_a_file_is_named_with_file_row_and_column_and_nothing_is_written() {
    let files = Files::new();
    let rtt = files.path("rtt.csv");
    let map = files.path("map.svg");
    let matrices = [
        ("region,a,b\na,0,1\n", "the matrix is not square: 2 regions in the header, 1 rows; every region needs a column and a row", ""),
        ("region,a,b\na,0\nb,1,0\n", "2 cells, expected 3", ", row 2"),
        (
            "region,a,b\na,0,\nb,1,0\n",
            "is empty; every pair of regions needs a round-trip time in milliseconds",
            ", row 2 (a), column 3 (b)",
        ),
        ("region,a,b\na,0,1\nb,-1,0\n", "`-1` is not a round-trip time in milliseconds", ", row 3 (b), column 2 (a)"),
        ("# of May\nregion,a,b\na,0,1\nb,fast,0\n", "`fast` is not a round-trip time in milliseconds", ", row 4 (b), column 2 (a)"),
        ("region,a,a\na,0,1\na,1,0\n", "the region `a` appears twice", ""),
    ];
    for (text, mistake, place) in matrices {
        files.write("rtt.csv", text);
        plan_refused(&["--rtt", &rtt, "--faults", "0", "--map", &map], &format!("--rtt: {rtt}{place}: {mistake}"));
    }
    let known = "paper_replicated_commit_5, paper_samya_5, paper_gplacer_9, aws_32, azure_48, gcp_39, aws_azure_42";
    let line =
        "`mars` is neither a shipped profile, nor a file that can be read (No such file or directory (os error 2)); the profiles are";
    plan_refused(&["--rtt", "mars"], &format!("--rtt: {line} {known}"));

    let table = files.path("table.csv");
    let with = |option: &str, text: &str, line: &str| {
        files.write("table.csv", text);
        plan_refused(&["--rtt", "aws_32", option, &table, "--map", &map], &format!("{table}{line}"));
    };
    let unknown = "is not a region of the matrix of round trips";
    with("--workload", "region,clients\nus-esat-1,4\n", &format!(", row 2, column 1: `us-esat-1` {unknown}; did you mean `us-east-1`?"));
    with("--workload", "region,clients\nus-east-1,many\n", ", row 2 (us-east-1), column 2 (clients): `many` is not a number of clients");
    with("--workload", "region,clients\nus-east-1,0\n", ": no region has clients");
    with("--capacity", "region,clients\nus-east-1,-4\n", ", row 2 (us-east-1), column 2 (clients): `-4` is not a number of clients");
    with("--prices", "region,replica_month,gigabyte_sent\nus-east-1,100,0.09\n", ": there is no row for the region `af-south-1`");
    with("--places", "region,latitude\nus-east-1,100\n", ": there is no row for the region `af-south-1`");
    plan_refused(&["--rtt", "aws_32", "--workload", "nowhere.csv"], "nowhere.csv: cannot be read: No such file or directory (os error 2)");
    assert_eq!(files.names(), ["rtt.csv", "table.csv"]);
}

#[test]
fn what_cannot_be_met_says_why_and_nothing_is_written() {
    let files = Files::new();
    let (map, cluster) = (files.path("map.svg"), files.path("cluster.toml"));
    let refused = |options: &[&str], line: &str| {
        plan_refused(&[&["--rtt", "paper_gplacer_9", "--map", &map, "-o", &cluster], options].concat(), line)
    };
    refused(&["--faults", "5"], "to survive 5 lost regions takes 11 replicas, but there are 9 regions: at most 4 can be survived");
    refused(&["--faults", "16"], "16 faults are more than a plan is made for (15)");
    refused(
        &["--within", "california,oregon,virginia", "--at-most", "2/continent", "--forbidden", "tokyo"],
        "no placement of 3 replicas satisfies all of: data stays within california, oregon, virginia; at most 2 per continent; give up one of these",
    );
    let hint = "is not a region of the matrix of round trips; did you mean `california`?";
    refused(&["--required", "Californa"], &format!("--required: `Californa` {hint}"));
    refused(&["--compare", "californa,oregon,tokyo"], &format!("--compare californa,oregon,tokyo: `californa` {hint}"));
    refused(&["--compare", "oregon,tokyo"], "--compare oregon,tokyo: has 2 regions; to survive 1 lost regions takes 3");
    refused(&["--compare", "oregon,tokyo,oregon"], "--compare oregon,tokyo,oregon: names a region twice");
    let kinds = "`country` is neither `provider` nor `continent`; name a table with such a column with --places";
    refused(&["--at-most", "1/country"], &format!("--at-most: {kinds}"));
    refused(&["--multi-partition", "5"], "--multi-partition and --two-phase go with --protocol spread-leaders");
    let leader = "--handoff does not go with --protocol one-leader: the leader coordinates all commits";
    refused(&["--handoff", "--protocol", "one-leader"], leader);
    let heuristics = "--time-limit goes with --method exact and exhaustive; the heuristics end by themselves";
    refused(&["--method", "greedy", "--time-limit", "1s"], heuristics);
    plan_refused(&["--rtt", "aws_32", "--map", &map, "-o", &map], "--map and --output name the same file");
    assert!(files.names().is_empty());

    for options in [&["--budget", "10"][..], &["--pareto"], &["--objective", "p0"], &["--at-most", "provider"], &["--method", "guess"]] {
        let output = rhumb(&[&["plan", "--rtt", "aws_32"], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
    let nowhere = Path::new(&files.path("nowhere")).join("map.svg").display().to_string();
    let line = format!("{nowhere}: cannot be written: there is no folder {}", files.path("nowhere"));
    common::refused(&["plan", "--rtt", "aws_32", "--map", &nowhere], 1, &line);
}

#[test]
fn nobody_who_reads_on_is_no_reason_to_complain() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rhumb"))
        .args(["plan", "--rtt", "aws_32"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
