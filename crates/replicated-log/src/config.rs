//! The settings and bounds of the protocol. None of them matters for safety, but that a leader counts on a lease for less than its followers do.

use crate::group::Pace;
use rhumb_core::{RegionId, Span};

/// How often a site looks what is late.
pub const TICK: Span = Span::from_millis(100);
/// Followers vote for nobody else for so many ticks after they have heard a leader.
const LEASE_TICKS: u64 = 20;
/// A steady clock is off by less than one part in so many.
const DRIFT_PARTS: u64 = 100;

/// Transactions that a gateway has open, and that a leader has locks of.
pub const OPEN_MAX: usize = 4_096;
/// Bound of what a group may prepare before others have heard of its commits.
pub const PREPARED_MAX: usize = 4_096;
/// Snapshot reads that wait at a leader.
pub const READS_MAX: usize = 4_096;
/// Loads under way at a site, as the disk is behind, before no read begins any more.
pub const LOADS_MAX: usize = 8_192;
/// Loads under way at a site: besides those, of what waited for locks or outcomes as the last read began.
pub const JOBS_MAX: usize = LOADS_MAX + READS_MAX + 2 * (OPEN_MAX + 2 * PREPARED_MAX);
/// Redirections that a request follows before it waits to be sent again.
pub const HOPS_MAX: u32 = 16;
/// Bytes of the rows in one answer of a leader.
pub const ROWS_BYTES_MAX: usize = 4 << 20;
/// Rows of a range that one answer of a leader covers, deletions counted.
pub const SCAN_ROWS_MAX: usize = 4_096;
/// Bytes that a transaction may write, and bytes of what it has read and depends on.
pub const WRITES_BYTES_MAX: usize = 12 << 20;
/// Bytes of the keys and ranges that a transaction has locked to read in one group.
pub const FOOTPRINT_BYTES_MAX: usize = 2 << 20;
/// Entries that a replica keeps, however far others are behind.
pub const LOG_ENTRIES_MAX: usize = 16_384;
/// Bytes of such entries.
pub const LOG_BYTES_MAX: usize = 64 << 20;
/// Records and rows of one page of a state that is transferred, in bytes.
pub const PAGE_BYTES_MAX: usize = 2 << 20;
/// Records loaded at once in recovery.
pub const RECOVERY_RECORDS: usize = 4_096;
/// Bytes of such records.
pub const RECOVERY_BYTES: usize = 8 << 20;
/// Identifiers are issued up to so far beyond what is known to be on disk.
pub const CLOCK_LEAD: Span = Span::from_secs(10);
/// Snapshots are read up to so far ahead of the time of day before the group must agree anew.
pub const CEILING_LEAD: Span = Span::from_secs(1);
/// Timestamps are closed so far behind the time of day.
pub const CLOSED_LAG: Span = Span::from_millis(500);

/// Settings of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The regions in which leaders are preferred, the best first; those that are not named come behind, in their order.
    pub leaders: Vec<RegionId>,
    /// Elections and leases.
    pub pace: Pace,
    /// Outcomes that a group remembers.
    pub outcomes_max: usize,
    /// Transactions that a group has prepared, or has committed while other groups have not heard of it, before it prepares no more. At most
    /// `PREPARED_MAX`.
    pub prepared_max: usize,
    /// Bytes of what all transactions write that a leader has under way before it prepares no more. At least `WRITES_BYTES_MAX`.
    pub writes_bytes_max: usize,
    /// Locks that are held at a leader before no transaction asks for more.
    pub locks_max: usize,
    /// Entries that a replica keeps once they are applied, for those who are behind.
    pub log_entries_kept: usize,
    /// Whoever does not answer for so long is asked again.
    pub resend: Span,
    /// Messages for a leader that can be reached only by another site go that way for so long before the link is tried again.
    pub detour: Span,
    /// A read that has not been answered for so long is given up.
    pub patience: Span,
    /// A client is told after so long that the outcome of its transaction is unknown.
    pub deadline: Span,
    /// A coordinator aborts what has not been prepared everywhere for so long.
    pub prepare_patience: Span,
    /// A leader drops a transaction whose gateway has been silent for so long.
    pub silence: Span,
    /// A gateway drops a transaction whose client has been idle for so long.
    pub idle: Span,
}

impl Default for Config {
    fn default() -> Config {
        let followers = LEASE_TICKS * TICK.as_micros();
        let pace = Pace {
            lease_ticks: LEASE_TICKS,
            // Both clocks may be off, the leader's slow and the follower's fast.
            lease: Span::from_micros(followers - 2 * followers / DRIFT_PARTS),
            heartbeat_ticks: 3,
            campaign_ticks: 12,
            stagger_ticks: 5,
            yield_ticks: 50,
        };
        Config {
            leaders: Vec::new(),
            pace,
            outcomes_max: 8_192,
            prepared_max: PREPARED_MAX,
            writes_bytes_max: 256 << 20,
            locks_max: 1 << 20,
            log_entries_kept: 1_024,
            resend: Span::from_secs(1),
            detour: Span::from_secs(10),
            patience: Span::from_secs(4),
            deadline: Span::from_secs(8),
            prepare_patience: Span::from_secs(4),
            silence: Span::from_secs(6),
            idle: Span::from_secs(60),
        }
    }
}

/// The ticks in a span.
pub fn ticks(span: Span) -> u64 {
    span.as_micros() / TICK.as_micros()
}
