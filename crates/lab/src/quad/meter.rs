//! What is counted and timed during a run, by stage and by site.

use crate::experiment::ratio;
use rhumb_core::Span;
use std::iter::Sum;
use std::ops::AddAssign;

/// Where the time of transactions goes, summed over them. A transaction that is aborted is run again, and its time goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Until it has begun: its gateway's processor.
    pub begin: Span,
    /// Its reads: locks at a read quorum.
    pub read: Span,
    /// Its commit: for one that writes two rounds at a write quorum.
    pub commit: Span,
}

/// The transactions that were submitted at a site in a stage, and committed while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions committed.
    pub committed: u64,
    /// From their first request to the last answer.
    pub response: Span,
    /// Where the time of their last attempts went.
    pub times: Times,
    /// Attempts aborted as an older transaction was in the way.
    pub retries: u64,
    /// Transactions given up for another reason.
    pub failed: u64,
}

/// All counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// By stage, then by site.
    pub stages: Vec<Vec<Counts>>,
    /// The stage that is measured now, if one is.
    pub(super) measuring: Option<usize>,
}

impl Counts {
    /// The mean response time, milliseconds.
    pub fn mean_ms(&self) -> f64 {
        ratio(self.response.as_millis_f64(), self.committed as f64)
    }

    /// Of the last attempts the mean time of one part, milliseconds.
    pub fn part_ms(&self, part: impl Fn(&Times) -> Span) -> f64 {
        ratio(part(&self.times).as_millis_f64(), self.committed as f64)
    }

    /// Aborted attempts to a committed transaction.
    pub fn retry_share(&self) -> f64 {
        ratio(self.retries as f64, self.committed as f64)
    }
}

impl AddAssign for Times {
    fn add_assign(&mut self, other: Times) {
        self.begin = self.begin + other.begin;
        self.read = self.read + other.read;
        self.commit = self.commit + other.commit;
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.committed += other.committed;
        self.response = self.response + other.response;
        self.times += other.times;
        self.retries += other.retries;
        self.failed += other.failed;
    }
}

impl<'a> Sum<&'a Counts> for Counts {
    fn sum<I: Iterator<Item = &'a Counts>>(counts: I) -> Counts {
        counts.fold(Counts::default(), |mut sum, counts| {
            sum += *counts;
            sum
        })
    }
}

impl Meter {
    /// A meter for so many stages and sites.
    pub(super) fn new(stages: usize, sites: usize) -> Meter {
        Meter { stages: vec![vec![Counts::default(); sites]; stages], measuring: None }
    }

    /// The counts of a site, if a stage is being measured.
    pub(super) fn now(&mut self, site: usize) -> Option<&mut Counts> {
        self.measuring.map(|stage| &mut self.stages[stage][site])
    }

    /// All sites in one stage.
    pub fn stage(&self, stage: usize) -> Counts {
        self.stages[stage].iter().sum()
    }

    /// All sites in all stages.
    pub fn all(&self) -> Counts {
        self.stages.iter().flatten().sum()
    }

    /// One site in all stages.
    pub fn site(&self, site: usize) -> Counts {
        self.stages.iter().map(|sites| &sites[site]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_over_stages_and_sites() {
        let mut meter = Meter::new(2, 2);
        assert!(meter.now(0).is_none(), "nothing is measured yet");
        for (stage, site, millis) in [(0, 0, 10), (1, 0, 20), (1, 1, 60)] {
            meter.measuring = Some(stage);
            let counts = meter.now(site).expect("it is measured");
            *counts += Counts { committed: 1, response: Span::from_millis(millis), retries: 2, ..Counts::default() };
        }
        let means = [meter.all(), meter.stage(1), meter.site(0)].map(|counts| counts.mean_ms());
        assert_eq!((means, meter.all().retry_share()), ([30.0, 40.0, 15.0], 2.0));
    }
}
