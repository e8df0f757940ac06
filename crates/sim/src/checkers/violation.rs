//! A counterexample: what kind of anomaly, the story of it, and the transactions it is about.

use crate::history::{Garbled, Txn};
use std::error::Error;
use std::fmt;

/// Kinds of anomaly. The codes are Adya's where he has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// The clients of the test broke the rules of a history: nothing is known about the database.
    Misuse,
    /// G1a: a write of an aborted transaction was read.
    AbortedRead,
    /// G1b: a write was read that its own transaction overwrote or added to.
    IntermediateRead,
    /// Something was read that nobody wrote.
    UnwrittenRead,
    /// A transaction's reads contradict its own writes or its other reads.
    InternalRead,
    /// A scan returned rows out of order or out of range.
    BadScan,
    /// One append shows twice in a list.
    DoubleAppend,
    /// Two reads of one list cannot both be prefixes of its history.
    IncompatibleOrders,
    /// The version of a row is not the commit timestamp of the transaction that wrote it.
    VersionMismatch,
    /// Two transactions wrote the same key at the same timestamp.
    TimestampCollision,
    /// A transaction's commit timestamp is not above that of one it depends on.
    TimestampOrder,
    /// G0, dirty write: a cycle of write dependencies.
    DirtyWrite,
    /// G1c, circular information flow: a cycle of write and read dependencies.
    CircularInformation,
    /// G-single: a cycle with one anti-dependency, such as a lost update or a read skew.
    SingleAntiDependency,
    /// G2: a cycle with several anti-dependencies, such as a write skew or a long fork.
    AntiDependencies,
    /// Serializable, but only in an order that contradicts real time.
    RealTime,
    /// A cycle through a row that a scan did not return.
    Phantom,
    /// An acknowledged write is gone at the end.
    LostWrite,
    /// A stale read returned other versions than those of its timestamp.
    StaleRead,
    /// Too few transactions committed after the network healed.
    Stalled,
    /// A transaction never ended.
    Pending,
    /// Two regions hold different rows.
    Divergence,
    /// A commit is stamped far ahead of the time at which it ended.
    ClockRanAway,
}

/// What a checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its kind.
    pub anomaly: Anomaly,
    /// What happened, for a human; may have several lines.
    pub story: String,
    /// The transactions that the story names, printed.
    pub involved: Vec<String>,
}

impl Violation {
    /// A violation whose story is about `involved`.
    pub(super) fn new<'a>(anomaly: Anomaly, story: impl Into<String>, involved: impl IntoIterator<Item = &'a Txn>) -> Violation {
        Violation { anomaly, story: story.into(), involved: involved.into_iter().map(Txn::to_string).collect() }
    }
}

impl From<Garbled> for Violation {
    /// A value that no client wrote.
    fn from(garbled: Garbled) -> Violation {
        Violation::new(Anomaly::UnwrittenRead, garbled.to_string(), [])
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Anomaly::Misuse => "the history breaks its own rules",
            Anomaly::AbortedRead => "aborted read (G1a)",
            Anomaly::IntermediateRead => "intermediate read (G1b)",
            Anomaly::UnwrittenRead => "read of what nobody wrote",
            Anomaly::InternalRead => "transaction contradicts itself",
            Anomaly::BadScan => "malformed scan",
            Anomaly::DoubleAppend => "append applied twice",
            Anomaly::IncompatibleOrders => "incompatible orders",
            Anomaly::VersionMismatch => "version mismatch",
            Anomaly::TimestampCollision => "timestamp collision",
            Anomaly::TimestampOrder => "timestamps contradict dependencies",
            Anomaly::DirtyWrite => "dirty write (G0)",
            Anomaly::CircularInformation => "circular information flow (G1c)",
            Anomaly::SingleAntiDependency => "cycle with one anti-dependency (G-single)",
            Anomaly::AntiDependencies => "cycle with anti-dependencies (G2)",
            Anomaly::RealTime => "serializable, but not in real-time order",
            Anomaly::Phantom => "phantom",
            Anomaly::LostWrite => "acknowledged write lost",
            Anomaly::StaleRead => "wrong stale read",
            Anomaly::Stalled => "no progress",
            Anomaly::Pending => "transaction never ended",
            Anomaly::Divergence => "regions diverge",
            Anomaly::ClockRanAway => "timestamps run ahead of the time",
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.anomaly, self.story)?;
        self.involved.iter().try_for_each(|txn| write!(f, "\n  {txn}"))
    }
}

impl Error for Violation {}

/// For judges that say what is wrong in a text.
impl From<Violation> for String {
    fn from(violation: Violation) -> String {
        violation.to_string()
    }
}
