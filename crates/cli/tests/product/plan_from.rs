//! `rhumb plan --from` and `rhumb plan apply` on a running cluster: what it measured leads to a better placement, and the
//! placement is brought about while money moves between accounts.

use crate::common::{Demo, done, placement, post, refused, rhumb, until};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::block_in_place;
use tokio_postgres::Client;

/// Far from the clients, who are in California and Virginia.
const PLACED: [&str; 2] = ["--active", "oregon,ireland,singapore"];
/// Where the clients are, by the order of the demo.
const TELLERS: [usize; 2] = [0, 2];
const ACCOUNTS: usize = 8;
const BALANCE: i64 = 100;
/// Transfers between two looks at the sum.
const TRANSFERS_PER_SUM: usize = 5;

async fn sum(client: &Client) -> Option<i64> {
    match client.query_one("SELECT sum(balance) FROM account", &[]).await {
        Ok(row) => Some(row.get(0)),
        // A read that conflicts has read nothing.
        Err(error) if error.code().is_some_and(|code| code.code() == "40001") => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// Moves money between accounts until told to stop, and looks at the sum now and then. How many transfers succeeded.
async fn transfer(client: Client, stop: Arc<AtomicBool>) -> usize {
    let mut transfers = 0;
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let (from, to) = (turn % ACCOUNTS, (turn * 3 + 1) % ACCOUNTS);
        let raise = |id: usize, by: i64| format!("UPDATE account SET balance = balance + {by} WHERE id = {id}");
        let transaction = format!("BEGIN; {}; {}; COMMIT", raise(from, -1), raise(to, 1));
        match client.batch_execute(&transaction).await {
            Ok(()) => transfers += 1,
            Err(error) => {
                let code = error.code().unwrap_or_else(|| panic!("{error:?}")).code().to_owned();
                // In the way of another one, or an unknown outcome: either way all of it happened or nothing.
                assert!(["40001", "40003"].contains(&code.as_str()), "{error:?}");
                // A transaction that failed is still open.
                let _ = client.batch_execute("ROLLBACK").await;
            }
        }
        if turn % TRANSFERS_PER_SUM == 0
            && let Some(sum) = sum(&client).await
        {
            assert_eq!(sum, ACCOUNTS as i64 * BALANCE);
        }
    }
    transfers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_better_placement_is_found_and_brought_about_while_clients_run() {
    let demo = Demo::start(&PLACED);
    let [california, virginia] = TELLERS.map(|region| demo.of_region(region, "http"));
    block_in_place(|| until("all round trips are measured", || !placement(&california)["rtt_ms"].to_string().contains("null")));
    let idle = block_in_place(|| rhumb(&["plan", "--from", &california]));
    let said = String::from_utf8(idle.stderr).expect("text");
    assert!(idle.status.code() == Some(1) && said.contains("has not measured any load to plan for"), "{said}");
    let refused_with = |options: &[&str], code, line: &str| {
        block_in_place(|| refused(&[&["plan", "--from", &california], options].concat(), code, line));
    };
    let line = "to survive 3 lost regions takes 7 replicas, but there are 5 regions: at most 2 can be survived";
    let workload = demo.path("clients.csv").display().to_string();
    std::fs::write(&workload, "region,clients\nvirginia,1\n").expect("written");
    refused_with(&["--workload", &workload, "--faults", "3"], 2, line);
    refused_with(
        &["--protocol", "one-leader"],
        2,
        "--from goes with --protocol replicated-commit and two-round: no running cluster has leaders",
    );

    let client = demo.connect(TELLERS[0]).await;
    client.batch_execute("CREATE TABLE account (id INT PRIMARY KEY, balance INT)").await.expect("created");
    let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    client.execute(&format!("INSERT INTO account VALUES {}", rows.join(", ")), &[]).await.expect("inserted");
    let stop = Arc::new(AtomicBool::new(false));
    let mut transferring = Vec::new();
    for region in TELLERS {
        transferring.push(tokio::spawn(transfer(demo.connect(region).await, Arc::clone(&stop))));
    }
    block_in_place(|| finds_and_goes(&demo, &california, &virginia));
    stop.store(true, Ordering::Relaxed);
    for transferring in transferring {
        assert!(transferring.await.expect("no wrong sum") > 0);
    }
    for region in 0..5 {
        let client = demo.connect(region).await;
        assert_eq!(sum(&client).await, Some(ACCOUNTS as i64 * BALANCE), "in region {region}");
    }
}

/// Plans by way of one site, and carries it out by way of both.
fn finds_and_goes(demo: &Demo, one: &str, other: &str) {
    let file = demo.path("plan.json").display().to_string();
    let plan = || rhumb(&["plan", "--from", one, "--save", &file]);
    until("both regions' load is measured", || {
        let measured = placement(one)["regions"].clone();
        TELLERS.iter().all(|region| measured[region]["commits_per_second"].as_f64().is_some_and(|rate| rate > 0.1))
    });
    let planned = plan();
    let text = String::from_utf8(planned.stdout).expect("text");
    assert!(planned.status.success(), "{}", String::from_utf8_lossy(&planned.stderr));
    assert!(
        text.starts_with("now       epoch 1: active oregon, ireland, singapore\nproposed  active california, oregon, virginia\n"),
        "{text}"
    );
    assert!(text.contains("any one may be lost") && text.contains("What would change, in 3 steps:"), "{text}");
    assert!(text.contains("  california: none → active\n") && text.contains("  ireland: active → none\n"), "{text}");
    assert!(text.ends_with(&format!("Nothing is changed yet: `rhumb plan apply {file}` brings it about.\n")), "{text}");
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("written")).expect("JSON");
    assert!(saved["saved_percent"].as_f64() > Some(20.0), "{saved}");
    let regions: Vec<&str> = saved["clients"].as_array().expect("clients").iter().filter_map(|client| client["region"].as_str()).collect();
    assert_eq!(regions, ["california", "virginia"]);
    assert_eq!(placement(one)["epoch"], json!(1), "a plan changes nothing");

    // Somebody began and was interrupted after the first step.
    let first = json!({"epoch": 1, "active": ["oregon", "ireland", "singapore"], "passive": ["california", "virginia"]});
    assert_eq!(post(one, "/placement", &first.to_string()).0, 200);
    until("the other site knows it", || placement(other)["epoch"] == json!(2));
    refused_apply(&[&file, "--to", other], "there is no terminal to ask at: give --yes to go ahead; nothing was done");
    let said = done(&["plan", "apply", &file, "--to", other, "--yes"]);
    let lines: Vec<&str> = said.lines().collect();
    let expected = [
        "1 of 3 steps are done already",
        "  2. passive: ireland, singapore; active: california, virginia",
        "  3. to leave: ireland, singapore",
        "step 2 of 3 is decided: passive: ireland, singapore; active: california, virginia",
        "step 3 of 3 is decided: to leave: ireland, singapore",
        "The placement is as planned, in epoch 4: active california, oregon, virginia",
    ];
    assert_eq!(lines.split_first().map(|(_, rest)| rest), Some(&expected[..]), "{said}");
    until("the site of the plan knows it", || placement(one)["epoch"] == json!(4));
    let there = placement(one);
    assert_eq!((&there["active"], &there["passive"]), (&json!(["california", "oregon", "virginia"]), &json!([])));
    assert_eq!(done(&["plan", "apply", &file]), format!("{}\n", expected[5]), "once more does nothing");

    let again: Value = serde_json::from_str(&done(&["plan", "--from", one, "--json"])).expect("JSON");
    assert_eq!((&again["steps"], &again["proposed"], &again["saved_percent"]), (&json!([]), &again["now"], &json!(0.0)));
    let text = done(&["plan", "--from", one]);
    assert!(text.contains("\nNothing would be gained by a move. Proven: "), "{text}");

    let third = json!({"epoch": 4, "active": ["california", "oregon", "virginia"], "passive": ["singapore"]});
    assert_eq!(post(one, "/placement", &third.to_string()).0, 200);
    until("the change is known", || placement(one)["epoch"] == json!(5));
    let stray = "the placement of epoch 5 (active california, oregon, virginia; passive singapore) is not one that the plan was made for or \
                 leads through: plan again; nothing was done";
    refused_apply(&[&file, "--yes"], stray);
}

fn refused_apply(arguments: &[&str], line: &str) {
    let output = rhumb(&[&["plan", "apply"], arguments].concat());
    assert!(String::from_utf8_lossy(&output.stderr).ends_with(&format!("rhumb: {line}\n")), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn what_does_not_answer_or_is_no_site_is_told_so() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let url = format!("http://{nobody}");
    let line = format!("{url}/placement does not answer: Connection refused (os error 111)");
    refused(&["plan", "--from", &url], 1, &line);
    refused(
        &["plan", "--from", "127.0.0.1:8080"],
        1,
        "127.0.0.1:8080/placement does not answer: the address does not start with http:// or https://",
    );
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let web = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().expect("somebody asks");
        let _ = stream.read(&mut [0; 1_024]);
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnope\n").expect("answered");
    });
    let line = format!("{url} is no site of Rhumb: it answers 404 to GET /placement; give the address of a site's HTTP port");
    refused(&["plan", "--from", &url], 1, &line);
    web.join().expect("answered");
}
