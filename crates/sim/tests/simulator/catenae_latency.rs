//! What a transaction of Catenae costs when nothing goes wrong, exactly: the rest of the epoch, the wide area, and the configured
//! local delays.
//!
//! An entry of region `q` counts at region `r` once it is there, and `r` knows that a majority of the regions has it on disk: by the
//! entry itself, by its own sync, and by the word of others. An epoch is known once the entries of all regions count. Without
//! conflict that is all. With one, a region votes at the end of the epoch in which its chains have ended, and the votes of a majority that
//! count decide.

use rhumb_catenae::{Answer, Config as Protocol, Request, Site};
use rhumb_commit::one_shot::Freshness;
use rhumb_commit::one_shot::execution::{Outcome, Output};
use rhumb_commit::one_shot::operation::{Operation, Transaction};
use rhumb_core::{Key, RegionId, RttMatrix, SiteId, Span, Time};
use rhumb_sim::{Config, LocalDelays, World};
use std::sync::Arc;

const EPOCH: Span = Span::from_millis(10);
/// From a site to another one of its region.
const HOP: Span = Span::from_micros(100);
const SETTLED: Time = Time::from_micros(1_000_000);

/// A cluster of three regions with two coordinators each, whose machines take no time; the wide area and the way between two sites of a
/// region are left.
struct TwoCoordinators {
    world: World<Site>,
    rtt: RttMatrix,
}

struct Cluster {
    world: World<Site>,
    local: LocalDelays,
    rtt: RttMatrix,
}

/// A matrix of three regions, in milliseconds.
fn matrix(ab: u64, ac: u64, bc: u64) -> RttMatrix {
    let text = format!(",a,b,c\na,0,{ab},{ac}\nb,{ab},0,{bc}\nc,{ac},{bc},0\n");
    RttMatrix::parse("test", &text).expect("a matrix")
}

impl Cluster {
    fn new(rtt: RttMatrix) -> Cluster {
        Cluster::with(rtt, LocalDelays::default(), 100)
    }

    /// The same where all else takes so long, and the processor of region 1 has another speed.
    fn with(rtt: RttMatrix, local: LocalDelays, speed_percent: u64) -> Cluster {
        let config = Config { local, ..Config::new(rtt.clone(), 1) };
        let topology = Arc::new(config.topology.clone());
        let protocol = Protocol { epoch: EPOCH, ..Protocol::default() };
        let mut world = World::new(config, 1, move |site, _| Site::new(site, Arc::clone(&topology), protocol.clone()));
        world.set_speed(SiteId::new(1, 0), speed_percent);
        world.run_until(SETTLED).expect("nothing goes wrong");
        Cluster { world, local, rtt }
    }

    fn regions(&self) -> std::ops::Range<u16> {
        0..self.rtt.names().len() as u16
    }

    /// From the end of an epoch until the entry of region `of` counts at `at`.
    fn entry_counts(&self, of: u16, at: u16) -> Span {
        let LocalDelays { step, sync, .. } = self.local;
        let one_way = |from, to| self.rtt.one_way(RegionId(from), RegionId(to));
        // The timer, the sync; the message. It says itself that its own region has it.
        let sent = step + sync;
        let there = |by| sent + if by == of { Span::ZERO } else { one_way(of, by) + step };
        let word = |by| match () {
            () if by == at && by == of => sent + step,
            () if by == of => there(at),
            () if by == at => there(at) + sync + step,
            () => there(by) + sync + one_way(by, at) + step,
        };
        counts(there(at), self.regions().map(word))
    }

    /// From the end of an epoch until all of it is known at `at`.
    fn epoch_known(&self, at: u16) -> Span {
        self.regions().map(|of| self.entry_counts(of, at)).max().expect("there are regions")
    }

    /// The rows of one transaction are read, and it is answered.
    fn run(&self) -> Span {
        self.local.load + self.local.step
    }

    /// From the end of an epoch until the votes of a majority on it count at `at`, if the chains take so long.
    fn votes_count(&self, at: u16, chains: Span) -> Span {
        let vote = |of| {
            let ran = (self.epoch_known(of) + chains).as_micros();
            Span::from_micros(ran.next_multiple_of(EPOCH.as_micros())) + self.entry_counts(of, at)
        };
        majority(self.regions().map(vote))
    }

    fn run_to_before_end(&mut self, remainder: Span) {
        run_to_before_end(&mut self.world, remainder);
    }

    /// The replies to all that was submitted, each with the region and how long it took since `asked`.
    fn replies(&mut self, count: usize, asked: Time) -> Vec<(u16, Span, Answer)> {
        let mut replies = Vec::new();
        while replies.len() < count {
            assert!(self.world.tick().expect("nothing goes wrong"), "all is answered");
            for reply in self.world.take_replies() {
                replies.push((reply.site.region.0, reply.at.since(asked), reply.answer.expect("the site is up")));
            }
        }
        replies.sort_by_key(|(region, ..)| *region);
        replies
    }
}

impl TwoCoordinators {
    fn new(rtt: RttMatrix) -> TwoCoordinators {
        let mut config = Config::new(rtt.clone(), 2);
        config.local = LocalDelays { message: HOP, ..LocalDelays::NONE };
        let topology = Arc::new(config.topology.clone());
        let protocol = Protocol { epoch: EPOCH, coordinators: 2, ..Protocol::default() };
        let mut world = World::new(config, 1, move |site, _| Site::new(site, Arc::clone(&topology), protocol.clone()));
        world.run_until(SETTLED).expect("nothing goes wrong");
        TwoCoordinators { world, rtt }
    }

    fn one_way(&self, from: SiteId, to: SiteId) -> Span {
        match from.region == to.region {
            true if from == to => Span::ZERO,
            true => HOP,
            false => self.rtt.one_way(from.region, to.region),
        }
    }

    /// From the end of an epoch until the entry of the coordinator `of` counts at `at`: it is there, and so is word that a majority of
    /// the sites of that number have it.
    fn entry_counts(&self, of: SiteId, at: SiteId) -> Span {
        let holders = (0..3).map(|region| SiteId::new(region, of.shard));
        counts(self.one_way(of, at), holders.map(|by| self.one_way(of, by) + self.one_way(by, at)))
    }

    /// From the end of an epoch until all of it is known at `at`: the entries of all six coordinators.
    fn epoch_known(&self, at: SiteId) -> Span {
        let coordinators = (0..3).flat_map(|region| (0..2).map(move |shard| SiteId::new(region, shard)));
        coordinators.map(|of| self.entry_counts(of, at)).max().expect("six of them")
    }
}

/// When an entry counts that is `there`, and of which each holder's word comes at one of `words`: once a majority has it.
fn counts(there: Span, words: impl Iterator<Item = Span>) -> Span {
    majority(words).max(there)
}

/// The earliest of `spans` after which a majority of them is over.
fn majority(spans: impl Iterator<Item = Span>) -> Span {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_unstable();
    spans[spans.len() / 2]
}

/// Lets the world run up to so long before the end of an epoch.
fn run_to_before_end(world: &mut World<Site>, remainder: Span) {
    let next = (world.now().as_micros() / EPOCH.as_micros() + 20) * EPOCH.as_micros();
    world.run_until(Time::from_micros(next).minus(remainder)).expect("nothing goes wrong");
}

fn add(key: &str) -> Request {
    Request::Run(Operation::Add { key: key.into(), amount: 1 }.into())
}

fn number(answer: &Answer) -> i64 {
    match answer {
        Answer::Ran { outcome: Outcome::Done(outputs), .. } => match outputs[..] {
            [Output::Number(number)] => number,
            _ => panic!("{outputs:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_conflict_it_takes_the_rest_of_the_epoch_and_one_way_from_the_farthest() {
    let mut cluster = Cluster::new(matrix(46, 94, 72));
    for region in 0..3 {
        let remainder = Span::from_micros(3_300);
        cluster.run_to_before_end(remainder);
        let asked = cluster.world.now();
        cluster.world.submit(SiteId::new(region, 0), add("alone"));
        let [(_, took, _)] = cluster.replies(1, asked)[..] else { panic!("one reply") };
        // For region 0 the farthest is 47 ms away one way, the nearest 46 ms there and back; for the others the latter is longer.
        let wide_area = Span::from_millis([47, 46, 72][usize::from(region)]);
        let local = cluster.local.step * 4 + cluster.local.sync * 2 + cluster.local.load;
        assert_eq!(took, remainder + wide_area + local, "region {region}");
        assert_eq!(took, remainder + cluster.epoch_known(region) + cluster.run(), "region {region}");
    }
}

#[test]
fn without_conflict_it_takes_the_round_trip_to_the_majority_where_that_is_longer() {
    let mut cluster = Cluster::new(matrix(94, 106, 28));
    let remainder = Span::from_micros(5_000);
    cluster.run_to_before_end(remainder);
    let asked = cluster.world.now();
    cluster.world.submit(SiteId::new(0, 0), add("alone"));
    let [(_, took, _)] = cluster.replies(1, asked)[..] else { panic!("one reply") };
    let local = cluster.local.step * 4 + cluster.local.sync * 2 + cluster.local.load;
    assert_eq!(took, remainder + Span::from_millis(94) + local);
    assert_eq!(took, remainder + cluster.epoch_known(0) + cluster.run());
}

/// Between the five regions of the shipped profile `paper_replicated_commit_5`, in its order: California, Oregon, Virginia, Ireland,
/// Singapore. What a transaction without conflict waits for beyond the rest of its epoch and what happens within sites, in
/// milliseconds: until the entries of all regions count, each of them known here to be held by three of the five. These are
/// the figures that a transaction is held against in `rhumb demo` with that profile.
const FIVE_REGIONS_WAIT_MS: [f64; 5] = [113.0, 102.5, 130.0, 170.5, 205.0];

#[test]
fn in_five_regions_it_takes_until_the_third_holder_of_the_slowest_entry_is_heard_of() {
    let profile = rhumb_core::wan::profile("paper_replicated_commit_5").expect("it is shipped");
    // Steps and syncs take no time: among so many regions messages of several epochs come at the same moment, and would wait for one
    // another.
    let load = LocalDelays::default().load;
    let mut cluster = Cluster::with(profile.matrix(), LocalDelays { load, ..LocalDelays::NONE }, 100);
    for (region, wait_ms) in (0..).zip(FIVE_REGIONS_WAIT_MS) {
        let remainder = Span::from_micros(3_300);
        cluster.run_to_before_end(remainder);
        let asked = cluster.world.now();
        cluster.world.submit(SiteId::new(region, 0), add("alone"));
        let [(_, took, _)] = cluster.replies(1, asked)[..] else { panic!("one reply") };
        let wide_area = Span::from_millis_f64(wait_ms).expect("a span");
        assert_eq!(took, remainder + wide_area + load, "region {region}");
        assert_eq!(took, remainder + cluster.epoch_known(region) + cluster.run(), "region {region}");
    }
}

#[test]
fn with_two_coordinators_it_takes_as_long_whichever_of_them_has_the_namespace() {
    let mut cluster = TwoCoordinators::new(matrix(46, 94, 72));
    let remainder = Span::from_micros(3_300);
    for at in (0..3).flat_map(|region| (0..2).map(move |shard| SiteId::new(region, shard))) {
        let mut forwarded = Vec::new();
        for key in ["x", "y", "z", "w"] {
            let before = cluster.world.probe("catenae.forwarded");
            run_to_before_end(&mut cluster.world, remainder);
            let asked = cluster.world.now();
            cluster.world.submit(at, add(key));
            assert!(cluster.world.run_until_reply(asked + Span::from_secs(1)).expect("nothing goes wrong"), "it is answered");
            let reply = cluster.world.take_replies().remove(0);
            assert!(matches!(reply.answer, Some(Answer::Ran { .. })), "{reply:?}");
            // The way to the other coordinator is within the rest of the epoch.
            assert_eq!(reply.at.since(asked), remainder + cluster.epoch_known(at), "{key} at {at}");
            forwarded.push(cluster.world.probe("catenae.forwarded") > before);
        }
        assert!(forwarded.contains(&true) && forwarded.contains(&false), "{forwarded:?} at {at}");
    }
    // What the second coordinator of the farthest region says counts at the first one here when the second one here has it, too.
    assert_eq!(cluster.epoch_known(SiteId::new(0, 0)), Span::from_millis(47) + HOP);
}

#[test]
fn with_a_conflict_the_votes_take_their_way_too() {
    let mut cluster = Cluster::new(matrix(46, 94, 72));
    let remainder = Span::from_micros(2_500);
    cluster.run_to_before_end(remainder);
    let asked = cluster.world.now();
    cluster.world.submit(SiteId::new(0, 0), add("shared"));
    cluster.world.submit(SiteId::new(2, 0), add("shared"));
    let replies = cluster.replies(2, asked);
    // Both go to the one chain server of the key at the same time, and pass it one after the other.
    let chains = cluster.local.message + cluster.local.step * 2;
    let expected = |region| remainder + cluster.votes_count(region, chains);
    assert_eq!((replies[0].1, number(&replies[0].2)), (expected(0) + cluster.run(), 1));
    assert_eq!((replies[1].1, number(&replies[1].2)), (expected(2) + cluster.run() * 2, 2), "it runs after the other");
    assert_eq!(cluster.world.probe("catenae.failed_speculation"), 0);
}

#[test]
fn a_settled_read_crosses_no_wide_area_and_a_strict_one_waits_for_the_epoch_of_now() {
    let mut cluster = Cluster::new(matrix(46, 94, 72));
    let read = |freshness| Request::Read { keys: vec![Key::from("alone")], ranges: vec![], reverse: false, freshness };
    let remainder = Span::from_micros(3_300);
    cluster.run_to_before_end(remainder);
    let asked = cluster.world.now();
    cluster.world.submit(SiteId::new(1, 0), read(Freshness::Settled));
    let [(_, took, _)] = cluster.replies(1, asked)[..] else { panic!("one reply") };
    assert_eq!(took, cluster.local.step * 2 + cluster.local.load);
    cluster.run_to_before_end(remainder);
    let asked = cluster.world.now();
    cluster.world.submit(SiteId::new(0, 0), read(Freshness::Strict));
    let [(_, took, _)] = cluster.replies(1, asked)[..] else { panic!("one reply") };
    assert_eq!(took, remainder + cluster.epoch_known(0) + cluster.run());
}

#[test]
fn a_session_sees_its_own_commit_in_its_own_region() {
    let mut cluster = Cluster::new(matrix(46, 94, 72));
    let asked = cluster.world.now();
    cluster.world.submit(SiteId::new(0, 0), Request::Run(Transaction::from(Operation::Add { key: "n".into(), amount: 7 })));
    let (_, _, Answer::Ran { at, .. }) = cluster.replies(1, asked).remove(0) else { panic!("it ran") };
    let after = Request::Read { keys: vec!["n".into()], ranges: vec![], reverse: false, freshness: Freshness::After(at) };
    for region in 0..3 {
        cluster.world.submit(SiteId::new(region, 0), after.clone());
    }
    for (region, _, answer) in cluster.replies(3, asked) {
        let Answer::Rows { at: shown, rows, .. } = answer else { panic!("{answer:?}") };
        assert!(shown > at, "region {region}");
        assert_eq!((rows[0].version, rows[0].value.clone()), (at, Some("7".into())), "region {region}");
    }
}

#[test]
fn rows_keep_a_processor_busy_and_a_slow_one_twice_as_long() {
    let row = Span::from_micros(200);
    let mut cluster = Cluster::with(matrix(46, 94, 72), LocalDelays { row, ..LocalDelays::default() }, 50);
    let keys: Vec<Key> = ["a", "b", "c"].map(Key::from).to_vec();
    let read = Request::Read { keys, ranges: vec![], reverse: false, freshness: Freshness::Settled };
    cluster.run_to_before_end(Span::from_micros(7_000));
    let asked = cluster.world.now();
    for region in [0, 1, 0] {
        cluster.world.submit(SiteId::new(region, 0), read.clone());
    }
    let replies = cluster.replies(3, asked);
    let step = cluster.local.step;
    // A step or two of other messages may come between, no row.
    let takes = |(_, took, _): &(u16, Span, Answer), least: Span| assert!(*took >= least && *took < least + row, "{took} against {least}");
    // The second read is taken up before the first is answered.
    takes(&replies[0], step * 3 + row * 6);
    takes(&replies[1], step * 4 + row * 6);
    takes(&replies[2], step * 4 + row * 6);
    assert_eq!(replies[2].0, 1, "one read at half the speed takes as long as two");
}

#[test]
fn who_is_asked_nothing_says_nothing_and_the_first_question_then_takes_a_round_trip() {
    let mut cluster = Cluster::new(matrix(46, 94, 72));
    let sealed = |cluster: &Cluster| {
        let epoch = |region| cluster.world.actor(SiteId::new(region, 0)).expect("it is up").status().coordinator;
        [epoch(0), epoch(1), epoch(2)]
    };
    cluster.world.run_until(Time::from_micros(4_000_000)).expect("nothing goes wrong");
    let before = sealed(&cluster);
    cluster.world.run_until(Time::from_micros(9_000_000)).expect("nothing goes wrong");
    assert_eq!(sealed(&cluster), before);
    let remainder = Span::from_micros(3_300);
    cluster.run_to_before_end(remainder);
    let asked = cluster.world.now();
    cluster.world.submit(SiteId::new(0, 0), add("alone"));
    let [(_, took, _)] = cluster.replies(1, asked)[..] else { panic!("one reply") };
    let LocalDelays { step, sync, .. } = cluster.local;
    // The others hear of the epoch, and seal it at the end of their own.
    let replied = |of: u16| {
        let heard = step + sync + cluster.rtt.one_way(RegionId(0), RegionId(of)) + step;
        Span::from_micros(heard.as_micros().next_multiple_of(EPOCH.as_micros())) + cluster.entry_counts(of, 0)
    };
    assert_eq!(took, remainder + replied(1).max(replied(2)) + cluster.run());
    // And now they are awake.
    cluster.run_to_before_end(remainder);
    let asked = cluster.world.now();
    cluster.world.submit(SiteId::new(0, 0), add("alone"));
    let [(_, took, _)] = cluster.replies(1, asked)[..] else { panic!("one reply") };
    assert_eq!(took, remainder + cluster.epoch_known(0) + cluster.run());
}
