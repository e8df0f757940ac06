//! A read in progress at its gateway: what its client asked for, and what replicas have answered so far.

use crate::message::{How, Query, Rows};
use rhumb_commit::placement::Regions;
use rhumb_commit::transaction::ReadMode;
use rhumb_core::actor::RequestId;
use rhumb_core::{Key, KeyRange, RegionId, Span, Time, Timestamp, TxnId};
use std::collections::{BTreeMap, BTreeSet};

/// Whose read it is, and how it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// What its client is answered by.
    pub(crate) id: RequestId,
    /// Its transaction.
    pub(crate) txn: TxnId,
    /// How.
    pub(crate) mode: ReadMode,
}

/// A scan as a client asks for it.
#[derive(Clone, Debug)]
pub(crate) struct ScanRequest {
    pub(crate) range: KeyRange,
    pub(crate) limit: u32,
    pub(crate) reverse: bool,
}

/// A read of one shard.
#[derive(Clone, Debug)]
pub(super) struct ShardRead {
    pub(super) query: Query,
    pub(super) replies: BTreeMap<RegionId, Rows>,
    pub(super) denied: BTreeSet<RegionId>,
    /// Of a read of one replica: the region that was asked last.
    pub(super) asked: Option<RegionId>,
}

/// What the client asked for.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Get { keys: Vec<Key>, expect: Vec<(Key, Timestamp)> },
    Scan { scan: ScanRequest, expect: Vec<(Key, Timestamp)> },
}

/// A read in progress.
#[derive(Clone, Debug)]
pub(super) struct PendingRead {
    pub(super) id: RequestId,
    pub(super) txn: TxnId,
    pub(super) how: How,
    /// Of one replica: an active one.
    pub(super) active: bool,
    /// Not of those that said that they have no copy.
    pub(super) avoid: Regions,
    pub(super) asked: Asked,
    pub(super) shards: BTreeMap<u16, ShardRead>,
    /// Expected rows that are read along with a scan.
    pub(super) expected: BTreeMap<u16, ShardRead>,
    pub(super) lock_rounds: u32,
    /// How often a snapshot read was moved to a higher timestamp.
    pub(super) moved: u32,
    pub(super) since: Time,
    pub(super) sent: Time,
}

impl PendingRead {
    /// Where a snapshot read goes on that has to move to `least` or above: the first time at the present, so that it need not
    /// climb through the commits of the recent past; then so far ahead that the next round arrives before its time.
    pub(super) fn moves_to(&self, least: Timestamp, now: Time) -> Timestamp {
        let lead = if self.moved == 0 { Span::ZERO } else { now.since(self.sent) };
        least.max(Timestamp::from_time(now + lead))
    }
}
