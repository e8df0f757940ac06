//! Elections: who becomes a candidate when, and who votes for whom.

use super::leading::Leading;
use super::{Command, Group, GroupNote, GroupPromise, Position, Role, Step};
use crate::planted::Planted;
use rhumb_core::{Ballot, SiteId};
use std::collections::BTreeSet;

impl<C: Command> Group<C> {
    fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    fn rank(&self, site: SiteId) -> u64 {
        self.members.iter().position(|member| *member == site).expect("it is a member") as u64
    }

    /// How much longer than the preferred replica this one waits before it becomes a candidate.
    pub(super) fn stagger(&self) -> u64 {
        self.rank(self.me) * self.pace.stagger_ticks
    }

    /// True if no leader but `candidate` can hold a lease that this replica has granted.
    fn is_free_for(&self, candidate: SiteId) -> bool {
        // A tick may come as soon as a message: one more, so that the lease has passed.
        self.pace.lease_ticks == 0
            || self.heard.is_none_or(|heard| heard.leader == candidate || self.tick > heard.tick + self.pace.lease_ticks)
    }

    fn others(&self) -> impl Iterator<Item = SiteId> + use<C> {
        let me = self.me;
        self.members.clone().into_iter().filter(move |member| *member != me)
    }

    /// Time has passed: at least one tick.
    pub fn on_tick(&mut self, step: &mut Step<C>) {
        self.tick += 1;
        match &self.role {
            Role::Leading(leading) => {
                if self.tick > leading.confirmed_at + 2 * self.pace.lease_ticks {
                    // No majority hears it: others may go on without it.
                    return self.step_down();
                }
                if let Some(to) = self.preferred() {
                    let ballot = leading.ballot;
                    self.others().for_each(|other| step.notes.push((other, GroupNote::Yield { ballot, to })));
                    self.heard = None;
                    return self.step_down();
                }
                if self.tick.is_multiple_of(self.pace.heartbeat_ticks) && self.begin_round(step).is_none() {
                    // Too many rounds wait; whoever comes back needs to hear of the leader even so.
                    self.send_to_all(true, step);
                }
            }
            Role::Canvassing { since, .. } | Role::Campaigning { since, .. } => {
                if self.tick > since + self.pace.campaign_ticks {
                    self.role = Role::Following;
                    self.next_try = self.tick + self.stagger();
                }
            }
            Role::Following => {
                if self.tick >= self.next_try && self.is_free_for(self.me) {
                    self.canvass(step);
                }
            }
        }
    }

    /// A replica that is preferred to this leader, and has all that it has.
    fn preferred(&self) -> Option<SiteId> {
        let Role::Leading(leading) = &self.role else { return None };
        if self.chosen < leading.first || self.tick < leading.since + self.pace.yield_ticks {
            return None;
        }
        let better = self.members.iter().take_while(|member| **member != self.me);
        let mut fit = better.filter(|member| {
            let peer = &leading.peers[member];
            peer.matched >= self.log.last().slot && peer.round + 1 >= leading.round
        });
        fit.next().copied()
    }

    fn step_down(&mut self) {
        self.role = Role::Following;
        self.next_try = self.tick + self.pace.campaign_ticks + self.stagger();
    }

    pub(super) fn on_yield(&mut self, ballot: Ballot, to: SiteId) {
        if self.heard.is_some_and(|heard| heard.leader == ballot.leader) && self.promised == ballot {
            // Whoever yields has stopped to count on its lease.
            self.heard = None;
            self.next_try = if to == self.me { self.tick } else { self.tick + self.pace.campaign_ticks + self.stagger() };
        }
    }

    /// Asks the others whether they would vote for this replica.
    fn canvass(&mut self, step: &mut Step<C>) {
        let ballot = self.next_ballot();
        self.role = Role::Canvassing { ballot, supporters: [self.me].into(), since: self.tick };
        let last = self.log.last();
        self.others().for_each(|other| step.notes.push((other, GroupNote::Canvass { ballot, last })));
        self.campaign_if_supported(step);
    }

    /// True if this replica may vote for that ballot.
    fn would_vote(&self, ballot: Ballot, last: Position) -> bool {
        let reaches = last >= self.log.last() || self.rules.breaks(Planted::ShortLogElected);
        self.is_free_for(ballot.leader) && reaches
    }

    pub(super) fn on_canvass(&mut self, from: SiteId, ballot: Ballot, last: Position, step: &mut Step<C>) {
        if ballot <= self.promised {
            step.notes.push((from, GroupNote::Refused { promised: self.promised }));
        } else if self.would_vote(ballot, last) {
            step.notes.push((from, GroupNote::Support { ballot }));
        }
    }

    pub(super) fn on_support(&mut self, from: SiteId, ballot: Ballot, step: &mut Step<C>) {
        if let Role::Canvassing { ballot: own, supporters, .. } = &mut self.role
            && *own == ballot
        {
            supporters.insert(from);
            self.campaign_if_supported(step);
        }
    }

    fn campaign_if_supported(&mut self, step: &mut Step<C>) {
        let Role::Canvassing { ballot, supporters, .. } = &self.role else { return };
        if supporters.len() >= self.majority() && *ballot > self.promised {
            self.campaign(*ballot, step);
        }
    }

    /// Becomes a candidate at once.
    pub fn stand(&mut self, step: &mut Step<C>) {
        self.campaign(self.next_ballot(), step);
    }

    fn next_ballot(&self) -> Ballot {
        Ballot { number: self.highest.max(self.promised.number) + 1, leader: self.me }
    }

    fn campaign(&mut self, ballot: Ballot, step: &mut Step<C>) {
        self.promise(ballot, step);
        step.promises.push((self.me, GroupPromise::Vote { ballot }));
        self.role = Role::Campaigning { ballot, voters: BTreeSet::new(), since: self.tick };
        let last = self.log.last();
        self.others().for_each(|other| step.notes.push((other, GroupNote::Campaign { ballot, last })));
    }

    pub(super) fn on_campaign(&mut self, from: SiteId, ballot: Ballot, last: Position, step: &mut Step<C>) {
        self.highest = self.highest.max(ballot.number);
        if ballot < self.promised {
            return step.notes.push((from, GroupNote::Refused { promised: self.promised }));
        }
        if !self.would_vote(ballot, last) {
            return;
        }
        if ballot > self.promised {
            self.role = Role::Following;
            self.next_try = self.tick + self.pace.campaign_ticks + self.stagger();
            self.promise(ballot, step);
        }
        step.promises.push((from, GroupPromise::Vote { ballot }));
    }

    pub(super) fn on_vote(&mut self, from: SiteId, ballot: Ballot, step: &mut Step<C>) {
        let majority = self.majority();
        let Role::Campaigning { ballot: own, voters, .. } = &mut self.role else { return };
        if *own != ballot {
            return;
        }
        voters.insert(from);
        // Not before its own promise is on disk: having crashed, it would stand in this ballot again, with another log.
        if voters.len() >= majority && voters.contains(&self.me) {
            self.lead(ballot, step);
        }
    }

    fn lead(&mut self, ballot: Ballot, step: &mut Step<C>) {
        let first = self.log.last().slot + 1;
        self.role = Role::Leading(Leading::new(ballot, first, &self.members, self.tick));
        self.propose(C::nothing(), step);
        self.begin_round(step).expect("a leader begins with no round open");
    }

    pub(super) fn on_refused(&mut self, promised: Ballot) {
        self.highest = self.highest.max(promised.number);
        match &self.role {
            // Whoever refuses may hear this leader no more in this ballot: a new one, at once.
            Role::Leading(leading) if leading.ballot < promised => self.retry_soon(),
            Role::Canvassing { ballot, .. } | Role::Campaigning { ballot, .. } if *ballot < promised => self.retry_soon(),
            _ => {}
        }
    }

    fn retry_soon(&mut self) {
        self.role = Role::Following;
        self.next_try = self.tick + 1 + self.stagger();
    }
}
