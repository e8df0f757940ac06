//! A client that moves replicas: reads the placement that its row shows, draws another one that may come next, and commits it.
//!
//! A region becomes active only after it was passive, and so has a copy of all rows. Else any region may become anything.

use crate::{ClientEvent, ClientProgram, Next};
use rhumb_commit::placement::{Change, Coordinators, Placement, Regions};
use rhumb_commit::replicated_commit::{Answer, Request, Site};
use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::{Key, RegionId, Rng, Row, Span, Time, Topology, TxnId};
use std::collections::BTreeMap;

/// The longest wait between two moves.
const PAUSE_MAX: Span = Span::from_secs(4);

/// Draws a change of `placement`, among `regions` regions.
pub(super) fn draw(copies: Regions, regions: usize, rng: &mut Rng) -> Change {
    let mut order: Vec<RegionId> = copies.iter().collect();
    rng.shuffle(&mut order);
    let active = rng.between(1, order.len() as u64) as usize;
    let voters: Regions = order.drain(..active).collect();
    let passives: Regions = Regions::first(regions).without(voters).iter().filter(|_| rng.chance(0.6)).collect();
    let copies: Vec<RegionId> = voters.or(passives).iter().collect();
    let mut coordinators = BTreeMap::new();
    for _ in 0..rng.below(regions as u64) {
        let mut any = || RegionId(rng.below(regions as u64) as u16);
        let (of, commit) = (any(), any());
        let read = *rng.pick(&copies).expect("somebody votes");
        coordinators.insert(of, Coordinators { read, commit });
    }
    Change { voters, passives, coordinators, lost: Regions::NONE }
}

enum Phase {
    Waiting,
    Beginning,
    Reading,
    Committing,
    RollingBack,
}

/// Moves replicas again and again.
pub(super) struct Mover {
    topology: Topology,
    first: Placement,
    until: Time,
    rng: Rng,
    phase: Phase,
    txn: Option<TxnId>,
}

impl Mover {
    /// A mover of a cluster that began with `first`.
    pub(super) fn new(topology: Topology, first: Placement, until: Time, rng: Rng) -> Mover {
        Mover { topology, first, until, rng, phase: Phase::Waiting, txn: None }
    }

    fn keys(&self) -> Vec<Key> {
        (0..self.topology.shard_count()).map(|shard| Placement::key(shard, &self.topology)).collect()
    }

    fn wait(&mut self) -> Next<Request> {
        self.phase = Phase::Waiting;
        self.txn = None;
        Next::Wait(Span::from_micros(self.rng.below(PAUSE_MAX.as_micros())))
    }

    fn change(&mut self, txn: TxnId, rows: &[Row]) -> Next<Request> {
        let shown = rows.first().and_then(|row| row.value.as_ref());
        let placement = match shown {
            Some(value) => Placement::decode(value).expect("only placements are written there"),
            None => self.first.clone(),
        };
        let change = draw(placement.copies(), self.topology.region_count(), &mut self.rng);
        let next = placement.next(change).expect("drawn so that it may come next");
        self.phase = Phase::Committing;
        let writes = self.keys().into_iter().map(|key| (key, Some(next.encode()))).collect();
        Next::Request(Request::Commit { txn, writes, expect: vec![], options: CommitOptions::default() })
    }
}

impl ClientProgram<Site> for Mover {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match (&self.phase, event) {
            (_, ClientEvent::Started) => self.wait(),
            (_, ClientEvent::Woken) if now >= self.until => Next::Done,
            (_, ClientEvent::Woken) => {
                self.phase = Phase::Beginning;
                Next::Request(Request::Begin { mode: ReadMode::Locking })
            }
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
                (None, _) => self.wait(),
            },
            (_, ClientEvent::Answered(_) | ClientEvent::GatewayLost) => self.wait(),
        }
    }
}
