//! The rules of a protocol, one of which a test may break on purpose.
//!
//! A test that cannot fail shows nothing. So each rule that keeps a promise has a name, the point that enforces it asks [`Rules::breaks`],
//! and some test must fail while that rule is broken: a seed of the simulator, a scenario or a model. The names are an enum of each
//! protocol, `Planted`, in its `planted.rs`; what a broken rule does instead stands there, or with the role that it concerns.
//!
//! In a release build all rules hold: [`Rules`] has no field there, [`Rules::breaks`] is the constant `false`, and what a broken rule would do
//! falls away when it is compiled. Only builds with debug assertions, those of development, can make rules that are broken, and only tests
//! make them.

use std::marker::PhantomData;

/// All rules of a protocol, of which at most one is broken. `B` names the ways to break them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules<B> {
    #[cfg(debug_assertions)]
    broken: Option<B>,
    names: PhantomData<fn() -> B>,
}

// Nothing of it is carried along in a release build.
const _: () = assert!(cfg!(debug_assertions) || size_of::<Rules<u64>>() == 0);

impl<B> Rules<B> {
    /// All rules hold.
    pub const HOLD: Rules<B> = Rules {
        #[cfg(debug_assertions)]
        broken: None,
        names: PhantomData,
    };

    /// All rules hold but this one.
    #[cfg(debug_assertions)]
    pub const fn breaking(rule: B) -> Rules<B>
    where
        B: Copy,
    {
        Rules { broken: Some(rule), names: PhantomData }
    }
}

impl<B: Copy + PartialEq> Rules<B> {
    /// True if that rule is broken: never in a release build.
    #[inline(always)]
    pub fn breaks(self, rule: B) -> bool {
        #[cfg(debug_assertions)]
        return self.broken == Some(rule);
        #[cfg(not(debug_assertions))]
        {
            let _ = rule;
            false
        }
    }

    /// True if one of them is broken, never in a release build. Assertions that only a broken rule fails ask this: the checkers are to find it.
    #[inline(always)]
    pub fn are_broken(self) -> bool {
        #[cfg(debug_assertions)]
        return self.broken.is_some();
        #[cfg(not(debug_assertions))]
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
        Late,
    }

    #[test]
    fn all_rules_hold_unless_one_is_broken() {
        assert!(!Rules::HOLD.breaks(Planted::Early) && !Rules::<Planted>::HOLD.are_broken());
        let rules = Rules::breaking(Planted::Early);
        assert!(rules.breaks(Planted::Early) && !rules.breaks(Planted::Late) && rules.are_broken());
    }
}
