//! A leader as the coordinator of transactions whose first group is its own: it decides once all groups have prepared, or one cannot, or
//! one has not for too long; its log holds the decision.
//!
//! ```text
//!   gateway ── Prepare ──▶ leaders ── their logs ──▶ Prepared ──▶ first leader ── its log: Decide ──▶ Outcome ──▶ gateway
//!                                                                                              └──▶ Decided ──▶ leaders' logs: Finish
//!                                                    first leader ◀── Finished ◀──────────────────────────────────────┘
//!                                                    its log: Forget
//! ```
//!
//! Nobody asks after an outcome but by saying again that it is prepared. What the first group knows nothing of is aborted there, by
//! an entry of the log, so that it stays so.

use crate::command::Command;
use crate::config::{OPEN_MAX, PREPARED_MAX, ticks};
use crate::context::Context;
use crate::message::{Fate, Note, Refusal};
use crate::planted::Planted;
use crate::replica::Replica;
use crate::state::Known;
use rhumb_core::{SiteId, Table, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// A transaction that is to be decided.
#[derive(Debug)]
struct Open {
    shards: Vec<u16>,
    prepared: BTreeMap<u16, Timestamp>,
    since: u64,
    why: Option<Refusal>,
    proposed: bool,
}

/// A commit that other groups may not have applied.
#[derive(Debug)]
struct Unfinished {
    finished: BTreeSet<u16>,
    sent: u64,
    forgetting: bool,
}

/// The transactions that the group decides about.
#[derive(Debug, Default)]
pub(crate) struct Coordinator {
    open: BTreeMap<TxnId, Open>,
    unfinished: BTreeMap<TxnId, Unfinished>,
}

impl Coordinator {
    /// A group has prepared a transaction.
    pub(crate) fn on_prepared(&mut self, txn: TxnId, (shard, at): (u16, Timestamp), shards: &[u16], tick: u64) {
        self.open(txn, shards, tick).prepared.insert(shard, at);
    }

    fn open(&mut self, txn: TxnId, shards: &[u16], tick: u64) -> &mut Open {
        let open = || Open { shards: shards.to_vec(), prepared: BTreeMap::new(), since: tick, why: None, proposed: false };
        self.open.entry(txn).or_insert_with(open)
    }

    /// True if this would be one transaction more than there may be.
    fn is_full_for(&self, txn: TxnId) -> bool {
        !self.open.contains_key(&txn) && self.open.len() >= OPEN_MAX + 2 * PREPARED_MAX
    }

    /// The leader of another group says that it has prepared a transaction.
    pub(crate) fn on_prepared_elsewhere(
        &mut self,
        from: SiteId,
        (txn, at): (TxnId, Timestamp),
        shards: &[u16],
        replica: &mut Replica,
        cx: &mut Context<'_>,
    ) {
        match replica.state().of(txn) {
            Known::Ended(committed) => cx.send(from, Note::Decided { txn, committed }),
            // A commit would be known as long as that group is prepared.
            Known::Forgotten => cx.send(from, Note::Decided { txn, committed: None }),
            Known::Nothing | Known::Prepared => {
                if self.is_full_for(txn) {
                    return;
                }
                self.on_prepared(txn, (from.shard, at), shards, cx.ticks);
                self.decide_if_prepared(txn, replica, cx);
            }
        }
    }

    /// Decides to commit, if all groups have prepared.
    pub(crate) fn decide_if_prepared(&mut self, txn: TxnId, replica: &mut Replica, cx: &mut Context<'_>) {
        let Some(open) = self.open.get_mut(&txn) else { return };
        if open.proposed || !open.shards.iter().all(|shard| open.prepared.contains_key(shard)) {
            return;
        }
        open.proposed = true;
        let at = open.prepared.values().copied().max().expect("somebody takes part");
        cx.clock.observe(at);
        replica.propose(Command::Decide { txn, committed: Some(at), shards: open.shards.clone() });
    }

    /// A group cannot prepare.
    pub(crate) fn on_vetoed(&mut self, txn: TxnId, shards: &[u16], why: Refusal, replica: &mut Replica, cx: &mut Context<'_>) {
        if !matches!(replica.state().of(txn), Known::Nothing | Known::Prepared) || self.is_full_for(txn) {
            return;
        }
        let open = self.open(txn, shards, cx.ticks);
        open.why = open.why.or(Some(why));
        if !std::mem::replace(&mut open.proposed, true) {
            replica.propose(Command::Decide { txn, committed: None, shards: open.shards.clone() });
        }
    }

    /// The decision is chosen, and applied here: everybody is told.
    pub(crate) fn announce(&mut self, txn: TxnId, fate: Fate, replica: &mut Replica, cx: &mut Context<'_>) {
        let Some(open) = self.open.remove(&txn) else { return };
        let fate = match fate {
            Fate::Aborted(_) => Fate::Aborted(open.why),
            fate => fate,
        };
        cx.send(txn.gateway, Note::Outcome { txn, fate });
        let committed = match fate {
            Fate::Committed(at) => Some(at),
            // Committed it was not: that is remembered until the other groups have applied it.
            Fate::Aborted(_) | Fate::Forgotten => None,
        };
        for shard in open.shards.into_iter().skip(1) {
            cx.send_leader(shard, Note::Decided { txn, committed });
        }
        if cx.rules.breaks(Planted::DecisionDropped) && replica.state().decided.contains_key(&txn) {
            replica.propose(Command::Forget { txn });
        }
    }

    /// Some group has another leader than the one that was told.
    pub(super) fn on_elsewhere(&mut self, txn: TxnId) {
        if let Some(unfinished) = self.unfinished.get_mut(&txn) {
            unfinished.sent = 0;
        }
    }

    /// Another group has applied the outcome.
    pub(crate) fn on_finished(&mut self, from: SiteId, txn: TxnId, replica: &mut Replica, tick: u64) {
        let Some((_, others)) = replica.state().decided.get(&txn) else { return };
        let known = self.unfinished.entry(txn).or_insert_with(|| Unfinished { finished: BTreeSet::new(), sent: tick, forgetting: false });
        known.finished.insert(from.shard);
        if others.is_subset(&known.finished) && !std::mem::replace(&mut known.forgetting, true) {
            replica.propose(Command::Forget { txn });
        }
    }

    /// Looks what is late.
    pub(crate) fn on_tick(&mut self, replica: &mut Replica, cx: &mut Context<'_>) {
        let now = cx.ticks;
        let (patience, resend) = (ticks(cx.config.prepare_patience), ticks(cx.config.resend));
        for (txn, open) in &mut self.open {
            if !open.proposed && open.since + patience <= now {
                cx.fx.count("log.prepare_timeout");
                open.proposed = true;
                open.why = open.why.or(Some(Refusal::TooLate));
                replica.propose(Command::Decide { txn: *txn, committed: None, shards: open.shards.clone() });
            }
        }
        let decided = &replica.state().decided;
        self.unfinished.retain(|txn, _| decided.contains_key(txn));
        for (txn, (at, others)) in decided {
            let known =
                self.unfinished.entry(*txn).or_insert_with(|| Unfinished { finished: BTreeSet::new(), sent: now, forgetting: false });
            if known.sent + resend > now {
                continue;
            }
            known.sent = now;
            for shard in others.difference(&known.finished) {
                cx.doubt_leader(*shard);
                cx.send_leader(*shard, Note::Decided { txn: *txn, committed: Some(*at) });
            }
        }
    }

    pub(crate) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("coordinator.open", self.open.len(), OPEN_MAX + 4 * PREPARED_MAX));
        visit(Table::new("coordinator.unfinished", self.unfinished.len(), 2 * PREPARED_MAX));
    }
}
