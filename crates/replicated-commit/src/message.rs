//! What sites say to each other, and what clients ask their gateway. Every message has one compact `Display`, used by
//! traces, logs and golden files.

use super::config::PAGE_BYTES_MAX;
use crate::resolution::{Round, Testimony};
use rhumb_commit::interactive;
use rhumb_commit::placement::{Placement, Regions};
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_commit::votes::{Decision, Refusal, Tally, Vote};
use rhumb_core::{Key, KeyRange, RegionId, Row, SiteId, Span, Table, Time, Timestamp, TxnId, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One attempt to commit a transaction. A gateway makes another only when the one before has certainly aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The transaction.
    pub txn: TxnId,
    /// When its gateway made it; a later attempt of the same transaction has a later one.
    pub made: Timestamp,
}

impl Attempt {
    /// The last, in their order, of all attempts of transactions that began by `then`.
    pub fn last_begun(then: Timestamp) -> Attempt {
        let gateway = SiteId { region: RegionId(u16::MAX), shard: u16::MAX };
        Attempt { txn: TxnId { began: then, gateway }, made: Timestamp::MAX }
    }
}

/// Names a commit that one gateway hands over to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HandoffId {
    /// Whose transaction it is.
    pub gateway: SiteId,
    /// The incarnation of that gateway: its clock may show a timestamp that it has shown in another one.
    pub incarnation: Timestamp,
    /// When it was handed over; no two have the same time in one incarnation.
    pub made: Timestamp,
}

/// What every participant must know of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Which attempt.
    pub attempt: Attempt,
    /// The commit timestamp that it proposes.
    pub at: Timestamp,
    /// The epoch of the placement in which it was made.
    pub epoch: u64,
    /// The regions whose votes decide it: those that were active in that epoch.
    pub electorate: Regions,
    /// Those of them that it declares lost: they do not vote for it, and nobody waits for their votes.
    pub declares_lost: Regions,
    /// Its gateway waits to hear that a majority has applied it.
    pub two_rounds: bool,
    /// The shard whose site coordinates in each region.
    pub coordinator: u16,
    /// The shards that it touches, in order; the coordinator's is among them.
    pub participants: Vec<u16>,
}

impl Meta {
    /// The site that coordinates the attempt in `region`.
    pub fn coordinator_in(&self, region: RegionId) -> SiteId {
        SiteId { region, shard: self.coordinator }
    }

    /// The same, if it has parts in several shards.
    pub fn of_several_shards(&self) -> Option<Meta> {
        (self.participants.len() > 1).then(|| self.clone())
    }

    /// Adds to `tally` that the regions which the attempt itself declares lost do not vote for it.
    pub fn refuse_for_lost(&self, tally: &mut Tally) {
        self.declares_lost.iter().for_each(|region| tally.record_if_open(region, Vote::No(Refusal::StaleConfiguration)));
    }
}

impl Part {
    /// True if one of the two writes what the other reads or writes.
    pub fn conflicts(&self, other: &Part) -> bool {
        let written: BTreeSet<&Key> = self.writes.iter().map(|(key, _)| key).collect();
        self.has_read_from(other) || other.has_read_from(self) || other.writes.iter().any(|(key, _)| written.contains(key))
    }

    /// True if it reads what `other` writes.
    pub fn has_read_from(&self, other: &Part) -> bool {
        let read: BTreeSet<&Key> = self.reads.iter().map(|read| &read.key).collect();
        let within = |key: &Key| self.ranges.iter().any(|check| check.range.contains(key));
        other.writes.iter().any(|(key, _)| read.contains(key) || within(key))
    }

    /// The placement that it writes.
    pub fn placement(&self) -> Option<Placement> {
        let mut written = self.writes.iter().filter(|(key, _)| Placement::is_key(key));
        written.find_map(|(_, value)| value.as_ref().and_then(Placement::decode))
    }

    /// The regions that it declares lost.
    pub fn declares_lost(&self) -> Regions {
        self.placement().map_or(Regions::NONE, |placement| placement.declares_lost())
    }
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCheck {
    /// Its key.
    pub key: Key,
    /// The version that was read; zero if there was none.
    pub version: Timestamp,
}

/// A range that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeCheck {
    /// The range, cut to what was read of it.
    pub range: KeyRange,
    /// Every row found in it, deletions included, with its version, in key order.
    pub rows: Vec<(Key, Timestamp)>,
}

/// What an attempt does in one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Rows that were read.
    pub reads: Vec<ReadCheck>,
    /// Ranges that were read.
    pub ranges: Vec<RangeCheck>,
    /// Rows to write; `None` deletes.
    pub writes: Vec<(Key, Option<Value>)>,
}

/// Which rows to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// These keys.
    Keys(Vec<Key>),
    /// A range, `limit` rows at the most, deletions counted.
    Range {
        /// Which keys.
        range: KeyRange,
        /// At most so many rows.
        limit: u32,
        /// From the end downwards.
        reverse: bool,
    },
}

/// How a replica is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Take a shared lock, then the newest version.
    Lock,
    /// The newest version, no lock.
    Newest,
    /// As of a timestamp that no later commit may undercut.
    At(Timestamp),
    /// As of a timestamp that is closed already, or soon will be.
    Stale(Timestamp),
}

/// Names a read at its gateway, for the replicas that it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReadId {
    /// The incarnation of the gateway: its clock may show a timestamp that it has shown in another one.
    pub incarnation: Timestamp,
    /// When it was asked.
    pub made: Timestamp,
    /// It is of the rows that are expected beside those of a scan.
    pub of_expected: bool,
}

/// Why a replica did not serve a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Denial {
    /// Another transaction holds a row exclusively.
    Locked,
    /// Too many reads wait already.
    Busy,
    /// There is no copy here, or not yet a complete one.
    NoCopy,
    /// Versions that old are no longer kept; this is the oldest timestamp that can be read.
    Collected(Timestamp),
}

/// A commit in a shard's log, without its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// Its place in the log of the replica that says so.
    pub seq: u64,
    /// The attempt that committed.
    pub attempt: Attempt,
    /// Its commit timestamp.
    pub at: Timestamp,
    /// Its floor.
    pub floor: Timestamp,
}

/// A commit in a shard's log, with its rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its place in the log.
    pub seq: u64,
    /// The attempt that committed.
    pub attempt: Attempt,
    /// Its commit timestamp.
    pub at: Timestamp,
    /// Its floor.
    pub floor: Timestamp,
    /// What it wrote in this shard, as far as these versions are still kept.
    pub writes: Vec<(Key, Option<Value>)>,
    /// True if some were collected in the meantime.
    pub partial: bool,
    /// What it is, if it has parts in other shards, too.
    pub meta: Option<Meta>,
}

impl LogEntry {
    /// The same without its rows.
    pub(super) fn head(&self) -> LogHead {
        LogHead { seq: self.seq, attempt: self.attempt, at: self.at, floor: self.floor }
    }
}

/// A read at one replica. One of a majority is of the active regions of `epoch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// Its name.
    pub read: ReadId,
    /// The epoch in which its gateway asks.
    pub epoch: u64,
    /// Of which transaction.
    pub txn: TxnId,
    /// Which rows.
    pub query: Query,
    /// How.
    pub how: How,
}

/// What one replica has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Which read that was.
    pub read: ReadId,
    /// The rows: of a read by key those of the first of its keys, as many as there are.
    pub rows: Vec<Row>,
    /// A scan that was cut off speaks for the rows up to here only.
    pub upto: Option<Key>,
    /// The highest timestamp above the one asked for at which a row has a version or a prepared write. Zero, as the two below, unless the read
    /// was [at](How::At) a timestamp.
    pub above: Timestamp,
    /// The highest of any commit that the replica knows.
    pub high: Timestamp,
    /// The highest of the versions' floors.
    pub floor: Timestamp,
}

/// A commit that one gateway asks another one to run, in the other's incarnation that began at `incarnation`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// Its name.
    pub id: HandoffId,
    /// The beginning of the other gateway's incarnation that is to run it.
    pub incarnation: Timestamp,
    /// What the transaction does, by shard.
    pub parts: Vec<(u16, Part)>,
    /// Its client waits until a majority has applied it.
    pub two_rounds: bool,
}

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

/// A leader asks the survivors what they know of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inquiry {
    /// Which attempt.
    pub meta: Meta,
    /// The round that it leads.
    pub round: Round,
    /// The regions that are lost.
    pub without: Regions,
}

/// A region has promised a round, and this is what it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Testified {
    /// Of which attempt.
    pub attempt: Attempt,
    /// Which region.
    pub region: RegionId,
    /// The round.
    pub round: Round,
    /// What it knows.
    pub testimony: Testimony,
    /// What the attempt reads and writes in this shard, if the region is prepared for it.
    pub contents: Option<Part>,
}

/// How far a replica has taken over the log of a peer, which is to keep the rest for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulled {
    /// The log is taken over up to here.
    pub after: u64,
    /// Every commit at or below it is applied.
    pub safe: Timestamp,
    /// The placement of this epoch says that it wants the log.
    pub epoch: u64,
    /// The epoch that it is settled in, zero as long as not all rows are here.
    pub settled: u64,
}

/// A page of a replica's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// It begins after this place.
    pub after: u64,
    /// What it lists.
    pub heads: Vec<LogHead>,
    /// It ends here.
    pub end: u64,
    /// There is more.
    pub more: bool,
    /// Once all up to `end` is applied, and there is no more, nothing at or below it will ever be committed with this replica's vote that is not
    /// in the log.
    pub closed: Timestamp,
    /// The log has lost what it had up to here.
    pub begins: u64,
    /// Deletions up to here may be gone.
    pub collected: Timestamp,
    /// The epoch of the replica's placement.
    pub epoch: u64,
}

/// A page of a replica's rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPage {
    /// It begins with this key.
    pub from: Key,
    /// The newest version of each, deletions included.
    pub rows: Vec<Row>,
    /// Where the next page begins; none after the last one.
    pub next: Option<Key>,
    /// Deletions up to here may be gone.
    pub collected: Timestamp,
    /// No row has a floor above it.
    pub highest: Timestamp,
    /// The epoch that the replica is settled in.
    pub epoch: u64,
}

/// Cuts rows in the order of their keys off where they would make too long a message; tells if it did. One row always stays.
pub(super) fn cut_to_size(rows: &mut Vec<Row>) -> bool {
    let mut bytes = 0;
    let fitting = rows.iter().take_while(|row| {
        bytes += row.bytes();
        bytes <= PAGE_BYTES_MAX
    });
    let keep = fitting.count().max(1);
    let cut = keep < rows.len();
    rows.truncate(keep);
    cut
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
    CopyRows { from: Key, epoch: u64 },
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
    /// Coordinator to the cohorts of its region and to the gateway: that it aborted is on record here.
    Aborted { meta: Meta },
    /// The answer to [`Note::Bind`] of a site that knows no outcome.
    Bound { attempt: Attempt, votes: Vec<(RegionId, Vote)> },
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

/// A region's vote on an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voted {
    /// On what.
    pub meta: Meta,
    /// Whose vote.
    pub region: RegionId,
    /// The vote.
    pub vote: Vote,
    /// The highest timestamp that its coordinator's site had prepared or applied when it said so.
    pub high: Timestamp,
}

impl Voted {
    /// The site that cast the vote for its region.
    pub fn coordinator(&self) -> SiteId {
        SiteId { region: self.region, shard: self.meta.coordinator }
    }
}

/// A prepared attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedRecord {
    /// Which.
    pub meta: Meta,
    /// Its locks and writes in this shard.
    pub part: Part,
}

/// What a site has measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Round trips to the sites of its shard in other regions, as far as known.
    pub rtts: Vec<(RegionId, Span)>,
    /// Commits that its clients asked for, in thousandths a second.
    pub commits_milli: u64,
    /// Reads and scans of transactions that were to commit, likewise.
    pub reads_milli: u64,
}

/// An attempt that a replica is in doubt about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Which, and what it reads and writes.
    pub record: PreparedRecord,
    /// It is not prepared for it itself: it keeps the locks for others that are.
    pub carried: bool,
}

/// A replica votes in no epoch before `epoch` any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The epoch of the placement that it has adopted.
    pub epoch: u64,
    /// The epoch that it is settled in, zero as long as not all rows are here.
    pub settled: u64,
    /// It speaks for what it voted on in this epoch and later.
    pub since: u64,
    /// Its log up to here has what it voted for, but for what it is in doubt about.
    pub log_end: u64,
    /// Nothing above it was read here in the epochs before.
    pub read_upto: Timestamp,
    /// The attempts of the epochs before that it is in doubt about, those after `after`, in order.
    pub doubts: Vec<Doubt>,
    /// The attempt that was asked from.
    pub after: Option<Attempt>,
    /// There are more.
    pub more: bool,
}

/// What clients and operators ask a site.
pub type Request = interactive::Request<Admin>;

/// What they are told.
pub type Answer = interactive::Answer<Status>;

/// What operators ask a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    /// Settle changes of the placement that are in doubt without these regions, which an operator is about to declare lost. Answered by
    /// [`interactive::Answer::Done`], before that has happened.
    Settle {
        /// Which regions.
        lost: Regions,
    },
    /// How is this site? Answered by its [`Status`].
    Status,
}

/// The state of a site, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// False while it recovers from its own disk.
    pub serving: bool,
    /// The placement that it has adopted.
    pub placement: Placement,
    /// True if it votes, promises and is read in that placement's epoch as far as its role goes: it knows all before, and its
    /// copy is whole.
    pub settled: bool,
    /// Transactions that its clients have open.
    pub open_transactions: usize,
    /// Attempts prepared here, outcome unknown.
    pub prepared: usize,
    /// Of these, those that wait for a vote that no reachable region can give.
    pub in_doubt: usize,
    /// Up to this timestamp every commit of the cluster is applied here.
    pub safe: Timestamp,
    /// The regions whose sites all answered lately.
    pub reachable: Vec<RegionId>,
    /// The measurements of every site, as far as this one has received them.
    pub measured: BTreeMap<SiteId, Measured>,
    /// Round trips to the sites of this site's shard, by region, where measured.
    pub rtts: Vec<(RegionId, rhumb_core::Span)>,
    /// How full its tables and queues are.
    pub tables: Vec<Table>,
}

/// What is [agreed on](rhumb_core::Effects::agree) of an attempt: its commit timestamp, or, once that is on disk, that it aborted.
pub const ATTEMPT: &str = "attempt";
/// Attempts are recorded under this topic that may count as committed because a lost region may have voted for them.
pub const ASSUMED: &str = "assumed";
/// What is recorded of an attempt that aborted.
pub const ABORTED: Option<Timestamp> = None;

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.txn, self.made)
    }
}

impl fmt::Display for HandoffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.gateway, self.made)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Keys(keys) => list(f, keys.iter()),
            Query::Range { range, limit, reverse } => write!(f, "{range}{}{limit}", if *reverse { "⇣" } else { "⇡" }),
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Lock => write!(f, "lock"),
            How::Newest => write!(f, "newest"),
            How::At(at) => write!(f, "at {at}"),
            How::Stale(at) => write!(f, "stale {at}"),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::Locked => write!(f, "locked"),
            Denial::Busy => write!(f, "busy"),
            Denial::NoCopy => write!(f, "no copy"),
            Denial::Collected(horizon) => write!(f, "collected below {horizon}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r")?;
        list(f, self.reads.iter().map(|read| &read.key))?;
        if !self.ranges.is_empty() {
            write!(f, " s")?;
            list(f, self.ranges.iter().map(|range| &range.range))?;
        }
        write!(f, " w")?;
        list(f, self.writes.iter().map(|(key, _)| key))
    }
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
            Note::CopyRows { from, epoch } => write!(f, "CopyRows from {from} epoch {epoch}"),
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::Apply { meta, part, .. } => {
                write!(f, "Apply {}{}", meta.attempt, if part.is_some() { " with its part" } else { "" })
            }
            Promise::Bound { attempt, votes } => write!(f, "Bound {attempt} has seen {}", votes.len()),
            Promise::Prepared { attempt, shard } => write!(f, "Prepared {attempt} shard {shard}"),
            Promise::PrepareNext { meta, part } => write!(f, "PrepareNext {} at {} {part}", meta.attempt, meta.at),
            Promise::Aborted { meta } => write!(f, "Aborted {}", meta.attempt),
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
