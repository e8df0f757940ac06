//! Messages between sites, and requests and answers between a site and its clients.

use super::epoch::Epoch;
use super::stream_id::StreamId;
use rhumb_commit::one_shot::{self, operation::Transaction};
use rhumb_core::record::encoded_bytes;
use rhumb_core::{Ballot, RegionId, SiteId, Span, Table, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A transaction that is part of a batch: which epoch, which stream's batch, which place in it. Identifiers order those transactions
/// whose order speculation could not settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identifier {
    /// The epoch.
    pub epoch: Epoch,
    /// The stream that carries it.
    pub stream: StreamId,
    /// Its place in that stream's batch.
    pub place: u16,
}

/// How an entry stands at a site. What is chosen stands above all that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Standing {
    /// Accepted in this ballot.
    Accepted(Ballot),
    /// Known to be chosen, whatever the ballot.
    Chosen,
}

/// A region's vote on an epoch: the order in which it ran those transactions that conflict with one another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Order {
    /// Of which epoch.
    pub epoch: Epoch,
    /// First to last.
    pub sequence: Vec<Identifier>,
}

/// An entry of a region's stream: what the region says at the end of an epoch. The epochs since the entry before hold nothing
/// of this stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Who sealed it; a site seals an epoch once.
    pub author: SiteId,
    /// Which epoch ends.
    pub epoch: Epoch,
    /// The transactions that it received.
    pub batch: Vec<Transaction>,
    /// Its votes.
    pub orders: Vec<Order>,
}

/// A visit of a transaction to a chain server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Visit {
    /// Which transaction.
    pub transaction: Identifier,
    /// Which server.
    pub server: u16,
}

/// One run of an epoch's chains over the sites of a region. What belongs to an earlier one is not minded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Crossing {
    /// Where the resolver is: the site that speaks for the region.
    pub coordinator: SiteId,
    /// Its clock when it began.
    pub began: Time,
}

/// How a site calls a transaction that it has forwarded. No two are called the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Forwarded {
    /// The first epoch in which the site said something of its own since it started: no other incarnation of it has the same.
    pub incarnation: Epoch,
    /// Counts up.
    pub number: u64,
}

/// A forwarded transaction: run it, if you seal it in `stream` and in no epoch after `until`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Forward {
    /// The stream of its namespace.
    pub stream: StreamId,
    /// How the site that forwards it calls it.
    pub name: Forwarded,
    /// The last epoch in which it may be sealed.
    pub until: Epoch,
    /// What to run.
    pub transaction: Transaction,
}

/// How far a site has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// All up to this epoch is settled here.
    pub settled: Epoch,
    /// By stream: the last of its entries that is in there, and the epoch up to which it is covered by then.
    pub entries: Vec<(u64, Epoch)>,
}

/// A message that promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are named after the types above
pub enum Note {
    /// A transaction goes to the next chain server of its backward pass.
    Visit(Visit),
    /// I have the stream up to `after`; what comes then? Answered by [`Note::Chosen`] in any case.
    Pull { stream: StreamId, after: u64 },
    /// To the site that pulls: the chosen entries from `first` on, as many as fit into a page; none if no more are known here. If there are `more`,
    /// ask again.
    Chosen { stream: StreamId, first: u64, entries: Vec<Entry>, more: bool },
    /// Candidate for the lead of a stream to all acceptors: which entries have you accepted after `after`? Sent again to an acceptor that has
    /// answered with a part.
    Prepare { stream: StreamId, ballot: Ballot, after: u64 },
    /// Acceptor: another ballot is promised.
    Refused { stream: StreamId, promised: Ballot },
    /// A transaction goes to the next chain server of its backward pass, on any site of the region.
    Cross { crossing: Crossing, visit: Visit },
    /// Chain server to resolver: a transaction has come, and meets these here, which have not pre-committed. May it be next?
    Claim { crossing: Crossing, visit: Visit, open: Vec<Identifier> },
    /// Resolver to chain server: a transaction may pre-commit.
    Granted { crossing: Crossing, visit: Visit },
    /// Chain server to coordinator: a transaction is at the end of its backward pass.
    Through { crossing: Crossing, transaction: Identifier },
    /// To the coordinator of its namespace.
    Forward(Forward),
}

/// A message that promises something durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// Leader of a stream to everybody: its entries from `first` on, at this ballot, as many as fit a page.
    Epoch { stream: StreamId, ballot: Ballot, first: u64, entries: Vec<Entry> },
    /// To everybody: this site holds the stream's entries by that ballot's leader, up to `upto`.
    Held { stream: StreamId, ballot: Ballot, upto: u64 },
    /// Acceptor to the candidate: it accepts nothing below this ballot any more. With the entries that it has accepted after `chosen` and after the
    /// requested place `after`, as many as fit into a page; `more` if there are others.
    Promised { stream: StreamId, ballot: Ballot, after: u64, chosen: u64, accepted: Vec<(u64, Standing, Entry)>, more: bool },
    /// To everybody: this site no longer needs the entries that it has settled.
    Settled { progress: Progress },
    /// To the site that forwarded a transaction: this site has it in its entry at place `index` of the stream, at this place of the batch.
    Sealed { name: Forwarded, index: u64, place: u16 },
}

/// What clients and operators ask a site.
pub type Request = one_shot::Request<Admin>;

/// What they are told.
pub type Answer = one_shot::Answer<Status>;

/// What operators ask a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin {
    /// How does it fare? Answered by its [`Status`].
    Status,
}

/// How a site fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// False while it recovers.
    pub serving: bool,
    /// The coordinator epoch: the last that this site sealed.
    pub coordinator: Epoch,
    /// The execution epoch: the last whose batches are all here.
    pub execution: Epoch,
    /// The last epoch settled here.
    pub settled: Epoch,
    /// Transactions agreed on and not yet settled here.
    pub unsettled: usize,
    /// Regions that somebody else speaks for.
    pub passed_over: Vec<RegionId>,
    /// How long it took to settle what this site sealed.
    pub settling: Settling,
    /// How full its tables and queues are.
    pub tables: Vec<Table>,
}

/// How long it took, from an epoch's end at a site until all of it was settled there. Of epochs in which a client of the site had asked
/// for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settling {
    /// How many there were.
    pub epochs: u64,
    /// All together.
    pub sum: Span,
    /// The last of them.
    pub last: Span,
}

impl Settling {
    /// One more.
    pub(super) fn add(&mut self, span: Span) {
        self.epochs += 1;
        self.sum = self.sum + span;
        self.last = span;
    }
}

impl Status {
    /// The offset between the coordinator epoch and the execution epoch. It grows when messages are delayed and shrinks as the
    /// backlog is executed; beyond the delay tolerance a silent region is passed over.
    pub fn offset(&self) -> u64 {
        self.coordinator.0.saturating_sub(self.execution.0)
    }

    /// Epochs sealed here and not yet settled here.
    pub fn behind(&self) -> u64 {
        self.coordinator.0.saturating_sub(self.settled.0)
    }
}

impl Entry {
    /// Bytes of its encoding.
    pub fn bytes(&self) -> usize {
        encoded_bytes(self)
    }

    /// True if it says no more than that its epoch has ended.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.orders.is_empty()
    }
}

impl fmt::Display for Identifier {
    /// `e7.r1.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.epoch, self.stream, self.place)
    }
}

impl fmt::Display for Visit {
    /// `e7.r1.0 server 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} server {}", self.transaction, self.server)
    }
}

impl fmt::Display for Crossing {
    /// `r0.0@1.500000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.coordinator, self.began)
    }
}

impl fmt::Display for Forwarded {
    /// `e7#1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.incarnation, self.number)
    }
}

impl fmt::Display for Standing {
    /// `1@r0.0`, or `chosen`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Accepted(ballot) => write!(f, "{ballot}"),
            Standing::Chosen => f.write_str("chosen"),
        }
    }
}

impl fmt::Display for Order {
    /// `e7:e7.r0.0<e7.r1.0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.sequence.iter().map(ToString::to_string).collect();
        write!(f, "{}:{}", self.epoch, words.join("<"))
    }
}

impl fmt::Display for Entry {
    /// `e7 [wa] [wb]`, then its votes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.epoch)?;
        self.batch.iter().try_for_each(|transaction| write!(f, " {transaction}"))?;
        self.orders.iter().try_for_each(|order| write!(f, " vote {order}"))
    }
}

impl Note {
    /// The stream that it is about, if it is about one.
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self {
            Note::Pull { stream, .. } | Note::Chosen { stream, .. } | Note::Prepare { stream, .. } | Note::Refused { stream, .. } => {
                Some(*stream)
            }
            Note::Forward(forward) => Some(forward.stream),
            Note::Visit(_) | Note::Cross { .. } | Note::Claim { .. } | Note::Granted { .. } | Note::Through { .. } => None,
        }
    }
}

impl Promise {
    /// The stream that it is about, if it is about one.
    pub(super) fn stream(&self) -> Option<StreamId> {
        match self {
            Promise::Epoch { stream, .. } | Promise::Held { stream, .. } | Promise::Promised { stream, .. } => Some(*stream),
            Promise::Settled { .. } | Promise::Sealed { .. } => None,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Visit(visit) => write!(f, "Visit {visit}"),
            Note::Cross { crossing, visit } => write!(f, "Cross {crossing} {visit}"),
            Note::Claim { crossing, visit, open } => {
                write!(f, "Claim {crossing} {visit} before")?;
                open.iter().try_for_each(|other| write!(f, " {other}"))
            }
            Note::Granted { crossing, visit } => write!(f, "Granted {crossing} {visit}"),
            Note::Through { crossing, transaction } => write!(f, "Through {crossing} {transaction}"),
            Note::Forward(Forward { stream, name, until, transaction }) => {
                write!(f, "Forward {stream} {name} until {until} {transaction}")
            }
            Note::Pull { stream, after } => write!(f, "Pull {stream} after #{after}"),
            Note::Chosen { stream, first, entries, more } => {
                write!(f, "Chosen {stream}{}{}", Listed(*first, entries), if *more { " …" } else { "" })
            }
            Note::Prepare { stream, ballot, after } => write!(f, "Prepare {stream} {ballot} after #{after}"),
            Note::Refused { stream, promised } => write!(f, "Refused {stream} {promised}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Epoch { stream, ballot, first, entries } => write!(f, "Epoch {stream} {ballot}{}", Listed(*first, entries)),
            Promise::Held { stream, ballot, upto } => write!(f, "Held {stream} {ballot} #{upto}"),
            Promise::Promised { stream, ballot, after, chosen, accepted, more } => {
                write!(f, "Promised {stream} {ballot} after #{after} chosen #{chosen}")?;
                accepted.iter().try_for_each(|(index, ballot, entry)| write!(f, " #{index} {ballot} {entry}"))?;
                f.write_str(if *more { " …" } else { "" })
            }
            Promise::Settled { progress } => write!(f, "Settled {}", progress.settled),
            Promise::Sealed { name, index, place } => write!(f, "Sealed {name} #{index}.{place}"),
        }
    }
}

/// Entries with their places.
struct Listed<'a>(u64, &'a [Entry]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not `self.0..`: a message may say any place, the last one there is among them.
        (self.0..=u64::MAX).zip(self.1).try_for_each(|(index, entry)| write!(f, " #{index} {entry}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_any_place_are_printed() {
        let entry = Entry { author: SiteId::new(1, 0), epoch: Epoch(3), batch: vec![], orders: vec![] };
        let chosen = |first| Note::Chosen { stream: StreamId::first(RegionId(1)), first, entries: vec![entry.clone()], more: false };
        assert_eq!(chosen(7).to_string(), "Chosen r1 #7 e3");
        assert_eq!(chosen(u64::MAX).to_string(), format!("Chosen r1 #{} e3", u64::MAX));
    }
}
