//! The quotas that there are: what a log of changes amounts to, the same at every site that has applied as much of it.
//!
//! ```text
//!   client ──Drop──▶ closing: its name is free, and no operation touches it any more
//!                       │ none is left below it, and what lost sites have is booked
//!            heir: a count among all that are not lost: so many tokens clients hold of it
//!                       │
//!                    ◀──End(so many)── decided once: it is gone, and those above it get back as many
//! ```
//!
//! What clients hold of a quota they hold of those above it as well. So when one is dropped, as many are held too much above it, wherever
//! they are held there: tokens have no names. How many that is no site knows by itself, as held tokens move between sites, and no sum of what
//! sites say at different moments says it either. A count does. Nobody acquires or releases while a quota is closing, so what was counted stays
//! true. A quota with none above it is gone at once.

use super::change::{Change, Command, QuotaId};
use super::{Freed, Frees};
use crate::lost::{Loss, Settled};
use crate::name::Name;
use crate::operation::RequestKey;
use crate::reallocate::divide;
use crate::refusal::Refusal;
use crate::spec::{DEPTH_MAX, QUOTAS_MAX, Spec, check_limit};
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A quota.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Definition {
    /// Its name for now.
    pub name: Name,
    /// What it is.
    pub spec: Spec,
    /// The quota above.
    pub parent: Option<QuotaId>,
    /// The highest limit that it had before this one, or when a site was declared lost. No lost site has heard of a higher one.
    pub highest: u64,
    /// How far the parts of lost sites are settled.
    pub settled: Settled,
    /// It was dropped, and ends once it is counted how many of its tokens clients hold.
    pub closing: bool,
}

impl Definition {
    /// Its limit as each of `sites` sites has a part in it.
    ///
    /// Since a part follows from the limit alone, a site that missed changes of the limit needs to know only the last.
    pub fn parts(&self, sites: usize) -> impl Iterator<Item = u64> {
        divide(self.spec.limit, sites)
    }
}

/// All quotas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Definitions {
    /// Quotas by id.
    pub quotas: BTreeMap<QuotaId, Definition>,
    /// What has become of changes.
    pub made: Made,
    #[serde(skip)]
    names: BTreeMap<Name, QuotaId>,
}

/// What has become of changes so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Made {
    /// Ids given out.
    pub created: u64,
    /// The last command of each site, and its outcome. Chosen a second time, a command is not made again.
    pub last: BTreeMap<SiteId, (u64, Result<(), Refusal>)>,
    /// Sites declared lost, in the order of the declarations.
    pub lost: Vec<Loss>,
    /// The number of sites, once one is lost.
    pub of: u32,
    /// The last requests to free tokens.
    pub frees: Frees,
}

impl Made {
    /// Of the first `settled` lost sites, those whose parts the heir of the first `losses` has already: all, if it is the same.
    pub fn inherited(&self, settled: u32, losses: u32) -> u32 {
        if self.heir(settled) == self.heir(losses) { settled } else { 0 }
    }

    /// The place among all sites of the heir of the first `losses` lost ones, as [`Cluster::heir`](crate::cluster::Cluster::heir) has it.
    fn heir(&self, losses: u32) -> u32 {
        let lost = &self.lost[..losses as usize];
        (0..).find(|rank| lost.iter().all(|loss| loss.rank != *rank)).expect("a majority of sites is never lost")
    }

    /// The parts in `limit` of the lost sites of those numbers.
    pub fn parts(&self, limit: u64, from: u32, to: u32) -> u64 {
        let lost = &self.lost[from as usize..to as usize];
        let part = |loss: &Loss| divide(limit, self.of as usize).nth(loss.rank as usize);
        lost.iter().map(|loss| part(loss).expect("a part for each site")).sum()
    }
}

impl Definitions {
    /// Those quotas, after all that was made.
    pub fn new(quotas: BTreeMap<QuotaId, Definition>, made: Made) -> Definitions {
        let named = quotas.iter().filter(|(_, definition)| !definition.closing);
        let names = named.map(|(id, definition)| (definition.name.clone(), *id)).collect();
        Definitions { quotas, made, names }
    }

    /// Carries out `command`, unless that was done before.
    pub fn run(&mut self, command: &Command) {
        if self.outcome(command).is_none() {
            let outcome = self.apply(&command.change);
            self.made.last.insert(command.site, (command.number, outcome));
        }
    }

    /// What became of `command`, if it was carried out: the last of its site, or one before that, of which no more is known.
    pub fn outcome(&self, command: &Command) -> Option<Result<(), Refusal>> {
        let (number, outcome) = self.made.last.get(&command.site)?;
        match command.number.cmp(number) {
            Ordering::Greater => None,
            Ordering::Equal => Some(outcome.clone()),
            Ordering::Less => Some(Err(Refusal::UnknownOutcome("it was overtaken by later changes".into()))),
        }
    }

    /// The quota of that name.
    pub fn id(&self, name: &Name) -> Result<QuotaId, Refusal> {
        self.names.get(name).copied().ok_or_else(|| Refusal::Unknown(name.clone()))
    }

    /// The quota of that id, if it has not ended.
    pub fn get(&self, id: QuotaId) -> Option<&Definition> {
        self.quotas.get(&id)
    }

    /// The quota and those above it, from below.
    pub fn chain(&self, id: QuotaId) -> impl Iterator<Item = QuotaId> + '_ {
        std::iter::successors(Some(id), |id| self.quotas.get(id)?.parent)
    }

    /// The quotas right below `id` that have not been dropped.
    pub fn children(&self, id: QuotaId) -> impl Iterator<Item = QuotaId> + '_ {
        let is_child = move |definition: &Definition| definition.parent == Some(id) && !definition.closing;
        self.quotas.iter().filter(move |(_, definition)| is_child(definition)).map(|(id, _)| *id)
    }

    /// The closing quotas that may end: none is left below them, and it is booked what lost sites have of them and of those above, so that it is
    /// known what may be freed there.
    pub fn may_end(&self) -> BTreeSet<QuotaId> {
        let above: BTreeSet<QuotaId> = self.quotas.values().filter_map(|definition| definition.parent).collect();
        let is_settled = |id: QuotaId| self.quotas[&id].settled.losses as usize == self.made.lost.len();
        let closing = self.quotas.iter().filter(|(_, definition)| definition.closing).map(|(id, _)| *id);
        closing.filter(|id| !above.contains(id) && self.chain(*id).all(is_settled)).collect()
    }

    /// Why `change` cannot be made, if it cannot.
    pub fn check(&self, change: &Change) -> Result<(), Refusal> {
        match change {
            Change::Create { name, spec } => {
                spec.check()?;
                if self.names.contains_key(name) {
                    return Err(Refusal::Exists(name.clone()));
                }
                if self.quotas.len() >= QUOTAS_MAX {
                    return Err(Refusal::Invalid(format!("there are {QUOTAS_MAX} quotas already; drop some first")));
                }
                let Some(parent) = &spec.parent else { return Ok(()) };
                let depth = self.chain(self.id(parent)?).count() + 1;
                if depth > DEPTH_MAX {
                    return Err(Refusal::Invalid(format!("{depth} quotas above one another; at most {DEPTH_MAX} are allowed")));
                }
                Ok(())
            }
            Change::SetLimit { name, limit } => {
                check_limit(*limit)?;
                self.id(name).map(|_| ())
            }
            Change::Drop { name } => match self.children(self.id(name)?).next() {
                Some(_) => Err(Refusal::HasChildren(name.clone())),
                None => Ok(()),
            },
            Change::Free { quota, name, amount, id } => self.check_free(*quota, name, *amount, id.as_ref()),
            Change::Lost { loss, of } => self.check_loss(loss, *of),
            Change::Book { losses, .. } | Change::End { losses, .. } if *losses as usize == self.made.lost.len() => Ok(()),
            Change::Book { .. } | Change::End { .. } => {
                Err(Refusal::Invalid("another site was declared lost since this was counted".into()))
            }
        }
    }

    /// Makes `change`, if it can be made.
    pub fn apply(&mut self, change: &Change) -> Result<(), Refusal> {
        self.check(change)?;
        match change {
            Change::Create { name, spec } => {
                self.made.created += 1;
                let id = QuotaId(self.made.created);
                let parent = spec.parent.as_ref().map(|parent| self.id(parent)).transpose()?;
                self.names.insert(name.clone(), id);
                // A site that is lost by now never has a part in it.
                let settled = Settled::from_the_start(self.made.lost.len());
                let definition =
                    Definition { name: name.clone(), spec: spec.clone(), parent, highest: spec.limit, settled, closing: false };
                self.quotas.insert(id, definition);
            }
            Change::SetLimit { name, limit } => {
                let id = self.id(name)?;
                let definition = self.quotas.get_mut(&id).expect("a name leads to a quota");
                // To set it once more changes nothing: who asks again does not know that it was done.
                if definition.spec.limit != *limit {
                    definition.highest = definition.highest.max(definition.spec.limit);
                    definition.spec.limit = *limit;
                }
            }
            Change::Drop { name } => {
                let id = self.id(name)?;
                self.names.remove(name);
                self.close(id);
            }
            Change::Free { quota, amount, id, .. } => {
                if let Some(request) = request_to_free(*quota, *amount, id.as_ref()) {
                    if self.made.frees.knows(&request)? {
                        return Ok(());
                    }
                    self.made.frees.remember(request);
                }
                self.quotas.get_mut(quota).expect("it has its name still").settled.freed += amount;
            }
            Change::Lost { loss, of } => {
                if !self.is_lost(loss.site) {
                    self.made.lost.push(loss.clone());
                    self.made.of = *of;
                    // It learns that it is lost before it hears of what is decided after that.
                    self.quotas.values_mut().for_each(|definition| definition.highest = definition.highest.max(definition.spec.limit));
                }
            }
            Change::Book { losses, counted } => {
                for (id, counted) in counted {
                    if let Some(definition) = self.quotas.get_mut(id) {
                        let from = self.made.inherited(definition.settled.losses, *losses);
                        let is_new_heir = self.made.heir(definition.settled.losses) != self.made.heir(*losses);
                        let parts = |limit| self.made.parts(limit, from, *losses);
                        // What the limit was raised by since the loss is issued to the heir.
                        let (limit, highest) = (definition.spec.limit.min(definition.highest), definition.highest);
                        if is_new_heir {
                            definition.settled.change_heir(*losses, counted.held);
                        }
                        definition.settled.book(*losses, *counted, parts(limit), parts(highest));
                    }
                }
            }
            Change::End { held, .. } => {
                let may_end = self.may_end();
                held.iter().filter(|(id, _)| may_end.contains(id)).for_each(|(id, held)| self.end(*id, *held));
            }
        }
        Ok(())
    }

    /// Quota `id` was dropped. With none above it, nobody has to know how many tokens clients hold of it and of those that were dropped below it.
    fn close(&mut self, id: QuotaId) {
        let definition = self.quotas.get_mut(&id).expect("a name leads to a quota");
        definition.closing = true;
        if definition.parent.is_none() {
            let is_in = |other: &QuotaId| self.chain(*other).any(|link| link == id);
            let gone: Vec<QuotaId> = self.quotas.keys().copied().filter(is_in).collect();
            gone.iter().for_each(|gone| drop(self.quotas.remove(gone)));
        }
    }

    /// A closing quota is gone, and gives back to those above it what clients `held` of it.
    fn end(&mut self, id: QuotaId, held: u64) {
        let above: Vec<QuotaId> = self.chain(id).skip(1).collect();
        let ended = self.quotas.remove(&id).expect("it may end");
        for link in above {
            self.quotas.get_mut(&link).expect("it ends after those below it").settled.take_over(&ended.settled, held);
        }
    }

    /// The sites declared lost, in the order of the declarations.
    pub fn lost(&self) -> impl Iterator<Item = SiteId> + '_ {
        self.made.lost.iter().map(|loss| loss.site)
    }

    /// True if `site` was declared lost.
    pub fn is_lost(&self, site: SiteId) -> bool {
        self.lost().any(|lost| lost == site)
    }

    /// No more can be freed than is booked for lost sites; and while another booking is to come, it is not known what of that it takes over.
    /// The name may be another quota's by now, of which nothing was asked.
    fn check_free(&self, quota: QuotaId, name: &Name, amount: u64, id: Option<&RequestKey>) -> Result<(), Refusal> {
        if self.id(name)? != quota {
            return Err(Refusal::Unknown(name.clone()));
        }
        if let Some(request) = request_to_free(quota, amount, id)
            && self.made.frees.knows(&request)?
        {
            return Ok(());
        }
        let settled = &self.quotas[&quota].settled;
        if (settled.losses as usize) < self.made.lost.len() {
            return Err(Refusal::Unavailable("it is not booked yet what lost sites have; that takes all other sites".into()));
        }
        let (booked, freed) = (settled.booked, settled.freed);
        if booked < freed.saturating_add(amount) {
            return Err(Refusal::NotBooked { quota: name.clone(), amount, booked, freed });
        }
        Ok(())
    }

    /// A majority of all sites must remain: without one nothing can be decided.
    fn check_loss(&self, loss: &Loss, of: u32) -> Result<(), Refusal> {
        let losses = self.made.lost.len() as u32 + 1;
        if !self.is_lost(loss.site) && losses > of - (of / 2 + 1) {
            return Err(Refusal::Invalid(format!("{losses} of {of} sites cannot be lost: a majority has to remain")));
        }
        Ok(())
    }
}

/// The request to free so many tokens, if it has an id.
fn request_to_free(quota: QuotaId, amount: u64, id: Option<&RequestKey>) -> Option<Freed> {
    id.map(|id| Freed { id: id.clone(), quota, amount })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lost::{Booking, Counted};

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    fn made(definitions: &mut Definitions, text: &str, parent: Option<&str>) -> QuotaId {
        definitions.apply(&create(text, parent)).expect("made");
        definitions.id(&name(text)).expect("it was made")
    }

    fn create(text: &str, parent: Option<&str>) -> Change {
        Change::Create { name: name(text), spec: Spec { parent: parent.map(name), ..Spec::new(10) } }
    }

    #[test]
    fn quotas_come_and_go_and_their_ids_do_not_come_again() {
        let mut definitions = Definitions::default();
        let first = made(&mut definitions, "vm", None);
        assert_eq!(definitions.apply(&create("vm", None)), Err(Refusal::Exists(name("vm"))));
        definitions.apply(&Change::Drop { name: name("vm") }).expect("dropped");
        assert_eq!(definitions.id(&name("vm")), Err(Refusal::Unknown(name("vm"))));
        assert_ne!(made(&mut definitions, "vm", None), first);
    }

    #[test]
    fn a_parent_exists_before_its_children_and_after_them() {
        let mut definitions = Definitions::default();
        assert_eq!(definitions.apply(&create("team", Some("org"))), Err(Refusal::Unknown(name("org"))));
        let org = made(&mut definitions, "org", None);
        let team = made(&mut definitions, "team", Some("org"));
        assert_eq!(definitions.chain(team).collect::<Vec<_>>(), [team, org]);
        assert_eq!(definitions.apply(&Change::Drop { name: name("org") }), Err(Refusal::HasChildren(name("org"))));
        let mut above = "team".to_owned();
        for depth in 3..=DEPTH_MAX {
            let below = format!("q{depth}");
            definitions.apply(&create(&below, Some(&above))).expect("made");
            above = below;
        }
        assert!(matches!(definitions.apply(&create("deep", Some(&above))), Err(Refusal::Invalid(_))));
    }

    fn dropped(definitions: &mut Definitions, text: &str) {
        definitions.apply(&Change::Drop { name: name(text) }).expect("dropped");
    }

    fn end(definitions: &mut Definitions, id: QuotaId, held: u64) {
        definitions
            .apply(&Change::End { losses: definitions.made.lost.len() as u32, held: [(id, held)].into() })
            .expect("no site was lost");
    }

    #[test]
    fn a_quota_below_others_ends_once_it_is_counted_and_gives_back_to_all_above() {
        let mut definitions = Definitions::default();
        let [org, team] = [("org", None), ("team", Some("org"))].map(|(text, parent)| made(&mut definitions, text, parent));
        let group = made(&mut definitions, "group", Some("team"));
        ["group", "team"].iter().for_each(|text| dropped(&mut definitions, text));
        assert_eq!(definitions.may_end(), [group].into(), "team ends after it");
        end(&mut definitions, team, 3);
        assert_eq!(definitions.get(org).map(|org| org.settled.returned), Some(0), "it may not end yet");
        let again = made(&mut definitions, "team", Some("org"));
        end(&mut definitions, group, 4);
        end(&mut definitions, group, 4);
        assert_eq!([team, org].map(|id| definitions.get(id).map(|above| above.settled.returned)), [Some(4), Some(4)], "once");
        end(&mut definitions, team, 6);
        end(&mut definitions, again, 6);
        assert_eq!(definitions.get(org).map(|org| org.settled.returned), Some(10));
        assert!(definitions.get(team).is_none() && definitions.get(again).is_some(), "the other one was not dropped");
    }

    #[test]
    fn a_quota_with_none_above_it_is_gone_at_once_with_those_dropped_below_it() {
        let mut definitions = Definitions::default();
        made(&mut definitions, "org", None);
        made(&mut definitions, "team", Some("org"));
        let other = made(&mut definitions, "other", None);
        ["team", "org"].iter().for_each(|text| dropped(&mut definitions, text));
        assert_eq!(definitions.quotas.keys().copied().collect::<Vec<_>>(), [other]);
    }

    #[test]
    fn what_was_counted_before_a_loss_or_is_not_booked_yet_ends_nothing() {
        let mut definitions = Definitions::default();
        let [org, team] = [("org", None), ("team", Some("org"))].map(|(text, parent)| made(&mut definitions, text, parent));
        dropped(&mut definitions, "team");
        definitions.apply(&Change::Lost { loss: Loss { site: SiteId::new(2, 0), rank: 2 }, of: 3 }).expect("lost");
        let early = Change::End { losses: 0, held: [(team, 3)].into() };
        assert!(matches!(definitions.apply(&early), Err(Refusal::Invalid(_))));
        for id in [team, org] {
            end(&mut definitions, team, 3);
            assert!(definitions.get(team).is_some(), "{id} is not settled");
            definitions.apply(&Change::Book { losses: 1, counted: [(id, Counted::default())].into() }).expect("booked");
        }
        end(&mut definitions, team, 5);
        let settled = definitions.get(org).map(|org| (org.settled.returned, org.settled.booked));
        assert_eq!(settled, Some((2, 6)), "of 5, the 3 that are booked for the lost site may be clients' of org");
    }

    #[test]
    fn it_is_booked_what_a_lost_site_may_have_heard_of() {
        let booked = |before: &[u64], after: &[u64]| {
            let mut definitions = Definitions::default();
            let id = made(&mut definitions, "vm", None);
            let limit = |limit: &u64| Change::SetLimit { name: name("vm"), limit: *limit };
            let loss = Loss { site: SiteId::new(2, 0), rank: 2 };
            let changes = before.iter().map(limit).chain([Change::Lost { loss, of: 3 }]).chain(after.iter().map(limit));
            changes.for_each(|change| definitions.apply(&change).expect("made"));
            definitions.apply(&Change::Book { losses: 1, counted: [(id, Counted::default())].into() }).expect("booked");
            let Booking { held, owed, issued } = definitions.get(id).and_then(|vm| vm.settled.booking.clone()).expect("booked");
            [held, owed, issued]
        };
        assert_eq!(booked(&[30], &[]), [10, 0, 10]);
        assert_eq!(booked(&[30, 12], &[]), [10, 6, 4], "of 30 or 12");
        assert_eq!(booked(&[30, 12], &[60]), [10, 0, 10], "the rest of its part is the heir's");
        assert_eq!(booked(&[30], &[60, 60]), [10, 0, 10]);
        assert_eq!(booked(&[30], &[12]), [10, 6, 4]);
        assert_eq!(booked(&[30], &[60, 90]), [20, 0, 20], "only the last limit is known to be young");
    }

    #[test]
    fn the_parts_of_a_limit_add_up_to_it() {
        let mut definitions = Definitions::default();
        let id = made(&mut definitions, "vm", None);
        definitions.apply(&Change::SetLimit { name: name("vm"), limit: 14 }).expect("changed");
        assert_eq!(definitions.get(id).expect("there").parts(4).collect::<Vec<_>>(), [4, 4, 3, 3]);
    }
}
