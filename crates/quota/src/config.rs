//! What may be set of a quota site; the defaults serve regions up to 400 ms apart.

use crate::avantan::Patience;
use crate::demand::Predictor;
use crate::name::Name;
use crate::window::WINDOW_BYTES_MAX;
use rhumb_core::Span;
use std::sync::Arc;

/// Makes the predictor of a quota, if there is a model for it.
pub type Predictors = Arc<dyn Fn(&Name) -> Option<Box<dyn Predictor>> + Send + Sync>;

/// The settings of a quota site.
#[derive(Clone)]
pub struct Config {
    /// How often a site looks after what is overdue. All patience is counted in it.
    pub tick: Span,
    /// When protocols lose patience, at the earliest: later where other sites take long to answer.
    pub patience: Patience,
    /// The epoch of demand and forecasts.
    pub epoch: Span,
    /// Forecasts of demand, by quota.
    pub predictors: Option<Predictors>,
    /// A site looks ahead once it has less than this part of its last grant left, in per cent (Samya, 5.2: 20).
    pub low_percent: u64,
    /// A site wants what it expects to need within this span, and with the offer policy `spare` keeps as much. Longer than the
    /// longest shortage, so that what a redistribution brings lasts until the next.
    pub keep_for: Span,
    /// The first shortage lasts so many ticks: after a list that offered too little, what a site cannot serve itself is refused
    /// at once. Each one after it lasts twice as long, until a list has offered enough.
    pub dry_ticks: u32,
    /// But so many at the most: what a refusal says of all sites is never older.
    pub dry_ticks_max: u32,
    /// After a redistribution that came to nothing a site waits so many ticks, and more the later it is among the sites.
    pub rest_ticks: u32,
    /// A site that has to take tokens out of circulation collects them from others after so many ticks, then half as often
    /// each time.
    pub debt_ticks: u32,
    /// But this often at least.
    pub debt_ticks_max: u32,
    /// An operation waits for tokens so many ticks at the most: more where other sites take long to answer.
    pub wait_ticks: u32,
    /// A read of other sites waits so many ticks for their answers.
    pub look_ticks: u32,
    /// An exact read waits so many ticks for its count.
    pub exact_ticks: u32,
    /// Sites tell each other how much they know every so many ticks.
    pub gossip_ticks: u32,
    /// What is remembered of request ids takes so many bytes at the most.
    pub window_bytes: usize,
    /// Operations that wait for tokens at a site at the most.
    pub waiting: usize,
    /// Of these, those of one quota.
    pub waiting_per_quota: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tick: Span::from_millis(50),
            patience: Patience { resend: 10, gather: 8, give_up: 30, cohort: 40, stagger: 8 },
            epoch: Span::from_secs(60),
            predictors: None,
            low_percent: 20,
            keep_for: Span::from_secs(3),
            dry_ticks: 6,
            dry_ticks_max: 48,
            rest_ticks: 3,
            debt_ticks: 20,
            debt_ticks_max: 640,
            wait_ticks: 100,
            look_ticks: 20,
            exact_ticks: 160,
            gossip_ticks: 20,
            window_bytes: WINDOW_BYTES_MAX,
            waiting: 4_096,
            waiting_per_quota: 1_024,
        }
    }
}
