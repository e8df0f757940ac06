//! A client that moves replicas: reads the placement that its row shows, draws another one that may come next, and commits it.
//!
//! A region becomes active only after it was passive, and so has a copy of all rows. Else any region may become anything, within
//! [`Bounds`]. An operator who declares a region lost goes about it in the same way.

use crate::{ClientEvent, ClientProgram, Next};
use rhumb_commit::placement::{Change, Coordinators, Placement, Regions};
use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::{Key, RegionId, Rng, Row, Span, Time, Topology, TxnId};
use rhumb_replicated_commit::{Admin, Answer, Request, Site};
use std::collections::BTreeMap;

/// The longest wait between two moves.
const PAUSE_MAX: Span = Span::from_secs(4);

/// What placements a run may have, besides that somebody votes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// These regions will be lost for good: the others must be a majority of those who vote.
    pub(super) doomed: Regions,
    /// At least so many regions vote.
    pub(super) voters_min: usize,
}

impl Bounds {
    /// True if the cluster goes on in a placement with these voters, whatever the run has in store.
    pub(super) fn hold(self, voters: Regions) -> bool {
        let left = voters.without(self.doomed);
        voters.len() >= self.voters_min && left.len() >= voters.majority()
    }

    /// Takes the doomed regions out of `voters` and adds others that hold `copies`, as far as it takes for them to hold.
    fn enforce(self, mut voters: Regions, copies: &[RegionId]) -> Regions {
        if self.hold(voters) {
            return voters;
        }
        voters = voters.without(self.doomed);
        for region in copies.iter().filter(|region| !self.doomed.contains(**region)) {
            if !self.hold(voters) || voters.is_empty() {
                voters = voters.or((*region).into());
            }
        }
        voters
    }
}

/// Draws a change that may come after one in which `copies` hold copies, among `regions`.
pub(super) fn draw(copies: Regions, regions: Regions, bounds: Bounds, rng: &mut Rng) -> Change {
    let mut order: Vec<RegionId> = copies.iter().collect();
    rng.shuffle(&mut order);
    let active = rng.between(1, order.len() as u64) as usize;
    let voters = bounds.enforce(order.iter().copied().take(active).collect(), &order);
    let passives: Regions = regions.without(voters).iter().filter(|_| rng.chance(0.6)).collect();
    let copies: Vec<RegionId> = voters.or(passives).iter().collect();
    let all: Vec<RegionId> = regions.iter().collect();
    let mut coordinators = BTreeMap::new();
    for _ in 0..rng.below(regions.len() as u64) {
        let mut any = || *rng.pick(&all).expect("a cluster has regions");
        let (of, commit) = (any(), any());
        let read = *rng.pick(&copies).expect("somebody votes");
        coordinators.insert(of, Coordinators { read, commit });
    }
    Change { voters, passives, coordinators, lost: Regions::NONE }
}

/// The change by which an operator declares regions `lost`: nobody waits for them, nor reads or commits there.
fn without(placement: &Placement, lost: Regions) -> Change {
    let names_one = |named: &Coordinators| lost.contains(named.read) || lost.contains(named.commit);
    Change {
        voters: placement.voters.without(lost),
        passives: placement.passives.without(lost),
        coordinators: placement.coordinators.iter().filter(|(_, named)| !names_one(named)).map(|(of, named)| (*of, *named)).collect(),
        lost,
    }
}

/// What a mover is about.
enum Errand {
    /// Any placement within these bounds, again and again.
    Move(Bounds),
    /// These regions are lost for good: to say so once.
    Declare(Regions),
}

enum Phase {
    Waiting,
    Settling,
    Beginning,
    Reading,
    Committing,
    RollingBack,
    Done,
}

/// Moves replicas again and again, or declares regions lost.
pub(super) struct Mover {
    topology: Topology,
    first: Placement,
    errand: Errand,
    /// It does nothing before.
    from: Time,
    until: Time,
    rng: Rng,
    phase: Phase,
    txn: Option<TxnId>,
}

impl Mover {
    /// A mover of a cluster that began with `first`.
    pub(super) fn new(topology: Topology, first: Placement, bounds: Bounds, until: Time, rng: Rng) -> Mover {
        let errand = Errand::Move(bounds);
        Mover { topology, first, errand, from: Time::ZERO, until, rng, phase: Phase::Waiting, txn: None }
    }

    /// An operator who, from then on, declares regions `lost` until they are.
    pub(super) fn declaring(topology: Topology, first: Placement, lost: Regions, from: Time, rng: Rng) -> Mover {
        let errand = Errand::Declare(lost);
        Mover { topology, first, errand, from, until: Time::from_micros(u64::MAX), rng, phase: Phase::Waiting, txn: None }
    }

    fn keys(&self) -> Vec<Key> {
        (0..self.topology.shard_count()).map(|shard| Placement::key(shard, &self.topology)).collect()
    }

    fn wait(&mut self, now: Time) -> Next<Request> {
        if matches!(self.phase, Phase::Done) {
            return Next::Done;
        }
        self.phase = Phase::Waiting;
        self.txn = None;
        Next::Wait(Span::from_micros(self.rng.below(PAUSE_MAX.as_micros())).max(self.from.since(now)))
    }

    fn begin(&mut self) -> Next<Request> {
        self.phase = Phase::Beginning;
        Next::Request(Request::Begin { mode: ReadMode::Locking })
    }

    fn change(&mut self, txn: TxnId, rows: &[Row]) -> Next<Request> {
        let shown = rows.first().and_then(|row| row.value.as_ref());
        let placement = match shown {
            Some(value) => Placement::decode(value).expect("only placements are written there"),
            None => self.first.clone(),
        };
        let lost: Regions = placement.lost.keys().copied().collect();
        let regions = Regions::first(self.topology.region_count()).without(lost);
        let change = match self.errand {
            Errand::Move(bounds) => draw(placement.copies(), regions, bounds, &mut self.rng),
            Errand::Declare(regions) if regions.without(lost).is_empty() => {
                self.phase = Phase::Done;
                return Next::Request(Request::Rollback { txn });
            }
            Errand::Declare(regions) => without(&placement, regions.without(lost)),
        };
        let next = placement.next(change).expect("drawn so that it may come next");
        self.phase = Phase::Committing;
        let writes = self.keys().into_iter().map(|key| (key, Some(next.encode()))).collect();
        Next::Request(Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() })
    }
}

impl ClientProgram<Site> for Mover {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match (&self.phase, event) {
            (_, ClientEvent::Started) => self.wait(now),
            (_, ClientEvent::Woken) if now >= self.until => Next::Done,
            (_, ClientEvent::Woken) => match self.errand {
                Errand::Declare(lost) => {
                    self.phase = Phase::Settling;
                    Next::Request(Request::Admin(Admin::Settle { lost }))
                }
                Errand::Move(_) => self.begin(),
            },
            (Phase::Settling, ClientEvent::Answered(Answer::Done)) => self.begin(),
            (Phase::Beginning, ClientEvent::Answered(Answer::Began { txn })) => {
                self.phase = Phase::Reading;
                self.txn = Some(txn);
                Next::Request(Request::Get { txn, mode: ReadMode::Locking, keys: self.keys(), expect: vec![] })
            }
            (Phase::Reading, ClientEvent::Answered(answer)) => match (self.txn, answer) {
                (Some(txn), Answer::Rows { rows, .. }) => self.change(txn, &rows),
                (Some(txn), _) => {
                    self.phase = Phase::RollingBack;
                    Next::Request(Request::Rollback { txn })
                }
                (None, _) => self.wait(now),
            },
            (_, ClientEvent::Answered(_) | ClientEvent::GatewayLost) => self.wait(now),
        }
    }
}
