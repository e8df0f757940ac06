//! The random data of clauses 2.1.6 and 4.3.2: NURand, customers' last names, strings.

use rhumb_core::Rng;
use rust_decimal::Decimal;

use super::scale::Scale;

/// The range A of NURand for customers' last names.
const A_LAST: u64 = 255;
/// The range A of NURand for customers' numbers.
const A_CUSTOMER: u64 = 1023;
/// The range A of NURand for items.
const A_ITEM: u64 = 8191;

/// Last names that clause 4.3.2.3 can form.
const LAST_NAMES: u64 = 1_000;

/// The constant C that the loader uses for last names.
const C_LAST_LOAD: u64 = 123;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Non-uniform random numbers: some are more popular than others, and which ones depends on constants chosen per run.
#[derive(Clone, Copy, Debug)]
pub struct NuRand {
    c_last: u64,
    c_customer: u64,
    c_item: u64,
    last_names: u64,
    customers: u64,
    items: u64,
}

impl NuRand {
    /// The constants of the loader.
    pub fn for_load(scale: Scale) -> NuRand {
        NuRand::with(scale, C_LAST_LOAD, 0, 0)
    }

    /// The constants of a run, drawn so that the one for last names keeps its prescribed distance from the loader's (clause 2.1.6.1).
    pub fn for_run(scale: Scale, rng: &mut Rng) -> NuRand {
        let c_last = loop {
            let c = rng.between(0, A_LAST);
            let delta = c.abs_diff(C_LAST_LOAD);
            if (65..=119).contains(&delta) && delta != 96 && delta != 112 {
                break c;
            }
        };
        NuRand::with(scale, c_last, rng.between(0, A_CUSTOMER), rng.between(0, A_ITEM))
    }

    fn with(scale: Scale, c_last: u64, c_customer: u64, c_item: u64) -> NuRand {
        let (customers, items) = (u64::from(scale.customers_per_district), u64::from(scale.items));
        NuRand { c_last, c_customer, c_item, last_names: customers.min(LAST_NAMES), customers, items }
    }

    /// The number of a customer, from 1.
    pub fn customer(&self, rng: &mut Rng) -> i32 {
        nurand(A_CUSTOMER, 1, self.customers, self.c_customer, rng) as i32
    }

    /// The number of an item, from 1.
    pub fn item(&self, rng: &mut Rng) -> i32 {
        nurand(A_ITEM, 1, self.items, self.c_item, rng) as i32
    }

    /// A last name that some customer has.
    pub fn last_name(&self, rng: &mut Rng) -> String {
        last_name(nurand(A_LAST, 0, self.last_names - 1, self.c_last, rng))
    }
}

/// NURand(A, x, y) with the constant C (clause 2.1.6).
fn nurand(a: u64, x: u64, y: u64, c: u64, rng: &mut Rng) -> u64 {
    ((rng.between(0, a) | rng.between(x, y)) + c) % (y - x + 1) + x
}

/// The last name of number 0 to 999: a syllable per digit.
pub fn last_name(number: u64) -> String {
    [number / 100 % 10, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Letters and digits, from `low` to `high` of them.
pub fn letters(rng: &mut Rng, low: u64, high: u64) -> String {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let length = rng.between(low, high);
    (0..length).map(|_| char::from(ALPHABET[rng.below(62) as usize])).collect()
}

/// Exactly `length` digits.
pub fn digits(rng: &mut Rng, length: usize) -> String {
    (0..length).map(|_| char::from(b'0' + rng.below(10) as u8)).collect()
}

/// A postal code: four random digits and five ones.
pub fn zip(rng: &mut Rng) -> String {
    digits(rng, 4) + "11111"
}

/// 26 to 50 letters, of which every tenth string holds "ORIGINAL" somewhere.
pub fn data(rng: &mut Rng) -> String {
    const MARK: &str = "ORIGINAL";
    let mut text = letters(rng, 26, 50);
    if rng.chance(0.1) {
        let at = rng.below((text.len() - MARK.len()) as u64 + 1) as usize;
        text.replace_range(at..at + MARK.len(), MARK);
    }
    text
}

/// A number from `low` to `high` units of 10^-`scale`.
pub fn decimal(rng: &mut Rng, low: u64, high: u64, scale: u32) -> Decimal {
    Decimal::new(rng.between(low, high) as i64, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_spelled_by_digits() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn nurand_stays_in_its_range_and_reaches_both_ends() {
        let (nurand, mut rng) = (NuRand::for_run(Scale::conforming(1), &mut Rng::seeded(7)), Rng::seeded(8));
        let customers: Vec<i32> = (0..200_000).map(|_| nurand.customer(&mut rng)).collect();
        assert_eq!((customers.iter().min(), customers.iter().max()), (Some(&1), Some(&3_000)));
        assert!((0..200_000).map(|_| nurand.item(&mut rng)).all(|item| (1..=100_000).contains(&item)));
    }

    #[test]
    fn nurand_is_the_formula_of_the_specification() {
        // With A = 0 the first term vanishes and what is left is uniform, shifted by C.
        let mut rng = Rng::seeded(7);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[nurand(0, 1, 10, 3, &mut rng) as usize - 1] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        // The bitwise or favours numbers with many ones: of 0..=255 with A = 255, three quarters of all bits are set.
        let ones: u32 = (0..100_000).map(|_| (nurand(255, 0, 255, 0, &mut rng) as u8).count_ones()).sum();
        assert!((ones as f64 / 800_000.0 - 0.75).abs() < 0.005, "{ones}");
    }

    #[test]
    fn the_constant_of_a_run_keeps_its_distance_from_the_loaders() {
        for seed in 0..500 {
            let delta = NuRand::for_run(Scale::conforming(1), &mut Rng::seeded(seed)).c_last.abs_diff(C_LAST_LOAD);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "{delta}");
        }
    }

    #[test]
    fn a_small_scale_draws_only_what_it_holds() {
        let scale = Scale { customers_per_district: 30, items: 100, ..Scale::conforming(1) };
        let (nurand, mut rng) = (NuRand::for_run(scale, &mut Rng::seeded(7)), Rng::seeded(8));
        let names: std::collections::BTreeSet<String> = (0..30).map(last_name).collect();
        for _ in 0..10_000 {
            assert!((1..=30).contains(&nurand.customer(&mut rng)) && (1..=100).contains(&nurand.item(&mut rng)));
            assert!(names.contains(&nurand.last_name(&mut rng)));
        }
    }

    #[test]
    fn a_tenth_of_all_data_is_original() {
        let mut rng = Rng::seeded(7);
        let texts: Vec<String> = (0..20_000).map(|_| data(&mut rng)).collect();
        assert!(texts.iter().all(|text| (26..=50).contains(&text.len())));
        let original = texts.iter().filter(|text| text.contains("ORIGINAL")).count();
        assert!((1_800..2_200).contains(&original), "{original}");
    }
}
