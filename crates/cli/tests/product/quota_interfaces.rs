//! Quotas through every interface of a demo: what one site is told the others know, over the Redis protocol, HTTP, SQL and
//! the command line; and what a killed site had answered, it still knows.

use crate::common::{self, Demo, Redis, done, refused};

const THREE: [&str; 4] = ["--wan", "none", "--regions", "3"];

#[tokio::test(flavor = "multi_thread")]
async fn every_interface_of_every_site_sees_the_same_quota() {
    let demo = Demo::start(&THREE);
    let of_demo = format!("--demo={}", demo.state());
    let quota = |words: &[&str]| done(&[&["quota", &of_demo], words].concat());
    assert_eq!(quota(&["ls"]), "there are no quotas; `rhumb quota create NAME LIMIT` makes one\n");

    assert_eq!(Redis::at(&demo, 0).say("QUOTA.CREATE vm 300"), "+OK");
    let mut second = Redis::at(&demo, 1);
    common::until("the second site knows it", || second.say("ACQUIRE vm 30 ID first") == ":70");
    assert_eq!(second.say("ACQUIRE vm 30 ID first"), ":70");

    let client = demo.connect(2).await;
    common::until("the third site knows it", || quota(&["ls", "--site", "region3"]).contains("vm"));
    let left: i64 = client.query_one("SELECT acquire('vm', 7)", &[]).await.expect("acquired").get(0);
    assert_eq!(left, 93);

    assert_eq!(quota(&["acquire", "vm", "3", "--id", "order-17"]), "acquired 3 of vm; 97 left at this site\n");
    assert_eq!(quota(&["acquire", "vm", "3", "--id", "order-17"]), "acquired 3 of vm; 97 left at this site\n");
    let read: serde_json::Value = serde_json::from_str(&quota(&["get", "vm", "--exact", "--json"])).expect("JSON");
    assert_eq!([&read["limit"], &read["left"], &read["held"]], [300, 260, 40]);
    let shown = quota(&["get", "vm", "--global"]);
    for line in
        ["region1/0     97      3        0      0", "region2/0     70     30        0      0", "all          260     40        0      0"]
    {
        assert!(shown.contains(line), "{shown}");
    }

    assert_eq!(quota(&["release", "vm", "3"]), "released 3 of vm; 100 left at this site\n");
    assert_eq!(quota(&["limit", "vm", "600", "--site", "region2"]), "the limit of quota vm is 600\n");
    quota(&["create", "a/b", "5", "--parent", "vm", "--protocol", "any"]);
    assert!(quota(&["get", "a/b"]).starts_with("a/b · limit 5 · below vm · protocol any, offer spare"));
    let refuse = |words: &[&str], line: &str| refused(&[&["quota", &of_demo], words].concat(), 1, line);
    refuse(&["create", "vm", "5"], "there is a quota vm already");
    refuse(&["get", "seat"], "there is no quota seat; create it first");
    refuse(&["acquire", "vm", "1000"], "the limit of quota vm does not allow 1000 more");
    refuse(&["acquire", "vm", "-1"], "an amount of `-1` tokens; allowed are whole numbers from 1 to 9007199254740991");
    refuse(&["drop", "vm"], "quota vm has quotas below it; drop those first");
    refuse(&["get", ""], "the name of a quota is empty; give it 1 to 200 bytes");
    quota(&["drop", "a/b"]);
    assert_eq!(quota(&["drop", "vm"]), "quota vm is no more\n");
}

#[test]
fn what_a_killed_site_had_answered_it_still_knows() {
    let demo = Demo::start(&THREE);
    assert_eq!(Redis::at(&demo, 0).say("QUOTA.CREATE vm 300"), "+OK");
    let mut second = Redis::at(&demo, 1);
    common::until("the second site knows it", || second.say("ACQUIRE vm 30 ID first") == ":70");
    assert_eq!(second.say("RELEASE vm 5 ID back"), ":75");

    demo.chaos(&["kill", "region2"]);
    // The others go on, and take no more than their own.
    assert_eq!(Redis::at(&demo, 0).say("ACQUIRE vm 100"), ":0");
    demo.chaos(&["restart", "region2"]);
    let mut second = Redis::at(&demo, 1);
    assert_eq!(second.say("ACQUIRE vm 30 ID first"), ":70");
    assert_eq!(second.say("RELEASE vm 5 ID back"), ":75");
    assert_eq!(second.say("RELEASE vm 126"), "-NOTHELD fewer than 126 tokens of quota vm are acquired, so as many cannot be released");
    let of_demo = format!("--demo={}", demo.state());
    let read: serde_json::Value = serde_json::from_str(&done(&["quota", "get", "vm", "--exact", "--json", &of_demo])).expect("JSON");
    assert_eq!([&read["left"], &read["held"]], [175, 125]);
}

#[test]
fn a_benchmark_of_quotas_runs_and_gives_back_what_it_took() {
    let demo = Demo::start(&THREE);
    let of_demo = format!("--demo={}", demo.state());
    refused(&["bench", "quota", &of_demo, "--quota", "seat"], 1, "there is no quota seat: run `rhumb bench init quota` first");
    done(&["bench", "init", "quota", &of_demo, "--limit", "90"]);
    let again = ["bench", "init", "quota", &of_demo];
    refused(&again, 1, "there is a quota bench already: pass --replace to drop it and make it anew");
    done(&[&again[..], &["--limit", "60", "--replace"]].concat());

    let run = |more: &[&str]| -> serde_json::Value {
        let load = ["bench", "quota", &of_demo, "--json", "--clients", "2", "--warmup", "0s", "--operations", "300"];
        serde_json::from_str(&done(&[&load, more].concat())).expect("JSON")
    };
    let closed = run(&["--pipeline", "5", "--ids"]);
    let count = |report: &serde_json::Value, of: &str| {
        let refused = report["total"][of]["refused"].as_object().expect("codes").values();
        report["total"][of]["done"].as_u64().expect("a count") + refused.map(|count| count.as_u64().expect("a count")).sum::<u64>()
    };
    assert_eq!(count(&closed, "acquire") + count(&closed, "release"), 300);
    assert_eq!((&closed["limit"], &closed["warnings"]), (&60.into(), &serde_json::json!([])));
    assert!(closed["redistributions"].is_object(), "{closed}");
    let open = run(&["--rate", "600", "--mix", "50:50"]);
    assert_eq!(count(&open, "acquire") + count(&open, "release"), 300);
    assert_eq!(open["regions"].as_array().expect("regions").len(), 3);

    let checked = done(&["bench", "check", "quota", "--ready-file", &demo.path("ready.json").display().to_string()]);
    assert!(checked.starts_with("quota · 2 of 2 conditions hold"), "{checked}");
    let read: serde_json::Value = serde_json::from_str(&done(&["quota", "get", "bench", "--exact", "--json", &of_demo])).expect("JSON");
    assert_eq!([&read["left"], &read["held"]], [60, 0]);
}
