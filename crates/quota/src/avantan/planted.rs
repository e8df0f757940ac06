//! What Avantan does where a rule of it is broken.

use super::any::{self, Instance};
use super::{AccountPort, Any, Cause, Majority, Outbox, Patience, majority};
use crate::list::List;
use crate::planted::Planted;

impl Majority {
    /// Takes the offer back on silence alone.
    pub(super) fn unfreezes(
        &mut self,
        waited: u32,
        patience: &Patience,
        port: &mut dyn AccountPort,
        out: &mut Outbox<majority::Note, majority::Promise>,
    ) -> bool {
        let unfreezes = self.rules.breaks(Planted::UnfreezeOnTimeout) && waited >= patience.resend;
        if unfreezes {
            let leaders: Vec<_> = self.state.offered_to.keys().copied().collect();
            for leader in leaders {
                self.forget_offer_to(leader, u64::MAX, Cause::Unanswered, port, out);
            }
        }
        unfreezes
    }

    /// Applies lists of slots that are over.
    pub(super) fn replay(&self, lists: &[(u64, List)], port: &mut dyn AccountPort) {
        let again = lists.iter().filter(|(slot, list)| *slot < self.state.slot && list.entry(self.cluster.me).is_some());
        if self.rules.breaks(Planted::SlotReplay) {
            again.for_each(|(_, list)| port.apply(list));
        }
    }
}

impl Any {
    /// Gives up although the list was sent.
    pub(super) fn aborts_after_accept(
        &mut self,
        waited: u32,
        patience: &Patience,
        port: &mut dyn AccountPort,
        out: &mut Outbox<any::Note, any::Promise>,
    ) -> bool {
        let aborts = self.rules.breaks(Planted::AbortAfterAccept) && waited >= patience.resend;
        if aborts {
            self.give_up(Cause::Unanswered, port, out);
        }
        aborts
    }

    /// Applies a list of an instance that is over.
    pub(super) fn replay(&self, instance: Instance, list: &List, port: &mut dyn AccountPort) {
        if self.rules.breaks(Planted::SlotReplay) && self.is_over(instance) && list.entry(self.cluster.me).is_some() {
            port.apply(list);
        }
    }
}
