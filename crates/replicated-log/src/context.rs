//! What the roles of a site share, and all that a role may touch besides its own state.

use crate::Site;
use crate::config::{CLOCK_LEAD, Config, ticks};
use crate::message::{Cursor, Note};
use crate::planted::Planted;
use crate::records;
use derive_more::{Deref, DerefMut};
use rhumb_commit::clock_lease::ClockLease;
use rhumb_core::{Batch, Effects, Jobs, Rules, SiteId, Time, Timestamp, Topology, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a load or a persist is for.
#[derive(Debug)]
pub(crate) enum Job {
    /// What earlier incarnations have left, a page of it.
    Recover,
    /// A bound of the clock is durable.
    ClockBound(Timestamp),
    /// Rows that a transaction has locked.
    Locked { txn: TxnId, number: u64, instance: u64 },
    /// Versions that a transaction depends on.
    Expected { txn: TxnId, instance: u64 },
    /// Rows of a snapshot.
    Snapshot { to: SiteId, txn: TxnId, number: u64, at: Timestamp, strict: bool },
    /// Rows of a state that is transferred.
    Page { to: SiteId, transfer: u64, cursor: Cursor },
}

/// Who is believed to lead a group.
#[derive(Clone, Copy, Debug)]
struct Believed {
    leader: SiteId,
    /// The tick at which it was last heard to lead, or taken for the leader in place of one that is silent.
    since: u64,
    /// The place of the member that was taken last in place of another one: all have their turn.
    turn: usize,
}

/// How a site is reached while the link to it does not seem to carry anything.
#[derive(Clone, Copy, Debug)]
struct Detour {
    via: SiteId,
    /// The tick from which the link is tried again.
    until: u64,
}

/// What the roles of a site share.
pub(crate) struct Shared {
    pub(crate) me: SiteId,
    pub(crate) topology: Arc<Topology>,
    pub(crate) config: Config,
    /// This site's clock at the current step.
    pub(crate) now: Time,
    /// Ticks in this incarnation.
    pub(crate) ticks: u64,
    pub(crate) clock: ClockLease,
    pub(crate) rules: Rules<Planted>,
    pub(crate) jobs: Jobs<Job>,
    /// Who is believed to lead each group.
    leaders: Vec<Believed>,
    /// Leaders that were silent, and the tick at which they were passed over.
    silent: BTreeMap<SiteId, u64>,
    detours: BTreeMap<SiteId, Detour>,
    /// All regions, the best for leaders first.
    preference: Vec<u16>,
}

/// What a role may touch in a step.
#[derive(Deref, DerefMut)]
pub(crate) struct Context<'a> {
    #[deref(forward)]
    #[deref_mut(forward)]
    pub(crate) shared: &'a mut Shared,
    pub(crate) fx: &'a mut Effects<Site>,
}

impl Shared {
    pub(crate) fn new(me: SiteId, topology: Arc<Topology>, config: Config) -> Shared {
        let named: Vec<u16> = config.leaders.iter().map(|region| region.0).collect();
        let others = topology.regions().map(|region| region.0).filter(|region| !named.contains(region));
        let preference: Vec<u16> = named.iter().copied().chain(others).collect();
        Shared {
            me,
            leaders: (0..topology.shard_count())
                .map(|shard| Believed { leader: SiteId::new(preference[0], shard), since: 0, turn: 0 })
                .collect(),
            silent: BTreeMap::new(),
            detours: BTreeMap::new(),
            preference,
            topology,
            config,
            now: Time::ZERO,
            ticks: 0,
            clock: ClockLease::new(CLOCK_LEAD),
            rules: Rules::HOLD,
            jobs: Jobs::default(),
        }
    }

    /// The replicas of a shard, the preferred leader first.
    pub(crate) fn members(&self, shard: u16) -> Vec<SiteId> {
        self.preference.iter().map(|region| SiteId::new(*region, shard)).collect()
    }

    /// Who is believed to lead the group of `shard`.
    pub(crate) fn leader_of(&self, shard: u16) -> SiteId {
        self.leaders[usize::from(shard)].leader
    }

    /// `leader` has done what leaders do, or was said to lead.
    pub(crate) fn note_leader(&mut self, leader: SiteId) {
        let ticks = self.ticks;
        let believed = &mut self.leaders[usize::from(leader.shard)];
        (believed.leader, believed.since) = (leader, ticks);
    }

    /// `site` does not lead, and does not know who does: perhaps another one.
    pub(crate) fn pass_over(&mut self, site: SiteId) {
        if self.leader_of(site.shard) != site {
            return;
        }
        let members = self.members(site.shard);
        let shard = usize::from(site.shard);
        for _ in 0..members.len() {
            self.leaders[shard].turn += 1;
            let next = members[self.leaders[shard].turn % members.len()];
            if next != site && next != self.me {
                return self.note_leader(next);
            }
        }
    }

    /// Something has to be sent again. If whoever is believed to lead was given as long as an answer may take, and has said nothing to anybody here,
    /// it goes to another one. However many transactions wait, no member is left out before its time: they would scatter over the group, and hardly
    /// any would find its leader.
    pub(crate) fn doubt_leader(&mut self, shard: u16) {
        let Believed { leader, since, .. } = self.leaders[usize::from(shard)];
        if self.ticks >= since + ticks(self.config.resend) {
            self.silent.insert(leader, self.ticks);
            self.pass_over(leader);
        }
    }

    /// `from` says that `leader` leads. If that was silent here just now, it is the link to it that is cut, and `from` passes messages on.
    pub(crate) fn note_elsewhere(&mut self, from: SiteId, leader: SiteId) {
        self.note_leader(leader);
        let was_silent = self.silent.get(&leader).is_some_and(|since| self.ticks < since + 2 * ticks(self.config.resend));
        if was_silent && from != self.me {
            self.detour(leader, from);
        }
    }

    /// What is for `site` goes by `via` for some time.
    pub(crate) fn detour(&mut self, site: SiteId, via: SiteId) {
        let until = self.ticks + ticks(self.config.detour);
        self.detours.insert(site, Detour { via, until });
    }

    fn detour_to(&self, site: SiteId) -> Option<SiteId> {
        self.detours.get(&site).filter(|detour| self.ticks < detour.until).map(|detour| detour.via)
    }

    /// A message has come straight from `site`.
    pub(crate) fn heard(&mut self, site: SiteId) {
        self.silent.remove(&site);
        self.detours.remove(&site);
    }

    /// A timestamp above all that were issued or observed.
    pub(crate) fn timestamp(&mut self) -> Timestamp {
        self.clock.now(self.now)
    }
}

impl Context<'_> {
    /// Sends to whoever is believed to lead the group of `shard`.
    pub(crate) fn send_leader(&mut self, shard: u16, note: Note) {
        let leader = self.leader_of(shard);
        self.send(leader, note);
    }

    /// Sends to a site: by a detour while the link to it does not seem to carry anything.
    pub(crate) fn send(&mut self, to: SiteId, note: Note) {
        let from = self.me;
        match self.detour_to(to) {
            Some(via) => {
                self.fx.count("log.relayed");
                self.fx.send(via, Note::Relay { from, to, note: Box::new(note) });
            }
            None => self.fx.send(to, note),
        }
    }

    /// Writes a bound of the clock, if one is to be written.
    pub(crate) fn write_bound(&mut self, bound: Option<Timestamp>) {
        let Some(bound) = bound else { return };
        let mut batch = Batch::new();
        records::put_clock_bound(&mut batch, bound);
        let token = self.jobs.begin(Job::ClockBound(bound));
        self.fx.persist(batch).notify(token);
    }
}
