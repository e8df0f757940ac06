//! The spans and bounds of the protocol. Sites may have different ones: they cost time, never correctness.

use super::quorums::Settings;
use rhumb_commit::clock_lease::STEPS;
use rhumb_core::Span;

/// Settings of the protocol. Spans are counted in ticks, so that a clock that jumps changes none of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How often a site looks at what waits, and asks the others whether they are up.
    pub tick: Span,
    /// A site that has not answered for so many ticks is taken for down.
    pub silent_ticks: u64,
    /// A read or a first round that takes longer is given up.
    pub patience_ticks: u64,
    /// A client whose second round takes longer is told that the outcome is unknown.
    pub unknown_ticks: u64,
    /// Locks of a transaction that is not prepared and was not heard of for so long are taken from it.
    pub idle_ticks: u64,
    /// Whoever is prepared for so long asks for the outcome; commits that were not confirmed for so long are sent again.
    pub doubt_ticks: u64,
    /// A transaction that its client does not touch for so long is forgotten.
    pub abandoned_ticks: u64,
    /// An attempt to change the configuration that has not advanced for so long is given up.
    pub move_ticks: u64,
    /// A site that is sealed for so long without hearing of a new configuration attempts one itself; one tick later for each site
    /// that is up before it.
    pub sealed_ticks: u64,
    /// Whoever is prepared for so long, by a gateway that is down, has the epoch end, and the doubt with it; one tick later for each site
    /// that is up before it.
    pub orphaned_ticks: u64,
    /// A transaction that waits for the next configuration for so long is told that it does not come.
    pub waiting_ticks: u64,
    /// Rows of a page of a reconciliation: from 1 to `DIFFERENCES_PAGE`.
    pub page_rows: usize,
    /// How far timestamps may run ahead of the last write of the clock's bound.
    pub clock_lead: Span,
    /// How quorums follow what is measured; none: only an operator changes them.
    pub adaptation: Option<Adaptation>,
}

/// How quorums follow what is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptation {
    /// How often sites tell what they measured, by their clocks.
    pub period: Span,
    /// Transactions of its own clients that this site can have in progress at a time.
    pub capacity: u64,
    /// What quorums are built with.
    pub settings: Settings,
    /// The cluster begins with `cores = auto`, and not with as many as the settings say. From then on the configuration says how many.
    pub auto: bool,
    /// What the number of cores follows from, while it is `auto`.
    pub availability: Availability,
}

/// What availability is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Availability {
    /// The share of time that a majority of the cores is to be up: 0 to 1.
    pub wanted: f64,
    /// The share of time that a site is up: 0 to 1.
    pub of_site: f64,
}

impl Default for Availability {
    /// Less than nine hours a year without a majority, of sites that are each away for less than four days.
    fn default() -> Availability {
        Availability { wanted: 0.999, of_site: 0.99 }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tick: Span::from_millis(250),
            silent_ticks: 4,
            patience_ticks: 8,
            unknown_ticks: 16,
            idle_ticks: 8,
            doubt_ticks: 4,
            abandoned_ticks: 240,
            move_ticks: 12,
            sealed_ticks: 8,
            orphaned_ticks: 12,
            waiting_ticks: 20,
            page_rows: DIFFERENCES_PAGE,
            clock_lead: Span::from_secs(3),
            adaptation: None,
        }
    }
}

/// Transactions of a site's clients that are open, or decided and not known to all, at the most.
pub const OPEN_MAX: usize = 10_000;
/// Transactions that hold locks at a site, prepared ones among them, at the most.
pub const SESSIONS_MAX: usize = 20_000;
/// Rows that a transaction reads by key at once.
pub const ROWS_MAX: usize = 10_000;
/// Rows that a transaction writes.
pub const TXN_ROWS_MAX: usize = 100_000;
/// Bytes of the keys and values that a transaction writes, a little less than a message may have.
pub const TXN_BYTES_MAX: usize = 12 << 20;
/// Rows of one scan at the most; a client that wants more asks again.
pub const SCAN_MAX: usize = 1_000;
/// Bytes of the rows that a site answers a read with: far less than a message may have. A row that is larger goes alone.
pub const ROWS_BYTES_MAX: usize = 4 << 20;
/// Requests that wait for the next configuration at a site, at the most.
pub const WAITING_MAX: usize = 10_000;
/// A load above it is none that a site can have: a thousand times its capacity.
pub const LOAD_MAX_PPM: u64 = 1_000_000_000;
/// The largest load that can be injected at a site: a hundred times its capacity.
pub const INJECTED_LOAD_MAX_PERCENT: u64 = 10_000;
/// How much longer a transaction takes at a site with an injected load of its capacity.
pub const INJECTED_LOAD_SPAN: Span = Span::from_millis(5);
/// And so much at the most, for each that is held before it.
pub const INJECTED_LOAD_SPAN_MAX: Span = Span::from_millis(500);
/// Transactions that a loaded site holds at the most.
pub const HELD_MAX: usize = 10_000;
/// A round trip above it is none.
pub const RTT_MAX: Span = Span::from_secs(10);
/// Rows counted each tick.
pub const COUNTED_PAGE: usize = 1_000;
/// Differences of a page.
pub const DIFFERENCES_PAGE: usize = 1_000;
/// Bytes of the keys of a page of differences, or of those that are counted at once; one that is longer goes alone.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes of the keys that a transaction reads at once.
pub const READ_KEYS_BYTES_MAX: usize = 4 << 20;
/// Bytes of the rows, or of the commits, that are copied at once; one that is larger goes alone.
pub const COPIES_BYTES_MAX: usize = 4 << 20;
/// A site that catches up asks another source once one has not answered after so many questions.
pub const CATCH_UP_TRIES: u64 = 2;
/// Differences are kept for this many epochs at the most. A site that has missed more compares all rows.
pub const EPOCHS_KEPT_MAX: u64 = 32;
/// A site whose messages are of an epoch that has ended is sent the next configuration, and again after this many ticks if it is still behind: a
/// configuration with all that it carries is far larger than the message that it answers.
pub const TOLD_AGAIN_TICKS: u64 = 4;
/// Versions that nobody reads any more are dropped each time so many ticks have passed.
pub const COLLECT_EVERY: u64 = 20;
/// Bounds of the clock on their way to disk: each is a step above the one before, which the clock has passed.
pub const CLOCK_BOUNDS_MAX: usize = 2 * STEPS as usize;
/// Records loaded at once in recovery.
pub const RECOVERY_PAGE: usize = 1_000;
