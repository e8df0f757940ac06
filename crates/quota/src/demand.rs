//! How many tokens a site is going to need: the prediction module (Samya, 4.2).
//!
//! The demand of an epoch is the most that its acquisitions were ahead of its releases since it began: with that many
//! tokens left at its beginning, the site would have answered every request at once. A site without a [`Predictor`] looks
//! ahead no further than its own last moments.

use rhumb_core::{Span, Time};

/// How many epochs without a request a predictor is fed one by one, even after a longer pause.
const IDLE_EPOCHS_MAX: u64 = 1_000;

/// Forecasts the demand of the next epoch. Any model will do; see [`Forecast`](crate::forecast::Forecast).
pub trait Predictor: Send {
    /// The demand of the epoch that just ended, in tokens.
    fn observe(&mut self, demand: f64);
    /// The expected demand of the next epoch, in tokens; none as long as too little is known.
    fn predict(&self) -> Option<f64>;
}

/// The demand for one quota at one site.
pub struct Demand {
    epoch: Span,
    /// When the running epoch ends; none before the first request.
    ends: Option<Time>,
    /// Acquired less released since it began.
    net: i64,
    /// The most that `net` was.
    peak: u64,
    /// The demand of the epoch before.
    last: u64,
    predictor: Option<Box<dyn Predictor>>,
    /// The forecast of the running epoch's successor, made once.
    predicted: Option<Option<u64>>,
}

impl Demand {
    /// No demand yet, in epochs of that length.
    pub fn new(epoch: Span, predictor: Option<Box<dyn Predictor>>) -> Demand {
        Demand { epoch, ends: None, net: 0, peak: 0, last: 0, predictor, predicted: None }
    }

    /// `amount` tokens are asked for.
    pub fn acquire(&mut self, amount: u64, now: Time) {
        self.roll(now);
        self.net = self.net.saturating_add_unsigned(amount);
        self.peak = self.peak.max(self.net.max(0) as u64);
    }

    /// `amount` tokens have come back.
    pub fn release(&mut self, amount: u64, now: Time) {
        self.roll(now);
        self.net = self.net.saturating_sub_unsigned(amount);
    }

    /// The forecast for the next epoch, if there is a model and it has seen enough.
    pub fn predicted(&mut self, now: Time) -> Option<u64> {
        self.roll(now);
        let predictor = self.predictor.as_ref()?;
        let predict = || predictor.predict().filter(|demand| demand.is_finite()).map(|demand| demand.max(0.0).ceil() as u64);
        *self.predicted.get_or_insert_with(predict)
    }

    /// What the next `span` may need if the near future is as the near past.
    pub fn moments(&mut self, span: Span, now: Time) -> u64 {
        self.roll(now);
        let busiest = u128::from(self.peak.max(self.last));
        let part = busiest * u128::from(span.as_micros()).min(u128::from(self.epoch.as_micros()));
        u64::try_from(part.div_ceil(u128::from(self.epoch.as_micros()))).unwrap_or(u64::MAX)
    }

    /// Ends the epochs that are over.
    fn roll(&mut self, now: Time) {
        let ends = *self.ends.get_or_insert(now + self.epoch);
        if now < ends {
            return;
        }
        let over = 1 + now.since(ends).as_micros() / self.epoch.as_micros();
        for index in 0..over.min(IDLE_EPOCHS_MAX) {
            let demand = if index == 0 { self.peak } else { 0 };
            if let Some(predictor) = &mut self.predictor {
                predictor.observe(demand as f64);
            }
        }
        self.last = if over == 1 { self.peak } else { 0 };
        self.ends = Some(ends + self.epoch * over);
        (self.net, self.peak, self.predicted) = (0, 0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    const EPOCH: Span = Span::from_secs(10);

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    /// Predicts the last demand, and tells what it was told.
    struct Last(Option<f64>, Sender<f64>);

    impl Predictor for Last {
        fn observe(&mut self, demand: f64) {
            self.0 = Some(demand);
            self.1.send(demand).expect("the test listens");
        }

        fn predict(&self) -> Option<f64> {
            self.0
        }
    }

    #[test]
    fn demand_is_how_far_acquisitions_were_ahead() {
        let (tell, told) = channel();
        let mut demand = Demand::new(EPOCH, Some(Box::new(Last(None, tell))));
        demand.acquire(5, at(0));
        demand.release(3, at(1));
        demand.acquire(4, at(2));
        assert_eq!(demand.predicted(at(3)), None, "nothing was observed yet");
        demand.release(40, at(4));
        demand.acquire(2, at(11));
        assert_eq!(demand.predicted(at(12)), Some(6));
        demand.acquire(1, at(45));
        assert_eq!(told.try_iter().collect::<Vec<f64>>(), [6.0, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn the_next_moments_are_a_part_of_the_busier_of_two_epochs() {
        let mut demand = Demand::new(EPOCH, None);
        demand.acquire(100, at(0));
        assert_eq!(demand.moments(Span::from_secs(1), at(1)), 10);
        demand.acquire(1, at(11));
        assert_eq!(demand.moments(Span::from_millis(1), at(12)), 1, "rounded up");
        assert_eq!(demand.moments(Span::from_secs(60), at(12)), 100, "an epoch at the most");
        assert_eq!(demand.moments(Span::from_secs(1), at(40)), 0);
        assert_eq!(demand.predicted(at(40)), None);
    }
}
