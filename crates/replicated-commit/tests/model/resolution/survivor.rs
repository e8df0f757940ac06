//! A region that survives: one site.

use super::word::{Arrivals, LOST, Message, SURVIVORS, VOTERS, Vocabulary, Word, Words};
use crate::host::{Cluster, Host, NOW, Sent, site};
use rhumb_commit::placement::{Change, Placement, Regions};
use rhumb_commit::votes::{Outcome, Refusal, Vote};
use rhumb_core::{Body, Input as SiteInput, Key, RegionId, Span, Timestamp, TxnId};
use rhumb_replicated_commit::message::{Attempt, Meta, Part, ReadCheck, Seen};
use rhumb_replicated_commit::resolution::Round;
use rhumb_replicated_commit::{Note, Promise, Timer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The one that may find another attempt in the way.
const CONTESTANT: usize = 1;
/// Longer than any wait of a coordinator, and than a gateway is asked.
const LONG: Span = Span::from_secs(20);

/// What happens to a survivor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Input {
    /// A message arrives.
    Hear(Words),
    /// Votes of others arrive that decide.
    Count(Words),
    /// Somebody in doubt asks.
    AskVote,
    /// The placement arrives that declares a region lost.
    Place,
    /// A long time passes in which all others are heard: it leads.
    Lead,
    /// A load is answered: what was read is current, or stale.
    Load { stale: bool },
    /// The first write that waits becomes durable.
    Sync,
    /// The site crashes and starts again.
    Crash,
}

/// How much may happen to a survivor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    pub crashes: u8,
    /// Rounds that it may lead.
    pub rounds: usize,
}

#[derive(Clone, Debug)]
pub struct Survivor {
    me: usize,
    host: Host,
    bounds: Bounds,
    /// The rounds that it has led, and others hear of.
    led: BTreeSet<Round>,
    /// The outcome that this incarnation is certain of.
    known: Option<Outcome>,
}

impl Survivor {
    /// A survivor that has not heard of the attempt.
    pub fn new(me: usize, cluster: Arc<Cluster>, bounds: Bounds) -> Survivor {
        Survivor { me, host: Host::new(site(me), cluster), bounds, led: BTreeSet::new(), known: None }
    }

    /// The same, once it has voted yes.
    pub fn prepared(mut self) -> Survivor {
        self.host.hear(site(LOST), Note::Accept { meta: meta(), parts: vec![(0, part())] });
        self.host.load(0, false);
        self.host.sync_all();
        self
    }

    /// The same, once it has voted no: it was asked before it had heard of the attempt.
    pub fn refusing(mut self) -> Survivor {
        self.host.hear(site(LOST), Note::AskVote { meta: meta() });
        self.host.sync_all();
        self
    }

    /// What may happen to it now.
    pub fn inputs(&self, arrivals: &Arrivals) -> Vec<Input> {
        let mut inputs = Vec::new();
        // As long as a write waits to be durable, no message arrives.
        if self.host.waiting() == 0 {
            let (votes, is_open) = (VOTERS.contains(&self.me), self.known.is_none());
            inputs.extend(arrivals.messages.iter().copied().map(Input::Hear));
            inputs.extend((is_open && !arrivals.votes.is_empty()).then_some(Input::Count(arrivals.votes)));
            inputs.push(Input::Place);
            inputs.extend(votes.then_some(Input::AskVote));
            let may_lead = votes && is_open && self.led.len() < self.bounds.rounds;
            inputs.extend(may_lead.then_some(Input::Lead));
        }
        if self.host.loads() > 0 {
            inputs.push(Input::Load { stale: false });
            inputs.extend((self.me == CONTESTANT).then_some(Input::Load { stale: true }));
        }
        inputs.extend((self.host.waiting() > 0).then_some(Input::Sync));
        inputs.extend((self.bounds.crashes > 0).then_some(Input::Crash));
        inputs
    }

    /// Takes an input; returns what it says. None if that input makes no difference now.
    pub fn take(&mut self, input: Input, vocabulary: &Vocabulary) -> Option<Vec<Word>> {
        let asker = site((self.me + 1) % VOTERS.len());
        let sent = match input {
            Input::Hear(words) => self.hear(words, vocabulary),
            Input::Count(words) => Some(self.hear(words, vocabulary)).filter(|sent| sent.iter().any(is_claim))?,
            Input::AskVote => self.host.hear(asker, Note::AskVote { meta: meta() }),
            Input::Place => self.host.hear_promise(asker, Promise::Placed { placement: second_placement() }),
            Input::Lead => {
                self.host.now += LONG;
                self.host.hear_from_all();
                Some(self.host.take(SiteInput::Timer(Timer::Tick))).filter(|sent| sent.iter().any(is_inquiry))?
            }
            Input::Load { stale } => self.host.load(0, stale),
            Input::Sync => self.host.sync(),
            Input::Crash => {
                self.host.crash();
                self.bounds.crashes -= 1;
                self.known = None;
                Vec::new()
            }
        };
        let mut words: Vec<Word> = (input == Input::Load { stale: true }).then_some(Word::Stale).into_iter().collect();
        for sent in sent {
            match sent {
                Sent::Certain(outcome) => {
                    self.known = Some(outcome);
                    words.push(Word::Certain(outcome));
                }
                Sent::Message { to, body } => {
                    words.extend(Message::of(self.me, to, body).filter(|message| self.is_heard(message)).map(Word::Sent));
                }
                Sent::Answer(answer) => unreachable!("there are no clients: {answer:?}"),
            }
        }
        Some(words)
    }

    fn hear(&mut self, words: Words, vocabulary: &Vocabulary) -> Vec<Sent> {
        let mut sent = Vec::new();
        for (_, message) in vocabulary.messages(words) {
            sent.extend(self.host.take(SiteInput::Message { from: message.sender(self.me), body: message.body.clone() }));
        }
        sent
    }

    /// False if nobody is to hear this message, as it is of a round beyond those that a survivor may lead.
    fn is_heard(&mut self, message: &Message) -> bool {
        let Some(round) = message.round().filter(|round| usize::from(round.leader.0) == self.me) else { return true };
        if self.led.len() < self.bounds.rounds {
            self.led.insert(round);
        }
        self.led.contains(&round)
    }
}

fn is_claim(sent: &Sent) -> bool {
    matches!(sent, Sent::Message { body: Body::Note(Note::Decided { .. }), .. })
}

fn is_inquiry(sent: &Sent) -> bool {
    matches!(sent, Sent::Message { body: Body::Note(Note::Inquire(_)), .. })
}

/// The placement in which the attempt was made.
pub fn first_placement() -> Placement {
    let voters = VOTERS.into_iter().chain([LOST]);
    Placement::first(change(voters, Regions::NONE)).expect("three regions are active")
}

/// The placement that declares the third of them lost.
fn second_placement() -> Placement {
    first_placement().next(change(VOTERS, region(LOST).into())).expect("two regions stay active")
}

fn change(voters: impl IntoIterator<Item = usize>, lost: Regions) -> Change {
    let voters: Regions = voters.into_iter().map(region).collect();
    let passives = (0..SURVIVORS).map(region).filter(|region| !voters.contains(*region)).collect();
    Change { voters, passives, coordinators: BTreeMap::new(), lost }
}

pub fn region(number: usize) -> RegionId {
    RegionId(number as u16)
}

/// The attempt: above all that a region that crashes may have promised, or it would refuse it.
pub fn meta() -> Meta {
    let at = Timestamp::from_time(NOW + Span::from_secs(60));
    Meta {
        attempt: Attempt { txn: TxnId { began: at, gateway: site(LOST) }, made: at },
        at,
        epoch: 1,
        electorate: first_placement().voters,
        declares_lost: Regions::NONE,
        two_rounds: false,
        coordinator: 0,
        participants: vec![0],
    }
}

/// It reads and writes a row.
fn part() -> Part {
    let key: Key = "k".into();
    let reads = vec![ReadCheck { key: key.clone(), seen: Seen { version: Timestamp::ZERO, is_live: false } }];
    Part { reads, ranges: Vec::new(), writes: vec![(key, Some("new".into()))] }
}

/// What a region refuses by that has lost its memory of the attempt, or has not heard of it.
pub const NO: Vote = Vote::No(Refusal::UnknownTransaction);
