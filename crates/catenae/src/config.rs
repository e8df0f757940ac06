//! The spans and bounds of the protocol. Safety depends on three of them being the same at every site and for ever:
//! `epoch`, `durability` and `window_epochs`; so must `coordinators` be, for sites to know what streams there are. The others may differ.

use super::stream_id::STREAM_REGIONS_MAX;
use rhumb_commit::one_shot::operation::TXN_BYTES_MAX;
use rhumb_core::actor::MESSAGE_BYTES_MAX;
use rhumb_core::{Span, Topology};

/// Settings of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The length of an epoch.
    pub epoch: Span,
    /// When a batch counts.
    pub durability: Durability,
    /// Coordinators of a region, each with a stream and a part of the namespaces: the first sites of the region, at most all of them.
    pub coordinators: u16,
    /// A region's vote on an epoch counts if it comes within so many epochs; after that the others settle without it.
    pub window_epochs: u64,
    /// The delay tolerance: a region whose epochs have not come for so many epochs is passed over, by ballot.
    pub tolerance_epochs: u64,
    /// Who passes over a silent region does so this many epochs ahead, so that not every epoch has to wait again. Above
    /// `window_epochs`.
    pub ahead_epochs: u64,
    /// After so many epochs a client is told that the outcome is unknown, or that its transaction was never sent.
    pub deadline_epochs: u64,
    /// Chain servers of a region: partitions of its keys that transactions visit one after the other.
    pub chain_servers: u16,
    /// Where they stand.
    pub chain_sites: ChainSites,
    /// A region where nothing has been asked or told for so many epochs is quiet: it seals an epoch once another region has.
    pub linger_epochs: u64,
    /// Versions superseded for so many epochs are collected.
    pub keep_epochs: u64,
}

/// When a batch counts, and its transactions may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once it is durable in its own region. A lost region makes the others wait until it is back with its disk.
    Region,
    /// Once it is durable in one region more than the largest minority of them. Nothing acknowledged is lost with a minority.
    Majority,
}

/// Where the chain servers of a region stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainSites {
    /// All with its coordinator.
    Coordinator,
    /// On all its sites in turn.
    Every,
}

impl Durability {
    /// How many regions may be lost.
    pub fn failures(self, regions: usize) -> usize {
        match self {
            Durability::Region => 0,
            Durability::Majority => (regions - 1) / 2,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            epoch: Span::from_millis(10),
            durability: Durability::Majority,
            coordinators: 1,
            window_epochs: 100,
            tolerance_epochs: 100,
            ahead_epochs: 250,
            deadline_epochs: 1_000,
            chain_servers: 4,
            chain_sites: ChainSites::Coordinator,
            linger_epochs: 200,
            keep_epochs: 60_000,
        }
    }
}

impl Config {
    /// # Panics
    /// If the settings contradict one another, or the cluster.
    pub(super) fn check(&self, topology: &Topology) {
        assert!((1..=topology.shard_count()).contains(&self.coordinators), "each coordinator of a region is a site of it");
        assert!(topology.region_count() <= STREAM_REGIONS_MAX, "a cluster of Catenae has at most {STREAM_REGIONS_MAX} regions");
        assert!(self.epoch > Span::ZERO && self.chain_servers > 0, "epochs have a length and keys a chain server");
        assert!(self.ahead_epochs > self.window_epochs, "whoever is passed over has no vote to wait for");
    }
}

// Bytes are always those of the encoding, in which messages and records are bounded, too.

/// Requests that wait for the end of an epoch. What is taken back from another coordinator, [`FORWARDED_MAX`] at the most, comes on top.
pub const QUEUE_MAX: usize = 16_384;
/// Bytes of the same, on top of which [`FORWARDED_BYTES_MAX`] may come.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Transactions that a site has forwarded to other coordinators; beyond that it carries them itself.
pub const FORWARDED_MAX: usize = 16_384;
/// Bytes of the same.
pub const FORWARDED_BYTES_MAX: usize = 64 << 20;
/// A transaction that is forwarded may be sealed in the next so many epochs. After that it is taken back.
pub const FORWARD_EPOCHS: u64 = 32;
/// Whoever seals it holds that many to be at most so many: clocks differ.
pub const FORWARD_EPOCHS_MAX: u64 = 2 * FORWARD_EPOCHS;
/// Transactions of one region in one epoch.
pub const BATCH_MAX: usize = 1_024;
/// Bytes of transactions of one region in one epoch.
pub const BATCH_BYTES_MAX: usize = TXN_BYTES_MAX;
/// Bytes of votes in one entry. A vote that alone has more is never cast: the others settle without it once its window is over.
pub const VOTES_BYTES_MAX: usize = 1 << 20;
/// Bytes of an entry, with what comes to its batch and its votes.
pub const ENTRY_BYTES_MAX: usize = BATCH_BYTES_MAX + VOTES_BYTES_MAX + (64 << 10);
/// Entries in one message.
pub const PAGE_ENTRIES_MAX: usize = 256;
/// Bytes of entries in one message after which no more are told in it, and bytes of entries loaded at once for one.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
// One entry more may follow on the last that begins within those bytes, and one that is repeated precede them.
const _: () = assert!(PAGE_BYTES_MAX + ENTRY_BYTES_MAX + REPEATED_BYTES_MAX + (1 << 20) < MESSAGE_BYTES_MAX);
/// An entry of more bytes is not repeated with the one after it, and a leader that has nothing new to say repeats so many bytes at each
/// end of an epoch, on average.
pub const REPEATED_BYTES_MAX: usize = 64 << 10;
/// Entries of a region's stream that are not known to be chosen; beyond that the region seals no epoch.
pub const UNCHOSEN_MAX: u64 = 4_096;
/// Bytes of entries that are not known to be chosen; beyond that the region seals no epoch.
pub const UNCHOSEN_BYTES_MAX: usize = 4 << 20;
/// Entries of a stream that wait for other streams to cover their epochs; beyond that nothing is said in it.
pub const AHEAD_MAX: u64 = 16_384;
/// Transactions that are agreed on and not settled at a site; beyond that it takes no more of its clients.
pub const BACKLOG_MAX: usize = 131_072;
/// Bytes of the same; beyond that it takes no more of its clients.
pub const BACKLOG_BYTES_MAX: usize = 128 << 20;
/// Epochs whose way until they are settled is measured at once.
pub const MEASURED_MAX: usize = 4_096;
/// Loads of transactions that are being run; beyond that the next ones wait.
pub const RUN_LOADS_MAX: usize = 16;
/// Bytes of rows that transactions being run have read; beyond that only one of them goes on reading.
pub const RUN_BYTES_MAX: usize = 64 << 20;
/// Reads that wait for an epoch to be settled.
pub const WAITING_READS_MAX: usize = 8_192;
/// At most this many times as much as a site's own clients may add waits there; further entries of a stream for which nothing waits are dropped and
/// pulled later.
pub const FLOODED_FACTOR: usize = 2;
/// A quiet region repeats its last entry at every so many ends of epochs, so that a site that missed it notices.
pub const QUIET_REPEAT_TICKS: u64 = 100;
/// Records loaded at once in recovery.
pub const RECOVERY_PAGE: usize = 4_096;
/// Bytes of the same after which no more are loaded.
pub const RECOVERY_BYTES_MAX: usize = 16 << 20;
/// Records of entries that everybody has settled, removed at once.
pub const TRUNCATE_PAGE: u64 = 64;
/// A region whose clock is behind what it has sealed seals its next epoch after so many ends of epochs all the same.
pub const STUCK_TICKS: u64 = 8;
/// Chains over several sites that are not through after so many ends of epochs are run again, by their coordinator alone.
pub const CHAINS_PATIENCE_TICKS: u64 = 8;
/// After that it runs all chains alone for so many ends of epochs.
pub const CHAINS_ALONE_TICKS: u64 = 128;
/// Visits to chain servers of a site that wait for an epoch's batches to be known there.
pub const EARLY_VISITS_MAX: usize = 16_384;
/// Versions are collected every so many epochs.
pub const COLLECT_EVERY: u64 = 512;
