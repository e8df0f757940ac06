//! Sites leave at an operator's request: the others go on without them, and they serve nothing until they join again.
//!
//! ```text
//!   operator ── leave r3.0 ──▶ any other member ── a change: the same number of cores among the rest ──▶ done
//!   operator ── join ────────▶ r3.0 ── Join, each tick ──▶ the planner: a slave, until it is scored
//! ```
//!
//! Sites that are *lost* are not coming back with what they had on their disks, so nobody waits for their messages. Only the operator can decide
//! that: nobody knows which answers a site that is merely out of reach has given to its clients. If several are lost, and the rest can go on only
//! without all of them, they have to be declared lost together, because a change waits for every member that is not lost.
//!
//! Invariant: after sites are declared lost, the configured number of cores is one that the remaining sites can have. A site that merely leaves could
//! stay until another number is set; with sites lost nothing could be decided before that.

use super::configuration::{Cause, Configuration, Cores, Goal};
use super::manager::Situation;
use super::quorums::CORES_MAX;
use super::request::Leave;
use rhumb_commit::reason::Reason;
use rhumb_core::SiteId;
use std::collections::BTreeSet;

/// The change that takes those sites out, which `me` is asked for.
pub(super) fn without(leave: Leave, me: SiteId, situation: Option<Situation<'_>>, old: &Configuration) -> Result<Goal, Reason> {
    let Leave { sites, lost } = leave;
    if sites.is_empty() {
        return Err("no site is named that is to leave".into());
    }
    if sites.contains(&me) {
        return Err("a site does not take itself out; ask another member".into());
    }
    let all = old.members();
    if let Some(site) = sites.difference(&all).next() {
        return Err(Reason::from("site ").then(*site).then(" takes no part in the quorums already"));
    }
    let members: BTreeSet<SiteId> = all.difference(&sites).copied().collect();
    let cores = match old.cores.validation_error(members.len()) {
        None => old.cores,
        Some(_) if lost => Cores::Fixed(members.len().min(CORES_MAX)),
        Some(error) => return Err(format!("{error}; set cores first").into()),
    };
    let situation = situation.ok_or("quorums do not follow what is measured here")?;
    let best = situation.best(&members, cores).ok_or("nobody else is a member")?;
    let said = match (lost, sites.len()) {
        (true, 1) => "is lost",
        (true, _) => "are lost",
        (false, 1) => "leaves",
        (false, _) => "leave",
    };
    let why = Reason::list(&sites).then(format!(" {said}, an operator says"));
    Ok(Goal {
        quorums: best.quorums,
        members,
        lost: if lost { sites } else { BTreeSet::new() },
        cores: (cores != old.cores).then_some(cores),
        cause: Cause::Operator,
        why,
    })
}
