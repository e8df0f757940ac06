//! Which record an operation touches: uniform, Zipfian, scrambled Zipfian or latest, each exact and seeded.
//!
//! Zipf's law over ranks 1..=n, P(k) ∝ k^-θ, is sampled by rejection-inversion (Hörmann and Derflinger, 1996): exact for every θ > 0, without tables, and so
//! as cheap for a growing n as for a fixed one. Scrambling puts the popular ranks anywhere in the key space by a permutation, which, unlike a hash, keeps the
//! law exact.

use rhumb_core::Rng;

/// Zipf's law over the ranks 1 to `n`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    area_first: f64,
    area_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// The law for `n` ranks (at least one) and skew `theta` (above zero).
    pub fn new(n: u64, theta: f64) -> Zipf {
        assert!(n > 0 && theta > 0.0, "Zipf's law needs ranks and a positive exponent");
        let area_first = integral(1.5, theta) - 1.0;
        let area_last = integral(n as f64 + 0.5, theta);
        let shortcut = 2.0 - integral_inverse(integral(2.5, theta) - 2f64.powf(-theta), theta);
        Zipf { n, theta, area_first, area_last, shortcut }
    }

    /// A rank from 1 to `n`.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.area_last + rng.unit() * (self.area_first - self.area_last);
            let x = integral_inverse(u, self.theta);
            let k = x.round().clamp(1.0, self.n as f64);
            if k - x <= self.shortcut || u >= integral(k + 0.5, self.theta) - k.powf(-self.theta) {
                return k as u64;
            }
        }
    }
}

/// ∫ x^-θ dx from 1, continuous in θ at 1.
fn integral(x: f64, theta: f64) -> f64 {
    let log = x.ln();
    log * expm1_over((1.0 - theta) * log)
}

fn integral_inverse(area: f64, theta: f64) -> f64 {
    // Rounding may push the argument just below -1, where the logarithm ends.
    let t = (area * (1.0 - theta)).max(-1.0);
    (area * ln1p_over(t)).exp()
}

/// (e^t - 1) / t.
fn expm1_over(t: f64) -> f64 {
    if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 }
}

/// ln(1 + t) / t.
fn ln1p_over(t: f64) -> f64 {
    if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t / 2.0 }
}

/// A permutation of 0..n that looks random: a Feistel network over the next power of four, walked until it falls below n.
#[derive(Clone, Copy, Debug)]
pub struct Scramble {
    n: u64,
    half_bits: u32,
}

impl Scramble {
    const ROUNDS: u64 = 4;

    /// The permutation of 0..n.
    pub fn new(n: u64) -> Scramble {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Scramble { n, half_bits: bits.div_ceil(2).max(1) }
    }

    /// Where `index` (below n) goes.
    pub fn apply(&self, index: u64) -> u64 {
        let mut at = index;
        loop {
            at = self.feistel(at);
            if at < self.n {
                return at;
            }
        }
    }

    fn feistel(&self, index: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (index >> self.half_bits, index & mask);
        for round in 0..Scramble::ROUNDS {
            (left, right) = (right, left ^ (mix(right ^ (round << 56)) & mask));
        }
        left << self.half_bits | right
    }
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the argument.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Which records are popular.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipfian: few are very popular.
    Zipfian {
        /// The skew; 0.99 is usual.
        theta: f64,
        /// Popular records lie anywhere among the loaded ones rather than at their start.
        scrambled: bool,
    },
    /// Zipfian by age: the newest are the most popular.
    Latest {
        /// The skew; 0.99 is usual.
        theta: f64,
    },
}

/// Draws records by a [`Distribution`].
#[derive(Clone, Copy, Debug)]
pub struct Chooser {
    distribution: Distribution,
    loaded: u64,
    zipf: Option<Zipf>,
    scramble: Scramble,
}

impl Chooser {
    /// A chooser among `loaded` records (at least one) and those inserted later.
    pub fn new(distribution: Distribution, loaded: u64) -> Chooser {
        let zipf = match distribution {
            Distribution::Zipfian { theta, .. } => Some(Zipf::new(loaded, theta)),
            Distribution::Uniform | Distribution::Latest { .. } => None,
        };
        Chooser { distribution, loaded, zipf, scramble: Scramble::new(loaded) }
    }

    /// The ordinal, below `count`, of a record. `count` is what is there by now, at least what was loaded.
    pub fn choose(&self, count: u64, rng: &mut Rng) -> u64 {
        match (self.distribution, self.zipf) {
            (Distribution::Latest { theta }, _) => count - Zipf::new(count, theta).sample(rng),
            (Distribution::Zipfian { scrambled: true, .. }, Some(zipf)) => self.scramble.apply(zipf.sample(rng) - 1),
            (Distribution::Zipfian { .. }, Some(zipf)) => zipf.sample(rng) - 1,
            (Distribution::Zipfian { .. }, None) => unreachable!("a Zipfian chooser was made with its law"),
            (Distribution::Uniform, _) => rng.below(count.max(self.loaded)),
        }
    }
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
