//! ARIMA: the differenced series as a linear function of its own past (AR) and of past forecast errors (MA).
//!
//! ```text
//! w  = (1 − B)^d (1 − B^s)^D x                       differences: take away level, trend and season
//! w' = c + Σ φ_l · w[−l] + Σ θ_l · e[−l]             l in 1..p and 1..q, and s and s+1 where there is a season s
//! x' = w' + what the differences took away
//! ```
//!
//! The coefficients are found by the method of Hannan and Rissanen: a long autoregression estimates the errors, then one
//! linear regression on past values and those errors gives φ and θ. It is two linear solves, with no iteration that could
//! fail to converge. A season enters by lags of its own, added, rather than by the product of two polynomials.
//!
//! Simplified: an MA part that is not invertible lets an error grow without end, so where the fit with errors is no
//! better on its own training series than one without, the MA part is dropped.

mod difference;
mod linear;

use crate::forecaster::{EPOCHS_MAX, Forecaster, PERIOD_MAX, Progress, TrainError, check_series};
use crate::format::{self, Kind};
use crate::history::History;
use difference::Difference;
use linear::Linear;
use serde::{Deserialize, Serialize};

/// The most lags of the AR and of the MA part, each.
pub const LAGS_MAX: usize = 100;
/// The most differences of neighbouring values.
pub const DIFFERENCES_MAX: usize = 2;
/// The least lags of the autoregression that estimates the errors.
const LONG_LAGS_MIN: usize = 10;
/// Values per coefficient below which a fit says nothing.
const VALUES_PER_COEFFICIENT: usize = 3;

/// The order of an ARIMA model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Past values used, at most [`LAGS_MAX`].
    pub p: usize,
    /// Differences taken, at most [`DIFFERENCES_MAX`].
    pub d: usize,
    /// Past errors used, at most [`LAGS_MAX`].
    pub q: usize,
    /// The period of a season, in epochs: one seasonal difference is taken, and its lags are used.
    pub season: Option<usize>,
}

impl Order {
    /// The same order within the bounds.
    fn bounded(self) -> Order {
        Order {
            p: self.p.min(LAGS_MAX),
            d: self.d.min(DIFFERENCES_MAX),
            q: self.q.min(LAGS_MAX),
            season: self.season.filter(|period| *period > 1).map(|period| period.min(PERIOD_MAX)),
        }
    }

    fn lags(self, upto: usize) -> Vec<usize> {
        let mut lags: Vec<usize> = (1..=upto).collect();
        if let Some(period) = self.season.filter(|_| upto > 0) {
            lags.extend([period, period + 1].into_iter().filter(|lag| *lag > upto));
        }
        lags
    }

    /// The lags of the autoregression that estimates the errors: long enough to leave little of the MA part in them.
    fn long_lags(self) -> Vec<usize> {
        self.lags((2 * (self.p + self.q)).clamp(LONG_LAGS_MIN, LAGS_MAX))
    }

    /// The longest lag of any part: how many differences and errors to keep.
    fn reach(self) -> usize {
        self.long_lags().into_iter().max().unwrap_or(LONG_LAGS_MIN)
    }
}

/// An ARIMA model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arima {
    order: Order,
    linear: Linear,
    /// Values as they came, their differences, and the errors made on these.
    values: History,
    differences: History,
    errors: History,
}

impl Arima {
    /// A model of `order`, cut to the bounds of its parts. Until it is trained it takes the differences to stay zero.
    pub fn new(order: Order) -> Arima {
        let order = order.bounded();
        let lags = order.reach();
        Arima {
            order,
            linear: Linear::zero(),
            values: History::keeping(Difference::of(order).reach()),
            differences: History::keeping(lags),
            errors: History::keeping(lags),
        }
    }

    pub(crate) fn is_sound(&self) -> bool {
        if self.order != self.order.bounded() {
            return false;
        }
        let lags = self.order.reach();
        self.values.is_sound(Difference::of(self.order).reach())
            && self.differences.is_sound(lags)
            && self.errors.is_sound(lags)
            && self.linear.is_sound(lags)
            && self.differences.seen() == self.errors.seen()
    }

    fn fit(&self, differences: &[f64]) -> Linear {
        let scale = differences.iter().map(|value| value.abs()).sum::<f64>() / differences.len() as f64;
        if scale == 0.0 {
            return Linear::zero();
        }
        let scaled: Vec<f64> = differences.iter().map(|value| value / scale).collect();
        let none = vec![0.0; scaled.len()];
        let own = Linear::fit(&scaled, &none, &self.order.lags(self.order.p), &[]);
        let long = Linear::fit(&scaled, &none, &self.order.long_lags(), &[]);
        let errors = long.follow(&scaled);
        let both = Linear::fit(&scaled, &errors, &self.order.lags(self.order.p), &self.order.lags(self.order.q));
        let squares = |linear: &Linear| linear.follow(&scaled).iter().map(|error| error * error).sum::<f64>();
        // The comparison is false too where the errors grew beyond all numbers.
        let best = if squares(&both) < squares(&own) { both } else { own };
        best.scaled(scale)
    }
}

impl Forecaster for Arima {
    fn name(&self) -> String {
        let Order { p, d, q, season } = self.order;
        season.map_or_else(|| format!("ARIMA({p},{d},{q})"), |period| format!("ARIMA({p},{d},{q}) season {period}"))
    }

    fn train(&mut self, series: &[f64], progress: &mut dyn FnMut(Progress)) -> Result<(), TrainError> {
        let coefficients = 1 + self.order.long_lags().len();
        let needed = Difference::of(self.order).reach() + self.order.reach() + VALUES_PER_COEFFICIENT * coefficients;
        check_series(&self.name(), series, needed)?;
        let differences = Difference::of(self.order).all(series);
        let linear = self.fit(&differences);
        let error = linear.follow(&differences).iter().map(|error| error.abs()).sum::<f64>() / differences.len() as f64;
        *self = Arima { linear, ..Arima::new(self.order) };
        series.iter().for_each(|value| self.observe(*value));
        progress(Progress { done: 1, total: 1, error });
        Ok(())
    }

    fn observe(&mut self, value: f64) {
        if let Some(removed) = Difference::of(self.order).removed(self.values.values()) {
            let difference = value - removed;
            let error = difference - self.linear.next(self.differences.values(), self.errors.values());
            self.differences.push(difference);
            self.errors.push(error);
        }
        self.values.push(value);
    }

    fn predict(&self, epochs: usize) -> Vec<f64> {
        let filter = Difference::of(self.order);
        let (mut values, mut differences) = (self.values.clone(), self.differences.clone());
        let mut errors = self.errors.clone();
        let Some(last) = values.last() else { return Vec::new() };
        let epochs = epochs.min(EPOCHS_MAX);
        let mut forecast = Vec::with_capacity(epochs);
        for _ in 0..epochs {
            let next = filter.removed(values.values()).map_or(last, |removed| {
                let difference = self.linear.next(differences.values(), errors.values());
                differences.push(difference);
                // What is to come is expected to be met: a future error is zero.
                errors.push(0.0);
                removed + difference
            });
            values.push(next);
            forecast.push(next);
        }
        forecast
    }

    fn save(&self) -> Vec<u8> {
        format::encode(Kind::Arima, self)
    }
}
