//! Quotas on real processes in five regions, an emulated wide area between them: three die, two are cut off from three,
//! and at no time do clients hold more than the limit.

mod common;

use common::Demo;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

const REGIONS: usize = 5;
/// Divided by the sites: 20 at each.
const LIMIT: u64 = 100;
/// No answer takes longer than an operation may wait, and a little.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A client of the Redis protocol that says one thing at a time.
struct Redis(BufReader<TcpStream>);

impl Redis {
    fn connect(demo: &Demo, region: usize) -> Redis {
        let ready = demo.ready();
        let address = ready["regions"][region]["resp"].as_str().expect("an address").to_owned();
        let stream = TcpStream::connect(address).expect("it serves");
        stream.set_read_timeout(Some(ANSWER_MAX)).expect("a timeout");
        Redis(BufReader::new(stream))
    }

    /// The one line of a simple answer, without its end.
    fn say(&mut self, command: &str) -> String {
        self.0.get_mut().write_all(format!("{command}\r\n").as_bytes()).expect("it listens");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }

    fn done(&mut self, command: &str) -> String {
        let answer = self.say(command);
        assert!(!answer.starts_with('-'), "{command}: {answer}");
        answer
    }

    fn refused(&mut self, command: &str, code: &str) {
        let answer = self.say(command);
        assert!(answer.starts_with(&format!("-{code} ")), "{command}: {answer}");
    }
}

/// What clients hold of a quota, by an exact count over all sites.
fn held(demo: &Demo, quota: &str) -> u64 {
    let of_demo = format!("--demo={}", demo.state());
    let text = common::done(&["quota", "get", quota, "--exact", "--json", &of_demo]);
    let info: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(info["left"].as_u64().expect("a number") + info["held"].as_u64().expect("a number"), LIMIT, "{text}");
    info["held"].as_u64().expect("a number")
}

/// Acquires one by one until refused.
fn drain(demo: &Demo, region: usize, quota: &str) -> u64 {
    let mut redis = Redis::connect(demo, region);
    (0..=LIMIT).take_while(|_| redis.say(&format!("ACQUIRE {quota} 1")).starts_with(':')).count() as u64
}

#[test]
fn a_limit_holds_while_sites_die_and_the_network_divides() {
    let demo = Demo::start(&["--wan", "paper_samya_5"]);
    let names: Vec<String> =
        (0..REGIONS).map(|region| demo.ready()["regions"][region]["name"].as_str().expect("a name").to_owned()).collect();
    let mut first = Redis::connect(&demo, 0);
    for protocol in ["any", "majority"] {
        first.done(&format!("QUOTA.CREATE {protocol} {LIMIT} PROTOCOL {protocol}"));
    }
    three_of_five_die(&demo, &names);
    the_network_divides(&demo, &names);
}

/// Without a majority, Avantan[*] still moves tokens; Avantan[(n+1)/2] serves what it has.
fn three_of_five_die(demo: &Demo, names: &[String]) {
    let mut last = Redis::connect(demo, 4);
    let told = last.done("ACQUIRE any 1 ID order-1");
    names[2..].iter().for_each(|name| drop(demo.chaos(&["kill", name])));

    let mut first = Redis::connect(demo, 0);
    first.done("ACQUIRE any 30");
    first.refused("ACQUIRE any 15", "UNREACHABLE");
    first.done("ACQUIRE majority 20");
    first.refused("ACQUIRE majority 1", "UNREACHABLE");
    first.done("RELEASE majority 5");
    first.done("ACQUIRE majority 5");

    names[2..].iter().for_each(|name| drop(demo.chaos(&["restart", name])));
    let mut last = Redis::connect(demo, 4);
    assert_eq!(last.done("ACQUIRE any 1 ID order-1"), told, "what was done before the crash is answered again");
    let mut second = Redis::connect(demo, 1);
    second.done("ACQUIRE majority 80");
    second.refused("ACQUIRE majority 1", "EXCEEDED");
    second.refused("RELEASE majority 101", "NOTHELD");
    assert_eq!(held(demo, "majority"), LIMIT);
    assert_eq!(held(demo, "any"), 31);
    second.done("RELEASE any 31");
    // What is released somewhere is left there.
    for region in 0..REGIONS {
        Redis::connect(demo, region).done(&format!("RELEASE majority {}", LIMIT / REGIONS as u64));
    }
}

/// Both sides of a cut go on, and together never beyond the limit.
fn the_network_divides(demo: &Demo, names: &[String]) {
    let (larger, smaller) = names.split_at(3);
    for (here, there) in larger.iter().flat_map(|here| smaller.iter().map(move |there| (here, there))) {
        demo.chaos(&["cut", here, there]);
    }
    for quota in ["any", "majority"] {
        let drained = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..REGIONS).map(|region| scope.spawn(move || drain(demo, region, quota))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<u64>>()
        });
        println!("{quota}: acquired during the cut, by region: {drained:?}");
        let (larger, smaller): (u64, u64) = (drained[..3].iter().sum(), drained[3..].iter().sum());
        assert!(larger > 0 && smaller > 0, "both sides serve: {drained:?}");
        assert!(larger + smaller <= LIMIT, "{drained:?}");
    }
    demo.chaos(&["heal"]);
    for quota in ["any", "majority"] {
        let before = held(demo, quota);
        let rest = (0..REGIONS).map(|region| drain(demo, region, quota)).sum::<u64>();
        assert_eq!(before + rest, LIMIT, "after the heal all that was left of {quota} is to be had, and no more");
        assert_eq!(held(demo, quota), LIMIT);
    }
}
