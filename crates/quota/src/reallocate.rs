//! Who gets what: the redistribution module (Samya, 4.4, Algorithm 2).
//!
//! ```text
//!   spare  = all tokens on offer, less the debts of sites whose limit was lowered
//!   grants = what a [`Reallocate`] accepts of what is wanted, at most spare
//!          + the rest, divided equally among all who take part, the odd ones in the order given
//! ```
//!
//! Deterministic in whole numbers: every site works the same grants out of the same list.
//!
//! The paper's line 14 adds a refused site's tokens to the spare ones a second time, which mints them. What it means is
//! done here: refuse in ascending order of what is wanted until the rest fits. Its line 23 divides without saying who gets
//! the remainder.
//!
//! Invariant: the grants add up to what is spare.

use crate::spec::Reallocation;

/// Decides whose wants are met when not all can be.
pub trait Reallocate {
    /// How much of each want is granted; together at most `spare`, each at most what is wanted.
    fn accept(&self, spare: u64, wanted: &[u64]) -> Vec<u64>;
}

/// Algorithm 2, mended: the smallest wants are refused first, so that most tokens come to use.
pub struct MaximumUsage;

/// The largest wants are refused first, so that most sites get all they want.
pub struct MostSatisfied;

/// Each gets its share of what it wants.
pub struct Proportional;

/// Refuses wants in `order` until the rest fits.
fn refuse_until_it_fits(spare: u64, wanted: &[u64], order: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut accepted = wanted.to_vec();
    let mut total: u128 = wanted.iter().map(|wanted| u128::from(*wanted)).sum();
    for site in order {
        if total <= u128::from(spare) {
            break;
        }
        total -= u128::from(accepted[site]);
        accepted[site] = 0;
    }
    accepted
}

/// Indices by ascending want; among equals by index.
fn ascending(wanted: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|site| wanted[*site]);
    order
}

impl Reallocate for MaximumUsage {
    fn accept(&self, spare: u64, wanted: &[u64]) -> Vec<u64> {
        refuse_until_it_fits(spare, wanted, ascending(wanted).into_iter())
    }
}

impl Reallocate for MostSatisfied {
    fn accept(&self, spare: u64, wanted: &[u64]) -> Vec<u64> {
        refuse_until_it_fits(spare, wanted, ascending(wanted).into_iter().rev())
    }
}

impl Reallocate for Proportional {
    fn accept(&self, spare: u64, wanted: &[u64]) -> Vec<u64> {
        let total: u128 = wanted.iter().map(|wanted| u128::from(*wanted)).sum();
        if total <= u128::from(spare) {
            return wanted.to_vec();
        }
        wanted.iter().map(|wanted| (u128::from(*wanted) * u128::from(spare) / total) as u64).collect()
    }
}

impl Reallocation {
    /// The module that goes by this name.
    pub fn module(self) -> &'static dyn Reallocate {
        match self {
            Reallocation::MaximumUsage => &MaximumUsage,
            Reallocation::MostSatisfied => &MostSatisfied,
            Reallocation::Proportional => &Proportional,
        }
    }
}

/// What each gets of `spare` tokens: what is accepted of its want, and an equal part of the rest.
pub fn grants(module: &dyn Reallocate, spare: u64, wanted: &[u64]) -> Vec<u64> {
    let mut grants = module.accept(spare, wanted);
    let used: u64 = grants.iter().sum();
    let rest = spare.checked_sub(used).expect("a module accepts no more than is spare");
    for (grant, part) in grants.iter_mut().zip(divide(rest, wanted.len())) {
        *grant += part;
    }
    grants
}

/// `total` in `parts` equal parts, the first of them larger by one if it does not divide.
pub fn divide(total: u64, parts: usize) -> impl Iterator<Item = u64> {
    let count = parts as u64;
    (0..count).map(move |index| total / count + u64::from(index < total % count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_granted_and_the_rest_divided() {
        assert_eq!(grants(&MaximumUsage, 100, &[10, 0, 30]), [30, 20, 50]);
        assert_eq!(grants(&MaximumUsage, 102, &[10, 0, 31]), [31, 20, 51], "the odd one goes to the first");
    }

    #[test]
    fn the_smallest_wants_are_refused_first_for_usage_and_the_largest_for_satisfaction() {
        let wanted = [50, 20, 60];
        assert_eq!(MaximumUsage.accept(100, &wanted), [0, 0, 60], "20 goes, then 50");
        assert_eq!(MaximumUsage.accept(110, &wanted), [50, 0, 60]);
        assert_eq!(MostSatisfied.accept(100, &wanted), [50, 20, 0]);
        assert_eq!(MaximumUsage.accept(59, &wanted), [0, 0, 0], "none fits alone");
        assert_eq!(Proportional.accept(65, &wanted), [25, 10, 30]);
    }

    #[test]
    fn the_algorithm_as_printed_would_have_granted_what_is_not_there() {
        // Five sites offer 20 each; three want 50. Printed, refusing the first adds its 20 again: 120 spare, then 140, ...
        let grants = grants(&MaximumUsage, 100, &[50, 50, 50, 0, 0]);
        assert_eq!(grants, [0, 50, 50, 0, 0]);
        assert_eq!(grants.iter().sum::<u64>(), 100);
    }

    proptest! {
        #[test]
        fn nothing_is_minted_or_lost(spare in 0..=crate::operation::AMOUNT_MAX, wanted in prop::collection::vec(0..=crate::operation::AMOUNT_MAX, 1..8)) {
            for name in Reallocation::NAMES {
                let module = name.parse::<Reallocation>().expect("its name").module();
                let accepted = module.accept(spare, &wanted);
                prop_assert!(accepted.iter().zip(&wanted).all(|(accepted, wanted)| accepted <= wanted));
                prop_assert_eq!(grants(module, spare, &wanted).iter().sum::<u64>(), spare);
            }
        }
    }
}
