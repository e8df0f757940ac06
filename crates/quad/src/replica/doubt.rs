//! What nobody was heard of for long: outcomes are asked for, locks are taken back, and the epoch ends where nobody else can tell.

use super::Replica;
use super::prepared::Prepared;
use super::session::Session;
use crate::configuration::{Cause, Goal};
use crate::context::{Context, Shared};
use crate::message::Note;
use crate::planted::Planted;
use rhumb_commit::reason::Reason;
use rhumb_core::{TxnId, work};
use std::collections::BTreeSet;

impl Replica {
    /// Those who are in doubt ask; those who were not heard of lose their locks.
    pub(crate) fn tick(&mut self, cx: &mut Context<'_>) {
        work::add(self.prepared.len() + self.sessions.len());
        for (txn, prepared) in &mut self.prepared {
            if cx.ticks >= prepared.since + cx.config.doubt_ticks {
                prepared.since = cx.ticks;
                if cx.rules.breaks(Planted::DoubtEndsInAbort) {
                    cx.send(cx.me, Note::Abort { txn: *txn });
                    continue;
                }
                let committed = prepared.record.committed.is_some();
                cx.send(txn.gateway, Note::Inquire { txn: *txn, committed });
            }
        }
        let idle = |session: &Session| cx.ticks >= session.seen + cx.config.idle_ticks;
        let idle: Vec<TxnId> = self.sessions.iter().filter(|(_, session)| idle(session)).map(|(txn, _)| *txn).collect();
        for txn in idle {
            let outcomes = self.drop_session(txn, cx);
            self.carry_on(outcomes, cx);
        }
    }

    /// The end of the epoch, if a gateway is down that alone knows what comes of what is prepared here: nobody else may say so, and the locks
    /// would stay until it is back. The seal carries on what has committed, and ends the rest.
    pub(crate) fn end_of_orphans(&self, cx: &Shared) -> Option<Goal> {
        let ticks = cx.ticks;
        let is_late = |prepared: &Prepared, patience: u64| ticks >= prepared.began + patience;
        work::add(self.prepared.len());
        if !self.prepared.values().any(|prepared| is_late(prepared, cx.config.orphaned_ticks)) {
            return None;
        }
        let up = cx.up();
        let patience = cx.config.orphaned_ticks + up.iter().take_while(|site| **site < cx.me).count() as u64;
        let is_orphan = |(txn, prepared): &(&TxnId, &Prepared)| !up.contains(&txn.gateway) && is_late(prepared, patience);
        let gateway = self.prepared.iter().find(is_orphan)?.0.gateway;
        let why = Reason::from(gateway).then(" is silent, and transactions that it had prepared keep their locks");
        let (quorums, members) = (cx.configuration.quorums.clone(), cx.configuration.members());
        Some(Goal { quorums, members, lost: BTreeSet::new(), cores: None, cause: Cause::Orphans, why })
    }
}
