//! A region that votes: one site.

use super::automaton::Machine;
use super::heard::{Casts, Heard, all_casts};
use super::word::{End, REGIONS, TXNS, Word, Words, gateway, hear_end, hear_votes};
use crate::host::{Cluster, Host, NOW, site};
use rhumb_commit::placement::Regions;
use rhumb_core::{Key, Span, Timestamp, TxnId};
use rhumb_replicated_commit::Note;
use rhumb_replicated_commit::message::{Attempt, Meta, Part, ReadCheck, Seen};
use std::sync::Arc;

/// What happens to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// The gateway's `Accept` arrives.
    Accept(usize),
    /// Somebody in doubt asks.
    AskVote(usize),
    /// The gateway takes its attempt back.
    Withdraw(usize),
    /// Votes of the others arrive that decide.
    Hear(usize, Casts<{ REGIONS - 1 }>),
    /// Somebody tells the outcome.
    Told(usize, End),
    /// A load is answered: what was read is current, or stale.
    Load { place: usize, stale: bool },
    /// The first write that waits becomes durable.
    Sync,
    /// The site crashes and starts again.
    Crash,
}

/// How much may happen to each region.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub crashes: u8,
    /// As long as so many writes wait to be durable, no message arrives.
    pub writes: usize,
}

#[derive(Clone, Debug)]
pub struct Region {
    host: Host,
    bounds: Bounds,
    /// The outcomes that it knows in this incarnation.
    known: [Option<End>; TXNS],
}

impl Region {
    pub fn new(cluster: Arc<Cluster>, bounds: Bounds) -> Region {
        Region { host: Host::new(site(0), cluster), bounds, known: [None; TXNS] }
    }
}

impl Machine for Region {
    type Input = Input;

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = Vec::new();
        for txn in (0..TXNS).filter(|_| self.host.waiting() < self.bounds.writes) {
            inputs.extend([Input::Accept(txn), Input::AskVote(txn), Input::Withdraw(txn)]);
            let known = self.known[txn];
            // That somebody tells the other outcome violates agreement already.
            inputs.extend(End::ALL.into_iter().filter(|end| known.is_none_or(|known| known == *end)).map(|end| Input::Told(txn, end)));
            inputs.extend(all_casts().into_iter().filter(|_| known.is_none()).map(|casts| Input::Hear(txn, casts)));
        }
        inputs.extend((0..self.host.loads()).flat_map(|place| [false, true].map(|stale| Input::Load { place, stale })));
        inputs.extend((self.host.waiting() > 0).then_some(Input::Sync));
        inputs.extend((self.bounds.crashes > 0).then_some(Input::Crash));
        inputs
    }

    fn take(&mut self, input: Input) -> Option<Words> {
        let host = &mut self.host;
        let sent = match input {
            Input::Accept(txn) => host.hear(gateway(txn), Note::Accept { meta: meta(txn), parts: vec![(0, part())] }),
            Input::AskVote(txn) => host.hear(site(1), Note::AskVote { meta: meta(txn) }),
            Input::Withdraw(txn) => host.hear(gateway(txn), Note::Withdraw { meta: meta(txn) }),
            Input::Hear(txn, casts) => {
                let sent = hear_votes(host, 1, &meta(txn), &casts);
                End::ALL.iter().any(|end| Words::of(&sent).has(Word::Decided(txn, *end))).then_some(sent)?
            }
            Input::Told(txn, end) => hear_end(host, site(1), &meta(txn), end),
            Input::Load { place, stale } => host.load(place, stale),
            Input::Sync => host.sync(),
            Input::Crash => {
                host.crash();
                self.bounds.crashes -= 1;
                self.known = [None; TXNS];
                Vec::new()
            }
        };
        let said = Words::of(&sent);
        for (txn, known) in self.known.iter_mut().enumerate() {
            let is_known = |end: &End| input == Input::Told(txn, *end) || said.has(Word::Decided(txn, *end));
            *known = known.or(End::ALL.into_iter().find(is_known));
        }
        Some(said)
    }

    fn is_possible(input: &Input, heard: &Heard) -> bool {
        match input {
            Input::Withdraw(txn) => heard.shared.has(Word::Withdraw(*txn)),
            Input::Told(txn, end) => heard.shared.has(Word::Decided(*txn, *end)),
            Input::Hear(txn, casts) => heard.has_votes(*txn, casts),
            Input::Accept(_) | Input::AskVote(_) | Input::Load { .. } | Input::Sync | Input::Crash => true,
        }
    }
}

/// The attempt of a transaction: above all that a region that crashes may have promised, or it would refuse both.
fn meta(txn: usize) -> Meta {
    let at = Timestamp::from_time(NOW + Span::from_secs(60) + Span::from_micros(txn as u64));
    Meta {
        attempt: Attempt { txn: TxnId { began: at, gateway: gateway(txn) }, made: at },
        at,
        epoch: 1,
        electorate: Regions::first(REGIONS),
        declares_lost: Regions::NONE,
        two_rounds: false,
        coordinator: 0,
        participants: vec![0],
    }
}

/// Both transactions read and write the same row.
fn part() -> Part {
    let key: Key = "k".into();
    let reads = vec![ReadCheck { key: key.clone(), seen: Seen { version: Timestamp::ZERO, is_live: false } }];
    Part { reads, writes: vec![(key, Some("new".into()))], ..Part::default() }
}
