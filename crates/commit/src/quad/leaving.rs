//! A site leaves, because an operator says so: the others go on without it, and it serves nothing until it joins again.
//!
//! ```text
//!   operator ── leave r3.0 ──▶ any other member ── a change: the same number of cores among the rest ──▶ done
//!   operator ── join ────────▶ r3.0 ── Join, each tick ──▶ the planner: a slave, until it is scored
//! ```
//!
//! A site that is *lost* is not coming back with what it had on its disk, so nobody waits for its word. That is the operator's to say: of a site
//! that is merely out of reach nobody can know what it told its clients.

use super::configuration::{Cause, Configuration, Goal};
use super::manager::best;
use super::message::Leave;
use super::site::Site;
use crate::replicated_commit::Answer;
use crate::transaction::TxnError;
use rhumb_core::Effects;
use rhumb_core::actor::RequestId;
use std::collections::BTreeSet;

impl Site {
    pub(super) fn on_leave(&mut self, id: RequestId, leave: Leave, fx: &mut Effects<Site>) {
        match self.without(leave) {
            Ok(goal) => self.change(goal, Some(id), fx),
            Err(flaw) => fx.answer(id, Answer::Failed(TxnError::Invalid(flaw))),
        }
    }

    /// The configuration that is to come, without that site.
    fn without(&self, Leave { site, lost }: Leave) -> Result<Goal, String> {
        let old: &Configuration = &self.configuration;
        if site == self.me {
            return Err("a site does not take itself out; ask another member".into());
        }
        let mut members = old.members();
        if !members.remove(&site) {
            return Err(format!("site {site} takes no part in the quorums already"));
        }
        if let Some(flaw) = old.cores.flaw(members.len()) {
            return Err(format!("{flaw}; set cores first"));
        }
        let adaptation = self.config.adaptation.as_ref().ok_or("quorums do not follow what is measured here")?;
        let best = best(&members, old.cores, adaptation, &self.known(adaptation), &self.reachable()).ok_or("nobody else is a member")?;
        let (lost, said) = if lost { (BTreeSet::from([site]), "is lost") } else { (BTreeSet::new(), "leaves") };
        Ok(Goal {
            quorums: best.quorums,
            members,
            lost,
            cores: None,
            cause: Cause::Operator,
            why: format!("{site} {said}, an operator says"),
        })
    }
}
