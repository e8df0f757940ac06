//! Preparing: from a gateway's request, over the locks and the versions that it depends on, to an entry of the log.

use super::ending::fate;
use super::{Leader, Stage, Wanted};
use crate::command::{Command, Prepared, written_bytes};
use crate::config::{FOOTPRINT_BYTES_MAX, OPEN_MAX};
use crate::context::Context;
use crate::message::{Fate, Note, Refusal, Session};
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
            Known::Ended(committed) if is_first => return cx.send(from, Note::Outcome { txn, fate: fate(committed) }),
            Known::Forgotten if is_first => {
                let is_unasked = self.is_unasked(txn, session);
                if is_unasked {
                    self.drop_active(txn, cx);
                }
                let is_aborted = is_unasked || cx.rules.breaks(Planted::ForgottenIsAborted);
                let fate = if is_aborted { Fate::Aborted(Some(Refusal::TooOld)) } else { Fate::Forgotten };
                return cx.send(from, Note::Outcome { txn, fate });
            }
            Known::Forgotten => return cx.send_leader(shards[0], Note::Vetoed { txn, shards, why: Refusal::TooOld }),
            Known::Ended(_) | Known::Prepared => return,
            Known::Nothing => {}
        }
        match self.active.get(&txn).map(|active| &active.stage) {
            None | Some(Stage::Growing { .. }) => {}
            Some(Stage::Wounded) => return self.veto(txn, shards, Refusal::LocksLost, cx),
            // It was asked for before. Whatever is full by now: what is proposed may not lose its locks.
            Some(_) => return,
        }
        if !self.is_in_session(txn, session) && !cx.rules.breaks(Planted::LocksNotChecked) {
            return self.veto(txn, shards, Refusal::LocksLost, cx);
        }
        let (bytes, locks) = (written_bytes(&writes), writes.len() + expect.len());
        let is_full = !self.active.contains_key(&txn) && self.active.len() >= OPEN_MAX;
        // A commit is kept until all other groups have applied it, however long one of them is away.
        let is_behind = replica.state().prepared.len() + replica.state().decided.len() >= cx.config.prepared_max;
        if is_full || is_behind || self.bytes + bytes > cx.config.writes_bytes_max || !self.has_room_for(locks, cx) {
            return self.veto(txn, shards, Refusal::Busy, cx);
        }
        self.admit(txn, cx.ticks);
        let active = self.active.get_mut(&txn).expect("it was just let in");
        // From here on it waits for so long and no longer, however often the gateway asks.
        active.touched = cx.ticks;
        expect.iter().for_each(|(key, _)| active.note_read(one_key(key)));
        if active.reads_bytes > FOOTPRINT_BYTES_MAX {
            return self.veto(txn, shards, Refusal::TooLarge, cx);
        }
        active.bytes = bytes;
        self.bytes += bytes;
        let expected = expect.iter().map(|(key, _)| Lock { range: one_key(key), mode: Mode::Shared });
        let written = writes.iter().map(|(key, _)| Lock { range: one_key(key), mode: Mode::Exclusive });
        let wanted = written.chain(expected).collect();
        // Alone in its group, it is prepared nowhere else: it may wait for older ones.
        let phase = if shards.len() == 1 { Phase::Growing } else { Phase::Preparing };
        active.stage = Stage::Locking(Wanted { shards, expect, writes });
        self.request(txn, wanted, phase, cx);
    }

    /// True if nobody was asked before to prepare a transaction here that has begun so long ago: whoever has its locks is the only one that would,
    /// and it has read under them until now. It never will: what is forgotten is not prepared.
    fn is_unasked(&self, txn: TxnId, session: Option<Session>) -> bool {
        let is_growing = matches!(self.active.get(&txn).map(|active| &active.stage), Some(Stage::Growing { .. }));
        is_growing && session.is_some() && self.is_in_session(txn, session)
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
        self.note_writes(txn, at, &wanted.writes);
        let Wanted { shards, writes, .. } = wanted;
        replica.propose(match shards.len() {
            1 => Command::Commit { txn, at, writes },
            _ => Command::Prepare { txn, prepared: Prepared { at, shards, reads, writes } },
        });
    }
}
