//! What terminals draw the inputs of their transactions from.

use chrono::NaiveDateTime;
use rhumb_core::Rng;

use super::home::Home;
use super::random::NuRand;
use super::scale::{DISTRICTS, Scale};

/// What a terminal draws its transactions from.
pub struct Inputs<'a> {
    /// Its place.
    pub home: Home,
    /// The sizes of the database.
    pub scale: Scale,
    /// The popularity of customers and items.
    pub nurand: NuRand,
    /// Its randomness.
    pub rng: &'a mut Rng,
    /// Now.
    pub now: NaiveDateTime,
}

impl Inputs<'_> {
    /// A warehouse other than home; home if it is the only one.
    pub fn remote_warehouse(&mut self) -> i32 {
        let others = self.scale.warehouses as u64 - 1;
        let drawn = self.rng.between(1, others.max(1)) as i32;
        if others == 0 { self.home.w_id } else { drawn + i32::from(drawn >= self.home.w_id) }
    }

    /// A district.
    pub fn district(&mut self) -> i32 {
        self.rng.between(1, DISTRICTS as u64) as i32
    }

    /// A customer: six times of ten by last name, else by number (clauses 2.5.1.2 and 2.6.1.2).
    pub fn customer(&mut self) -> CustomerChoice {
        match self.rng.chance(0.6) {
            true => CustomerChoice::ByLastName(self.nurand.last_name(self.rng)),
            false => CustomerChoice::ById(self.nurand.customer(self.rng)),
        }
    }
}

/// How a user names a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomerChoice {
    /// By number.
    ById(i32),
    /// By last name, which several share.
    ByLastName(String),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_remote_warehouse_is_any_but_home() {
        let mut rng = Rng::seeded(7);
        let scale = Scale::small(3);
        let nurand = NuRand::for_load(scale);
        let mut inputs = Inputs { home: Home { w_id: 2, d_id: 1 }, scale, nurand, rng: &mut rng, now: NaiveDateTime::default() };
        let drawn: BTreeSet<i32> = (0..100).map(|_| inputs.remote_warehouse()).collect();
        assert_eq!(drawn, BTreeSet::from([1, 3]));
    }
}
