//! The spans and bounds of the protocol. None of them matters for safety.

use rhumb_core::Span;
use rhumb_core::actor::MESSAGE_BYTES_MAX;

/// Spans of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often a site looks after what is overdue, pings and pulls.
    pub tick: Span,
    /// After so long without enough answers a gateway sends a read or an `Accept` again. Above the longest round trip.
    pub resend_after: Span,
    /// After so long a gateway that has heard a refusal, and whose votes do not decide, takes the attempt back; one that has
    /// heard none waits until so long before `outcome_deadline`. Above the longest round trip.
    pub withdraw_after: Span,
    /// After so long without an outcome a site that is prepared asks the gateway for it. Above the longest round trip.
    pub ask_after: Span,
    /// A gateway not heard for so many ticks is taken for dead by a site in doubt, which then asks the regions.
    pub gateway_silent_ticks: u64,
    /// After so long a gateway tells its client that the outcome of a commit is unknown.
    pub outcome_deadline: Span,
    /// After so long a gateway gives a read up.
    pub read_timeout: Span,
    /// After so long without its cohorts a coordinator votes no.
    pub prepare_timeout: Span,
    /// A site not heard for so long is not counted on.
    pub suspect_after: Span,
    /// The read locks of a gateway not heard for so long are dropped.
    pub locks_expire_after: Span,
    /// A site closes timestamps this far behind its clock: older stale reads are served without a wait.
    pub closed_lag: Span,
    /// Versions superseded for so long are collected.
    pub keep_versions: Span,
    /// Resolved attempts are forgotten after so long. Far above `outcome_deadline`.
    pub forget_after: Span,
    /// Attempts that did not commit which a coordinator keeps beyond `forget_after`, for regions that may be prepared for them still.
    pub refusals_kept: usize,
    /// How far ahead of its clock a site persists the bound of its clock.
    pub clock_lead: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tick: Span::from_millis(500),
            resend_after: Span::from_millis(1_000),
            withdraw_after: Span::from_millis(2_000),
            ask_after: Span::from_millis(1_000),
            gateway_silent_ticks: 3,
            outcome_deadline: Span::from_millis(8_000),
            read_timeout: Span::from_millis(8_000),
            prepare_timeout: Span::from_millis(1_000),
            suspect_after: Span::from_millis(3_000),
            locks_expire_after: Span::from_millis(10_000),
            closed_lag: Span::from_millis(3_000),
            keep_versions: Span::from_secs(600),
            forget_after: Span::from_secs(60),
            refusals_kept: 100_000,
            clock_lead: Span::from_millis(3_000),
        }
    }
}

impl Config {
    /// Ticks in `closed_lag`.
    pub(super) fn ticks_of_closed_lag(&self) -> usize {
        (self.closed_lag.as_micros() / self.tick.as_micros()) as usize
    }

    /// As many attempts as a coordinator forgets in the time for which it keeps them. If more are made for long, it falls behind.
    pub(super) fn attempts_kept(&self) -> usize {
        ORPHANS_MAX + FORGET_MAX * (self.forget_after.as_micros() / self.tick.as_micros() + 1) as usize
    }
}

/// Attempts known only from an outcome that a coordinator keeps at a time.
pub const ORPHANS_MAX: usize = 10_000;
/// Attempts that a coordinator looks at in one tick, whether it can forget them.
pub const FORGET_MAX: usize = 10_000;
/// Attempts that a gateway makes at one commit before it reports a conflict.
pub const ATTEMPTS_MAX: u32 = 6;
/// Attempts whose end a gateway remembers, for sites in doubt.
pub const ENDED_MAX: usize = 50_000;
/// Rounds in which a gateway asks again for locks that were denied.
pub const LOCK_ROUNDS_MAX: u32 = 6;
/// Half of the wait before the first such round; it doubles from round to round.
pub const LOCK_BACKOFF: Span = Span::from_millis(5);
/// Rows that one transaction may read under validation, and rows that it may write.
pub const TXN_ROWS_MAX: usize = 100_000;
/// Encoded bytes of what one commit reads and writes: it has to fit one message.
pub const TXN_BYTES_MAX: usize = 12 << 20;
/// How often a snapshot read is moved to a higher timestamp before it reports a conflict.
pub const SNAPSHOT_MOVES_MAX: u32 = 4;
/// Transactions that one gateway keeps open.
pub const TRANSACTIONS_MAX: usize = 20_000;
/// Commits that one gateway runs for others, or remembers to have run.
pub const TAKEN_MAX: usize = 50_000;
/// Reads that one replica keeps waiting.
pub const WAITING_READS_MAX: usize = 8_192;
/// Rows copied in one message.
pub const COPY_PAGE: usize = 4_096;
/// Log entries told in one message, without their rows: less than a mebibyte.
pub const LOG_PAGE: usize = 16_384;
/// Log entries whose rows are fetched in one message.
pub const FETCH_PAGE: usize = 1_024;
/// Rows of log entries that are fetched in one message: more only if the first entry alone has more. Whoever takes them over writes them in
/// one step.
pub const FETCH_ROWS_MAX: usize = 8_192;
/// Log entries dropped in one tick at least, if every peer has taken over as many. Where more were added since the tick before, twice as
/// many as that.
pub const TRUNCATE_MIN: u64 = 1_000;
/// Records loaded at once in recovery.
pub const RECOVERY_PAGE: usize = 4_096;
/// Bytes of rows or records that are loaded for one message, and of rows that it carries, encoded: more only if the first entry alone has more.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes of rows that are loaded for an answer to a fetch: all those of the first entry, however large.
pub const ENTRY_BYTES_MAX: usize = TXN_BYTES_MAX + TXN_ROWS_MAX * 32;

const _: () = assert!(PAGE_BYTES_MAX < TXN_BYTES_MAX && TXN_BYTES_MAX + PAGE_BYTES_MAX / 4 < MESSAGE_BYTES_MAX);
