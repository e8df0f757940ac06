//! Every parameter of the evaluation, in one place: what the paper says, and what it leaves open with the choice made.

use rhumb_core::Span;
use rhumb_sim::LocalDelays;

/// The five regions of section 5.2, in the order of the profile `paper_samya_5`.
pub use rhumb_bench::workloads::quota::trace::REGIONS;

/// The maximum limit M of section 5.2.
pub const LIMIT: u64 = 5_000;
/// The mean positive demand of one region in the paper's own series (section 5.9), which is not public. The published
/// series asks for more, so besides [`LIMIT`] as printed the experiments use limits in the same proportion to the demand:
/// to its mean, and to its peaks.
pub const MEAN_DEMAND_OF_THE_PAPER: u64 = 624;
/// The highest demand of one region in the paper's own series (section 5.9).
pub const MAX_DEMAND_OF_THE_PAPER: u64 = 3_118;

/// Time between two points of the trace as recorded.
pub const RECORDED_INTERVAL: Span = Span::from_secs(300);
/// Time between two points of the trace as replayed (section 5.1.2).
pub const INTERVAL: Span = Span::from_secs(5);
/// Points replayed in an hour, which is 60 hours as recorded (section 5.1.2).
pub const POINTS_OF_AN_HOUR: usize = 720;
/// Points replayed in half an hour (sections 5.4.2, 5.6, 5.9).
pub const POINTS_OF_HALF_AN_HOUR: usize = 360;
/// Points replayed in ten minutes (section 5.7).
pub const POINTS_OF_TEN_MINUTES: usize = 120;
/// A run is not shortened below this many points.
pub const POINTS_MIN: usize = 2;

/// Requests that a region's client has outstanding at the most. The paper does not say. With one, MultiPaxSys answers
/// about as fast as the paper's Table 6 says; with more, its requests queue at the leader for longer and nothing else of
/// it changes. The experiment `samya-connections` shows how much hangs on this.
pub const CONNECTIONS: usize = 1;
/// A request that its client could not send for so long is given up: the clients "generate concurrent requests each
/// second", so what is not sent when the next second's requests come is an aborted transaction.
pub const PATIENCE: Span = Span::from_millis(1_000);

/// What a site costs: a sync of its disk, a step, a message within the region.
pub const LOCAL: LocalDelays = LocalDelays {
    message: Span::from_micros(100),
    step: Span::from_micros(10),
    load: Span::from_micros(50),
    long_load: Span::from_micros(50),
    sync: Span::from_millis(1),
    row: Span::ZERO,
    request: Span::ZERO,
    remote: Span::ZERO,
};

/// The window of the moving averages of throughput (section 5.3).
pub const MOVING_AVERAGE: Span = Span::from_secs(300);
/// One in so many transactions is kept as a sample of latencies (Figure 8 plots "a sample").
pub const SAMPLE_ONE_IN: u64 = 500;

/// How long a cluster settles after its quota was made and before the clients start.
pub const SETTLING: Span = Span::from_secs(5);
/// How long the making of the quota may take.
pub const CREATION_MAX: Span = Span::from_secs(60);
/// How long after the last request answers are still waited for.
pub const DRAINING: Span = Span::from_secs(15);
/// A run of more events than this counts as a livelock.
pub const EVENTS_MAX: u64 = 2_000_000_000;

/// The sites of MultiPaxSys beyond those of [`REGIONS`]: with us-west1 they are the three in regions of the US, with
/// asia-east2 and europe-west2 the five of section 5.2.
pub const MULTIPAXSYS_US: [&str; 2] = ["us-central1", "us-east1"];
