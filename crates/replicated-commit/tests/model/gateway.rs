//! The gateway of a transaction, and its client: one site, in a region that does not vote.

use crate::automaton::Machine;
use crate::heard::{Casts, Heard, all_casts};
use crate::host::{Departure, Host, NOW, REGIONS, gateway, site};
use crate::word::{End, Word, Words};
use rhumb_commit::transaction::{CommitOptions, ReadMode};
use rhumb_core::{Input as SiteInput, Span};
use rhumb_replicated_commit::message::Meta;
use rhumb_replicated_commit::{Config, Note, Request, Timer};

/// What happens to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// Votes arrive that decide.
    Hear(usize, Casts<REGIONS>),
    /// Somebody tells the outcome.
    Told(usize, End),
    /// Somebody in doubt asks whether it is still deciding.
    Asked,
    /// The client has waited for so long that the attempt is taken back.
    Late,
    /// The client waits no longer.
    Deadline,
}

#[derive(Clone, Debug)]
pub struct Gateway {
    txn: usize,
    host: Host,
    meta: Meta,
    is_over: bool,
}

impl Gateway {
    /// A gateway whose client has asked to commit, and which has sent the `Accept`s.
    pub fn new(txn: usize, departure: Departure) -> Gateway {
        let mut host = Host::new(gateway(txn), departure);
        host.take(SiteInput::Client { id: 0, request: Request::Begin { mode: ReadMode::Locking } });
        let began = host.began.expect("a client may begin at once");
        let writes = vec![("k".into(), Some("new".into()))];
        let request = Request::Commit { txn: began, writes, expect: Vec::new(), options: CommitOptions::default() };
        host.take(SiteInput::Client { id: 1, request });
        let meta = host.made.clone().expect("an attempt is made at once");
        Gateway { txn, host, meta, is_over: false }
    }

    fn tick(&mut self, after: Span) -> Words {
        self.host.now = NOW + after;
        self.host.take(SiteInput::Timer(Timer::Tick))
    }
}

impl Machine for Gateway {
    type Input = Input;

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![Input::Asked];
        inputs.extend(End::ALL.map(|end| Input::Told(self.txn, end)));
        if !self.is_over {
            inputs.extend(all_casts().into_iter().map(|casts| Input::Hear(self.txn, casts)));
            inputs.extend((self.host.now == NOW).then_some(Input::Late));
            inputs.push(Input::Deadline);
        }
        inputs
    }

    fn take(&mut self, input: Input) -> Option<Words> {
        let Config { outcome_deadline, withdraw_after, .. } = Config::default();
        let host = &mut self.host;
        let said = match input {
            Input::Hear(_, casts) => host.hear_votes(0, &self.meta, &casts),
            Input::Told(_, end) => host.hear_end(site(0), &self.meta, end),
            Input::Asked => host.hear(site(0), Note::AskGateway { meta: self.meta.clone() }),
            Input::Late => self.tick(outcome_deadline - withdraw_after),
            Input::Deadline => self.tick(outcome_deadline),
        };
        // Nobody else can tell when something is on the disk of a gateway.
        let said = said.or(self.host.sync_all());
        let is_answered = End::ALL.iter().any(|end| said.has(Word::Answered(self.txn, *end)));
        self.is_over |= is_answered || input == Input::Deadline;
        (is_answered || !matches!(input, Input::Hear(..))).then_some(said)
    }

    fn is_possible(input: &Input, heard: &Heard) -> bool {
        match input {
            Input::Hear(txn, casts) => heard.has_votes(*txn, casts),
            Input::Told(txn, end) => heard.shared.has(Word::Decided(*txn, *end)),
            Input::Asked | Input::Late | Input::Deadline => true,
        }
    }
}
