//! Preparing: from a gateway's request, over the locks and the versions that it depends on, to an entry of the log.

use super::{Leader, Stage, Wanted, fate};
use crate::command::{Command, Prepared};
use crate::config::{OPEN_MAX, PREPARED_MAX};
use crate::context::Context;
use crate::message::{Fate, Note, Refusal};
use crate::planted::Planted;
use crate::replica::Replica;
use crate::state::Known;
use rhumb_commit::wound_wait::{Lock, Mode, Phase, one_key};
use rhumb_core::{Loaded, SiteId, TxnId};

impl Leader {
    /// A gateway has a transaction prepared, or committed if this group is the only one.
    pub(crate) fn on_prepare(&mut self, from: SiteId, note: Note, replica: &Replica, cx: &mut Context<'_>) {
        let Note::Prepare { txn, shards, session, expect, writes } = note else { unreachable!("it is a Prepare") };
        let is_first = shards[0] == cx.me.shard;
        match replica.state().of(txn) {
            Known::Ended(committed) if is_first => return cx.fx.send(from, Note::Outcome { txn, fate: fate(committed) }),
            Known::Forgotten if is_first => {
                let fate = if cx.rules.breaks(Planted::ForgottenIsAborted) { Fate::Aborted(None) } else { Fate::Forgotten };
                return cx.fx.send(from, Note::Outcome { txn, fate });
            }
            Known::Forgotten => return cx.send_leader(shards[0], Note::Vetoed { txn, shards, why: Refusal::TooOld }),
            Known::Ended(_) | Known::Prepared => return,
            Known::Nothing => {}
        }
        if !self.is_in_session(txn, session) && !cx.rules.breaks(Planted::LocksNotChecked) {
            return self.veto(txn, shards, Refusal::LocksLost, cx);
        }
        if !self.active.contains_key(&txn) && self.active.len() >= OPEN_MAX || replica.state().prepared.len() >= PREPARED_MAX {
            return self.veto(txn, shards, Refusal::Busy, cx);
        }
        self.admit(txn, cx.ticks);
        let active = self.active.get_mut(&txn).expect("it was just let in");
        active.touched = cx.ticks;
        match active.stage {
            Stage::Growing { .. } => {}
            Stage::Wounded => return self.veto(txn, shards, Refusal::LocksLost, cx),
            _ => return,
        }
        active.reads.extend(expect.iter().map(|(key, _)| one_key(key)));
        let expected = expect.iter().map(|(key, _)| Lock { range: one_key(key), mode: Mode::Shared });
        let written = writes.iter().map(|(key, _)| Lock { range: one_key(key), mode: Mode::Exclusive });
        let wanted = written.chain(expected).collect();
        // Alone in its group, it is prepared nowhere else: it may wait for older ones.
        let phase = if shards.len() == 1 { Phase::Growing } else { Phase::Preparing };
        active.stage = Stage::Locking(Wanted { shards, expect, writes });
        self.request(txn, wanted, phase, cx);
    }

    /// The versions that a transaction depends on are loaded.
    pub(crate) fn on_expected_loaded(
        &mut self,
        (txn, instance): (TxnId, u64),
        loaded: Loaded,
        replica: &mut Replica,
        cx: &mut Context<'_>,
    ) {
        let Loaded::Rows { rows, .. } = loaded else { unreachable!("rows were asked for") };
        let Some(active) = self.active.get_mut(&txn).filter(|active| active.instance == instance) else { return };
        if !matches!(active.stage, Stage::Checking(_)) {
            return;
        }
        let Stage::Checking(wanted) = std::mem::replace(&mut active.stage, Stage::Wounded) else { unreachable!("it was just matched") };
        let unchanged = wanted.expect.iter().zip(&rows).all(|((_, version), row)| row.version == *version);
        if !unchanged {
            return self.veto(txn, wanted.shards, Refusal::Changed, cx);
        }
        active.stage = Stage::Proposed { shards: wanted.shards.clone() };
        let reads = active.reads.iter().cloned().collect();
        for (key, _) in &wanted.writes {
            cx.clock.observe(self.cache.of(key));
        }
        let at = cx.timestamp();
        self.note_writes(txn, at, wanted.writes.iter().map(|(key, _)| key));
        let Wanted { shards, writes, .. } = wanted;
        replica.propose(match shards.len() {
            1 => Command::Commit { txn, at, writes },
            _ => Command::Prepare { txn, prepared: Prepared { at, shards, reads, writes } },
        });
    }
}
