//! Every parameter of the evaluation, in one place: what the paper says, and what it leaves open with the choice made.

use rhumb_core::Span;

/// The regions of section 5.1 in the order of its figures: California, Oregon, Virginia, Ireland, São Paulo.
pub const REGIONS: [&str; 5] = ["california", "oregon", "virginia", "ireland", "sao-paulo"];
/// The round trips (Table 1).
pub const PROFILE: &str = "paper_gplacer_9";
/// Where clients hand their commits over in section 5.1: from Ireland to California, from São Paulo to Oregon.
pub const HANDOFFS: [(&str, &str); 2] = [("ireland", "california"), ("sao-paulo", "oregon")];

/// Operations of a transaction (section 5.1.1).
pub const OPERATIONS: usize = 5;
/// Of a hundred operations, so many are reads: 1:1 (section 5.1.1).
pub const READ_PERCENT: u64 = 50;
/// Keys (section 5.1.1).
pub const KEYS: u64 = 50_000;
/// Bytes of a value. The paper does not say; nothing hangs on it here.
pub const VALUE_BYTES: usize = 16;

/// The skew of the Zipfian law, in hundredths. The paper does not give it. YCSB's usual 0.99 cannot be meant: it aborts most
/// transactions of a hundred clients, for the most popular key alone is written many times while a transaction that reads it
/// runs; the paper's abort rates are below 1 %. So keys are skewed little. Figure 9 shows what hangs on it.
pub const SKEW_CENTI: u32 = 30;
/// The usual skew of YCSB, in hundredths.
pub const SKEW_OF_YCSB_CENTI: u32 = 99;

/// Clients in all five regions together (figures 6 to 9 go from 10 to 200).
pub const CLIENTS: [usize; 6] = [10, 20, 50, 100, 150, 200];
/// From so many clients on the paper's servers are at their limit (section 5.1.2). Ours are not, so what the paper says of
/// fewer clients is held against this many.
pub const CLIENTS_BEFORE_THROTTLING: usize = 100;

/// How long a run lasts at most (section 5.1.1).
pub const LENGTH: Span = Span::from_secs(600);
/// A run ends sooner once so many transactions have ended: it is the same at its end as at its start.
pub const TRANSACTIONS: u64 = 6_000;
/// How long sites find out their distances before clients start.
pub const SETTLING: Span = Span::from_secs(8);
/// How long clients run before they are measured.
pub const WARM_UP: Span = Span::from_secs(2);
/// A run of more events than this counts as a livelock.
pub const EVENTS_MAX: u64 = 2_000_000_000;
