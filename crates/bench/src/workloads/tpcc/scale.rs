//! How much data there is.

use crate::error::BenchError;
use crate::tables::ledger::{self, Parameters};

/// Districts of a warehouse.
pub const DISTRICTS: i32 = 10;

/// Of a district's initial orders, the share not yet delivered: three tenths.
const UNDELIVERED_TENTHS: i32 = 3;

/// The sizes of a database. Warehouses scale the load; the other sizes are fixed by clause 1.2.1, and a database that lowers them does not conform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, and so stocks per warehouse. Conforming: 100,000.
    pub items: u32,
    /// Customers of a district, and its initial orders. Conforming: 3,000.
    pub customers_per_district: u32,
}

impl Scale {
    /// `warehouses` warehouses as the specification wants them: about 100 MB each.
    pub fn conforming(warehouses: u32) -> Scale {
        Scale { warehouses, items: 100_000, customers_per_district: 3_000 }
    }

    /// Warehouses of the hundredth part: 1,000 items and 30 customers per district. Loads in seconds, conflicts more, does not conform.
    pub fn small(warehouses: u32) -> Scale {
        Scale { warehouses, items: 1_000, customers_per_district: 30 }
    }

    /// The share of the conforming sizes, from above 0 to 1; the lowest sizes are 100 items and 10 customers.
    pub fn shrunk(warehouses: u32, share: f64) -> Result<Scale, BenchError> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(BenchError::Options(format!("the scale of a warehouse lies above 0 and up to 1, not at {share}")));
        }
        let full = Scale::conforming(warehouses);
        let part = |size: u32, least: u32| ((f64::from(size) * share).round() as u32).max(least);
        Ok(Scale { warehouses, items: part(full.items, 100), customers_per_district: part(full.customers_per_district, 10) })
    }

    /// True if only the number of warehouses was chosen.
    pub fn conforms(&self) -> bool {
        *self == Scale::conforming(self.warehouses)
    }

    /// Refuses sizes that no table can hold or no order can be drawn from.
    pub fn validate(&self) -> Result<(), BenchError> {
        const WAREHOUSES_MAX: u32 = 100_000;
        let fits = (1..=WAREHOUSES_MAX).contains(&self.warehouses) && (15..=100_000).contains(&self.items);
        if fits && (10..=3_000).contains(&self.customers_per_district) {
            return Ok(());
        }
        let reason = format!("warehouses go from 1 to {WAREHOUSES_MAX}, items from 15 to 100000, customers per district from 10 to 3000");
        Err(BenchError::Options(reason))
    }

    /// Of a district's initial orders, those already delivered; the ones after them are new.
    pub fn delivered_initially(&self) -> i32 {
        let orders = self.customers_per_district as i32;
        orders - orders * UNDELIVERED_TENTHS / 10
    }

    /// Rows that the loader makes, order lines at their mean of ten per order.
    pub fn rows_expected(&self) -> u64 {
        let (warehouses, items, customers) = (u64::from(self.warehouses), u64::from(self.items), u64::from(self.customers_per_district));
        // A customer comes with a history row, an order and its ten lines, and three tenths of a new order.
        let per_district = 1 + customers * 13 + customers * 3 / 10;
        items + warehouses * (1 + items + DISTRICTS as u64 * per_district)
    }

    /// The sizes as the ledger keeps them.
    pub fn to_parameters(self) -> Parameters {
        let customers = self.customers_per_district.into();
        ledger::parameters([("warehouses", self.warehouses.into()), ("items", self.items.into()), ("customers_per_district", customers)])
    }

    /// The sizes that the ledger tells.
    pub fn from_parameters(parameters: &Parameters) -> Result<Scale, BenchError> {
        let size = |name| {
            let size = ledger::parameter(parameters, super::NAME, name)?;
            u32::try_from(size)
                .map_err(|error| BenchError::NotLoaded { workload: super::NAME, reason: format!("{name} is {size}: {error}") })
        };
        Ok(Scale { warehouses: size("warehouses")?, items: size("items")?, customers_per_district: size("customers_per_district")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_shrinks_items_and_customers() {
        assert_eq!(Scale::shrunk(3, 0.01).expect("a share"), Scale { warehouses: 3, items: 1_000, customers_per_district: 30 });
        assert_eq!(Scale::shrunk(3, 1e-9).expect("a share"), Scale { warehouses: 3, items: 100, customers_per_district: 10 });
        assert!(Scale::shrunk(3, 1.0).expect("a share").conforms());
        assert!(Scale::shrunk(3, 0.0).is_err() && Scale::shrunk(3, 1.1).is_err());
    }

    #[test]
    fn the_ledger_keeps_the_sizes() {
        let scale = Scale::small(7);
        assert_eq!(Scale::from_parameters(&scale.to_parameters()).expect("sizes"), scale);
    }

    #[test]
    fn of_three_thousand_orders_the_last_nine_hundred_are_new() {
        assert_eq!(Scale::conforming(1).delivered_initially(), 2_100);
        assert_eq!(Scale::small(1).delivered_initially(), 21);
    }
}
