//! The gateway of a transaction, and its client: one site, in a region that does not vote.

use super::automaton::Machine;
use super::heard::{Casts, Heard, all_casts};
use super::word::{End, REGIONS, Word, Words, gateway, hear_end, hear_votes};
use crate::host::{Cluster, Host, NOW, Sent, site};
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::{Body, Input as SiteInput, Span};
use rhumb_replicated_commit::message::Meta;
use rhumb_replicated_commit::{Answer, Config, Note, Request, Timer};
use std::sync::Arc;

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
    pub fn new(txn: usize, cluster: Arc<Cluster>) -> Gateway {
        let mut host = Host::new(gateway(txn), cluster);
        let sent = host.take(SiteInput::Client { id: 0, request: Request::Begin { mode: ReadMode::Locking } });
        let [Sent::Answer(Answer::Began { txn: began })] = sent[..] else { unreachable!("a client may begin at once: {sent:?}") };
        let writes = vec![("k".into(), Some("new".into()))];
        let request = Request::Commit { txn: began, writes, expect: Vec::new(), options: CommitOptions::default() };
        let sent = host.take(SiteInput::Client { id: 1, request });
        let made = sent.into_iter().find_map(|sent| match sent {
            Sent::Message { body: Body::Note(Note::Accept { meta, .. }), .. } => Some(meta),
            _ => None,
        });
        let meta = made.expect("an attempt is made at once");
        Gateway { txn, host, meta, is_over: false }
    }

    fn tick(&mut self, after: Span) -> Vec<Sent> {
        self.host.now = NOW + after;
        self.host.take(SiteInput::Timer(Timer::Tick))
    }

    /// What it says of its first attempt, to others and to the client.
    fn word(&self, sent: &Sent) -> Option<Word> {
        match sent {
            Sent::Message { body: Body::Note(Note::Decided { meta, .. } | Note::Withdraw { meta }), .. } => {
                Word::of(sent).filter(|_| meta.attempt == self.meta.attempt)
            }
            Sent::Answer(Answer::Committed(_)) => Some(Word::Answered(self.txn, End::Committed)),
            Sent::Answer(Answer::Failed(TxnError::Conflict(_))) => Some(Word::Answered(self.txn, End::Aborted)),
            Sent::Answer(Answer::Failed(TxnError::Unknown(_))) | Sent::Message { .. } | Sent::Certain(_) => None,
            Sent::Answer(other) => unreachable!("no client is told {other:?}"),
        }
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
        let mut sent = match input {
            Input::Hear(_, casts) => hear_votes(host, 0, &self.meta, &casts),
            Input::Told(_, end) => hear_end(host, site(0), &self.meta, end),
            Input::Asked => host.hear(site(0), Note::AskGateway { meta: self.meta.clone() }),
            Input::Late => self.tick(outcome_deadline - withdraw_after),
            Input::Deadline => self.tick(outcome_deadline),
        };
        // Nobody else can tell when something is on the disk of a gateway.
        sent.extend(self.host.sync_all());
        let said: Words = sent.iter().filter_map(|sent| self.word(sent)).collect();
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
