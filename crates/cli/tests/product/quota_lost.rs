//! A site of real processes that dies for good: it is declared lost, what it had is settled by count, and an operator frees what no
//! client holds. At no time do clients hold more than the limit, and the site that comes back is refused.

use crate::common::{Demo, Redis, done, rhumb, until};
use serde_json::Value;

/// Divided by three sites: 30 at each.
const LIMIT: u64 = 90;

/// What the site of `region` answers to one command of the Redis protocol.
fn say(demo: &Demo, region: usize, command: &str) -> String {
    Redis::at(demo, region).say(command)
}

/// Says what is risked, and does nothing.
fn warned(arguments: &[&str]) {
    let output = rhumb(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(text.lines().count() > 2 && text.ends_with("rhumb: nothing was changed; add --yes to go on\n"), "{text}");
}

fn look(demo: &Demo, read: &str) -> Value {
    let text = done(&["quota", "get", "seats", read, "--json", &format!("--demo={}", demo.state())]);
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_site_that_is_lost_for_good_is_settled_by_count() {
    let demo = Demo::start(&["--wan", "paper_samya_5", "--regions", "3"]);
    let of_demo = format!("--demo={}", demo.state());
    let names: Vec<String> = (0..3).map(|region| demo.of_region(region, "name")).collect();
    let lost = format!("{}/0", names[2]);
    assert_eq!(say(&demo, 0, &format!("QUOTA.CREATE seats {LIMIT}")), "+OK");
    until("the quota is known everywhere", || say(&demo, 2, "ACQUIRE seats 12").starts_with(':'));
    demo.chaos(&["kill", &names[2]]);

    warned(&["quota", "lost", &lost, &of_demo]);
    let told = done(&["quota", "lost", &lost, "--yes", &of_demo]);
    assert!(told.starts_with(&format!("{lost} is declared lost; ")), "{told}");
    until("what it had is booked", || look(&demo, "--global")["booked"] == 30);
    let info = look(&demo, "--exact");
    assert_eq!((info["left"].as_u64(), info["held"].as_u64()), (Some(60), Some(30)), "{info}");

    assert!(say(&demo, 1, "ACQUIRE seats 60").starts_with(':'), "the others have all but its share");
    assert!(say(&demo, 1, "ACQUIRE seats 1").starts_with("-EXCEEDED "), "clients of the lost site may hold the rest");
    assert!(say(&demo, 1, "RELEASE seats 12").starts_with(':'), "its clients release elsewhere");
    warned(&["quota", "free", "seats", "18", &of_demo]);
    done(&["quota", "free", "seats", "18", "--yes", &of_demo]);
    // That there were too few may be said for some time after there are enough.
    until("what was freed is found", || say(&demo, 1, "ACQUIRE seats 30").starts_with(':'));
    assert!(say(&demo, 1, "ACQUIRE seats 1").starts_with("-EXCEEDED "));
    assert_eq!(look(&demo, "--exact")["held"], LIMIT);

    demo.chaos(&["restart", &names[2]]);
    until("it learns that it is lost", || say(&demo, 2, "ACQUIRE seats 1").starts_with("-LOST this site was declared lost"));
    assert!(say(&demo, 2, "RELEASE seats 1").starts_with("-LOST "));
    assert_eq!(look(&demo, "--exact")["held"], LIMIT);
}
