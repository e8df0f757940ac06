//! What becomes of a state if nothing fails any more but one thing, which fails for good: a site is lost, or a link between two is cut.
//!
//! What was under way is lost, and disks are synced. From then on epochs end everywhere in turn, one more each time, and messages arrive at
//! once. The rest is the product's own doing.

use super::part::{Ended, Input, Part};
use super::tables::Envelope;
use super::{REGIONS, Streams, site};
use rhumb_catenae::Note;
use rhumb_catenae::epoch::Epoch;
use rhumb_core::{Body, SiteId};
use std::collections::VecDeque;

/// Ends of epochs after which all must be well. A site that asks for promises in vain waits 32 of them.
const ROUNDS: u64 = 120;
/// All is well once for so many ends of epochs nobody has begun to take over, and all were covered.
const CALM: u64 = 8;
/// So many of the last epochs may not be covered yet.
const SLACK: u64 = 2;

/// What fails for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Nothing,
    Lost(usize),
    Cut(usize, usize),
}

const FAILURES: [Failure; 7] =
    [Failure::Nothing, Failure::Lost(0), Failure::Lost(1), Failure::Lost(2), Failure::Cut(0, 1), Failure::Cut(0, 2), Failure::Cut(1, 2)];

impl Failure {
    fn is_up(self, region: usize) -> bool {
        self != Failure::Lost(region)
    }

    fn lets_through(self, from: SiteId, to: SiteId) -> bool {
        match self {
            Failure::Nothing => true,
            Failure::Lost(region) => to != site(region),
            Failure::Cut(one, other) => ![(site(one), site(other)), (site(other), site(one))].contains(&(from, to)),
        }
    }
}

/// True if all goes on well whatever fails for good.
pub fn always(model: &Streams, parts: &[Part; REGIONS]) -> bool {
    FAILURES.into_iter().all(|failure| {
        let goes_on = Run { model, failure, parts: parts.clone(), prepares: 0 }.goes_on();
        if !goes_on {
            println!("not with {failure:?}");
        }
        goes_on
    })
}

struct Run<'a> {
    model: &'a Streams,
    failure: Failure,
    parts: [Part; REGIONS],
    /// How often a site has begun to take over.
    prepares: u64,
}

impl Run<'_> {
    fn goes_on(mut self) -> bool {
        let last = self.parts.iter().map(|part| part.agreement.view().last_epoch()).max().unwrap_or_default();
        let (failure, mut calm) = (self.failure, 0);
        for round in 1..=ROUNDS {
            let (due, before) = (last.plus(round), self.prepares);
            let up = (0..REGIONS).filter(|region| failure.is_up(*region));
            up.clone().for_each(|region| self.end_epoch(region, due));
            let covers = |region: usize| self.parts[region].agreement.view().covered().plus(SLACK) >= due;
            let is_well = up.clone().all(covers);
            calm = if is_well && self.prepares == before { calm + 1 } else { 0 };
            if calm == CALM {
                return true;
            }
        }
        false
    }

    /// An epoch ends at a site, and all hear what follows from that.
    fn end_epoch(&mut self, region: usize, due: Epoch) {
        let mut sent = VecDeque::from(self.take(region, due, Input::EndOfEpoch));
        while let Some(message) = sent.pop_front() {
            let to = (0..REGIONS).find(|to| site(*to) == message.to).expect("messages go to sites");
            sent.extend(self.take(to, due, Input::Message(message)));
        }
    }

    /// A site takes an input, and what it writes is durable at once.
    fn take(&mut self, region: usize, due: Epoch, input: Input) -> Vec<Envelope> {
        let (mut sent, mut input) = (Vec::new(), Some(input));
        while let Some(next) = input.take() {
            let taken = self.parts[region].clone().take(self.model, region, Ended::UpTo(due), next);
            self.parts[region] = taken.part;
            sent.extend(taken.sent);
            input = self.parts[region].disk.waits().then_some(Input::Sync);
        }
        self.prepares += sent.iter().filter(|envelope| matches!(envelope.body, Body::Note(Note::Prepare { .. }))).count() as u64;
        sent.retain(|envelope| self.failure.lets_through(envelope.from, envelope.to));
        sent
    }
}
