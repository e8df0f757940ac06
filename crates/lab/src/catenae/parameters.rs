//! Every parameter of the evaluation, in one place: what the paper says, and what it leaves open with the choice made.

use rhumb_core::Span;
use rhumb_sim::LocalDelays;

/// The regions of section VII.B. Their round trips are those of the profile `gcp_39`: 107 to 109 ms between Europe and the US, 150
/// between the US and Asia, 212 to 213 between Europe and Asia. The paper prints none.
pub const REGIONS: [&str; 3] = ["europe-west1", "us-central1", "asia-east1"];
/// Storage servers of a region (section VII.B), in each of which the paper counts its clients.
pub const SERVERS: u64 = 4;
/// Clients per server, the x axis of Figures 5 and 7. The paper's goes on to 150; here the machines are busy all the time before that.
pub const CLIENTS: [u64; 3] = [10, 25, 50];
/// Clients per server in Figure 6, and where systems are held against each other; the most of [`CLIENTS`].
pub const COMPARED_AT: u64 = 50;
/// The length of an epoch (section VII.B).
pub const EPOCH: Span = Span::from_millis(10);
/// Lengths of epochs in Figure 6, milliseconds.
pub const EPOCHS_MS: [u64; 4] = [10, 20, 40, 80];

/// What a region's machines cost. The paper's run Java, JSON and Cassandra on four machines of two cores, and it gives no
/// figures for a single operation.
///
/// `row`: 20 µs of the region's processors for a row read or written, 12,500 a second on each of four servers. Figure 1 asks them
/// for 11,000 transactions a second of 2.5 records on average, 41,000 rows read and written, so it cannot be more than 24 µs.
/// `step`: 10 µs for whatever a message carries. A sync of the disk takes 1 ms, a message within the region 0.1 ms. The same for
/// all three systems.
pub const LOCAL: LocalDelays = LocalDelays {
    message: Span::from_micros(100),
    step: Span::from_micros(10),
    load: Span::from_micros(50),
    long_load: Span::from_micros(50),
    sync: Span::from_millis(1),
    row: Span::from_micros(20),
    request: Span::ZERO,
    remote: Span::ZERO,
};
/// The asymmetric setting (section IX, future work): transactions a second, by Zipf's law with exponent 1 as in Figure 1. Few, so that
/// the slowest machines are not busy all the time.
pub const RATE_OF_ASYMMETRY: u64 = 2_000;
/// How fast the machines of one region work, in per cent of the others'.
pub const SPEEDS_PERCENT: [u64; 4] = [100, 75, 50, 25];
/// Messages between regions come up to so many milliseconds later.
pub const LATE_MS: [u64; 4] = [0, 10, 30, 100];
/// Of a hundred messages between regions so many are lost.
pub const LOSS_PERCENT: [u64; 4] = [0, 1, 5, 10];
/// Clients per server where all systems are compared on unequal machines.
pub const CLIENTS_OF_ASYMMETRY: u64 = 10;

/// Numbers of warehouses by which New-Order is measured: the fewer, the more contention. The paper gives none.
pub const WAREHOUSES_OF_CONTENTION: [u64; 4] = [40, 10, 4, 1];
/// Where the claims of Figure 7 are held against what was measured: sixty clients for a warehouse at 50 per server, six times TPC-C's ten.
pub const WAREHOUSES_OF_CLAIM: u64 = 10;
/// The same on machines on which a row costs a quarter: a region of the paper has sixteen processors, a row of ours the time of one.
pub const WAREHOUSES_OF_FAST_ROWS: [u64; 2] = [40, 10];
/// What a row costs there.
pub const FAST_ROW: Span = Span::from_micros(5);

/// Records of the micro-benchmark (section VII.C).
pub const RECORDS: u64 = 100_000;
/// Records that one of its transactions touches, at most; at least one (section VII.C).
pub const RECORDS_PER_TXN: u64 = 5;
/// Records in Figure 1 (section III.B).
pub const RECORDS_OF_FIGURE_1: u64 = 10_000;
/// Records that a transaction of Figure 1 touches, at most (section III.B).
pub const RECORDS_PER_TXN_OF_FIGURE_1: u64 = 4;
/// Transactions of a point of Figure 1. The paper has 100,000 (section III.B).
pub const TXNS_OF_FIGURE_1: u64 = 3_000;
/// Transactions a second in Figure 1.
pub const RATES: [u64; 3] = [1_000, 5_000, 11_000];

/// Warehouses of TPC-C. The paper says "extremely stressed" and no number. TPC-C has ten clients per warehouse; here are 3 to 15.
pub const WAREHOUSES: u64 = 40;
/// Districts of a warehouse (TPC-C 1.2).
pub const DISTRICTS: u64 = 10;
/// Orders have this many lines at least and at most (TPC-C 2.4.1.3).
pub const LINES: (u64, u64) = (5, 15);
/// Of a hundred lines so many take their stock from another warehouse (TPC-C 2.4.1.5).
pub const REMOTE_PERCENT: u64 = 1;

/// A closed loop is measured after so long: as long as the longest wait for locks.
pub const WARM_UP: Span = Span::from_secs(2);
/// How long it is measured.
pub const MEASURED: Span = Span::from_secs(1);
/// The same for quick runs.
pub const WARM_UP_QUICK: Span = Span::from_secs(1);
/// The same for quick runs.
pub const MEASURED_QUICK: Span = Span::from_millis(500);
/// Clients of a closed loop start within so long of each other.
pub const STAGGER: Span = Span::from_millis(500);
/// What an open loop has asked for is waited for so long after the last request, at the most.
pub const DRAINING: Span = Span::from_secs(10);
/// Whether all is answered is looked at so often, and once more is waited so long for what nobody waits for.
pub const SETTLING: Span = Span::from_secs(1);
/// A run of more events than this counts as a livelock.
pub const EVENTS_MAX: u64 = 2_000_000_000;
