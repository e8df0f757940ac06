//! A transaction as SQL and every other client in the process see it: begin, read, buffer writes, commit.
//!
//! ```text
//!   begin(mode) → get / scan (await) → put / delete (buffered, read back by the same transaction)
//!               → commit → Committed{at} | TxnError
//! ```
//!
//! These are the traits; the node implements them over the site's actor, so that nothing above knows which commit
//! protocol answers.

pub use crate::buffer::Savepoint;
pub use crate::error::TxnError;
use crate::one_shot::execution::{Output, Rejection};
use crate::one_shot::operation::Operation;
use async_trait::async_trait;
use rhumb_core::{Key, KeyRange, Row, Span, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadMode {
    /// Ask all regions for a shared lock, take the newest version among a majority. One wide-area trip per read. The
    /// default inside explicit transactions. Where commits are validated in a common order, as by Catenae, there are no locks: the
    /// transaction reads the newest snapshot.
    Locking,
    /// Read the nearest replica, active or passive, without a lock; the votes at commit validate the versions read. No
    /// wide-area trip where this region holds a copy. The default of autocommit statements that write.
    Optimistic,
    /// The same from the nearest active replica: never behind the last commit that it voted for.
    Active,
    /// Read-only at one timestamp, from a majority, without a commit: sees every commit that ended before it began. One
    /// wide-area trip per read. What it does not promise between several reads under skewed clocks: decision 0003.
    Snapshot,
    /// Read-only, this region's replica, as of a timestamp in the past. No wide-area trip.
    Stale(Timestamp),
}

impl ReadMode {
    /// True if a transaction that reads so may not write.
    pub fn is_read_only(self) -> bool {
        matches!(self, ReadMode::Snapshot | ReadMode::Stale(_))
    }

    /// True if what is read so is one replica's word, to be validated by the votes.
    pub fn is_optimistic(self) -> bool {
        matches!(self, ReadMode::Optimistic | ReadMode::Active)
    }
}

/// How a transaction commits, as far as its client may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitOptions {
    /// The client is answered once a majority has not only voted but applied the writes: two wide-area round trips instead of
    /// one. It buys no safety; it is the model protocol of GPlacer, for comparison.
    pub two_rounds: bool,
    /// The commit may be handed to the region that the placement names for it.
    pub handoff: bool,
}

impl Default for CommitOptions {
    fn default() -> CommitOptions {
        CommitOptions { two_rounds: false, handoff: true }
    }
}

/// What a committed transaction is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The timestamp of its versions; of a read-only transaction the one it read at.
    pub at: Timestamp,
    /// The wide-area round trips that it waited for, reads and commit together.
    pub trips: u32,
}

/// What a region holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A copy, and a vote.
    Active,
    /// A copy, a little behind.
    Passive,
    /// Nothing: its clients read elsewhere.
    None,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Active => "active",
            Role::Passive => "passive",
            Role::None => "none",
        })
    }
}

/// One region as the gateway sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionStatus {
    /// Its name.
    pub name: String,
    /// True for the gateway's own region.
    pub local: bool,
    /// The number of its sites.
    pub sites: u32,
    /// How many of them answered lately.
    pub reachable: u32,
    /// The measured round trip to it; `None` if no site of it answered yet.
    pub rtt: Option<Span>,
    /// The floor of a commit there: the round trip from it to the nearest active regions that complete a majority of those,
    /// as far as this gateway knows it.
    pub floor: Option<Span>,
    /// What it holds.
    pub role: Role,
    /// The name of the region where its clients read, if the placement names one.
    pub reads_at: Option<String>,
    /// Likewise, where they commit.
    pub commits_at: Option<String>,
}

/// A step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A read: of some rows by their keys, or of a range.
    Read(ReadMode),
    /// The commit of a transaction that read so.
    Commit {
        /// How it read.
        reads: ReadMode,
        /// True if its client is answered only once a majority has applied the writes.
        two_rounds: bool,
        /// True if it may be handed to the region that the placement names.
        handoff: bool,
    },
}

/// What a step waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Round trips between regions, one after the other.
    pub trips: u32,
    /// How long these take.
    pub time: Span,
    /// The regions that have to answer, besides the gateway's own.
    pub regions: Vec<String>,
}

/// What became of operations that a transaction carried out at its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operated {
    /// They took effect; what each of them returned.
    Done(Committed, Vec<Output>),
    /// One of them failed, so nothing took effect.
    Failed {
        /// Which one, counted from 0.
        place: usize,
        /// Why.
        why: Rejection,
    },
}

/// A site as its own clients see it.
#[async_trait]
pub trait Gateway: Send + Sync + 'static {
    /// Begins a transaction.
    async fn begin(&self, mode: ReadMode) -> Result<Box<dyn Transaction>, TxnError>;

    /// A timestamp of now, by this site's hybrid clock.
    fn now(&self) -> Timestamp;

    /// All regions, in the order of the cluster.
    fn regions(&self) -> Vec<RegionStatus>;

    /// What a step of a transaction begun here would wait for now; `None` if that is not known.
    fn wait(&self, _step: Step) -> Option<Wait> {
        None
    }

    /// True if its transactions can [operate](Transaction::operate).
    fn takes_operations(&self) -> bool {
        false
    }
}

/// Bytes of rows after which a read ends early: [`Transaction::get_some`], [`Transaction::scan`].
pub const READ_BYTES_MAX: usize = 4 << 20;

/// The rows of a part of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// In the order asked for.
    pub rows: Vec<Row>,
    /// What was not looked at; none if the range holds no more.
    pub rest: Option<KeyRange>,
}

/// What is left of `range` once the rows up to `last` are known, in the order of their keys or its reverse.
pub fn rest_of(range: KeyRange, last: &Key, reverse: bool) -> Option<KeyRange> {
    let rest = if reverse { KeyRange::new(range.start, last.clone()) } else { KeyRange::new(last.successor(), range.end) };
    (!rest.is_empty()).then_some(rest)
}

/// A transaction in progress. Dropped without `commit`, it is rolled back.
#[async_trait]
pub trait Transaction: Send {
    /// The rows of the first of `keys`, in that order: of all of them, in one round, unless they have more than [`READ_BYTES_MAX`]; of one at
    /// least. Reads back this transaction's own writes, whose version is `Timestamp::MAX`; a key never written has version zero and no value.
    async fn get_some(&mut self, keys: &[Key]) -> Result<Vec<Row>, TxnError>;

    /// The rows of `keys`, in that order, whatever they have.
    async fn get(&mut self, keys: &[Key]) -> Result<Vec<Row>, TxnError> {
        let mut rows = Vec::with_capacity(keys.len());
        while rows.len() < keys.len() {
            rows.extend(self.get_some(&keys[rows.len()..]).await?);
        }
        Ok(rows)
    }

    /// Live rows of the range in key order (or its reverse), this transaction's own writes among them: `limit` of them, or fewer if the range
    /// holds no more or they have more than [`READ_BYTES_MAX`]; one at least, if there is any.
    async fn scan(&mut self, range: KeyRange, limit: usize, reverse: bool) -> Result<Scanned, TxnError>;

    /// Makes the transaction depend on `key` still being at `version`, which some earlier transaction read (a cached
    /// table descriptor, say). Costs no round trip: it is validated along with the rest, and if it does not hold the
    /// transaction ends in a conflict.
    fn expect(&mut self, key: Key, version: Timestamp);

    /// What it reads is to hold this commit, the last one that its client knows of. Before its first read. Where reads are newer than
    /// that anyway, or need not be, there is nothing to do.
    fn follow(&mut self, _commit: Timestamp) {}

    /// From here on a read that is not answered within `longest` ends in [`TxnError::LockTimeout`]; `None`: it waits for as long as the
    /// protocol does. A gateway is not told why a replica does not answer, so the time is that of the trip and of locks together.
    /// Where no read waits for other transactions there is nothing to do.
    fn bound_waits(&mut self, _longest: Option<Span>) {}

    /// Buffers a write.
    fn put(&mut self, key: Key, value: Value) -> Result<(), TxnError>;

    /// Buffers a deletion.
    fn delete(&mut self, key: Key) -> Result<(), TxnError>;

    /// A statement runs that may write. Even if it finds nothing to write, the commit makes sure that what was read holds, where a transaction
    /// that only reads is content with its snapshot.
    fn may_write(&mut self) {}

    /// What was written so far, to be [gone back to](Transaction::roll_back_to).
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes what was written since the savepoint. What was read since stays read, and is validated or stays locked like all else.
    fn roll_back_to(&mut self, savepoint: Savepoint);

    /// Drops what was written: a commit then does no more than validate what was read.
    fn forget_writes(&mut self);

    /// Reads from here on are done in `mode`. Among `Optimistic`, `Active` and `Locking` only.
    fn set_mode(&mut self, mode: ReadMode) -> Result<(), TxnError>;

    /// How it is to commit.
    fn set_commit(&mut self, options: CommitOptions);

    /// How reads are done now.
    fn mode(&self) -> ReadMode;

    /// True if all that it reads is of one moment, whatever others do meanwhile. Where a read-only transaction locks what it reads, only
    /// its commit finds out whether that held.
    fn is_of_one_moment(&self) -> bool {
        self.mode().is_read_only()
    }

    /// The wide-area round trips waited for so far.
    fn trips(&self) -> u32;

    /// Commits. A transaction that wrote nothing commits too: its reads are validated unless its mode needs none.
    async fn commit(self: Box<Self>) -> Result<Committed, TxnError>;

    /// Commits, and carries out `operations` as it does: they meet the rows as they are then, so nothing has to be read beforehand, and
    /// nothing that others do makes the transaction fail. It must not have written anything itself.
    ///
    /// # Errors
    /// Those of [`commit`](Transaction::commit); [`TxnError::TooLarge`] if they are too many; [`TxnError::Invalid`] where the
    /// gateway does not [take operations](Gateway::takes_operations), or if they come back to a key that they have left.
    async fn operate(self: Box<Self>, _operations: Vec<Operation>) -> Result<Operated, TxnError> {
        Err(TxnError::Invalid("operations are not taken here".into()))
    }

    /// Gives up.
    async fn rollback(self: Box<Self>);
}
