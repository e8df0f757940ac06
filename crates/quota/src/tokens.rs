//! Tokens of the two kinds there are, counted together. Every move of tokens goes through these few operations, which
//! panic rather than mint or lose one.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Tokens left to give out, and tokens held by clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tokens {
    /// To be acquired.
    pub left: u64,
    /// Acquired, to be released.
    pub held: u64,
}

impl Tokens {
    /// None of either kind.
    pub const NONE: Tokens = Tokens { left: 0, held: 0 };

    /// That many to be acquired.
    pub const fn left(left: u64) -> Tokens {
        Tokens { left, held: 0 }
    }

    /// True if there is none of either kind.
    pub fn is_none(self) -> bool {
        self == Tokens::NONE
    }

    /// True if there are at least as many of either kind as in `other`.
    pub fn covers(self, other: Tokens) -> bool {
        self.left >= other.left && self.held >= other.held
    }
}

impl Add for Tokens {
    type Output = Tokens;
    fn add(self, other: Tokens) -> Tokens {
        let sum = |a: u64, b: u64| a.checked_add(b).expect("limits leave room for the sum of all tokens");
        Tokens { left: sum(self.left, other.left), held: sum(self.held, other.held) }
    }
}

impl Sub for Tokens {
    type Output = Tokens;
    fn sub(self, other: Tokens) -> Tokens {
        let rest = |a: u64, b: u64| a.checked_sub(b).expect("nobody takes more tokens than there are");
        Tokens { left: rest(self.left, other.left), held: rest(self.held, other.held) }
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl SubAssign for Tokens {
    fn sub_assign(&mut self, other: Tokens) {
        *self = *self - other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(tokens: I) -> Tokens {
        tokens.fold(Tokens::NONE, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.held {
            0 => write!(f, "{}", self.left),
            held => write!(f, "{}+{held}h", self.left),
        }
    }
}
