//! Axes: where a value stands on its scale, and which round values are marked.

use super::error::{PlotError, VALUE_MAX};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// Decades of a logarithmic axis from which on only powers of ten are marked.
const DECADES_SPARSE: f64 = 2.0;
/// What rounding may do to a place.
const ROUNDING: f64 = 1e-9;
/// Digits before the point, or zeros after it, from which on a label is written as a power of ten.
const DIGITS_MAX: i32 = 7;

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally long.
    #[default]
    Linear,
    /// Equal ratios are equally long. Values are above zero.
    Log,
}

/// What an axis shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The quantity with its unit: `latency (ms)`.
    pub label: String,
    /// How it is spread.
    pub scale: Scale,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log }
    }
}

/// Refuses what has no place on an axis of this scale.
pub(super) fn check(series: &str, point: usize, value: f64, scale: Scale) -> Result<(), PlotError> {
    let series = || series.to_owned();
    if value.is_nan() || value.abs() > VALUE_MAX {
        return Err(PlotError::NotANumber { series: series(), point, value });
    }
    if scale == Scale::Log && value < 1.0 / VALUE_MAX {
        return Err(PlotError::NotPositive { series: series(), point, value });
    }
    Ok(())
}

/// Whether an axis ends where the data does, or at a round value beyond.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// At the data, as time does.
    Tight,
    /// At a round value; a linear axis of values that are not negative begins at zero, so that heights compare.
    Round,
}

/// An axis laid out for its data. Inside it counts in *places*: what the scale makes of values, that is their logarithm or
/// themselves.
#[derive(Clone)]
pub(super) struct Ruler {
    scale: Scale,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
    decimals: usize,
}

impl Ruler {
    /// An axis that holds all `values`, which passed [`check`], with about `wanted` ticks.
    pub(super) fn spanning(scale: Scale, values: impl Iterator<Item = f64>, ends: Ends, wanted: usize) -> Ruler {
        let (mut from, mut to) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), value| {
            let place = scale.place(value);
            (from.min(place), to.max(place))
        });
        if ends == Ends::Round && scale == Scale::Linear {
            (from, to) = (from.min(0.0), to.max(0.0));
        }
        if from == to {
            let margin = if from == 0.0 { 1.0 } else { from.abs() * 0.1 };
            (from, to) = (from - margin, to + margin);
        }
        match scale {
            Scale::Linear => Ruler::linear(from, to, ends, wanted),
            Scale::Log => Ruler::log(from, to, ends, wanted),
        }
    }

    fn linear(mut from: f64, mut to: f64, ends: Ends, wanted: usize) -> Ruler {
        let step = round_step((to - from) / wanted as f64);
        if ends == Ends::Round {
            (from, to) = ((from / step).floor() * step, (to / step).ceil() * step);
        }
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        Ruler { scale: Scale::Linear, from, to, ticks: multiples(step, from, to), decimals }
    }

    fn log(mut from: f64, mut to: f64, ends: Ends, wanted: usize) -> Ruler {
        let decades = to - from;
        let marks = |from: f64, to: f64| {
            if decades > DECADES_SPARSE {
                return multiples((decades / wanted as f64).ceil(), from, to);
            }
            let decade = |power: i32| [1.0_f64, 2.0, 5.0].map(|factor| f64::from(power) + factor.log10());
            let all = (from.floor() as i32..=to.ceil() as i32).flat_map(decade);
            all.filter(|place| (from - ROUNDING..=to + ROUNDING).contains(place)).collect()
        };
        if ends == Ends::Round {
            let around: Vec<f64> = marks(from.floor() - wanted as f64, to.ceil() + wanted as f64);
            (from, to) = (
                around.iter().copied().filter(|mark| *mark <= from + ROUNDING).fold(f64::NEG_INFINITY, f64::max),
                around.iter().copied().filter(|mark| *mark >= to - ROUNDING).fold(f64::INFINITY, f64::min),
            );
        }
        let ticks = marks(from, to).into_iter().map(|place| 10.0_f64.powf(place)).collect();
        Ruler { scale: Scale::Log, from, to, ticks, decimals: 0 }
    }

    /// An axis of `count` groups, each one wide, that are labelled by whoever draws them.
    pub(super) fn groups(count: usize) -> Ruler {
        Ruler { scale: Scale::Linear, from: 0.0, to: count as f64, ticks: Vec::new(), decimals: 0 }
    }

    /// Characters of the longest label.
    pub(super) fn label_width(&self) -> usize {
        self.ticks.iter().map(|tick| self.format_ext(tick).chars().count()).max().unwrap_or(0)
    }
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (self.scale.place(*value) - self.from) / (self.to - self.from);
        first + (share * f64::from(last - first)).round() as i32
    }

    /// The ticks. There are no lesser ones between them.
    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.scale.value(self.from)..self.scale.value(self.to)
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format_ext(&self, tick: &f64) -> String {
        match self.scale {
            Scale::Linear => number(*tick, self.decimals),
            Scale::Log => number(*tick, (-(tick.log10() + ROUNDING).floor()).max(0.0) as usize),
        }
    }
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Scale::Linear => place,
            Scale::Log => 10.0_f64.powf(place),
        }
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10.0_f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power).find(|step| *step >= raw * (1.0 - ROUNDING)).unwrap_or(10.0 * power)
}

/// All multiples of `step` from `from` to `to`, with some tolerance for what rounding does to the last.
fn multiples(step: f64, from: f64, to: f64) -> Vec<f64> {
    let (first, last) = ((from / step - ROUNDING).ceil() as i64, (to / step + ROUNDING).floor() as i64);
    (first..=last).map(|multiple| multiple as f64 * step).collect()
}

/// A number as people read it: `12,500`, `0.43`, `1e9`.
pub(super) fn number(value: f64, decimals: usize) -> String {
    let size = if value == 0.0 { 0 } else { (value.abs().log10() + ROUNDING).floor() as i32 };
    if size.abs() >= DIGITS_MAX {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').expect("the format has an exponent");
        return format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let groups: Vec<&str> = whole.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).expect("digits")).collect();
    let sign = if value < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) { "−" } else { "" };
    format!("{sign}{}{rest}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64], ends: Ends) -> Vec<String> {
        let ruler = Ruler::spanning(scale, values.iter().copied(), ends, 5);
        ruler.ticks.iter().map(|tick| ruler.format_ext(tick)).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_hold_the_data() {
        assert_eq!(labels(Scale::Linear, &[3.0, 9.7], Ends::Round), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(Scale::Linear, &[0.1, 0.43], Ends::Round), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(Scale::Linear, &[-1.0, 12_500.0], Ends::Round), ["−5,000", "0", "5,000", "10,000", "15,000"]);
        assert_eq!(labels(Scale::Linear, &[7.0, 7.0], Ends::Tight), ["6.5", "7.0", "7.5"]);
        assert_eq!(labels(Scale::Linear, &[0.0], Ends::Round), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(Scale::Linear, &[0.0, 1e15], Ends::Round), ["0", "2e14", "4e14", "6e14", "8e14", "1e15"]);
        assert_eq!(labels(Scale::Linear, &[300.0, 720.0], Ends::Tight), ["300", "400", "500", "600", "700"]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_between() {
        assert_eq!(labels(Scale::Log, &[0.3, 4_000.0], Ends::Round), ["0.1", "1", "10", "100", "1,000", "10,000"]);
        assert_eq!(labels(Scale::Log, &[1.5, 30.0], Ends::Round), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(Scale::Log, &[0.02, 0.3], Ends::Tight), ["0.02", "0.05", "0.1", "0.2"]);
        assert_eq!(labels(Scale::Log, &[1e-12, 1e12], Ends::Round), ["1e-15", "1e-10", "0.00001", "1", "100,000", "1e10", "1e15"]);
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let error = |value, scale| check("a", 3, value, scale).map_err(|error| error.to_string());
        assert_eq!(error(f64::NAN, Scale::Linear), Err("`a`, point 3: NaN is not a number of at most 1e15".into()));
        assert_eq!(error(f64::INFINITY, Scale::Log), Err("`a`, point 3: inf is not a number of at most 1e15".into()));
        assert_eq!(error(0.0, Scale::Log), Err("`a`, point 3: 0 has no place on a logarithmic axis; values there are above zero".into()));
        assert_eq!(error(0.0, Scale::Linear), Ok(()));
    }
}
