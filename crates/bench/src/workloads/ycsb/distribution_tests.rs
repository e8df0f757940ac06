//! Goodness of fit, by Pearson's chi-square with fixed seeds.

use super::*;

const DRAWS: u64 = 200_000;

/// Draws against expected probabilities. With k degrees of freedom the statistic has mean k and variance 2k: five standard deviations is a broken sampler.
fn assert_fits(counts: &[u64], probabilities: &[f64]) {
    let total: u64 = counts.iter().sum();
    let chi_square: f64 = counts
        .iter()
        .zip(probabilities)
        .map(|(count, probability)| {
            let expected = probability * total as f64;
            (*count as f64 - expected).powi(2) / expected
        })
        .sum();
    let freedom = (counts.len() - 1) as f64;
    assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "chi-square {chi_square} with {freedom} degrees of freedom");
}

fn zipf_law(n: u64, theta: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn counts(n: u64, mut draw: impl FnMut() -> u64) -> Vec<u64> {
    let mut counts = vec![0; n as usize];
    (0..DRAWS).for_each(|_| counts[draw() as usize] += 1);
    counts
}

#[test]
fn zipf_follows_its_law_for_every_skew() {
    for theta in [0.2, 0.5, 0.99, 1.0, 1.5, 2.0] {
        let (zipf, mut rng) = (Zipf::new(50, theta), Rng::seeded(7));
        assert_fits(&counts(50, || zipf.sample(&mut rng) - 1), &zipf_law(50, theta));
    }
}

#[test]
fn zipf_over_few_ranks_follows_its_law() {
    let mut rng = Rng::seeded(7);
    assert!((0..100).all(|_| Zipf::new(1, 0.99).sample(&mut rng) == 1));
    let zipf = Zipf::new(2, 0.99);
    assert_fits(&counts(2, || zipf.sample(&mut rng) - 1), &zipf_law(2, 0.99));
}

#[test]
fn the_test_of_fit_refuses_another_law() {
    let (zipf, mut rng) = (Zipf::new(50, 0.9), Rng::seeded(7));
    let counts = counts(50, || zipf.sample(&mut rng) - 1);
    assert!(std::panic::catch_unwind(|| assert_fits(&counts, &zipf_law(50, 0.99))).is_err());
}

#[test]
fn a_scramble_is_a_permutation_without_a_pattern() {
    for n in [1, 2, 3, 100, 1_000, 4_097] {
        let scramble = Scramble::new(n);
        let mut image: Vec<u64> = (0..n).map(|i| scramble.apply(i)).collect();
        image.sort_unstable();
        assert_eq!(image, (0..n).collect::<Vec<_>>());
    }
    let scramble = Scramble::new(1_000);
    assert!((0..1_000).filter(|i| scramble.apply(*i) == *i).count() < 10);
}

#[test]
fn uniform_reaches_what_was_inserted() {
    let (chooser, mut rng) = (Chooser::new(Distribution::Uniform, 30), Rng::seeded(7));
    assert_fits(&counts(40, || chooser.choose(40, &mut rng)), &[1.0 / 40.0; 40]);
}

#[test]
fn scrambled_zipfian_keeps_the_law_and_moves_the_ranks() {
    let (chooser, mut rng) = (Chooser::new(Distribution::Zipfian { theta: 0.99, scrambled: true }, 50), Rng::seeded(7));
    let counts = counts(50, || chooser.choose(50, &mut rng));
    let by_rank: Vec<u64> = (0..50).map(|rank| counts[Scramble::new(50).apply(rank) as usize]).collect();
    assert_fits(&by_rank, &zipf_law(50, 0.99));
    assert_ne!(by_rank, counts);
}

#[test]
fn latest_prefers_the_newest() {
    let (chooser, mut rng) = (Chooser::new(Distribution::Latest { theta: 0.99 }, 30), Rng::seeded(7));
    let mut by_age = counts(40, || chooser.choose(40, &mut rng));
    by_age.reverse();
    assert_fits(&by_age, &zipf_law(40, 0.99));
}
