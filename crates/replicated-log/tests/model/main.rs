//! A group of three replicas, two of which may lead, explored exhaustively: messages arrive in any order, are lost or come twice, disks are
//! behind, replicas crash. The replicas are the product's own.

use rhumb_core::{Ballot, Rules, SiteId, Span};
use rhumb_replicated_log::group::{Command, Group, GroupNote, GroupPromise, Log, NO_BALLOT, Pace, Position, Recovered, Slot, Step, Write};
use rhumb_replicated_log::planted::Planted;
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What each ballot's leader proposes is told apart by the ballot; the first entry of each is no proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Proposal(Option<Ballot>);

impl Command for Proposal {
    fn nothing() -> Proposal {
        Proposal(None)
    }

    fn bytes(&self) -> usize {
        1
    }
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ballot) => write!(f, "proposal of {}", ballot.number),
            None => f.write_str("-"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    Note(GroupNote<Proposal>),
    Promise(GroupPromise),
}

type Envelope = (usize, usize, Message);

/// What is on the disk of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Disk {
    promised: Ballot,
    log: Log<Proposal>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Replica {
    group: Group<Proposal>,
    disk: Disk,
    /// What is not synced yet: the disk as it will be, and the promises that wait for it.
    unsynced: Option<(Disk, Vec<(SiteId, GroupPromise)>)>,
    stands: u32,
    crashes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    replicas: Vec<Replica>,
    network: BTreeSet<Envelope>,
    doubles: u32,
    proposals: u32,
    /// What somebody has known to be chosen in each slot.
    chosen: BTreeMap<Slot, (Ballot, Proposal)>,
    conflict: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Stand(usize),
    Propose(usize),
    Sync(usize),
    Crash(usize),
    Deliver(Envelope),
    Double(Envelope),
}

/// What may happen how often.
#[derive(Clone)]
struct Three {
    stands: [u32; 3],
    crashes: [u32; 3],
    doubles: u32,
    proposals: u32,
    /// Disks are at times behind.
    lazy: bool,
    rules: Rules<Planted>,
}

/// Their first entries tell apart what two leaders have chosen.
const CALM: Three = Three { stands: [1, 1, 0], crashes: [0; 3], doubles: 0, proposals: 0, lazy: false, rules: Rules::HOLD };
const AGREEMENT: &str = "no slot has two chosen entries";

fn site(place: usize) -> SiteId {
    SiteId::new(place as u16, 0)
}

fn started(place: usize, disk: Disk, rules: Rules<Planted>) -> Group<Proposal> {
    // No leases: anybody may be elected at any time.
    let pace = Pace { lease_ticks: 0, lease: Span::ZERO, heartbeat_ticks: 1, campaign_ticks: 1, stagger_ticks: 0, yield_ticks: 0 };
    let Disk { promised, log } = disk;
    Group::recovered(site(place), (0..3).map(site).collect(), pace, rules, Recovered { promised, log, chosen: 0 })
}

impl State {
    fn call(&mut self, place: usize, lazy: bool, call: impl FnOnce(&mut Group<Proposal>, &mut Step<Proposal>)) {
        let replica = &mut self.replicas[place];
        let mut step = Step::default();
        call(&mut replica.group, &mut step);
        let (mut disk, mut promises) = replica.unsynced.take().unwrap_or_else(|| (replica.disk.clone(), Vec::new()));
        step.writes.into_iter().for_each(|write| disk.write(write));
        promises.extend(step.promises);
        replica.unsynced = Some((disk, promises)).filter(|(disk, promises)| *disk != replica.disk || !promises.is_empty());
        for (to, note) in step.notes {
            self.network.insert((place, usize::from(to.region.0), Message::Note(note)));
        }
        self.look(place);
        if !lazy {
            self.sync(place, lazy);
        }
    }

    fn sync(&mut self, place: usize, lazy: bool) {
        let Some((disk, promises)) = self.replicas[place].unsynced.take() else { return };
        self.replicas[place].disk = disk;
        for (to, promise) in promises {
            let to = usize::from(to.region.0);
            if to == place {
                self.call(place, lazy, |group, step| group.on_promise(site(place), promise, step));
            } else {
                self.network.insert((place, to, Message::Promise(promise)));
            }
        }
    }

    fn look(&mut self, place: usize) {
        let group = &self.replicas[place].group;
        for slot in 1..=group.chosen() {
            let entry = group.log().get(slot).expect("nothing is compacted");
            let found = (entry.ballot, entry.command);
            self.conflict |= *self.chosen.entry(slot).or_insert(found) != found;
        }
    }

    fn deliver(&mut self, (from, to, message): Envelope, lazy: bool) {
        self.call(to, lazy, |group, step| match message {
            Message::Note(note) => group.on_note(site(from), note, step),
            Message::Promise(promise) => group.on_promise(site(from), promise, step),
        });
    }
}

impl Disk {
    fn write(&mut self, write: Write<Proposal>) {
        match write {
            Write::Promised(ballot) => self.promised = ballot,
            Write::Dropped(first, _) => self.log.truncate(first),
            Write::Entry(slot, entry) => assert_eq!(self.log.push(entry), slot, "entries are written in order"),
        }
    }
}

impl Model for Three {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let replica = |place| {
            let disk = Disk { promised: NO_BALLOT, log: Log::behind(Position::START) };
            let group = started(place, disk.clone(), self.rules);
            Replica { group, disk, unsynced: None, stands: self.stands[place], crashes: self.crashes[place] }
        };
        let replicas = (0..3).map(replica).collect();
        let (doubles, proposals) = (self.doubles, self.proposals);
        vec![State { replicas, network: BTreeSet::new(), doubles, proposals, chosen: BTreeMap::new(), conflict: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (place, replica) in state.replicas.iter().enumerate() {
            if replica.stands > 0 {
                actions.push(Action::Stand(place));
            }
            if replica.group.leads().is_some() && state.proposals > 0 {
                actions.push(Action::Propose(place));
            }
            if replica.unsynced.is_some() {
                actions.push(Action::Sync(place));
            }
            if replica.crashes > 0 {
                actions.push(Action::Crash(place));
            }
        }
        for envelope in &state.network {
            actions.push(Action::Deliver(envelope.clone()));
            if state.doubles > 0 {
                actions.push(Action::Double(envelope.clone()));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Stand(place) => {
                state.replicas[place].stands -= 1;
                state.call(place, self.lazy, Group::stand);
            }
            Action::Propose(place) => {
                state.proposals -= 1;
                state.call(place, self.lazy, |group, step| {
                    let ballot = group.leads();
                    group.propose(Proposal(ballot), step);
                    group.send_proposals(step);
                });
            }
            Action::Sync(place) => state.sync(place, self.lazy),
            Action::Crash(place) => {
                let replica = &mut state.replicas[place];
                replica.crashes -= 1;
                replica.unsynced = None;
                replica.group = started(place, replica.disk.clone(), self.rules);
            }
            Action::Deliver(envelope) => {
                state.network.remove(&envelope);
                state.deliver(envelope, self.lazy);
            }
            Action::Double(envelope) => {
                state.doubles -= 1;
                state.deliver(envelope, self.lazy);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Three>> {
        vec![
            Property::always(AGREEMENT, |_, state: &State| !state.conflict),
            Property::sometimes("all proposals are chosen", |model: &Three, state: &State| {
                state.chosen.values().filter(|(_, command)| command.0.is_some()).count() as u32 == model.proposals
            }),
            Property::sometimes("all who stand have entries chosen", |model: &Three, state: &State| {
                let leaders: BTreeSet<SiteId> = state.chosen.values().map(|(ballot, _)| ballot.leader).collect();
                leaders.len() == model.stands.iter().filter(|stands| **stands > 0).count()
            }),
        ]
    }

    fn format_action(&self, action: &Action) -> String {
        let shown = |(from, to, message): &Envelope| match message {
            Message::Note(note) => format!("{from} → {to} {note}"),
            Message::Promise(promise) => format!("{from} → {to} {promise}"),
        };
        match action {
            Action::Deliver(envelope) => shown(envelope),
            Action::Double(envelope) => format!("{} (and again)", shown(envelope)),
            other => format!("{other:?}"),
        }
    }
}

#[test]
fn two_leaders_agree() {
    rhumb_testkit::model::check(CALM);
}

#[test]
fn a_leader_with_proposals_on_disks_that_are_behind_is_safe() {
    rhumb_testkit::model::check(Three { stands: [1, 0, 0], proposals: 1, lazy: true, ..CALM });
}

#[test]
fn a_leader_that_crashes_is_replaced_without_a_loss() {
    rhumb_testkit::model::check(Three { crashes: [1, 0, 0], ..CALM });
}

#[test]
fn an_acceptor_that_crashes_remembers() {
    rhumb_testkit::model::check(Three { crashes: [0, 0, 1], ..CALM });
}

#[test]
#[ignore = "large: `make soak` runs it"]
fn disks_that_are_behind_and_messages_that_come_twice_do_no_harm() {
    rhumb_testkit::model::check(Three { proposals: 1, ..CALM });
    rhumb_testkit::model::check(Three { crashes: [0, 0, 1], lazy: true, ..CALM });
    rhumb_testkit::model::check(Three { stands: [2, 1, 0], doubles: 1, ..CALM });
}

/// Groups with one rule broken.
mod planted {
    use super::*;

    #[test]
    fn a_candidate_with_a_short_log_is_refuted() {
        rhumb_testkit::model::refute(Three { rules: Rules::breaking(Planted::ShortLogElected), ..CALM }, AGREEMENT);
    }

    #[test]
    fn a_promise_forgotten_is_refuted() {
        let model = Three { crashes: [0, 0, 1], rules: Rules::breaking(Planted::PromiseForgotten), ..CALM };
        rhumb_testkit::model::refute(model, AGREEMENT);
    }
}
