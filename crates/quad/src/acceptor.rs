//! A site's part in a change of configuration: it seals its epoch, accepts what is proposed, and adopts what was decided.
//!
//! Consensus on the configuration of the next epoch is Paxos with one instance per epoch, whose acceptors are the members of this one. Its
//! first phase is the seal.
//!
//! ```text
//!   serving ── Seal, Accept ──▶ sealed ── Decided ──▶ serving the next epoch
//!      └─────────────────────── Decided ────────────────────▲
//! ```
//!
//! Invariants: nothing of a sealed epoch is served any more, over crashes too, so that what a site reports when it seals stays
//! all that it knows; a promise holds: no lower ballot is taken part in; whatever was prepared or decided in an epoch that is over
//! is dropped when the next one is adopted, but for what was carried.
//!
//! Source: section IV, "One-Copy View on Quorums": a seal is its prepare, and begins its interruption.

use super::configuration::{Cause, Configuration, Goal, carries};
use super::context::{Context, Shared};
use super::explanation::Tally;
use super::message::{Note, Promise, Report};
use super::planted::Planted;
use super::reconcile::Reconciler;
use super::records::{ACCEPTOR, AcceptorRecord, CONFIGURATION};
use super::replica::Replica;
use rhumb_core::record::encode;
use rhumb_core::{Ballot, Batch, SiteId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A site's part in the changes that end its epochs.
#[derive(Clone, Debug, Default)]
pub(super) struct Acceptor {
    /// Set while the epoch is sealed here.
    sealed: Option<Sealed>,
    /// How often it was, in this incarnation.
    seals: u64,
    /// Configurations that were adopted.
    changes: BTreeMap<Cause, u64>,
    /// When the last one was.
    adopted: Option<Time>,
}

#[derive(Clone, Debug)]
struct Sealed {
    record: AcceptorRecord,
    /// The tick at which it last heard of an attempt.
    since: u64,
    /// The tick since which it is sealed.
    began: u64,
    /// How often it has tried to end this state itself.
    tries: u64,
}

/// What an acceptor sees of the other roles of its site.
pub(super) struct NearAcceptor<'a> {
    pub(super) replica: &'a Replica,
    pub(super) reconciler: &'a Reconciler,
}

/// What an acceptor promises a mover once it is on disk.
#[derive(Clone, Debug)]
pub(super) struct Vote {
    pub(super) to: SiteId,
    pub(super) promise: Promise,
    pub(super) batch: Batch,
    /// The site was serving its epoch up to now.
    pub(super) stops_serving: bool,
}

impl Acceptor {
    /// The same with nothing counted: what it goes on to do does not depend on that.
    #[cfg(test)]
    pub(super) fn uncounted(&self) -> Acceptor {
        Acceptor { seals: 0, changes: BTreeMap::new(), ..self.clone() }
    }

    /// What an earlier incarnation has promised.
    pub(super) fn restore(&mut self, record: AcceptorRecord, tick: u64) {
        self.sealed = Some(Sealed { record, since: tick, began: tick, tries: 0 });
    }

    /// True if the site has stopped serving its epoch.
    pub(super) fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// The tick since which it is sealed.
    pub(super) fn sealed_since(&self) -> Option<u64> {
        self.sealed.as_ref().map(|sealed| sealed.began)
    }

    /// What was counted of changes at a site that got so many rows from others.
    pub(super) fn tally(&self, copied: u64) -> Tally {
        Tally { sealed: self.seals, copied, changes: self.changes.clone(), since: self.adopted }
    }

    /// A mover has the epoch end.
    pub(super) fn on_seal(
        &mut self,
        from: SiteId,
        ballot: Ballot,
        goal: Goal,
        near: &NearAcceptor<'_>,
        cx: &mut Context<'_>,
    ) -> Option<Vote> {
        let mut paxos = self.paxos();
        let promised = paxos.promise(ballot);
        if !self.takes_part(from, promised, cx) {
            return None;
        }
        let unsettled = near.replica.unsettled();
        let unsettled = if cx.rules.breaks(Planted::CommitsNotCarried) { Vec::new() } else { unsettled };
        let report = Report { accepted: paxos.accepted().cloned(), holds: near.reconciler.holds(), clock: cx.clock.last(), unsettled };
        Some(self.seal(AcceptorRecord { acceptor: paxos, goal }, from, Promise::Sealed { ballot, report }, cx))
    }

    /// A mover proposes the next configuration.
    pub(super) fn on_accept(
        &mut self,
        from: SiteId,
        ballot: Ballot,
        configuration: Box<Configuration>,
        cx: &mut Context<'_>,
    ) -> Option<Vote> {
        let goal = match &self.sealed {
            Some(sealed) => sealed.record.goal.clone(),
            None => {
                let (quorums, members, cores) = (configuration.quorums.clone(), configuration.members(), Some(configuration.cores));
                let (cause, why) = (configuration.cause, configuration.why.clone());
                Goal { quorums, members, lost: BTreeSet::new(), cores, cause, why }
            }
        };
        let mut paxos = if cx.rules.breaks(Planted::PromiseForgotten) { rhumb_core::Acceptor::default() } else { self.paxos() };
        let accepted = paxos.accept(ballot, configuration);
        if !self.takes_part(from, accepted, cx) {
            return None;
        }
        Some(self.seal(AcceptorRecord { acceptor: paxos, goal }, from, Promise::Accepted { ballot }, cx))
    }

    /// What it has promised and accepted of the next configuration.
    pub(super) fn paxos(&self) -> rhumb_core::Acceptor<Box<Configuration>> {
        self.sealed.as_ref().map(|sealed| sealed.record.acceptor.clone()).unwrap_or_default()
    }

    /// True if it takes part in a ballot of `from`; who is outbid is told. Only members do.
    fn takes_part(&self, from: SiteId, taken: Result<bool, Ballot>, cx: &mut Context<'_>) -> bool {
        if let (true, Err(ballot)) = (cx.is_member(), taken) {
            cx.send(from, Note::Outbid { ballot });
        }
        cx.is_member() && taken.is_ok()
    }

    /// Stops serving, if it has not stopped yet, and takes note of what is promised with that.
    fn seal(&mut self, record: AcceptorRecord, to: SiteId, promise: Promise, cx: &mut Context<'_>) -> Vote {
        let mut batch = Batch::new();
        batch.put_record(ACCEPTOR, Vec::new(), encode(&record));
        let (began, tries) = self.sealed.as_ref().map_or((cx.ticks, 0), |sealed| (sealed.began, sealed.tries));
        let stops_serving = self.sealed.is_none();
        if stops_serving {
            cx.fx.count("quad.sealed");
            self.seals += 1;
        }
        self.sealed = Some(Sealed { record, since: cx.ticks, began, tries });
        Vote { to, promise, batch, stops_serving }
    }

    /// The attempt that it takes part in advances: it need not be taken over.
    pub(super) fn on_advances(&mut self, ballot: Ballot, tick: u64) {
        if let Some(sealed) = self.sealed.as_mut().filter(|sealed| sealed.record.acceptor.promised() == Some(ballot)) {
            sealed.since = tick;
        }
    }

    /// The epoch is over: nothing is promised for the next one yet.
    pub(super) fn end_epoch(&mut self, next: &Configuration, batch: &mut Batch, now: Time) {
        batch.put_record(CONFIGURATION, Vec::new(), encode(next));
        batch.delete_record(ACCEPTOR, Vec::new());
        self.sealed = None;
        *self.changes.entry(next.cause).or_default() += 1;
        self.adopted = Some(now);
    }

    /// What to attempt itself, if it is sealed for long without news.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) -> Option<Goal> {
        let before_me = cx.up().iter().take_while(|site| **site < cx.me).count() as u64;
        let patience = cx.config.sealed_ticks + before_me;
        let sealed = self.sealed.as_mut().filter(|sealed| cx.ticks >= sealed.since + patience)?;
        sealed.since = cx.ticks;
        sealed.tries += 1;
        let (tries, asked) = (sealed.tries, sealed.record.goal.clone());
        cx.fx.count("quad.taken_over");
        Some(way_out(asked, tries, cx))
    }
}

/// What to attempt in the try with this number: what was last asked for, what there is, or the same with whoever is in reach; in
/// turns those that those in reach can bring about, as far as this site knows. What was asked for, if they can do nothing.
fn way_out(asked: Goal, tries: u64, cx: &Shared) -> Goal {
    let (old, up) = (&cx.configuration, cx.reachable());
    let goal = |quorums, members, lost| {
        let why = "an attempt to change was given up".into();
        Goal { quorums, members, lost, cores: None, cause: Cause::Resumed, why }
    };
    let as_before = goal(old.quorums.clone(), old.members(), BTreeSet::new());
    let among = |lost: BTreeSet<SiteId>| {
        let members: BTreeSet<SiteId> = old.members().difference(&lost).copied().collect();
        goal(old.quorums.among(&members, &up), members, lost)
    };
    let ways = [asked.clone(), as_before, among(BTreeSet::new()), among(asked.lost.clone())];
    let can = |goal: &Goal| goal.validation_error(old).is_none() && old.may_be_left(&up, &goal.lost) && carries(&goal.quorums, &up);
    let mut ways: Vec<Goal> = ways.into_iter().filter(can).collect();
    ways.dedup_by(|one, other| one.quorums == other.quorums && one.lost == other.lost);
    if ways.is_empty() { asked } else { ways.swap_remove((tries - 1) as usize % ways.len()) }
}

#[cfg(test)]
mod tests {
    use super::super::Epoch;
    use super::super::config::Config;
    use super::super::testing::{Bench, site};
    use super::*;

    fn ballot(number: u64, leader: u16) -> Ballot {
        Ballot { number, leader: site(leader) }
    }

    /// What follows from a seal.
    fn seal(bench: &mut Bench, acceptor: &mut Acceptor, ballot: Ballot) -> (Option<Vote>, Vec<String>) {
        let (replica, reconciler) = (Replica::default(), Reconciler::default());
        let goal = Goal::of(Bench::new(3, 3, Config::default()).shared.configuration.quorums, "a test's");
        let near = NearAcceptor { replica: &replica, reconciler: &reconciler };
        let vote = bench.step(|cx| acceptor.on_seal(ballot.leader, ballot, goal, &near, cx));
        (vote, bench.lines())
    }

    #[test]
    fn a_promise_holds_and_service_stops_with_the_first() {
        let (mut bench, mut acceptor) = (Bench::new(2, 3, Config::default()), Acceptor::default());
        let vote = seal(&mut bench, &mut acceptor, ballot(2, 1)).0.expect("it is the first");
        assert!(vote.stops_serving && acceptor.is_sealed());
        assert_eq!((vote.to, vote.promise.to_string(), vote.batch.ops.len()), (site(1), "sealed 2@r1.0: holds e0, 0 unsettled".into(), 1));
        let (vote, lines) = seal(&mut bench, &mut acceptor, ballot(1, 2));
        assert!(vote.is_none());
        assert_eq!(lines, ["to r2.0: e1 outbid by 2@r1.0"]);
        let vote = seal(&mut bench, &mut acceptor, ballot(3, 2)).0.expect("it is a higher one");
        assert!(!vote.stops_serving, "it has stopped already");
        assert_eq!(acceptor.tally(0).sealed, 1);
    }

    #[test]
    fn what_was_accepted_is_reported_with_the_next_promise() {
        let (mut bench, mut acceptor) = (Bench::new(2, 3, Config::default()), Acceptor::default());
        let next = Configuration { epoch: Epoch(2), ..bench.shared.configuration.clone() };
        let vote = bench.step(|cx| acceptor.on_accept(site(1), ballot(1, 1), Box::new(next.clone()), cx)).expect("nothing is promised");
        assert_eq!((vote.promise.to_string(), vote.stops_serving), ("accepted 1@r1.0".into(), true));
        let vote = seal(&mut bench, &mut acceptor, ballot(2, 2)).0.expect("it is a higher one");
        let Promise::Sealed { report, .. } = vote.promise else { panic!("{:?}", vote.promise) };
        assert_eq!(report.accepted, Some((ballot(1, 1), Box::new(next))));
    }

    #[test]
    fn who_takes_no_part_promises_nothing() {
        let (mut bench, mut acceptor) = (Bench::new(2, 3, Config::default()), Acceptor::default());
        bench.shared.me = site(7);
        let (vote, lines) = seal(&mut bench, &mut acceptor, ballot(1, 1));
        assert!(vote.is_none() && lines.is_empty() && !acceptor.is_sealed());
    }

    #[test]
    fn a_change_is_taken_over_if_it_does_not_advance() {
        let (mut bench, mut acceptor) = (Bench::new(2, 3, Config::default()), Acceptor::default());
        seal(&mut bench, &mut acceptor, ballot(1, 1));
        let mut takes_over = |ticks, advances: bool| {
            bench.shared.ticks += ticks;
            (1..3).for_each(|n| bench.shared.peers.answer(site(n), bench.shared.ticks, Vec::new()));
            if advances {
                acceptor.on_advances(ballot(1, 1), bench.shared.ticks);
            }
            bench.step(|cx| acceptor.tick(cx)).map(|goal| goal.cause)
        };
        let patience = Config::default().sealed_ticks;
        assert_eq!(takes_over(patience - 1, true), None);
        assert_eq!(takes_over(patience - 1, false), None);
        assert_eq!(takes_over(1, false), Some(Cause::Operator), "what was asked for");
        assert_eq!(takes_over(patience, false), Some(Cause::Resumed), "then what there is");
    }
}
