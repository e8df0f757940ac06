//! Sites leave, because an operator says so: the others go on without them, and they serve nothing until they join again.
//!
//! ```text
//!   operator ── leave r3.0 ──▶ any other member ── a change: the same number of cores among the rest ──▶ done
//!   operator ── join ────────▶ r3.0 ── Join, each tick ──▶ the planner: a slave, until it is scored
//! ```
//!
//! Sites that are *lost* are not coming back with what they had on their disks, so nobody waits for their word. That is the operator's to say: of
//! a site that is merely out of reach nobody can know what it told its clients. Where several are lost, and the rest can go on only without all of
//! them, they have to be declared lost together: a change waits for everybody who is not.
//!
//! Invariant: whoever is declared lost, the rest has a number of cores that it can have. Who only leaves could stay until another number is set;
//! without the lost nothing else can be decided before.

use super::configuration::{Cause, Configuration, Cores, Goal};
use super::manager::Situation;
use super::quorums::CORES_MAX;
use super::request::Leave;
use rhumb_core::SiteId;
use std::collections::BTreeSet;

/// The change that takes those sites out, which `me` is asked for.
pub(super) fn without(leave: Leave, me: SiteId, situation: Option<Situation<'_>>, old: &Configuration) -> Result<Goal, String> {
    let Leave { sites, lost } = leave;
    if sites.is_empty() {
        return Err("no site is named that is to leave".into());
    }
    if sites.contains(&me) {
        return Err("a site does not take itself out; ask another member".into());
    }
    let all = old.members();
    if let Some(site) = sites.difference(&all).next() {
        return Err(format!("site {site} takes no part in the quorums already"));
    }
    let members: BTreeSet<SiteId> = all.difference(&sites).copied().collect();
    let cores = match old.cores.flaw(members.len()) {
        None => old.cores,
        Some(_) if lost => Cores::Fixed(members.len().min(CORES_MAX)),
        Some(flaw) => return Err(format!("{flaw}; set cores first")),
    };
    let situation = situation.ok_or("quorums do not follow what is measured here")?;
    let best = situation.best(&members, cores).ok_or("nobody else is a member")?;
    let names: Vec<String> = sites.iter().map(SiteId::to_string).collect();
    let said = match (lost, names.len()) {
        (true, 1) => "is lost",
        (true, _) => "are lost",
        (false, 1) => "leaves",
        (false, _) => "leave",
    };
    Ok(Goal {
        quorums: best.quorums,
        members,
        lost: if lost { sites } else { BTreeSet::new() },
        cores: (cores != old.cores).then_some(cores),
        cause: Cause::Operator,
        why: format!("{} {said}, an operator says", names.join(", ")),
    })
}
