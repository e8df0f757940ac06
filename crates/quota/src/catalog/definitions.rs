//! The quotas that there are: what a log of changes amounts to, the same at every site that has applied as much of it.

use super::{Freed, Frees};
use crate::lost::{Counted, Loss, Settled};
use crate::name::Name;
use crate::operation::RequestKey;
use crate::reallocate::divide;
use crate::refusal::Refusal;
use crate::spec::{DEPTH_MAX, QUOTAS_MAX, Spec, check_limit};
use rhumb_core::SiteId;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// Names a quota for ever; its name may be given to another after it was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QuotaId(pub u64);

/// A change of the quotas.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Change {
    Create {
        name: Name,
        spec: Spec,
    },
    SetLimit {
        name: Name,
        limit: u64,
    },
    Drop {
        name: Name,
    },
    /// Clients of lost sites hold so many tokens less than is booked for them.
    Free {
        /// The quota that had this name when it was asked for.
        quota: QuotaId,
        name: Name,
        amount: u64,
        id: Option<RequestKey>,
    },
    /// A site is lost for ever; the cluster has `of` sites.
    Lost {
        loss: Loss,
        of: u32,
    },
    /// What lost sites have in quotas ([`lost`](crate::lost)).
    Book {
        losses: u32,
        from: u32,
        counted: BTreeMap<QuotaId, Counted>,
    },
}

/// A change, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// The site that proposed it first.
    pub site: SiteId,
    /// Its number among those of that site, which are made in order.
    pub number: u64,
    /// The change.
    pub change: Change,
}

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
        let names = quotas.iter().map(|(id, definition)| (definition.name.clone(), *id)).collect();
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

    /// The quota of that id, if it has not been dropped.
    pub fn get(&self, id: QuotaId) -> Option<&Definition> {
        self.quotas.get(&id)
    }

    /// The quota and those above it, from below.
    pub fn chain(&self, id: QuotaId) -> impl Iterator<Item = QuotaId> + '_ {
        std::iter::successors(Some(id), |id| self.quotas.get(id)?.parent)
    }

    /// The quotas right below `id`.
    pub fn children(&self, id: QuotaId) -> impl Iterator<Item = QuotaId> + '_ {
        self.quotas.iter().filter(move |(_, definition)| definition.parent == Some(id)).map(|(id, _)| *id)
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
            Change::Book { losses, .. } if *losses as usize == self.made.lost.len() => Ok(()),
            Change::Book { .. } => Err(Refusal::Invalid("another site was declared lost since this was counted".into())),
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
                let definition = Definition { name: name.clone(), spec: spec.clone(), parent, highest: spec.limit, settled };
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
                self.quotas.remove(&id);
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
            Change::Book { losses, from, counted } => {
                for (id, counted) in counted {
                    if let Some(definition) = self.quotas.get_mut(id) {
                        let parts = |limit| self.made.parts(limit, *from, *losses);
                        // What the limit was raised by since the loss is issued to the heir.
                        let (limit, highest) = (definition.spec.limit.min(definition.highest), definition.highest);
                        definition.settled.book(*losses, *from, *counted, parts(limit), parts(highest));
                    }
                }
            }
        }
        Ok(())
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

impl fmt::Display for QuotaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}", self.0)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Create { name, spec } => write!(f, "create {name} limit {}", spec.limit),
            Change::SetLimit { name, limit } => write!(f, "limit {name} {limit}"),
            Change::Drop { name } => write!(f, "drop {name}"),
            Change::Free { name, amount, .. } => write!(f, "free {amount} of {name}"),
            Change::Lost { loss, .. } => write!(f, "lost {}", loss.site),
            Change::Book { losses, from, counted } => {
                write!(f, "book losses {from}..{losses}:")?;
                counted.iter().try_for_each(|(id, counted)| write!(f, " {id}{:+}", counted.beyond))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lost::Booking;

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

    #[test]
    fn it_is_booked_what_a_lost_site_may_have_heard_of() {
        let booked = |before: &[u64], after: &[u64]| {
            let mut definitions = Definitions::default();
            let id = made(&mut definitions, "vm", None);
            let limit = |limit: &u64| Change::SetLimit { name: name("vm"), limit: *limit };
            let loss = Loss { site: SiteId::new(2, 0), rank: 2 };
            let changes = before.iter().map(limit).chain([Change::Lost { loss, of: 3 }]).chain(after.iter().map(limit));
            changes.for_each(|change| definitions.apply(&change).expect("made"));
            definitions.apply(&Change::Book { losses: 1, from: 0, counted: [(id, Counted::default())].into() }).expect("booked");
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
