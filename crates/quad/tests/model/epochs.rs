//! Two changes of configuration in a row as a state space: three sites of which any two are a quorum, one transaction in each epoch, sites
//! that pass an epoch over, and a crash: in the middle of a reconciliation, or before an adoption is on disk.
//!
//! That an epoch has one configuration is another model's matter (`change.rs`): here one is decided, once it may be. Site 2 crashes. Where
//! that is in a reconciliation it asks its sources by messages, which may be late; to the others an answer comes at once. Where it is after
//! an adoption, those who catch up from site 2 hear which rows there are before they get them, and it may crash in between.

use stateright::{Model, Property};
use std::collections::BTreeSet;

const SITES: usize = 3;
/// Epochs that end.
const CHANGES: u8 = 2;
/// The site that may crash, once.
const FRAIL: usize = 2;

/// What a site says of itself.
pub const TRUE_CLAIMS: &str = "who says that it holds all before an epoch does";
/// What was promised to clients.
pub const KEPT: &str = "what was acknowledged or carried over is at all holders of the latest epoch that have adopted it";

/// One rule that is broken, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    AsIs,
    /// What a configuration tells of a site counts, though the site passed an epoch over in which it was true.
    PassedOverClaimed,
    /// Questions are numbered anew in each life.
    NamedAnew,
    /// What a source has told in one epoch counts as told in the next.
    KeptOverEpochs,
    /// A source tells of what it has adopted or caught up with before that is on disk.
    ToldUnsynced,
}

/// When the frail site may crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// While it is sealed and gets what it lacks.
    Reconciling,
    /// With what it has adopted, or caught up with, not on disk.
    Unsynced,
}

#[derive(Clone, Debug)]
pub struct Epochs {
    pub rule: Rule,
    pub crash: Crash,
}

/// Sites, or transactions by the epoch that they were written in.
type Mask = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    epoch: u8,
    sealed: bool,
    holds: u8,
    /// Transactions whose rows are here.
    rows: Mask,
    /// The commit of this epoch's transaction stands here, and is not settled.
    committed: bool,
    /// The sources that have told all, of this attempt.
    got: Mask,
}

/// An answer on its way to the frail site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Told {
    source: usize,
    name: (u8, u8),
    rows: Mask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decided {
    carried: bool,
    bases: [u8; SITES],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    sites: [Replica; SITES],
    /// The configurations of the second epoch and the third.
    decided: [Option<Decided>; CHANGES as usize],
    /// Who has confirmed the commit of each epoch's transaction.
    confirmed: [Mask; CHANGES as usize],
    answers: BTreeSet<Told>,
    /// The questions of the frail site that are open, by source.
    open: [Option<(u8, u8)>; SITES],
    /// Its life, and how many questions it has asked in it.
    life: u8,
    asked: u8,
    /// What is on its disk, while that is less than it has adopted or caught up with.
    disk: Option<Replica>,
    /// Whom it has told which rows there are of before an epoch, and who has not got them yet.
    listed: [Option<u8>; SITES],
}

impl State {
    /// True if all that site `n` has done is on its disk.
    fn is_durable(&self, n: usize) -> bool {
        n != FRAIL || self.disk.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Commit(usize),
    Settle(usize),
    Seal(usize),
    Get(usize, usize),
    Ask(usize),
    Hear(Told),
    Restart,
    Decide(Mask),
    Adopt(usize, u8),
    CatchUp(usize, usize),
    Sync,
    List(usize),
    Fetch(usize),
}

fn bit(n: usize) -> Mask {
    1 << n
}

fn is_quorum(mask: Mask) -> bool {
    mask.count_ones() as usize * 2 > SITES
}

/// The transactions that were written from epoch `from` on.
fn since(from: u8) -> Mask {
    !0 << from
}

impl Epochs {
    /// What `source` tells `n`, which asks on behalf of an attempt to end their epoch.
    fn told(state: &State, n: usize, source: usize) -> Mask {
        let (n, source) = (&state.sites[n], &state.sites[source]);
        let from = if source.holds >= n.epoch { n.holds } else { n.epoch };
        source.rows & since(from)
    }

    /// True if what `n` tells a puller leaves it now.
    fn tells(&self, state: &State, n: usize) -> bool {
        state.is_durable(n) || self.rule == Rule::ToldUnsynced
    }

    /// The frail site's state is about to change, and that is not on disk at once. It may crash once, so that it does not matter then.
    fn write(&self, last: &State, n: usize, state: &mut State) {
        if n == FRAIL && self.crash == Crash::Unsynced && last.life == 0 {
            state.disk.get_or_insert(last.sites[FRAIL]);
        }
    }

    /// The sites of `epoch` that hold all that `sealed` do.
    fn reconciled(state: &State, epoch: u8, sealed: Mask) -> Mask {
        let anchors = (0..SITES).filter(|n| sealed & bit(*n) != 0 && state.sites[*n].holds >= epoch).fold(0, |mask, n| mask | bit(n));
        let is_done = |n: &usize| {
            let site = &state.sites[*n];
            let all = site.got | bit(*n);
            state.is_durable(*n) && site.epoch == epoch && all & sealed == sealed && (site.holds >= epoch || all & anchors != 0)
        };
        (0..SITES).filter(is_done).fold(0, |mask, n| mask | bit(n))
    }

    fn in_force(state: &State) -> Mask {
        let acknowledged = |epoch: &u8| is_quorum(state.confirmed[*epoch as usize - 1]);
        let carried = |epoch: &u8| state.decided[*epoch as usize - 1].is_some_and(|decided| decided.carried);
        (1..=CHANGES).filter(|epoch| acknowledged(epoch) || carried(epoch)).fold(0, |mask, epoch| mask | 1 << epoch)
    }

    fn has_true_claims(state: &State) -> bool {
        state.sites.iter().all(|site| {
            let wanted = Epochs::in_force(state) & !since(site.holds);
            site.rows & wanted == wanted
        })
    }

    fn is_kept(state: &State) -> bool {
        let Some(epoch) = (1..=CHANGES).rev().find(|epoch| state.decided[*epoch as usize - 1].is_some()) else { return true };
        let decided = state.decided[epoch as usize - 1].expect("it was found");
        let holders = (0..SITES).filter(|n| decided.bases[*n] == epoch + 1 && state.sites[*n].epoch == epoch + 1);
        let wanted = Epochs::in_force(state) & !since(epoch + 1);
        holders.into_iter().all(|n| state.sites[n].rows & wanted == wanted)
    }
}

impl Model for Epochs {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            sites: [Replica { epoch: 1, sealed: false, holds: 1, rows: 0, committed: false, got: 0 }; SITES],
            decided: [None; CHANGES as usize],
            confirmed: [0; CHANGES as usize],
            answers: BTreeSet::new(),
            open: [None; SITES],
            life: 0,
            asked: 0,
            disk: None,
            listed: [None; SITES],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, site) in state.sites.iter().enumerate() {
            let epoch = site.epoch;
            // What it says of its commits and its seal waits for the disk.
            if epoch <= CHANGES && !site.sealed && state.is_durable(n) {
                let confirmed = state.confirmed[epoch as usize - 1];
                if confirmed & bit(n) == 0 {
                    actions.push(Action::Commit(n));
                }
                if site.committed && is_quorum(confirmed) {
                    actions.push(Action::Settle(n));
                }
                actions.push(Action::Seal(n));
            }
            for (other, source) in state.sites.iter().enumerate().filter(|(other, _)| *other != n) {
                if epoch <= CHANGES
                    && source.epoch == epoch
                    && source.sealed
                    && site.sealed
                    && site.got & bit(other) == 0
                    && self.tells(state, other)
                {
                    match n {
                        FRAIL if self.crash == Crash::Unsynced => actions.push(Action::Get(n, other)),
                        FRAIL if state.open[other].is_none() && state.asked < 3 => actions.push(Action::Ask(other)),
                        FRAIL => {}
                        _ => actions.push(Action::Get(n, other)),
                    }
                }
                if site.holds < epoch && source.epoch >= epoch && source.holds >= epoch {
                    match other {
                        FRAIL if self.crash == Crash::Unsynced => {
                            if self.tells(state, FRAIL) && state.listed[n].is_none() {
                                actions.push(Action::List(n));
                            }
                        }
                        _ => actions.push(Action::CatchUp(n, other)),
                    }
                }
            }
            if state.listed[n].is_some() && self.tells(state, FRAIL) {
                actions.push(Action::Fetch(n));
            }
            for later in epoch..=CHANGES {
                if state.decided[later as usize - 1].is_some() {
                    actions.push(Action::Adopt(n, later + 1));
                }
            }
        }
        actions.extend(state.answers.iter().filter(|told| state.open[told.source] == Some(told.name)).map(|told| Action::Hear(*told)));
        let may_crash = match self.crash {
            Crash::Reconciling => state.sites[FRAIL].sealed,
            Crash::Unsynced => state.disk.is_some(),
        };
        if state.life == 0 && may_crash {
            actions.push(Action::Restart);
        }
        if state.disk.is_some() {
            actions.push(Action::Sync);
        }
        actions.extend((0..1 << SITES).filter(|sealed| is_quorum(*sealed)).map(Action::Decide));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Commit(n) => {
                let site = &mut state.sites[n];
                site.committed = true;
                state.confirmed[site.epoch as usize - 1] |= bit(n);
            }
            Action::Settle(n) => {
                let site = &mut state.sites[n];
                (site.committed, site.rows) = (false, site.rows | 1 << site.epoch);
            }
            Action::Seal(n) => state.sites[n].sealed = true,
            Action::Get(n, source) => {
                state.sites[n].rows |= Epochs::told(last, n, source);
                state.sites[n].got |= bit(source);
            }
            Action::Ask(source) => {
                let name = (if self.rule == Rule::NamedAnew { 0 } else { state.life }, state.asked);
                state.asked += 1;
                state.open[source] = Some(name);
                state.answers.insert(Told { source, name, rows: Epochs::told(last, FRAIL, source) });
            }
            Action::Hear(told) => {
                state.sites[FRAIL].rows |= told.rows;
                state.sites[FRAIL].got |= bit(told.source);
                state.open[told.source] = None;
            }
            Action::Restart => {
                state.life = 1;
                state.asked = 0;
                state.open = [None; SITES];
                if let Some(disk) = state.disk.take() {
                    state.sites[FRAIL] = disk;
                }
                state.sites[FRAIL].got = 0;
            }
            Action::Decide(sealed) => {
                let epoch = state.sites.iter().map(|site| site.epoch).max().expect("there are sites");
                let has_said_so = |n: usize| state.sites[n].epoch == epoch && state.sites[n].sealed && state.is_durable(n);
                let are_sealed = (0..SITES).filter(|n| sealed & bit(*n) != 0).all(has_said_so);
                if epoch > CHANGES || state.decided[epoch as usize - 1].is_some() || !are_sealed {
                    return None;
                }
                let done = Epochs::reconciled(last, epoch, sealed);
                if !is_quorum(done) {
                    return None;
                }
                let known = |n: usize| if epoch == 1 { 1 } else { last.decided[epoch as usize - 2].expect("it has begun").bases[n] };
                let base = |n: usize| match bit(n) {
                    it if done & it != 0 => epoch + 1,
                    it if sealed & it != 0 => last.sites[n].holds,
                    _ => known(n),
                };
                let carried = (0..SITES).any(|n| sealed & bit(n) != 0 && last.sites[n].committed);
                state.decided[epoch as usize - 1] = Some(Decided { carried, bases: std::array::from_fn(base) });
            }
            Action::Adopt(n, epoch) => {
                let decided = state.decided[epoch as usize - 2].expect("it was decided");
                let base = decided.bases[n];
                self.write(last, n, &mut state);
                let site = &mut state.sites[n];
                // Who was reconciled has the rows aside; of the others, who has the commit itself.
                let has_rows = site.epoch + 1 == epoch && (base == epoch || site.committed);
                if decided.carried && has_rows {
                    site.rows |= 1 << (epoch - 1);
                }
                if base == epoch || self.rule == Rule::PassedOverClaimed {
                    site.holds = site.holds.max(base);
                }
                let got = if self.rule == Rule::KeptOverEpochs { site.got } else { 0 };
                *site = Replica { epoch, sealed: false, committed: false, got, ..*site };
                if n == FRAIL {
                    state.open = [None; SITES];
                }
            }
            Action::CatchUp(n, source) => {
                let epoch = state.sites[n].epoch;
                self.write(last, n, &mut state);
                state.sites[n].rows |= last.sites[source].rows & since(last.sites[n].holds) & !since(epoch);
                state.sites[n].holds = epoch;
            }
            Action::Sync => state.disk = None,
            Action::List(n) => state.listed[n] = Some(last.sites[n].epoch),
            Action::Fetch(n) => {
                let before = state.listed[n].take()?;
                let site = &mut state.sites[n];
                site.rows |= last.sites[FRAIL].rows & since(site.holds) & !since(before);
                site.holds = site.holds.max(before);
            }
        }
        // What nobody waits for is as good as lost, unless a later question may have its name.
        let (life, asked) = (state.life, state.asked);
        let may_be_named_again = |told: &Told| self.rule == Rule::NamedAnew && (life == 0 || told.name.1 >= asked);
        state.answers.retain(|told| may_be_named_again(told) || state.open[told.source] == Some(told.name));
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(TRUE_CLAIMS, |_: &Epochs, state: &State| Epochs::has_true_claims(state)),
            Property::always(KEPT, |_: &Epochs, state: &State| Epochs::is_kept(state)),
            Property::sometimes("a site passes an epoch over and catches up", |_: &Epochs, state: &State| {
                state.sites.iter().any(|site| site.epoch == 3 && site.holds == 3 && state.decided[0].is_some_and(|decided| decided.carried))
            }),
            Property::sometimes("both transactions last", |_: &Epochs, state: &State| {
                state.sites.iter().all(|site| site.holds == 3 && site.rows == 0b110)
            }),
        ]
    }
}
