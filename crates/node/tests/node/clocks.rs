//! Sites whose clocks are wrong: nobody takes their word, and they end, or do not begin.

use crate::common::{Request, ToySite, configure, echo, start_by, until};
use rhumb_config::Config;
use rhumb_core::{SiteId, Time};
use rhumb_node::clock::Clock;
use rhumb_node::service::Service;
use rhumb_node::transport::{Direction, Fault};
use rhumb_store::MemoryEngine;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

const YEAR_S: i64 = 31_536_000;

const fn site(region: u16) -> SiteId {
    SiteId::new(region, 0)
}

/// A system's clock that is so many seconds ahead of the true time.
#[derive(Clone, Default)]
struct SystemClock(Arc<AtomicI64>);

impl SystemClock {
    fn ahead(seconds: i64) -> SystemClock {
        SystemClock(Arc::new(AtomicI64::new(seconds)))
    }

    fn set_right(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn start(&self, config: &Config, port: TcpListener) -> ToySite {
        let ahead = Arc::clone(&self.0);
        let read = move || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros() as u64;
            Time::from_micros(now.saturating_add_signed(ahead.load(Ordering::Relaxed) * 1_000_000))
        };
        start_by(Clock::set_by(read), Service::Commit, config, port, MemoryEngine::new())
    }
}

fn count(site: &ToySite, metric: &str) -> u64 {
    let metrics = site.status().metrics();
    metrics.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' ')?.parse().ok()).expect("it is counted")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_incarnation_of_a_site_begins_once_a_majority_confirms_its_clock() {
    for years in [1, -1] {
        let (configs, ports) = configure(&["a", "b", "c"], None).await;
        let wrong = SystemClock::ahead(years * YEAR_S);
        let clocks = [SystemClock::default(), SystemClock::ahead(2), wrong.clone()];
        let sites: Vec<ToySite> = clocks.iter().zip(&configs).zip(ports).map(|((clock, config), port)| clock.start(config, port)).collect();
        assert_eq!(echo(&sites[0].handle(), site(1), "two seconds are no matter").await, "two seconds are no matter");
        let side = if years > 0 { "ahead of" } else { "behind" };
        let said = || sites[2].status().ready().expect_err("it has not begun");
        until("it is known to be odd", async || said().contains("2 other sites")).await;
        let said = said();
        let (far, what) = said.split_once(" s ").expect("how far");
        assert!(far.starts_with("the clock of this site is 3153"), "{far}");
        let expected =
            "the clocks of 2 other sites: set the clock of this machine; the site begins by itself once a majority of sites confirms it";
        assert_eq!(what, format!("{side} {expected}"));
        assert!(!sites[2].status().is_recovered());
        // What is said to it, it does not take; what it is asked waits.
        let told = Request::Tell { to: site(2), text: "lost".into() };
        sites[0].handle().ask(told).await.expect("told");
        until("it was dropped", async || {
            count(&sites[2], "rhumb_peer_messages_dropped_total{region=\"a\",shard=\"0\",cause=\"clock\"}") == 1
        })
        .await;
        let peer = || sites[0].status().peers()[1].clock.expect("it answers pings");
        assert!(peer().apart && (peer().ahead_micros.abs() / 1_000_000 - YEAR_S).abs() < 60, "{:?}", peer());
        assert_eq!(sites[2].status().failure().reason(), None);

        wrong.set_right();
        assert_eq!(echo(&sites[2].handle(), site(0), "right").await, "right");
        assert_eq!(echo(&sites[0].handle(), site(2), "heard").await, "heard");
        until("it is near", async || !peer().apart).await;
        assert_eq!(sites[2].handle().ask(Request::Heard).await.expect("answered"), "");
    }
}

/// The one that is wrong began while nobody could tell, and cannot hear enough sites to know that it is.
#[tokio::test(flavor = "multi_thread")]
async fn messages_from_the_far_future_are_refused_and_who_sends_them_ends_once_a_majority_contradicts_it() {
    let (configs, ports) = configure(&["a", "b", "c", "d", "e"], None).await;
    let mut ports = ports.into_iter();
    let mut port = || ports.next().expect("five");
    let [a, b, c, d] = [port(), port(), port(), port()];
    let wrong = SystemClock::ahead(YEAR_S).start(&configs[3], d);
    wrong.status().fault(site(2), Fault::Cut(Direction::Both));
    until("it begins alone", async || wrong.status().is_recovered()).await;
    let right = SystemClock::default();
    let sites = [(0, a), (1, b), (2, c)].map(|(index, port)| right.start(&configs[index], port));
    for near in &sites {
        until("three of five are a majority", async || near.status().is_recovered()).await;
    }
    let heard = async || sites[0].handle().ask(Request::Heard).await.expect("answered");
    let dropped = || count(&sites[0], "rhumb_peer_messages_dropped_total{region=\"d\",shard=\"0\",cause=\"clock\"}");
    until("it is known to be apart", async || sites[0].status().peers()[2].clock.is_some_and(|clock| clock.apart)).await;
    let before = dropped();
    until("its messages are refused", async || {
        wrong.handle().ask(Request::Tell { to: site(0), text: "poison".into() }).await.expect("told");
        dropped() > before
    })
    .await;
    assert_eq!(echo(&sites[1].handle(), site(0), "others are heard").await, "others are heard");
    assert_eq!(heard().await, "");
    assert_eq!(wrong.status().failure().reason(), None, "two of five are no majority");
    assert_eq!(sites[0].status().failure().reason(), None);

    wrong.status().fault(site(2), Fault::Heal);
    let reason = wrong.status().failure().wait().await;
    let (ahead, what) = reason.split_once(" s ahead of ").expect("how far");
    assert!(ahead.starts_with("the clock of this site is 315"), "{ahead}");
    assert_eq!(
        what,
        "the clocks of 3 other sites, and 5000ms is the most that is allowed (clock.max_offset_ms): set the clock of this machine, have it kept \
         right by NTP, and start the site again"
    );
    assert_eq!(wrong.status().ready(), Err(reason));
}
