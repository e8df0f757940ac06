//! Catenae where a clock is wrong by an hour: transactions are still done, in order, and none is refused for it.

use rhumb_catenae::{Answer, Config as Protocol, Request, Site};
use rhumb_commit::one_shot::execution::{Outcome, Output};
use rhumb_commit::one_shot::operation::Operation;
use rhumb_core::{RttMatrix, SiteId, Span, Time, Timestamp};
use rhumb_sim::{Config, Fault, World};
use std::sync::Arc;

const HOUR_MICROS: i64 = 3_600_000_000;
/// Nothing takes longer, whatever the clocks show.
const PATIENCE: Span = Span::from_millis(3_000);

struct Cluster {
    world: World<Site>,
    /// The counter as it was last told, and when that was by the epochs.
    last: (i64, Timestamp),
}

impl Cluster {
    fn new() -> Cluster {
        let names = ["a", "b", "c"].map(String::from).to_vec();
        // The protocol by itself: no clock is refused, however far off.
        let max_clock_offset = Span::from_secs(10 * 3_600);
        let config = Config { max_clock_offset, ..Config::new(RttMatrix::uniform(names, Span::from_millis(60)), 1) };
        let topology = Arc::new(config.topology.clone());
        let mut world = World::new(config, 1, move |site, _| Site::new(site, Arc::clone(&topology), Protocol::default()));
        world.run_until(Time::from_micros(1_000_000)).expect("nothing goes wrong");
        Cluster { world, last: (0, Timestamp::ZERO) }
    }

    fn set_clock(&mut self, region: u16, by_micros: i64) {
        self.world.strike_at(self.world.now(), Fault::ClockJump { site: SiteId::new(region, 0), by_micros });
        self.world.tick().expect("nothing goes wrong");
    }

    /// A client of each region adds one to the same counter, one after the other. How long the slowest takes.
    fn add_everywhere(&mut self) -> Span {
        let mut longest = Span::ZERO;
        for region in 0..3 {
            let asked = self.world.now();
            self.world.submit(SiteId::new(region, 0), Request::Run(Operation::Add { key: "n".into(), amount: 1 }.into()));
            assert!(self.world.run_until_reply(asked + PATIENCE).expect("nothing goes wrong"), "region {region} does not answer");
            let reply = self.world.take_replies().remove(0);
            let Some(Answer::Ran { at, outcome: Outcome::Done(outputs) }) = reply.answer else { panic!("{:?}", reply.answer) };
            let [Output::Number(number)] = outputs[..] else { panic!("{outputs:?}") };
            assert_eq!(number, self.last.0 + 1);
            assert!(at > self.last.1, "{at} is not after {}", self.last.1);
            self.last = (number, at);
            longest = longest.max(reply.at.since(asked));
        }
        longest
    }
}

#[test]
fn one_clock_an_hour_behind_follows_the_others() {
    let mut cluster = Cluster::new();
    let before = cluster.add_everywhere();
    cluster.set_clock(1, -HOUR_MICROS);
    let after = cluster.add_everywhere();
    assert!(after < before * 2, "{before} before, {after} after");
    assert_eq!(cluster.world.probe("catenae.clock_behind"), 0, "there are others to follow");
}

#[test]
fn all_clocks_set_an_hour_back_are_stepped_over() {
    let mut cluster = Cluster::new();
    cluster.add_everywhere();
    (0..3).for_each(|region| cluster.set_clock(region, -HOUR_MICROS));
    for _ in 0..5 {
        cluster.add_everywhere();
    }
    assert!(cluster.world.probe("catenae.clock_behind") > 0, "epochs go on where no clock has come to them yet");
}

#[test]
fn a_clock_that_was_an_hour_ahead_and_is_set_right_takes_nobody_along_for_an_hour() {
    let mut cluster = Cluster::new();
    cluster.set_clock(2, HOUR_MICROS);
    cluster.add_everywhere();
    cluster.set_clock(2, -HOUR_MICROS);
    for _ in 0..5 {
        cluster.add_everywhere();
    }
}
