//! What sites say to each other, and what clients ask their gateway. Every message has one compact `Display`, used by
//! traces, logs and golden files.

mod administration;
mod attempt;
mod log;
mod read;
mod resolution;

pub use administration::{Admin, Answer, Measured, Request, Status};
pub use attempt::{
    ABORTED, ASSUMED, ATTEMPT, Attempt, Collected, Handoff, HandoffId, Meta, Part, PreparedRecord, RangeCheck, ReadCheck, Seen, Voted,
};
pub(crate) use log::cut_to_size;
pub use log::{CopyId, CopyPage, LogEntry, LogHead, LogPage, Pulled};
pub use read::{Denial, How, Query, Read, ReadId, Rows};
pub use resolution::{Doubt, Inquiry, Stopped, Testified};

use crate::resolution::Round;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::{Key, RegionId, Time, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A site is alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Its clock.
    pub sent: Time,
    /// When the oldest transaction began that is still running there.
    pub oldest: Timestamp,
    /// When it handed over the oldest commit of which it awaits the end.
    pub handing: Timestamp,
    /// When its incarnation began.
    pub incarnation: Timestamp,
    /// Counts its pings since.
    pub ping: u64,
    /// That of its placement.
    pub epoch: u64,
    /// No attempt with a commit timestamp at or below it is in doubt or carried there, or will be in this epoch.
    pub closed: Timestamp,
}

/// A message that promises nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the variants are documented; their fields are named after the types above
pub enum Note {
    /// Gateway to replica: read.
    Read(Read),
    /// Replica to gateway: what was read.
    Rows(Rows),
    /// Replica to gateway: not served.
    Denied { read: ReadId, denial: Denial },
    /// Gateway to replica: the transaction is over, its read locks may go.
    Release { txn: TxnId },
    /// Gateway to the gateway that is to commit for it: commit this. Said again until answered.
    Handoff(Handoff),
    /// The answer.
    HandedBack { id: HandoffId, result: Result<Committed, TxnError> },
    /// Gateway to each region's coordinator: vote on this.
    Accept { meta: Meta, parts: Vec<(u16, Part)> },
    /// Gateway to the regions that do not vote: a commit is proposed at this timestamp. What begins there after it ended is to
    /// lie above it, as where its `Accept` came by.
    Heard { at: Timestamp },
    /// Coordinator to the cohorts of its region: prepare.
    Prepare { meta: Meta, part: Part },
    /// Cohort to its coordinator: cannot prepare.
    CannotPrepare { attempt: Attempt, refusal: Refusal },
    /// Coordinator to the cohorts of its region: the region has voted no, which is on disk; let go of the locks.
    Unprepare { attempt: Attempt },
    /// Coordinator to the cohort at its own site: committed, apply it. A cohort that is not prepared gets its part too.
    Apply { meta: Meta, part: Option<Part>, floor: Timestamp },
    /// Gateway to each region's coordinator: take your vote back if it is provisional, vote no if there is none.
    Withdraw { meta: Meta },
    /// Gateway, or another site that counted the votes, to each region's coordinator: the outcome. An abort is only a claim: coordinators that are
    /// bound by a round of its [resolution](crate::resolution) do not believe it.
    Decided { meta: Meta, decision: Decision },
    /// Gateway to the passive replicas of a shard: committed, this is what it wrote there.
    Copy { attempt: Attempt, at: Timestamp, floor: Timestamp, writes: Vec<(Key, Option<Value>)>, meta: Option<Meta> },
    /// From the site that decides an attempt of `epoch` to the sites of the shards whose coordinators do not vote on it: what is the highest
    /// timestamp that you have prepared?
    AskHigh { attempt: Attempt, epoch: u64 },
    /// The answer.
    High { attempt: Attempt, high: Timestamp },
    /// A site in doubt to the gateway: are you still deciding? No answer if so.
    AskGateway { meta: Meta },
    /// Gateway to the site in doubt: not any more, if ever.
    Over { attempt: Attempt },
    /// A site in doubt, whose gateway is silent, to each region's coordinator: what is your vote, for ever?
    AskVote { meta: Meta },
    /// Coordinator that is asked to promise a round to the attempt's gateway and cohorts, at other sites of its region: what have you seen? Count
    /// no votes any more, and apply it only when I say so.
    Bind { meta: Meta },
    /// Leader of a resolution to each survivor's coordinator: what do you know? Count no votes any more, and promise this round.
    Inquire(Inquiry),
    /// The same to all of them, once it has heard them: accept this.
    Propose { meta: Meta, round: Round, decision: Decision, contents: Option<Part> },
    /// The same to all of them, and to the gateway: all have accepted this.
    Concluded { meta: Meta, decision: Decision },
    /// The leader of `round` to all of them: nobody can tell how the attempt ended, and nobody waits for that any more.
    Untold { meta: Meta, round: Round },
    /// The answer to `Inquire` or `Propose` of a coordinator that has promised a higher round.
    Outranked { attempt: Attempt, promised: Round },
    /// Replica to a peer: the rows of these log entries.
    Fetch { seqs: Vec<u64> },
    /// Site to site: alive?
    Ping(Ping),
    /// Answer to `Ping`.
    Pong { sent: Time },
    /// Site to site: what the sender has measured.
    Measured(Measured),
    /// Site to site: which placement have you adopted?
    AskPlacement,
    /// To all sites: have changes of the placement that are in doubt settled without regions that are `lost`.
    Settle { lost: Regions },
    /// Replica of this placement to one that was active before, or to the one that it copied from: tell me once you have stopped, and what you
    /// are in doubt about, from the attempt after this one on.
    AskStopped { placement: Placement, after: Option<Attempt> },
    /// Replica without rows to one that is settled in `epoch` or later: your rows, from this key on.
    CopyRows { copy: CopyId, from: Key, epoch: u64 },
}

/// A message that promises something durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Promise {
    /// As [`Note::Prepare`], where earlier attempts of the transaction are on record as aborted.
    PrepareNext { meta: Meta, part: Part },
    /// As [`Note::Apply`], to a cohort at another site: the outcome is on record at its coordinator.
    Apply { meta: Meta, part: Option<Part>, floor: Timestamp },
    /// Cohort to its coordinator: prepared.
    Prepared { attempt: Attempt, shard: u16 },
    /// Coordinator to the cohorts of its region and to the gateway: that it aborted is on record here, agreed upon `without` these regions, which
    /// are lost.
    Aborted { meta: Meta, without: Regions },
    /// The answer to [`Note::Bind`] of a site that knows no outcome.
    Bound {
        /// The attempt.
        attempt: Attempt,
        /// The final votes that it has seen.
        votes: Vec<(RegionId, Vote)>,
        /// The attempt is certainly not applied there: it is prepared, or carried and not among the rows.
        lacks: bool,
    },
    /// Coordinator to the leader of a round: promised, and this is what the region knows.
    Testified(Testified),
    /// The same: a conflicting attempt here may commit.
    Contested { attempt: Attempt, region: RegionId, round: Round },
    /// The same: what that round proposes is accepted.
    Accepted { attempt: Attempt, region: RegionId, round: Round },
    /// Coordinator to the gateway and to whoever asked: the region's vote.
    Vote(Voted),
    /// Coordinator to whoever asked: resolved here long ago. If it committed, the log up to `log_end` has it.
    Forgotten { attempt: Attempt, region: RegionId, log_end: u64 },
    /// Cohort to its coordinator: the outcome is applied.
    Applied { attempt: Attempt, shard: u16 },
    /// Coordinator to the gateway of an attempt of two rounds: committed and applied in this region.
    Confirmed { attempt: Attempt, region: RegionId },
    /// Replica to its peers in other regions: your log is taken over so far; what came after?
    Pull(Pulled),
    /// Replica to the peer that pulled: the log after that.
    Log(LogPage),
    /// Replica to the peer that fetched.
    Entries { entries: Vec<LogEntry> },
    /// The placement that this site has adopted.
    Placed { placement: Placement },
    /// This replica votes in no epoch before that of the placement any more.
    Stopped(Stopped),
    /// Replica to the one that copies: the newest rows of a range, deletions included.
    CopiedRows(CopyPage),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Read(Read { txn, query, how, .. }) => write!(f, "Read {txn} {how} {query}"),
            Note::Rows(Rows { rows, upto, above, floor, .. }) => {
                write!(f, "Rows ")?;
                list(f, rows.iter().map(|row| format!("{}@{}", row.key, row.version)))?;
                if let Some(upto) = upto {
                    write!(f, "…{upto}")?;
                }
                if *above > Timestamp::ZERO {
                    write!(f, " above {above}")?;
                }
                if *floor > Timestamp::ZERO {
                    write!(f, " floor {floor}")?;
                }
                Ok(())
            }
            Note::Denied { denial, .. } => write!(f, "Denied {denial}"),
            Note::Release { txn } => write!(f, "Release {txn}"),
            Note::Handoff(Handoff { id, parts, .. }) => {
                write!(f, "Handoff {id}")?;
                parts.iter().try_for_each(|(shard, part)| write!(f, " {shard}:{part}"))
            }
            Note::HandedBack { id, result: Ok(committed) } => write!(f, "HandedBack {id} committed at {}", committed.at),
            Note::HandedBack { id, result: Err(error) } => write!(f, "HandedBack {id} {error}"),
            Note::Accept { meta, parts } => {
                write!(f, "Accept {} at {}", meta.attempt, meta.at)?;
                parts.iter().try_for_each(|(shard, part)| write!(f, " {shard}:{part}"))
            }
            Note::Heard { at } => write!(f, "Heard {at}"),
            Note::Prepare { meta, part } => write!(f, "Prepare {} at {} {part}", meta.attempt, meta.at),
            Note::CannotPrepare { attempt, refusal } => write!(f, "CannotPrepare {attempt} {refusal}"),
            Note::Unprepare { attempt } => write!(f, "Unprepare {attempt}"),
            Note::Apply { meta, part, .. } => {
                write!(f, "Apply {}{}", meta.attempt, if part.is_some() { " with its part" } else { "" })
            }
            Note::Withdraw { meta } => write!(f, "Withdraw {}", meta.attempt),
            Note::Decided { meta, decision } => write!(f, "Decided {} {decision}", meta.attempt),
            Note::AskHigh { attempt, .. } => write!(f, "AskHigh {attempt}"),
            Note::High { attempt, high } => write!(f, "High {attempt} {high}"),
            Note::Copy { attempt, at, writes, .. } => {
                write!(f, "Copy {attempt} at {at} w")?;
                list(f, writes.iter().map(|(key, _)| key))
            }
            Note::AskGateway { meta } => write!(f, "AskGateway {}", meta.attempt),
            Note::Over { attempt } => write!(f, "Over {attempt}"),
            Note::Settle { lost } => write!(f, "Settle without {lost}"),
            Note::AskVote { meta } => write!(f, "AskVote {}", meta.attempt),
            Note::Inquire(Inquiry { meta, round, without }) => write!(f, "Inquire {} round {round} without {without}", meta.attempt),
            Note::Concluded { meta, decision } => write!(f, "Concluded {} {decision}", meta.attempt),
            Note::Propose { meta, round, decision, .. } => write!(f, "Propose {} round {round} {decision}", meta.attempt),
            Note::Untold { meta, round } => write!(f, "Untold {} round {round}", meta.attempt),
            Note::Outranked { attempt, promised } => write!(f, "Outranked {attempt} by round {promised}"),
            Note::Fetch { seqs } => {
                write!(f, "Fetch ")?;
                list(f, seqs.iter())
            }
            Note::Bind { meta } => write!(f, "Bind {}", meta.attempt),
            Note::Ping(Ping { oldest, .. }) => write!(f, "Ping oldest {oldest}"),
            Note::Pong { .. } => write!(f, "Pong"),
            Note::Measured(_) => write!(f, "Measured"),
            Note::AskPlacement => write!(f, "AskPlacement"),
            Note::AskStopped { placement, .. } => write!(f, "AskStopped {placement}"),
            Note::CopyRows { from, epoch, .. } => write!(f, "CopyRows from {from} epoch {epoch}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Apply { meta, part, .. } => {
                write!(f, "Apply {}{}", meta.attempt, if part.is_some() { " with its part" } else { "" })
            }
            Promise::Bound { attempt, votes, lacks } => {
                write!(f, "Bound {attempt} has seen {}{}", votes.len(), if *lacks { ", lacks it" } else { "" })
            }
            Promise::Prepared { attempt, shard } => write!(f, "Prepared {attempt} shard {shard}"),
            Promise::PrepareNext { meta, part } => write!(f, "PrepareNext {} at {} {part}", meta.attempt, meta.at),
            Promise::Aborted { meta, .. } => write!(f, "Aborted {}", meta.attempt),
            Promise::Contested { attempt, region, round } => write!(f, "Contested {attempt} {region} round {round}"),
            Promise::Testified(Testified { attempt, region, round, testimony, .. }) => {
                write!(f, "Testified {attempt} {region} round {round} {testimony}")
            }
            Promise::Accepted { attempt, region, round } => write!(f, "Accepted {attempt} {region} round {round}"),
            Promise::Vote(Voted { meta, region, vote, .. }) => write!(f, "Vote {} {region} {vote}", meta.attempt),
            Promise::Forgotten { attempt, region, log_end } => write!(f, "Forgotten {attempt} {region} log {log_end}"),
            Promise::Applied { attempt, shard } => write!(f, "Applied {attempt} shard {shard}"),
            Promise::Confirmed { attempt, region } => write!(f, "Confirmed {attempt} {region}"),
            Promise::Placed { placement } => write!(f, "Placed {placement}"),
            Promise::Stopped(Stopped { epoch, log_end, read_upto, doubts, .. }) => {
                write!(f, "Stopped for epoch {epoch} log {log_end} read {read_upto}")?;
                if doubts.is_empty() {
                    return Ok(());
                }
                write!(f, " in doubt about ")?;
                list(f, doubts.iter().map(|doubt| doubt.record.meta.attempt))
            }
            Promise::CopiedRows(CopyPage { rows, next, .. }) => {
                write!(f, "CopiedRows ")?;
                list(f, rows.iter().map(|row| format!("{}@{}", row.key, row.version)))?;
                if next.is_some() { write!(f, "…") } else { Ok(()) }
            }
            Promise::Pull(Pulled { after, safe, .. }) => write!(f, "Pull after {after} safe {safe}"),
            Promise::Log(LogPage { after, heads, end, more, closed, .. }) => {
                write!(f, "Log {after}..{end}{} closed {closed} ", if *more { "…" } else { "" })?;
                list(f, heads.iter().map(|head| head.attempt))
            }
            Promise::Entries { entries } => {
                write!(f, "Entries ")?;
                list(f, entries.iter().map(|entry| entry.attempt))
            }
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = T>) -> fmt::Result {
    write!(f, "{{")?;
    for (index, item) in items.enumerate() {
        write!(f, "{}{item}", if index > 0 { "," } else { "" })?;
    }
    write!(f, "}}")
}
