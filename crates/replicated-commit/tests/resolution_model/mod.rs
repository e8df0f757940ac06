//! A resolution as a state space: two survivors with a vote, one without, and a lost region whose vote decides.
//!
//! The attempt's electorate is A, B and L, and L is lost. A voted yes; B yes, no, or nothing yet; L yes or no. Its vote is under way to one of the
//! survivors or to none, and so is its claim of the outcome if the votes decided it. From there on anything may happen at any time:
//!
//! ```text
//!   L's vote    ─▶ the survivor that it is under way to, unless it has promised a round without L
//!   AskVote     ─▶ a vote becomes final, and is said to everybody
//!   final votes ─▶ a survivor that is not bound works the outcome out, and claims it
//!   Lead        ─▶ A or B begins a round
//!   Inquire     ─▶ a survivor promises the round and testifies
//!   testimonies ─▶ the leader, one after another ─▶ it proposes ─▶ a survivor accepts ─▶ all have: concluded
//!   Contest     ─▶ a survivor finds another attempt in the way
//!   Crash       ─▶ a survivor forgets what it leads and which votes it has heard
//! ```
//!
//! Rounds, promises and verdicts are the product's own [`Acceptor`] and [`Leader`]. What was once sent can be delivered at any later time, again, or
//! never, with one exception that leaves nothing out: a testimony reaches its leader at once. What it says is settled when it is given; that it
//! was lost is the same as that it is given again later, or that the leader crashes.

use rhumb_commit::placement::Regions;
use rhumb_commit::votes::{Decision, Outcome, Refusal, Tally, Vote};
use rhumb_core::{RegionId, Timestamp};
use rhumb_replicated_commit::resolution::{Acceptor, Leader, Round, Testimony, Verdict};
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet};

/// All survivors who know or have concluded an outcome agree.
pub const AGREEMENT: &str = "one outcome";
/// What a client was told of, and nothing contests, is not undone.
pub const ACKNOWLEDGED: &str = "an acknowledged commit stays";
/// What the survivors' own votes commit is not undone, contested or not.
pub const COUNTED: &str = "what the votes of survivors commit stays";

/// Survivors: A and B, which vote and may lead, and D, which does neither.
const SURVIVORS: usize = 3;
const LOST: RegionId = RegionId(3);
const COMMIT: Decision = Decision::Committed { floor: Timestamp::ZERO };
const NO: Vote = Vote::No(Refusal::UnknownTransaction);

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A leader goes on once two of the three survivors have answered.
    MajorityOfSurvivors,
    /// A crash forgets what was promised and accepted.
    PromiseNotDurable,
    /// Whoever is bound hears the lost region all the same, and works the outcome out from votes.
    LateWordCounts,
    /// Whoever is bound believes a claim that it aborted.
    BoundBelieves,
    /// A vote of a lost region that nobody has seen counts as no.
    LostRefuses,
    /// A leader ignores what others have accepted, and counts votes.
    AcceptedIgnored,
}

/// The model, with one rule broken or none.
#[derive(Clone, Copy, Debug)]
pub struct Resolution {
    pub planted: Option<Planted>,
    /// Rounds that each leader may begin.
    pub rounds_max: u64,
    /// Crashes, of whichever survivors.
    pub crashes_max: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Survivor {
    /// On disk.
    acceptor: Acceptor,
    vote: Option<Vote>,
    known: Option<Outcome>,
    /// Gone with a crash.
    seen: Option<Vote>,
    leader: Option<Leader>,
}

/// What was said in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Said {
    /// What is proposed, and whether that is a commit by assumption.
    proposed: Option<(Decision, bool)>,
    accepted: Regions,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    survivors: [Survivor; SURVIVORS],
    /// What the client of the lost region was told.
    told: Option<Outcome>,
    /// The lost region's vote, and the survivor that it is under way to.
    under_way: Option<(usize, Vote)>,
    /// Final votes that everybody may have heard.
    votes: BTreeMap<RegionId, Vote>,
    rounds: BTreeMap<Round, Said>,
    claimed: BTreeSet<bool>,
    concluded: BTreeSet<bool>,
    crashes: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    HearLost,
    AskVote(usize),
    Count(usize),
    Believe(usize, Outcome),
    Lead(usize),
    Inquire(usize, Round),
    Propose(Round),
    Accept(usize, Round),
    Conclude(Round),
    Learn(usize, Outcome),
    Contest(usize),
    Crash(usize),
}

fn region(survivor: usize) -> RegionId {
    RegionId(survivor as u16)
}

fn electorate() -> Regions {
    [region(0), region(1), LOST].into_iter().collect()
}

fn all() -> Regions {
    (0..SURVIVORS).map(region).collect()
}

impl State {
    fn leader(&self, round: Round) -> Option<&Leader> {
        self.survivors[usize::from(round.leader.0)].leader.as_ref().filter(|leader| leader.round() == round)
    }

    /// The outcome by the votes that this survivor may have heard.
    fn counted(&self, survivor: usize) -> Option<Outcome> {
        let mut tally = Tally::default();
        self.votes.iter().for_each(|(region, vote)| tally.record(*region, vote.clone()));
        self.survivors[survivor].seen.iter().for_each(|vote| tally.record(LOST, vote.clone()));
        tally.outcome(electorate())
    }

    fn make_vote_final(&mut self, survivor: usize) {
        if survivor == SURVIVORS - 1 {
            return; // it has none
        }
        let vote = match self.survivors[survivor].vote.take() {
            None => NO,
            Some(Vote::Yes) => Vote::Firm,
            Some(vote) => vote,
        };
        self.survivors[survivor].vote = Some(vote);
    }

    fn testimony(&self, survivor: usize) -> Testimony {
        let Survivor { acceptor, vote, known, seen, .. } = &self.survivors[survivor];
        let own = vote.iter().map(|vote| (region(survivor), vote.clone()));
        Testimony {
            known: known.map(decision),
            votes: own.chain(seen.iter().map(|vote| (LOST, vote.clone()))).collect(),
            accepted: acceptor.accepted(),
            contested: acceptor.is_contested(),
            forgotten: None,
        }
    }
}

fn decision(outcome: Outcome) -> Decision {
    if outcome == Outcome::Committed { COMMIT } else { Decision::Aborted }
}

fn outcome(commits: bool) -> Outcome {
    if commits { Outcome::Committed } else { Outcome::Aborted }
}

impl Model for Resolution {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut states = Vec::new();
        for of_b in [None, Some(Vote::Yes), Some(NO)] {
            for of_lost in [Vote::Firm, NO] {
                let told = match (&of_b, &of_lost) {
                    (_, Vote::Firm) => Some(Outcome::Committed),
                    (Some(Vote::No(_)), Vote::No(_)) => Some(Outcome::Aborted),
                    _ => None,
                };
                let claims = told.map(|told| [told == Outcome::Committed].into());
                for hearer in (0..SURVIVORS).map(Some).chain([None]) {
                    for claimed in [Some(BTreeSet::new()), claims.clone()].into_iter().flatten() {
                        let mut survivors: [Survivor; SURVIVORS] = Default::default();
                        (survivors[0].vote, survivors[1].vote) = (Some(Vote::Yes), of_b.clone());
                        let under_way = hearer.map(|hearer| (hearer, of_lost.clone()));
                        let (votes, rounds, concluded) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
                        states.push(State { survivors, told, under_way, votes, rounds, claimed, concluded, crashes: 0 });
                    }
                }
            }
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some((hearer, _)) = state.under_way {
            let comes_too_late = state.survivors[hearer].acceptor.without().contains(LOST);
            if !comes_too_late || self.planted == Some(Planted::LateWordCounts) {
                actions.push(Action::HearLost);
            }
        }
        for (index, survivor) in state.survivors.iter().enumerate() {
            let bound = survivor.acceptor.is_bound();
            if survivor.known.is_none() {
                if !state.votes.contains_key(&region(index)) && index < SURVIVORS - 1 {
                    actions.push(Action::AskVote(index));
                }
                if !bound || self.planted == Some(Planted::LateWordCounts) {
                    actions.extend(state.counted(index).map(|_| Action::Count(index)));
                }
                for &claim in &state.claimed {
                    let believes = if claim { !survivor.acceptor.has_accepted_abort() } else { !bound };
                    if believes || (!claim && self.planted == Some(Planted::BoundBelieves)) {
                        actions.push(Action::Believe(index, outcome(claim)));
                    }
                }
                if index < SURVIVORS - 1 && survivor.leader.is_none() {
                    actions.push(Action::Lead(index));
                }
                actions.extend(state.concluded.iter().map(|&commits| Action::Learn(index, outcome(commits))));
                if index == 1 && !survivor.acceptor.is_contested() {
                    actions.push(Action::Contest(index));
                }
            }
            if state.crashes < self.crashes_max {
                actions.push(Action::Crash(index));
            }
            for (round, said) in &state.rounds {
                match said.proposed {
                    None if state.leader(*round).is_some() => actions.push(Action::Inquire(index, *round)),
                    Some(_) if !said.accepted.contains(region(index)) => actions.push(Action::Accept(index, *round)),
                    _ => {}
                }
            }
        }
        for round in state.rounds.keys() {
            let Some(leader) = state.leader(*round) else { continue };
            let step = if leader.proposed().is_none() { Action::Propose } else { Action::Conclude };
            actions.push(step(*round));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let enough = |answered: usize| answered == SURVIVORS || (self.planted == Some(Planted::MajorityOfSurvivors) && answered >= 2);
        match action {
            Action::HearLost => {
                let (hearer, vote) = state.under_way.take()?;
                state.survivors[hearer].seen = Some(vote);
            }
            Action::AskVote(index) => {
                state.make_vote_final(index);
                state.votes.insert(region(index), state.survivors[index].vote.clone()?);
            }
            Action::Count(index) => {
                let found = state.counted(index)?;
                state.survivors[index].known = Some(found);
                state.claimed.insert(found == Outcome::Committed);
            }
            Action::Believe(index, claim) | Action::Learn(index, claim) => state.survivors[index].known = Some(claim),
            Action::Lead(index) => {
                let round = state.survivors[index].acceptor.next_round(0, region(index));
                if round.number > self.rounds_max || state.rounds.contains_key(&round) {
                    return None;
                }
                state.survivors[index].leader = Some(Leader::new(round, all()));
                state.rounds.insert(round, Said::default());
            }
            Action::Inquire(index, round) => {
                state.survivors[index].acceptor.promise(round, LOST.into()).ok()?;
                if state.survivors[index].known.is_none() {
                    state.make_vote_final(index);
                }
                let survivor = &mut state.survivors[index];
                survivor.leader = survivor.leader.take().filter(|leader| leader.round() == round);
                let testimony = state.testimony(index);
                state.survivors[usize::from(round.leader.0)].leader.as_mut()?.hear(region(index), round, testimony);
            }
            Action::Propose(round) => {
                let leader = state.leader(round)?;
                if !enough(SURVIVORS - leader.awaited().len()) {
                    return None;
                }
                let assumed = if self.planted == Some(Planted::LostRefuses) { NO } else { Vote::Firm };
                let verdict = leader.verdict(electorate(), Tally::default(), &assumed)?;
                let verdict = match (verdict, self.planted) {
                    (Verdict::Known(_), Some(Planted::AcceptedIgnored)) => Verdict::Assumed(Outcome::Committed),
                    (verdict, _) => verdict,
                };
                let (proposed, assumes) = match verdict {
                    Verdict::Known(decision) => (decision, false),
                    Verdict::Counted(outcome) => (decision(outcome), false),
                    Verdict::Assumed(outcome) => (decision(outcome), outcome == Outcome::Committed),
                };
                state.survivors[usize::from(round.leader.0)].leader.as_mut()?.propose(proposed);
                state.rounds.get_mut(&round)?.proposed = Some((proposed, assumes));
            }
            Action::Accept(index, round) => {
                let (proposed, assumes) = state.rounds[&round].proposed?;
                let survivor = &mut state.survivors[index];
                let differs = survivor.known.is_some_and(|known| known != proposed.outcome());
                if differs || (assumes && survivor.known.is_none() && survivor.acceptor.is_contested()) {
                    return None; // it says so, and the leader begins another round, or nobody does
                }
                survivor.acceptor.accept(round, proposed).ok()?;
                let said = state.rounds.get_mut(&round)?;
                said.accepted = said.accepted.or(region(index).into());
            }
            Action::Conclude(round) => {
                let said = &state.rounds[&round];
                if !enough(said.accepted.len()) {
                    return None;
                }
                let commits = said.proposed?.0.is_commit();
                state.concluded.insert(commits);
            }
            Action::Contest(index) => state.survivors[index].acceptor.contest(),
            Action::Crash(index) => {
                let survivor = &mut state.survivors[index];
                (survivor.leader, survivor.seen) = (None, None);
                if self.planted == Some(Planted::PromiseNotDurable) {
                    survivor.acceptor = Acceptor::default();
                }
                state.crashes += 1;
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Resolution>> {
        vec![
            Property::always(AGREEMENT, |_, state: &State| said(state).len() <= 1),
            Property::always(ACKNOWLEDGED, |_, state: &State| {
                let contested = state.survivors.iter().any(|survivor| survivor.acceptor.is_contested());
                contested || state.told != Some(Outcome::Committed) || !said(state).contains(&false)
            }),
            Property::always(COUNTED, |_, state: &State| {
                let both = state.survivors[..2].iter().all(|survivor| survivor.vote == Some(Vote::Firm));
                !both || !said(state).contains(&false)
            }),
            Property::sometimes("a commit is concluded", |_, state: &State| state.concluded.contains(&true)),
            Property::sometimes("an abort is concluded", |_, state: &State| state.concluded.contains(&false)),
        ]
    }
}

/// All outcomes that a survivor knows or has concluded: true for a commit.
fn said(state: &State) -> BTreeSet<bool> {
    let known = state.survivors.iter().filter_map(|survivor| survivor.known).map(|known| known == Outcome::Committed);
    known.chain(state.concluded.iter().copied()).collect()
}
