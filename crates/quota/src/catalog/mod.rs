//! How all sites come to know the same quotas: a log of changes, one Paxos instance per slot.
//!
//! ```text
//!   proposer ──Prepare──▶ acceptors ──Prepared──▶ ──Accept──▶ ──Accepted──▶ a majority ──Chosen──▶ all
//! ```
//!
//! Changes are rare, so there is no standing leader: who has a change to make proposes it for the next slot, and for the
//! one after if another's was chosen. A site that missed one is sent what the whole log amounts to ([`Definitions`]), so
//! nobody keeps a log. Every site tells the others now and then how far it is.
//!
//! Invariant: one change per slot; a site at slot s has applied exactly those of the slots below s.

mod asker;
mod change;
mod definitions;
mod frees;

pub use asker::Asker;
pub use change::{Change, Command, QuotaId};
pub use definitions::{Definition, Definitions, Made};
pub use frees::{FREES_MAX, Freed, Frees};

use crate::cluster::Cluster;
use crate::refusal::Refusal;
use crate::spec::QUOTAS_MAX;
use rhumb_core::{Acceptor, Ballot, SiteId, Table, ballot, work};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// Changes that wait at a site at the most.
pub const CHANGES_WAITING_MAX: usize = 256;
/// A change that is not chosen after so many ticks is answered with what is known of it.
const DEADLINE_TICKS: u32 = 200;
/// A message that should have been answered is sent again after so many ticks.
const RESEND_TICKS: u32 = 10;
/// After so many ticks a proposer tries a higher ballot, each site so many later than the one before it.
const RETRY_TICKS: u32 = 24;
const STAGGER_TICKS: u32 = 7;
/// A site that is behind is told all that the others know this often at the most.
const TELL_AGAIN_TICKS: u64 = 4;

/// Messages that promise nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Note {
    /// All slots before this one are known to the sender.
    At { slot: u64 },
    /// This was chosen in this slot.
    Chosen { slot: u64, command: Command },
    /// What all slots before this one amount to.
    State { slot: u64, definitions: Definitions },
    /// A higher ballot was promised.
    Outdated { slot: u64, promised: Ballot },
}

/// Messages that promise what is on the sender's disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    Prepare { slot: u64, ballot: Ballot },
    Prepared { slot: u64, ballot: Ballot, accepted: Option<(Ballot, Command)> },
    Accept { slot: u64, ballot: Ballot, command: Command },
    Accepted { slot: u64, ballot: Ballot },
}

/// What must not be forgotten, besides the definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    /// The first slot not known to be chosen.
    pub slot: u64,
    /// What this site has promised and accepted in the slot.
    pub acceptor: Acceptor<Command>,
    /// Commands made by this site.
    pub commands: u64,
    /// What has become of changes.
    pub made: Made,
}

/// What the catalog wants done, and what it has to tell.
#[derive(Debug, Default)]
pub struct Out {
    /// Messages that promise nothing.
    pub notes: Vec<(SiteId, Note)>,
    /// Messages that leave once the state is on disk.
    pub promises: Vec<(SiteId, Promise)>,
    /// The state has changed.
    pub changed: bool,
    /// The definitions have changed; they go to disk with the state.
    pub redefined: bool,
    /// What those who asked are told, once all is on disk.
    pub answers: Vec<(Asker, Result<(), Refusal>)>,
}

/// A change that waits to be made.
struct Waiting {
    command: Command,
    asker: Asker,
    waited: u32,
    /// It was sent to others, so it may yet be chosen.
    proposed: bool,
}

enum Role {
    Idle,
    Preparing { ballot: Ballot, answers: BTreeMap<SiteId, Option<(Ballot, Command)>>, waited: u32 },
    Accepting { ballot: Ballot, command: Command, accepted_by: BTreeSet<SiteId>, waited: u32 },
}

/// The catalog at one site.
pub struct Catalog {
    cluster: Cluster,
    state: State,
    definitions: Definitions,
    role: Role,
    waiting: VecDeque<Waiting>,
    outdated_by: u64,
    ticks: u64,
    /// When each site was last told all.
    told: BTreeMap<SiteId, u64>,
}

impl Catalog {
    /// The catalog at `cluster.me`, with what an earlier incarnation had on disk.
    pub fn new(cluster: Cluster, state: State, quotas: BTreeMap<QuotaId, Definition>) -> Catalog {
        let definitions = Definitions::new(quotas, state.made.clone());
        let cluster = cluster.without(definitions.lost());
        Catalog { cluster, state, definitions, role: Role::Idle, waiting: VecDeque::new(), outdated_by: 0, ticks: 0, told: BTreeMap::new() }
    }

    /// Lists its tables.
    pub fn tables(&self, visit: &mut dyn FnMut(Table)) {
        let sites = self.cluster.size() + self.definitions.made.lost.len();
        visit(Table::new("catalog.waiting", self.waiting.len(), CHANGES_WAITING_MAX));
        visit(Table::new("catalog.told", self.told.len(), sites).stays());
        visit(Table::new("catalog.made", self.definitions.made.last.len(), sites).stays());
        visit(Table::new("catalog.quotas", self.definitions.quotas.len(), QUOTAS_MAX).stays());
    }

    /// What must be on disk before a promise leaves.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The quotas as this site knows them.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Has `change` made; `asker` is told once that is decided.
    pub fn propose(&mut self, asker: Asker, change: Change, out: &mut Out) {
        if let Err(refusal) = self.definitions.check(&change) {
            return out.answers.push((asker, Err(refusal)));
        }
        if self.waiting.len() >= CHANGES_WAITING_MAX {
            let refusal = Refusal::Unavailable("too many changes of quotas are waiting".into());
            return out.answers.push((asker, Err(refusal)));
        }
        self.enqueue(asker, change, out);
    }

    /// Has a change made that this site asks for itself, unless one is on its way.
    pub fn propose_own(&mut self, change: Change, out: &mut Out) {
        if self.waiting.iter().all(|waiting| waiting.asker != Asker::Site) {
            self.enqueue(Asker::Site, change, out);
        }
    }

    fn enqueue(&mut self, asker: Asker, change: Change, out: &mut Out) {
        self.state.commands += 1;
        out.changed = true;
        let command = Command { site: self.cluster.me, number: self.state.commands, change };
        self.waiting.push_back(Waiting { command, asker, waited: 0, proposed: false });
        self.prepare(out);
    }

    /// Begins to propose the first change that waits, unless that is under way.
    fn prepare(&mut self, out: &mut Out) {
        if !matches!(self.role, Role::Idle) || self.waiting.is_empty() {
            return;
        }
        let ballot = self.state.acceptor.next_ballot(self.outdated_by, self.cluster.me);
        out.changed |= self.state.acceptor.promise(ballot).expect("it is above all that are promised");
        let own = self.state.acceptor.accepted().cloned();
        self.role = Role::Preparing { ballot, answers: BTreeMap::from([(self.cluster.me, own)]), waited: 0 };
        for site in self.cluster.others() {
            out.promises.push((site, Promise::Prepare { slot: self.state.slot, ballot }));
        }
        self.consider(out);
    }

    /// Takes a note.
    pub fn on_note(&mut self, from: SiteId, note: Note, out: &mut Out) {
        match note {
            Note::At { slot } if slot < self.state.slot => self.tell(from, out),
            Note::At { slot } if slot > self.state.slot => out.notes.push((from, Note::At { slot: self.state.slot })),
            Note::At { .. } => {}
            Note::Chosen { slot, command } if slot == self.state.slot => {
                let mut definitions = self.definitions.clone();
                definitions.run(&command);
                self.advance(slot + 1, definitions, out);
            }
            Note::Chosen { slot, .. } if slot > self.state.slot => out.notes.push((from, Note::At { slot: self.state.slot })),
            Note::Chosen { .. } => {}
            Note::State { slot, definitions } if slot > self.state.slot => {
                let definitions = Definitions::new(definitions.quotas, definitions.made);
                self.advance(slot, definitions, out);
            }
            Note::State { .. } => {}
            Note::Outdated { slot, promised } => {
                if slot == self.state.slot {
                    self.outdated_by = self.outdated_by.max(promised.number);
                }
            }
        }
    }

    /// Takes a promise.
    pub fn on_promise(&mut self, from: SiteId, promise: Promise, out: &mut Out) {
        let slot = match &promise {
            Promise::Prepare { slot, .. }
            | Promise::Prepared { slot, .. }
            | Promise::Accept { slot, .. }
            | Promise::Accepted { slot, .. } => *slot,
        };
        if slot != self.state.slot {
            return self.on_note(from, Note::At { slot }, out);
        }
        match promise {
            Promise::Prepare { ballot, .. } => {
                let promised = self.state.acceptor.promise(ballot);
                if self.is_in_force(from, promised, out) {
                    out.promises.push((from, Promise::Prepared { slot, ballot, accepted: self.state.acceptor.accepted().cloned() }));
                }
            }
            Promise::Prepared { ballot, accepted, .. } => {
                if let Role::Preparing { ballot: own, answers, .. } = &mut self.role
                    && *own == ballot
                {
                    answers.insert(from, accepted);
                    self.consider(out);
                }
            }
            Promise::Accept { ballot, command, .. } => {
                let accepted = self.state.acceptor.accept(ballot, command);
                if self.is_in_force(from, accepted, out) {
                    out.promises.push((from, Promise::Accepted { slot, ballot }));
                }
            }
            Promise::Accepted { ballot, .. } => {
                if let Role::Accepting { ballot: own, accepted_by, .. } = &mut self.role
                    && *own == ballot
                {
                    accepted_by.insert(from);
                    self.count_accepted(out);
                }
            }
        }
    }

    /// True if the acceptor took part in a ballot of `from`; if not, that is told which one it has promised.
    fn is_in_force(&self, from: SiteId, taken: Result<bool, Ballot>, out: &mut Out) -> bool {
        match taken {
            Ok(is_new) => out.changed |= is_new,
            Err(promised) => out.notes.push((from, Note::Outdated { slot: self.state.slot, promised })),
        }
        taken.is_ok()
    }

    fn consider(&mut self, out: &mut Out) {
        let Role::Preparing { ballot, answers, .. } = &self.role else { return };
        if answers.len() < self.cluster.majority() {
            return;
        }
        let command = match (ballot::to_propose_again(answers.values().flatten()), self.waiting.front_mut()) {
            (Some(command), _) => command.clone(),
            (None, Some(waiting)) => {
                waiting.proposed = true;
                waiting.command.clone()
            }
            (None, None) => return self.role = Role::Idle,
        };
        let (ballot, slot) = (*ballot, self.state.slot);
        if let Ok(is_new) = self.state.acceptor.accept(ballot, command.clone()) {
            out.changed |= is_new;
            for site in self.cluster.others() {
                out.promises.push((site, Promise::Accept { slot, ballot, command: command.clone() }));
            }
            self.role = Role::Accepting { ballot, command, accepted_by: BTreeSet::from([self.cluster.me]), waited: 0 };
            self.count_accepted(out);
        } else {
            // It has promised another meanwhile, and tries again later.
            self.role = Role::Preparing { ballot, answers: BTreeMap::new(), waited: 0 };
        }
    }

    fn count_accepted(&mut self, out: &mut Out) {
        let Role::Accepting { command, accepted_by, .. } = &self.role else { return };
        if accepted_by.len() < self.cluster.majority() {
            return;
        }
        let (slot, command) = (self.state.slot, command.clone());
        work::add(self.definitions.quotas.len());
        let mut definitions = self.definitions.clone();
        definitions.run(&command);
        self.advance(slot + 1, definitions, out);
        for site in self.cluster.others() {
            out.notes.push((site, Note::Chosen { slot, command: command.clone() }));
        }
    }

    /// Tells a site that is behind, or lost, all at once, but not again and again.
    pub fn tell(&mut self, to: SiteId, out: &mut Out) {
        if self.told.get(&to).is_some_and(|told| self.ticks - told < TELL_AGAIN_TICKS) {
            return;
        }
        self.told.insert(to, self.ticks);
        out.notes.push((to, Note::State { slot: self.state.slot, definitions: self.definitions.clone() }));
    }

    /// On to `slot`, before which the quotas are `definitions`.
    fn advance(&mut self, slot: u64, definitions: Definitions, out: &mut Out) {
        self.state = State { slot, commands: self.state.commands, made: definitions.made.clone(), ..State::default() };
        self.cluster = self.cluster.without(definitions.lost());
        self.definitions = definitions;
        self.role = Role::Idle;
        self.outdated_by = 0;
        out.changed = true;
        out.redefined = true;
        // Another site may have proposed this one's change to its end.
        while let Some(outcome) = self.waiting.front().and_then(|waiting| self.definitions.outcome(&waiting.command)) {
            let waiting = self.waiting.pop_front().expect("it was just looked at");
            out.answers.push((waiting.asker, outcome));
        }
        self.prepare(out);
    }

    /// Time passes.
    pub fn tick(&mut self, out: &mut Out) {
        self.ticks += 1;
        for waiting in &mut self.waiting {
            waiting.waited += 1;
        }
        while let Some(waiting) = self.waiting.front().filter(|waiting| waiting.waited >= DEADLINE_TICKS) {
            let why = "too few sites answered in time";
            let refusal = match waiting.proposed {
                true => Refusal::UnknownOutcome(format!("{why}, and the change may yet be made")),
                false => Refusal::Unavailable(why.into()),
            };
            out.answers.push((waiting.asker, Err(refusal)));
            self.waiting.pop_front();
        }
        let rank = self.cluster.rank() as u32;
        let retry = RETRY_TICKS + rank * STAGGER_TICKS;
        if let Role::Preparing { waited, .. } | Role::Accepting { waited, .. } = &mut self.role {
            *waited += 1;
            let waited = *waited;
            if waited >= retry {
                self.role = Role::Idle;
            } else if waited.is_multiple_of(RESEND_TICKS) {
                self.send_again(out);
            }
        }
        self.prepare(out);
    }

    /// Tells the others how far this site is.
    pub fn gossip(&self, out: &mut Out) {
        for site in self.cluster.others() {
            out.notes.push((site, Note::At { slot: self.state.slot }));
        }
    }

    fn send_again(&self, out: &mut Out) {
        let slot = self.state.slot;
        for site in self.cluster.others() {
            match &self.role {
                Role::Preparing { ballot, answers, .. } if !answers.contains_key(&site) => {
                    out.promises.push((site, Promise::Prepare { slot, ballot: *ballot }));
                }
                Role::Accepting { ballot, command, accepted_by, .. } if !accepted_by.contains(&site) => {
                    out.promises.push((site, Promise::Accept { slot, ballot: *ballot, command: command.clone() }));
                }
                _ => {}
            }
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::At { slot } => write!(f, "At c{slot}"),
            Note::Chosen { slot, command } => write!(f, "Chosen c{slot} {}", command.change),
            Note::State { slot, definitions } => write!(f, "State c{slot}, {} quotas", definitions.quotas.len()),
            Note::Outdated { slot, promised } => write!(f, "Outdated c{slot}, promised {promised}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Prepare { slot, ballot } => write!(f, "Prepare c{slot} {ballot}"),
            Promise::Prepared { slot, ballot, accepted } => {
                write!(f, "Prepared c{slot} {ballot}")?;
                accepted.as_ref().map_or(Ok(()), |(at, command)| write!(f, ", accepted {at} {}", command.change))
            }
            Promise::Accept { slot, ballot, command } => write!(f, "Accept c{slot} {ballot} {}", command.change),
            Promise::Accepted { slot, ballot } => write!(f, "Accepted c{slot} {ballot}"),
        }
    }
}
