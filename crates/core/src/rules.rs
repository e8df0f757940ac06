//! The rules of a protocol, one of which a test may break on purpose.
//!
//! A test that cannot fail shows nothing. So each rule that keeps a promise has a name, the point that enforces it asks [`Rules::breaks`],
//! and some test must fail while that rule is broken: a seed of the simulator, a scenario or a model. The names are an enum of each
//! protocol, `Planted`, in its `planted.rs`; what a broken rule does instead stands there, or with the role that it concerns.
//!
//! In the product all rules hold: [`Rules`] has no field there, [`Rules::breaks`] is the constant `false`, and what a broken rule would do
//! falls away when it is compiled. Only the feature `planted`, which no product build has, can make rules that are broken.

use std::marker::PhantomData;

/// True in builds that can break rules. Assertions that only a broken rule fails are left out there: the checkers are to find it.
pub const CAN_BREAK: bool = cfg!(feature = "planted");

/// All rules of a protocol, of which at most one is broken. `B` names the ways to break them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules<B> {
    #[cfg(feature = "planted")]
    broken: Option<B>,
    names: PhantomData<fn() -> B>,
}

impl<B> Rules<B> {
    /// All rules hold.
    pub const HOLD: Rules<B> = Rules {
        #[cfg(feature = "planted")]
        broken: None,
        names: PhantomData,
    };

    /// All rules hold but this one.
    #[cfg(feature = "planted")]
    pub const fn breaking(rule: B) -> Rules<B>
    where
        B: Copy,
    {
        Rules { broken: Some(rule), names: PhantomData }
    }
}

impl<B: Copy + PartialEq> Rules<B> {
    /// True if that rule is broken: never in the product.
    #[inline(always)]
    pub fn breaks(self, rule: B) -> bool {
        #[cfg(feature = "planted")]
        return self.broken == Some(rule);
        #[cfg(not(feature = "planted"))]
        {
            let _ = rule;
            false
        }
    }

    /// True if one of them is broken: never in the product.
    #[inline(always)]
    pub fn are_broken(self) -> bool {
        #[cfg(feature = "planted")]
        return self.broken.is_some();
        #[cfg(not(feature = "planted"))]
        false
    }
}

impl<B> Default for Rules<B> {
    fn default() -> Rules<B> {
        Rules::HOLD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq)]
    enum Planted {
        Early,
        #[cfg(feature = "planted")]
        Late,
    }

    #[test]
    fn all_rules_hold_unless_one_is_broken() {
        assert!(!Rules::HOLD.breaks(Planted::Early) && !Rules::<Planted>::HOLD.are_broken());
        #[cfg(feature = "planted")]
        {
            let rules = Rules::breaking(Planted::Early);
            assert!(rules.breaks(Planted::Early) && !rules.breaks(Planted::Late) && rules.are_broken());
        }
        #[cfg(not(feature = "planted"))]
        assert_eq!(size_of::<Rules<Planted>>(), 0, "the product carries none");
    }
}
