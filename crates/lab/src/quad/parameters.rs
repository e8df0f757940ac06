//! Every parameter of the evaluation, in one place: what the paper says, and what it leaves open with the choice made.

use rhumb_core::Span;
use rhumb_sim::LocalDelays;

/// Of a hundred transactions so many only read (section V.A).
pub const MIXES: [u64; 5] = [100, 80, 50, 20, 0];
/// Workers in each stage of a sizeup run. The paper has 15 stages, 10 to 150 in steps of 10 (section V.A).
pub const WORKERS: [u64; 3] = [10, 50, 150];

/// Districts (section V.A).
pub const DISTRICTS: u64 = 10;
/// Customers of a district (section V.A).
pub const CUSTOMERS: u64 = 3_000;
/// Stock entries (section V.A).
pub const STOCK: u64 = 10_000;
/// Orders have this many lines at least and at most (TPC-C 2.4.1.3).
pub const LINES: (u64, u64) = (5, 15);

/// What a site costs. The paper's are Java with SOAP on machines of two cores, and it prints two figures of milliseconds only: 80 for a
/// transaction that reads at one site, and 200 for one that reads at a quorum, where all sites are alike. The second takes two round trips
/// more, so a round trip between sites took three quarters of what all the rest did. Here all is 27 times faster, and the ratio the same:
/// 1 ms of the processor for each of a transaction's three requests (`request`), and [`RTT_AT_HOME`].
///
/// `row`: 5 µs for a row read or written; `step`: 10 µs for whatever a message carries. So most of a transaction's work is done where it was
/// submitted, as in the paper, where the load of a site is that of its own workers.
pub const LOCAL: LocalDelays = LocalDelays {
    message: Span::from_micros(100),
    step: Span::from_micros(10),
    load: Span::from_micros(50),
    long_load: Span::from_micros(50),
    sync: Span::from_millis(1),
    row: Span::from_micros(5),
    request: Span::from_millis(1),
    remote: Span::ZERO,
};
/// The round trip between two sites of one datacenter; see [`LOCAL`].
pub const RTT_AT_HOME: Span = Span::from_micros(2_250);
/// The distance that one part of the ratio 4 : 2 : 1 stands for (section V.C), in several datacenters.
pub const DISTANCE: Span = Span::from_millis(50);

/// The workers' shares with 4 and with 8 sites (section V.C).
pub const SHARES_4: [f64; 4] = [40.0, 30.0, 20.0, 10.0];
/// See [`SHARES_4`].
pub const SHARES_8: [f64; 8] = [30.0, 15.0, 15.0, 10.0, 10.0, 20.0 / 3.0, 20.0 / 3.0, 20.0 / 3.0];
/// With 16 sites "accordingly": each of eight shares for two sites.
pub fn shares_16() -> Vec<f64> {
    SHARES_8.iter().flat_map(|share| [share / 2.0; 2]).collect()
}
/// With two strong sites among eight (section V.C, Figure 7); the paper names no shares.
pub const SHARES_TWO_STRONG: [f64; 8] = [16.0, 16.0, 16.0, 16.0, 16.0, 16.0, 2.0, 2.0];

/// A stage is measured after so long: what just began has settled.
pub const WARM_UP: Span = Span::from_millis(300);
/// How long a stage is measured in one datacenter: three to fifty response times. The paper's 30 s are of machines 27 times slower.
pub const MEASURED: Span = Span::from_millis(500);
/// The same where the wide area decides.
pub const WARM_UP_WIDE: Span = Span::from_secs(1);
/// The same where the wide area decides.
pub const MEASURED_WIDE: Span = Span::from_secs(2);
/// A speedup run has one stage, which is measured so many times longer.
pub const SPEEDUP_LONGER: u64 = 5;
/// Where minutes are measured, a request's work and the round trips inside a datacenter take so many times longer: near what the paper
/// prints, and a tenth of the events.
pub const SLOWER: u64 = 10;
/// [`LOCAL`] for those.
pub const LOCAL_SLOWER: LocalDelays = LocalDelays { request: Span::from_millis(10), ..LOCAL };
/// A period after which quorums may follow what was measured, where they do; the paper names none.
pub const PERIOD: Span = Span::from_secs(5);
/// So many transactions in progress are a site's capacity. Alike at all sites, so that it decides nothing.
pub const CAPACITY: u64 = 100;
/// Where the number of workers fluctuates, it does so often.
pub const NOISE_EVERY: Span = Span::from_secs(1);
/// Workers start within so long of each other.
pub const STAGGER: Span = Span::from_millis(100);
/// Sites know of each other after so long.
pub const SETTLING: Span = Span::from_secs(1);
/// A run of more events than this counts as a livelock.
pub const EVENTS_MAX: u64 = 500_000_000;
