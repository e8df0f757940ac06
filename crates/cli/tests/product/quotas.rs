//! Quotas on real processes, an emulated wide area between them: three of five regions die, two are cut off from three, and at no time
//! do clients hold more than the limit. Exact reads stop nobody: not beside a region that is dead, and not in a loop.

use crate::common::{self, Demo, Redis};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const REGIONS: usize = 5;
/// Divided by the sites: 20 at each.
const LIMIT: u64 = 100;

/// What clients hold of a quota, by an exact count over all sites.
fn held(demo: &Demo, quota: &str, limit: u64) -> u64 {
    let of_demo = format!("--demo={}", demo.state());
    let text = common::done(&["quota", "get", quota, "--exact", "--json", &of_demo]);
    let info: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(info["left"].as_u64().expect("a number") + info["held"].as_u64().expect("a number"), limit, "{text}");
    info["held"].as_u64().expect("a number")
}

/// Acquires one by one until refused.
fn drain(demo: &Demo, region: usize, quota: &str) -> u64 {
    let mut redis = Redis::at(demo, region);
    (0..=LIMIT).take_while(|_| redis.say(&format!("ACQUIRE {quota} 1")).starts_with(':')).count() as u64
}

#[test]
fn a_limit_holds_while_sites_die_and_the_network_divides() {
    let demo = Demo::start(&["--wan", "paper_samya_5"]);
    let names: Vec<String> = (0..REGIONS).map(|region| demo.of_region(region, "name")).collect();
    let mut first = Redis::at(&demo, 0);
    for protocol in ["any", "majority"] {
        first.done(&format!("QUOTA.CREATE {protocol} {LIMIT} PROTOCOL {protocol}"));
    }
    three_of_five_die(&demo, &names);
    the_network_divides(&demo, &names);
}

/// Without a majority, Avantan[*] still moves tokens; Avantan[(n+1)/2] serves what it has.
fn three_of_five_die(demo: &Demo, names: &[String]) {
    let mut last = Redis::at(demo, 4);
    let told = last.done("ACQUIRE any 1 ID order-1");
    names[2..].iter().for_each(|name| drop(demo.chaos(&["kill", name])));

    let mut first = Redis::at(demo, 0);
    first.done("ACQUIRE any 30");
    first.refused("ACQUIRE any 15", "UNREACHABLE");
    first.done("ACQUIRE majority 20");
    first.refused("ACQUIRE majority 1", "UNREACHABLE");
    first.done("RELEASE majority 5");
    first.done("ACQUIRE majority 5");

    names[2..].iter().for_each(|name| drop(demo.chaos(&["restart", name])));
    let mut last = Redis::at(demo, 4);
    assert_eq!(last.done("ACQUIRE any 1 ID order-1"), told, "what was done before the crash is answered again");
    let mut second = Redis::at(demo, 1);
    second.done("ACQUIRE majority 80");
    second.refused("ACQUIRE majority 1", "EXCEEDED");
    second.refused("RELEASE majority 101", "NOTHELD");
    assert_eq!(held(demo, "majority", LIMIT), LIMIT);
    assert_eq!(held(demo, "any", LIMIT), 31);
    second.done("RELEASE any 31");
    // What is released somewhere is left there.
    for region in 0..REGIONS {
        Redis::at(demo, region).done(&format!("RELEASE majority {}", LIMIT / REGIONS as u64));
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
        let before = held(demo, quota, LIMIT);
        let rest = (0..REGIONS).map(|region| drain(demo, region, quota)).sum::<u64>();
        assert_eq!(before + rest, LIMIT, "after the heal all that was left of {quota} is to be had, and no more");
        assert_eq!(held(demo, quota, LIMIT), LIMIT);
    }
}

/// A flag that is set at the end of its scope, also by a panic: whoever goes round until then comes to an end.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads a quota exactly at the site of `region` again and again until it is over. Returns how often it was told, and the last refusal.
fn read_again(demo: &Demo, region: usize, quota: &str, over: &AtomicBool) -> (u64, Option<String>) {
    let http = demo.of_region(region, "http");
    let (mut told, mut refusal) = (0, None);
    while !over.load(Ordering::Relaxed) {
        match common::post(&http, &format!("/quotas/{quota}/read"), "{}") {
            (200, _) => told += 1,
            (status, body) => refusal = Some(format!("{status} {body}")),
        }
    }
    (told, refusal)
}

/// Runs `work` while clients of the first `regions` read a quota exactly, `clients` of them in each. Returns what it returns, and what
/// each reader was told.
fn beside_readers<T>(
    demo: &Demo,
    quota: &str,
    regions: usize,
    clients: usize,
    work: impl FnOnce() -> T,
) -> (T, Vec<(u64, Option<String>)>) {
    let over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = Over(over);
        let places = (0..regions).flat_map(|region| std::iter::repeat_n(region, clients));
        let readers: Vec<_> = places.map(|region| scope.spawn(move || read_again(demo, region, quota, over))).collect();
        let result = work();
        drop(ends);
        (result, readers.into_iter().map(|reader| reader.join().expect("no panic")).collect())
    })
}

#[test]
fn an_exact_read_beside_a_dead_region_stops_nobody() {
    let demo = Demo::start(&["--wan", "paper_samya_5", "--regions", "3"]);
    let mut first = Redis::at(&demo, 0);
    first.done("QUOTA.CREATE any 90 PROTOCOL any");
    common::until("the quota is known everywhere", || Redis::at(&demo, 1).say("ACQUIRE any 1").starts_with(':'));
    let dead = demo.of_region(2, "name");
    demo.chaos(&["kill", &dead]);
    let ((), readers) = beside_readers(&demo, "any", 2, 1, || {
        std::thread::sleep(Duration::from_secs(1));
        // Its region began with 30: the others come from the second one.
        first.done("ACQUIRE any 45");
    });
    for (told, refusal) in readers {
        let refusal = refusal.expect("a site is missing");
        assert!(told == 0 && refusal.contains("an exact read needs every site"), "{told} times, then {refusal}");
    }
    demo.chaos(&["restart", &dead]);
    common::until("an exact read is answered again", || {
        common::rhumb(&["quota", "get", "any", "--exact", &format!("--demo={}", demo.state())]).status.success()
    });
    assert_eq!(held(&demo, "any", 90), 46);
}

#[test]
fn exact_reads_in_a_loop_leave_a_quota_most_of_its_time() {
    const ACQUISITIONS: u32 = 10_000;
    /// Operations that met a count, or lacked tokens.
    const WAITED: &str = "rhumb_events_total{service=\"quotas\",event=\"quota.waited\"}";
    let demo = Demo::start(&["--wan", "paper_samya_5", "--regions", "3"]);
    let mut first = Redis::at(&demo, 0);
    for protocol in ["any", "majority"] {
        first.done(&format!("QUOTA.CREATE {protocol} 1000000 PROTOCOL {protocol}"));
        common::until("the quota is known everywhere", || {
            (1..3).all(|region| Redis::at(&demo, region).say(&format!("ACQUIRE {protocol} 1")).starts_with(':'))
        });
        let mut acquire = || {
            let begun = Instant::now();
            (0..ACQUISITIONS).for_each(|_| drop(first.done(&format!("ACQUIRE {protocol} 1"))));
            begun.elapsed()
        };
        let alone = acquire();
        let before = demo.metric(0, WAITED).unwrap_or_default();
        let (beside, readers) = beside_readers(&demo, protocol, 3, 4, acquire);
        let waited = demo.counted(0, WAITED) - before;
        let told: u64 = readers.iter().map(|(told, _)| told).sum();
        println!("{protocol}: {ACQUISITIONS} acquisitions in {alone:.2?}, beside {told} exact reads in {beside:.2?}; {waited} waited");
        assert!(readers.iter().all(|(told, refusal)| *told > 0 && refusal.is_none()), "{protocol}: {readers:?}");
        // How much longer they take is measured by `rhumb-sim --test quota_counts`, in virtual time.
        assert!((1.0..f64::from(ACQUISITIONS) / 10.0).contains(&waited), "{protocol}: {waited} waited");
    }
}
