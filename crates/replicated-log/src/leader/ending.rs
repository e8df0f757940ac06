//! How transactions end at a leader: by entries that are applied, which others are told of, and by what the leader of the first group has decided.

use super::{Active, Leader, Stage};
use crate::command::{Command, Prepared};
use crate::context::Context;
use crate::message::{Fate, Note};
use crate::replica::Replica;
use crate::state::{Applied, Known};
use rhumb_core::{SiteId, Timestamp, TxnId};

impl Leader {
    /// An entry was applied.
    pub(crate) fn on_applied(&mut self, applied: &Applied, replica: &mut Replica, cx: &mut Context<'_>) {
        match applied {
            Applied::Nothing => {}
            Applied::Prepared(txn) => {
                let Some(Prepared { at, shards, .. }) = replica.state().prepared.get(txn).cloned() else { return };
                if let Some(active) = self.active.get_mut(txn) {
                    active.stage = Stage::Prepared { at, shards: shards.clone(), sent: cx.ticks, finishing: false };
                }
                if shards[0] == cx.me.shard {
                    self.coordinator.on_prepared(*txn, (cx.me.shard, at), &shards, cx.ticks);
                    self.coordinator.decide_if_prepared(*txn, replica, cx);
                } else {
                    cx.send_leader(shards[0], Note::Prepared { txn: *txn, at, shards });
                }
            }
            Applied::Ended(txn, known) => {
                cx.clock.observe(replica.state().marks.highest);
                let shards = self.active.get(txn).and_then(Active::shards);
                self.drop_active(*txn, cx);
                let fate = match known {
                    Known::Ended(committed) => fate(*committed),
                    _ => Fate::Forgotten,
                };
                match shards {
                    Some(shards) if shards[0] != cx.me.shard => cx.send_leader(shards[0], Note::Finished { txn: *txn }),
                    Some(shards) if shards.len() == 1 => cx.send(txn.gateway, Note::Outcome { txn: *txn, fate }),
                    _ => self.coordinator.announce(*txn, fate, replica, cx),
                }
            }
        }
    }

    /// The leader of the first group says what was decided.
    pub(crate) fn on_decided(
        &mut self,
        from: SiteId,
        txn: TxnId,
        committed: Option<Timestamp>,
        replica: &mut Replica,
        cx: &mut Context<'_>,
    ) {
        match self.active.get_mut(&txn).map(|active| &mut active.stage) {
            Some(Stage::Prepared { finishing, .. }) => {
                if !std::mem::replace(finishing, true) {
                    replica.propose(Command::Finish { txn, committed });
                }
            }
            // It will ask once it is prepared.
            Some(Stage::Proposed { .. } | Stage::Checking(_)) => {}
            Some(_) if committed.is_none() => self.drop_active(txn, cx),
            Some(_) => {}
            None => {
                if matches!(replica.state().of(txn), Known::Ended(_) | Known::Forgotten) {
                    cx.send(from, Note::Finished { txn });
                }
            }
        }
    }

    /// A replica of `shard` has said that it does not lead: what it was sent goes to whoever does, at the next tick.
    pub(crate) fn on_elsewhere(&mut self, txn: TxnId, shard: u16) {
        if let Some(Active { stage: Stage::Prepared { shards, sent, .. }, .. }) = self.active.get_mut(&txn)
            && shards[0] == shard
        {
            *sent = 0;
        }
        self.coordinator.on_elsewhere(txn);
    }
}

/// What a gateway is told of an outcome.
pub(super) fn fate(committed: Option<Timestamp>) -> Fate {
    committed.map_or(Fate::Aborted(None), Fate::Committed)
}
