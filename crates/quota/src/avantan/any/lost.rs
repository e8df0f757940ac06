//! Lists of Avantan\[\*\] with members that were declared lost.
//!
//! A member that was declared lost cannot be asked about a list. So `AcceptOk` says how many losses its sender knows; from then on the sender ignores
//! messages of these sites. Once all members that are not lost have sent it for all losses that a site knows, none of them has ended the instance,
//! and each ends it by the list alone: as decided if it leaves the lost members together with more tokens than they put in, else as dead. What a lost
//! member has is at most what that says ([`lost`](crate::lost)).

use super::{Accepted, Any, Instance, Out, Role};
use crate::avantan::{AccountPort, Cause};
use crate::cluster::Cluster;
use crate::list::List;
use crate::planted::Planted;
use rhumb_core::SiteId;

impl Any {
    /// Has the list of `instance`, as its leader has.
    pub(super) fn member_with_list(&self, instance: Instance) -> Role {
        let mut accepted_by = Accepted::from([(instance.leader, 0)]);
        accepted_by.retain(|site, _| !self.cluster.is_lost(*site));
        accepted_by.insert(self.cluster.me, self.cluster.losses());
        Role::Member { accepted_by, waited: 0 }
    }

    /// Sites were declared lost: this site ignores their messages from now on.
    pub fn lose(&mut self, cluster: &Cluster, port: &mut dyn AccountPort, out: &mut Out) {
        self.cluster = cluster.clone();
        let (me, losses) = (cluster.me, cluster.losses());
        match &mut self.role {
            Role::Candidate { answers, busy, refused, .. } => {
                answers.retain(|site, _| !cluster.is_lost(*site));
                busy.retain(|site| !cluster.is_lost(*site));
                refused.retain(|site| !cluster.is_lost(*site));
                self.consider(false, port, out);
            }
            Role::Proposer { accepted_by, .. } | Role::Member { accepted_by, .. } => {
                accepted_by.retain(|site, _| !cluster.is_lost(*site));
                accepted_by.entry(me).and_modify(|known| *known = losses);
                let led = self.state.current.as_ref().map(|current| current.instance.leader);
                match led {
                    // Whatever the leader proposes, this site takes no list of its any more.
                    Some(leader) if cluster.is_lost(leader) && self.accepted().is_none() => self.end(None, Cause::Unanswered, port, out),
                    // A list without lost members needs what it needed before. A member does not count for itself that it has such a list, for
                    // only what answers a message of its own tells it that this is on its disk.
                    Some(_) if self.accepted().is_some_and(|list| self.has_lost_members(list)) => self.count_accepted(port, out),
                    _ => {}
                }
            }
        }
    }

    /// True if a member of the list was declared lost.
    pub(super) fn has_lost_members(&self, list: &List) -> bool {
        list.members().any(|member| self.cluster.is_lost(member))
    }

    /// True if all members have the list; or, if some are lost, all others have it and ignore the lost ones.
    pub(super) fn is_complete(&self, list: &List, accepted_by: &Accepted) -> bool {
        let needed = if self.has_lost_members(list) { self.cluster.losses() } else { 0 };
        let mut members = list.members().filter(|member| !self.cluster.is_lost(*member));
        members.all(|member| accepted_by.get(&member).is_some_and(|known| *known >= needed))
    }

    /// True if a list with lost members, of whom nobody knows whether they have it, leaves them with more tokens than they put in.
    pub(super) fn counts_as_decided(&self, list: &List) -> bool {
        !self.rules.breaks(Planted::LostListDead) && list.leaves_more_to(|site| self.cluster.is_lost(site))
    }

    /// So many tokens this site holds as the list has ended, and would not by its other end: a lost member may know that.
    pub(super) fn in_doubt(&self, list: &List, decided: bool) -> u64 {
        let (entry, share) = (list.entry(self.cluster.me), list.share(self.cluster.me));
        let (Some(entry), Some(share), true) = (entry, share, self.has_lost_members(list)) else { return 0 };
        let (dead, applied) = (entry.offered.held, share.granted.held);
        if decided { applied.saturating_sub(dead) } else { dead.saturating_sub(applied) }
    }

    /// True if `site` has nothing more to say of the list.
    pub(super) fn has_accepted(&self, site: SiteId, accepted_by: &Accepted) -> bool {
        accepted_by.get(&site).is_some_and(|known| *known >= self.cluster.losses())
    }
}
